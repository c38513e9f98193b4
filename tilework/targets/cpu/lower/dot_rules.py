"""`ttc.dot`: c += a @ b as one internal function for each distinct shape and types.

    ttc.dot %a, %b, %c : !ttc.buf<64x32xf16>, !ttc.buf<32x64xf16>, !ttc.buf<64x64xf32>
    ==>
    call void @dot.64x64x32.f16.f16.f32(ptr %a, ptr %b, ptr %c, ptr %scratch)

The function is loops around one register block (microkernel.py), so its size does not depend on the tile's:

    for each batch
        convert A                                   if the instructions take another type, or its rows need zeros
        sum the rows of A                           if the instructions take B plus an offset
        for each strip of columns
            pack the strip of B                     if converted, or too large to be read directly
            for each band of rows: c[band, strip] += a[band, :] @ b[:, strip]

Borders (a size that the block does not divide) are further, narrower blocks; where an instruction takes several steps
of K and those do not divide it, both operands are filled up with zeros while they are copied. Which instructions
multiply is decided in `dot_units.py`: f16, bf16 and 8-bit floats are summed in f32, f64 in f64, int8 in int32.
Precision modes (tf32 and so on) are all computed in full f32.

Blocks of a matrix multiplication on the tile registers of x86 (AMX).

A tile is up to 16 rows of up to 64 bytes; there are eight. ``tdpbf16ps c, a, b`` adds to 16 x 16 sums the products of
16 rows of A by 16 columns of B along 32 steps of K: a row of A is 64 bytes, a row of B is the line that
`microkernel.py` makes of two steps of K (four for int8). A block is two tiles by two:

    tmm0 tmm1      sums            tmm4      A            tmm6 tmm7      B
    tmm2 tmm3                      tmm5

The shape of tiles is configured for each thread, so every dot configures them first and releases them at its end: a
thread that has tiles in use takes longer to be switched. The process must be allowed to use them (`HostTarget`).
"""

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.ir import Attribute, Operation

from tilework.ir import ttc
from tilework.ir.module_facts import is_reproducible
from tilework.light_dataclass import light_dataclass
from tilework.targets.cpu.lower.dot_units import Sizes, block_of, tile_sizes, unit_of
from tilework.targets.cpu.lower.fork import share
from tilework.targets.cpu.lower.lowering import Lowering, aligned, lowers
from tilework.targets.cpu.lower.microkernel import (
    Block,
    Operand,
    Unit,
    Work,
    convert_all,
    converted,
    emit_block,
    is_as_stored,
    pack_strip,
    sum_rows,
)
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import Function, Module
from tilework.targets.llvm.scalar_types import memory_type
from tilework.targets.llvm.types import Type, i8, i32, i64, ptr, vector, void
from tilework.targets.llvm.values import Value, constant

# where the bytes of a row (16 bits each) and the rows (8 bits) of tiles are
CONFIGURATION_BYTES, BYTES_AT, ROWS_AT = 64, 16, 48
FIRST_LEFT, FIRST_RIGHT = 4, 6  # tile ids


