"""Triton's classes for a cache that machines share.

    TRITON_CACHE_MANAGER=tilework.runtime.kernel_cache.managers:RemoteCacheManager
    TRITON_REMOTE_CACHE_BACKEND=tilework.runtime.kernel_cache.managers:RedisRemoteCacheBackend

They set up what TILEWORK_CACHE_URL sets up (`shared_cache.py`), with a Redis, or a class of the user's, as the server:
entries are asked for and sent as there, behind the same guard, and signed. The manager's own methods are for programs
that keep files through Triton's interface.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from typing import ClassVar

from tilework import knobs
from tilework.runtime.kernel_cache.entry import GROUP
from tilework.runtime.kernel_cache.file_manager import CacheManager, FileCacheManager
from tilework.runtime.kernel_cache.remote import shared_cache
from tilework.runtime.kernel_cache.remote.guard import Guard, guard_of
from tilework.runtime.kernel_cache.remote.store import Address, Failure, RemoteStore, Timeouts, require_package


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

    @classmethod
    def server(cls, timeouts: Timeouts) -> tuple[Hashable, Callable[[], RemoteStore]]:
        """Return (the identity of the server for entries, the function that makes its client)."""
        return (cls, timeouts), partial(BackendStore, cls, timeouts)


class BackendStore(RemoteStore):
    """Objects in a class of the user's, by key and name of a file."""

    def __init__(self, backend: type[RemoteCacheBackend], timeouts: Timeouts) -> None:
        super().__init__(ClassAddress(backend), timeouts)
        self.backend = backend

    def location(self, name: str) -> tuple[RemoteCacheBackend, str]:
        """Return (the backend for the key of an object, the name of its file)."""
        key, _, filename = name.rpartition("/")
        return self.backend(key), filename

    def get(self, name: str) -> bytes | None:
        backend, filename = self.location(name)
        return backend.get([filename]).get(filename)

    def put(self, name: str, data: bytes) -> None:
        backend, filename = self.location(name)
        backend.put(filename, data)

    def create(self, name: str, data: bytes) -> bool:
        if self.get(name):
            return False
        self.put(name, data)
        return True

    def delete(self, name: str) -> None:
        self.put(name, b"")  # the interface has nothing better

    def names(self, prefix: str) -> Iterator[str]:
        raise NotImplementedError(f"{self.address} cannot list what it has: the interface of its class has no way to")

    def client_failure(self, error: Exception) -> Failure:
        kind = "time-out" if isinstance(error, TimeoutError) else "unreachable"
        return Failure(kind, f"{type(error).__name__}: {error}")


class ClassAddress(Address):
    """The name of a class instead of a URL."""

    def __init__(self, backend: type[RemoteCacheBackend]) -> None:
        self.url = f"{backend.__module__}:{backend.__qualname__}"
        self.user = self.password = ""
        self.options = {}

    def __str__(self) -> str:
        return self.url


class RedisRemoteCacheBackend(RemoteCacheBackend):
    """Files in Redis, under ``triton:<key>:<filename>`` (knobs.redis)."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key_format = knobs.redis.key_format
        self.guard: Guard = guard_of(*self.server(Timeouts.of_knobs()))

    def name_of(self, filename: str) -> str:
        """The Redis key of a file."""
        return self.key_format.format(key=self.key, filename=filename)

    def get(self, filenames: list[str]) -> dict[str, bytes]:
        found = {filename: self.guard.get(f"{self.key}/{filename}") for filename in filenames}
        return {filename: data for filename, data in found.items() if data is not None}

    def put(self, filename: str, data: bytes) -> None:
        self.guard.put(f"{self.key}/{filename}", data)

    @classmethod
    def server(cls, timeouts: Timeouts) -> tuple[Hashable, Callable[[], RemoteStore]]:
        settings = knobs.redis.host, knobs.redis.port, knobs.redis.key_format, timeouts
        return settings, partial(triton_redis, *settings)


def triton_redis(host: str, port: int, key_format: str, timeouts: Timeouts) -> RemoteStore:
    require_package("redis", "redis", "RedisRemoteCacheBackend", "TRITON_REMOTE_CACHE_BACKEND")
    from tilework.runtime.kernel_cache.remote.redis_store import TritonRedisStore  # lazily: redis is optional

    return TritonRedisStore(host, port, key_format, timeouts)


class RemoteCacheManager(CacheManager):
    """The local files of a key, with those of the shared cache behind them; dumps and overrides are local."""

    has_shared_cache: ClassVar[bool] = True

    def __init__(self, key: str, override: bool = False, dump: bool = False) -> None:
        super().__init__(key, override, dump)
        shared_cache.server(is_triton=True)  # an error if there is no backend
        self.local = FileCacheManager(key, override, dump)
        self.is_shared = not (override or dump)

    def get_file(self, filename: str) -> str | None:
        if (path := self.local.get_file(filename)) is not None or not self.is_shared:
            return path
        data = (self.fetched(filename) or {}).get(filename)
        return None if data is None else self.local.put(data, filename)

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        content = data.encode() if isinstance(data, str) else bytes(data)
        self.share(filename, {filename: content})
        return self.local.put(content, filename)

    def get_group(self, filename: str) -> dict[str, str] | None:
        if (group := self.local.get_group(filename)) is not None or not self.is_shared:
            return group
        if (found := self.fetched(GROUP + filename)) is None:
            return None
        paths = {file: self.local.put(data, file) for file, data in found.items()}
        self.local.put_group(filename, paths)
        return paths

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        path = self.local.put_group(filename, group)
        files: dict[str, bytes] = {}
        for file, local_path in group.items():
            with open(local_path, "rb") as source:
                files[file] = source.read()
        self.share(GROUP + filename, files)
        return path

    def fetched(self, name: str) -> dict[str, bytes] | None:
        found = shared_cache.fetched(shared_cache.current(is_triton=True), shared_cache.file_name(self.key, name))
        return None if found is None else found.files

    def share(self, name: str, files: dict[str, bytes]) -> None:
        if self.is_shared:
            shared_cache.send_as(shared_cache.current(is_triton=True), shared_cache.file_name(self.key, name), files)
