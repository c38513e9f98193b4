"""`tt.reduce`: first the registers of a thread, then the lanes of a warp, then the warps.

    64 elements, two per thread on 32 lanes:    %s = fadd %x0, %x1                 ; the registers along the axis
                                                %t = shfl.bfly %s, 16              ; lanes l and l^16 both get the sum
                                                %s1 = fadd %s, %t
                                                ... 8, 4, 2, 1

Only bits along the axis take part: duplicates (zero bases) are not counted twice, and lanes of other rows are not
mixed. Where several warps share the axis, one lane of each row writes its warp's partial result to scratch memory. Then
every thread reads all partial results of its rows; or, where that takes longer, each lane reads one of them, and the
lanes of each warp combine them again. In memory the registers that one thread moves at a time are fastest, then the
lanes (no bank conflicts), then the warps.

The combine function must be associative. A single commutative op combines distant lanes and distant warps first, as in
Triton, so that programs which rely on that order with other shapes get the same bits. For other functions the arguments
are in the order of the axis. Where a layout covers the axis several times, so that register bits are above lane and
warp bits, the tree below is used, unless order is known not to matter.

The tree of `ir/module_facts.py` goes bit by bit of the index, from the lowest to the highest, whichever level has the
bit:

    4096 elements on 4 warps, four adjacent registers, eight times:

    bits 0-1: registers     3 combinations in each of the eight groups
    bits 2-4: lanes         each trades half of its groups for the other lane's part of the rest: 4, 2, 1 shuffles, and
                            one group is left
    bits 5-6: lanes         2 butterflies
    bits 7-8: warps         the eight groups of each warp are combined through scratch memory
    bits 9-11: lanes        which hold the groups now: 3 butterflies

It requires no layout: the bits are taken in the order of the axis, so the number of warps determines which thread adds,
but not the order of additions.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from xdsl.ir import Operation, Region

from tilework.analysis.combine_regions import follows_axis, in_axis_order, lanes_agree, single_op
from tilework.ir import arith, tt
from tilework.ir.encodings import is_accumulator, layout_of
from tilework.ir.rewrite import defining_op
from tilework.ir.types import axis_of, bit_width, is_tensor
from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.axes import (
    Bit,
    bits_at,
    call,
    check_in_block,
    exchange_layouts,
    fold,
    lane_is,
    mask_of,
    moving_bits,
    subsets,
)
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.gpu.scan import Scan, Values
from tilework.targets.gpu.shared_access import exchange_moves
from tilework.targets.gpu.views import register_coords
from tilework.targets.llvm.types import f32, i32
from tilework.targets.llvm.values import Value, constant


def reduced_by_tree(
    low: Lowering, op: Operation, layout: LinearLayout, bits: Sequence[Bit], axis: int
) -> dict[int, Values]:
    """Reduce by the tree; return a value of each operand, by register without its bits along the axis."""
    tree = Tree(low, op, layout, bits, axis)
    steps = {"register": tree.in_threads, "lane": tree.in_warps, "warp": tree.across_warps}
    while left := sorted(filter(tree.is_open, tree.bits), key=lambda bit: bit.position):
        held = [bit for bit in left if bit.level == "register"]
        if left[0].level == "lane" and held:
            tree.trade(left[0], held[0])
        else:
            level, group = next(groupby(left, lambda bit: bit.level))
            steps[level](bits_at(group, level), False)
    return tree.totals


class Tree(Scan):
    """A scan of which only the totals are computed."""

    def in_threads(self, bits: list[int], is_last: bool) -> None:
        own, region = mask_of(bits), self.op.regions[0]
        self.totals = {
            start: fold(self.low, region, [self.totals[start | other] for other in subsets(bits)])
            for start in self.totals
            if not start & own
        }
        self.done["register"] |= own

    def trade(self, lane: Bit, held: Bit) -> None:
        """Combine along the bit `lane`: half of the lanes keep the pieces with the bit `held`, the others those
        without.

        From then on the bit `lane` distinguishes these pieces: it replaces `held` as a later bit of the index.
        """
        low, b, bit = self.low, self.low.builder, 1 << held.index
        upper = lane_is(low, 1 << lane.index, 1 << lane.index)
        for piece in [piece for piece in self.totals if not piece & bit]:
            first, second = self.totals[piece], self.totals.pop(piece | bit)
            given = b.select_all(upper, first, second)
            others = [low.shuffle_xor(value, 1 << lane.index) for value in given]
            before, after = b.select_all(upper, others, first), b.select_all(upper, second, others)
            self.totals[piece] = self.call(before, after)
        self.bits = [bit for bit in self.bits if bit not in (lane, held)] + [
            held._replace(level="lane", index=lane.index)
        ]
        self.traded.append(lane.index)

    def in_warps(self, bits: list[int], is_last: bool) -> None:
        self.totals = {piece: self.butterflies(values, bits) for piece, values in self.totals.items()}
        self.done["lane"] |= mask_of(bits)

    def butterflies(self, values: Values, bits: Iterable[int]) -> Values:
        """Combine the values of lanes that differ in `bits`, in the order of the lanes."""
        low, b = self.low, self.low.builder
        is_symmetric = single_op(self.op.regions[0]) is not None
        for bit in bits:
            others = [low.shuffle_xor(value, 1 << bit) for value in values]
            if is_symmetric:
                values = self.call(values, others)
                continue
            upper = lane_is(low, 1 << bit, 1 << bit)
            before, after = b.select_all(upper, others, values), b.select_all(upper, values, others)
            values = self.call(before, after)
        return values

    def across_warps(self, bits: list[int], is_last: bool) -> None:
        pieces, rows = list(self.totals), bits_at(self.left(), "lane")
        readers = {} if self.pending_lanes() else reading_lanes(self.low, self.op, rows, bits, len(pieces), False)
        parts = self.exchange(bits, readers)
        for index, piece in enumerate(pieces):
            warps = [parts[index + len(pieces) * warp] for warp in range(1 << len(bits) - len(readers))]
            self.totals[piece] = self.butterflies(fold(self.low, self.op.regions[0], warps), readers)
        self.done["warp"] |= mask_of(bits)


MANY = 32  # registers of a row from which `Gpu.maxima` pays
SHUFFLE_CYCLES = 24  # until a shuffled value can be used
SCHEDULERS = 4  # of a multiprocessor: instructions that start in a cycle, beside one access to shared memory
CHAINS = 4  # sums of products that a thread adds to at the same time, to hide the latency of an addition
Parts = dict[int, list[Value]]  # by register (without its bits along the axis): a value of each operand

REDUCTIONS: dict[type[Operation], str] = {
    arith.AddiOp: "add", arith.AndIOp: "and", arith.OrIOp: "or", arith.XOrIOp: "xor",
    arith.MaxSIOp: "max", arith.MinSIOp: "min", arith.MaxUIOp: "umax", arith.MinUIOp: "umin",
}  # fmt: skip
IDEMPOTENT = frozenset({"and", "or", "max", "min", "umax", "umin"})


class Ways(NamedTuple):
    """The layout of the sources, with its bits along the axis and the others."""

    layout: LinearLayout
    along: list[Bit]
    across: list[Bit]


@lowers(tt.ReduceOp)
def lower_reduce(low: Lowering, op: Operation) -> list[Registers]:
    layout, axis = layout_of(op.operands[0].type), axis_of(op)
    bits = moving_bits(low, op, layout)
    check_in_block(low, op, bits, axis)
    if follows_axis(op):
        return results(op, axis, layout, reduced_by_tree(low, op, layout, bits, axis))
    ways = Ways(layout, [bit for bit in bits if bit.dim == axis], [bit for bit in bits if bit.dim != axis])
    region = op.regions[0]
    parts = in_threads(low, op, ways)
    lanes = bits_at(ways.along, "lane")
    copies = [bit for bit, column in enumerate(layout.by_in["lane"]) if not column]
    parts = {register: in_warps(low, region, lanes, copies, values) for register, values in parts.items()}
    if bits_at(ways.along, "warp"):
        parts = across_warps(low, op, ways, parts)
    elif not lanes_agree(region):
        parts = {register: from_first_lane(low, lanes, values) for register, values in parts.items()}
    return results(op, axis, layout, parts)


def in_threads(low: Lowering, op: Operation, ways: Ways) -> Parts:
    """Combine the registers of each row of this thread."""
    sources = [low[operand] for operand in op.operands]
    along = subsets(bits_at(ways.along, "register"))
    rows = subsets(sorted(bits_at(ways.across, "register")))
    if is_scores(low, op, sources) and len(along) >= MANY:
        found = low.gpu.maxima(low.builder, [[sources[0][row | other] for other in along] for row in rows])
        if found is not None:
            return {row: [value] for row, value in zip(rows, found, strict=True)}
    if is_of_products(low, op):
        parts = {row: [[sources[0][row | other]] for other in along] for row in rows}
        return {row: fold_products(low, op.regions[0], values) for row, values in parts.items()}
    region, chosen = in_axis_order(op)
    positions = [coords[axis_of(op)] for coords in register_coords(ways.layout)]

    def part(row: int, other: int) -> list[Value]:
        """Return the operands of a register, relative to the first of its row where they are only chosen."""
        offset, values = positions[row | other] - positions[row], [registers[row | other] for registers in sources]
        return [constant(value.type, offset) if at in chosen else value for at, value in enumerate(values)]

    def combined(row: int) -> list[Value]:
        made = fold(low, region, [part(row, other) for other in along])
        return [low.builder.add(sources[at][row], value) if at in chosen else value for at, value in enumerate(made)]

    return {row: combined(row) for row in rows}


def is_of_products(low: Lowering, op: Operation) -> bool:
    """Return True for a sum of products that nothing else uses: each can be fused with an addition."""
    made = defining_op(op.operands[0])
    return (
        low.fuses
        and single_op(op.regions[0]) is arith.AddfOp
        and isinstance(made, arith.MulfOp)
        and made.results[0].has_one_use()
    )


def fold_products(low: Lowering, region: Region, parts: Sequence[Sequence[Value]]) -> list[Value]:
    """Add products one after the other, in up to `CHAINS` sums: a tree can fuse only half of them."""
    count = max(1, min(CHAINS, len(parts) // CHAINS))
    sums = tuple([value for (value,) in parts[:count]])
    for first in range(count, len(parts), count):
        (sums,) = low.region(region.blocks[0], [sums, tuple([value for (value,) in parts[first : first + count]])])
    return fold(low, region, [[value] for value in sums])


def is_scores(low: Lowering, op: Operation, sources: Sequence[Registers]) -> bool:
    """Return True for f32 maxima of an MMA result in code that all warps run, where other warps hide a branch."""
    of_floats = single_op(op.regions[0]) is arith.MaxnumfOp and sources[0][0].type is f32
    return of_floats and low.warps.are_all and is_accumulator(op.operands[0].type)


def in_warps(
    low: Lowering, region: Region, lanes: Sequence[int], copies: Sequence[int], values: list[Value]
) -> list[Value]:
    """Combine the lanes of a row, by butterflies or in one instruction; lanes that differ in the bits `copies` have the
    same values.

    Multiply-adds are not fused: each lane would round only the other's multiplication, and lanes would disagree.
    """
    if (whole := whole_warp(low, region, lanes, copies, values)) is not None:
        return [whole]
    fuses, low.fuses = low.fuses, False
    for lane in far_first(region, lanes):
        others = [low.shuffle_xor(value, 1 << lane) for value in values]
        values = call(low, region, [*values, *others])
    low.fuses = fuses
    return values


def far_first(region: Region, bits: Sequence[int]) -> Sequence[int]:
    """Return the bits of lanes or warps in the order in which they are combined."""
    return bits if single_op(region) is None else bits[::-1]


def whole_warp(
    low: Lowering, region: Region, lanes: Sequence[int], copies: Sequence[int], values: Sequence[Value]
) -> Value | None:
    """Reduce an integer over a whole warp in one instruction; None if that is not possible."""
    found = single_op(region)
    name = REDUCTIONS.get(found) if found is not None else None
    bits = values[0].type.bits
    if name is None or len(values) != 1 or not lanes or bits > 32:
        return None
    if mask_of([*lanes, *(copies if name in IDEMPOTENT else [])]) != low.lane_mask:
        return None
    b, (value,) = low.builder, values
    if bits < 32:
        value = b.sext(value, i32) if name in ("max", "min") else b.zext(value, i32)
    made = low.gpu.reduce_warp(b, name, value)
    return b.trunc(made, values[0].type) if made is not None and bits < 32 else made


def from_first_lane(low: Lowering, lanes: Sequence[int], values: list[Value]) -> list[Value]:
    """Broadcast the first lane's result: only that lane has combined in the order of the axis."""
    if not lanes:
        return values
    first = low.builder.and_(low.lane, ~mask_of(lanes) & low.lane_mask)
    return [low.shuffle(value, first) for value in values]


