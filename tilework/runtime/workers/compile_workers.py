"""Compile the candidates of the autotuner in other processes, several at a time.

LLVM's bindings hold one lock per process, so threads would wait for each other; and a compiler that crashes takes only
its own process with it. Workers fill the disk cache; the launch that follows finds the product there. Whatever cannot
be done in a worker (see `compile_requests`) is left for the launch to do.

    compile_candidates(kernel, [((x, n), {"BLOCK": 64}), ((x, n), {"BLOCK": 128})])   # -> {1: CompilerDied(...)}

Workers are new interpreters, not forks: a process with threads or a GPU context cannot be forked safely, and
`multiprocessing` would run the user's script again. They are started when first needed, used again, and end with this
process, however it ends.
"""

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

from tilework import knobs
from tilework.errors import TritonError
from tilework.runtime.launch.jit import JITFunction
from tilework.runtime.workers import async_compile
from tilework.runtime.workers.compile_requests import Request, request_for

is_worker = False  # set in worker processes, which have no workers
START = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from tilework.runtime.workers.compile_worker import main
main(int(sys.argv[1]))
"""
ATTEMPTS = 2  # a worker may be killed for reasons that are not the kernel's: try again once
GOODBYE_SECONDS = 1.0
NEWLINE = "\n"

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


@dataclass(frozen=True)
class Outcome:
    """What became of a request: "compiled", "refused", "failed", or "died" with the exit code."""

    state: str
    detail: str = ""
    output: str = ""
    code: int | None = None


def compile_candidates(fn: Any, launches: Sequence[Launch]) -> dict[int, CompilerDied]:
    """Compile what these launches of `fn` need and the caches lack; the launches that the compiler did not survive."""
    kernel = fn
    while not isinstance(kernel, JITFunction):
        if not hasattr(kernel, "fn") or hasattr(kernel, "configs"):
            return {}
        if hasattr(kernel, "extend"):
            launches = [(args, kernel.extend(args, kwargs)) for args, kwargs in launches]
        kernel = kernel.fn
    limit = worker_limit()
    if not limit or not may_send(kernel):
        return {}
    requests: dict[int, Request] = {}
    for index, (args, kwargs) in enumerate(launches):
        if (request := request_for(kernel, args, kwargs)) is not None:
            requests[index] = request
    if not requests:
        return {}
    progress = Progress(kernel.__name__, len(requests))
    outcomes: dict[int, Outcome] = {}
    try:
        the_pool().run(requests, limit, outcomes, progress.step)
    finally:
        progress.end(outcomes)
    for outcome in outcomes.values():
        sys.stdout.write(outcome.output)
    return {index: CompilerDied(outcome.code) for index, outcome in outcomes.items() if outcome.state == "died"}


def worker_limit() -> int:
    """How many workers may run; none inside a worker."""
    if is_worker or not sys.executable:
        return 0
    wanted = getattr(knobs.autotuning, "workers", None)
    return available_cores() if wanted is None else wanted


def available_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def may_send(kernel: JITFunction) -> bool:
    """Whether a worker would do what this process would: hooks and managers are objects of this process only.

    Without a disk cache its work would be lost.
    """
    runtime, cache = knobs.runtime, vars(knobs.cache)
    hooks = (runtime.jit_cache_hook, kernel.cache_hook, runtime.add_stages_inspection_hook, cache.get("manager_class"))
    if any(hook is not None for hook in hooks) or knobs.compilation.always_compile:
        return False
    return async_compile.active_mode.get() is None and can_write(knobs.cache.dir)


def can_write(folder: str) -> bool:
    """Whether files can be made in a folder, which may have to be made first."""
    while not os.path.exists(folder):
        parent = os.path.dirname(folder)
        if parent == folder:
            return False
        folder = parent
    return os.path.isdir(folder) and os.access(folder, os.W_OK)


class Progress:
    """``compiling matmul: 3/12``, rewritten in place on a terminal; one line at the end elsewhere, if asked for."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total, self.done = name, total, 0
        self.start = time.perf_counter()
        self.is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self.step(0)

    def step(self, count: int = 1) -> None:
        """`count` more are done."""
        self.done += count
        if self.is_terminal:
            sys.stderr.write(f"\rcompiling {self.name}: {self.done}/{self.total}")
            sys.stderr.flush()

    def end(self, outcomes: Mapping[int, Outcome]) -> None:
        """Remove the line; if asked for, tell how it went and why something was left to this process."""
        if self.is_terminal:
            sys.stderr.write("\r\x1b[K")
        if knobs.autotuning.print:
            seconds = time.perf_counter() - self.start
            others = [outcome for outcome in outcomes.values() if outcome.state != "compiled"]
            count = len(outcomes) - len(others)
            lines = [f"compiled {count} of {self.total} configurations of {self.name} in {seconds:.1f} s"]
            lines += [f"  {outcome.state}: {outcome.detail.partition(NEWLINE)[0]}" for outcome in others]
            sys.stderr.write("\n".join([*lines, ""]))


