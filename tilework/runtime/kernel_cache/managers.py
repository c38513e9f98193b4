"""The cache of compiled kernels: keys, managers, and whole entries.

    >>> key = get_cache_key(source, backend, options, cache_invalidating_env_vars())
    >>> if (files := load_entry(key, "add")) is None:
    ...     store_entry(key, "add", files := {"add.ttir": ..., "add.json": ...})

`load_entry` and `store_entry` read and write all files of a kernel in one step; `compile` uses them. The managers are
Triton's interface to single files. `entry.py` explains how entries are kept consistent, `evict.py` how the cache is
kept small.
"""

import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from importlib.util import cache_from_source
from typing import Any

from tilework import knobs
from tilework.knobs.cuda_tools import RELEASE_KEEPERS
from tilework.runtime.kernel_cache.entry import EntryStore
from tilework.runtime.kernel_cache.files import DISK, CacheManager, FileCacheManager, read_entry, warn_unusable
from tilework.runtime.kernel_cache.key import NOTHING_KEPT, ROOT, content_of, file_stem, folder_of, keep
from tilework.runtime.kernel_cache.key import get_cache_key as get_cache_key
from tilework.runtime.kernel_cache.key import triton_key as triton_key

REMOTE_NAMES = ("RedisRemoteCacheBackend", "RemoteCacheBackend", "RemoteCacheManager")
ORIGIN = threading.local()  # `where` the last entry came from that this thread has loaded
MOST_RELEASES = 16  # programs whose release is kept, the last ones
MEMORY_BOUND = 256 << 20  # bytes of kernels kept by a process that has no disk

# (root, folder, group) to files: what could not be written, oldest first
_memory: dict[tuple[str, str, str], dict[str, bytes]] = {}


def __getattr__(name: str) -> Any:
    """Load rarely used names when they are first read."""
    if name not in REMOTE_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tilework.runtime.kernel_cache import remote  # lazily, see above

    return getattr(remote, name)


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
    from tilework.runtime.kernel_cache.evict import after_store  # lazily: what the cache has is not stored

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
