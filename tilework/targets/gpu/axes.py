"""The bits of a layout one by one: which bit of the register, lane or warp number moves along which dimension.

    #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [8, 4], ...}> on 8x8:
    Bit("register", 0, dim=1, place=0)      register 1 is one column to the right
    Bit("lane", 0, dim=1, place=1)          lane 1 is two columns to the right
    Bit("lane", 2, dim=0, place=0)          lane 4 is a row down

Every basis of the layout of a tensor is one bit of one coordinate, or zero (a copy). So work along an axis goes bit by
bit: registers are combined, lanes shuffle, warps meet in memory.

The function of scalars that a reduction, a scan or a map carries as its region.

    sums = call(low, op.regions[0], [*left, *right])

A region of one block is emitted in place. One with branches (a function that returns early) gets blocks of its own, and
the values that its returns give meet in phis.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from xdsl.ir import Operation, Region

from tilework.analysis.combine_regions import single_op
from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.lowering import Lowering
from tilework.targets.llvm.module import Block
from tilework.targets.llvm.op_lowering import REGION_ENDS
from tilework.targets.llvm.types import i32
from tilework.targets.llvm.values import Value, constant


def call(low: Lowering, region: Region, args: Sequence[Value]) -> list[Value]:
    """The results of the region for these scalars."""
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
    """All parts combined, neighbours first: a tree keeps the order and is not deep."""
    left = [list(part) for part in parts]
    # values of 16 bits are computed in pairs, given several
    is_one_by_one = single_op(region) is None or left[0][0].type.bits == 16
    while len(left) > 1:
        firsts, seconds = left[: len(left) & ~1 : 2], left[1::2]
        if is_one_by_one:
            pairs = [call(low, region, [*first, *second]) for first, second in zip(firsts, seconds, strict=True)]
        else:
            sides = [tuple([value for (value,) in side]) for side in (firsts, seconds)]
            pairs = [[value] for value in low.region(region.blocks[0], sides)[0]]
        left = [*pairs, *left[len(left) & ~1 :]]
    return left[0]


class Bit(NamedTuple):
    """Bit `number` of a register, lane, warp or block is bit `place` of the coordinate `dim`."""

    level: str
    number: int
    dim: int
    place: int


def moving_bits(low: Lowering, op: Operation, layout: LinearLayout) -> list[Bit]:
    """All bits that are no copies, by dimension and place."""
    dims = [int(name.removeprefix("dim")) for name in layout.out_names]
    found: dict[tuple[int, int], Bit] = {}
    for level, vectors in layout.bases:
        for number, vector in enumerate(vectors):
            for dim, moved in zip(dims, vector, strict=True):
                if not moved:
                    continue
                key = (dim, moved.bit_length() - 1)
                if key in found or moved & (moved - 1) or sum(map(bool, vector)) > 1:
                    raise low.refuse(op, f"{op.name} of a layout in which two bits move to the same element")
                found[key] = Bit(level, number, *key)
    return [found[key] for key in sorted(found)]


def stays_in_block(low: Lowering, op: Operation, bits: Iterable[Bit], axis: int) -> None:
    """Refuse an axis that several blocks of a cluster share."""
    if any(bit.level == "block" and bit.dim == axis for bit in bits):
        raise low.refuse(op, f"{op.name} along an axis that is split between the blocks of a cluster")


def numbers(bits: Iterable[Bit], level: str) -> list[int]:
    """The bit numbers at one level, in the order given."""
    return [bit.number for bit in bits if bit.level == level]


def mask_of(bits: Iterable[int]) -> int:
    return sum(1 << bit for bit in bits)


def spread_index(index: int, bits: Sequence[int]) -> int:
    """The number whose bits `bits` are those of `index`.

    >>> spread_index(3, [1, 4])
    18
    """
    return sum(1 << bit for place, bit in enumerate(bits) if index >> place & 1)


def subsets(bits: Sequence[int]) -> list[int]:
    """All numbers that have only these bits, counted by them."""
    return [spread_index(index, bits) for index in range(1 << len(bits))]


def memory_layout(
    layout: LinearLayout, registers: Sequence[int], lanes: Mapping[int, int], warps: Mapping[int, int]
) -> LinearLayout:
    """Offsets in memory: register bit i moves by offset bit `registers[i]`, lane and warp bits by those they are mapped
    to.
    """
    columns = [("register", tuple(1 << bit for bit in registers))]
    for level, places in (("lane", lanes), ("warp", warps)):
        count = len(layout.by_in[level])
        columns.append((level, tuple(1 << places[bit] if bit in places else 0 for bit in range(count))))
    total = len(set(registers) | set(lanes.values()) | set(warps.values()))
    return LinearLayout.packed(tuple(columns), (("offset", 1 << total),))


def exchange_layouts(
    layout: LinearLayout, parts: int, together: int, lanes: Sequence[int], others: Sequence[int], warps: Sequence[int]
) -> tuple[LinearLayout, LinearLayout]:
    """The layouts in which a thread writes `1 << parts` registers for the other `warps`, and reads those of all of
    them.

    In memory `1 << together` registers lie side by side, then the `lanes`, the other registers, the `others` among the
    warps, and the `warps`, which are further registers when a thread reads.
    """
    levels = [*(("register", bit) for bit in range(together)), *(("lane", bit) for bit in sorted(lanes))]
    levels += [("register", bit) for bit in range(together, parts)]
    place = {level: offset for offset, level in enumerate([*levels, *(("warp", bit) for bit in (*others, *warps))])}
    registers = [place["register", bit] for bit in range(parts)]
    by_lane = {bit: place["lane", bit] for bit in lanes}
    by_warp, along = ({bit: place["warp", bit] for bit in some} for some in (others, warps))
    written = memory_layout(layout, registers, by_lane, by_warp | along)
    return written, memory_layout(layout, [*registers, *along.values()], by_lane, by_warp)


def lane_is(low: Lowering, mask: int, wanted: int) -> Value:
    """Return True if the bits `mask` of this lane's number are those of `wanted`."""
    return low.builder.icmp("eq", low.builder.and_(low.lane, mask), constant(i32, wanted))


def has_bits(low: Lowering, value: Value, mask: int, wanted: int) -> Value | None:
    """Return True if the bits `mask` of a number are those of `wanted`; None if there are none to ask for."""
    if not mask or value.constant is not None:
        return None
    b = low.builder
    return b.icmp("eq", b.and_(value, mask), constant(i32, wanted))
