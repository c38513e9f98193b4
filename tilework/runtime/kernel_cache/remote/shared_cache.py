"""The cache that machines share, behind the local one: TILEWORK_CACHE_URL, or Triton's settings for one.

    fetch(key, "add")                          the files of a kernel and the seconds of its compilation, or None
    send(key, "add", files, seconds=1.3)       in the background
    claim(key, "add", owner, 60.0)             True: compile; False: another process does; None: the server is not asked
    holder(key, "add"), release(key, "add", owner)

All of them return at once where there is no shared cache, and wait no longer than `guard.py` allows. Invalid
settings (a malformed URL, a missing key file, a missing package) raise a RuntimeError when they are first used.

    store, key = opened()                      for tools: the server itself, whose errors are raised, and the key
    unpack(name, store.get(name), key)         `packed.py`: what an object is
    store.names(KERNELS)                       "kernels/1/VOV2XK5L.../add": the local folder of an entry and its group

Machine code is signed and verified (`signing.py`). Without a key, no machine code is sent or loaded, unless the user
declares that the server is trusted. Timings of tunings are numbers in JSON, which is parsed strictly: they need no key,
but with one they are signed like everything else.
"""

import warnings
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Any, NamedTuple

from tilework import knobs
from tilework.runtime.kernel_cache.key import file_stem, folder_of
from tilework.runtime.kernel_cache.remote.guard import Guard, guard_of
from tilework.runtime.kernel_cache.remote.packed import FORMAT, Entry, Unusable, pack, unpack
from tilework.runtime.kernel_cache.remote.store import RemoteStore, Timeouts, open_store
from tilework.runtime.signing import SHORTEST, Key, read_key

KERNELS, FILES, TIMINGS = f"kernels/{FORMAT}/", f"files/{FORMAT}/", f"timings/{FORMAT}/"
KEY_SETTING = "TILEWORK_CACHE_KEY"


class SharedCache(NamedTuple):
    """The server behind its guard, the key, and whether unsigned machine code from the server is trusted."""

    guard: Guard
    key: Key | None
    trusts_server: bool

    @property
    def may_load(self) -> bool:
        """Return True if machine code may be loaded."""
        return self.key is not None or self.trusts_server

    @property
    def may_send(self) -> bool:
        """Return True if machine code may be sent: with a key that can sign, or without a key to a trusted server."""
        return self.trusts_server if self.key is None else self.key.can_sign

    def get(self, name: str) -> Entry | None:
        """Return an object; None if it is missing or not valid."""
        if (data := self.guard.get(name)) is None:
            return None
        try:
            found = unpack(name, data, self.key)
        except Unusable as error:
            self.guard.refuse(name, error.kind, str(error))
            return None
        self.guard.received(name, found.seconds)
        return found

    def put(self, name: str, files: Mapping[str, bytes], seconds: float = 0.0) -> None:
        """Send an object in the background."""
        if self.key is None or self.key.can_sign:
            size = sum(map(len, files.values()))
            self.guard.put_made(name, partial(pack, name, dict(files), seconds, self.key), size)


_warned: set[str] = set()


def current(is_triton: bool = False) -> SharedCache | None:
    """The shared cache of the settings; None if there is none."""
    if (found := server(is_triton)) is None:
        return None
    identity, make = found
    return SharedCache(guard_of(identity, make), cache_key(), knobs.cache.trust_server)


def server(is_triton: bool = False) -> tuple[Hashable, Callable[[], RemoteStore]] | None:
    """Return (the identity of the server in the settings, the function that makes its client); None if there is none.

    Triton's settings are used if `is_triton`, or if its manager class is set.
    """
    timeouts = Timeouts.of_knobs()
    if (url := knobs.cache.url) is not None:
        return (url, timeouts), partial(open_store, url, timeouts)
    if not (is_triton or getattr(knobs.cache.manager_class, "has_shared_cache", False)):
        return None
    backend: Any = knobs.cache.remote_manager_class
    if backend is None:
        raise RuntimeError(
            "Unable to instantiate RemoteCacheManager, TRITON_REMOTE_CACHE_BACKEND doesn't point to a valid class"
        )
    return backend.server(timeouts)


_keys: dict[tuple[str | None, str | None], Key | None] = {}


