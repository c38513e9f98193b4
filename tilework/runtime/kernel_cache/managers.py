"""The cache of compiled kernels: keys, managers, and whole entries.

    >>> key = get_cache_key(source, backend, options, cache_invalidating_env_vars())
    >>> if (files := load_entry(key, "add")) is None:
    ...     store_entry(key, "add", files := {"add.ttir": ..., "add.json": ...})

`load_entry` and `store_entry` read and write all files of a kernel in one step; `compile` uses them. The managers are
Triton's interface to single files. `entry.py` explains how entries are kept consistent, `eviction.py` what keeps the
cache small, `remote/` how machines share one.
"""

import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from importlib.util import cache_from_source
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.knobs.cuda_tools import RELEASE_KEEPERS
from tilework.runtime.kernel_cache.entry import EntryStore
from tilework.runtime.kernel_cache.file_manager import CacheManager as CacheManager
from tilework.runtime.kernel_cache.file_manager import FileCacheManager as FileCacheManager
from tilework.runtime.kernel_cache.file_manager import read_entry, warn_unusable
from tilework.runtime.kernel_cache.key import NOTHING_KEPT, ROOT, content_of, file_stem, folder_of, keep
from tilework.runtime.kernel_cache.key import get_cache_key as get_cache_key
from tilework.runtime.kernel_cache.key import triton_key as triton_key

if TYPE_CHECKING:
    from tilework.runtime.kernel_cache.remote.triton_names import RedisRemoteCacheBackend as RedisRemoteCacheBackend
    from tilework.runtime.kernel_cache.remote.triton_names import RemoteCacheBackend as RemoteCacheBackend
    from tilework.runtime.kernel_cache.remote.triton_names import RemoteCacheManager as RemoteCacheManager

DISK, REMOTE = "disk", "remote"  # where kernels come from
REMOTE_NAMES = ("RedisRemoteCacheBackend", "RemoteCacheBackend", "RemoteCacheManager")
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


def local_class() -> type[CacheManager]:
    """The class of this machine's part of the cache: the user's, or `FileCacheManager`, which is also the local part of
    a `RemoteCacheManager`."""
    found = manager_class()
    return FileCacheManager if "has_shared_cache" in vars(found) else found


def has_shared_cache() -> bool:
    """Return True if there is a cache of other machines behind that of this one."""
    return knobs.cache.url is not None or getattr(knobs.cache.manager_class, "has_shared_cache", False)


def load_entry(key: str, name: str) -> dict[str, bytes] | None:
    """Return the files of a kernel; None if there is no entry. A damaged entry is deleted, with a warning.

    An entry that only the shared cache has is copied to this machine.
    """
    ORIGIN.where = DISK
    if (files := load_local(key, name)) is None and has_shared_cache():
        # lazily: only what this machine does not have needs it
        from tilework.runtime.kernel_cache.remote.shared_cache import fetch

        if (found := fetch(key, name)) is not None:
            store_local(key, name, files := found.files, found.seconds)
            ORIGIN.where = REMOTE
    return files


def load_local(key: str, name: str) -> dict[str, bytes] | None:
    """Return the files of a kernel from the cache of this machine; None if there are none."""
    if (custom := local_class()) is not FileCacheManager:
        return load_through(custom(key), name)
    store, folder, group = EntryStore(knobs.cache.dir), folder_of(key), group_of(name)
    files = read_entry(store, folder, group)
    if files is None and _memory:
        files = _memory.get((store.root, folder, group))
    return None if files is None else dict(files)


def store_entry(key: str, name: str, files: Mapping[str, bytes], seconds: float = 0.0) -> dict[str, str]:
    """Keep the files of a kernel, whose compilation took `seconds`, and return the path of each.

    If they cannot be written to disk they are kept in memory, after one warning, and have no paths. Other machines get
    them in the background.
    """
    paths = store_local(key, name, files, seconds)
    if has_shared_cache():
        from tilework.runtime.kernel_cache.remote.shared_cache import send  # lazily: few have one

        send(key, name, files, seconds)
    return paths


def store_local(key: str, name: str, files: Mapping[str, bytes], seconds: float = 0.0) -> dict[str, str]:
    """Keep the files of a kernel, whose compilation took `seconds`, on this machine."""
    if (custom := local_class()) is not FileCacheManager:
        return store_through(custom(key), name, files)
    store, folder, group = EntryStore(knobs.cache.dir), folder_of(key), group_of(name)
    try:
        paths = store.write(folder, group, files, seconds)
    except OSError as error:
        warn_unusable(store.root, error)
        remember((store.root, folder, group), dict(files))
        return {}
    _memory.pop((store.root, folder, group), None)
    from tilework.runtime.kernel_cache.eviction import after_store  # lazily: what the cache has is not stored

    after_store(store, folder, sum(map(len, files.values())), knobs.cache.max_size)
    return paths


def takes_own_code() -> bool:
    """Return True if machine code of the runtime itself is kept there too: not in a cache of the user's own."""
    return local_class() is FileCacheManager


def entry_paths(key: str, files: Mapping[str, object]) -> dict[str, str]:
    """Return the paths of the files of a loaded entry, without those that are not on disk."""
    manager = local_class()(key)
    return {file: path for file in files if (path := manager.get_file(file)) is not None}


def kept_release(identity: str, find: Callable[[], str | None]) -> str | None:
    """Return the release of a program of the CUDA toolkit; each program is run once.

    The release is kept beside the bytecode, for every cache, and with the kernels where that cannot be written.
    """
    if (found := known_releases().get(identity)) is not None:
        return found
    key, name = hashlib.sha256(f"release of {identity}".encode()).hexdigest(), "tool_release"
    is_on_disk = local_class() is FileCacheManager
    if is_on_disk and (files := load_local(key, name)) is not None and f"{name}.txt" in files:
        return files[f"{name}.txt"].decode()
    if (found := find()) is not None:
        remember_release(identity, found)
        if is_on_disk:
            store_local(key, name, {f"{name}.txt": found.encode(), f"{name}.json": b"{}"})
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
    """Keep a release beside the bytecode."""
    if not sys.dont_write_bytecode:
        found = [*known_releases().items(), (identity, release)][-MOST_RELEASES:]
        keep(releases_file(), json.dumps(dict(found)).encode())


RELEASE_KEEPERS[:] = [kept_release]


def load_through(manager: CacheManager, name: str) -> dict[str, bytes] | None:
    """Load an entry through a manager of the user's: the group of its metadata, if all files exist."""
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
    """Store an entry through a manager of the user's; the group comes last, because it marks the entry as complete."""
    paths = {file: manager.put(data, file, binary=True) for file, data in files.items()}
    manager.put_group(group_of(name), paths)
    return paths


def unwritten_entries() -> frozenset[tuple[str, str, str]]:
    """Return (root, folder, group) of the entries that are only in memory, because they could not be written."""
    return frozenset(_memory)


def remember(key: tuple[str, str, str], files: dict[str, bytes]) -> None:
    """Keep an entry in memory, and drop the oldest ones if there are too many."""
    _memory.pop(key, None)
    _memory[key] = files
    total = sum(len(data) for entry in _memory.values() for data in entry.values())
    for old, entry in list(_memory.items())[:-1]:
        if total <= MEMORY_BOUND:
            break
        total -= sum(map(len, entry.values()))
        _memory.pop(old, None)


def __getattr__(name: str) -> Any:
    """Load a class of `remote/` by Triton's name when it is first used."""
    if name in REMOTE_NAMES:
        from tilework.runtime.kernel_cache.remote import triton_names  # lazily: few caches have another one behind them

        return getattr(triton_names, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
