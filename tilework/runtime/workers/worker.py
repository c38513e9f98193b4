"""The worker process of `pool.py`: it reads compilations from standard input, and compiles each into the disk cache.

One JSON message per line in both directions. For each request the worker answers ``{"state": "loaded"}`` when it has
the kernel (if it dies after that the compiler has crashed), and then ``compiled``, ``refused`` (the kernel cannot be
repeated here), ``failed`` (the compiler raised an error, which the other process will raise again) or ``pruned`` (it
exceeds the limits of the device). What the compiler prints is a part of the answer. A request for an estimate is
compiled up to TTGIR, and answered by the milliseconds that the cost model finds.

The process ends when its standard input does, or its parent: also in the middle of a compilation.
"""

import importlib
import json
import os
import queue
import select
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from tilework import knobs
from tilework.errors import DoesNotFit
from tilework.process.events import WORKER
from tilework.process.output import bytes_in
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.key import triton_key
from tilework.runtime.workers.sent_kernel import Message, Refused, decoded_compilation, send
from tilework.target import GPUTarget

PARENT_CHECK_SECONDS = 1.0
CHUNK = 1 << 16


def main() -> None:
    """Serve until the parent closes standard input."""
    requests, replies = os.dup(0), os.dup(1)
    with open(os.devnull, "r+b") as nothing:
        for stream in range(3):
            os.dup2(nothing.fileno(), stream)
    WORKER[:] = [os.getpid()]
    waiting: queue.SimpleQueue[Message] = queue.SimpleQueue()
    threading.Thread(target=read_requests, args=(requests, waiting), daemon=True).start()
    while True:
        for answer in serve(waiting.get()):
            send(replies, json.dumps(answer).encode() + b"\n")


def read_requests(file: int, waiting: "queue.SimpleQueue[Message]") -> None:
    """Queue requests, and end the process at the end of the input: the parent has ended, or needs no worker."""
    parent, arrived = os.getppid(), b""
    while True:
        is_ready = bool(select.select([file], (), (), PARENT_CHECK_SECONDS)[0])
        data = os.read(file, CHUNK) if is_ready else b""
        if (is_ready and not data) or os.getppid() != parent:
            os._exit(0)  # nothing to clean up: entries of the cache are written in one step
        *lines, arrived = (arrived + data).split(b"\n")
        for line in lines:
            waiting.put(json.loads(line))


def serve(request: Message) -> Iterator[Message]:
    """Perform a request; yield the answers."""
    is_loaded = False
    printed: dict[str, str] = {}
    try:
        with captured({}):  # what a user's module prints was printed when the parent imported it
            adopt(request["context"], GPUTarget(*request["target"]), request["limits"])
            source, target, options = decoded_compilation(request)
        is_loaded = True
        yield {"state": "loaded"}
        # lazily: the compiler loads when something is compiled
        from tilework.runtime.compile.cached import compile
        from tilework.runtime.compile.stages import device_limits, estimated

        device_limits.set(request["limits"])
        if (launch := request.get("estimate")) is not None:
            with captured({}):
                found = estimated(source, target, options, launch["arguments"], tuple(launch["grid"]), launch["memory"])
            yield {"state": "estimated", "milliseconds": found}
            return
        with captured(printed):
            kernel = compile(source, target, options)
        if kernel.hash != request["entry_key"]:
            raise Refused("the cache key differs in the worker")
        yield {"state": "compiled", **printed}
    except Refused as refusal:
        yield {"state": "refused", "detail": str(refusal)}
    except DoesNotFit as error:
        yield {"state": "pruned", "needs": [error.required, error.limit, error.name]}
    except (Exception, SystemExit) as error:  # the parent compiles it, too, and raises the error for the user
        yield {"state": "failed" if is_loaded else "refused", "detail": f"{type(error).__name__}: {error}"}


def adopt(context: Message, target: GPUTarget, limits: dict[str, int] | None) -> None:
    """Take over the folder, import path, environment and target of the parent."""
    if triton_key() != context["package"]:
        raise Refused("the files of tilework changed after the parent process was started")
    os.chdir(context["folder"])
    sys.path[:] = context["path"]
    knobs.replace_environment({**context["environment"], "TILEWORK_COMPILE_WORKERS": "0"})  # workers start none
    if context["as_triton"]:
        importlib.import_module("tilework.as_triton").as_triton()
    driver.set_active(TargetOnly(target, limits or {}))


class TargetOnly:
    """A driver that knows the target to compile for and touches no GPU."""

    def __init__(self, target: GPUTarget, properties: dict[str, int]) -> None:
        self.target = target
        self.utils = SimpleNamespace(get_device_properties=lambda device: dict(properties))

    def get_current_target(self) -> GPUTarget:
        return self.target

    def get_current_device(self) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch  # lazily: torch is optional

        return torch.device(self.target.backend, 0) if self.target.backend != "cpu" else torch.device("cpu")


@contextmanager
def captured(printed: dict[str, str]) -> Iterator[None]:
    """Capture standard output and error, of Python and of libraries: ``{"output": ..., "errors": ...}``."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, open(os.devnull, "wb") as nothing:
        os.dup2(output.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        try:
            yield
        finally:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
            for stream, name, file in ((1, "output", output), (2, "errors", errors)):
                os.dup2(nothing.fileno(), stream)
                printed[name] = bytes_in(file).decode(errors="replace")