def cache_key() -> Key | None:
    """The key of the settings, read once."""
    given = knobs.cache.key, knobs.cache.key_file
    if given not in _keys:
        _keys[given] = read_key(*given, KEY_SETTING, SHORTEST)
    return _keys[given]


def opened() -> tuple[RemoteStore, Key | None]:
    """Return (the client of the server in the settings, the key), for tools; RuntimeError if no server is set."""
    if (found := server()) is None:
        raise RuntimeError("there is no shared cache: TILEWORK_CACHE_URL says where it is")
    return found[1](), cache_key()


def object_name(key: str, name: str) -> str:
    """The object of a kernel; `key` and `name` are those of `load_entry`."""
    return f"{KERNELS}{folder_of(key)}/{file_stem(name)}"


def fetch(key: str, name: str) -> Entry | None:
    """The entry of a kernel; None if the shared cache does not have it, cannot be asked, or there is none."""
    return fetched(current(), object_name(key, name))


def fetched(cache: SharedCache | None, name: str) -> Entry | None:
    """An object that may be machine code."""
    return cache.get(name) if cache is not None and is_allowed(cache, cache.may_load) else None


def send(key: str, name: str, files: Mapping[str, bytes], seconds: float = 0.0) -> None:
    """Send the files of a kernel, whose compilation took `seconds`, in the background."""
    send_as(current(), object_name(key, name), files, seconds)


def send_as(cache: SharedCache | None, name: str, files: Mapping[str, bytes], seconds: float = 0.0) -> None:
    """Send an object that may be machine code."""
    if cache is None:
        return
    cache.guard.compiled(seconds)
    if is_allowed(cache, cache.may_send):
        cache.put(name, files, seconds)


def file_name(key: str, file: str) -> str:
    """The object of a file, or a group of files, that a program keeps through Triton's interface."""
    return f"{FILES}{folder_of(key)}/{file}"


def claim(key: str, name: str, owner: str, seconds: float) -> bool | None:
    """Reserve the compilation of a kernel, or renew the reservation, for `seconds`.

    Return True if `owner` has it, False if another owner has it, None if there is no shared cache that could be asked.
    """
    cache = current()
    if cache is None or not (cache.may_load and cache.may_send):  # a machine that waits could not load the result
        return None
    return cache.guard.claim(object_name(key, name), owner, seconds)


def holder(key: str, name: str) -> str | None:
    """Return the owner of the claim on a kernel, as a text to be shown; None if there is none, or the server is not
    asked."""
    cache = current()
    owner = None if cache is None else cache.guard.holder(object_name(key, name))
    return None if owner is None else "".join(letter if letter.isprintable() else "?" for letter in owner[:80])


def release(key: str, name: str, owner: str) -> None:
    """Release what `claim` reserved, in the background, after the objects that were sent before."""
    if (cache := current()) is not None:
        cache.guard.release(object_name(key, name), owner)


def is_allowed(cache: SharedCache, allowed: bool) -> bool:
    """Return `allowed`; without a key or trust in the server, warn once about what is needed to share machine code."""
    if cache.key is None and not cache.trusts_server and str(cache.guard.store.address) not in _warned:
        _warned.add(str(cache.guard.store.address))
        warnings.warn(
            f"kernels are neither loaded from the shared cache {cache.guard.store.address} nor sent to it, for nothing"
            " says who may make them: set TILEWORK_CACHE_KEY or TILEWORK_CACHE_KEY_FILE to a key"
            " (docs/shared-cache.md), or TILEWORK_CACHE_TRUST_SERVER=1 if whoever can write there may run code here",
            stacklevel=4,
        )
    return allowed


# ---- texts that are no machine code: timings


def fetch_text(key: str, file: str) -> bytes | None:
    """Return a file of timings as a machine wrote it, not yet validated; None if there is none."""
    if (cache := current()) is None:
        return None
    name = f"{TIMINGS}{folder_of(key)}/{file}"
    found = cache.get(name)
    return None if found is None else found.files.get(file)


def send_text(key: str, file: str, text: bytes) -> None:
    """Send a file of timings in the background."""
    if (cache := current()) is not None:
        cache.put(f"{TIMINGS}{folder_of(key)}/{file}", {file: text})
