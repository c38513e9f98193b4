"""Objects in Redis or Valkey: `redis://`, `rediss://` and `unix://`, through the package redis.

The options of a URL are those of the package's `from_url` (`?ssl_cert_reqs=none`), with short names for three.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from tilework.runtime.kernel_cache.remote.store import (
    CLAIM,
    LARGEST,
    LONGEST_CLAIM,
    Address,
    Failure,
    RemoteStore,
    Timeouts,
    refused,
    too_large,
)

SHORT = {"ca": "ssl_ca_certs", "cert": "ssl_certfile", "key": "ssl_keyfile"}
PREFIX = "tilework:"
BEGINNINGS = {  # of what Redis answers, for what the package has no class
    "OOM": "full",
    "MISCONF": "full",
    "READONLY": "read-only",
    "NOPERM": "permission",
    "WRONGPASS": "password",
    "NOAUTH": "password",
    "WRONGTYPE": "wrong type",
}


class RedisStore(RemoteStore):
    """A store whose objects are in Redis; see the module docstring."""

    def __init__(self, address: Address, timeouts: Timeouts) -> None:
        super().__init__(address, timeouts)
        try:
            self.client: Any = redis.Redis.from_url(
                full_url(address.url),
                socket_connect_timeout=timeouts.connect,
                socket_timeout=timeouts.object,
                retry=Retry(NoBackoff(), 0),  # what fails is not asked again: that is the guard's business
            )
            pool = self.client.connection_pool
            pool.connection_class(**pool.connection_kwargs)  # does not connect, and sees what options there are
        except (TypeError, ValueError) as error:
            raise refused(address.url, address.hidden(str(error)).rpartition("() ")[2]) from None

    def redis_name(self, name: str) -> str:
        """The key in Redis."""
        return PREFIX + name

    def get(self, name: str) -> bytes | None:
        """Return an object. Redis limits a value to 512 MiB by itself (`proto-max-bulk-len`), and asking for the length
        first would need a permission that users with `+get` do not have."""
        data = self.client.get(self.redis_name(name))
        if data is not None and len(data) > LARGEST:
            raise too_large()
        return data

    def put(self, name: str, data: bytes) -> None:
        self.client.set(self.redis_name(name), data)

    def create(self, name: str, data: bytes) -> bool:
        return bool(self.client.set(self.redis_name(name), data, nx=True))

    def delete(self, name: str) -> None:
        self.client.delete(self.redis_name(name))

    def names(self, prefix: str) -> Iterator[str]:
        for found in self.client.scan_iter(match=escaped(self.redis_name(prefix)) + "*", count=1000):
            name = found.decode(errors="replace").removeprefix(PREFIX)
            if not name.endswith(CLAIM):
                yield name

    def ping(self) -> None:
        self.client.ping()

    def claim(self, name: str, owner: str, seconds: float) -> bool:
        key, milliseconds = self.redis_name(name + CLAIM), max(1, int(seconds * 1000))
        for _ in range(2):
            if self.client.set(key, owner, nx=True, px=milliseconds):
                return True
            found, left = self.found_claim(name)
            if found == owner:
                return bool(self.client.set(key, owner, xx=True, px=milliseconds))
            if left is None or 0 < left <= LONGEST_CLAIM:
                return False
            self.client.delete(key)  # if several clients do this at once, more than one may get the claim
        return False

    def holder(self, name: str) -> str | None:
        found, left = self.found_claim(name)
        return found if left is not None and 0 < left <= LONGEST_CLAIM else None

    def found_claim(self, name: str) -> tuple[str | None, float | None]:
        """Return the owner of a claim and its remaining seconds: negative if it never expires, None if the server does
        not let this user ask."""
        key = self.redis_name(name + CLAIM)
        owner, left = self.client.pipeline(transaction=False).get(key).pttl(key).execute(raise_on_error=False)
        for answer in (owner, left):
            if isinstance(answer, Exception) and not (answer is left and self.failure(answer).kind == "permission"):
                raise answer
        text = None if owner is None else owner.decode(errors="replace")
        return text, None if isinstance(left, Exception) else left / 1000

    def facts(self) -> dict[str, str]:
        memory = self.client.info("memory")
        limit = int(memory.get("maxmemory", 0))
        used = f"{memory.get('used_memory', 0) / 2**20:.1f} MiB"
        return {
            "keys": f"{self.client.dbsize():,}",
            "memory": f"{used} of {limit / 2**20:.1f} MiB" if limit else f"{used}, no limit",
            "when full": str(memory.get("maxmemory_policy", "?")),
        }

    def client_failure(self, error: Exception) -> Failure:
        text = str(error)
        for start, kind in BEGINNINGS.items():
            if text.startswith(start):
                return Failure(kind, text)
        if isinstance(error, exceptions.NoPermissionError):
            return Failure("permission", text)
        if isinstance(error, exceptions.AuthenticationError):
            return Failure("password", text)
        if isinstance(error, exceptions.OutOfMemoryError):
            return Failure("full", text)
        if isinstance(error, exceptions.ReadOnlyError):
            return Failure("read-only", text)
        if isinstance(error, exceptions.TimeoutError):
            return Failure("time-out", text)
        if isinstance(error, exceptions.ConnectionError | OSError):
            return Failure("TLS" if "SSL" in text or "certificate" in text else "unreachable", text)
        return Failure("refused", text or type(error).__name__)


class TritonRedisStore(RedisStore):
    """A store in the Redis that TRITON_REDIS_HOST, TRITON_REDIS_PORT and TRITON_REDIS_KEY_FORMAT name."""

    def __init__(self, host: str, port: int, key_format: str, timeouts: Timeouts) -> None:
        self.key_format = key_format
        super().__init__(Address(f"redis://{host}:{port}"), timeouts)

    def redis_name(self, name: str) -> str:
        key, _, filename = name.rpartition("/")
        return self.key_format.format(key=key, filename=filename)

    def names(self, prefix: str) -> Iterator[str]:
        raise NotImplementedError("TRITON_REDIS_KEY_FORMAT says how keys are made, not how they are read: set"
                                  " TILEWORK_CACHE_URL")  # fmt: skip


def full_url(url: str) -> str:
    """The URL with the options' full names."""
    start, _, query = url.partition("?")  # `urlunsplit` makes unix:/socket of unix:///socket
    options = [(SHORT.get(name, name), value) for name, value in parse_qsl(query, keep_blank_values=True)]
    return f"{start}?{urlencode(options)}" if options else start


def escaped(text: str) -> str:
    """Return a pattern of Redis that matches only this text."""
    return "".join(f"\\{letter}" if letter in "*?[]\\^" else letter for letter in text)
