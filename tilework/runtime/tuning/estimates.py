"""Estimate the milliseconds of configurations by the cost model, from their TTGIR, for `search.py`.

    estimates = Estimates(kernel, launches, grids)         grids: the sizes of each launch, None if not known
    estimates.of([0, 5])                                   {0: 0.21, 5: inf}

Each estimate needs the first half of a compilation, which runs in worker processes if they are allowed. The estimate of
a configuration that cannot fit on the device is infinite. Unknown ones are left out: of a launch that cannot be bound,
and of every launch on a target without measured rates, such as the CPU.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from tilework.errors import DoesNotFit
from tilework.runtime.compile.sources import ASTSource
from tilework.runtime.compile.stages import device_limits, estimated
from tilework.runtime.tuning.precompile import Launch, may_precompile, unwrapped
from tilework.runtime.workers.async_compile import AsyncCompileMode, FutureKernel, active_mode
from tilework.runtime.workers.pool import most_workers, request_for, shared_pool
from tilework.target import GPUTarget
from tilework.targets.base import find_backend

Grid = tuple[int, ...]
Compilation = tuple[str, ASTSource, GPUTarget, Mapping[str, object]]  # key, source, target, options


class Estimates:
    """The cost model's estimates for the launches of a tuning; see the module docstring."""

    def __init__(self, fn: object, launches: Sequence[Launch], grids: Sequence[Grid | None]) -> None:
        self.kernel, self.rules = unwrapped(fn)
        self.launches, self.grids = launches, grids
        self.is_possible = self.kernel is not None and active_mode.get() is None and may_precompile(self.kernel)
        self.count = 0  # of compilations to TTGIR
        self.memory = sum(map(bytes_of, launches[0][0])) if launches else 0

    def of(self, indices: Sequence[int]) -> dict[int, float]:
        """Return the estimates of the configurations at some indices, as far as there are any."""
        found: dict[int, float] = {}
        waiting: dict[int, Future[Any]] = {}
        for index in indices:
            if not self.is_possible:
                break
            if (grid := self.grids[index]) is None or (compilation := self.compilation(index)) is None:
                continue
            key, source, target, options = compilation
            self.count += 1
            request, size = None, min(most_workers(), len(indices) - 1)
            if size > 0 and found:  # the first is estimated here: perhaps there is no cost model
                request = request_for(key, source, target, options, device_limits.get())
            if request is not None:
                cost = {"arguments": self.integers(index), "grid": grid, "memory": self.memory}
                waiting[index] = shared_pool().submit({**request, "estimate": cost}, size)
                continue
            value = self.here(source, target, options, index, grid)
            if value is not None:
                found[index] = value
            elif not found:
                self.is_possible = False
        for index, future in waiting.items():
            answer = future.result()
            if answer["state"] == "pruned":
                found[index] = math.inf
            elif answer["state"] == "estimated" and answer["milliseconds"] is not None:
                found[index] = answer["milliseconds"]
        return found

    def here(
        self, source: ASTSource, target: GPUTarget, options: Mapping[str, object], index: int, grid: Grid
    ) -> float | None:
        """Return an estimate made in this process; None if there is none."""
        try:
            return estimated(source, target, options, self.integers(index), grid, self.memory)
        except DoesNotFit:
            return math.inf
        except Exception:  # the launch raises it again, where the user sees which one it is
            return math.nan if self.count > 1 else None

    def compilation(self, index: int) -> Compilation | None:
        """Return the compilation that a launch would need; None if the launch is a mistake or needs none."""
        assert self.kernel is not None
        args, kwargs = self.launches[index]
        for extend in self.rules:
            kwargs = extend(args, kwargs)
        token = active_mode.set(mode := Noted())
        try:
            kernel = self.kernel.warmup(*args, grid=(1,), **kwargs)
            if isinstance(kernel, FutureKernel):
                kernel.failed()  # it is not in the kernel's memory
        except Exception:  # a mistake of the call, which the launch raises
            return None
        finally:
            active_mode.reset(token)
        return mode.noted

    def integers(self, index: int) -> dict[str, int]:
        """Return the integer arguments of a launch by name."""
        assert self.kernel is not None
        args, kwargs = self.launches[index]
        named = {**dict(zip(self.kernel.arg_names, args, strict=False)), **kwargs}
        return {name: value for name, value in named.items() if type(value) is int}


def bytes_of(argument: object) -> int:
    """Return the size of an array in bytes; for a descriptor, that of its base."""
    size = getattr(getattr(argument, "base", None) if hasattr(argument, "block_shape") else argument, "nbytes", 0)
    return size if type(size) is int else 0


class Noted(AsyncCompileMode):
    """A mode that notes the compilation which a launch needs, and compiles nothing."""

    noted: Compilation | None = None

    def submit(self, key: str, compile_fn: Callable[[], object], finalize_fn: Callable[[Any], None]) -> FutureKernel:
        assert isinstance(compile_fn, partial), "what compiles is a call of `compile`"
        source, target, options = compile_fn.args
        if type(source) is ASTSource and "ttgir" in find_backend(target).stages(
            find_backend(target).parse_options(options)
        ):
            self.noted = key, source, target, options
        return FutureKernel(finalize_fn, Future())


def has_ttgir(target: GPUTarget, options: Mapping[str, object]) -> bool:
    backend = find_backend(target)
    return "ttgir" in backend.stages(backend.parse_options(options))