def across_warps(low: Lowering, op: Operation, ways: Ways, parts: Parts) -> Parts:
    """Combine the warps of each row through scratch memory."""
    rows, region = list(parts), op.regions[0]
    of_rows, warps = bits_at(ways.across, "lane"), bits_at(ways.along, "warp")
    readers = reading_lanes(low, op, of_rows, warps, len(rows), single_op(region) is not None)
    moves = exchange_moves(low, op, lambda size: scratch_layouts(ways, size, readers))
    for operand, (store, _, written) in enumerate(moves):
        store.store_if(low.is_first_copy(written), tuple(parts[row][operand] for row in rows))
    low.barrier()
    gathered = [load.load() for _, load, _ in moves]
    held = subsets(far_first(region, range(len(warps) - len(readers))))
    made = {
        row: fold(low, region, [[values[index + len(rows) * warp] for values in gathered] for warp in held])
        for index, row in enumerate(rows)
    }
    if not readers:
        return made
    lanes = list(readers)
    copies = [bit for bit in range(low.lane_mask.bit_length()) if bit not in (*of_rows, *lanes)]
    made = {row: in_warps(low, region, lanes, copies, values) for row, values in made.items()}
    if lanes_agree(region):
        return made
    return {row: from_first_lane(low, lanes, values) for row, values in made.items()}


