"""`make bench-launch`: what `kernel[grid](six arguments)` costs above the kernel's own work on the CPU, warm.

On the Python path the launcher is replaced by one that does nothing, so that only binding, specialising, looking up and
calling are left. Where kernels run as machine code there are rows for the native launcher, with a kernel that does
nothing. Beside it: what Python itself takes for a call with the same arguments, and for the address of an array.
"""

import importlib
import importlib.util
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tilework
import tilework.language as tl
from tilework.targets.cpu.pipeline import device

ROUNDS, CALLS = 15, 2000
MANY = (20, 2000)
BUDGET_US, NATIVE_BUDGET_US = 15.0, 1.0


@tilework.jit
def empty(x, y, z, a, b, c, BLOCK: tl.constexpr):
    pass


@tilework.jit
def native_empty(x, y, z, a, b, c, BLOCK: tl.constexpr):
    pass


class NoWork:
    """A launcher that only counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *args: Any) -> None:
        self.calls += 1

    @classmethod
    def instead_of_launching(cls, kernel: Any) -> "NoWork":
        """Put one in the place of a compiled kernel's launcher."""
        kernel._loaded.launch = nothing = cls()
        assert kernel.launcher is nothing, "a kernel's launcher is kept elsewhere now: this benchmark must follow"
        return nothing


def per_call(call: Callable[[], Any]) -> float:
    """Median microseconds of one call."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS)
    return statistics.median(times) * 1e6


def many_specialisations(count: int, arrays: list[np.ndarray]) -> float:
    """Microseconds of a launch of one of `count` specialisations, which share the code of the first."""
    kernel = tilework.jit(native_empty.fn)
    first = kernel[(1,)](*arrays, BLOCK=0)
    kernel.compile_for = lambda specialization, target, backend, kernels, warmup: kernels.setdefault(
        specialization.key, first
    )
    launch = kernel[(1,)]
    for _ in range(2):
        for number in range(count):
            launch(*arrays, BLOCK=number)
    numbers = itertools.cycle(range(count))
    step = per_call(lambda: next(numbers))
    return per_call(lambda: launch(*arrays, BLOCK=next(numbers))) - step


def native_rows() -> list[tuple[str, float, float | None]]:
    """Launches of a kernel in machine code, whose body is empty; the budget is above an empty native call."""
    arrays = [np.zeros(1024, "f4") for _ in range(6)]
    six = [arrays]
    names = ["native: six arrays"]
    if importlib.util.find_spec("torch") is not None:
        torch = importlib.import_module("torch")
        six.append([torch.zeros(1024) for _ in range(6)])
        names.append("native: six torch tensors")
    launch = native_empty[(1,)]
    rows: list[tuple[str, float, float | None]] = []
    for name, args in zip(names, six, strict=True):
        launch(*args, BLOCK=64)
        rows.append((name, per_call(lambda args=args: launch(*args, BLOCK=64)), NATIVE_BUDGET_US))
    launch(*arrays[:3], 1024, 17, 0.5, BLOCK=64)
    numbers = per_call(lambda: launch(*arrays[:3], 1024, 17, 0.5, BLOCK=64))
    rows.append(("native: three arrays, three numbers", numbers, NATIVE_BUDGET_US))
    rows.append(("native: the same with kernel[grid]", per_call(lambda: native_empty[(1,)](*arrays, BLOCK=64)), None))
    bound, first = native_empty.bind(*arrays, BLOCK=64, grid=(1,)), arrays[0]
    bound()
    rows.append(("native: bound, nothing changes", per_call(bound), NATIVE_BUDGET_US))
    rows.append(("native: bound, two arguments change", per_call(lambda: bound(first, first)), NATIVE_BUDGET_US))
    rows.append(("native: bound, two change by name", per_call(lambda: bound(x=first, c=first)), NATIVE_BUDGET_US))
    for count in MANY:
        rows.append((f"native: {count} specialisations in turn", many_specialisations(count, arrays), NATIVE_BUDGET_US))
    rows.append(("an empty native call, len(())", per_call(lambda: len(())), None))
    return rows


def main() -> None:
    arrays = [np.zeros(1024, "f4") for _ in range(3)]
    six = arrays * 2
    mixed = NoWork.instead_of_launching(empty.run(*arrays, 1024, 17, 0.5, BLOCK=64, grid=(1,)))
    plain_arrays = NoWork.instead_of_launching(empty.run(*six, BLOCK=64, grid=(1,)))

    def launch(*args: Any, **kwargs: Any) -> Any:
        return empty.run(*args, grid=(1,), warmup=False, **kwargs)

    rows: list[tuple[str, float, float | None]] = [
        ("Python path: 3 arrays, 3 numbers", per_call(lambda: launch(*arrays, 1024, 17, 0.5, BLOCK=64)), BUDGET_US),
        ("Python path: six arrays", per_call(lambda: launch(*six, BLOCK=64)), BUDGET_US),
    ]
    for nothing in (mixed, plain_arrays):
        assert nothing.calls == ROUNDS * CALLS, f"{ROUNDS * CALLS - nothing.calls} launches went another way"
    if device() == "native":
        rows += native_rows()
    rows += [
        ("a Python function of the same arguments", per_call(lambda: plain(*arrays, 1024, 17, 0.5, BLOCK=64)), None),
        ("address of one NumPy array", per_call(lambda: arrays[0].__array_interface__["data"][0]), None),
    ]
    print(f"{'call':48}{'us':>8}{'budget':>8}")
    for name, microseconds, budget in rows:
        print(f"{name:48}{microseconds:8.2f}{budget or '':>8}")


def plain(x: Any, y: Any, z: Any, a: Any, b: Any, c: Any, BLOCK: int) -> None:
    """The time that Python cannot avoid."""


if __name__ == "__main__":
    main()
