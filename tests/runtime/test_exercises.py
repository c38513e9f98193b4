"""What a worker of the compile server does before somebody asks: it compiles as for a client."""

import json
import os
from typing import Any

import pytest

from tilework.language import parameters
from tilework.runtime.workers.compile_worker import serve_described
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
