"""The lowering of TTGIR to LLVM: the table of rules, and the object that rules work with.

    @lowers(tt.SplatOp)
    def lower_splat(low: Lowering, op: Operation) -> Registers:
        return low[op.operands[0]] * register_count(op.results[0].type)

A tensor is what one thread holds of it: a tuple with one LLVM value per register of its layout, in the order of the linear
layout's `register` index, copies included. A scalar is a tuple of one. A memory descriptor is a `Shared` (shared.py), a
token an empty tuple. A rule returns the registers of its result, a list of those for several results, or None.

An *elementwise* rule (`targets/llvm/rules.py`, or `lowers(..., elementwise=True)` here) is given one register of each
operand and returns one of the result.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.analysis.allocation import Allocation
from tilework.analysis.axis_info import AxisFacts
from tilework.analysis.global_order import BARRIERS, GlobalOrder
from tilework.analysis.membar import Barriers
from tilework.errors import PassError
from tilework.ir.encodings import layout_of
from tilework.ir.locations import name_of, source_positions
from tilework.ir.types import is_tensor
from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.assembly import ptx
from tilework.targets.llvm import elementary, scalars
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.debug import LineTable
from tilework.targets.llvm.math.table import FUNCTIONS
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.rules import SCALARS
from tilework.targets.llvm.types import i32, integer, pointer, void
from tilework.targets.llvm.values import Value, constant

Rule = Callable[..., Any]
Registers = tuple[Value, ...]

RULE_FILES = (elementary, scalars)  # importing these fills SCALARS
RULES: dict[type[Operation], Rule] = {}
OWN_ELEMENTWISE: dict[type[Operation], Rule] = {}

WARP = 32
SHARED_SPACE = 3
SMEM = "global_smem"
REGION_ENDS = frozenset(
    {"scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"}
)


def lowers(*classes: type[Operation], elementwise: bool = False) -> Callable[[Rule], Rule]:
    """Register the rule of one or more op classes; a class has one rule."""

    def register(rule: Rule) -> Rule:
        for cls in classes:
            assert cls not in RULES and cls not in OWN_ELEMENTWISE, f"{cls.name} has a rule already"
            (OWN_ELEMENTWISE if elementwise else RULES)[cls] = rule
        return rule

    return register


@dataclass(frozen=True)
class Facts:
    """What the rules know about the machine and the options."""

    capability: int
    num_warps: int
    num_ctas: int = 1
    fuses: bool = True
    options: Any = None


def register_count(type: Attribute) -> int:
    """How many registers a thread has of a value."""
    return layout_of(type).in_size("register") if is_tensor(type) else 1


class Lowering:
    """What a rule sees: the builder of the current function, the values known so far, and the machine."""

    def __init__(self, module: Module, builder: Builder, facts: Facts) -> None:
        self.module, self.builder, self.facts = module, builder, facts
        self.device = f"cuda:{facts.capability}"
        self.fuses = facts.fuses
        self.values: dict[SSAValue, Any] = {}
        self.words: dict[tuple[str, ...], Value] = {}  # by the names of the elements they hold (`words.py`)
        self.allocation: Allocation | None = None
        self.barriers = Barriers()
        self.order = GlobalOrder()
        self.fences: set[Operation] = set()  # ops by which TMA writes shared memory that threads have used
        self.axis: AxisFacts | None = None
        self.smem: Value = constant(pointer(SHARED_SPACE), 0)  # the start of this function's shared memory
        self.scratch: Value = constant(pointer(1), 0)  # the start of the program's global scratch memory
        self.scratch_offsets: dict[Operation, int] = {}  # in that memory, of allocations and calls
        self.branches: Any = None  # the blocks of the function, where it has `cf` branches
        self.lines: LineTable | None = None
        b = builder
        self.thread = self.special("tid.x")
        self.lane = b.and_(self.thread, WARP - 1)
        self.warp = b.lshr(self.thread, 5) if facts.num_warps > 1 else constant(i32, 0)
        self.block = self.special("cluster.ctarank") if facts.num_ctas > 1 else constant(i32, 0)

    def special(self, name: str) -> Value:
        """A special register, ``tid.x``; it does not change while the kernel runs."""
        return self.builder.call(f"llvm.nvvm.read.ptx.sreg.{name}", i32, [], is_pure=True)

    # Values

    def __getitem__(self, value: SSAValue) -> Any:
        """The registers of a value, or its `Shared`."""
        return self.values[value]

    def __setitem__(self, value: SSAValue, made: Any) -> None:
        self.values[value] = made

    def scalar(self, value: SSAValue) -> Value:
        """The one register of a scalar."""
        (made,) = self.values[value]
        return made

    def function(self, name: str, *args: Value) -> Value:
        """An elementary function of f32 or f64 (`backends/llvm/math`)."""
        return FUNCTIONS[name](self.builder, args)

    @property
    def places(self) -> dict[str, Value]:
        """Where this thread is, by the names that layouts use."""
        return {"lane": self.lane, "warp": self.warp, "block": self.block}

    # Errors and source lines

    def refuse(self, op: Operation, what: str) -> PassError:
        """The error about something that this target cannot do, at the user's line."""
        return PassError(f"{what} cannot be compiled for {self.device}", op.location)

    def describe(self, lines: LineTable, function: Operation) -> None:
        """Give every following instruction the line of its op, if `function` knows its own."""
        if places := source_positions(function.location):
            file, line, _ = places[0]
            lines.describe(self.builder.function, file, line)
            self.lines = lines
            self.locate(function)

    def locate(self, op: Operation) -> None:
        """What is built next comes from the source line of `op`."""
        if self.lines is not None and (places := source_positions(op.location)):
            self.builder.location = self.lines.location(self.builder.function, *places[0])

    def name_result(self, lines: LineTable, op: Operation) -> None:
        """Tell debuggers which of the user's variables the result of `op` is."""
        name, places = name_of(op.location), source_positions(op.location)
        if name is None or not places or not op.results:
            return
        made = self.values.get(op.results[0])
        if made.__class__ is tuple and made and isinstance(made[0], Value):
            lines.variable(self.builder, name, made[0], *places[0][:2])

    # Ops and regions

    def lower_block(self, block: Block) -> None:
        """Every op of a block in order."""
        for op in block.ops:
            self.lower(op)

    def lower(self, op: Operation) -> None:
        """One op with the barriers around it; its results become known."""
        self.locate(op)
        if op in self.barriers.before:
            self.barrier()
        if self.order.touches(op):
            self.order_before(op)
        if op in self.fences:
            ptx(self.builder, "fence.proxy.async.shared::cta;", [], [], effect="write")
        cls, values = type(op), self.values
        rule = OWN_ELEMENTWISE.get(cls)
        if rule is None and cls not in RULES:
            rule = SCALARS.get(cls)
        if rule is not None:
            sides = [values[operand] for operand in op.operands]
            if sides and len(sides[0]) < len(sides[-1]):  # one condition that selects whole tensors
                sides[0] = sides[0] * len(sides[-1])
            made = (
                tuple([rule(self, op, *column) for column in zip(*sides, strict=True)]) if sides else (rule(self, op),)
            )
            values[op.results[0]] = made
        elif cls in RULES:
            self.keep(op, RULES[cls](self, op))
        elif op.name not in REGION_ENDS:
            raise self.refuse(op, f"the op {op.name}")
        if self.lines is not None and self.lines.has_variables:
            self.name_result(self.lines, op)
        if op in self.barriers.after:
            self.barrier()
        if op in self.order.fences and type(op) not in BARRIERS:
            self.show_to_copies()
            self.barrier()

    def order_before(self, op: Operation) -> None:
        """Wait for what TMA writes, and make visible to it what threads have written (`analysis/global_order.py`)."""
        if op in self.order.waits:
            ptx(self.builder, "cp.async.bulk.wait_group 0;", [], [], effect="write")
            self.show_to_copies()
            if self.order.waits[op]:
                self.barrier()
        elif type(op) in BARRIERS:
            self.show_to_copies()

    def show_to_copies(self) -> None:
        """What this thread has written to global memory, or knows of, is visible to copies that start from now on."""
        ptx(self.builder, "fence.proxy.async.global;", [], [], effect="write")

    def keep(self, op: Operation, made: Any) -> None:
        """Note what a rule returned."""
        if made.__class__ is list:
            for result, value in zip(op.results, made, strict=True):
                self.values[result] = value
        elif op.results:
            assert made is not None and len(op.results) == 1, op.name
            self.values[op.results[0]] = made

    def region(self, block: Block, args: Sequence[Any] | Mapping[SSAValue, Any]) -> list[Any]:
        """Emit the ops of a block on the given arguments (registers each), and give the operands of its terminator."""
        self.values.update(args if isinstance(args, Mapping) else zip(block.args, args, strict=True))
        last = block.last_op
        assert last is not None, "a region ends in a terminator"
        for op in block.ops:
            if op is not last:
                self.lower(op)
        return [self.values[operand] for operand in last.operands]

    def combine(self, block: Block, args: Sequence[Value]) -> list[Value]:
        """A region on scalars, one value for each argument: the combine functions of reductions and scans."""
        return [registers[0] for registers in self.region(block, [(arg,) for arg in args])]

    # What all threads do together

    def barrier(self) -> None:
        """Wait until all threads of the block are here, and see what they wrote to shared memory."""
        self.builder.call("llvm.nvvm.barrier.cta.sync.aligned.all", void, [constant(i32, 0)], attributes="convergent")

    def warp_barrier(self) -> None:
        """The same within each warp."""
        self.builder.call("llvm.nvvm.bar.warp.sync", void, [constant(i32, -1)], attributes="convergent")

    def scratch_address(self, op: Operation) -> Value:
        """The shared memory that an op has for itself while it runs."""
        assert self.allocation is not None
        return self.builder.gep(self.smem, self.allocation.scratch[op].offset)

    def shuffle(self, value: Value, lane: Value | int, mode: str = "idx") -> Value:
        """A register of another lane: `mode` is idx, or bfly (the lane number xor `lane`), up, down."""
        b = self.builder
        bits = value.type.bits
        lane = constant(i32, lane) if isinstance(lane, int) else lane
        if bits > 32:
            whole = b.bitcast(b.ptrtoint(value, integer(64)) if value.type.is_pointer else value, integer(64))
            halves = [b.trunc(whole, i32), b.trunc(b.lshr(whole, 32), i32)]
            low, high = (b.zext(self.shuffle(half, lane, mode), integer(64)) for half in halves)
            joined = b.or_(low, b.shl(high, 32))
            return b.inttoptr(joined, value.type) if value.type.is_pointer else b.bitcast(joined, value.type)
        word = b.zext(b.bitcast(value, integer(bits)), i32) if bits < 32 else b.bitcast(value, i32)
        clamp = constant(i32, 0 if mode == "up" else WARP - 1)
        made = b.call(
            f"llvm.nvvm.shfl.sync.{mode}.i32", i32, [constant(i32, -1), word, lane, clamp], attributes="convergent"
        )
        return b.bitcast(b.trunc(made, integer(bits)) if bits < 32 else made, value.type)

    def is_first_copy(self, layout: LinearLayout) -> Value | None:
        """Whether no lower lane, warp or block holds the same elements; None if none can."""
        b, found = self.builder, None
        for name, value in self.places.items():
            mask = sum(1 << bit for bit, column in enumerate(layout.by_in.get(name, ())) if not column)
            if mask and value.constant is None:
                mine = b.icmp("eq", b.and_(value, mask), 0)
                found = mine if found is None else b.and_(found, mine)
        return found

    @contextmanager
    def only_if(self, condition: Value | None) -> Iterator[None]:
        """Build what follows under a condition, or always without one."""
        if condition is None:
            yield
        else:
            with self.builder.if_(condition):
                yield


def layout(value: SSAValue) -> LinearLayout:
    """The linear layout of a tensor or memory descriptor."""
    return layout_of(value.type)
