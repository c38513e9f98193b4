"""The interface to servers of a shared cache, and the table of classes by the scheme of the URL.

    store = open_store("redis://cache:6379/0")
    store.put("kernels/1/VOV2XK5L/add", data)
    store.get("kernels/1/VOV2XK5L/add")                          the bytes, or None
    list(store.names("kernels/1/"))                              ["kernels/1/VOV2XK5L/add"]
    store.claim("kernels/1/VOV2XK5L/add", "host-3141", 60.0)     True for one of those that ask, for so many seconds

A store is a plain client: its methods wait for the server as long as the client's time-outs allow, and raise what the
client raises. Launches call them only through `guard.py`, which limits what they may cost; the tools that push and
pull call them directly.

Machines use claims to agree on which of them compiles. Claims are only advice: a server that cannot refuse to overwrite
an object gives the claim to all machines, and then each compiles, as without claims.
"""

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from tilework import knobs

CLAIM = ".claim"  # what the names of claims end with
LARGEST = 256 << 20  # bytes of an object
LONGEST_CLAIM = 60.0  # seconds; one that lasts longer is by a clock that is wrong

# scheme: module, class, the package it needs, its extra of `pip install tilework[...]`
SCHEMES = {
    "redis": ("redis_store", "RedisStore", "redis", "redis"),
    "rediss": ("redis_store", "RedisStore", "redis", "redis"),
    "unix": ("redis_store", "RedisStore", "redis", "redis"),
    "s3": ("object_store", "ObjectStore", "s3fs", "s3"),
    "http": ("http_store", "HttpStore", "", ""),
    "https": ("http_store", "HttpStore", "", ""),
    "file": ("folder_store", "FolderStore", "", ""),
}
FORMS = (
    "redis://[user:password@]host[:port][/database], rediss:// (with TLS), unix:///socket, s3://bucket/prefix, "
    "http://host/path, https://host/path or file:///folder"
)
# what a URL may have behind its question mark; the package redis knows its own
OPTIONS = {"s3": {"endpoint_url", "region"}, "http": {"ca"}, "https": {"ca"}, "file": set[str]()}
FILES = {"ca", "cert", "key"}  # options that name one


class Timeouts(NamedTuple):
    """Seconds to connect, and for one object."""

    connect: float = 0.2
    object: float = 2.0

    @classmethod
    def of_knobs(cls) -> "Timeouts":
        return cls(knobs.cache.connect_timeout, knobs.cache.timeout)


class Failure(NamedTuple):
    """The reason that a request to a server failed.

    `kind` is a key of `guard.KINDS`, which says what follows from it; `text` is for the warning.
    """

    kind: str
    text: str


class Unusable(Exception):
    """An object that is not used; `kind` is one of `guard.KINDS`."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(why)
        self.kind = kind


def too_large() -> Unusable:
    """The error for an answer that is longer than any object: it is not read."""
    return Unusable("damaged", f"it has more than {LARGEST >> 20} MiB")


class Address:
    """The URL of a shared cache; its text has no password."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            parts = urlsplit(url)
            self.scheme, self.host, self.port = parts.scheme.lower(), parts.hostname or "", parts.port
        except ValueError:  # whose text may have a part of the password
            raise refused(url, "its host or port is none") from None
        self.user = unquote(parts.username or "")
        self.password = unquote(parts.password or "")
        self.path = parts.path
        self.options = dict(parse_qsl(parts.query, keep_blank_values=True))
        if self.scheme not in SCHEMES:
            raise refused(url, f"it begins with {self.scheme + '://' if self.scheme else 'no scheme'}")
        if self.scheme in ("unix", "file"):
            self.path = unquote(self.path)
            if self.host not in ("", "localhost") or len(self.path) < 2:
                raise refused(url, "it needs an absolute path: three slashes")
        elif not self.host:
            raise refused(url, "it names no " + ("bucket" if self.scheme == "s3" else "host"))
        if self.scheme in ("redis", "rediss") and not self.path.strip("/").isdecimal() and self.path.strip("/"):
            raise refused(url, f"its database {self.path.strip('/')[:20]!r} is not a number")
        if unknown := sorted(set(self.options) - OPTIONS.get(self.scheme, self.options.keys())):
            raise refused(url, f"{self.scheme}:// has no option {unknown[0][:20]!r}")

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}://{user}{self.host}{port}{self.path}"

    def __repr__(self) -> str:
        return f"<Address {self}>"

    def hidden(self, text: str) -> str:
        """Return a client's message with passwords and other secrets replaced by ``***``."""
        secrets = [self.password, *(value for name, value in self.options.items() if name not in SHOWN_OPTIONS)]
        for secret in secrets:
            text = text.replace(secret, "***") if secret else text
        return text


