"""Select the instructions of a dot: the first row of `CHOICES` that the machine and the dot allow.

| operands, sum | x86 | ARM |
|---|---|---|
| bf16, f32 | AMX (`tdpbf16ps`), AVX512-BF16 (`vdpbf16ps`), else f32 | `bfmmla`, else f32 |
| f16, f32 | AMX-FP16 (`tdpfp16ps`), else f32 | f32 |
| int8, int32 | AMX (`tdpbssd`), VNNI (`vpdpbusd`, for few elements `vpdpwssd`), `pmaddwd` | `smmla`, `sdot` |

f32 means that operands are converted, exactly, while they are packed. Sums are never narrower than 32 bits: the
products of a dot whose result is f16 or bf16 are summed in f32 and rounded once, so the instructions that sum in f16
(AVX512-FP16, ARM's FP16 FMLA) do not serve: over 1,024 products their error is 30 times as large. ARM's FMLAL
multiplies no more elements at once than FMLA of converted ones. Instructions for bf16 read and write subnormal numbers
as zero, and add products in pairs. `vpdpbusd` multiplies unsigned bytes by signed ones: B is packed as b + 128, and a @
b is a @ (b + 128) less 128 times the sums of A's rows, exact in 32 bits that wrap.
"""

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import Attribute

from tilework.ir import types as ir
from tilework.targets.cpu.lower.microkernel import Accumulate, Block, Unit, Work, along_depth, choose_block
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.scalar_types import memory_type
from tilework.targets.llvm.scalars import fma_to_odd
from tilework.targets.llvm.types import Type, bf16, f32, f64, i8, i16, i32, i64, vector
from tilework.targets.llvm.values import Value

TILE_ROWS, TILE_BYTES = 16, 64  # the largest tile of AMX: rows, and bytes of a row


class Sizes(NamedTuple):
    """The sizes of a dot: (rows x depth) times (depth x columns)."""

    rows: int
    columns: int
    depth: int


class Choice(NamedTuple):
    """A unit, and what must hold for it: `divisors` divide the sizes; a depth that they do not divide is filled up with
    zeros.
    """

    unit: Unit
    arch: str
    features: frozenset[str]
    operand: Attribute
    sum: Attribute
    divisors: Sizes = Sizes(1, 1, 1)
    least: int = 0  # the least multiplications per element of A

    def serves(self, target: HostTarget, sizes: Sizes, left: Attribute, right: Attribute, sum: Attribute) -> bool:
        if (target.arch, left, right, sum) != (self.arch, self.operand, self.operand, self.sum):
            return False
        if not self.features <= target.features | target.dot_features:
            return False
        if self.unit.tiles:
            return is_tiled(self.unit, sizes)
        if sizes.columns * sizes.depth < self.least:
            return False
        rows, columns, depth = self.divisors
        return sizes.rows % rows == 0 and sizes.columns % columns == 0 and is_deep(sizes.depth, depth)


def is_deep(depth: int, group: int) -> bool:
    """Return True if an instruction that takes `group` steps of K at once is worth it: there are as many, or more than
    one group.
    """
    return depth % group == 0 or depth > group


def fused(b: Builder, total: Value, x: Value, y: Value) -> Value:
    return b.fma(x, y, total)


def fused_in_doubles(b: Builder, total: Value, x: Value, y: Value) -> Value:
    """x * y + total, rounded once."""
    wide = total.type.with_scalar(f64)
    return b.fptrunc(fma_to_odd(b, *(b.fpext(value, wide) for value in (x, y, total))), total.type)


def unfused(b: Builder, total: Value, x: Value, y: Value) -> Value:
    return b.fadd(b.fmul(x, y), total)


def integer(b: Builder, total: Value, x: Value, y: Value) -> Value:
    return b.add(b.mul(x, y), total)


