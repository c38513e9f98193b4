"""What a worker of the compile server does before somebody asks: it compiles as for a client."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tilework.language import parameters
from tilework.runtime.workers import compile_server
from tilework.runtime.workers.compile_worker import serve_described
from tilework.runtime.workers.line_channel import Channel
from tilework.runtime.workers.warm_compiler import KERNELS, exercises

TARGETS = {"cpu": ("cpu", "host", 1), "cuda": ("cuda", 90, 32), "hip": ("hip", "gfx942", 64)}


class Listening:
    """A client that remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def send(self, message: Any) -> None:
        self.told.append(message)


def in_a_child(function: Any) -> Any:
    """What a function returns, as JSON, in a copy of this process: workers become what their clients are."""
    here, there = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(there, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(there)
    with open(here, "rb") as stream:
        answer = json.loads(stream.read())
    os.waitpid(child, 0)
    return answer


@pytest.mark.parametrize("name", TARGETS)
def test_every_exercise_works(name: str) -> None:
    """As messages with texts, for what goes wrong is told to nobody."""

    def told() -> list[Any]:
        client = Listening()
        for request, context in exercises([TARGETS[name]]):
            assert request["source"]["fn"] == {"function": 0} and request["functions"][0]["lines"]
            serve_described(request, context, client)  # pyright: ignore[reportArgumentType]
        return [message for message in client.told if message["state"] != "working"]

    assert in_a_child(told) == [{"state": "loaded"}, {"state": "compiled"}] * len(KERNELS)


def test_plain_annotations_need_no_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would compile them in every process; those that need one are in `test_annotations.py`."""
    monkeypatch.setattr(parameters, "re", None)
    texts = {"constexpr": "constexpr", "'fp16'": "fp16", "int*": "*int", "*i32": "*i32", "const int*": "*kint"}
    assert {text: parameters.normalize_annotation(text) for text in texts} == texts


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[compile_server.Server]:
    """One whose workers only wait."""

    def fork_worker(targets: Any, is_thorough: bool) -> tuple[int, Channel]:
        here, there = socket.socketpair()
        ends.append(there)
        return subprocess.Popen(["sleep", "600"]).pid, Channel(here)

    ends: list[socket.socket] = []
    monkeypatch.setattr(compile_server, "fork_worker", fork_worker)
    monkeypatch.setattr(compile_server, "load_compiler", lambda target, all_of_it=False: None)
    with socket.socket() as listener:
        server = compile_server.Server(listener, loaded=[["cpu", "host", 1]])
        yield server
        for worker in (*server.workers, server.spare, server.coming):
            if worker is not None:
                server.bury(worker)
    for end in ends:
        end.close()


def done(server: compile_server.Server) -> compile_server.Worker:
    """The worker that was being made has done its exercises, and waits now."""
    assert server.coming is not None
    server.from_worker(worker := server.coming, [{"state": "warm"}])
    assert server.coming is None and server.spare is worker
    return worker


def test_while_a_simple_worker_waits_a_thorough_one_is_made(server: compile_server.Server) -> None:
    assert not server.prepare() and not server.prepare()
    simple = done(server)
    assert not simple.is_thorough and not server.prepare()
    assert server.spare is simple and server.coming is not None  # who asks now has one
    assert done(server).is_thorough and server.prepare() and server.coming is None


def test_who_takes_the_simple_worker_leaves_the_thorough_one(server: compile_server.Server) -> None:
    server.prepare()
    simple = done(server)
    server.prepare()
    here, there = socket.socketpair()
    with there:
        client = compile_server.Client(Channel(here))
        assert server.hire(client, is_kernel=True) is simple and server.spare is None
        assert server.hire(client, is_kernel=False) not in (simple, server.coming)
        assert done(server).is_thorough
        here.close()


def test_a_worker_that_dies_at_its_exercises_is_not_made_again_and_again(server: compile_server.Server) -> None:
    server.prepare()
    done(server)
    server.prepare()
    assert server.coming is not None
    server.from_worker(server.coming, None)
    assert server.prepare() and server.coming is None


def test_workers_that_lack_something_end(server: compile_server.Server) -> None:
    server.prepare()
    done(server)
    server.prepare()
    server.load(["cuda", 90, 32])
    assert server.spare is None and server.coming is None
    server.prepare()
    done(server)
    assert server.prepare() and server.coming is None  # there is more to load first
    server.load_the_rest()
    assert server.spare is None and not server.prepare() and not done(server).is_thorough


def is_stopped(worker: compile_server.Worker) -> bool:
    """Whether the system says so, which takes a moment."""
    for _ in range(100):
        with open(f"/proc/{worker.process}/stat") as file:
            found = file.read().rpartition(")")[2].split()[0] == "T"
        if found == worker.is_paused:
            break
        time.sleep(0.02)
    return found


@pytest.mark.parametrize(("cores", "waits"), [(1, True), (2, True), (3, False)])
def test_exercises_wait_for_work_that_needs_all_cores(server: compile_server.Server, cores: int, waits: bool) -> None:
    server.cores = cores
    server.prepare()
    simple = done(server)
    server.prepare()
    assert (coming := server.coming) is not None
    server.spare, server.workers, simple.job = None, [simple], compile_server.Job("key", [])
    server.pause_exercises()
    assert is_stopped(coming) == waits
    simple.job = None
    server.pause_exercises()
    assert not is_stopped(coming)
    simple.job = compile_server.Job("key", [])
    server.pause_exercises()
    assert done(server) is coming and not is_stopped(coming)  # it had just told so
    simple.job = None
