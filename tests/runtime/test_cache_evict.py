"""The bound of the cache, and `tilework cache`."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilework import knobs
from tilework.runtime.kernel_cache import entry as cache_entry
from tilework.runtime.kernel_cache import eviction as cache_evict
from tilework.runtime.kernel_cache.entry import STAMP, EntryStore
from tilework.runtime.kernel_cache.eviction import entries_of, evict
from tilework.runtime.kernel_cache.key import folder_of
from tilework.runtime.kernel_cache.managers import get_cache_manager, load_entry, store_entry
from tilework.tools.cache import age_text, size_text
from tilework.tools.cli import main

ENTRY_BYTES = 3 * 4096  # two files and the manifest, in whole blocks


@pytest.fixture(autouse=True)
def root(tmp_path: Path) -> Iterator[Path]:
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield tmp_path / "cache"


def key_of(number: int) -> str:
    return f"{number:064x}"


def fill(root: Path, count: int) -> EntryStore:
    """Entries 0, 1, ..., each used an hour after the one before it, all long ago."""
    for number in range(count):
        store_entry(key_of(number), "add", {"add.ttir": b"x" * 100, "add.json": b"{}"})
        age(root, number, 1_000_000 - 3600 * number)
    return EntryStore(str(root))


def age(root: Path, number: int, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(root / folder_of(key_of(number)) / STAMP, (moment, moment))


def kept(count: int) -> list[int]:
    return [number for number in range(count) if load_entry(key_of(number), "add") is not None]


def test_sizes_are_counted_in_blocks(root: Path) -> None:
    (entry,) = entries_of(fill(root, 1))
    assert (entry.bytes, entry.files, entry.title) == (ENTRY_BYTES, 2, "add")


def test_the_least_recently_used_go_first(root: Path) -> None:
    store = fill(root, 10)
    age(root, 2, 100)
    assert len(evict(store, 5 * ENTRY_BYTES)) == 6, "down to 90% of the bound"
    assert kept(10) == [2, 7, 8, 9]


def test_below_the_bound_nothing_is_deleted(root: Path) -> None:
    assert evict(fill(root, 3), 3 * ENTRY_BYTES) == []


def test_loading_counts_as_a_use(root: Path) -> None:
    store = fill(root, 4)
    load_entry(key_of(0), "add")
    get_cache_manager(key_of(1)).get_file("add.ttir")
    evict(store, 2 * ENTRY_BYTES + 4096, grace=0)
    assert kept(4) == [0, 1]


def test_a_use_is_not_noted_twice_in_ten_minutes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(root, 1)
    load_entry(key_of(0), "add")
    monkeypatch.setattr(cache_entry.os, "utime", None)
    load_entry(key_of(0), "add")


def test_new_entries_are_safe(root: Path) -> None:
    store = fill(root, 3)
    age(root, 2, 5)
    evict(store, 1)
    assert kept(3) == [2]


@pytest.mark.parametrize("grace", [None, 0.0])
def test_the_bound_is_kept_though_stamps_lie_in_the_future(root: Path, grace: float | None) -> None:
    """Entries of a time that is not known go first; a use makes it known."""
    store = fill(root, 8)
    for number in range(2, 8):
        age(root, number, -1_000_000)
    load_entry(key_of(7), "add")
    evict(store, 2 * ENTRY_BYTES + 4096, grace=grace)
    assert kept(8) == [1, 7]
    age(root, 1, 100)
    age(root, 7, -5)  # clocks of two machines are a little apart
    evict(store, 1, grace=grace)
    assert kept(8) == ([7] if grace is None else [])


def test_the_entry_just_written_is_safe(root: Path) -> None:
    store = fill(root, 3)
    evict(store, 1, keep=folder_of(key_of(0)))
    assert kept(3) == [0]


def test_storing_evicts(root: Path) -> None:
    fill(root, 4)
    knobs.cache.max_size = 200  # so small that each store scans
    store_entry(key_of(9), "add", {"add.json": b"x" * 100})
    assert kept(10) == [9]


def test_without_a_bound_nothing_is_evicted(root: Path) -> None:
    fill(root, 4)
    knobs.cache.max_size = 0
    store_entry(key_of(9), "add", {"add.json": b"x" * 100})
    assert kept(10) == [0, 1, 2, 3, 9]


def test_scans_are_rare(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scans = []
    monkeypatch.setattr(cache_evict, "evict", lambda *args, **kwargs: scans.append(args))
    store = EntryStore(str(root))
    for _ in range(3200):
        cache_evict.after_store(store, "folder", 1000, 32_000_000)
    assert len(scans) < 20, "3.2 are expected"


def test_entries_of_others_are_left_alone(root: Path) -> None:
    store = fill(root, 1)
    (root / "TRITONS").mkdir()
    (root / "TRITONS" / "add.ptx").write_bytes(b"x" * 100_000)
    evict(store, 1)
    assert (root / "TRITONS" / "add.ptx").exists()
    assert len(entries_of(store)) == 0


def test_an_entry_that_vanishes_during_a_scan_is_no_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fill(root, 3)
    found = entries_of(store)
    monkeypatch.setattr(cache_evict, "entries_of", lambda store: found)
    store.discard(found[0].folder)
    evict(store, 1)
    assert kept(3) == []


@pytest.mark.parametrize("moment", [0, 4_000_000_000])
def test_the_first_store_of_a_process_clears_up(root: Path, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    monkeypatch.setattr(cache_evict, "_cleaned", set())
    left = root / ".tmp" / "1-killed"
    left.mkdir(parents=True)
    for folder in (root, root / ".tmp"):
        folder.chmod(0o700)
    (left / "add.ttir").write_text("half")
    os.utime(left, (moment, moment))
    fill(root, 1)
    assert list((root / ".tmp").iterdir()) == []


# tilework cache


def run(capsys: pytest.CaptureFixture[str], *argv: str, code: int = 0) -> list[str]:
    assert main(["cache", *argv]) == code
    return capsys.readouterr().out.splitlines()


def test_info(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "does not exist" in run(capsys, "info")[0]
    fill(root, 2)
    (root / "TRITONS").mkdir()
    knobs.cache.max_size = 1 << 20
    assert run(capsys, "info") == [
        f"directory  {root}",
        "entries    2",
        "size       24.0 KiB of 1.0 MiB",
        "others     1 (not made by tilework; left alone)",
    ]


def test_list_shows_the_oldest_first(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(root, 3)
    lines = run(capsys, "list")
    assert [line.split()[0] for line in lines] == [folder_of(key_of(number)) for number in range(3)]
    assert lines[0].split()[1:] == ["12.0", "KiB", "12d", "ago", "2", "files", "add"]


def test_verify_names_what_is_damaged(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(root, 3)
    assert run(capsys, "verify") == ["3 entries, 0 damaged"]
    os.truncate(root / folder_of(key_of(1)) / "add.ttir", 50)
    lines = run(capsys, "verify", code=1)
    assert lines == [
        f"{folder_of(key_of(1))}  add: add.ttir should have 100 bytes",
        "3 entries, 1 damaged",
    ]
    assert run(capsys, "verify", "--remove")[-1] == "3 entries, 1 damaged, deleted"
    assert run(capsys, "verify") == ["2 entries, 0 damaged"]


def test_prune_by_size_and_age(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(root, 6)
    assert run(capsys, "prune") == ["deleted 0 entries, 0 B; 6 left"]
    age(root, 5, 3600)
    assert run(capsys, "prune", "--older-than", "1") == ["deleted 5 entries, 60.0 KiB; 1 left"]
    age(root, 5, -1_000_000)
    assert "? ago" in run(capsys, "list")[0]
    assert run(capsys, "prune", "--max-size", "12k") == ["deleted 0 entries, 0 B; 1 left"]
    assert run(capsys, "prune", "--max-size", "0") == ["deleted 1 entries, 12.0 KiB; 0 left"]


def test_clear(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(root, 3)
    get_cache_manager(key_of(7)).put("{}", "add.autotune.json", binary=False)
    assert run(capsys, "clear") == ["deleted 4 entries, 40.0 KiB; 0 left"]
    assert kept(3) == []


def test_another_folder(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(root, 1)
    assert "does not exist" in run(capsys, "clear", "--dir", str(tmp_path / "other"))[0]
    assert kept(1) == [0]


def test_errors_are_one_line(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root.write_text("")
    assert main(["cache", "info"]) == 1
    assert "not a directory" in capsys.readouterr().err
    assert main(["cache", "prune", "--max-size", "lots"]) == 1
    assert "--max-size=lots" in capsys.readouterr().err


def test_numbers_are_readable() -> None:
    assert [size_text(size) for size in (0, 1023, 1536, 5 << 20, 3 << 40, 2048 << 40)] == [
        "0 B", "1023 B", "1.5 KiB", "5.0 MiB", "3.0 TiB", "2048.0 TiB",
    ]  # fmt: skip
    assert [age_text(seconds) for seconds in (-1, 5, 90, 7300, 200_000)] == ["0s", "5s", "2m", "2h", "2d"]


def test_an_interrupted_program_ends_by_its_signal_though_a_thread_still_stores() -> None:
    text = """
import threading
import tilework.runtime.kernel_cache.managers
def store():
    threading.main_thread().join()
    import tilework.runtime.kernel_cache.eviction
threading.Thread(target=store).start()
raise KeyboardInterrupt
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGINT
