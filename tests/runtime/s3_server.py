"""An in-memory server for the part of S3 that a cache uses: buckets, objects, conditional creation, paginated lists.

Requests are authenticated by the name of their access key; signatures are not verified.
"""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

ACCESS_KEY = "testing"
PAGE = 2  # objects per page of a list, so that a list of three has two pages
STATUS = {
    "InvalidAccessKeyId": 403,
    "AccessDenied": 403,
    "NoSuchBucket": 404,
    "NoSuchKey": 404,
    "PreconditionFailed": 412,
    "NotImplemented": 501,
}


class S3Server(ThreadingHTTPServer):
    """Objects by bucket and key. `requests` are the methods of all requests so far; with `is_read_only` writes are
    denied."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), S3Request)
        self.buckets: dict[str, dict[str, bytes]] = {}
        self.requests = list[str]()
        self.is_read_only = False
        self.lock = threading.Lock()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class S3Request(BaseHTTPRequestHandler):
    server: S3Server  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Discard the message."""

    def answer(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        url = urlsplit(self.path)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        options = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        self.server.requests.append(self.command)
        signer = re.search(r"Credential=([^/]*)/", self.headers.get("Authorization", ""))
        if signer is None or signer[1] != ACCESS_KEY:
            return self.fail("InvalidAccessKeyId")
        if self.server.is_read_only and self.command not in ("GET", "HEAD"):
            return self.fail("AccessDenied")
        with self.server.lock:
            if bucket not in self.server.buckets:
                return self.fail("NoSuchBucket")
            self.object_request(self.server.buckets[bucket], key, options, data)

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = answer

    def object_request(self, objects: dict[str, bytes], key: str, options: dict[str, str], data: bytes) -> None:
        match self.command:
            case "GET" if options.get("list-type") == "2":
                self.reply(200, listing(objects, options).encode(), "application/xml")
            case "GET" | "HEAD" if key not in objects:
                self.fail("NoSuchKey")
            case "GET" | "HEAD" if "Range" not in self.headers:
                self.reply(200, objects[key])
            case "PUT" if self.headers.get("If-None-Match") == "*" and key in objects:
                self.fail("PreconditionFailed")
            case "PUT" if "aws-chunked" not in self.headers.get("Content-Encoding", ""):
                objects[key] = data
                self.reply(200)
            case "DELETE":
                objects.pop(key, None)
                self.reply(204)
            case _:
                self.fail("NotImplemented")

    def fail(self, code: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
        self.reply(STATUS[code], text.encode(), "application/xml")

    def reply(self, status: int, data: bytes = b"", kind: str = "binary/octet-stream") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", '"0"')
        self.send_header("Last-Modified", "Thu, 19 Nov 2026 00:00:00 GMT")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)


def listing(objects: dict[str, bytes], options: dict[str, str]) -> str:
    """Return one page of the list of objects with a prefix, as XML."""
    prefix, after = options.get("prefix", ""), options.get("continuation-token", "")
    found = sorted(key for key in objects if key.startswith(prefix) and key > after)
    page, is_truncated = found[:PAGE], len(found) > PAGE
    coded = quote if options.get("encoding-type") == "url" else escape
    rows = "".join(
        f"<Contents><Key>{coded(key)}</Key><LastModified>2026-11-19T00:00:00.000Z</LastModified>"
        f"<ETag>0</ETag><Size>{len(objects[key])}</Size><StorageClass>STANDARD</StorageClass></Contents>"
        for key in page
    )
    token = f"<NextContinuationToken>{coded(page[-1])}</NextContinuationToken>" if is_truncated else ""
    return (
        f"<ListBucketResult><Prefix>{coded(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
        f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated>{token}{rows}</ListBucketResult>"
    )


@contextmanager
def s3_server(*buckets: str) -> Iterator[S3Server]:
    """Run a server with empty buckets."""
    server = S3Server()
    server.buckets.update({name: {} for name in buckets})
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
