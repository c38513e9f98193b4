"""Loop iterators of kernels: `range` with hints for the compiler, `static_range` unrolled, `condition` for `while`.

    for k in tl.range(0, K, BLOCK, num_stages=4):       # loads of four iterations in flight
        ...
    for i in tl.static_range(4):                        # four copies of the body; `i` is a constant in each
        ...
    while tl.condition(flag, disable_licm=True):
        ...

They only hold their arguments; the frontend reads them. Iterating one in plain Python works only while a kernel is
interpreted.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from tilework.language.compile_time import ACTIVE, SUPPLIED, Active, base_type, base_value, constexpr
from tilework.language.values import Value

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic


class iterator_type(base_type):
    """The type of a loop iterator; it never reaches run time."""

    def __str__(self) -> str:
        return "loop iterator"


class static_range(base_value):
    """A loop that is unrolled completely: ``for i in tl.static_range(0, 8, 2)``. All bounds are constants.

    The index is a constant in each copy of the body, so it can select an axis, a shape or an element of a tuple.

    Example:
        @tilework.jit
        def powers(x, N: tl.constexpr):
            total = x * 0
            for i in tl.static_range(N):
                if i % 2 == 0:  # decided while compiling
                    total += x
            return total

        assert call(powers, np.array([1, 2]), 5).tolist() == [3, 6]
    """

    type = iterator_type()

    def __init__(
        self,
        arg1: int | constexpr,
        arg2: int | constexpr | None = None,
        step: int | constexpr | None = None,
        _semantic: "Semantic" = SUPPLIED,
        _generator: Active = SUPPLIED,
    ) -> None:
        for name, bound in (("start value", arg1), ("end value", arg2), ("step value", step)):
            assert bound is None or isinstance(bound, (constexpr, int)), (
                f"{bound} used as tl.static_range {name} is not a constexpr"
            )
        self.start, self.end, self.step = _bounds(arg1, arg2, step)

    def __iter__(self) -> Iterator[Any]:
        if (active := ACTIVE.get()) is not None:
            return active.iterate(self)
        raise RuntimeError("tl.static_range can only be used in @jit'd functions")

    def __next__(self) -> NoReturn:
        raise RuntimeError("tl.static_range can only be used in @jit'd functions")


class range(base_value):
    """Python's range with hints: ``for k in tl.range(0, K, BLOCK, num_stages=3)``.

    num_stages: how many iterations are in flight (software pipelining).  loop_unroll_factor: copies of the body.
    disallow_acc_multi_buffer: one buffer for a dot accumulator.  flatten: merge with the loop inside.
    warp_specialize: loads and math in different warps.  disable_licm: leave invariant code inside.

    Without hints, ``range(...)`` does the same, and the launch option `num_stages` controls pipelining. Pipelining and
    warp specialisation are for GPUs (the latter from Hopper on). Results do not depend on any of the hints.

    Example:
        @tilework.jit
        def row_sum(x, out, n, BLOCK: tl.constexpr):
            total = tl.zeros((BLOCK,), tl.float32)
            for first in tl.range(0, n, BLOCK, num_stages=3):
                i = first + tl.arange(0, BLOCK)
                total += tl.load(x + i, mask=i < n, other=0.0)
            tl.store(out, tl.sum(total))

        x, out = np.arange(100, dtype=np.float32), np.zeros(1, np.float32)
        row_sum[(1,)](x, out, 100, BLOCK=16)
        assert out[0] == x.sum()
    """

    type = iterator_type()

    def __init__(
        self,
        arg1: Value,
        arg2: Value | None = None,
        step: Value | None = None,
        num_stages: int | constexpr | None = None,
        loop_unroll_factor: int | constexpr | None = None,
        disallow_acc_multi_buffer: bool | constexpr = False,
        flatten: bool | constexpr = False,
        warp_specialize: bool | constexpr = False,
        disable_licm: bool | constexpr = False,
        _semantic: "Semantic" = SUPPLIED,
        _generator: Active = SUPPLIED,
    ) -> None:
        self.start, self.end, self.step = _bounds(arg1, arg2, step)
        self.num_stages = num_stages
        self.loop_unroll_factor = loop_unroll_factor
        self.disallow_acc_multi_buffer = disallow_acc_multi_buffer
        self.flatten = flatten
        self.warp_specialize = warp_specialize
        self.disable_licm = disable_licm

    def __iter__(self) -> Iterator[Any]:
        if (active := ACTIVE.get()) is not None:
            return active.iterate(self)
        raise RuntimeError("tl.range can only be used in @jit'd functions")

    def __next__(self) -> NoReturn:
        raise RuntimeError("tl.range can only be used in @jit'd functions")


class condition(base_value):
    """The test of a `while` with options: ``while tl.condition(x > 0, disable_licm=True)``.

    `disable_licm` keeps loop-invariant code in the body of the loop, which can save registers on a GPU.

    Example:
        @tilework.jit
        def bits(x, out):
            value, count = tl.load(x), 0
            while tl.condition(value > 0, disable_licm=True):
                value = value >> 1
                count += 1
            tl.store(out, count)

        out = np.zeros(1, np.int32)
        bits[(1,)](np.array([1000], np.int32), out)
        assert out[0] == 10
    """

    type = iterator_type()

    def __init__(
        self,
        arg1: Value,
        disable_licm: bool | constexpr = False,
        _semantic: "Semantic" = SUPPLIED,
        _generator: Active = SUPPLIED,
    ) -> None:
        self.condition = arg1
        self.disable_licm = disable_licm


def _bounds(arg1: Value, arg2: Value | None, step: Value | None) -> tuple[Value, Value, Value]:
    """(start, end, step) as for Python's range; None, also as a constexpr, is absent."""
    start, end = (constexpr(0), arg1) if arg2 is None or _is_none(arg2) else (arg1, arg2)
    return start, end, constexpr(1) if step is None or _is_none(step) else step


def _is_none(value: Value) -> bool:
    return isinstance(value, constexpr) and value.value is None
