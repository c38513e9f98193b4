"""Messages that no client of ours sends: the compile server ends that connection, and goes on for all others."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilework.runtime.workers import compile_server
from tilework.runtime.workers.compile_server import Server
from tilework.runtime.workers.compile_worker import serve
from tilework.runtime.workers.line_channel import DEEPEST, Channel
from tilework.runtime.workers.process_context import Context

CONTEXT = {"package": "p", "folder": "/", "path": [], "environment": {}, "as_triton": False}
GREETING = {"context": CONTEXT, "limit": 1}
QUESTION = {"id": 7, "request": {"entry_key": "k", "target": ["cpu", "host", 1]}}
PATIENCE = 60


class RunningServer:
    """A server in a thread, that loads no compiler and cannot fork: it refuses what it understands."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "socket")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.ends, self.end = os.pipe()
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        try:
            Server(self.listener, cores=2, ends=self.ends).run(PATIENCE)
        except BaseException as error:
            self.failure = error

    def close(self) -> None:
        os.write(self.end, b"x")
        self.thread.join(PATIENCE)
        self.listener.close()
        os.close(self.ends)
        os.close(self.end)

    def connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(self.path)
        return connection

    def answers(self, data: bytes) -> list[Any]:
        """What the server says to some bytes, until it or the client has no more to say."""
        with self.connected() as connection:
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
            except OSError:  # it has ended the connection already
                pass
            try:
                received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
            except ConnectionResetError:
                received = b""
        return [json.loads(line) for line in received.splitlines()]

    def check(self) -> None:
        """A client that speaks the language gets an answer."""
        with self.connected() as connection:
            channel, found = Channel(connection), []
            channel.send(GREETING, QUESTION)
            while not found or found[-1].get("id") != QUESTION["id"]:
                channel.wait(PATIENCE)
                messages = channel.receive()
                assert messages is not None and self.failure is None, self.failure
                found += messages
            assert found[-1]["state"] == "refused"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with pytest.MonkeyPatch.context() as monkeypatch:

        def no_fork(*_: Any) -> Any:
            raise OSError("no processes")

        monkeypatch.setattr(compile_server, "fork_worker", no_fork)
        monkeypatch.setattr(compile_server, "load_compiler", lambda *_, **__: None)
        running = RunningServer(tmp_path_factory.mktemp("s"))
        yield running
        running.close()
        assert running.failure is None


def lines(*messages: Any) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def changed(message: dict[str, Any], value: Any, *path: str) -> dict[str, Any]:
    """A copy of a message with another value at a path; without it, if the value is ..."""
    result = json.loads(json.dumps(message))
    inner = result
    for name in path[:-1]:
        inner = inner[name]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return result


MALFORMED = {
    "deep list": b"[" * 100_000 + b"]" * 100_000 + b"\n",
    "deep object": b'{"context":' * 100_000 + b"1" + b"}" * 100_000 + b"\n",
    "deep request": lines(GREETING) + b'{"id": 1, "request": ' + b'{"a":' * 900 + b"1" + b"}" * 901 + b"\n",
    "a little too deep": lines(GREETING, changed(QUESTION, json.loads("[" * DEEPEST + "]" * DEEPEST), "request", "x")),
    "no JSON": b"hello\n",
    "no UTF-8": b'{"context": "\xff\xfe"}\n',
    "a list": b"[]\n",
    "context is a list": lines(changed(GREETING, [], "context")),
    "context of lists": lines(changed(GREETING, {"environment": [1]}, "context")),
    "path of numbers": lines(changed(GREETING, [1], "context", "path")),
    "environment of numbers": lines(changed(GREETING, {"A": 1}, "context", "environment")),
    "limit is infinite": b'{"context": ' + json.dumps(CONTEXT).encode() + b', "limit": Infinity}\n',
    "limit is 0": lines(changed(GREETING, 0, "limit")),
    "no target": lines(GREETING, changed(QUESTION, ..., "request", "target")),
    "empty target": lines(GREETING, changed(QUESTION, [], "request", "target")),
    "target is a number": lines(GREETING, changed(QUESTION, 90, "request", "target")),
    "target of lists": lines(GREETING, changed(QUESTION, [[], [], []], "request", "target")),
    "no key": lines(GREETING, changed(QUESTION, ..., "request", "entry_key")),
    "id is infinite": lines(GREETING) + b'{"id": Infinity, "request": {}}\n',
    "request is a list": lines(GREETING, changed(QUESTION, [], "request")),
    "long number": lines(GREETING) + b'{"id": ' + b"9" * 10_000 + b"}\n",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=list(MALFORMED))
def test_a_malformed_message_ends_its_connection_only(server: RunningServer, data: bytes) -> None:
    assert all(answer["state"] == "ready" for answer in server.answers(data))
    server.check()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["context", "limit", "id", "request", "target", "entry_key", "x"]), inner)
    ),
    max_leaves=12,
)
PLACES = [(GREETING, path) for path in (("context",), ("limit",), *(("context", name) for name in CONTEXT), ("x",))] + [
    (QUESTION, path) for path in (("id",), ("request",), ("request", "target"), ("request", "entry_key"), ("x",))
]


@st.composite
def conversations(draw: st.DrawFn) -> bytes:
    """Greetings and questions with something else in one place, any JSON, and any bytes."""
    sent: list[bytes] = [lines(GREETING)] * draw(st.integers(0, 1))
    for _ in range(draw(st.integers(1, 3))):
        message, path = draw(st.sampled_from(PLACES))
        sent.append(
            draw(
                st.builds(lambda value, message=message, path=path: lines(changed(message, value, *path)), VALUES)
                | st.builds(lines, VALUES)
                | st.binary(max_size=20).map(lambda data: data + b"\n")
            )
        )
    return b"".join(sent)


@given(st.lists(conversations(), min_size=1, max_size=8))
def test_a_server_survives_generated_messages(server: RunningServer, sent: list[bytes]) -> None:
    for data in sent:
        server.answers(data)
    server.check()


@pytest.mark.parametrize("message", [{}, {"module": 1}, {**QUESTION["request"], "x": []}])
def test_a_worker_refuses_what_is_no_request(message: dict[str, Any]) -> None:
    (answer,) = serve(message, Context(**CONTEXT))
    assert answer["state"] == "refused" and "TypeError" in answer["detail"]
