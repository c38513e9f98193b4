"""The bases of a layout as bits: which bit of the register, lane or warp index is which bit of a coordinate.

    #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [8, 4], ...}> on 8x8:
    Bit("register", 0, dim=1, position=0)      register 1 is one column to the right
    Bit("lane", 0, dim=1, position=1)          lane 1 is two columns to the right
    Bit("lane", 2, dim=0, position=0)          lane 4 is a row down

Every basis of a tensor's layout is one bit of one coordinate, or zero (a duplicate). So work along an axis proceeds bit
by bit: registers are combined, lanes shuffle, warps exchange values through shared memory.

`call` emits the scalar function that a reduction, a scan or a map carries as its region:

    sums = call(low, op.regions[0], [*left, *right])

A region of one block is emitted inline. One with branches (a function that returns early) gets blocks of its own, and
its return values are joined by phis.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import Operation, Region

from tilework.analysis.combine_regions import single_op
from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.lowering import Lowering
from tilework.targets.llvm.module import Block
from tilework.targets.llvm.rules import REGION_ENDS
from tilework.targets.llvm.types import i32
from tilework.targets.llvm.values import Value, constant

VECTOR_BYTES = 16


def call(low: Lowering, region: Region, args: Sequence[Value]) -> list[Value]:
    """Emit the region for these scalars, and return its results."""
    blocks = list(region.blocks)
    if len(blocks) == 1:
        return low.combine(blocks[0], args)
    b, outer = low.builder, low.branches
    returned: list[tuple[list[Value], Block]] = []
    after = b.function.block("returned")
    with b.scope():
        branches = low.branches = low.branches_of(blocks)
        low.values.update(zip(blocks[0].args, [(arg,) for arg in args], strict=True))
        for block in branches.order():
            branches.enter(block)
            low.lower_block(block)
            last = block.last_op
            if last is not None and last.name in REGION_ENDS:
                returned.append(([low.scalar(operand) for operand in last.operands], b.block))
                b.br(after)
        branches.close()
    low.branches = outer
    b.resume(after)
    ways = [[(value, block) for value in values] for values, block in returned]
    return [b.phi(edges[0][0].type, edges) for edges in zip(*ways, strict=True)]


def fold(low: Lowering, region: Region, parts: Sequence[Sequence[Value]]) -> list[Value]:
    """Combine all parts as a balanced tree that keeps their order."""
    # 16-bit values are combined in pairs, so several go to one call
    if single_op(region) is None or parts[0][0].type.bits == 16:
        return fold_by_halves(low, region, parts)
    left = [list(part) for part in parts]
    while len(left) > 1:
        sides = [tuple([value for (value,) in side]) for side in (left[: len(left) & ~1 : 2], left[1::2])]
        pairs = [[value] for value in low.region(region.blocks[0], sides)[0]]
        left = [*pairs, *left[len(left) & ~1 :]]
    return left[0]


def fold_by_halves(low: Lowering, region: Region, parts: Sequence[Sequence[Value]]) -> list[Value]:
    """Combine the parts of each subtree before those of the next: few results are live at a time, and the parts behind
    them may still be on their way from memory.
    """
    if len(parts) == 1:
        return list(parts[0])
    half = 1 << (len(parts) - 1).bit_length() - 1
    first, second = (fold_by_halves(low, region, side) for side in (parts[:half], parts[half:]))
    return call(low, region, [*first, *second])


class Bit(NamedTuple):
    """Bit `index` of the register, lane, warp or block index is bit `position` of the coordinate `dim`."""

    level: str
    index: int
    dim: int
    position: int


def moving_bits(low: Lowering, op: Operation, layout: LinearLayout) -> list[Bit]:
    """Return the bits of a layout, without those of duplicates, sorted by dimension and position."""
    dims = [int(name.removeprefix("dim")) for name in layout.out_names]
    found: dict[tuple[int, int], Bit] = {}
    for level, vectors in layout.bases:
        for index, vector in enumerate(vectors):
            for dim, moved in zip(dims, vector, strict=True):
                if not moved:
                    continue
                key = (dim, moved.bit_length() - 1)
                if key in found or moved & (moved - 1) or sum(map(bool, vector)) > 1:
                    raise low.refuse(op, f"{op.name} of a layout in which two bits move to the same element")
                found[key] = Bit(level, index, *key)
    return [found[key] for key in sorted(found)]


def check_in_block(low: Lowering, op: Operation, bits: Iterable[Bit], axis: int) -> None:
    """Refuse an axis that is split between the blocks of a cluster."""
    if any(bit.level == "block" and bit.dim == axis for bit in bits):
        raise low.refuse(op, f"{op.name} along an axis that is split between the blocks of a cluster")


def bits_at(bits: Iterable[Bit], level: str) -> list[int]:
    """Return the indices of the bits at one level, in the order given."""
    return [bit.index for bit in bits if bit.level == level]


def mask_of(bits: Iterable[int]) -> int:
    return sum(1 << bit for bit in bits)


def spread_index(index: int, bits: Sequence[int]) -> int:
    """Deposit the bits of `index` at the positions `bits`.

    >>> spread_index(3, [1, 4])
    18
    """
    return sum(1 << bit for position, bit in enumerate(bits) if index >> position & 1)


def subsets(bits: Sequence[int]) -> list[int]:
    """Return all integers with only these bits set, in the order of their deposited index."""
    return [spread_index(index, bits) for index in range(1 << len(bits))]


def memory_layout(
    layout: LinearLayout, registers: Sequence[int], lanes: Mapping[int, int], warps: Mapping[int, int]
) -> LinearLayout:
    """Return a layout of memory offsets: register bit i is offset bit `registers[i]`, and lane and warp bits are the
    offset bits that they are mapped to.
    """
    columns = [("register", tuple(1 << bit for bit in registers))]
    for level, targets in (("lane", lanes), ("warp", warps)):
        count = len(layout.by_in[level])
        columns.append((level, tuple(1 << targets[bit] if bit in targets else 0 for bit in range(count))))
    total = len(set(registers) | set(lanes.values()) | set(warps.values()))
    return LinearLayout.packed(tuple(columns), (("offset", 1 << total),))


def exchange_layouts(
    layout: LinearLayout,
    size: int,
    parts: int,
    lanes: Sequence[int],
    others: Sequence[int],
    warps: Sequence[int],
    readers: Mapping[int, int] | None = None,
) -> tuple[LinearLayout, LinearLayout]:
    """Return the layouts in which a thread writes `1 << parts` registers of `size` bytes for the other `warps`, and
    reads those of all of them.

    The offset bits are, from the lowest: the register bits of a 16-byte vector, the `lanes`, the warp bits of
    `readers`, the other register bits, the `others` among the warps, and the other `warps`, which are further register
    bits when a thread reads. The lane bits that are the keys of `readers` choose the warp, by the bit of the value,
    whose registers a lane reads.
    """
    together = min(parts, (VECTOR_BYTES // size).bit_length() - 1)
    readers = readers or {}
    rest = [bit for bit in warps if bit not in readers.values()]
    levels = [*(("register", bit) for bit in range(together)), *(("lane", bit) for bit in sorted(lanes))]
    levels += [("warp", bit) for bit in readers.values()]
    levels += [("register", bit) for bit in range(together, parts)]
    target = {level: offset for offset, level in enumerate([*levels, *(("warp", bit) for bit in (*others, *rest))])}
    registers = [target["register", bit] for bit in range(parts)]
    by_lane = {bit: target["lane", bit] for bit in lanes}
    by_warp, along = ({bit: target["warp", bit] for bit in some} for some in (others, warps))
    written = memory_layout(layout, registers, by_lane, by_warp | along)
    by_reader = {lane: along[warp] for lane, warp in readers.items()}
    return written, memory_layout(layout, [*registers, *(along[bit] for bit in rest)], by_lane | by_reader, by_warp)


def lane_is(low: Lowering, mask: int, wanted: int) -> Value:
    """Return a condition: the bits `mask` of the lane id equal `wanted`."""
    return low.builder.icmp("eq", low.builder.and_(low.lane, mask), constant(i32, wanted))


def has_bits(low: Lowering, value: Value, mask: int, wanted: int) -> Value | None:
    """Return a condition: the bits `mask` of `value` equal `wanted`; None if it always holds."""
    if not mask or value.constant is not None:
        return None
    b = low.builder
    return b.icmp("eq", b.and_(value, mask), constant(i32, wanted))
