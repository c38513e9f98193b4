"""The running program: its place in the grid, promises about values (which are checked), printing, asserting.

`assume` and `device_assert` raise if their condition is false. Of the other hints only the arguments are checked: what
they promise may be about groups of elements that a kernel never looks at.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import int32
from tilework.language.typing.carrier import Shape
from tilework.numerics.rounding import bits_of
from tilework.oracles.interpreter.dots import Dots
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.tensors import as_array, plain


class Program(Dots):
    """What `program_id`, hints, `device_print` and `device_assert` do."""

    program: tuple[int, int, int] = (0, 0, 0)
    grid: tuple[int, int, int] = (1, 1, 1)

    def own_index(self, axis: int) -> tl.tensor:
        return self.constant(self.program[axis], int32)

    def grid_size(self, axis: int) -> tl.tensor:
        return self.constant(self.grid[axis], int32)

    def debug_barrier(self) -> tl.tensor:
        return self.nothing()

    def assumed(self, condition: tl.tensor) -> None:
        if not condition.handle:
            raise at_run_time(AssertionError("tl.assume: the condition is false"))

    def note(self, x: tl.tensor, fact: str, numbers: Shape) -> None:
        """Nothing to do."""

    def printed(self, prefix: str, values: Sequence[tl.tensor], hex: bool) -> None:
        """One line per argument: ``pid (0, 0, 0) x: [1 2 3]``."""
        label = prefix.strip().removesuffix(":")
        if not values:
            print(f"pid {self.program} {label}".rstrip())
        for value in values:
            print(f"pid {self.program} {label}: {shown(value, hex)}")

    def asserts(self) -> bool:
        return True

    def asserted(self, condition: tl.tensor, message: str) -> None:
        if np.all(condition.handle):
            return
        failing = np.argwhere(~np.atleast_1d(condition.handle))[0].tolist()
        where = f" at index {failing}" if condition.type.is_block() else ""
        raise at_run_time(AssertionError(f"device-side assert in program {self.program}{where}: {plain(message)}"))


def shown(value: tl.tensor, hex: bool) -> str:
    """The elements of a tensor as text."""
    if not hex:
        return str(as_array(value))
    bits = bits_of(as_array(value))
    digits = 2 * bits.dtype.itemsize

    def hexadecimal(number: Any) -> str:
        return f"0x{int(number):0{digits}x}"

    return np.array2string(bits, formatter={"all": hexadecimal})
