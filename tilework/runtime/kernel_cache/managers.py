"""The cache of compiled kernels: keys, managers, and whole entries.

    >>> key = get_cache_key(source, backend, options, cache_invalidating_env_vars())
    >>> if (files := load_entry(key, "add")) is None:
    ...     store_entry(key, "add", files := {"add.ttir": ..., "add.json": ...})

`load_entry` and `store_entry` read and write all files of a kernel in one step; `compile` uses them. The managers are
Triton's interface to single files. `entry.py` explains how entries are kept consistent; the end of this file
keeps the cache small.
"""

import atexit
import errno
import hashlib
import json
import math
import os
import stat
import sys
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import cache_from_source
from typing import Any

from tilework import knobs
from tilework.knobs.cuda_tools import RELEASE_KEEPERS
from tilework.runtime.kernel_cache.entry import (
    GROUP,
    SCRATCH,
    STAMP,
    Damaged,
    EntryStore,
    digest,
    make_manifest,
    manifest_name,
    parse_manifest,
    read_manifest,
    remove_tree,
    unique_name,
)
from tilework.runtime.kernel_cache.key import NOTHING_KEPT, ROOT, content_of, file_stem, folder_of, keep
from tilework.runtime.kernel_cache.key import get_cache_key as get_cache_key
from tilework.runtime.kernel_cache.key import triton_key as triton_key

# ---- the file manager of Triton's interface: named files, and groups of them, below one key
#
#     >>> manager = FileCacheManager("ab" * 32)
#     >>> path = manager.put(b"module {}", "add.ttir")
#     >>> manager.put_group("add.json", {"add.ttir": path})
#     >>> manager.get_group("add.json")
#     {'add.ttir': '~/.triton/cache/VOV2.../add.ttir'}
#
# When the cache folder cannot be written, files go to a folder of this process that is deleted at its end, after one
# warning: a path is what callers of `put` need.


WHY = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "it is on a read-only file system",
    errno.EACCES: "it is not writable",
    errno.ENOTDIR: "it is not a directory",
    errno.ENOENT: "it does not exist and cannot be made",
}

DISK, REMOTE = "disk", "remote"  # where kernels come from
KEPT = (
    "Kernels compiled by this process are kept in memory and will be compiled again by the next one; "
    "set TRITON_CACHE_DIR to a directory of your own"
)
DUMPED = "Files are written to a temporary directory instead; set TRITON_DUMP_DIR to a directory of your own"

_warned: set[str] = set()
_replaced: set[tuple[int, str]] = set()  # (process, root)


class CacheManager(ABC):
    """The interface of a class named by TRITON_CACHE_MANAGER, which keeps files under a key."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        self.key = key

    @abstractmethod
    def get_file(self, filename: str) -> str | None:
        """The path of a file, or None."""

    @abstractmethod
    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        """Keep a file; its path."""

    @abstractmethod
    def get_group(self, filename: str) -> dict[str, str] | None:
        """The paths of the files that were put together under a name, or None."""

    @abstractmethod
    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Say which files belong together, after they were put; the path of the list."""


class FileCacheManager(CacheManager):
    """Files below ``<cache dir>/<key>``; with `dump` or `override`, below those folders."""

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(folder_of(key), override, dump)
        root = knobs.cache.dump_dir if dump else knobs.cache.override_dir if override else knobs.cache.dir
        self.is_cache = not (dump or override)
        self.store = EntryStore(root, private=self.is_cache)
        self.cache_dir = self.store.path(self.key)

    def has_file(self, filename: str) -> bool:
        """Return True if the file exists."""
        return self.get_file(filename) is not None

    def get_file(self, filename: str) -> str | None:
        for store in (self.store, *fallback(self.store.root, make=False)):
            if (path := store.file(self.key, filename)) is not None:
                return path
        return None

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        content = data.encode() if isinstance(data, str) else bytes(data)
        try:
            path = self.store.put(self.key, filename, content)
        except OSError as error:
            warn_unusable(self.store.root, error, KEPT if self.is_cache else DUMPED)
            (store,) = fallback(self.store.root)
            return store.put(self.key, filename, content)
        if self.is_cache:
            from tilework.runtime.kernel_cache.managers import after_store  # lazily: most find what they want

            after_store(self.store, self.key, len(content), knobs.cache.max_size)
        return path

    def get_group(self, filename: str) -> dict[str, str] | None:
        for store in (self.store, *fallback(self.store.root, make=False)):
            if (files := read_entry(store, self.key, filename)) is not None:
                return {file: os.path.join(store.path(self.key), file) for file in files}
        return None

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        digests = {}
        for file, path in group.items():
            with open(path, "rb") as source:
                digests[file] = digest(source.read())
        return self.put(json.dumps(make_manifest(group, digests)), manifest_name(filename))


