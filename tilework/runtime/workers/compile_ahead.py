"""Compile what several launches will need, here and, when that is faster, in the compile server.

    with CompileAhead(kernel, [((x, n), {"BLOCK": 64}), ((x, n), {"BLOCK": 128})]) as ahead:
        for index, launch in enumerate(launches):
            error = ahead.ready(index)              # compiled, if it can be; the error if it is known that it cannot run
            ...

The first launches are compiled in this process. Their times say what the rest would take, and the first, which contains loading
the compiler, what starting a server takes; while that starts, and while its workers import what a kernel needs (of torch that
takes seconds, in each of them), this process goes on compiling. Only for
many launches a server is started before anything is known. Kernels for
the host are all compiled when `ready` returns: what is measured on these cores shall have them. Those for a GPU are measured
while others are compiled.

Servers fill the disk cache, from which a launch takes the kernel. So whatever becomes of a server, nothing is lost: a request
without an answer goes to the next server, once, and then stays here. What cannot be done elsewhere (see `compile_requests`) is
left for the launch to do, errors are left for it to raise.
"""

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tilework import knobs
from tilework.errors import DoesNotFit, TritonError
from tilework.runtime.compile.compiler_presence import is_compiler_loaded
from tilework.runtime.kernel_cache.files import can_write
from tilework.runtime.launch.python.jit import JITFunction
from tilework.runtime.workers import async_compile, server_place
from tilework.runtime.workers.compile_requests import Request, request_for
from tilework.runtime.workers.line_channel import Channel, Message
from tilework.runtime.workers.process_context import context_of_process
from tilework.targets.cpu.processor import available_cores

ATTEMPTS = 3  # to find a server that answers
FORK_SECONDS = 0.1  # what a worker takes to begin, when a server is there
START_SECONDS = 0.3  # what a server takes above loading the compiler
LOAD_SECONDS = 1.0  # what loading the compiler takes, as long as this process does not know
LEAST_SECONDS = 0.1  # what a compilation takes, as long as that is not known
TICK = 0.05  # seconds; processor times are not known better
CROWDED = 2.0  # a compilation that takes so many times its processor seconds has found the cores busy
PATIENCE = 60.0  # seconds without any answer, after which a server counts as dead

Launch = tuple[Sequence[Any], Mapping[str, Any]]


class CompilerDied(TritonError):
    """The compiler's process crashed on a kernel."""

    def __init__(self, code: int | None = None) -> None:
        self.code = code
        super().__init__(code)

    def __str__(self) -> str:
        how = (
            f"was killed by signal {-self.code}"
            if self.code is not None and self.code < 0
            else f"ended with {self.code}"
        )
        return f"the process that compiled this configuration {how}"