def configure(b: Builder, unit: Unit, tile: Sizes) -> None:
    """Give the tiles of C, A and B their shapes."""
    left_bytes, column_bytes = tile.depth * unit.element.bits // 8, tile.columns * 4
    shapes = (
        [(tile.rows, column_bytes)] * 4 + [(tile.rows, left_bytes)] * 2 + [(tile.depth // unit.group, column_bytes)] * 2
    )
    data = bytearray(CONFIGURATION_BYTES)
    data[0] = 1  # the palette
    for tile_id, (rows, row_bytes) in enumerate(shapes):
        data[BYTES_AT + 2 * tile_id] = row_bytes
        data[ROWS_AT + tile_id] = rows
    name = f"tiles.{tile.rows}x{tile.columns}x{tile.depth}.{unit.element.text}"
    instruction(b, "ldtilecfg", b.module.data(name, data))


def release(b: Builder) -> None:
    instruction(b, "tilerelease")


def emit_tiles(b: Builder, unit: Unit, work: Work, total: Operand, tile: Sizes) -> None:
    """Add one block to C, as rows and columns of tiles."""
    left, right, rows, columns = work.left, work.right, work.rows // tile.rows, len(work.widths)
    sums = [
        (2 * row + column, b.gep(total.address, row * tile.rows * total.stride + column * tile.columns * 4))
        for row in range(rows)
        for column in range(columns)
    ]
    for tile_id, address in sums:
        instruction(b, "tileloadd64", tile_id, address, total.stride)
    starts, rounds = [left.address, right.address], work.depth * unit.group // tile.depth
    with b.loop_carrying(constant(i64, 0), rounds, 1, starts, unroll=1) as loop:
        at_left, at_right = loop.carried
        for column in range(columns):
            address = b.gep(at_right, column * tile.columns * 4)
            instruction(b, "tileloadd64", FIRST_RIGHT + column, address, right.stride)
        for row in range(rows):
            address = b.gep(at_left, row * tile.rows * left.stride)
            instruction(b, "tileloadd64", FIRST_LEFT + row, address, left.stride)
            for column in range(columns):
                instruction(b, unit.tiles, 2 * row + column, FIRST_LEFT + row, FIRST_RIGHT + column)
        lines = tile.depth // unit.group
        loop.next([b.gep(at_left, tile.depth * unit.element.bits // 8), b.gep(at_right, lines * right.stride)])
    for tile_id, address in sums:
        instruction(b, "tilestored64", tile_id, address, total.stride)


def instruction(b: Builder, name: str, *operands: int | Value) -> None:
    """Call an intrinsic; integers before an address are tile ids, the one after it is a stride."""
    found, is_stride = list[Value](), False
    for operand in operands:
        found.append(operand if isinstance(operand, Value) else constant(i64 if is_stride else i8, operand))
        is_stride |= isinstance(operand, Value)
    b.call(f"llvm.x86.{name}", void, found)


SHARED_WORK = 1 << 19  # instructions: about 0.1 ms
MOST_STACK = 64 * 1024
SUM_BYTES = 4  # of a row of A
CACHE_BYTES = 32 * 1024  # of the nearest cache: a B that fits is read directly


@light_dataclass
class Dot:
    """The shape and element types of one dot: (batch, rows, columns, depth)."""

    batch: int
    rows: int
    columns: int
    depth: int
    left: Attribute
    right: Attribute
    sum: Attribute
    in_order: bool = False  # floats are added one after the other

    @property
    def matrix(self) -> Sizes:
        return Sizes(self.rows, self.columns, self.depth)

    @property
    def name(self) -> str:
        sizes = (self.batch, self.rows, self.columns, self.depth)[0 if self.batch > 1 else 1 :]
        return f"dot.{'x'.join(map(str, sizes))}.{self.left}.{self.right}.{self.sum}"


@light_dataclass
class Plan:
    """The plan of a dot: instructions, accumulator block, operands to copy first, and scratch memory."""

    unit: Unit
    block: Block
    converts_left: bool
    packs_right: bool
    converted_bytes: int  # of A
    left_bytes: int  # those and the sums of its rows
    scratch_bytes: int  # those and a strip of B
    strips: int  # of columns
    depth: int  # steps of K, those of zeros too


@lowers(ttc.DotOp)
def lower_dot(low: Lowering, op: Operation) -> None:
    dot = dot_of(op)
    plan = plan_of(low.target, dot)
    if is_shareable(low.target, dot, plan):
        share_strips(low, op, dot, plan)
        return
    scratch = low.scratch(plan.scratch_bytes) if plan.scratch_bytes else constant(ptr, 0)
    if dot.name not in low.builder.module.functions:
        emit_dot(low.builder.module, low.target, dot, plan)
    low.builder.call(dot.name, void, [*(low[operand] for operand in op.operands), scratch])


def is_shareable(target: HostTarget, dot: Dot, plan: Plan) -> bool:
    """Return True if threads may take strips of columns, each with a panel on its stack."""
    instructions = dot.rows * dot.columns * dot.depth // target.lanes(plan.unit.sum.bits)
    panel = plan.scratch_bytes - plan.left_bytes
    return dot.batch == 1 and instructions >= SHARED_WORK and plan.strips > 1 and panel <= MOST_STACK


def share_strips(low: Lowering, op: Operation, dot: Dot, plan: Plan) -> None:
    name = f"{dot.name}.strips"
    left, right, total = (low[operand] for operand in op.operands)
    sums = constant(ptr, 0)
    if plan.left_bytes:
        emitter = Emitter(low.builder, low.target, dot, plan)
        left, sums = emitter.prepare_left(left, low.scratch(plan.left_bytes))
    if name not in low.builder.module.functions:
        emit_strips(low.builder.module, low.target, dot, plan, name)

    def emit(b: Builder, inside: Mapping[int, Value], first: Value, last: Value) -> None:
        b.call(name, void, [*inside.values(), first, last])

    share(low, dict(enumerate((left, sums, right, total))), plan.strips, 1, emit)


def scratch_bytes(op: Operation, target: HostTarget) -> int:
    """The bytes that `lower_dot` will request with `low.scratch`."""
    return plan_of(target, dot_of(op)).scratch_bytes


def dot_of(op: Operation) -> Dot:
    """The shape and types of a `ttc.dot`."""
    left, right, total = (ttc.buffer_of(operand) for operand in op.operands)
    *batch, rows, depth = left.shape
    kinds = left.element, right.element, total.element
    return Dot(prod(batch), rows, right.shape[-1], depth, *kinds, is_reproducible(op))


def plan_of(target: HostTarget, dot: Dot) -> Plan:
    """Decide from the shape, the types and the host."""
    unit = unit_of(target, dot.matrix, dot.left, dot.right, dot.sum, dot.in_order)
    block = block_of(target, unit, dot.matrix)
    operand_bytes = unit.element.bits // 8
    depth = -(-dot.depth // unit.group) * unit.group
    converts_left = depth > dot.depth or not is_as_stored(dot.left, unit.element)
    reused = dot.rows >= 2 * block.rows  # a strip read once gains nothing from a copy
    is_large = dot.depth * dot.columns * operand_bytes > CACHE_BYTES and dot.columns > block.columns
    packs_right = not is_as_stored(dot.right, unit.element) or unit.group > 1 or (is_large and reused)
    converted_bytes = aligned(dot.rows * depth * operand_bytes) if converts_left else 0
    left_bytes = converted_bytes + (aligned(dot.rows * SUM_BYTES) if unit.right_offset else 0)
    right_bytes = aligned(depth * block.columns * operand_bytes) if packs_right else 0
    strips = -(-dot.columns // block.columns)
    sizes = converted_bytes, left_bytes, left_bytes + right_bytes
    return Plan(unit, block, converts_left, packs_right, *sizes, strips, depth)


def emit_dot(module: Module, target: HostTarget, dot: Dot, plan: Plan) -> Function:
    """Define the function of a dot: ``void (ptr a, ptr b, ptr c, ptr scratch)``."""
    function = dot_function(module, target, dot.name, plan, [ptr] * 4)
    emitter = Emitter(Builder(function), target, dot, plan)
    b, (left, right, total, scratch) = emitter.b, function.args
    emitter.begin()
    with b.loop(constant(i64, 0), dot.batch, unroll=1) as batch:

        def matrix_of(base: Value, size: int, element: Attribute) -> Value:
            return b.gep(base, b.mul(batch, size * (memory_type(element).bits // 8)))

        one = matrix_of(left, dot.rows * dot.depth, dot.left)
        one, sums = emitter.prepare_left(one, scratch)
        emitter.strips(
            one,
            sums,
            matrix_of(right, dot.depth * dot.columns, dot.right),
            matrix_of(total, dot.rows * dot.columns, dot.sum),
            b.gep(scratch, plan.left_bytes),
            constant(i64, 0),
            constant(i64, plan.strips),
        )
    emitter.end()
    return function


def emit_strips(module: Module, target: HostTarget, dot: Dot, plan: Plan, name: str) -> None:
    """Define the function of some strips: ``void (ptr a, ptr sums, ptr b, ptr c, i64 first, i64 last)``, A being
    converted.
    """
    function = dot_function(module, target, name, plan, [*[ptr] * 4, i64, i64])
    emitter = Emitter(Builder(function), target, dot, plan)
    left, sums, right, total, first, last = function.args
    panel = emitter.b.alloca(i8, max(1, plan.scratch_bytes - plan.left_bytes), align=64)
    emitter.begin()
    emitter.strips(left, sums, right, total, panel, first, last)
    emitter.end()


def dot_function(module: Module, target: HostTarget, name: str, plan: Plan, types: Sequence[Type]) -> Function:
    attributes = ["nounwind", "noinline"]
    if plan.unit.features:
        names = ",".join(f"+{name}" for name in sorted(target.features | plan.unit.features))
        attributes.append(f'"target-features"="{names}"')
    parameters = list(zip(types, "abcdef", strict=False))
    noalias = {position: "noalias nocapture" for position, type in enumerate(types) if type is ptr}
    return module.function(name, void, parameters, linkage="internal", attributes=attributes, param_attributes=noalias)


class Emitter:
    """Emits the loops of one dot."""

    def __init__(self, b: Builder, target: HostTarget, dot: Dot, plan: Plan) -> None:
        self.b, self.target, self.dot, self.plan = b, target, dot, plan
        self.right_bytes = memory_type(dot.right).bits // 8
        self.sum_bytes = memory_type(dot.sum).bits // 8
        self.sum_stride = dot.columns * self.sum_bytes
        self.row_sums = constant(ptr, 0)

    def begin(self) -> None:
        if self.plan.unit.tiles:
            configure(self.b, self.plan.unit, tile_sizes(self.plan.unit, self.dot.matrix))

    def end(self) -> None:
        if self.plan.unit.tiles:
            release(self.b)
        self.b.ret()

    def prepare_left(self, left: Value, scratch: Value) -> tuple[Value, Value]:
        """The address of A in the form that the instructions read, and the address of the sums of its rows."""
        b, plan, unit = self.b, self.plan, self.plan.unit
        if plan.converts_left:
            self.convert_left(left, scratch)
            left = scratch
        sums = b.gep(scratch, plan.converted_bytes)
        if unit.right_offset:
            rows, lanes = Operand(left, plan.depth * (unit.element.bits // 8)), self.target.lanes(unit.sum.bits)
            sum_rows(b, unit, rows, sums, self.dot.rows, plan.depth // unit.group, lanes)
        return left, sums

    def convert_left(self, source: Value, target: Value) -> None:
        b, dot, depth, element = self.b, self.dot, self.plan.depth, self.plan.unit.element
        lanes = 2 * self.target.lanes(element.bits)
        if depth == dot.depth:
            convert_all(b, source, dot.left, target, element, dot.rows * depth, lanes)
            return
        missing, size = depth - dot.depth, element.bits // 8
        with b.loop(constant(i64, 0), dot.rows, unroll=1) as row:
            start = b.gep(source, b.mul(row, dot.depth), memory_type(dot.left))
            to = b.gep(target, b.mul(row, depth), element)
            convert_all(b, start, dot.left, to, element, dot.depth, lanes)
            b.store(constant(vector(element, missing), 0), b.gep(to, dot.depth * size), align=size)

    def strips(
        self, left: Value, sums: Value, right: Value, total: Value, panel: Value, first: Value, last: Value
    ) -> None:
        """Strips `first` to `last` - 1; a narrower one is the last of all."""
        self.row_sums = sums
        b, dot, block = self.b, self.dot, self.plan.block
        bands = Operand(left, self.plan.depth * (self.plan.unit.element.bits // 8))
        whole, border = divmod(dot.columns, block.columns)
        if whole:
            with b.loop(first, b.smin(last, constant(i64, whole)), unroll=1) as strip:
                column = b.mul(strip, block.columns)
                self.strip(bands, right, total, panel, column, [block.lanes] * block.vectors)
        if border:
            full, rest = divmod(border, block.lanes)
            widths = [block.lanes] * full + ([rest] if rest else [])
            with b.if_(b.icmp("sgt", last, constant(i64, whole))):
                self.strip(bands, right, total, panel, constant(i64, whole * block.columns), widths)

    def strip(
        self, bands: Operand, right: Value, total: Value, panel: Value, column: Value, widths: Sequence[int]
    ) -> None:
        """The columns from `column` on, as many as `widths` cover, of every row."""
        b, dot, plan = self.b, self.dot, self.plan
        source = Operand(b.gep(right, b.mul(column, self.right_bytes)), dot.columns * self.right_bytes)
        total = b.gep(total, b.mul(column, self.sum_bytes))
        if plan.packs_right:
            pack_strip(b, plan.unit, source, dot.right, panel, dot.depth, widths)
            source = Operand(panel, sum(widths) * (plan.unit.operand.bits // 8))
        whole, border = divmod(dot.rows, plan.block.rows)
        if whole:
            with b.loop(constant(i64, 0), whole, unroll=1) as band:
                row = b.mul(band, plan.block.rows)
                self.block(bands, source, total, row, plan.block.rows, widths)
        if border:
            self.block(bands, source, total, constant(i64, whole * plan.block.rows), border, widths)

    def block(self, bands: Operand, strip: Operand, total: Value, row: Value, rows: int, widths: Sequence[int]) -> None:
        """Add one block of the dot to C: the accumulators start with its values."""
        b, dot, unit = self.b, self.dot, self.plan.unit
        stored = memory_type(dot.sum)
        left = Operand(b.gep(bands.address, b.mul(row, bands.stride)), bands.stride)
        corner = b.gep(total, b.mul(row, self.sum_stride))
        work = Work(left, strip, rows, widths, self.plan.depth // unit.group)
        if unit.tiles:
            emit_tiles(b, unit, work, Operand(corner, self.sum_stride), tile_sizes(unit, dot.matrix))
            return
        addresses = [
            (b.gep(corner, line * self.sum_stride + sum(widths[:position]) * self.sum_bytes), width)
            for line in range(rows)
            for position, width in enumerate(widths)
        ]
        if dot.rows * self.sum_stride > 2 * CACHE_BYTES:  # fetch the next band of C while this one is computed
            for line in range(rows, 2 * rows):
                b.prefetch(b.gep(corner, line * self.sum_stride), write=True)
        sums = [
            converted(b, b.load(vector(stored, width), address, align=self.sum_bytes), dot.sum, unit.sum)
            for address, width in addresses
        ]
        if unit.right_offset:
            at = b.gep(self.row_sums, row, i32)
            offsets = [b.load(i32, b.gep(at, SUM_BYTES * line), align=SUM_BYTES) for line in range(rows)]
            less = [offset for offset in offsets for _ in widths]
            sums = [b.sub(sum, b.splat(one, sum.type.count)) for sum, one in zip(sums, less, strict=True)]
        sums = (unit.emit or emit_block)(b, self.target, unit, work, sums)
        for value, (address, width) in zip(sums, addresses, strict=True):
            b.store(b.cast(value, vector(stored, width)), address, align=self.sum_bytes)
