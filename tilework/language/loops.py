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

from typing import Any

from tilework.language.active import ACTIVE
from tilework.language.compile_time import base_type, base_value, constexpr


class iterator_type(base_type):
    """The type of a loop iterator; it never reaches run time."""

    def __str__(self) -> str:
        return "loop iterator"


class static_range(base_value):
    """A loop that is unrolled completely: ``for i in tl.static_range(0, 8, 2)``; all bounds are constants."""

    type = iterator_type()

    def __init__(
        self, arg1: Any, arg2: Any = None, step: Any = None, _semantic: Any = None, _generator: Any = None
    ) -> None:
        for name, bound in (("arg1", arg1), ("arg2", arg2), ("step", step)):
            assert bound is None or isinstance(bound, (constexpr, int)), (
                f"{name} of tl.static_range is not a constexpr: {bound}"
            )
        self.start, self.end, self.step = _bounds(arg1, arg2, step)

    def __iter__(self) -> Any:
        if (active := ACTIVE.get()) is not None:
            return active.iterate(self)
        raise RuntimeError("tl.static_range can only be used in @jit'd functions")

    def __next__(self) -> Any:
        raise RuntimeError("tl.static_range can only be used in @jit'd functions")


class range(base_value):
    """Python's range with hints: ``for k in tl.range(0, K, BLOCK, num_stages=3)``.

    num_stages: how many iterations are in flight (software pipelining).  loop_unroll_factor: copies of the body.
    disallow_acc_multi_buffer: one buffer for a dot accumulator.  flatten: merge with the loop inside.
    warp_specialize: loads and math in different warps.  disable_licm: leave invariant code inside.
    """

    type = iterator_type()

    def __init__(
        self,
        arg1: Any,
        arg2: Any = None,
        step: Any = None,
        num_stages: Any = None,
        loop_unroll_factor: Any = None,
        disallow_acc_multi_buffer: Any = False,
        flatten: Any = False,
        warp_specialize: Any = False,
        disable_licm: Any = False,
        _semantic: Any = None,
        _generator: Any = None,
    ) -> None:
        self.start, self.end, self.step = _bounds(arg1, arg2, step)
        self.num_stages = num_stages
        self.loop_unroll_factor = loop_unroll_factor
        self.disallow_acc_multi_buffer = disallow_acc_multi_buffer
        self.flatten = flatten
        self.warp_specialize = warp_specialize
        self.disable_licm = disable_licm

    def __iter__(self) -> Any:
        if (active := ACTIVE.get()) is not None:
            return active.iterate(self)
        raise RuntimeError("tl.range can only be used in @jit'd functions")

    def __next__(self) -> Any:
        raise RuntimeError("tl.range can only be used in @jit'd functions")


class condition(base_value):
    """The test of a `while` with options: ``while tl.condition(x > 0, disable_licm=True)``."""

    type = iterator_type()

    def __init__(self, arg1: Any, disable_licm: Any = False, _semantic: Any = None, _generator: Any = None) -> None:
        self.condition = arg1
        self.disable_licm = disable_licm


def _bounds(arg1: Any, arg2: Any, step: Any) -> tuple[Any, Any, Any]:
    """(start, end, step) as for Python's range; None, also as a constexpr, is absent."""
    start, end = (constexpr(0), arg1) if _is_none(arg2) else (arg1, arg2)
    return start, end, constexpr(1) if _is_none(step) else step


def _is_none(value: Any) -> bool:
    return value is None or (isinstance(value, constexpr) and value.value is None)
