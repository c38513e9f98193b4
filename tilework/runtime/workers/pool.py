"""The worker processes of this program, which compile into the disk cache: those of tuning and of `AsyncCompileMode()`.

    future = compile_in_worker(key, partial(compile, source, target, options))
    future.result()                # {"state": "compiled"}: this process now finds the kernel in the disk cache

Each worker is a new interpreter (`worker.py`) with a thread here that talks to it, one request at a time. Workers
start when there is work for them, end after `IDLE_SECONDS` without any, and with the program. Neither `fork` nor
`multiprocessing` is used: a fork copies locks that other threads hold, and `multiprocessing` imports the user's
`__main__`, which may be a script without a guard.

If a worker dies, its request is tried once more in a new one. If that dies, too, the state is ``died``. A worker that
gives no answer in time (`knobs.autotuning.worker_timeout`), because it is stopped or its compiler hangs, is killed.
Whatever a worker cannot do is left to this process, so that errors and warnings appear where the user expects them.
"""

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from types import FunctionType

from tilework import knobs
from tilework.process import plugins
from tilework.process.events import is_worker
from tilework.process.forks import in_child
from tilework.runtime.compile.sources import ASTSource, IRSource
from tilework.runtime.kernel_cache.file_manager import can_write
from tilework.runtime.kernel_cache.key import CACHE_INVALIDATING, changes_stages, triton_key
from tilework.runtime.workers.sent_kernel import Message, encoded_compilation, send
from tilework.target import GPUTarget
from tilework.targets.base import find_backend
from tilework.targets.cpu.target import available_cores

IDLE_SECONDS = 60.0
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # NumPy's pools would only take memory
ATTEMPTS = 2  # a worker may be killed for a reason that is not the kernel's
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from tilework.runtime.workers.worker import main; main()"
)
PACKAGE = "tilework."
GROUPS = ("amd", "cache", "compilation", "language", "nvidia", "redis", "runtime")  # by name: tests replace the objects

Job = tuple["Future[Message]", bytes]


