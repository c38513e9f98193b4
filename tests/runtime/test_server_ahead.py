"""A compile server that is started when a kernel is defined: once for each change of a file, and gone with who started it."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.runtime.server_fixture import place as place
from tilework import knobs
from tilework.runtime.compile import compiler_presence
from tilework.runtime.workers import compile_server, server_ahead, server_place, warm_compiler
from tilework.targets.cpu.processor import available_cores

ROOT = Path(__file__).parent.parent.parent
NOW = time.time()


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What would have been started by whom, in a process that has loaded nothing; there are two cores, and one is free."""
    found: list[Any] = []
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    os.chmod(tmp_path, 0o700)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1})
    monkeypatch.setattr(os, "getloadavg", lambda: (0.5, 9.0, 9.0))
    monkeypatch.setattr(compiler_presence, "is_compiler_loaded", lambda: False)
    monkeypatch.setattr(server_place, "start", lambda path, target, owner: found.append(owner))
    monkeypatch.setattr(server_ahead, "LOOKED_AT", set())
    with knobs.cache.scope(), knobs.compilation.scope(), knobs.runtime.scope(), knobs.autotuning.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        knobs.compilation.server = "auto"
        yield found


def kernel_in(file: Path, changed: float = NOW - 10, module: str = "mine") -> Any:
    """A function that is defined in a file, which was changed at some time."""
    file.write_text(text := "def kernel(x):\n    pass\n")
    os.utime(file, (changed, changed))
    scope: dict[str, Any] = {"__name__": module}
    exec(compile(text, str(file), "exec"), scope)
    return scope["kernel"]


def define(*kernels: Any) -> None:
    """As in a new process."""
    server_ahead.LOOKED_AT.clear()
    for kernel in kernels:
        server_ahead.expect_compilation(kernel)


def test_one_is_started_for_each_change_of_a_file(started: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    kernel = kernel_in(file)
    define(kernel_in(tmp_path / "ours.py", module="tilework.language.standard"), len)
    assert not started
    define(kernel, kernel, kernel_in(tmp_path / "others.py"))
    assert started == [os.getpid()], "the cache is new; the other file is older than what the start left"
    define(kernel)
    assert len(started) == 1
    os.utime(knobs.cache.dir, (NOW - 20, NOW - 20))
    define(kernel)
    assert len(started) == 2, "changed since"
    define(kernel_in(file, NOW + 1000))
    assert len(started) == 2, "nobody knows when that was changed"
    file.unlink()
    define(kernel)
    assert len(started) == 2


REASONS: dict[str, Callable[[pytest.MonkeyPatch], Any]] = {
    "off": lambda patch: setattr(knobs.compilation, "server", "off"),
    "use": lambda patch: setattr(knobs.compilation, "server", "use"),
    "nonsense": lambda patch: setattr(knobs.compilation, "server", "sometimes"),
    "one core": lambda patch: patch.setattr(os, "sched_getaffinity", lambda process: {3}),
    "busy cores": lambda patch: patch.setattr(os, "getloadavg", lambda: (1.5, 0.0, 0.0)),
    "no workers": lambda patch: setattr(knobs.autotuning, "workers", 0),
    "nothing is compiled": lambda patch: setattr(knobs.runtime, "no_jit", True),
    "loaded": lambda patch: patch.setattr(compiler_presence, "is_compiler_loaded", lambda: True),
    "no compiler": lambda patch: patch.setattr(compiler_presence, "has_compiler", lambda: False),
    "there is one": lambda patch: patch.setattr(
        server_place, "connect", lambda path: SimpleNamespace(close=lambda: None)
    ),
    "no place": lambda patch: patch.setattr(server_place, "socket_path", lambda: None),
    "no cache": lambda patch: setattr(knobs.cache, "dir", os.path.join(__file__, "cache")),
    "a cache of others": lambda patch: patch.setattr(os, "utime", Mock(side_effect=PermissionError)),
    "no handles of processes": lambda patch: patch.delattr(os, "pidfd_open"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_none_is_started_without_need(reason: str, started: list[Any], tmp_path: Path, monkeypatch: Any) -> None:
    kernel, ours = (
        kernel_in(tmp_path / "kernels.py"),
        kernel_in(tmp_path / "ours.py", module="tilework.language.standard"),
    )
    REASONS[reason](monkeypatch)
    define(kernel, ours, len)
    assert not started


def test_it_outlives_who_asks_for_that(started: list[Any], tmp_path: Path) -> None:
    knobs.compilation.server = "start"
    define(kernel_in(tmp_path / "kernels.py"))
    assert started == [None]


SCRIPT = """
import os, sys, time
os.getloadavg = lambda: (0.0, 0.0, 0.0)
import numpy as np
import tilework, tilework.language as tl

@tilework.jit
def fill(out):
    tl.store(out, 7)

if "wait" in sys.argv:
    from tilework.runtime.workers import first_kernels, server_place
    first_kernels.PATIENCE = 20
    while not server_place.is_ready(server_place.socket_path()):
        time.sleep(0.02)
    out = np.zeros(1, np.int32)
    for _ in range(3):
        fill[(1,)](out)
    assert out[0] == 7
    print([name for name in ("tilework.frontend.generator", "llvmlite.binding") if name in sys.modules])
"""


@pytest.mark.skipif(available_cores() < 2, reason="on one core there is none")
def test_a_first_launch_needs_neither_compiler_nor_llvm_and_leaves_nothing(place: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_RUNTIME_DIR": str(place), "TILEWORK_DEVICE": "native"}
    environment |= {"TILEWORK_COMPILE_SERVER": "auto", "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    for way in ("end", "wait"):
        os.utime(tmp_path / "script.py")
        command = [sys.executable, str(tmp_path / "script.py"), way]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert (done.stdout, done.stderr) == ("[]\n" if way == "wait" else "", "")
        deadline = time.monotonic() + 30
        while processes_with(str(place)) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not processes_with(str(place)) and not list((place / "tilework").iterdir())


def processes_with(word: str) -> list[str]:
    """The processes whose command has a word."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:
            continue
        if word.encode() in command:
            found.append(process)
    return found


def test_a_backend_is_loaded_once_and_what_was_asked_for_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Any] = []
    monkeypatch.setattr(compile_server, "load_compiler", loads.append)
    server = compile_server.Server(socket.socket(), loaded=[["cuda", 90, 32]])
    for target in (["cuda", 100, 32], ["cpu", "host", 1], ["cpu", "host", 1]):
        server.load(target)
    assert loads == server.half_loaded == [["cpu", "host", 1]]
    assert server.targets == [["cuda", 100, 32], ["cpu", "host", 1]]
    server.listener.close()


@pytest.mark.parametrize(
    ("device", "backend"),
    [("native", "cpu"), ("evaluator", "cpu"), ("cuda", "cuda"), ("hip", "hip"), ("emulator:90", "cuda")],
)
def test_the_likely_target_is_the_device_that_is_asked_for(device: str, backend: str) -> None:
    with knobs.runtime.scope():
        knobs.runtime.device = device
        assert warm_compiler.likely_target()[0] == backend
