"""Writers that die or meet, readers that are overtaken."""

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cache_stress
from tilework import knobs
from tilework.runtime.kernel_cache import entry as cache_entry
from tilework.runtime.kernel_cache.entry import Damaged, EntryStore
from tilework.runtime.kernel_cache.eviction import entries_of, remove_stale, verify

FOLDER, GROUP = "ENTRY", "add.json"
OLD = {"add.source": b"old", "add.ttir": b"old module", "add.json": b"old {}"}
NEW = {"add.source": b"new", "add.ttir": b"new module", "add.json": b"new {}", "add.ptx": b"new"}
CALLS = ("open", "write", "close", "mkdir", "rename", "replace", "link", "unlink", "rmdir", "utime")


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def store(tmp_path: Path) -> EntryStore:
    return EntryStore(str(tmp_path / "cache"))


@pytest.fixture(params=[True, False], ids=["exchange", "no exchange"])
def can_exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Run the test with and without an atomic exchange of two folders, which network file systems do not have."""
    if not request.param:
        monkeypatch.setattr(cache_entry, "exchange", lambda one, other: False)
    return request.param


def dies_at(step: int, action: Callable[[], Any]) -> bool:
    """Run `action` in a child that is killed before its `step`-th system call; return True if it got that far."""
    if (child := os.fork()) == 0:
        left = [step]

        def counted(call: Callable[..., Any]) -> Callable[..., Any]:
            def replacement(*args: Any, **kwargs: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os._exit(1)
                return call(*args, **kwargs)

            return replacement

        for name in CALLS:
            setattr(os, name, counted(getattr(os, name)))
        cache_entry.exchange = counted(cache_entry.exchange)
        action()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_a_writer_killed_anywhere_leaves_nothing_or_all(store: EntryStore) -> None:
    seen = []
    step = 0
    while dies_at(step, lambda: store.write(FOLDER, GROUP, NEW)):
        seen.append(store.read(FOLDER, GROUP))
        store.discard(FOLDER)
        step += 1
    assert step > 15
    assert all(files in (None, NEW) for files in seen)
    assert store.read(FOLDER, GROUP) == NEW


def test_a_replacing_writer_killed_anywhere_leaves_the_old_or_the_new(store: EntryStore, can_exchange: bool) -> None:
    last = NEW if can_exchange else OLD  # without an exchange the first writer wins
    seen = []
    step = 0
    store.write(FOLDER, GROUP, OLD)
    while dies_at(step, lambda: store.write(FOLDER, GROUP, NEW)):
        seen.append(store.read(FOLDER, GROUP))
        store.write(FOLDER, GROUP, OLD)
        step += 1
    assert step > 15
    assert all(files in (OLD, last) for files in seen)
    assert OLD in seen and last in seen
    assert store.read(FOLDER, GROUP) == last


def test_a_damaged_entry_is_replaced_without_an_exchange(store: EntryStore, can_exchange: bool) -> None:
    step = 0
    while True:
        store.write(FOLDER, GROUP, OLD)
        Path(store.path(FOLDER), "add.ttir").write_bytes(b"")
        if not dies_at(step, lambda: store.write(FOLDER, GROUP, NEW)):
            break
        step += 1
        try:
            assert store.read(FOLDER, GROUP) in (None, NEW)
        except Damaged:
            assert Path(store.path(FOLDER), "add.ttir").read_bytes() == b""
    assert store.read(FOLDER, GROUP) == NEW


def test_what_dead_writers_left_is_cleared_up(store: EntryStore) -> None:
    for step in range(2, 12):
        dies_at(step, lambda: store.write(FOLDER, GROUP, NEW))
    scratch = Path(store.root, ".tmp")
    left = len(list(scratch.iterdir()))
    assert left > 0
    assert remove_stale(store) == 0, "they may be alive"
    for path in scratch.iterdir():
        os.utime(path, (0, 0))
    assert remove_stale(store) == left
    assert list(scratch.iterdir()) == []


def test_a_writer_whose_folder_was_cleared_up_starts_again(store: EntryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real, lost = os.rename, []

    def rename(source: str, target: str) -> None:
        if not lost:
            lost.append(source)
            shutil.rmtree(source)
        real(source, target)

    monkeypatch.setattr(os, "rename", rename)
    store.write(FOLDER, GROUP, NEW)
    assert lost and store.read(FOLDER, GROUP) == NEW


@pytest.mark.parametrize("other", [OLD, NEW], ids=["other content", "same content"])
def test_two_writers_meet(store: EntryStore, other: dict[str, bytes], can_exchange: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        real, met = os.rename, []

        def rename(source: str, target: str) -> None:
            if not met:
                met.append(True)
                store.write(FOLDER, GROUP, other)  # just before our own rename
            real(source, target)

        patch.setattr(os, "rename", rename)
        store.write(FOLDER, GROUP, NEW)
    assert store.read(FOLDER, GROUP) == (NEW if can_exchange else other)
    assert os.listdir(os.path.join(store.root, ".tmp")) == []


def overtake(patch: pytest.MonkeyPatch, action: Callable[[], Any]) -> None:
    """Let another process do `action` after a reader has read the manifest and one file."""
    real, count = cache_entry.read_file, [0]

    def read_file(*args: Any) -> bytes:
        count[0] += 1
        if count[0] == 3:
            patch.setattr(cache_entry, "read_file", real)
            action()
        return real(*args)

    patch.setattr(cache_entry, "read_file", read_file)


def test_a_reader_never_mixes_two_versions(
    store: EntryStore, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    store.write(FOLDER, GROUP, OLD)
    overtake(monkeypatch, lambda: store.write(FOLDER, GROUP, NEW))
    assert store.read(FOLDER, GROUP) in (OLD, NEW)


def test_an_entry_deleted_under_a_reader_is_a_missing_one(store: EntryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(FOLDER, GROUP, OLD)
    overtake(monkeypatch, lambda: store.discard(FOLDER))
    assert store.read(FOLDER, GROUP) is None


def test_an_entry_deleted_in_place_under_a_reader_is_a_missing_one(
    store: EntryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(cache_entry.errno.EXDEV, "a lower layer")

    store.write(FOLDER, GROUP, OLD)
    monkeypatch.setattr(os, "rename", refuse)
    overtake(monkeypatch, lambda: store.discard(FOLDER))
    assert store.read(FOLDER, GROUP) is None
    assert not os.path.exists(store.path(FOLDER))


def test_a_cache_deleted_under_a_writer_is_made_again(store: EntryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real, done = cache_entry.write_file, []

    def write_file(path: str, data: bytes, flush: bool = False) -> None:
        if not done:
            done.append(True)
            cache_entry.remove_tree(store.root)
        real(path, data, flush)

    monkeypatch.setattr(cache_entry, "write_file", write_file)
    store.write(FOLDER, GROUP, NEW)
    assert store.read(FOLDER, GROUP) == NEW
    done.clear()
    store.put(FOLDER, "add.autotune.json", b"{}")
    assert store.file(FOLDER, "add.autotune.json") is not None


@pytest.mark.parametrize(
    "options", ["--entries 16".split(), "--max-size 800000 --grace 0".split()], ids=["unbounded", "evicting"]
)
def test_many_processes_one_killed_after_the_other(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A short run of the stress test; `python -m benchmarks.cache_stress` is the long one."""
    with knobs.cache.scope():
        code = cache_stress.main(["--processes", "4", "--seconds", "1.2", "--kill-every", "0.1", *options])
    output = capsys.readouterr().out
    assert code == 0, output
    assert " 0 damaged, 0 missing; 0 processes with an error" in output


def test_the_stress_test_sees_a_mixture(tmp_path: Path) -> None:
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        cache_stress.store_entry(cache_stress.key_of(3), "kernel", cache_stress.content(3, 1))
        store = EntryStore(str(tmp_path))
        (entry,) = entries_of(store)
        Path(store.path(entry.folder), "kernel.ptx").write_bytes(cache_stress.content(3, 2)["kernel.ptx"])
        assert "kernel.ptx does not have the checksum" in verify(store, entry)[0]
