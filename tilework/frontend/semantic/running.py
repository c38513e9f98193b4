"""The running program: its place in the grid, hints to the compiler, prints and assertions.

A hint states a fact about a value that the compiler cannot derive. It becomes an attribute of the operation that
computes the value, one number per dimension:

    o = tl.multiple_of(pid * 64 + tl.arange(0, 64), 64)     arith.addi ... {tt.divisibility = dense<64> : tensor<1xi32>}

A value carried by a loop has no such operation, so its hint goes to the loop: ``tt.divisibility_arg1`` describes the
second argument of the loop body. The loop is built after its body; until then the hint waits in `argument_hints`, and
`loop_hints` hands it over. Where there is no place for a hint it is dropped, which is always correct.
"""

# A method of a mixin sees the whole `Semantic`, which pyright does not accept as the type of `self`.
# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from functools import cache
from string import printable
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.frontend.semantic.load_store import check_mask
from tilework.frontend.semantic.pointers import as_list
from tilework.frontend.semantic.shape import shape_of
from tilework.ir import tt
from tilework.ir.gpu import GpuBarrierOp
from tilework.ir.llvm import AssumeOp
from tilework.ir.types import i32, tensor_type
from tilework.language import core as tl
from tilework.language.dtypes import int32

if TYPE_CHECKING:
    from tilework.frontend.semantic import Semantic

PRINTABLE = frozenset(printable)


class ProgramMixin:
    """Program ids, hints, `assume`, `device_print` and `device_assert`."""

    argument_hints: dict[SSAValue, dict[str, Attribute]]

    def program_id(self: "Semantic", axis: int) -> tl.tensor:
        """The index of this program along a grid axis."""
        if axis not in (0, 1, 2):
            raise ValueError(f"program_id axis must be 0, 1, or 2 but got {axis}")
        op = self.builder.insert(tt.GetProgramIdOp.make(axis, self.builder.loc))
        return tl.tensor(op.results[0], int32)

    def num_programs(self: "Semantic", axis: int) -> tl.tensor:
        """The size of the grid along an axis."""
        if axis not in (0, 1, 2):
            raise ValueError(f"num_programs axis must be 0, 1, or 2 but got {axis}")
        op = self.builder.insert(tt.GetNumProgramsOp.make(axis, self.builder.loc))
        return tl.tensor(op.results[0], int32)

    def debug_barrier(self: "Semantic") -> tl.tensor:
        """Wait for all threads of the program."""
        self.builder.insert(GpuBarrierOp.make(self.builder.loc))
        return self.nothing()

    def assume(self: "Semantic", cond: tl.tensor) -> tl.tensor:
        """Let the optimiser rely on a scalar condition."""
        cond = self.to_tensor(cond)
        if cond.type.is_block() or not cond.type.is_bool():
            raise ValueError(f"assume takes a scalar condition of type int1, got {cond.type}")
        self.builder.insert(AssumeOp.make(cond.handle, self.builder.loc))
        return self.nothing()

    def multiple_of(self: "Semantic", x: tl.tensor, values: Sequence[int]) -> tl.tensor:
        """`x`, whose first element (of each aligned group) is a multiple of `values`."""
        return self._hint("multiple_of", "tt.divisibility", x, values)

    def max_contiguous(self: "Semantic", x: tl.tensor, values: Sequence[int]) -> tl.tensor:
        """`x`, in which aligned groups of `values` elements count up by one."""
        return self._hint("max_contiguous", "tt.contiguity", x, values)

    def max_constancy(self: "Semantic", x: tl.tensor, values: Sequence[int]) -> tl.tensor:
        """`x`, in which aligned groups of `values` elements are equal."""
        return self._hint("max_constancy", "tt.constancy", x, values)

    def _hint(self: "Semantic", function: str, name: str, x: tl.tensor, values: Sequence[int]) -> tl.tensor:
        numbers = tuple(value.value if isinstance(value, tl.constexpr) else value for value in as_list(values))
        for i, number in enumerate(numbers):
            if type(number) is not int:
                raise TypeError(f"values element {i} of {function} must have type `constexpr[int]`, got {number!r}")
        rank = len(shape_of(x))
        least = 1 if function == "multiple_of" else rank
        if len(numbers) != max(rank, least) or not numbers:
            raise ValueError(
                f"Shape of input to {function} does not match the length of values: {list(shape_of(x))} and "
                f"{list(numbers)}; pass one number per dimension of a block"
            )
        self._attach_hint(x.handle, name, hint_attr(numbers))
        return x

    def _attach_hint(self: "Semantic", value: SSAValue, name: str, hint: Attribute) -> None:
        """Put `hint` where the analysis of `value` will find it, unless it would describe other values too."""
        owner = value.owner
        if not isinstance(owner, Operation):
            self.argument_hints.setdefault(value, {})[name] = hint
        elif len(owner.results) == 1:
            owner.attributes[name] = hint

    def move_hints(self: "Semantic", argument: SSAValue, value: SSAValue) -> None:
        """The hints given to `argument` now describe `value`, which takes its place."""
        for name, hint in self.argument_hints.pop(argument, {}).items():
            self._attach_hint(value, name, hint)

    def loop_hints(self: "Semantic", body: Block) -> dict[str, Attribute]:
        """The attributes of a loop that hold the hints given to the arguments of its finished `body`."""
        return {
            f"{name}_arg{argument.index}": hint
            for argument in body.args
            for name, hint in self.argument_hints.pop(argument, {}).items()
        }

    def device_print(self: "Semantic", prefix: str, args: Sequence[object], hex: bool) -> tl.tensor:
        """Print every element of every argument, from every thread."""
        assert isinstance(prefix, str) and PRINTABLE.issuperset(prefix), (
            f"device_print takes a prefix of printable ASCII characters, got {prefix!r}"
        )
        values = [self.to_tensor(value) for value in args]
        is_signed = [int(value.type.scalar.is_int_signed()) for value in values]
        op = tt.PrintOp.make(
            print_prefix(prefix, bool(values)),
            bool(hex),
            [value.handle for value in values],
            is_signed,
            self.builder.loc,
        )
        self.builder.insert(op)
        return self.nothing()

    def device_assert(self: "Semantic", cond: tl.tensor, msg: str, mask: object) -> tl.tensor:
        """Stop the program where `cond` is false (and `mask` true); only in debug builds."""
        if not self.options.debug:
            return self.nothing()
        condition, active = self.to_tensor(cond), self.optional_tensor(mask)
        if condition.type.scalar.is_ptr():
            raise ValueError(f"device_assert takes a condition, got {condition.type}")
        if not condition.type.scalar.is_bool():
            condition = self.not_equal(condition, self.scalar_constant(0, int32))
        if active is not None:
            check_mask(active)
            condition = self.or_(condition, self.not_(active))
        self.builder.insert(tt.AssertOp.make(condition.handle, msg, self.builder.loc))
        return self.nothing()


def print_prefix(prefix: str, has_args: bool) -> str:
    """The prefix as printed: ``"x"``, ``"x:"`` and ``"x: "`` all give ``" x: "``."""
    if has_args:
        if not prefix.endswith(" "):
            prefix += " "
        if not prefix.endswith(": "):
            prefix = prefix[:-1] + ": "
    if len(prefix) > 2 and not prefix.startswith(" "):
        prefix = " " + prefix
    return prefix


@cache
def hint_attr(values: tuple[int, ...]) -> Attribute:
    """``dense<[16, 1]> : tensor<2xi32>``."""
    return DenseIntOrFPElementsAttr.from_list(tensor_type((len(values),), i32), values)  # pyright: ignore
