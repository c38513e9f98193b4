"""The lowering of tile loops (`ttcir`) to LLVM: the table of rules, and the object that rules work with.

    @lowers(tt.GetProgramIdOp, elementwise=True)
    def lower_program_id(low: Lowering, op: Operation) -> Value:
        return low.program[axis_of(op)]

    @lowers(ttc.GatherOp)
    def lower_gather(low: Lowering, op: Operation) -> None:
        source = low[op.operands[0]]          # the address of a buffer
        ...

An *elementwise* rule is given the operands of its op and returns the result. All operands have the same shape, either
scalars or vectors of one width, so one rule serves scalar code, vectorised nests and combine regions. Every other rule
reads `low[value]` and returns nothing, one value, or a list with one value per result.

How IR types look in LLVM: integers and f16, bf16, f32, f64 as themselves, pointers as `ptr`, 8-bit floats as their bits
in `i8`, a buffer as the `ptr` to its first element. In memory an `i1` (and any integer below a byte) takes one byte.

Each buffer of a function has an offset in the arena; buffers whose lifetimes do not overlap share memory.

    %a = ttc.alloc : !ttc.buf<64xf32>     first used by op 3, last by op 5    offset 64
    %b = ttc.alloc : !ttc.buf<64xf32>     first used by op 4, last by op 9    offset 320
    %c = ttc.alloc : !ttc.buf<32xf32>     first used by op 7, last by op 9    offset 64, where %a was

A life is a range of positions in the text. A buffer that is made outside of a loop and used inside lives as long as the
loop. In a function with branches between blocks nothing is shared.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.ir import scf, ttc
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.rules import COMMON, OpLowering, Rule, Rules
from tilework.targets.llvm.scalar_types import element_bytes, memory_type
from tilework.targets.llvm.scalars import from_memory, to_memory
from tilework.targets.llvm.types import Type, i64, integer, ptr, vector
from tilework.targets.llvm.values import Value, constant

ALIGN = 64
LOOPS = (scf.ForOp, scf.WhileOp, ttc.NestOp)  # a nest reads an old buffer after it has written to a new one


class Plan(NamedTuple):
    """Offsets of buffers in bytes, and where the memory after the last one begins."""

    offsets: dict[SSAValue, int]
    end: int


def aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def buffer_bytes(type: ttc.BufferType) -> int:
    return prod(type.shape) * element_bytes(type.element)


def plan(function: Operation, start: int) -> Plan:
    """Assign offsets to the buffers of a function, from `start` on."""
    offsets: dict[SSAValue, int] = {}
    placed: list[tuple[int, int, int, int]] = []  # (first position, last position, offset, end)
    end = start
    for first, last, buffer in lives(function):
        assert isinstance(buffer.type, ttc.BufferType)
        size = aligned(buffer_bytes(buffer.type))
        offset = start
        for _, _, low, high in sorted((p for p in placed if p[0] <= last and first <= p[1]), key=lambda p: p[2]):
            if offset + size <= low:
                break
            offset = max(offset, high)
        offsets[buffer] = offset
        placed.append((first, last, offset, offset + size))
        end = max(end, offset + size)
    return Plan(offsets, end)


def lives(function: Operation) -> list[tuple[int, int, SSAValue]]:
    """(first position, last position, buffer) in the order of the first."""
    position: dict[Operation, int] = {}
    finish: dict[Operation, int] = {}
    buffers: list[SSAValue] = []

    def visit(op: Operation) -> None:
        position[op] = len(position)
        if type(op) is ttc.AllocOp:
            buffers.append(op.results[0])
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    visit(inner)
        finish[op] = len(position) - 1

    visit(function)
    whole = len(function.regions[0].blocks) > 1
    found: list[tuple[int, int, SSAValue]] = []
    for buffer in buffers:
        home = buffer.owner.parent_op() if isinstance(buffer.owner, Operation) else None
        spans = [span(use.operation, home, position, finish) for use in buffer.uses]
        if spans:
            first, last = min(low for low, _ in spans), max(high for _, high in spans)
            found.append((0, len(position), buffer) if whole else (first, last, buffer))
        else:
            found.append((position[buffer.owner], position[buffer.owner], buffer))  # type: ignore[index]
    return sorted(found, key=lambda life: life[0])


def span(
    user: Operation, home: Operation | None, position: dict[Operation, int], finish: dict[Operation, int]
) -> tuple[int, int]:
    """The positions during which a use needs the buffer: its own, or the outermost loop around it within `home`."""
    outermost = user
    parent = user.parent_op()
    while parent is not None and parent is not home:
        if isinstance(parent, LOOPS):
            outermost = parent
        parent = parent.parent_op()
    return position[outermost], finish[outermost]


CPU = Rules(COMMON)
lowers = CPU.lowers


def shaped(type: Type, lanes: int) -> Type:
    """A vector of `lanes` elements; the scalar itself for 1."""
    return vector(type, lanes) if lanes > 1 else type


class Lowering(OpLowering[Value]):
    """The state that a rule works on: the builder of the current function, the values known so far, and the host."""

    device = "the CPU"

    def __init__(self, module: Module, builder: Builder, target: Any) -> None:
        super().__init__(module, builder, CPU)
        self.target = target
        self.program: tuple[Value, Value, Value] = ()  # type: ignore[assignment]  # program ids
        self.grid: tuple[Value, Value, Value] = ()  # type: ignore[assignment]  # program counts
        self.arena: Value = constant(ptr, 0)
        self.offsets: dict[SSAValue, int] = {}
        self.uses_faults = False  # it may return early
        self.sanitizes = False  # a function that is called may have to end its caller, see `checks.py`
        self.uses_checks = False
        self.streamed: frozenset[Operation] = frozenset()  # stores that go past the caches if a launch stores much
        self.ticket = 0  # the offset of the next program at ordered atomics in the record of a launch
        self.codes: dict[Operation, int] = {}  # of the ops that can fail
        self.scratch_offset = 0  # where memory that one op needs for itself begins
        self.scratch_bytes = 0

    def each(self, rule: Rule, op: Operation) -> Value:
        return rule(self, op, *[self.values[operand] for operand in op.operands])

    def region(self, block: Block, args: Sequence[Value] | Mapping[SSAValue, Value]) -> list[Value]:
        """Emit the ops of a block on the given arguments, and give the operands of its terminator.

        Arguments may be scalars or vectors; where an op mixes them, scalars are spread. The results have the shape of
        the widest argument. A block that is to run on vectors must be elementwise (`is_elementwise`).
        """
        bound: dict[SSAValue, Value] = {}
        bound.update(args if isinstance(args, Mapping) else zip(block.args, args, strict=True))
        lanes = max((value.type.count for value in bound.values() if value.type.is_vector), default=1)
        values, b = self.values, self.builder
        values.update(bound)
        last = block.last_op
        assert last is not None, "a region ends in a terminator"
        for op in block.ops:
            if op is last:
                break
            if lanes > 1 and (rule := self.elementwise.get(type(op))) is not None:
                values[op.results[0]] = rule(self, op, *spread(b, [values[operand] for operand in op.operands]))
            else:
                self.lower(op)
        return [
            b.splat(v, lanes) if lanes > 1 and not v.type.is_vector else v for v in (values[o] for o in last.operands)
        ]

    def is_elementwise(self, block: Block) -> bool:
        """Return True if `region` may run this block on vectors."""
        return all(type(op) in self.elementwise for op in block.ops if op is not block.last_op)

    def program_id(self) -> Value:
        """Return the linear id of the program in the grid, x fastest."""
        b = self.builder
        (x, y, z), (width, height, _) = ([b.zext(one, i64) for one in ids] for ids in (self.program, self.grid))
        return b.add(b.mul(b.add(b.mul(z, height), y), width), x)

    # Memory

    def read(self, element: Attribute, address: Value, lanes: int = 1, align: int = 0, volatile: bool = False) -> Value:
        """`lanes` neighbours of an IR element type from memory, in their register type.

        A read after a volatile one is at least as recent: a program that waits for a flag sees what was written
        before it.
        """
        held, size = memory_type(element), memory_type(element).bits // 8
        ordering = "acquire" if volatile and lanes == 1 and size <= 8 else ""
        loaded = self.builder.load(
            shaped(held, lanes), address, align=align or size, volatile=volatile, ordering=ordering
        )
        return self.from_memory(element, loaded)

    def write(self, element: Attribute, value: Value, address: Value, align: int = 0) -> None:
        """Store a scalar or a vector of an IR element type."""
        held = self.to_memory(element, value)
        self.builder.store(held, address, align=align or held.type.scalar.bits // 8)

    def from_memory(self, element: Attribute, loaded: Value) -> Value:
        return from_memory(self.builder, element, loaded)

    def to_memory(self, element: Attribute, value: Value) -> Value:
        return to_memory(self.builder, element, value)

    def buffer_offset(self, offset: int) -> Value:
        """The address `offset` bytes into the arena."""
        return self.builder.gep(self.arena, offset, inbounds=True)

    def scratch(self, size: int) -> Value:
        """Memory for the op being lowered, 64-byte aligned; the next op may get the same bytes."""
        self.scratch_bytes = max(self.scratch_bytes, size)
        return self.buffer_offset(self.scratch_offset)

    def fault(self, code: Value | int) -> None:
        """Set the fault code that ends the launch after this program."""
        self.uses_faults = True
        stored = constant(integer(32), code) if isinstance(code, int) else code
        self.builder.store(stored, self.arena, align=4)


def spread(b: Builder, values: Sequence[Value]) -> list[Value]:
    """Operands of one shape: scalars beside vectors are repeated in every lane."""
    lanes = max((value.type.count for value in values if value.type.is_vector), default=1)
    return [b.splat(v, lanes) if lanes > 1 and not v.type.is_vector else v for v in values]