def fallback(root: str, make: bool = True) -> tuple[EntryStore, ...]:
    """Return this process's substitute for a cache folder; None if there is none and `make` is False."""
    key = (os.getpid(), root)
    if not make and key not in _replaced:
        return ()
    store = EntryStore(os.path.join(process_folder(key[0]), folder_of(root)))
    _replaced.add(key)
    return (store,)


@cache
def process_folder(process: int) -> str:
    """A private folder that goes away with this process (a forked one has its own)."""
    import tempfile  # a few ms that most programs never need

    folder = tempfile.mkdtemp(prefix="tilework-")
    atexit.register(lambda: process == os.getpid() and remove_tree(folder))
    return folder


def can_write(folder: str) -> bool:
    """Return True if files can be created in a folder, which may have to be created first."""
    while not os.path.exists(folder):
        parent = os.path.dirname(folder) or os.curdir
        if parent == folder:
            return False
        folder = parent
    return os.path.isdir(folder) and os.access(folder, os.W_OK)


def warn_unusable(root: str, error: OSError, effect: str = KEPT) -> None:
    """Warn once per process and folder that it is not used."""
    if root in _warned:
        return
    _warned.add(root)
    why = WHY.get(error.errno or 0) or error.strerror or str(error)
    warnings.warn(
        f"tilework cannot use the cache directory {root}: {why}. {effect} to change that.",
        UserWarning,
        stacklevel=3,
    )


def read_entry(store: EntryStore, folder: str, group: str) -> dict[str, bytes] | None:
    """Return the files of a group; None if it cannot be read; a damaged group is deleted, with a warning."""
    try:
        return store.read(folder, group)
    except Damaged as damage:
        drop_damaged(store, folder, damage)
    except OSError as error:
        warn_unusable(store.root, error)
    return None


def drop_damaged(store: EntryStore, folder: str, damage: Damaged) -> None:
    """Delete a damaged entry, and say so once."""
    path = store.path(folder)
    store.discard(folder, damage.folder)
    if path not in _warned:
        _warned.add(path)
        warnings.warn(
            f"the cache entry {path} is damaged ({damage}); it was deleted and will be built again",
            UserWarning,
            stacklevel=3,
        )


ORIGIN = threading.local()  # `where` the last entry came from that this thread has loaded
MOST_RELEASES = 16  # programs whose release is kept, the last ones
MEMORY_BOUND = 256 << 20  # bytes of kernels kept by a process that has no disk

# (root, folder, group) to files: what could not be written, oldest first
_memory: dict[tuple[str, str, str], dict[str, bytes]] = {}


def get_cache_manager(key: str) -> CacheManager:
    """The manager of a compilation's files: the class of TRITON_CACHE_MANAGER, or `FileCacheManager`."""
    return manager_class()(key)


def get_override_manager(key: str) -> CacheManager:
    """The manager of the files that replace stages; the key is the source's hash."""
    return manager_class()(key, override=True)


def get_dump_manager(key: str) -> CacheManager:
    """The manager of dumped stages; the key is the source's hash."""
    return manager_class()(key, dump=True)


def group_of(name: str) -> str:
    """Return the name of a kernel's group of files: that of its metadata file."""
    return f"{file_stem(name)}.json"


def manager_class() -> type[CacheManager]:
    return knobs.cache.manager_class or FileCacheManager


def load_entry(key: str, name: str) -> dict[str, bytes] | None:
    """Return the files of a kernel; None if there is no entry. A damaged entry is deleted, with a warning."""
    ORIGIN.where = DISK
    if (custom := manager_class()) is not FileCacheManager:
        files = load_through(manager := custom(key), name)
        ORIGIN.where = getattr(manager, "origin", DISK)
        return files
    store, folder, group = EntryStore(knobs.cache.dir), folder_of(key), group_of(name)
    files = read_entry(store, folder, group)
    if files is None and _memory:
        files = _memory.get((store.root, folder, group))
    return None if files is None else dict(files)


def store_entry(key: str, name: str, files: Mapping[str, bytes]) -> dict[str, str]:
    """Keep the files of a kernel; the path of each. When the disk does not take them they are kept in memory, after one
    warning, and have no paths."""
    if (custom := manager_class()) is not FileCacheManager:
        return store_through(custom(key), name, files)
    store, folder, group = EntryStore(knobs.cache.dir), folder_of(key), group_of(name)
    try:
        paths = store.write(folder, group, files)
    except OSError as error:
        warn_unusable(store.root, error)
        remember((store.root, folder, group), dict(files))
        return {}
    _memory.pop((store.root, folder, group), None)
    from tilework.runtime.kernel_cache.managers import after_store  # lazily: what the cache has is not stored

    after_store(store, folder, sum(map(len, files.values())), knobs.cache.max_size)
    return paths


