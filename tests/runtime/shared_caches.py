"""Machines that share a cache, in one process, and a store whose answers a test chooses."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.launch_kernels import fill
from tilework import knobs, metrics
from tilework.runtime.kernel_cache.remote.guard import flush_all
from tilework.runtime.kernel_cache.remote.store import Address, Failure, RemoteStore, Timeouts

ROOT = Path(__file__).parents[2]
KEY, OTHER = "ab" * 32, "cd" * 32
FILES = {"add.ttir": b"module {}", "add.obj": bytes(range(256)), "add.json": b"{}"}
SECRET = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Share a folder and a key between machines, and return the folder."""
    (found := tmp_path / "shared").mkdir()
    knobs.cache.url, knobs.cache.key = f"file://{found}", SECRET
    metrics.reset()
    return found


def another_machine(tmp_path: Path, name: str = "another machine") -> None:
    assert flush_all(5)
    knobs.cache.dir = str(tmp_path / name)


def launch() -> Any:
    """Launch as in a new process, with nothing in memory."""
    fill.device_caches.clear()
    out = np.zeros(16, "f4")
    kernel = fill[(1,)](out, 2.0, 16)
    assert (out == 2).all()
    return kernel


def objects(folder: Path, kind: str = "kernels") -> list[Path]:
    return sorted(path for path in (folder / kind).rglob("*") if path.is_file())


def failures() -> dict[str, float]:
    return {name.split('"')[1]: value for name, value in metrics.snapshot()["remote_failures"].items()}


class Server(RemoteStore):
    """A store whose answers a test chooses."""

    def __init__(self) -> None:
        super().__init__(Address("redis://user:hunter2@cachehost:7000/0"), Timeouts(0.2, 0.3))
        self.data: dict[str, bytes] = {}
        self.does: Callable[[], object] = lambda: None
        self.asked = 0

    def get(self, name: str) -> bytes | None:
        self.asked += 1
        self.does()
        return self.data.get(name)

    def put(self, name: str, data: bytes) -> None:
        self.does()
        self.data[name] = data

    def create(self, name: str, data: bytes) -> bool:
        return name not in self.data and self.put(name, data) is None

    def delete(self, name: str) -> None:
        self.data.pop(name, None)

    def names(self, prefix: str) -> Iterator[str]:
        return (name for name in self.data if name.startswith(prefix))

    def client_failure(self, error: Exception) -> Failure:
        return Failure(str(error), "with hunter2")

    def fail(self, kind: str) -> None:
        def failing() -> None:
            raise RuntimeError(kind)

        self.does = failing


@pytest.fixture
def server() -> Server:
    metrics.reset()
    return Server()


def eventually(condition: Callable[[], object], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.005)
    return bool(found)
