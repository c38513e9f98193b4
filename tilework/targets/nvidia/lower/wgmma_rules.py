"""`ttng.warp_group_dot`: asynchronous MMAs of warp groups on matrices in shared memory (`wgmma`).

    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {$0, ..., $63}, %a, %b, %use, 1, 1, 0, 1;
    ...
    wgmma.commit_group.sync.aligned;

One instruction computes 64 rows and N columns from 32 bytes along K. All instructions of one dot are one piece of
assembly: the accumulators are inputs and outputs in the same registers, and LLVM cannot insert code between the fence
and the first MMA. The registers of a tile and the offsets of its operands come from the linear layouts.

The results of an asynchronous dot may be used after a `ttng.warp_group_dot_wait`, through which they pass. f16
accumulators are two in a register; unpacking them after the dot reads them, so such a dot waits for its own result.

`wgmma` addresses a matrix in shared memory by a descriptor of 64 bits:

    bits 0-13    start >> 4            bits 32-45   stride byte offset >> 4 ("SBO")
    bits 16-29   leading byte offset   bits 62-63   swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes
                 >> 4 ("LBO")

The core matrix is 8 rows of `span` bytes (16 without a swizzle). In a *K-major* matrix a row extends along K and the 8
rows are 8 of M or N; in an *MN-major* one it is the other way round, which is supported only for 16-bit elements. LBO
and SBO are the strides between core matrices in the two directions; which is which depends on the form:

              K-major, swizzled   K-major, none   MN-major, swizzled   MN-major, none
    SBO       8 more of M/N       8 more of M/N   8 more of K          8 more of M/N
    LBO       not used            16 more bytes   span more of M/N     8 more of K

The swizzle permutes 16-byte pieces by an xor of address bits, which is its own inverse. So the form is not derived from
the class of an encoding, but recognised: the offsets of the linear layout, with the xor undone, are compared with each
column of the table.
"""

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import Float32Type, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import ttng
from tilework.ir.encodings import encoding_of
from tilework.ir.ttg.memory_types import MemDescType, is_memdesc
from tilework.ir.types import bit_width, element_type, int_property, shape_of
from tilework.layouts.encodings import NvidiaMma
from tilework.layouts.linear import LinearLayout, log2
from tilework.light_dataclass import light_dataclass
from tilework.target import Feature
from tilework.targets.gpu.lowering import Lowering, Registers, Shared, layout
from tilework.targets.gpu.packing import pack
from tilework.targets.gpu.views import Coords, register_coords, xor_columns
from tilework.targets.llvm.types import Type, f16, f32, i32, i64, vector
from tilework.targets.llvm.values import Value, constant
from tilework.targets.nvidia.lower import lowers
from tilework.targets.nvidia.lower.inline_ptx import ptx
from tilework.targets.nvidia.lower.mma import ACCUMULATOR_TYPES, OPERAND_TYPES, pack_sums

SPANS = (128, 64, 32)
MODE = {0: 0, 128: 1, 64: 2, 32: 3}
UNIT = 16  # bytes: the granularity of swizzles and descriptors
ROWS = 8


class Form(NamedTuple):
    """The form of a descriptor, with its strides in bytes."""

    span: int  # 0 without a swizzle
    is_k_major: bool
    leading: int
    stride: int

    @property
    def bits(self) -> int:
        """The descriptor without its start address."""
        return self.leading // UNIT << 16 | self.stride // UNIT << 32 | MODE[self.span] << 62


