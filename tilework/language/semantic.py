"""The interface behind the `_semantic` argument of builtins: the types, shapes and errors of every operation.

A builtin converts its compile-time arguments to plain Python values and calls one method here. Values (a tensor, a
constexpr or a number) are passed on as the user wrote them; the method promotes, broadcasts, checks, and raises
ValueError, TypeError or AssertionError with the text that the user will read. `Carrier` lists the methods that remain:
the compiler builds IR (`tilework.frontend.semantic`), the interpreter computes. The rules of each family are in
`language/typing`; those of the running program (its id, hints, prints and assertions) are here.
"""

from collections.abc import Sequence
from string import printable
from typing import Any

from tilework.language.dtypes import int32
from tilework.language.typing.access import check_mask
from tilework.language.typing.dots import Dots
from tilework.language.typing.promotion import plain
from tilework.language.typing.shapes import shape_of
from tilework.language.typing.windows import as_list
from tilework.language.values import Value, tensor

PRINTABLE = frozenset(printable)


class Program(Dots):
    """Program ids, hints, `assume`, `device_print` and `device_assert`."""

    def program_id(self, axis: int) -> tensor:
        """The index of this program along a grid axis."""
        check_grid_axis(axis, "program_id")
        return self.own_index(axis)

    def num_programs(self, axis: int) -> tensor:
        """The size of the grid along an axis."""
        check_grid_axis(axis, "num_programs")
        return self.grid_size(axis)

    def assume(self, cond: Value) -> tensor:
        """Let the optimiser rely on a scalar condition."""
        condition = self.to_tensor(cond)
        if condition.type.is_block() or not condition.type.is_bool():
            raise ValueError(f"assume takes a scalar condition of type int1, got {condition.type}")
        self.assumed(condition)
        return self.nothing()

    def multiple_of(self, x: tensor, values: Sequence[int]) -> tensor:
        """`x`, whose first element (of each aligned group) is a multiple of `values`."""
        return self._hint("multiple_of", "divisibility", x, values)

    def max_contiguous(self, x: tensor, values: Sequence[int]) -> tensor:
        """`x`, in which aligned groups of `values` elements count up by one."""
        return self._hint("max_contiguous", "contiguity", x, values)

    def max_constancy(self, x: tensor, values: Sequence[int]) -> tensor:
        """`x`, in which aligned groups of `values` elements are equal."""
        return self._hint("max_constancy", "constancy", x, values)

    def _hint(self, function: str, fact: str, x: tensor, values: Sequence[int]) -> tensor:
        plain_values = tuple(map(plain, as_list(values)))
        for i, value in enumerate(plain_values):
            if type(value) is not int:
                raise TypeError(f"values element {i} of {function} must have type `constexpr[int]`, got {value!r}")
        shape = shape_of(x)
        if len(plain_values) != max(len(shape), function == "multiple_of") or not plain_values:
            raise ValueError(
                f"Shape of input to {function} does not match the length of values: {list(shape)} and "
                f"{list(plain_values)}; pass one number per dimension of a block"
            )
        self.note(x, fact, plain_values)
        return x

    def device_print(self, prefix: str, args: Sequence[Any], hex: bool) -> tensor:
        """Print every element of every argument."""
        assert isinstance(prefix, str), f"{prefix} is not string: device_print takes a prefix first"
        assert PRINTABLE.issuperset(prefix), f"{prefix} is not an ascii string that can be printed"
        self.printed(prefix, [self.to_tensor(value) for value in args], bool(hex))
        return self.nothing()

    def device_assert(self, cond: Value, msg: str, mask: Value | None) -> tensor:
        """Stop the program where `cond` is false (and `mask` true); only in builds that `asserts`."""
        if not self.asserts():
            return self.nothing()
        condition, active = self.to_tensor(cond), self.optional_tensor(mask)
        if condition.dtype.is_ptr():
            raise ValueError(f"device_assert takes a condition, got {condition.type}")
        if not condition.dtype.is_bool():
            condition = self.not_equal(condition, self.scalar_constant(0, int32))
        if active is not None:
            check_mask(active)
            condition = self.or_(condition, self.not_(active))
        self.asserted(condition, msg)
        return self.nothing()

    def expect_zero(self, x: Value, mask: Value) -> tensor:
        """Return `x`; in debug builds its elements must be 0 where `mask` is true."""
        value, where = self.to_tensor(x), self.to_tensor(mask)
        if value.dtype.is_ptr():
            raise ValueError(f"expect_zero takes numbers, got {value.type}")
        check_mask(where)
        if self.options.debug:
            zero = self.equal(value, self.scalar_constant(0, value.dtype))
            self.device_assert(zero, "expect_zero: an element is not zero", where)
        return value


def check_grid_axis(axis: object, function: str) -> None:
    """A grid has three axes."""
    if axis not in (0, 1, 2):
        raise ValueError(f"{function} axis must be 0, 1, or 2 but got {axis}")


class Semantic(Program):
    """The methods of all families (`tilework.language.typing`); a subclass supplies those of `Carrier`."""

    tensor = tensor
