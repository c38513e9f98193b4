"""Tables of rules that turn ops into LLVM: one for what is the same on every target, and in front of it one for each
target.

    @scalar_rule(arith.AddiOp)                                  # everywhere
    def lower_addi(low: Low, op: Operation, lhs: Value, rhs: Value) -> Value:
        return low.builder.add(lhs, rhs)

    NEUTRAL = Rules(COMMON)

    @NEUTRAL.lowers(arith.DivfOp, elementwise=True, overrides=True)
    def lower_quotient(low: Lowering, op: Operation, lhs: Value, rhs: Value) -> Value: ...

An *elementwise* rule is given the operands of its op and returns the result; all operands have the same shape, scalars
or vectors of one width. Other rules read `low[operand]`. A class has one rule in a table, and a table says what it
overrides. `scalars.py` fills the table of all targets. Other files are imported when a module has one
of their ops:

    MORE_RULES = {"mine.dot_rules": "tt.dot ttg.local_dot", ...}
    load_rules(MORE_RULES, module)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.errors import PassError
from tilework.ir.enums import RMWOp
from tilework.ir.functions import ops_in_order
from tilework.ir.locations import name_of, source_positions
from tilework.ir.types import element_type
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Block as Label
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.types import Type, i1
from tilework.targets.llvm.values import Value

if TYPE_CHECKING:
    from tilework.targets.llvm.debug import LineTable

Rule = Callable[..., Any]
Table = dict[type[Operation], Rule]


class Resolved(NamedTuple):
    """The rules that count: of whole ops, and of single registers. No op has both."""

    whole: Table
    elementwise: Table


NONE = Resolved({}, {})


class Rules:
    """A table of rules in front of another."""

    def __init__(self, behind: "Rules | None" = None) -> None:
        self.behind = behind
        self.own = Resolved({}, {})
        self.overriding: set[type[Operation]] = set()
        self.differing: set[type[Operation]] = set()
        self.found: dict[bool, tuple[int, Resolved]] = {}  # of so many rules, also those behind: the exact ones, or all

    def lowers(
        self, *classes: type[Operation], elementwise: bool = False, overrides: bool = False, differs: bool = False
    ) -> Callable[[Rule], Rule]:
        """Register the rule of one or more op classes; a class has one rule, and `overrides` that of the table behind.

        A rule that `differs` may give other bits than that one, and is none of the `exact` ones.
        """

        def register(rule: Rule) -> Rule:
            if overrides:  # first: another thread may look at the rules
                self.overriding.update(classes)
            if differs:
                self.differing.update(classes)
            for cls in classes:
                assert cls not in self.own.whole and cls not in self.own.elementwise, f"{cls.name} has a rule already"
                self.own[elementwise][cls] = rule
            return rule

        return register

    @property
    def size(self) -> int:
        """The number of rules, with those of the fallback."""
        return len(self.own.whole) + len(self.own.elementwise) + (self.behind.size if self.behind is not None else 0)

    @property
    def known(self) -> set[type[Operation]]:
        """The op classes with a rule here or behind."""
        return {*self.own.whole, *self.own.elementwise, *(self.behind.known if self.behind is not None else ())}

    @property
    def resolved(self) -> Resolved:
        """All rules of the files that are imported."""
        return self.of(is_exact=False)

    @property
    def exact(self) -> Resolved:
        """The rules of kernels that shall compute the same bits everywhere: none that differs from the one it
        overrides.
        """
        return self.of(is_exact=True)

    def of(self, is_exact: bool) -> Resolved:
        count, found = self.found.get(is_exact, (0, NONE))
        if count != self.size:
            behind, without = NONE, self.differing if is_exact else set[type[Operation]]()
            if self.behind is not None:
                behind = self.behind.of(is_exact)
                hidden = self.behind.known & {*self.own.whole, *self.own.elementwise}
                wrong = sorted(cls.name for cls in hidden - self.overriding)
                assert not wrong, f"rules that replace others must say so: {', '.join(wrong)}"
            count, found = self.size, self.in_front(behind, without)
            self.found[is_exact] = count, found
        return found

    def in_front(self, behind: Resolved, without: set[type[Operation]]) -> Resolved:
        """The own rules, but for those of some classes, in place of those behind."""
        found = Resolved(*map(dict, behind))
        for kind, table in enumerate(self.own):
            for cls, rule in dict(table).items():  # of this moment: another thread may import a file of rules
                if cls not in without:
                    found[1 - kind].pop(cls, None)
                    found[kind][cls] = rule
        return found


def load_rules(files: Mapping[str, str], module: Operation) -> set[str]:
    """Import those of the `files` that may have a rule of one of its ops: beside each is how the names of those begin.

    The names of its ops."""
    present = {op.name for op in ops_in_order(*module.regions)}
    for file, starts in files.items():
        if any(name.startswith(tuple(starts.split())) for name in present):
            import_module(file)
    return present


CHANGES = {kind: kind.keyword for kind in RMWOp} | {RMWOp.EXCH: "xchg"}  # what LLVM calls atomics
COMMON = Rules()
SCALARS = COMMON.own.elementwise


def scalar_rule(*classes: type[Operation]) -> Callable[[Rule], Rule]:
    """Register the elementwise rule of all targets."""
    return COMMON.lowers(*classes, elementwise=True)


def result_type(op: Operation) -> Attribute:
    """The type of one element of the result."""
    return element_type(op.results[0].type)


def operand_type(op: Operation) -> Attribute:
    """The type of one element of the first operand."""
    return element_type(op.operands[0].type)


def text_of(op: Operation, name: str) -> str:
    """A string property of an op."""
    found = op.properties[name]
    assert isinstance(found, StringAttr)
    return found.data


# ---- The state that rules of every target share: the values known so far, the builder of a function, and source lines.
#
# The blocks of a function with `cf` branches: their order, and the phis of their arguments.
#
#     branches = Branches(builder, blocks, types_of, bind)
#     branches.run(lower_block)            # enters each block, then lowers it
#
# `types_of` returns the LLVM types of an IR type: one of a scalar, several of a tile in registers. `bind` receives the
# LLVM values of a block argument. The rules of branches call `jump`. A phi is written when all edges are known.


class Branches:
    """See the module."""

    def __init__(
        self,
        builder: Builder,
        blocks: Sequence[Block],
        types_of: Callable[[Attribute], Sequence[Type]],
        bind: Callable[[SSAValue, list[Value]], None],
        bit: Type = i1,
    ) -> None:
        self.bit = bit  # what carries a bit
        self.builder, self.blocks, self.types_of, self.bind = builder, blocks, types_of, bind
        self.labels: dict[Block, Label] = {block: builder.new_block("block") for block in blocks[1:]}
        self.edges: dict[Block, list[tuple[Sequence[Value], Label]]] = {block: [] for block in blocks}
        self.entries: dict[Block, tuple[Label, int, list[Value]]] = {}

    def run(self, lower_block: Callable[[Block], None]) -> None:
        """Lower all blocks that can be reached."""
        for block in self.order():
            self.enter(block)
            lower_block(block)
        self.close()

    def order(self) -> list[Block]:
        """Reverse postorder: a block comes after those that dominate it."""
        seen: set[Block] = set()
        finished: list[Block] = []

        def visit(block: Block) -> None:
            seen.add(block)
            last = block.last_op
            for successor in reversed(last.successors if last is not None else ()):
                if successor not in seen:
                    visit(successor)
            finished.append(block)

        visit(self.blocks[0])
        return finished[::-1]

    def enter(self, block: Block) -> None:
        """Continue in a block; its arguments become known."""
        if block is self.blocks[0]:
            return
        b, label = self.builder, self.labels[block]
        b.enter(label)
        position, types = len(label.lines), [self.types_of(arg.type) for arg in block.args]
        phis = [b.effect("", self.bit if type is i1 else type) for parts in types for type in parts]
        self.entries[block] = (label, position, phis)
        left = iter(phis)
        for arg, parts in zip(block.args, types, strict=True):
            self.bind(arg, [b.bit(made) if type is i1 else made for type, made in zip(parts, left)])

    def jump(self, block: Block, values: Sequence[Value]) -> None:
        """Leave the current block for `block`, with the LLVM values of all its arguments."""
        b = self.builder
        carried = [b.zext(value, self.bit) if value.type is i1 else value for value in values]
        self.edges[block].append((carried, b.block))
        b.br(self.labels[block])

    def close(self) -> None:
        """Write the phis."""
        for block, (label, position, phis) in self.entries.items():
            for index, made in enumerate(phis):
                listed = ", ".join(f"[ {values[index].text}, %{source.name} ]" for values, source in self.edges[block])
                label.lines[position + index] = f"  {made.text} = phi {made.type.text} {listed}"


Held = TypeVar("Held")
REGION_ENDS = frozenset({  # terminators that the op around them reads
    "scf.yield", "scf.condition", "ttc.yield", "ttc.end", "tt.reduce.return", "tt.scan.return",
    "tt.map_elementwise.return",
})  # fmt: skip


class OpLowering(ABC, Generic[Held]):
    """The lowering of one function; `values` maps each IR value to the target's values for it."""

    device: str

    def __init__(self, module: Module, builder: Builder, rules: Rules, fuses: bool = True) -> None:
        self.module, self.builder = module, builder
        self.rules, self.elementwise = rules.exact if module.exact else rules.resolved
        self.bit: Type = i1  # what carries a bit to the block where its ways meet
        self.fuses = fuses  # multiplications and additions may be contracted to fused multiply-adds
        self.values: dict[SSAValue, Held] = {}
        self.branches: Any = None  # the blocks of the function, where it has `cf` branches
        self.lines: LineTable | None = None

    def __getitem__(self, value: SSAValue) -> Held:
        return self.values[value]

    def __setitem__(self, value: SSAValue, made: Held) -> None:
        self.values[value] = made

    def function(self, name: str, *args: Value) -> Value:
        """An elementary function of f32 or f64 (`targets/llvm/math`): ``low.function("exp", x)``."""
        from tilework.targets.llvm.math.table import FUNCTIONS  # lazily: most kernels have no such function

        return FUNCTIONS[name](self.builder, args)

    def lower_block(self, block: Block) -> None:
        """Lower every op of a block in order."""
        for op in block.ops:
            self.lower(op)

    def lower(self, op: Operation) -> None:
        """Lower one op, and record its results."""
        if (lines := self.lines) is not None:
            self.locate(op)
        self.emit(op)
        if lines is not None and lines.has_variables and op.results:
            self.name_result(op, self.values[op.results[0]])

    def emit(self, op: Operation) -> None:
        """The result of an op's rule; a list has a value for each result."""
        if (rule := self.elementwise.get(type(op))) is not None:
            self.values[op.results[0]] = self.each(rule, op)
        elif (rule := self.rules.get(type(op))) is not None:
            made = rule(self, op)
            if made.__class__ is list:
                self.values.update(zip(op.results, made, strict=True))
            elif op.results:
                assert made is not None and len(op.results) == 1, op.name
                self.values[op.results[0]] = made
        elif op.name not in REGION_ENDS:
            raise self.refuse(op, f"the op {op.name}")

    @abstractmethod
    def each(self, rule: Rule, op: Operation) -> Held:
        """Apply an elementwise rule to the operands of its op."""

    @abstractmethod
    def region(self, block: Block, args: Sequence[Held] | Mapping[SSAValue, Held]) -> list[Held]:
        """Emit the ops of a block on the given arguments, and give the operands of its terminator."""

    # What control flow must know of values (`control_rules.py`)

    @staticmethod
    def types_of(type: Attribute) -> Sequence[Type]:
        """The types of the LLVM values that represent a value: mostly one."""
        return (register_type(type),)

    def flat(self, values: Sequence[Any]) -> list[Value]:
        """The LLVM values of several values, one after the other."""
        return list(values)

    def held(self, types: Sequence[Attribute], flat: Sequence[Any]) -> list[Held]:
        """Values of these types, from consecutive LLVM values."""
        return list(flat)

    def like(self, values: Sequence[Held], flat: Sequence[Any]) -> list[Held]:
        """Undo `flat` for values of the same form."""
        return list(flat)

    def carried(self, values: Sequence[Held]) -> list[Value]:
        """The values that one of several blocks passes to the block where their branches meet."""
        return self.flat(values)

    def taken(self, values: Sequence[Held], carried: Sequence[Value]) -> list[Held]:
        """Undo `carried` for values of the same form."""
        return self.like(values, carried)

    def scalar(self, value: SSAValue) -> Value:
        """The LLVM value of a scalar."""
        (made,) = self.flat([self.values[value]])
        return made

    def check_joined(self, op: Operation, *sides: Sequence[Held]) -> None:  # noqa: B027
        """Refuse values that cannot be one or the other, depending on the way."""

    def check_passed(self, op: Operation, values: Sequence[Held]) -> None:  # noqa: B027
        """Refuse values that cannot go to another block or function."""

    def branches_of(self, blocks: Sequence[Block]) -> Branches:
        """The blocks of a region; an argument has a phi for each of its LLVM values."""

        def bind(arg: SSAValue, made: list[Value]) -> None:
            (self.values[arg],) = self.held([arg.type], made)

        return Branches(self.builder, blocks, self.types_of, bind, self.bit)

    def refuse(self, op: Operation, what: str) -> PassError:
        """The error about something that this target cannot do, at the user's line."""
        return PassError(f"{what} cannot be compiled for {self.device}", op.location)

    def describe(self, lines: "LineTable", function: Operation) -> None:
        """Give every following instruction the line of its op, if `function` knows its own."""
        if positions := source_positions(function.location):
            file, line, _ = positions[0]
            lines.describe(self.builder.function, file, line)
            self.lines = lines
            self.locate(function)

    def locate(self, op: Operation) -> None:
        """Attribute the code that is built next to the source line of `op`."""
        if self.lines is None:
            return
        located = self.lines.located.setdefault(self.builder.function, {})
        known = located.get(id(op.location))
        if known is None:
            positions = source_positions(op.location)
            node = self.lines.location(self.builder.function, *positions[0]) if positions else ""
            known = located[id(op.location)] = op.location, node
        self.builder.location = known[1] or self.builder.location

    def name_result(self, op: Operation, made: Any) -> None:
        """Emit debug information that `made` is the variable to which the user assigned the result of `op`."""
        if self.lines is None or not self.lines.has_variables:
            return
        name, positions = name_of(op.location), source_positions(op.location)
        value = made[0] if made.__class__ is tuple and made else made
        if name is not None and positions and isinstance(value, Value):
            self.lines.variable(self.builder, name, value, *positions[0][:2])


Low = OpLowering[Any]  # the argument of rules for every target
