"""Keep a cache below its bound: the least recently used entries are deleted first.

    >>> evict(EntryStore(knobs.cache.dir), 4 << 30)      # nothing to do: []

Scanning the cache costs milliseconds, so most stores do not: one that wrote `n` bytes scans with probability ``32 n /
bound``. That needs no shared counter and no lock, and however many processes write, about one scan happens for each
1/32 of the bound. A scan deletes down to 90% of the bound, skips entries that were used in the last minute, and
also deletes the unfinished entries of killed writers. Only entries with our mark are counted or deleted: Triton may use
the same folder.

A time stamp in the future, written under a wrong clock, says nothing about the last use: such an entry is evicted
first, and gets a correct stamp when it is used (`entry.py`).
"""

import math
import os
import stat
from contextlib import suppress

from tilework.runtime.kernel_cache.entry import (
    GROUP,
    NOTES,
    SCRATCH,
    STAMP,
    Damaged,
    EntryStore,
    remove_tree,
    unique_name,
)

SCANS_PER_BOUND = 32
LEAVE_FREE = 0.1
GRACE = 60.0  # seconds in which a new or used entry is safe
STALE_AFTER = 600.0  # seconds after which a writer is dead: a write takes milliseconds
BLOCK = 4096  # what the smallest file occupies

_cleaned: set[str] = set()


class Entry:
    """One entry, as `tilework cache list` shows it.

    No named tuple: it would be made by `eval`, and Python, which a thread may have wait for this module at its end,
    would then forget that it was interrupted and end with 1 instead of by the signal.
    """

    def __init__(self, folder: str, size: int, used: float, groups: tuple[str, ...], files: int) -> None:
        self.folder, self.bytes, self.used, self.groups, self.files = folder, size, used, groups, files

    def age(self, now: float) -> float:
        """Seconds since the last use; infinite if its time is not known."""
        return math.inf if self.used > now + GRACE else max(now - self.used, 0.0)

    @property
    def title(self) -> str:
        return ", ".join(group.removesuffix(".json") for group in self.groups) or "(files without a kernel)"


def entries_of(store: EntryStore) -> list[Entry]:
    """All our entries, in the order of the folder."""
    found = (folder.name for folder in folders_of(store) if folder.is_dir(follow_symlinks=False))
    return [entry for folder in found if (entry := entry_of(store, folder)) is not None]


def folders_of(store: EntryStore) -> list[os.DirEntry[str]]:
    """Return all folders of the cache, also those of other programs."""
    try:
        with os.scandir(store.root) as folders:
            return [folder for folder in folders if folder.name not in (SCRATCH, NOTES)]
    except OSError:
        return []


def entry_of(store: EntryStore, folder: str) -> Entry | None:
    """Return the size and last use of an entry without opening its files; None if it is not ours, or is going."""
    sizes: dict[str, os.stat_result] = {}
    try:
        with os.scandir(store.path(folder)) as files:
            for file in files:
                sizes[file.name] = file.stat(follow_symlinks=False)
        used = sizes.pop(STAMP).st_mtime
    except (OSError, KeyError):
        return None
    groups = tuple(file.removeprefix(GROUP) for file in sorted(sizes) if file.startswith(GROUP))
    return Entry(folder, sum(map(occupied, sizes.values())), used, groups, len(sizes) - len(groups))


def occupied(info: os.stat_result) -> int:
    """Bytes on disk, in whole blocks."""
    return (info.st_size + BLOCK - 1) // BLOCK * BLOCK


def verify(store: EntryStore, entry: Entry) -> list[str]:
    """Return a description of an entry's damage; empty if it is intact or another process deleted it."""
    problems: list[str] = []
    for group in entry.groups:
        try:
            if store.read(entry.folder, group) is None and is_ours(store.path(entry.folder)):
                problems.append(f"{group}: it is not private to its owner, or cannot be read")
        except (Damaged, OSError) as error:
            problems.append(str(error))
    return problems


def after_store(store: EntryStore, folder: str, written: int, bound: int) -> None:
    """Clean up once per process, and sometimes evict, after an entry was written."""
    if store.root not in _cleaned:
        _cleaned.add(store.root)
        remove_stale(store)
    if bound > 0 and int.from_bytes(os.urandom(4)) * bound < (SCANS_PER_BOUND * written) << 32:
        evict(store, bound, keep=folder)


def evict(store: EntryStore, bound: int, keep: str = "", grace: float | None = None) -> list[Entry]:
    """Delete the least recently used entries until the rest fits into `bound` bytes, and return the deleted ones."""
    remove_stale(store)
    entries = entries_of(store)
    total = sum(entry.bytes for entry in entries)
    if total <= bound:
        return []
    now, grace = disk_time(store), GRACE if grace is None else grace
    deleted: list[Entry] = []
    for entry in oldest_first(entries, now):
        if total <= bound * (1 - LEAVE_FREE) or entry.age(now) < grace:
            break
        if entry.folder != keep:
            store.discard(entry.folder)
            deleted.append(entry)
            total -= entry.bytes
    return deleted


def oldest_first(entries: list[Entry], now: float) -> list[Entry]:
    return sorted(entries, key=lambda entry: (-entry.age(now), entry.used))


def remove_stale(store: EntryStore, age: float = STALE_AFTER) -> int:
    """Delete the folders that killed writers left under ``.tmp``, and return their number."""
    scratch = os.path.join(store.root, SCRATCH)
    count = 0
    try:
        left = os.listdir(scratch)
        now = disk_time(store) if left else 0.0
    except OSError:
        return 0
    for name in left:
        path = os.path.join(scratch, name)
        with suppress(OSError):  # another process may be clearing up too
            if abs(now - os.lstat(path).st_mtime) >= age:  # a writer that lives has written now
                moved = os.path.join(scratch, unique_name())
                os.rename(path, moved)  # a writer that was only slow finds nothing, rather than half of its files
                remove_tree(moved)
                count += 1
    return count


def disk_time(store: EntryStore) -> float:
    """Return the time by the clock that stamps the files; on a network file system it is the server's."""
    with store.temporary() as path:
        return os.lstat(path).st_mtime


def foreign_entries(store: EntryStore) -> int:
    """Count the folders that are not ours."""
    return sum(not is_ours(folder.path) for folder in folders_of(store))


def is_ours(path: str) -> bool:
    """Return True if a folder has our marker."""
    try:
        return stat.S_ISREG(os.lstat(os.path.join(path, STAMP)).st_mode)
    except OSError:
        return False