def entry_paths(key: str, files: Mapping[str, object]) -> dict[str, str]:
    """Return the paths of the files of a loaded entry, without those that are not on disk."""
    manager = get_cache_manager(key)
    return {file: path for file in files if (path := manager.get_file(file)) is not None}


def kept_release(identity: str, find: Callable[[], str | None]) -> str | None:
    """Return the release of a program of the CUDA toolkit; each program is run once.

    The release is kept beside the bytecode, for every cache, and with the kernels where that cannot be written.
    """
    if (found := known_releases().get(identity)) is not None:
        return found
    key, name = hashlib.sha256(f"release of {identity}".encode()).hexdigest(), "tool_release"
    is_on_disk = manager_class() is FileCacheManager
    if is_on_disk and (files := load_entry(key, name)) is not None and f"{name}.txt" in files:
        return files[f"{name}.txt"].decode()
    if (found := find()) is not None:
        remember_release(identity, found)
        if is_on_disk:
            store_entry(key, name, {f"{name}.txt": found.encode(), f"{name}.json": b"{}"})
    return found


def releases_file() -> str:
    return cache_from_source(os.path.join(ROOT, "releases.py")) + ".known"


def known_releases() -> dict[str, str]:
    """Releases by the identity of their program."""
    try:
        found = json.loads(content_of(releases_file()))
        return {identity: release for identity, release in found.items() if isinstance(release, str)}
    except (*NOTHING_KEPT, AttributeError):
        return {}


def remember_release(identity: str, release: str) -> None:
    """Keep one more, where bytecode is kept."""
    if not sys.dont_write_bytecode:
        found = [*known_releases().items(), (identity, release)][-MOST_RELEASES:]
        keep(releases_file(), json.dumps(dict(found)).encode())


RELEASE_KEEPERS[:] = [kept_release]


def load_through(manager: CacheManager, name: str) -> dict[str, bytes] | None:
    """An entry from a manager of the user's: the group of its metadata, if all files are there."""
    group = manager.get_group(group_of(name))
    if not group:
        return None
    files: dict[str, bytes] = {}
    try:
        for file, path in group.items():
            with open(path, "rb") as source:
                files[file] = source.read()
    except OSError:
        return None
    return files


def store_through(manager: CacheManager, name: str, files: Mapping[str, bytes]) -> dict[str, str]:
    """An entry into a manager of the user's; the group comes last, for it says that the rest is complete."""
    paths = {file: manager.put(data, file, binary=True) for file, data in files.items()}
    manager.put_group(group_of(name), paths)
    return paths


def remember(key: tuple[str, str, str], files: dict[str, bytes]) -> None:
    """Keep an entry in memory, at the cost of the oldest ones."""
    _memory.pop(key, None)
    _memory[key] = files
    total = sum(len(data) for entry in _memory.values() for data in entry.values())
    for old, entry in list(_memory.items())[:-1]:
        if total <= MEMORY_BOUND:
            break
        total -= sum(map(len, entry.values()))
        _memory.pop(old, None)


# ---- a cache that machines share, behind the local one
#
#     TRITON_CACHE_MANAGER=tilework.runtime.kernel_cache.managers:RemoteCacheManager
#     TRITON_REMOTE_CACHE_BACKEND=tilework.runtime.kernel_cache.managers:RedisRemoteCacheBackend
#
# Files are put into both; a file that is only remote is copied into the local cache when it is read. A group is sent
# with the checksums of its files, so a remote copy that was cut short or mixed with another counts as absent. An
# unreachable server is reported once and then ignored.


class RemoteCacheBackend(ABC):
    """A store of remote files; one object per key."""

    def __init__(self, key: str) -> None:
        self.key = key

    @abstractmethod
    def get(self, filenames: list[str]) -> dict[str, bytes]:
        """The content of those files that are there."""

    @abstractmethod
    def put(self, filename: str, data: bytes) -> None:
        """Keep a file."""


