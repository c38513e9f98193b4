"""Clients of the service: they send requests at once, compare every answer with NumPy, and show how long they waited.

python -m examples.service.client --port 8000 --clients 8 --requests 1000
"""

import argparse
import io
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from http.client import HTTPConnection

import numpy as np

from examples.service.server import bytes_of
from examples.service.shapes import REFUSED, requests


def ask(connection: HTTPConnection, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    """(status, body) of an answer."""
    connection.request(method, path, body)
    answer = connection.getresponse()
    return answer.status, answer.read()


class Client(threading.Thread):
    """Sends its share of requests over one connection."""

    def __init__(self, port: int, number: int, share: int) -> None:
        super().__init__(name=f"client {number}")
        self.port, self.number, self.share = port, number, share
        self.seconds: list[float] = []
        self.wrong: list[str] = []

    def run(self) -> None:
        try:
            self.send()
        except Exception as error:
            self.wrong.append(f"{self.name}: {type(error).__name__}: {error}")

    def send(self) -> None:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        generated = requests(np.random.default_rng(self.number))
        for turn in range(self.share):
            name, arguments, expected = generated[(turn + self.number) % len(generated)]
            start = time.perf_counter()
            status, body = ask(connection, "POST", f"/{name}", bytes_of(arguments))
            self.seconds.append(time.perf_counter() - start)
            if status != 200:
                self.wrong.append(f"{self.name}, {name}: {status} {body.decode()}")
            elif not np.allclose(np.load(io.BytesIO(body)), expected(*arguments), atol=1e-3):
                self.wrong.append(f"{self.name}, {name}: another result than NumPy's")
        connection.close()


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--requests", type=int, default=1000)
    options = parser.parse_args(argv)
    shares = [len(range(number, options.requests, options.clients)) for number in range(options.clients)]
    clients = [Client(options.port, number, share) for number, share in enumerate(shares)]
    start = time.perf_counter()
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    took = time.perf_counter() - start
    wrong, times = (
        [text for client in clients for text in client.wrong],
        [s for client in clients for s in client.seconds],
    )
    print("\n".join(wrong[:10]), end="\n" if wrong else "")
    if len(times) > 1:
        middle, late = statistics.median(times) * 1e3, statistics.quantiles(times, n=100)[-1] * 1e3
        print(
            f"{len(times)} requests of {options.clients} clients in {took:.1f} s, "
            f"{len(wrong)} wrong: {middle:.1f} ms in the middle, 99 of 100 within {late:.1f} ms"
        )
    connection = HTTPConnection("127.0.0.1", options.port, timeout=60)
    status, body = ask(connection, "POST", "/softmax", bytes_of([np.zeros(REFUSED, np.float32)]))
    print(f"a shape that was not recorded: {status} {body.decode()}")
    return int(bool(wrong) or status != 422)


if __name__ == "__main__":
    sys.exit(main())