def reading_lanes(
    low: Lowering, op: Operation, of_rows: Sequence[int], warps: Sequence[int], rows: int, is_far_first: bool
) -> dict[int, int]:
    """Return the warp bit that each lane bit selects, where lanes should read one partial result each and
    combine them; empty where every thread should read all of them. The lane bits `of_rows` distinguish rows.

    The registers that a lane reads are combined before the lanes, so they are the bits that are combined first.
    """
    region = op.regions[0]
    free = [bit for bit in range(low.lane_mask.bit_length()) if bit not in of_rows]
    steps = min(len(free), len(warps))
    registers = sum(-(-bit_width(operand.type) // 32) for operand in op.operands)
    combining = rows * sum(len(block.ops) - 1 for block in region.blocks) / SCHEDULERS
    reading, shuffles = (
        rows * registers,
        steps + (not lanes_agree(region)),
    )  # a wide read: a cycle for each register
    all_read = reading * (1 << len(warps)) + combining * ((1 << len(warps)) - 1)
    one_reads = reading * ((1 << len(warps) - steps) + shuffles) + combining * steps
    if low.warps.count * (all_read - one_reads) < steps * SHUFFLE_CYCLES:
        return {}
    chosen = warps[:steps] if is_far_first else warps[len(warps) - steps :]
    return dict(zip(free, chosen, strict=False))


def scratch_layouts(ways: Ways, size: int, readers: Mapping[int, int]) -> tuple[LinearLayout, LinearLayout]:
    """Return the layouts in which a thread writes its parts, and reads those of all warps (as further registers), or
    those that are left to its lane by `readers`.
    """
    registers, lanes, others = (bits_at(ways.across, level) for level in ("register", "lane", "warp"))
    return exchange_layouts(ways.layout, size, len(registers), lanes, others, bits_at(ways.along, "warp"), readers)


def results(op: Operation, axis: int, layout: LinearLayout, parts: Parts) -> list[Registers]:
    """Return the registers of the results, found by their coordinates."""
    if not is_tensor(op.results[0].type):
        return [(value,) for value in parts[0]]
    coords = register_coords(layout)
    known = {coords[row][:axis] + coords[row][axis + 1 :]: values for row, values in parts.items()}
    wanted = register_coords(layout_of(op.results[0].type))
    return [tuple(known[coords][result] for coords in wanted) for result in range(len(op.results))]