class RedisRemoteCacheBackend(RemoteCacheBackend):
    """Files in Redis, under ``triton:<key>:<filename>`` (knobs.redis)."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key_format = knobs.redis.key_format
        self.errors, self.client = connection(knobs.redis.host, knobs.redis.port)

    def name_of(self, filename: str) -> str:
        """The Redis key of a file."""
        return self.key_format.format(key=self.key, filename=filename)

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        if not filenames:
            return {}
        try:
            found = self.client.mget([self.name_of(filename) for filename in filenames])
        except self.errors as error:
            warn_unreachable(str(error))
            return {}
        return {filename: data for filename, data in zip(filenames, found) if data is not None}

    def put(self, filename: str, data: bytes) -> None:
        try:
            self.client.set(self.name_of(filename), data)
        except self.errors as error:
            warn_unreachable(str(error))


@cache
def connection(host: str, port: int) -> tuple[type[Exception], Any]:
    """Return the exceptions of a Redis client, and the client; one per server."""
    try:
        import redis  # an optional dependency, needed by this backend only
    except ImportError as error:
        raise RuntimeError(
            "RedisRemoteCacheBackend needs the package redis: pip install redis, or unset TRITON_REMOTE_CACHE_BACKEND"
        ) from error
    return redis.RedisError, redis.Redis(host=host, port=port)


@cache
def warn_unreachable(why: str) -> None:
    """Warn once that the server is not used."""
    server = f"{knobs.redis.host}:{knobs.redis.port}"
    warnings.warn(f"the remote cache at {server} cannot be used, only the local one is: {why}", stacklevel=3)


class RemoteCacheManager(CacheManager):
    """The local files of a key, with those of a `RemoteCacheBackend` behind them; dumps and overrides are local."""

    origin = DISK  # of the group that was read last

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        backend = knobs.cache.remote_manager_class
        if backend is None:
            raise RuntimeError(
                "Unable to instantiate RemoteCacheManager, TRITON_REMOTE_CACHE_BACKEND doesn't point to a valid class"
            )
        super().__init__(key, override, dump)
        self.local = FileCacheManager(key, override, dump)
        self.remote: RemoteCacheBackend | None = None if override or dump else backend(key)

    def get_file(self, filename: str) -> str | None:
        if (path := self.local.get_file(filename)) is not None or self.remote is None:
            return path
        data = self.remote.get([filename]).get(filename)
        return None if data is None else self.local.put(data, filename)

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        content = data.encode() if isinstance(data, str) else bytes(data)
        if self.remote is not None:
            self.remote.put(filename, content)
        return self.local.put(content, filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        if (group := self.local.get_group(filename)) is not None or self.remote is None:
            return group
        manifest = parse_manifest(self.remote.get([GROUP + filename]).get(GROUP + filename, b""))
        wanted = {} if manifest is None else manifest["files"]
        found = self.remote.get(list(wanted))
        if manifest is None or any(file not in found or digest(found[file]) != wanted[file] for file in wanted):
            return None
        paths = {file: self.local.put(data, file) for file, data in found.items()}
        self.origin = REMOTE
        self.local.put_group(filename, paths)
        return paths

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        path = self.local.put_group(filename, group)
        if self.remote is not None and (manifest := read_manifest(path)) is not None:
            names = {file: file for file in manifest["files"]}  # paths mean nothing on another machine
            self.remote.put(GROUP + filename, json.dumps(make_manifest(names, manifest["files"])).encode())
        return path


# ---- Keep the cache below its bound: the entries that were not used for longest go first.
#
#     >>> evict(EntryStore(knobs.cache.dir), 4 << 30)      # nothing to do: []
#
# Scanning the cache costs milliseconds, so most stores do not: one that wrote `n` bytes scans with probability ``32 n /
# bound``. That needs no shared counter and no lock, and however many processes write, about one scan happens for each
# 1/32 of the bound. A scan deletes down to 90% of the bound, skips what was used in the last minute, and also clears
# away what killed writers left behind. Only entries with our mark are counted or deleted: Triton may use the same
# folder.
#
# A time stamp in the future, because a clock was wrong, says nothing about the last use: such an entry is the
# first to go, and gets a right stamp when it is used (`entry.py`).


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
            return [folder for folder in folders if folder.name != SCRATCH]
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
    """After an entry was written: clean up once per process, and sometimes evict."""
    if store.root not in _cleaned:
        _cleaned.add(store.root)
        remove_stale(store)
    if bound > 0 and int.from_bytes(os.urandom(4)) * bound < (SCANS_PER_BOUND * written) << 32:
        evict(store, bound, keep=folder)


def evict(store: EntryStore, bound: int, keep: str = "", grace: float | None = None) -> list[Entry]:
    """Delete the least recently used entries until the rest fits into `bound` bytes; those that were deleted."""
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
    """Delete what writers that were killed left under ``.tmp``; how many there were."""
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
    """The time by the clock that stamps the files, which on a network file system is the server's."""
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