class Worker:
    """One worker process, and the conversation with it."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", START, str(os.getpid()), json.dumps(sys.path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def compile(self, request: Request) -> Outcome:
        """Send one request and wait for its end."""
        loaded = False
        try:
            requests, answers = pipes(self.process)
            requests.write(json.dumps(asdict(request)).encode() + b"\n")
            requests.flush()
            while line := answers.readline():
                answer = json.loads(line)
                if answer["state"] != "loaded":
                    return Outcome(**answer)
                loaded = True
        except BrokenPipeError:
            loaded = False
        code = self.process.wait()
        return Outcome("died" if loaded else "refused", "the worker ended", code=code)

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def stop(self) -> None:
        """Let it end by itself; if it does not, end it."""
        for pipe in pipes(self.process):
            try:
                pipe.close()
            except BrokenPipeError:  # it is gone already, and what was not flushed with it
                continue
        try:
            self.process.wait(GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def pipes(process: "subprocess.Popen[bytes]") -> tuple[BinaryIO, BinaryIO]:
    """Its input and output."""
    assert process.stdin is not None and process.stdout is not None
    return process.stdin, process.stdout  # pyright: ignore[reportReturnType]


class Pool:
    """Workers of one process, idle between calls of `run`."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self.idle: list[Worker] = []
        self.busy: set[Worker] = set()
        self.lock = threading.Lock()

    def run(
        self, requests: Mapping[int, Request], limit: int, outcomes: dict[int, Outcome], step: Callable[[], None]
    ) -> None:
        """Do all requests, at most `limit` at a time; after each, its outcome is in `outcomes`."""
        jobs: queue.SimpleQueue[tuple[int, Request]] = queue.SimpleQueue()
        for job in requests.items():
            jobs.put(job)

        def serve() -> None:
            while True:
                try:
                    index, request = jobs.get_nowait()
                except queue.Empty:
                    return
                outcome = self.compile(request)
                with self.lock:
                    outcomes[index] = outcome
                    step()

        threads = [threading.Thread(target=serve, daemon=True) for _ in range(min(limit, len(requests)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def compile(self, request: Request) -> Outcome:
        """Do one request, with a fresh worker if the first one dies."""
        outcome = Outcome("refused", "not tried")
        for attempt in range(ATTEMPTS):
            try:
                worker = self.take(fresh=attempt > 0)
            except OSError as error:
                return Outcome("refused", f"no worker: {error}")
            try:
                outcome = worker.compile(request)
            finally:
                self.give_back(worker)
            if worker.is_alive():
                break
        return outcome

    def take(self, fresh: bool = False) -> Worker:
        """An idle worker that lives, or a new one."""
        with self.lock:
            for dead in [worker for worker in self.idle if not worker.is_alive()]:
                self.idle.remove(dead)
                dead.stop()
            worker = self.idle.pop() if self.idle and not fresh else Worker()
            self.busy.add(worker)
            return worker

    def give_back(self, worker: Worker) -> None:
        """The worker has answered, or is dead."""
        with self.lock:
            self.busy.discard(worker)
            self.idle.append(worker)

    def close(self) -> None:
        """End all workers; those that are at work are not waited for."""
        if self.owner != os.getpid():  # after a fork: they are the parent's
            return
        with self.lock:
            for worker in self.busy:
                worker.process.kill()
            for worker in [*self.busy, *self.idle]:
                worker.stop()
            self.busy, self.idle = set(), []


_pool: Pool | None = None


def the_pool() -> Pool:
    """The pool of this process, which a forked child does not share."""
    global _pool
    if _pool is None or _pool.owner != os.getpid():
        _pool = Pool()
        atexit.register(_pool.close)
    return _pool
