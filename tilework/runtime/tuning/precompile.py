"""Compile the configurations of a tuning in this process and, when that is faster, also in worker processes.

    with Precompilation(kernel, [((x, n), {"BLOCK": 64}), ((x, n), {"BLOCK": 128})]) as compiling:
        for index, launch in enumerate(launches):
            error = compiling.ready(index)          # compiled if it can be; the error if it is known that it cannot run
            ...

The first launches are compiled here. Their processor times predict what the rest takes, and the first, which includes
loading the compiler, what a worker takes to start. As many workers are used as have more to compile than to load;
this process goes on compiling from the other end of the list. On the host everything is compiled before the first
measurement that follows, because the kernels need the cores; kernels for a GPU are measured while others compile.
Inside of an `AsyncCompileMode` its executor compiles.

Errors are left for the launch to raise, except that a launch which crashes the compiler or exceeds the device is not
tried.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import suppress
from typing import Any, Self

from tilework import knobs
from tilework.errors import DoesNotFit
from tilework.runtime.compile.compiler_presence import is_compiler_loaded
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.python.jit import JITFunction
from tilework.runtime.workers.async_compile import AsyncCompileMode, CompilerDied, FutureKernel, active_mode
from tilework.runtime.workers.pool import can_share, most_workers, shared_pool

LOAD_SECONDS = 0.6  # for a worker to start and load the compiler, as long as this process does not know
COMPILE_SECONDS = 0.1  # for one compilation, as long as that is not known
TICK = 0.05  # seconds; processor times are not more precise
CROWDED = 2.0  # the cores are busy if a compilation takes so many times its processor seconds

Launch = tuple[Sequence[Any], Mapping[str, Any]]  # arguments, and keyword arguments


class Precompilation:
    """The compilations for a list of launches; see the module."""

    def __init__(self, fn: object, launches: Sequence[Launch]) -> None:
        self.kernel, rules = unwrapped(fn)
        self.errors: dict[int, Exception] = {}
        self.notes: list[str] = []  # about requests that workers could not fulfil
        self.elsewhere = 0  # how many were compiled in other processes
        self.is_loaded = is_compiler_loaded()  # before the first compilation
        self.times: list[float] = []  # processor seconds of the compilations here
        self.is_crowded = False
        self.launches: list[Launch] = []
        self.left: list[int] = []  # launches that are neither compiled nor submitted
        self.submitted: dict[int, FutureKernel] = {}
        self.mode, self.most_workers = active_mode.get(), 0
        if self.kernel is None or len(launches) < 2:
            return
        if self.mode is None:
            self.most_workers = most_workers() if may_precompile(self.kernel) else 0
        if self.mode is not None or self.most_workers > 0:
            for args, kwargs in launches:
                for extend in rules:
                    kwargs = extend(args, kwargs)
                self.launches.append((args, kwargs))
            self.left = list(range(len(launches)))
        if self.mode is not None:
            self.submit_all(self.mode)

    def ready(self, index: int) -> Exception | None:
        """Have a launch compiled, as far as that can be done without it; return the error if it is known not to run."""
        while self.is_missing(index):
            if self.submitted:
                self.advance()
            elif count := self.worker_count(len(self.left)):
                mode = AsyncCompileMode()
                mode.most_workers = count
                self.submit_all(mode)
            else:
                self.left.remove(index)
                self.compile_here(index)
        return self.errors.get(index)

    def is_missing(self, index: int) -> bool:
        """Return True if something is to be compiled before a launch may be measured."""
        if self.submitted and self.mode is None and driver.active.get_current_target().backend == "cpu":
            return True
        return index in self.left or index in self.submitted

    def submit_all(self, mode: AsyncCompileMode) -> None:
        """Submit all launches that are left; those that cannot be bound are left to the launch itself."""
        token = active_mode.set(mode)
        try:
            for index in self.left:
                with suppress(Exception):  # a mistake of the call, which the launch raises
                    kernel = self.warmup(index)
                    if isinstance(kernel, FutureKernel):
                        self.submitted[index] = kernel
        finally:
            self.left.clear()
            active_mode.reset(token)

    def advance(self) -> None:
        """Take a kernel that is finished; else compile one that no worker has begun, or wait."""
        done = [index for index, kernel in self.submitted.items() if kernel.future.done()]
        if done:
            self.take(done[0], self.submitted.pop(done[0]))
            return
        for index in reversed(self.submitted) if self.mode is None else ():
            if self.submitted[index].future.cancel():
                self.submitted.pop(index).failed()
                self.compile_here(index)
                shared_pool().resize(self.worker_count(len(self.submitted)))
                return
        wait([kernel.future for kernel in self.submitted.values()], return_when=FIRST_COMPLETED)

    def take(self, index: int, kernel: FutureKernel) -> None:
        """Put a finished kernel into the memory cache, or note why there is none."""
        answer = kernel.future.result() if self.mode is None else {"state": "compiled"}
        state = answer["state"]
        self.elsewhere += self.mode is None and state == "compiled"
        if state in ("refused", "failed", "died"):
            self.notes.append(f"{state}: {answer['detail'].partition(os.linesep)[0]}")
        if state in ("refused", "not sent"):
            self.compile_here(index)
        elif state != "failed":
            try:
                kernel.result()
            except (CompilerDied, DoesNotFit) as error:
                self.errors[index] = error
            except Exception:
                pass  # the launch raises it again, where the user sees which one it is

    def compile_here(self, index: int) -> None:
        """Compile for one launch in this process."""
        start, used = time.perf_counter(), processor_seconds()
        try:
            self.warmup(index)
        except DoesNotFit as error:
            self.errors[index] = error
        except Exception:
            return  # as in `take`
        self.times.append(processor_seconds() - used)
        self.is_crowded = time.perf_counter() - start > CROWDED * (self.times[-1] + TICK)

    def warmup(self, index: int) -> Any:
        assert self.kernel is not None
        args, kwargs = self.launches[index]
        return self.kernel.warmup(*args, grid=(1,), **kwargs)

    def worker_count(self, count: int) -> int:
        """Return how many workers finish `count` compilations sooner: each must have more to compile than to load."""
        one, loading = self.costs()
        running = shared_pool().running() if count * one > COMPILE_SECONDS else 0
        new = 0 if self.is_crowded else int(count * one / loading) - 1
        return min(self.most_workers, count - 1, max(running, new))

    def costs(self) -> tuple[float, float]:
        """Return the seconds of one compilation, and of loading the compiler, which the first time may include."""
        if self.times and self.is_loaded:
            return self.times[-1], LOAD_SECONDS
        if len(self.times) > 1:
            return self.times[-1], max(self.times[0] - self.times[-1], TICK)
        return COMPILE_SECONDS, LOAD_SECONDS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel the compilations that have not begun."""
        for kernel in self.submitted.values():
            if kernel.future.cancel():
                kernel.failed()


def processor_seconds() -> float:
    """Return what this process and the programs that it ran, such as assemblers, have used."""
    used = os.times()
    return time.process_time() + used.children_user + used.children_system


def unwrapped(fn: Any) -> tuple[JITFunction | None, list[Callable[..., Any]]]:
    """Return the kernel inside of heuristics, and their functions of the arguments; None if it is not compiled."""
    rules: list[Callable[..., Any]] = []
    while not isinstance(fn, JITFunction):
        if not hasattr(fn, "fn") or hasattr(fn, "configs"):
            return None, []
        if hasattr(fn, "extend"):
            rules.append(fn.extend)
        fn = fn.fn
    return fn, rules


def may_precompile(kernel: JITFunction) -> bool:
    """Return False while hooks watch launches and compilations: they expect one after the other."""
    runtime = knobs.runtime
    hooks = (runtime.jit_cache_hook, kernel.cache_hook, runtime.jit_post_compile_hook, kernel.compiled_hook)
    return not kernel.pre_run_hooks and all(hook is None for hook in hooks) and can_share()
