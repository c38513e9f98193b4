"""An HTTP server with softmax and matmul, on nothing but the standard library, NumPy and tilework.

    tilework precompile service.jsonl --target cpu -o service.tilebundle
    TILEWORK_NO_JIT=1 python -m examples.service.server --bundle service.tilebundle --port 8000

    POST /softmax, /matmul      matrices as NumPy saves them (.npy, one behind the other); the answer is one, too
    GET /metrics                what was served, loaded and compiled, for Prometheus

A shape that is not recorded is refused (422), with the words of TILEWORK_NO_JIT: the service never compiles.
"""

import argparse
import io
import os
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

import tilework
from examples.service.kernels import Array, matmul, softmax
from tilework.errors import NotRecorded

FUNCTIONS: dict[str, tuple[int, Callable[..., Array]]] = {"/softmax": (1, softmax), "/matmul": (2, matmul)}
LARGEST = 64 << 20  # bytes of a request


def arrays_of(body: bytes, count: int) -> list[Array]:
    """The matrices of a request."""
    stream = io.BytesIO(body)
    found = [np.load(stream, allow_pickle=False) for _ in range(count)]
    if stream.read(1):
        raise ValueError(f"the request has more than {count} arrays")
    return found


def bytes_of(arrays: Sequence[Array]) -> bytes:
    stream = io.BytesIO()
    for array in arrays:
        np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


class Handler(BaseHTTPRequestHandler):
    """One connection, in a thread of its own."""

    protocol_version = "HTTP/1.1"
    timeout = 30
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self.answer(200, tilework.metrics.prometheus().encode(), "text/plain; version=0.0.4")
        else:
            self.refuse(404, f"there is no {self.path}; POST {' or '.join(FUNCTIONS)}, or GET /metrics")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > LARGEST:
            self.close_connection = True  # what follows is not read
            return self.refuse(413, f"a request says its length, and has at most {LARGEST} bytes")
        body = self.rfile.read(int(length))
        if self.path not in FUNCTIONS:
            return self.refuse(404, f"there is no {self.path}; there are {', '.join(FUNCTIONS)}")
        count, function = FUNCTIONS[self.path]
        try:
            result = function(*arrays_of(body, count))
        except NotRecorded as error:
            return self.refuse(422, str(error))
        except (ValueError, EOFError) as error:
            return self.refuse(400, str(error))
        self.answer(200, bytes_of([result]), "application/octet-stream")

    def answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, words: str) -> None:
        self.answer(status, f"{words}\n".encode(), "text/plain; charset=utf-8")

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Metrics tell more than a line for each request."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundle", default=os.environ.get("TILEWORK_BUNDLE"), help="the file of `tilework precompile`")
    parser.add_argument("--port", type=int, default=8000, help="0: any free one")
    options = parser.parse_args()
    if options.bundle is not None:
        print(f"serving from {tilework.load(options.bundle)!r}", flush=True)
    with Server(("127.0.0.1", options.port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("ended", flush=True)


if __name__ == "__main__":
    main()