class CompileAhead:
    """See the module."""

    def __init__(self, fn: Any, launches: Iterable[Launch]) -> None:
        self.kernel, rules = unwrapped(fn)
        self.left: dict[int, Request] = {}
        self.errors: dict[int, Exception] = {}
        self.notes: list[str] = []
        self.elsewhere = 0
        self.is_loaded = False  # the compiler, before the first compilation
        self.times: list[float] = []  # processor seconds of each compilation here
        self.is_crowded = False  # whether others have the cores that a server would use
        self.server: Server | None = None
        self.attempts = ATTEMPTS
        self.limit = worker_limit() if self.kernel is not None and may_send(self.kernel) else 0
        self.launches: list[Launch] = list(launches) if self.limit else []
        for extend in rules:
            self.launches = [(args, extend(args, kwargs)) for args, kwargs in self.launches]
        if self.kernel is not None and self.launches:
            self.is_loaded = is_compiler_loaded()
            found = {index: request_for(self.kernel, *launch) for index, launch in enumerate(self.launches)}
            self.left = {index: request for index, request in found.items() if request is not None}

    def ready(self, index: int) -> Exception | None:
        """Have a launch compiled, as far as that can be done without it; the error if it is known not to work."""
        while self.unfinished(index):
            if self.server is not None and self.server.is_ready():
                self.collect()
            else:
                self.consider()
            if (todo := self.unfinished(index)) and (self.server is None or not self.server.has_answered):
                self.compile_here(
                    todo[0] if self.server is None else [*self.left][-1]
                )  # the server begins with the first
        return self.errors.get(index)

    def unfinished(self, index: int) -> list[int]:
        """What must be compiled before a launch may run."""
        if self.server is not None and self.server.is_here:
            return list(self.left)
        return [index] if index in self.left else []

    def compile_here(self, index: int) -> None:
        """Compile for one launch in this process."""
        assert self.kernel is not None
        del self.left[index]
        args, kwargs = self.launches[index]
        start, used = time.perf_counter(), processor_seconds()
        try:
            self.kernel.warmup(*args, grid=(1,), **kwargs)
        except DoesNotFit as error:
            self.errors[index] = error
        except Exception:
            return  # the launch meets it again, where the user can see which one it is
        self.times.append(processor_seconds() - used)
        self.is_crowded = time.perf_counter() - start > CROWDED * (self.times[-1] + TICK)

    def consider(self) -> None:
        """Ask for a server if it would finish the rest before this process does."""
        if self.server is not None or not self.left or not self.attempts:
            return
        one, loading = self.costs()
        gain = one * (len(self.left) - len(self.left) / min(len(self.left), self.limit))
        path = server_place.socket_path() if gain > FORK_SECONDS else None
        if path is None:
            return
        channel = server_place.connect(path)
        if channel is None and (self.is_crowded or gain < loading + START_SECONDS):
            return
        self.attempts -= 1
        self.server = Server(path, channel, self.left, self.limit)

    def costs(self) -> tuple[float, float]:
        """The seconds of one compilation, and of loading the compiler, which the first time may contain."""
        if self.times and self.is_loaded:
            return self.times[-1], LOAD_SECONDS
        if len(self.times) > 1:
            return self.times[-1], max(self.times[0] - self.times[-1], 0)
        return LEAST_SECONDS, LOAD_SECONDS

    def collect(self) -> None:
        """Wait for some answers; without a server, what it has not answered is this process's again."""
        assert self.server is not None
        answers = self.server.answers()
        for answer in answers or ():
            self.take(answer)
        if answers is None or not self.left:
            self.close()

    def take(self, answer: Message) -> None:
        """Note what became of a request, and print what was printed there."""
        index, state = answer["id"], answer["state"]
        self.left.pop(index, None)
        self.elsewhere += state == "compiled"
        if state == "died":
            self.errors[index] = CompilerDied(answer.get("code"))
        elif state == "pruned":
            self.errors[index] = DoesNotFit(*answer["needs"])
        if state not in ("compiled", "pruned"):
            self.notes.append(f"{state}: {answer.get('detail', '').partition(os.linesep)[0]}")
        for stream, text in ((sys.stdout, answer.get("output")), (sys.stderr, answer.get("errors"))):
            if text and stream is not None:
                stream.write(text)

    def __enter__(self) -> "CompileAhead":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Leave the server, which drops what it has not begun."""
        if self.server is not None:
            self.server.close()
            self.server = None


class Server:
    """The server as one who asks sees it: starting, ready, or gone."""

    def __init__(self, path: str, channel: Channel | None, requests: Mapping[int, Request], limit: int) -> None:
        self.path, self.channel, self.requests, self.limit = path, channel, requests, limit
        self.target = next(iter(requests.values())).target
        self.is_here = self.target[0] == "cpu"  # what it works on are the cores that the kernels will run on
        self.since = time.monotonic()
        self.greeted = self.has_answered = False
        self.gone = channel is None and not server_place.start(path, self.target)

    def is_ready(self) -> bool:
        """Whether there will be answers; what is asked is sent as soon as the server says so."""
        if self.channel is None and not self.gone:
            self.channel = server_place.connect(self.path)
            self.gone = time.monotonic() - self.since > PATIENCE
        if self.channel is not None and not self.greeted and not self.gone:
            messages = self.channel.receive()
            self.gone = messages is None
            if messages:
                self.ask(self.channel)
        return self.greeted or self.gone

    def ask(self, channel: Channel) -> None:
        """Send everything."""
        self.greeted, self.since = True, time.monotonic()
        context = context_of_process()
        if context is None:
            self.gone = True
            return
        channel.send({"context": vars(context), "limit": self.limit})
        channel.send(*({"id": index, "request": asdict(request)} for index, request in self.requests.items()))

    def answers(self) -> list[Message] | None:
        """Wait for answers, for a second at most; None when there will be none."""
        if self.gone or self.channel is None:
            return None
        self.channel.wait(min(1.0, PATIENCE))
        found = self.channel.receive()
        if found:
            self.since = time.monotonic()
        return None if time.monotonic() - self.since > PATIENCE else found

    def close(self) -> None:
        if self.channel is not None:
            self.channel.close()


def processor_seconds() -> float:
    """What this process and the programs that it ran, such as assemblers, have used."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def unwrapped(fn: Any) -> tuple[JITFunction | None, list[Callable[..., Any]]]:
    """The kernel inside heuristics, and what those do to the arguments of a launch; None for what cannot be compiled ahead."""
    rules: list[Callable[..., Any]] = []
    while not isinstance(fn, JITFunction):
        if not hasattr(fn, "fn") or hasattr(fn, "configs"):
            return None, []
        if hasattr(fn, "extend"):
            rules.append(fn.extend)
        fn = fn.fn
    return fn, rules


def worker_limit() -> int:
    """How many processes may compile for this one; none inside a worker."""
    wanted = knobs.autotuning.workers
    return available_cores() if wanted is None else wanted


def may_send(kernel: JITFunction) -> bool:
    """Whether a worker would do what this process would: hooks and managers are objects of this process only.

    Without a disk cache its work would be lost.
    """
    runtime, cache = knobs.runtime, vars(knobs.cache)
    hooks = (runtime.jit_cache_hook, kernel.cache_hook, runtime.jit_post_compile_hook, kernel.compiled_hook)
    others = (runtime.add_stages_inspection_hook, cache.get("manager_class"))
    if any(hook is not None for hook in (*hooks, *others)) or kernel.pre_run_hooks or knobs.compilation.always_compile:
        return False
    return async_compile.active_mode.get() is None and can_write(knobs.cache.dir)
