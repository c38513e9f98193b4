"""Move parts of the cache to and from the shared one: `tilework cache push` and `pull`.

Entries are signed and verified as those that jobs send and load; what the other side has is left as it is. Timings of
autotuners go with the kernels of their name. Machine code of the runtime itself goes only if no kernel is named.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tilework import knobs
from tilework.runtime.kernel_cache.entry import Damaged, EntryStore, manifest_name, plain
from tilework.runtime.kernel_cache.eviction import entries_of
from tilework.runtime.kernel_cache.remote.guard import KINDS, OBJECT
from tilework.runtime.kernel_cache.remote.packed import Entry, Unusable, pack, unpack
from tilework.runtime.kernel_cache.remote.shared_cache import KERNELS, TIMINGS, opened
from tilework.runtime.kernel_cache.remote.store import RemoteStore
from tilework.runtime.progress import Progress
from tilework.runtime.signing import Key

FOLDER = re.compile("[A-Z2-7]{1,128}")  # as `folder_of` makes them
TIMING = re.compile(r"(.+)\.(?:autotune|tuned)\.json")


@dataclass
class Moved:
    """The result of a transfer: counts of objects, and its failures."""

    address: str
    count: int = 0
    bytes: int = 0
    present: int = 0
    failed: int = 0

    def add(self, size: int) -> None:
        self.count += 1
        self.bytes += size

    def fail(self, name: str, why: object) -> None:
        self.failed += 1
        print(f"tilework cache: error: {name}: {why}", file=sys.stderr)


def push(store: EntryStore, kernels: Sequence[str]) -> Moved:
    """Send entries."""
    server, key = trusted()
    if key is not None and not key.can_sign:
        raise RuntimeError("this key verifies entries and cannot sign them: push needs the private one")
    moved, objects = Moved(str(server.address)), dict(local_objects(store, kernels))
    with answers(server), Progress("pushing", len(objects), delay=0) as progress:
        there = set(listed(server)) if objects else set[str]()
        for name, read in objects.items():
            progress.step()
            if name in there:
                moved.present += 1
                continue
            try:
                data = pack(name, *read(), key)
            except (Damaged, OSError) as error:
                moved.fail(name, error)
                continue
            server.put(name, data)
            moved.add(len(data))
    return moved


def pull(store: EntryStore, kernels: Sequence[str]) -> Moved:
    """Copy entries here."""
    server, key = trusted()
    moved = Moved(str(server.address))
    with answers(server):
        names = sorted(name for name in listed(server) if is_wanted(name, kernels))
        with Progress("pulling", len(names), delay=0) as progress:
            for name in names:
                progress.step()
                if is_local(store, name):
                    moved.present += 1
                    continue
                try:
                    if (data := got(server, name)) is not None:
                        keep(store, name, unpack(name, data, key))
                        moved.add(len(data))
                except Unusable as error:
                    moved.fail(name, error)
    return moved


def trusted() -> tuple[RemoteStore, Key | None]:
    """Return (the server, the key); without a key, the server must be trusted."""
    server, key = opened()
    if key is None and not knobs.cache.trust_server:
        raise RuntimeError(
            f"nothing says who may make the entries of {server.address}: set TILEWORK_CACHE_KEY or"
            " TILEWORK_CACHE_KEY_FILE to a key, or TILEWORK_CACHE_TRUST_SERVER=1 if whoever can write there may run"
            " code here"
        )
    return server, key


def got(server: RemoteStore, name: str) -> bytes | None:
    """Return an object, or None; raise `Unusable` if the server has something else under its name."""
    try:
        return server.get(name)
    except Exception as error:
        if KINDS.get((failure := server.failure(error)).kind, ("",))[0] is not OBJECT:
            raise
        raise Unusable(failure.kind, failure.text) from error


@contextmanager
def answers(server: RemoteStore) -> Iterator[None]:
    """Turn the errors of a client into one that names the server, and not its password."""
    try:
        yield
    except NotImplementedError as error:
        raise RuntimeError(
            f"{server.address} cannot list what it has, so its entries come one by one, to jobs"
        ) from error
    except (KeyboardInterrupt, SystemExit):
        raise
    except Exception as error:
        failure = server.failure(error)
        raise RuntimeError(f"{server.address}: {failure.kind}: {server.address.hidden(failure.text)}") from error


def local_objects(store: EntryStore, kernels: Sequence[str]) -> Iterator[tuple[str, Callable[[], Entry]]]:
    """Yield (the name of the object for a local entry, the function that reads it)."""
    for entry in entries_of(store):
        for group in entry.groups:
            name = f"{KERNELS}{entry.folder}/{group.removesuffix('.json')}"
            if is_wanted(name, kernels):
                yield name, lambda folder=entry.folder, group=group: entry_of(store, folder, group)
        for file in os.listdir(store.path(entry.folder)):
            name = f"{TIMINGS}{entry.folder}/{file}"
            if TIMING.fullmatch(file) and is_wanted(name, kernels):
                yield name, lambda folder=entry.folder, file=file: timing_of(store, folder, file)


def entry_of(store: EntryStore, folder: str, group: str) -> Entry:
    """A group; `Damaged` if it is not what was written."""
    if (files := store.read(folder, group)) is None:
        raise Damaged("it is not private to its owner, or was deleted during the transfer")
    return Entry(files, store.seconds(folder, group))


def timing_of(store: EntryStore, folder: str, file: str) -> Entry:
    if (path := store.file(folder, file)) is None:
        raise Damaged("it is not private to its owner, or was deleted during the transfer")
    with open(path, "rb") as source:
        return Entry({file: source.read()}, 0.0)


def listed(server: RemoteStore) -> Iterator[str]:
    for prefix in (KERNELS, TIMINGS):
        yield from server.names(prefix)


def is_wanted(name: str, kernels: Sequence[str]) -> bool:
    """Return True for the object of an entry that one of the patterns names; False for names that are no entries."""
    prefix = next((prefix for prefix in (KERNELS, TIMINGS) if name.startswith(prefix)), None)
    folder, slash, file = name.removeprefix(prefix or "").partition("/")
    if prefix is None or not slash or not FOLDER.fullmatch(folder):
        return False
    if (timing := TIMING.fullmatch(file)) is None and prefix == TIMINGS:
        return False
    try:
        kernel = plain(file) if timing is None or prefix == KERNELS else plain(timing[1])
    except ValueError:
        return False
    return not kernels or any(fnmatchcase(kernel, pattern) for pattern in kernels)


def location(name: str) -> tuple[bool, str, str]:
    """Return (True if an object is a kernel, its folder, its group or file)."""
    is_kernel = name.startswith(KERNELS)
    folder, _, file = name.removeprefix(KERNELS if is_kernel else TIMINGS).partition("/")
    return is_kernel, folder, f"{file}.json" if is_kernel else file


def is_local(store: EntryStore, name: str) -> bool:
    is_kernel, folder, file = location(name)
    return store.file(folder, manifest_name(file) if is_kernel else file) is not None


def keep(store: EntryStore, name: str, entry: Entry) -> None:
    """Write an object into the cache."""
    is_kernel, folder, file = location(name)
    files = entry.files
    try:
        if is_kernel:
            store.write(folder, file, files, entry.seconds)
        elif list(files) == [file]:
            store.put(folder, file, files[file])
        else:
            raise Unusable("damaged", f"it does not have the file {file}")
    except OSError as error:
        raise Unusable("damaged", f"{store.root} does not take it: {error.strerror}") from error
