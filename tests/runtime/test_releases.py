"""Each program is asked for its release once; it is kept beside the bytecode or, if impossible, with the kernels."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tilework import knobs
from tilework.knobs import cuda_tools
from tilework.runtime.kernel_cache import managers
from tilework.runtime.kernel_cache.managers import FileCacheManager, RemoteCacheManager

Release = Callable[[Path], str | None]


class OfTheUser(FileCacheManager):
    """A user's cache manager, which may keep files elsewhere."""


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Release]:
    """Return the version that a new process finds for a program, which reports another one at each call."""
    asked: list[str] = []
    monkeypatch.setattr(cuda_tools, "printed_release", lambda path: asked.append(path) or f"13.{len(asked)}")
    monkeypatch.setattr(managers, "releases_file", lambda: str(tmp_path / "releases.known"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert managers.kept_release in cuda_tools.RELEASE_KEEPERS

    def found(path: Path) -> str | None:
        cuda_tools.release.cache_clear()
        return cuda_tools.release(str(path))

    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield found
    cuda_tools.release.cache_clear()


@pytest.mark.parametrize("has_bytecode", [True, False])
def test_a_program_is_requested_its_release_once(
    release: Release, has_bytecode: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", not has_bytecode)
    program, script = tmp_path / "ptxas", tmp_path / "wrapper"
    program.write_bytes(b"\x7fELF 1")
    assert [release(program), release(program)] == ["13.1", "13.1"]
    program.write_bytes(b"\x7fELF 2")  # another one in its place
    assert [release(program), release(program)] == ["13.2", "13.2"]
    script.write_text("#!/bin/sh")  # whatever it calls may change
    assert [release(script), release(script)] == ["13.3", "13.4"]
    assert release(tmp_path / "nothing") is None
    assert (tmp_path / "releases.known").exists() == has_bytecode
    knobs.cache.manager_class = RemoteCacheManager  # a shared cache, whose machines have other programs
    assert [release(program), release(program)] == ["13.2", "13.2"]
    knobs.cache.manager_class = OfTheUser
    assert [release(program), release(program)] == (["13.2", "13.2"] if has_bytecode else ["13.5", "13.6"])


def test_a_new_cache_starts_no_program(release: Release, tmp_path: Path) -> None:
    program = tmp_path / "ptxas"
    program.write_bytes(b"\x7fELF")
    assert release(program) == "13.1"
    knobs.cache.dir = str(tmp_path / "another")
    assert release(program) == "13.1" and not (tmp_path / "another").exists()


@pytest.mark.parametrize("content", [b"", b"\xff", b"[]", b"{", b'{"a": 3}'])
def test_what_is_damaged_is_nothing(release: Release, content: bytes, tmp_path: Path) -> None:
    (tmp_path / "releases.known").write_bytes(content)
    assert managers.known_releases() == {}
    managers.remember_release("a", "13.0")
    assert managers.known_releases() == {"a": "13.0"}


def test_the_last_ones_are_kept(release: Release) -> None:
    for number in range(2 * managers.MOST_RELEASES):
        managers.remember_release(str(number), "13.0")
    assert list(managers.known_releases()) == [
        str(number) for number in range(managers.MOST_RELEASES, 2 * managers.MOST_RELEASES)
    ]
