"""The ops of the language's builtins.

A builtin of `tilework.language` calls the method of the same name; the rules of `tilework.language.typing` check its
operands and give them their types, and one method here builds the ops:

    semantic = Semantic(builder, options)
    pid = semantic.program_id(0)                       tt.get_program_id x : i32
    offsets = semantic.add(semantic.mul(pid, 64), semantic.arange(0, 64))

Each family of operations is a class that inherits those before it: `building`, `arith`, `shape`, `load_store`,
and here the running program: its id, hints to the compiler, prints and assertions. An operation that is
refused raises `ValueError`, `TypeError` or `AssertionError` with the values in the text; the frontend adds the source
location.

A hint states a fact about a value that the compiler cannot derive. It becomes an attribute of the operation that
computes the value, one integer per dimension:

    o = tl.multiple_of(pid * 64 + tl.arange(0, 64), 64)     arith.addi ... {tt.divisibility = dense<64> : tensor<1xi32>}

A value carried by a loop has no such operation, so its hint goes to the loop: ``tt.divisibility_arg1`` describes the
second argument of the loop body. The loop is built after its body; until then the hint waits in `argument_hints`, and
`loop_hints` returns it. A hint that no op can carry is dropped, which is always correct.
"""

from collections.abc import Sequence
from functools import cache

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.frontend.semantic.load_store import Windows
from tilework.ir import tt, ttg
from tilework.ir.enums import AddrSpace
from tilework.ir.llvm import AssumeOp
from tilework.ir.types import i32, tensor_type
from tilework.language import core as tl
from tilework.language.dtypes import int32


class Running(Windows):
    """The ops of program ids, hints, `assume`, `device_print` and `device_assert`."""

    def own_index(self, axis: int) -> tl.tensor:
        return self._emit(tt.GetProgramIdOp.make(axis, self.builder.loc), int32)

    def grid_size(self, axis: int) -> tl.tensor:
        return self._emit(tt.GetNumProgramsOp.make(axis, self.builder.loc), int32)

    def debug_barrier(self) -> tl.tensor:
        """Wait for all threads of the program."""
        self.builder.insert(ttg.BarrierOp.make(AddrSpace.ALL, self.builder.loc))
        return self.nothing()

    def assumed(self, condition: tl.tensor) -> None:
        self.builder.insert(AssumeOp.make(condition.handle, self.builder.loc))

    def note(self, x: tl.tensor, fact: str, values: tuple[int, ...]) -> None:
        """An attribute of the operation that computes `x`."""
        self._attach_hint(x.handle, f"tt.{fact}", hint_attr(values))

    def _attach_hint(self, value: SSAValue, name: str, hint: Attribute) -> None:
        """Put `hint` where the analysis of `value` will find it, unless it would describe other values too."""
        owner = value.owner
        if not isinstance(owner, Operation):
            self.argument_hints.setdefault(value, {})[name] = hint
        elif len(owner.results) == 1:
            owner.attributes[name] = hint

    def move_hints(self, argument: SSAValue, value: SSAValue) -> None:
        """The hints given to `argument` now describe `value`, which replaces it."""
        for name, hint in self.argument_hints.pop(argument, {}).items():
            self._attach_hint(value, name, hint)

    def loop_hints(self, body: Block) -> dict[str, Attribute]:
        """The attributes of a loop that hold the hints given to the arguments of its finished `body`."""
        return {
            f"{name}_arg{argument.index}": hint
            for argument in body.args
            for name, hint in self.argument_hints.pop(argument, {}).items()
        }

    def printed(self, prefix: str, values: Sequence[tl.tensor], hex: bool) -> None:
        """`tt.print`, from every thread."""
        signs, handles = [int(value.dtype.is_int_signed()) for value in values], [value.handle for value in values]
        self.builder.insert(tt.PrintOp.make(print_prefix(prefix, bool(values)), hex, handles, signs, self.builder.loc))

    def asserts(self) -> bool:
        """Return True if asserts are compiled: in debug builds."""
        return bool(self.options.debug)

    def asserted(self, condition: tl.tensor, message: str) -> None:
        self.builder.insert(tt.AssertOp.make(condition.handle, message, self.builder.loc))


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


class Semantic(Running):
    """The ops of all families."""