class Worker:
    """A worker process, and the pipes to it; it is started by the first request."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.is_closed = False

    def start(self) -> "subprocess.Popen[bytes]":
        search = [os.path.abspath(folder) for folder in sys.path if isinstance(folder, str)]
        command = [sys.executable, *["-O"] * sys.flags.optimize, "-c", START, json.dumps(search)]
        return subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**knobs.environment_without(()), **ONE_THREAD},
            start_new_session=True,  # Ctrl-C at a terminal is for the program
        )

    def request(self, request: bytes) -> Message:
        """Send a request and wait for its answer."""
        is_loaded, died = False, Message()
        for _ in range(ATTEMPTS):
            try:
                self.process = process = self.process or self.start()
            except OSError as error:  # no memory, or too many processes
                return {"state": "refused", "detail": f"no worker process: {error}"}
            if self.is_closed:  # `close` kills the process if it sees it
                self.end()
                break
            assert process.stdin is not None and process.stdout is not None
            is_loaded, limit = False, time_limit()
            with killed_after(process, limit) as is_late:
                try:
                    send(process.stdin.fileno(), request)
                    while line := receive_line(process.stdout.fileno()):
                        answer: Message = json.loads(line)
                        if answer["state"] != "loaded":
                            return answer
                        is_loaded = True
                except (OSError, ValueError):  # its end closed the pipe
                    pass
            died = {"code": self.end(), "seconds": limit if is_late.is_set() else None}
        return {"code": None, **died, "state": "died" if is_loaded else "refused", "detail": "the worker process ended"}

    def end(self) -> int | None:
        """Kill the process; return its exit code."""
        process, self.process = self.process, None
        if process is None:
            return None
        process.kill()
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        return code

    def forget(self) -> None:
        """In a forked child: the process belongs to the parent, and must see when the parent closes the pipes."""
        if (process := self.process) is not None:
            process.returncode = 0  # not a child of this process: no warning, no wait
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()


def time_limit() -> float | None:
    """Return the seconds that a worker may take for one request; None if there is no limit."""
    return knobs.autotuning.worker_timeout or None


@contextmanager
def killed_after(process: "subprocess.Popen[bytes]", seconds: float | None) -> Iterator[threading.Event]:
    """Kill a process, which may be stopped, if the block takes longer; the event is set if it was killed."""
    is_late = threading.Event()

    def kill() -> None:
        is_late.set()
        process.kill()

    timer = threading.Timer(threading.TIMEOUT_MAX if seconds is None else seconds, kill)
    timer.daemon = True
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()


def receive_line(file: int) -> bytes:
    """Return a line; an incomplete one at the end counts as none."""
    data = b""
    while not data.endswith(b"\n"):
        if not (more := os.read(file, 1 << 16)):
            return b""
        data += more
    return data


class WorkerPool:
    """Up to `size` workers, and the requests that wait for them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.workers: dict[threading.Thread, Worker] = {}
        self.idle = 0  # threads that wait for a job
        self.is_closed = False

    def running(self) -> int:
        """Return how many workers have started, and have loaded the compiler or will soon have."""
        return sum(worker.process is not None for worker in list(self.workers.values()))

    def submit(self, request: Message, size: int) -> "Future[Message]":
        """Have a worker answer a request; at most `size` workers are started for it and those that wait."""
        future: Future[Message] = Future()
        with self.lock:
            self.jobs.put((future, json.dumps(request).encode() + b"\n"))
            self.grow(size)
            if not self.workers:  # no thread can be started
                self.jobs.get()
                future.set_result({"state": "refused", "detail": "no thread for a worker"})
        return future

    def resize(self, size: int) -> None:
        """Start workers for the requests that wait, up to `size`."""
        with self.lock:
            self.grow(size)

    def grow(self, size: int) -> None:
        for _ in range(min(size - len(self.workers), self.jobs.qsize() - self.idle)):
            worker = Worker()
            thread = threading.Thread(target=self.work, args=(worker,), name="tilework worker", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # too many threads, or the interpreter ends
                return
            self.workers[thread] = worker

    def work(self, worker: Worker) -> None:
        """Give jobs to a worker until there are none for a while."""
        while (job := self.next_job()) is not None:
            future, request = job
            if not future.set_running_or_notify_cancel():
                continue
            try:
                answer = worker.request(request)
            except Exception as error:  # the caller must not wait for ever
                answer = {"state": "refused", "detail": f"{type(error).__name__}: {error}"}
            if not worker.is_closed:
                future.set_result(answer)
        worker.end()

    def next_job(self) -> Job | None:
        """Return the next job; None, and this thread is no longer counted, if none comes."""
        with self.lock:
            self.idle += 1
        try:
            job = self.jobs.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            job = None
        with self.lock:
            self.idle -= 1
            if job is None and not self.is_closed:
                with suppress(queue.Empty):
                    job = self.jobs.get_nowait()  # submitted since the timeout
            if job is None:
                self.workers.pop(threading.current_thread(), None)
        return job

    def close(self) -> None:
        """End all workers in the middle of their work. Requests get no answer: only daemon threads wait at exit."""
        with self.lock:
            self.is_closed = True
            found = dict(self.workers)
            with suppress(queue.Empty):
                while True:
                    self.jobs.get_nowait()
            for _ in found:
                self.jobs.put(None)
        for worker in found.values():
            worker.is_closed = True
            if (process := worker.process) is not None:
                process.kill()
        for thread in found:
            thread.join()


POOL: list[WorkerPool] = []


def shared_pool() -> WorkerPool:
    """Return the pool of this process."""
    if not POOL:
        POOL.append(WorkerPool())
    return POOL[0]


def end_pool() -> None:
    """End the workers with the program."""
    while POOL:
        POOL.pop().close()


def forget_pool() -> None:
    """In a forked child, which does not have the threads of the pool."""
    while POOL:
        for worker in POOL.pop().workers.values():
            worker.forget()


atexit.register(end_pool)
in_child(forget_pool)


def most_workers() -> int:
    """Return the limit of workers: the user's, or one per core that this process does not use itself."""
    is_program = not sys.executable or getattr(
        sys, "frozen", False
    )  # not an interpreter, but a program with one inside
    if os.name != "posix" or is_program or is_worker():
        return 0
    wanted = knobs.autotuning.workers
    return max(0, available_cores() - 1 if wanted is None else wanted)


# ---- requests


def compile_in_worker(key: str, compile_fn: Callable[[], object], size: int | None = None) -> "Future[Message]":
    """Have one of `size` workers do what `compile_fn` does, for the cache entry `key`; ``not sent`` if none can."""
    from tilework.runtime.compile.cached import compile  # lazily: the compiler loads when something is compiled
    from tilework.runtime.compile.stages import device_limits

    size = most_workers() if size is None else size
    if size > 0 and isinstance(compile_fn, partial) and compile_fn.func is compile:
        source, target, options = compile_fn.args
        request = request_for(key, source, target, options, device_limits.get())
        if request is not None:
            return shared_pool().submit(request, size)
    done: Future[Message] = Future()
    done.set_result({"state": "not sent", "detail": "no worker can compile it"})
    return done


def request_for(
    key: str,
    source: ASTSource | IRSource,
    target: GPUTarget,
    options: Mapping[str, object],
    limits: Mapping[str, int] | None,
) -> Message | None:
    """Return the message for a compilation whose cache entry is called `key`; None if a worker might not do the same.

    `limits` are those of the device if kernels that exceed them are to be refused.
    """
    if type(source) is not ASTSource or not can_share() or not is_unpatched(type(find_backend(target))):
        return None
    context, message = process_context(), encoded_compilation(source, target, options, key)
    if context is None or message is None:
        return None
    return {**message, "context": context, "limits": None if limits is None else dict(limits)}


def can_share() -> bool:
    """Return True if workers compile what this process would, and it finds the results: in the cache on disk."""
    is_own_manager = vars(knobs.cache).get("manager_class") is not None  # a class that only this process has
    if is_own_manager or changes_stages() or knobs.compilation.always_compile:
        return False
    return can_write(knobs.cache.dir)


def process_context() -> Message | None:
    """Return the folder, import path and environment that workers adopt; None if the folder is deleted."""
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        return None
    variables = knobs.environment_without(())
    environment = {key: text for key, text in {**variables, **settings(variables)}.items() if text is not None}
    return {
        "package": triton_key(),
        "folder": folder,
        "path": [entry for entry in sys.path if isinstance(entry, str)],
        "environment": environment,
        "as_triton": knobs.language.is_triton,
    }


def settings(variables: Mapping[str, str]) -> dict[str, str | None]:
    """Return the knobs of this process as environment variables; None for those that are not set."""
    found = {key: variables.get(key) for key in CACHE_INVALIDATING}
    for group in (getattr(knobs, name) for name in GROUPS):
        values = vars(group)
        for name, knob in {**group.knob_descriptors, **group.READ_ONCE}.items():
            found[knob.key] = knobs.toenv(values[name]) if name in values else variables.get(knob.key)
    return found | {"TRITON_INTERPRET": None}


def is_unpatched(backend: type) -> bool:
    """Return True if a new process has the same backend for a target: no plugin replaces it, no method was assigned."""
    if not all(plugin.value.startswith(PACKAGE) for plugin in plugins.PREFERRED.values()):  # those of `as_triton`
        return False
    return all(
        root_package(function.__globals__.get("__name__", "")) == root_package(cls.__module__)
        for cls in backend.__mro__
        for member in vars(cls).values()
        for function in functions_of(member)
    )


def root_package(module: str) -> str:
    return module.partition(".")[0]


def functions_of(member: object) -> list[FunctionType]:
    """Return the Python functions of a member of a class, also those that `functools.wraps` disguises."""
    if isinstance(member, property):
        return [function for part in (member.fget, member.fset, member.fdel) for function in functions_of(part)]
    found = getattr(member, "__func__", member)
    return [found] if isinstance(found, FunctionType) else []
