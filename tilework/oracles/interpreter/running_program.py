"""The running program: its place in the grid, promises about values (which are checked), printing, asserting.

`assume` and `device_assert` raise if their condition is false. Of the other hints only the arguments are checked: what
they promise may be about groups of elements that a kernel never looks at.
"""

import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import int1, int32
from tilework.oracles.interpreter.dots import Dots
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.formats import bits_of
from tilework.oracles.interpreter.tensors import as_array, plain

PRINTABLE = frozenset(string.printable)


class Program(Dots):
    """`program_id`, hints, `device_print`, `device_assert`."""

    program: tuple[int, int, int] = (0, 0, 0)
    grid: tuple[int, int, int] = (1, 1, 1)

    def program_id(self, axis: int) -> tl.tensor:
        return self.scalar_constant(self.program[grid_axis(axis, "program_id")], int32)

    def num_programs(self, axis: int) -> tl.tensor:
        return self.scalar_constant(self.grid[grid_axis(axis, "num_programs")], int32)

    def debug_barrier(self) -> tl.tensor:
        return self.nothing()

    def assume(self, cond: tl.tensor) -> tl.tensor:
        condition = self.to_tensor(cond)
        if condition.type.is_block() or not condition.type.is_bool():
            raise ValueError(f"assume takes a scalar condition of type int1, got {condition.type}")
        if not condition.handle:
            raise at_run_time(AssertionError("tl.assume: the condition is false"))
        return self.nothing()

    def multiple_of(self, x: tl.tensor, values: Sequence[int]) -> tl.tensor:
        check_hint("multiple_of", x, values, least=1)
        return x

    def max_contiguous(self, x: tl.tensor, values: Sequence[int]) -> tl.tensor:
        check_hint("max_contiguous", x, values, least=x.handle.ndim)
        return x

    def max_constancy(self, x: tl.tensor, values: Sequence[int]) -> tl.tensor:
        check_hint("max_constancy", x, values, least=x.handle.ndim)
        return x

    def device_print(self, prefix: str, args: Sequence[Any], hex: bool) -> tl.tensor:
        """One line per argument: ``pid (0, 0, 0) x: [1 2 3]``."""
        assert isinstance(prefix, str) and PRINTABLE.issuperset(prefix), (
            f"device_print takes a prefix of printable ASCII characters, got {prefix!r}"
        )
        values = [self.to_tensor(value) for value in args]
        label = prefix.strip().removesuffix(":")
        if not values:
            print(f"pid {self.program} {label}".rstrip())
        for value in values:
            print(f"pid {self.program} {label}: {shown(value, bool(hex))}")
        return self.nothing()

    def device_assert(self, cond: Any, msg: str, mask: Any) -> tl.tensor:
        condition, active = self.to_tensor(cond), self.optional(mask)
        if condition.dtype.is_ptr():
            raise ValueError(f"device_assert takes a condition, got {condition.type}")
        condition = self.cast(condition, int1)
        if active is not None:
            if not active.dtype.is_bool():
                raise ValueError(f"Mask must have boolean scalar type, got {active.dtype}; compare it with 0")
            condition = self.or_(condition, self.not_(active))
        if not np.all(condition.handle):
            failing = np.argwhere(~np.atleast_1d(condition.handle))[0].tolist()
            where = f" at index {failing}" if condition.type.is_block() else ""
            text = f"device-side assert in program {self.program}{where}: {plain(msg)}"
            raise at_run_time(AssertionError(text))
        return self.nothing()


def grid_axis(axis: Any, function: str) -> int:
    if axis not in (0, 1, 2):
        raise ValueError(f"{function} axis must be 0, 1, or 2 but got {axis}")
    return axis


def check_hint(function: str, x: tl.tensor, values: Sequence[Any], least: int) -> None:
    """One int for each axis."""
    numbers = list(map(plain, values))
    for index, number in enumerate(numbers):
        if type(number) is not int:
            raise TypeError(f"values element {index} of {function} must have type `constexpr[int]`, got {number!r}")
    rank = x.handle.ndim
    if len(numbers) != max(rank, least) or not numbers:
        raise ValueError(
            f"Shape of input to {function} does not match the length of values: {list(x.handle.shape)} and "
            f"{numbers}; pass one number per dimension of a block"
        )


def shown(value: tl.tensor, hex: bool) -> str:
    """The elements of a tensor as text."""
    if not hex:
        return str(as_array(value))
    bits = bits_of(as_array(value))
    digits = 2 * bits.dtype.itemsize

    def hexadecimal(number: Any) -> str:
        return f"0x{int(number):0{digits}x}"

    return np.array2string(bits, formatter={"all": hexadecimal})