SHOWN_OPTIONS = ("ca", "cert", "key", "db", "endpoint_url", "region", "ssl_cert_reqs", "ssl_ca_certs")


def refused(url: str, why: str) -> RuntimeError:
    """Return the error for a malformed URL, without its text: a password may be anywhere in it."""
    scheme, colon, _ = url.partition("://")
    shown = f"{scheme[:20]}://..." if colon else "..." if "@" in url else url[:60]
    return RuntimeError(f"Unable to use TILEWORK_CACHE_URL={shown}: {why}; expected {FORMS}")


class RemoteStore(ABC):
    """Objects by name, on a server that machines share. Names are like relative paths: ``kernels/1/VOV2XK5L/add``.

    Methods raise what their client raises; `failure` says what that means. `get` raises `Unusable` for an object of
    more than `LARGEST` bytes, without reading it into memory where the client can tell.
    """

    def __init__(self, address: Address, timeouts: Timeouts) -> None:
        self.address, self.timeouts = address, timeouts

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address}>"

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """An object, or None."""

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Store an object, and replace an older one; readers see the old one or the new one, never a part."""

    @abstractmethod
    def create(self, name: str, data: bytes) -> bool:
        """Store an object unless one of that name exists; return False if one does."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete an object if it exists."""

    @abstractmethod
    def names(self, prefix: str) -> Iterator[str]:
        """Yield the names that begin with `prefix`, in no order; NotImplementedError from servers that cannot list."""

    @abstractmethod
    def client_failure(self, error: Exception) -> Failure:
        """Classify an exception of the client."""

    def failure(self, error: Exception) -> Failure:
        """Classify an exception that a method raised."""
        return Failure(error.kind, str(error)) if isinstance(error, Unusable) else self.client_failure(error)

    def ping(self) -> None:
        """Raise what any other method would raise now."""
        self.get("ping")

    def facts(self) -> dict[str, str]:
        """Return facts that the server reports about itself, for `tilework cache info`."""
        return {}

    # claims, for servers that know nothing better than to create a file

    def claim(self, name: str, owner: str, seconds: float) -> bool:
        """Reserve the making of an object, or renew the reservation; return True if `owner` has the claim now."""
        claim = json.dumps({"owner": owner, "until": time.time() + seconds}).encode()
        for _ in range(2):
            if self.create(name + CLAIM, claim):
                return True
            held = parse_claim(self.get(name + CLAIM))
            if held is not None and held[0] == owner:
                self.put(name + CLAIM, claim)
                return True
            if held is not None and is_held(held):
                return False
            self.delete(name + CLAIM)  # it has run out: of several that see this, more than one may get it
        return False

    def holder(self, name: str) -> str | None:
        """Return the owner of the claim on an object; None if there is none."""
        held = parse_claim(self.get(name + CLAIM))
        return held[0] if held is not None and is_held(held) else None

    def release(self, name: str, owner: str) -> None:
        """Release a claim if `owner` has it."""
        if self.holder(name) == owner:
            self.delete(name + CLAIM)


def parse_claim(data: bytes | None) -> tuple[str, float] | None:
    """Return (the owner of a claim, its end); None if there is no valid claim."""
    try:
        found: Any = json.loads(data or b"")
        return str(found["owner"]), float(found["until"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def is_held(claim: tuple[str, float]) -> bool:
    """Return True if a claim has not run out; clocks of machines differ."""
    return 0 < claim[1] - time.time() <= LONGEST_CLAIM


def open_store(url: str, timeouts: Timeouts | None = None) -> RemoteStore:
    """The client for a URL; RuntimeError if it is none, or a package is missing. It has not connected yet."""
    address = Address(url)
    module, name, package, extra = SCHEMES[address.scheme]
    if package:
        require_package(package, extra, f"a cache at {address.scheme}://", "TILEWORK_CACHE_URL")
    for option in sorted(FILES & address.options.keys()):
        if not os.path.isfile(file := address.options[option]):
            raise refused(url, f"its {option}={file} is not a file")
    found = getattr(import_module(f"{__package__}.{module}"), name)
    return found(address, timeouts or Timeouts.of_knobs())


def require_package(package: str, extra: str, user: str, setting: str) -> None:
    """Raise a RuntimeError if an optional package is missing."""
    try:
        import_module(package)
    except ImportError as error:
        raise RuntimeError(
            f"{user} needs the package {package}: pip install 'tilework[{extra}]', or unset {setting}"
        ) from error