def unswizzled(offset: int, span: int) -> int:
    """Return the offset in bytes before (or after) the xor of a swizzle.

    >>> unswizzled(0x80, 128), unswizzled(0x90, 128), unswizzled(0x90, 0)
    (144, 128, 144)
    """
    return offset ^ (offset >> 3 & (span // UNIT - 1) << 4) if span else offset


def doubling(first: int, count: int) -> list[int]:
    """Return `first` times the first `count` powers of two."""
    return [first << bit for bit in range(count)]


def form_of(rows: Sequence[int], depth: Sequence[int], bytes: int) -> Form | None:
    """Return the form of a matrix, given the byte offset of each bit of its index along M or N, and along K.

    A 64x16 piece of a row-major matrix of f16, 64 wide, with a swizzle of 128 bytes:

    >>> form_of([0x90, 0x120, 0x240, 0x400, 0x800, 0x1000], [2, 4, 8, 16], 2)
    Form(span=128, is_k_major=True, leading=16, stride=1024)
    """
    for span in (*SPANS, 0):
        mine = [unswizzled(offset, span) for offset in rows]
        deep = [unswizzled(offset, span) for offset in depth]
        if (found := k_major(mine, deep, span, bytes)) is not None:
            return found
        if bytes == 2 and (found := mn_major(mine, deep, span)) is not None:
            return found
    return None


def k_major(rows: Sequence[int], depth: Sequence[int], span: int, bytes: int) -> Form | None:
    width = span or UNIT
    stride = rows[3] if len(rows) > 3 else ROWS * width
    if list(rows) != doubling(width, 3) + doubling(stride, len(rows) - 3):
        return None
    if span:
        return Form(span, True, UNIT, stride) if list(depth) == doubling(bytes, len(depth)) else None
    near = log2(UNIT // bytes)
    leading = depth[near]
    return Form(0, True, leading, stride) if list(depth) == [*doubling(bytes, near), leading] else None


def mn_major(rows: Sequence[int], depth: Sequence[int], span: int) -> Form | None:
    """Match the MN-major forms, for elements of 2 bytes."""
    near = min(log2((span or UNIT) // 2), len(rows))
    far = rows[near] if len(rows) > near else ROWS * (span or UNIT)
    if list(rows) != doubling(2, near) + doubling(far, len(rows) - near):
        return None
    if list(depth[:3]) != doubling(span or UNIT, 3):
        return None
    return Form(span, False, far, depth[3]) if span else Form(0, False, depth[3], far)


M = 64  # rows of one instruction
K_BYTES = 32  # of both operands in one instruction
GROUP_BITS = 2  # of the warp id: the index in its warp group
ADDRESS = 0x3FFFF
SUM = 2  # the index of the accumulator operand


@light_dataclass
class Matrix:
    """An operand in shared memory: the descriptor of its first tile, and the offsets of the others."""

    start: Value
    form: Form
    offsets: LinearLayout  # dim0, dim1 -> offset
    start_offset: int
    bytes: int
    row_dim: int

    def step(self, row: int, depth: int) -> int:
        """Return the increment of the descriptor for the tile at these coordinates."""
        offset = byte_offset(self.offsets, self.row_dim, row, depth, self.bytes) ^ self.start_offset * self.bytes
        return unswizzled(offset, self.form.span) >> 4


def byte_offset(offsets: LinearLayout, row_dim: int, row: int, depth: int, bytes: int) -> int:
    """Return the byte offset of the element with these indices along M or N, and along K."""
    return offsets.apply({f"dim{row_dim}": row, f"dim{1 - row_dim}": depth})["offset"] * bytes


def matrix(low: Lowering, op: Operation, value: SSAValue, row_dim: int, rows: int, groups: LinearLayout) -> Matrix:
    """Return an operand in memory; `rows` is M or N of an instruction, `groups` the layout of the result."""
    bytes = bit_width(value.type) // 8
    offsets = layout(value).pseudoinvert()
    memory: Shared = low[value]
    row_offsets, depth_offsets = (
        [column * bytes for column in offsets.sublayout((f"dim{dim}",), ("offset",)).flat_columns]
        for dim in (row_dim, 1 - row_dim)
    )
    row_bits, depth_bits = log2(rows), log2(K_BYTES // bytes)
    form = form_of(row_offsets[:row_bits], depth_offsets[:depth_bits], bytes)
    others = [*row_offsets[row_bits:], *depth_offsets[depth_bits:], memory.offset * bytes]
    inside = [*row_offsets[:row_bits], *depth_offsets[:depth_bits]]
    if form is None or not are_apart(inside, others, form.span):
        raise low.refuse(op, f"a warp-group dot of a matrix with the layout {encoding_of(value.type)}")
    starts = [groups.apply(warp=1 << bit)[f"dim{row_dim}"] for bit in range(log2(groups.in_size("warp")))]
    steps = [unswizzled(byte_offset(offsets, row_dim, start, 0, bytes), form.span) for start in starts]
    apart = [0 if bit < GROUP_BITS else step for bit, step in enumerate(steps)]
    b = low.builder
    address = b.trunc(b.ptrtoint(memory.base, i64), i32)
    address = b.add(address, xor_columns(b, [(low.warp, apart)]).value)
    start = b.or_(b.zext(b.lshr(b.and_(address, ADDRESS), 4), i64), constant(i64, form.bits))
    return Matrix(start, form, offsets, memory.offset, bytes, row_dim)


def are_apart(inside: Sequence[int], others: Sequence[int], span: int) -> bool:
    """Return True if tile starts and offsets inside a tile have no bit in common, so that xor is addition."""
    covered = 0
    for offset in inside:
        covered |= unswizzled(offset, span)
    return not any(unswizzled(offset, span) & covered for offset in others)


@light_dataclass
class Fragments:
    """Operand A in registers."""

    registers: dict[Coords, Value]
    bytes: int

    def operands(self, low: Lowering, row: int, depth: int) -> list[Value]:
        """Return the four registers of one instruction: two rows 8 apart, for two pieces of K 16 bytes apart."""
        each, made = 4 // self.bytes, []
        for part in range(4):
            first = (row + 8 * (part & 1), depth + (part >> 1) * 16 // self.bytes)
            values = [self.registers[first[0], first[1] + index] for index in range(each)]
            made += pack(low, values, i32)
        return made


@light_dataclass(frozen=False)
class Dot:
    """One dot: what its instructions share."""

    low: Lowering
    a: Matrix | Fragments
    b: Matrix
    types: str  # of the result and the operands: ``f32.f16.f16``
    n: int
    step: int  # elements along K of one instruction
    sum_type: Type
    tiles: list[Coords]

    def fragment(self, tile: Coords) -> list[Coords]:
        """Return the coordinates of thread 0's registers in the accumulator of a tile."""
        row, column = tile
        return [(row + 8 * (at >> 1 & 1), column + (at & 1) + 8 * (at >> 2)) for at in range(self.n // 2)]

    @property
    def coords(self) -> list[Coords]:
        return [coords for tile in self.tiles for coords in self.fragment(tile)]

    @property
    def ending(self) -> str:
        """The immediates: no negation, and which operands are not K-major."""
        kind = self.types.split(".")[1]
        if kind == "s8":
            return ""
        if kind not in ("f16", "bf16"):
            return ", 1, 1"
        of_a = "" if isinstance(self.a, Fragments) else f", {int(not self.a.form.is_k_major)}"
        return f", 1, 1{of_a}, {int(not self.b.form.is_k_major)}"

    def run(self, sums: list[Value] | None, use: Value | None, start: int, end: int, wait: bool) -> list[Value]:
        """Emit the MMAs from `start` to `end` along K, accumulating onto `sums` (where `use` is true)."""
        low = self.low
        before = pack_sums(low, sums) if sums is not None else []
        count = len(self.tiles) * self.n * self.sum_type.bits // 64
        inputs = list(before)
        lines = ["{ .reg .b64 da, db; wgmma.fence.sync.aligned;"]

        def operand(value: Value) -> str:
            inputs.append(value)
            return f"${count + len(inputs) - 1}"

        a = operand(self.a.start) if isinstance(self.a, Matrix) else ""
        b = operand(self.b.start)
        uses = "0" if sums is None else "1" if use is None else operand(use)
        each = count // len(self.tiles)
        operands: dict[Coords, str] = {}
        for index, (row, column) in enumerate(self.tiles):
            target = ", ".join(f"${at}" for at in range(index * each, (index + 1) * each))
            for depth in range(start, end, self.step):
                if isinstance(self.a, Matrix):
                    left = advanced(lines, "da", a, self.a.step(row, depth))
                else:
                    if (row, depth) not in operands:
                        operands[row, depth] = ", ".join(map(operand, self.a.operands(low, row, depth)))
                    left = f"{{{operands[row, depth]}}}"
                right = advanced(lines, "db", b, self.b.step(column, depth))
                scale = uses if depth == start else "1"
                name = f"wgmma.mma_async.sync.aligned.m{M}n{self.n}k{self.step}.{self.types}"
                lines.append(f"{name} {{{target}}}, {left}, {right}, {scale}{self.ending};")
        lines.append("wgmma.commit_group.sync.aligned;")
        if wait:
            lines.append("wgmma.wait_group.sync.aligned 0;")
        outputs = [self.accumulator_type] * count
        text = " ".join([*lines, "}"])
        made = ptx(low.builder, text, outputs, inputs, effect="write", convergent=True, tied=len(before))
        return sums_of(low, made, self.sum_type)

    @property
    def accumulator_type(self) -> Type:
        return i32 if self.sum_type is f16 else self.sum_type


def advanced(lines: list[str], name: str, start: str, step: int) -> str:
    """Return the name of a descriptor that is `step` units further."""
    if not step:
        return start
    lines.append(f"add.s64 {name}, {start}, {step};")
    return name


def sums_of(low: Lowering, registers: list[Value], type: Type) -> list[Value]:
    if type is not f16:
        return registers
    b = low.builder
    return [lane for packed in registers for lane in b.lanes(b.bitcast(packed, vector(f16, 2)))]


def operand_element(type: Attribute) -> Attribute:
    return type.element_type if isinstance(type, MemDescType) else element_type(type)


def dot(low: Lowering, op: Operation) -> Dot:
    a, b, d = op.operands[0], op.operands[1], op.results[0]
    mma = encoding_of(d.type)
    assert isinstance(mma, NvidiaMma)
    if not low.gpu.has(Feature.WGMMA):
        raise low.refuse(op, "a warp-group dot")
    if mma.rank != 2:
        raise low.refuse(op, "a batch of warp-group dots")
    n, bytes = mma.instr_shape[1], bit_width(a.type) // 8
    groups = layout(d)
    left: Matrix | Fragments
    if is_memdesc(a.type):
        left = matrix(low, op, a, 0, M, groups)
    else:
        left = Fragments(dict(zip(register_coords(layout(a)), low[a], strict=True)), bytes)
    kinds = [ACCUMULATOR_TYPES[element_type(d.type)], *(OPERAND_TYPES[operand_element(value.type)] for value in (a, b))]
    tiles = sorted({(row, column) for row, column in register_coords(groups) if row % M == 0 and column % n == 0})
    sums: Registers = low[op.operands[2]]
    right = matrix(low, op, b, 1, n, groups)
    return Dot(low, left, right, ".".join(kinds), n, K_BYTES // bytes, sums[0].type, tiles)


@lowers(ttng.WarpGroupDotOp)
def lower_warp_group_dot(low: Lowering, op: Operation) -> Registers:
    depth, step = shape_of(op.operands[0].type)[-1], K_BYTES * 8 // bit_width(op.operands[0].type)
    if depth < step:
        raise low.refuse(op, f"a dot of {depth} elements along K, fewer than the {step} of an instruction,")
    if not is_in_block(op):
        raise low.refuse(op, "a dot with operands in several blocks of a cluster")
    it = dot(low, op)
    given: Registers = low[op.operands[2]]
    use = low.scalar(op.operands[3]) if len(op.operands) > 3 else None
    if use is not None and use.constant == 1:
        use = None
    known = register_coords(layout(op.results[0]))
    by_coords = dict(zip(known, given, strict=True))
    starts_at_zero = (use is not None and use.constant == 0) or all(is_zero(value) for value in given)
    sums = None if starts_at_zero else [by_coords[coords] for coords in it.coords]
    if (limit := imprecise(op)) is not None:
        made = in_parts(it, sums, use, depth, max(limit // it.step, 1) * it.step)
    else:
        is_async = bool(int_property(op, "isAsync", 0)) and it.sum_type is not f16
        made = it.run(sums, use, 0, depth, wait=not is_async)
    found = dict(zip(it.coords, made, strict=True))
    return tuple(found[coords] for coords in known)


def is_in_block(op: Operation) -> bool:
    """Return True if each block holds the rows of A and the columns of B of its part of the result, along all of K."""
    wanted = dict(layout(op.results[0]).bases)["block"]
    for axis, operand in enumerate(op.operands[:2]):
        if is_memdesc(operand.type):
            held = dict(layout(operand).bases)["block"]
            parts = [vector[axis] if dim == axis else 0 for vector in wanted for dim in range(2)]
            if [moved for vector in held for moved in vector] != parts:
                return False
    return True


def is_zero(value: Value) -> bool:
    """Return True for a constant whose bits are all zero."""
    return value.constant is not None and value.text == constant(value.type, 0 if value.type is i32 else 0.0).text


def imprecise(op: Operation) -> int | None:
    """Return the limit of imprecise accumulation (8-bit floats in f32) if the dot may exceed it, else None."""
    limit = int_property(op, "maxNumImpreciseAcc", 0)
    factor, total = operand_element(op.operands[0].type), element_type(op.results[0].type)
    is_narrow = bit_width(factor) == 8 and not isinstance(factor, IntegerType) and isinstance(total, Float32Type)
    return limit if is_narrow and limit <= shape_of(op.operands[0].type)[1] else None


def in_parts(it: Dot, sums: list[Value] | None, use: Value | None, depth: int, most: int) -> list[Value]:
    """Accumulate `most` elements of K at a time, and add these partial sums in f32."""
    b = it.low.builder
    if sums is not None and use is not None:
        sums = [b.select(use, value, constant(f32, 0.0)) for value in sums]
    for start in range(0, depth, most):
        part = it.run(None, None, start, min(start + most, depth), wait=True)
        sums = part if sums is None else [b.fadd(total, more) for total, more in zip(sums, part, strict=True)]
    assert sums is not None
    return sums


@lowers(ttng.WarpGroupDotWaitOp)
def lower_warp_group_dot_wait(low: Lowering, op: Operation) -> list[Registers | Shared]:
    """Wait for pending MMAs. Accumulators that are used pass through the wait, so that LLVM cannot use them before it;
    row sums that are operands are computed before it.
    """
    pairs = zip(op.operands, op.results, strict=True)
    passed = [value for value, result in pairs if is_accumulator(value.type) and not is_only_summed(result)]
    flat = [register for value in passed for register in low[value]]
    rows = [register for value in op.operands if is_of_rows(value.type) for register in low[value]]
    names = [f"${index}" for index in range(2 * len(flat), 2 * len(flat) + len(rows))]
    text = f"{held_back_by(names)}wgmma.wait_group.sync.aligned {int_property(op, 'pendings', 0)};"
    outputs = [value.type for value in flat]
    made = iter(ptx(low.builder, text, outputs, [*flat, *rows], effect="write", convergent=True, tied=len(flat)))
    found: list[Registers | Shared] = []
    for value in op.operands:
        given: Registers | Shared = low[value]
        if value in passed:
            assert isinstance(given, tuple)
            found.append(tuple(next(made) for _ in given))
        else:
            found.append(given)
    return found


def held_back_by(sums: Sequence[str]) -> str:
    """Return code that keeps a wait after the computation of these registers.

    ptxas hoists a wait above the work that should overlap with the MMAs, but not above a branch: this one is never
    taken (no sum is this non-canonical NaN), and would be harmless.
    """
    if not sums:
        return ""
    added = "".join(f"add.f32 sum, sum, {name}; " for name in sums[1:])
    return (
        f"{{ .reg .pred never; .reg .f32 sum; .reg .b32 bits; mov.f32 sum, {sums[0]}; {added}mov.b32 bits, sum; "
        "setp.eq.b32 never, bits, 0xFFBADBAD; @never nanosleep.u32 1; } "
    )


def is_only_summed(value: SSAValue) -> bool:
    """Return True if only dots use `value`, as their accumulator: they follow the wait anyway."""
    return all(type(use.operation) is ttng.WarpGroupDotOp and use.index == SUM for use in value.uses)


def is_accumulator(type: Attribute) -> bool:
    """Return True for an accumulator that an asynchronous dot may still write."""
    return not is_memdesc(type) and len(shape_of(type)) == 2 and bit_width(type) == 32


def is_of_rows(type: Attribute) -> bool:
    """Return True for a vector with one f32 for each row of an accumulator."""
    return not is_memdesc(type) and len(shape_of(type)) == 1 and isinstance(element_type(type), Float32Type)
