"""Objects at URLs: any server that knows GET, PUT and DELETE (nginx with `dav_methods`, WebDAV, a bazel-remote).

A user and password in the URL become an Authorization header; TLS is verified, by the system's certificates or those
of `?ca=file`. Python's own client does it, so there is nothing to install. Claims are made with ``If-None-Match: *``.

Redirections are followed, with the password only to the host of the URL itself, and never from https to http.
"""

import base64
import ssl
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from tilework.process.forks import cached_property
from tilework.runtime.kernel_cache.remote.store import LARGEST, Failure, RemoteStore, too_large

ABSENT = frozenset({404, 410})
TAKEN = frozenset({409, 412})
STATUS = {401: "password", 403: "permission", 407: "password", 405: "read-only", 408: "time-out", 413: "full",
          429: "unreachable", 504: "time-out", 507: "full"}  # fmt: skip
PORTS = {"http": 80, "https": 443}


class Redirections(HTTPRedirectHandler):
    """Follows redirections, but sends the password to the original host only; Python's handler sends it to any host."""

    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        old, new = origin(req.full_url), origin(newurl)
        if new is None:
            raise HTTPError(req.full_url, code, f"{msg}: it redirects to what is no URL of HTTP", headers, fp)
        scheme, host, _ = new
        if scheme == "http" and req.type == "https":
            where = f"{scheme}://{host}, which is not encrypted"
            raise HTTPError(req.full_url, code, f"{msg}: it redirects to {where}", headers, fp)
        request = super().redirect_request(req, fp, code, msg, headers, newurl)
        if request is not None and new != old:
            request.remove_header("Authorization")
        return request


def origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port; None if the scheme is neither http nor https."""
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or PORTS[parts.scheme]
    except (ValueError, KeyError):
        return None


class HttpStore(RemoteStore):
    """A store whose objects are at URLs; see the module docstring."""

    @cached_property
    def opener(self) -> Any:
        """Python's client, with the certificates of the URL."""
        context = ssl.create_default_context(cafile=self.address.options.get("ca"))
        return build_opener(HTTPSHandler(context=context), Redirections)

    @cached_property
    def headers(self) -> Mapping[str, str]:
        address = self.address
        if not (address.user or address.password):
            return {}
        return {"Authorization": "Basic " + base64.b64encode(f"{address.user}:{address.password}".encode()).decode()}

    def url(self, name: str) -> str:
        address = self.address
        host = f"[{address.host}]" if ":" in address.host else address.host
        port = f":{address.port}" if address.port else ""
        return f"{address.scheme}://{host}{port}{address.path.rstrip('/')}/{quote(name)}"

    def send(self, method: str, name: str, data: bytes | None = None, **headers: str) -> bytes:
        """The body of the answer; the client's errors otherwise."""
        sent = {**self.headers, **({"Content-Type": "application/octet-stream"} if data is not None else {}), **headers}
        request = Request(self.url(name), data, sent, method=method)
        with self.opener.open(request, timeout=self.timeouts.object) as answer:
            if (answer.length or 0) > LARGEST or len(found := answer.read(LARGEST + 1)) > LARGEST:
                raise too_large()
            return found

    def get(self, name: str) -> bytes | None:
        try:
            return self.send("GET", name)
        except HTTPError as error:
            if error.code in ABSENT:
                return None
            raise

    def put(self, name: str, data: bytes) -> None:
        self.send("PUT", name, data)

    def create(self, name: str, data: bytes) -> bool:
        try:
            self.send("PUT", name, data, **{"If-None-Match": "*"})
        except HTTPError as error:
            if error.code in TAKEN:
                return False
            raise
        return True

    def delete(self, name: str) -> None:
        try:
            self.send("DELETE", name)
        except HTTPError as error:
            if error.code not in ABSENT:
                raise

    def names(self, prefix: str) -> Iterator[str]:
        raise NotImplementedError("HTTP has no way to list what a server has")

    def client_failure(self, error: Exception) -> Failure:
        if isinstance(error, HTTPError):
            return Failure(STATUS.get(error.code, "refused"), f"HTTP {error.code} {error.reason}")
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, ssl.SSLError):
            return Failure("TLS", str(reason))
        if isinstance(reason, TimeoutError):
            return Failure("time-out", "no answer in time")
        return Failure("unreachable", str(reason) or type(reason).__name__)