def dot_instruction(name: str, widths: Sequence[int], factor: Type = i32, swaps: bool = False) -> Accumulate:
    """An instruction whose lanes of 32 bits each add several products; `widths` are the lanes it may have: borders are
    narrower.
    """

    def accumulate(b: Builder, total: Value, x: Value, y: Value) -> Value:
        count = total.type.count
        width = next(width for width in widths if width >= count)
        wide, x, y = [b.widened(value, width) for value in (total, x, y)]
        x, y = (b.bitcast(value, vector(factor, width * 32 // factor.bits)) for value in (x, y))
        overload = "" if name.startswith("x86") else f"{wide.type.suffix}.{x.type.suffix}"
        given = (y, x) if swaps else (x, y)
        found = b.intrinsic(name.format(32 * width), wide.type, wide, *given, overload=overload)
        return b.shuffle(found, None, range(count))

    return accumulate


def dot_pairs_x86(b: Builder, total: Value, x: Value, y: Value) -> Value:
    """x86's pmaddwd: each lane adds two products of 16-bit integers; exact, since bytes cannot overflow it."""
    if total.type.count not in X86_PAIRS:
        return dot_pairs_generic(b, total, x, y)
    halves = vector(i16, 2 * total.type.count)
    name = X86_PAIRS[total.type.count]
    return b.add(total, b.intrinsic(name, total.type, b.bitcast(x, halves), b.bitcast(y, halves), overload=""))


def dot_pairs_generic(b: Builder, total: Value, x: Value, y: Value) -> Value:
    """The same by shifts, for borders narrower than a register."""
    for shift in (lambda v: b.ashr(b.shl(v, 16), 16), lambda v: b.ashr(v, 16)):
        total = b.add(total, b.mul(shift(x), shift(y)))
    return total


def matrix_instruction(name: str, factor: Type, overload: str) -> Accumulate:
    """Return a function that multiplies matrices of two rows by matrices of two columns, 16 bytes each."""

    def accumulate(b: Builder, total: Value, x: Value, y: Value) -> Value:
        x, y = (b.bitcast(value, vector(factor, 128 // factor.bits)) for value in (x, y))
        return b.intrinsic(f"aarch64.neon.{name}", total.type, total, x, y, overload=overload)

    return accumulate


def emit_matrices(b: Builder, target: HostTarget, unit: Unit, work: Work, totals: Sequence[Value]) -> list[Value]:
    """As `emit_block`, of accumulators that are 2 x 2 matrices: two rows of A, as far as 8 bytes of K go, times two
    columns of B.

    ``a0 a1 a2 a3`` and ``b0 b1 b2 b3``, two rows of C, are the matrices ``a0 a1 b0 b1`` and ``a2 a3 b2 b3``.
    """
    align, rows, line = unit.element.bits // 8, work.rows, len(work.widths)

    def paired(first: Value, second: Value) -> tuple[Value, Value]:
        half = first.type.count // 2
        low, high = range(half), range(half, 2 * half)
        lower, upper = (b.shuffle(first, second, [*part, *(2 * half + lane for lane in part)]) for part in (low, high))
        return lower, upper

    def steps(count: int, at_left: Value, at_right: Value, sums: Sequence[Value]) -> list[Value]:
        loaded = [
            b.load(vector(i64, count), b.gep(at_left, row * work.left.stride), align=align) for row in range(rows)
        ]
        pairs = list(zip(loaded[::2], loaded[1::2], strict=True))
        held = [paired(*pair) if count == 2 else (b.concat(*pair),) for pair in pairs]
        sums = list(sums)
        for step in range(count):
            for column in range(2 * line):
                offset = step * work.right.stride + column * 16
                across = b.load(vector(i64, 2), b.gep(at_right, offset), align=align)
                for pair in range(rows // 2):
                    position = pair * 2 * line + column
                    sums[position] = unit.accumulate(b, sums[position], held[pair][step], across)
        return sums

    matrices = [
        matrix
        for row in range(0, rows, 2)
        for position in range(line)
        for matrix in paired(totals[row * line + position], totals[(row + 1) * line + position])
    ]
    sums = along_depth(b, unit, work, 2, matrices, steps)
    found: list[Value] = []
    for row in range(0, rows, 2):
        both = [paired(*sums[row * line + 2 * position :][:2]) for position in range(line)]
        found += [pair[0] for pair in both] + [pair[1] for pair in both]
    return found


X86_PAIRS = {4: "x86.sse2.pmadd.wd", 8: "x86.avx2.pmadd.wd", 16: "x86.avx512.pmaddw.d.512"}
X86_LANES = tuple(X86_PAIRS)

F32 = Unit("f32", f32, f32, fused)
F64 = Unit("f64", f64, f64, fused)
F32_EMULATED = Unit("f32", f32, f32, fused_in_doubles, temporaries=6)
F32_UNFUSED = Unit("f32", f32, f32, unfused, temporaries=2)
F64_UNFUSED = Unit("f64", f64, f64, unfused, temporaries=2)
I32 = Unit("i32", i32, i32, integer, temporaries=2)
BYTES_ARM = Unit("sdot", i32, i32, dot_instruction("aarch64.neon.sdot", (2, 4), i8, swaps=True), 4, i8)
PAIRS_X86 = Unit("pmaddwd", i32, i32, dot_pairs_x86, 2, i16, temporaries=2)
VNNI_X86 = Unit("vpdpwssd", i32, i32, dot_instruction("x86.avx512.vpdpwssd.{}", X86_LANES), 2, i16)
BUSD = dot_instruction("x86.avx512.vpdpbusd.{}", X86_LANES, swaps=True)  # unsigned bytes (of B) times signed ones
BYTES_VNNI = Unit("vpdpbusd", i32, i32, BUSD, 4, i8, right_offset=128)
DPBF16 = dot_instruction("x86.avx512bf16.dpbf16ps.{}", X86_LANES, bf16)
BFLOATS_X86 = Unit("vdpbf16ps", i32, f32, DPBF16, 2, i16, features=frozenset({"avx512bf16"}))
BY_FOUR, BY_EIGHT = matrix_instruction("bfmmla", bf16, ""), matrix_instruction("smmla", i8, "v4i32.v16i8")
BFMMLA = Unit("bfmmla", i64, f32, BY_FOUR, 4, i16, features=frozenset({"bf16"}), emit=emit_matrices)
SMMLA = Unit("smmla", i64, i32, BY_EIGHT, 8, i8, features=frozenset({"i8mm"}), emit=emit_matrices)
TILES_BF16 = Unit("amx-bf16", i32, f32, fused, 2, i16, features=frozenset({"amx-tile", "amx-bf16"}), tiles="tdpbf16ps")
TILES_FP16 = Unit("amx-fp16", i32, f32, fused, 2, i16, features=frozenset({"amx-tile", "amx-fp16"}), tiles="tdpfp16ps")
TILES_INT8 = Unit("amx-int8", i32, i32, integer, 4, i8, features=frozenset({"amx-tile", "amx-int8"}), tiles="tdpbssd")

X86, ARM = "x86_64", "aarch64"
CHOICES = [
    Choice(TILES_BF16, X86, TILES_BF16.features, ir.bf16, ir.f32),
    Choice(TILES_FP16, X86, TILES_FP16.features, ir.f16, ir.f32),
    Choice(TILES_INT8, X86, TILES_INT8.features, ir.i8, ir.i32),
    Choice(BFLOATS_X86, X86, BFLOATS_X86.features | {"avx512vl"}, ir.bf16, ir.f32, Sizes(1, 1, 2)),
    *(
        Choice(unit, X86, frozenset(has), ir.i8, ir.i32, Sizes(1, 1, unit.group), least)
        for has in (["avx512vnni", "avx512vl"], ["avxvnni"])
        for unit, least in ((BYTES_VNNI, 1024), (VNNI_X86, 0))  # sums of rows cost as much as some multiplications
    ),
    Choice(BFMMLA, ARM, BFMMLA.features, ir.bf16, ir.f32, Sizes(2, 4, 4)),
    Choice(SMMLA, ARM, SMMLA.features, ir.i8, ir.i32, Sizes(2, 4, 8)),
    Choice(BYTES_ARM, ARM, frozenset({"dotprod"}), ir.i8, ir.i32, Sizes(1, 1, 4)),
]


def unit_of(
    target: HostTarget, sizes: Sizes, left: Attribute, right: Attribute, sum: Attribute, in_order: bool = False
) -> Unit:
    """Select the unit that multiplies.

    `in_order`: floats by fused multiply-adds along K, emulated on machines without them.
    """
    in_order = in_order and not memory_type(sum).is_int
    for choice in CHOICES:
        if choice.serves(target, sizes, left, right, sum) and not in_order:
            return choice.unit
    if in_order:
        return F64 if memory_type(sum) is f64 else F32 if target.has_fma else F32_EMULATED
    if memory_type(sum).is_int:
        has_pairs = target.arch == X86 and (target.vector_bytes < 64 or "avx512bw" in target.features)
        return PAIRS_X86 if has_pairs and left == right == ir.i8 and is_deep(sizes.depth, 2) else I32
    if memory_type(sum) is f64:
        return F64 if target.has_fma else F64_UNFUSED
    return F32 if target.has_fma else F32_UNFUSED


def block_of(target: HostTarget, unit: Unit, sizes: Sizes) -> Block:
    """The accumulators that registers hold."""
    if unit.tiles:  # two tiles by two, so that each tile of A and B is used twice
        rows, columns, _ = tile_sizes(unit, sizes)
        return Block(min(sizes.rows, 2 * rows), min(sizes.columns // columns, 2), columns)
    if unit.emit is not None:
        return Block(min(sizes.rows, 8), min(sizes.columns // 4, 2), 4)
    return choose_block(target, unit, sizes.rows, sizes.columns)


def tile_sizes(unit: Unit, sizes: Sizes) -> Sizes:
    """Return the sizes of one tile each of C, A and B."""
    deepest = TILE_BYTES * 8 // unit.element.bits
    return Sizes(min(sizes.rows, TILE_ROWS), min(sizes.columns, TILE_BYTES // 4), min(sizes.depth, deepest))


def is_tiled(unit: Unit, sizes: Sizes) -> bool:
    """Return True if whole tiles cover the dot."""
    tile = tile_sizes(unit, sizes)
    return not any(map(int.__mod__, sizes, tile)) and tile.depth % unit.group == 0
