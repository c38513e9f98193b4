"""A cache that machines share, behind the local one.

    TRITON_CACHE_MANAGER=tilework.runtime.kernel_cache.managers:RemoteCacheManager
    TRITON_REMOTE_CACHE_BACKEND=tilework.runtime.kernel_cache.managers:RedisRemoteCacheBackend

Files are put into both; a file that is only remote is copied into the local cache when it is read. A group is sent with
the checksums of its files, so a remote copy that was cut short or mixed with another counts as absent. An unreachable
server is reported once and then ignored.
"""

import json
import warnings
from abc import ABC, abstractmethod
from functools import cache
from typing import Any

from tilework import knobs
from tilework.runtime.kernel_cache.entry import GROUP, digest, make_manifest, parse_manifest, read_manifest
from tilework.runtime.kernel_cache.files import DISK, REMOTE, CacheManager, FileCacheManager


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
