"""Files of Triton's interface: named ones, and groups of them, below one key.

    >>> manager = FileCacheManager("ab" * 32)
    >>> path = manager.put(b"module {}", "add.ttir")
    >>> manager.put_group("add.json", {"add.ttir": path})
    >>> manager.get_group("add.json")
    {'add.ttir': '~/.triton/cache/VOV2.../add.ttir'}

If the cache folder cannot be written, files go to a temporary folder of this process, after one warning, because
callers of `put` need a path. The folder is deleted when the process ends.
"""

import atexit
import errno
import json
import os
import warnings
from abc import ABC, abstractmethod
from functools import cache

from tilework import knobs
from tilework.runtime.kernel_cache.entry import Damaged, EntryStore, digest, make_manifest, manifest_name, remove_tree
from tilework.runtime.kernel_cache.key import folder_of

WHY = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "it is on a read-only file system",
    errno.EACCES: "it is not writable",
    errno.ENOTDIR: "it is not a directory",
    errno.ENOENT: "it does not exist and cannot be made",
}

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
        """Keep a file, and return its path."""

    @abstractmethod
    def get_group(self, filename: str) -> dict[str, str] | None:
        """The paths of the files that were put together under a name, or None."""

    @abstractmethod
    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Store the list of the files that belong together, which were put before; return its path."""


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
            from tilework.runtime.kernel_cache.eviction import after_store  # lazily: most find what they want

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
    """Delete a damaged entry, and warn once."""
    path = store.path(folder)
    store.discard(folder, damage.folder)
    if path not in _warned:
        _warned.add(path)
        warnings.warn(
            f"the cache entry {path} is damaged ({damage}); it was deleted and will be built again",
            UserWarning,
            stacklevel=3,
        )
