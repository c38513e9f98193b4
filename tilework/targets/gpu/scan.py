"""`tt.scan`: running combinations along an axis, bit by bit of the coordinate, from the lowest to the highest.

    256 elements on 32 lanes, four adjacent registers, twice:

    group       bits 0-1: registers    a b c d -> a ab abc abcd          a total per thread
                bits 2-6: lanes        totals are scanned by shuffles; all registers get the total of the lower lanes
                bit 7:    registers    the second half gets the total of the first

After each group of bits every thread has its elements, combined from the start of their piece (the elements that differ
in the bits so far), and the total of the piece. The next group joins pieces: it combines the totals of the preceding
pieces, and prepends them to the elements. This works for any order of registers, lanes and warps along the axis, keeps
the order of arguments (the function must be associative, not commutative), and handles duplicates.

The prefix of a thread's elements is the same for all of a piece, so prefixes are combined with each other, and
prepended to each element once, after the last group: 16 elements in four pieces take 16 combinations and 8 of the
pieces, not 48.

Warps exchange totals through scratch memory: the total of each piece is written once, and every thread reads those of
all warps. With `reverse` the first element is the one with all bits set.

Where the order of combinations is guaranteed (`ir/module_facts.py`), each bit is a group of its own, whose pieces get
their prefixes at once, and a reduction is such a scan of which only the totals are computed.
"""

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation

from tilework.analysis.combine_regions import single_op
from tilework.ir import tt
from tilework.ir.encodings import layout_of
from tilework.ir.module_facts import follows_tree
from tilework.ir.types import axis_of, int_property
from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.axes import (
    Bit,
    bits_at,
    call,
    check_in_block,
    exchange_layouts,
    has_bits,
    lane_is,
    mask_of,
    moving_bits,
    spread_index,
    subsets,
)
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.gpu.shared_access import Move, exchange_moves
from tilework.targets.gpu.views import xor_columns
from tilework.targets.llvm.values import Value

Values = list[Value]  # one of each operand
Front = tuple[Values, Value | None]  # the prefix of an element, absent where a condition holds


@lowers(tt.ScanOp)
def lower_scan(low: Lowering, op: Operation) -> list[Registers]:
    layout, axis = layout_of(op.operands[0].type), axis_of(op)
    bits = moving_bits(low, op, layout)
    check_in_block(low, op, bits, axis)
    scan = Scan(low, op, layout, bits, axis)
    scan.join([[bit] for bit in bits if bit.dim == axis] if follows_tree(op) else axis_groups(bits, axis))
    kept = mask_of(bits_at(bits, "register"))
    registers = range(layout.in_size("register"))
    return [
        tuple(scan.elements[register & kept][operand] for register in registers) for operand in range(len(op.operands))
    ]


def axis_groups(bits: Sequence[Bit], axis: int) -> list[list[Bit]]:
    """Return the bits along the axis, the lowest first, split where the level changes or lane bits do not ascend."""
    groups: list[list[Bit]] = []
    for bit in bits:
        if bit.dim != axis:
            continue
        last = groups[-1][-1] if groups else None
        if last is not None and last.level == bit.level and (bit.level != "lane" or bit.index > last.index):
            groups[-1].append(bit)
        else:
            groups.append([bit])
    return groups


class Scan:
    """The state of a scan: `elements` by register, `totals` by register without the bits that are done."""

    def __init__(self, low: Lowering, op: Operation, layout: LinearLayout, bits: Sequence[Bit], axis: int) -> None:
        self.low, self.op, self.layout, self.bits, self.axis = low, op, layout, bits, axis
        self.reverse = isinstance(op, tt.ScanOp) and bool(int_property(op, "reverse"))
        sources = [low[operand] for operand in op.operands]
        registers = subsets(sorted(bits_at(bits, "register")))
        self.elements: dict[int, Values] = {
            register: [source[register] for source in sources] for register in registers
        }
        self.fronts: dict[int, Front] = {}  # by register: prefixes that `elements` lack
        self.totals: dict[int, Values] = dict(self.elements)
        self.done: dict[str, int] = {"register": 0, "lane": 0, "warp": 0}  # masks
        self.traded: list[int] = []  # lane bits that distinguish pieces: see `reduce_rules.py`
        self.uses_memory = False

    def join(self, groups: Sequence[Sequence[Bit]]) -> None:
        """Join pieces by one group of bits after the other."""
        for at, group in enumerate(groups):
            step = {"register": self.in_threads, "lane": self.in_warps, "warp": self.across_warps}[group[0].level]
            step([bit.index for bit in group], at == len(groups) - 1)
            if at == len(groups) - 1 or follows_tree(self.op):
                self.settle()

    def call(self, before: Values, after: Values) -> Values:
        return call(self.low, self.op.regions[0], [*before, *after])

    def members(self, piece: int) -> list[int]:
        done = [bit for bit in bits_at(self.bits, "register") if self.done["register"] >> bit & 1]
        return [piece | inside for inside in subsets(done)]

    def is_first(self) -> bool:
        """Return True if pieces still are single elements."""
        return not any(self.done.values())

    def prepend(self, piece: int, before: Values, unless: Value | None = None) -> None:
        """Prepend `before` to all elements of a piece, except where a condition holds."""
        joined: dict[int, Front] = {}
        for register in self.members(piece):
            front = self.fronts.get(register)
            if id(front) not in joined:
                joined[id(front)] = (before, unless) if front is None else self.join_fronts(before, unless, front)
            self.fronts[register] = joined[id(front)]

    def join_fronts(self, before: Values, unless: Value | None, front: Front) -> Front:
        b = self.low.builder
        values, absent = front
        both = self.call(before, values)
        if absent is not None:
            both = b.select_all(absent, before, both)
        if unless is not None:
            both = b.select_all(unless, values, both)
        return both, None if absent is None or unless is None else b.and_(absent, unless)

    def settle(self) -> None:
        """Combine the elements with their prefixes."""
        for register, (before, unless) in self.fronts.items():
            old = self.elements[register]
            new = self.call(before, old)
            self.elements[register] = new if unless is None else self.low.builder.select_all(unless, old, new)
        self.fronts.clear()

    def ordered(self, count: int) -> Sequence[int]:
        """Return the indices of `count` pieces from the first to the last."""
        return range(count - 1, -1, -1) if self.reverse else range(count)

    # Registers

    def in_threads(self, bits: list[int], is_last: bool) -> None:
        joined: dict[int, Values] = {}
        own, first = mask_of(bits), self.is_first()
        for start in [piece for piece in self.totals if not piece & own]:
            carry: Values | None = None
            for index in self.ordered(1 << len(bits)):
                piece = start | spread_index(index, bits)
                total = self.totals[piece]
                if carry is None:
                    carry = total
                elif first:
                    carry = self.elements[piece] = self.call(carry, total)
                else:
                    self.prepend(piece, carry)
                    carry = self.call(carry, total)
            assert carry is not None
            joined[start] = carry
        self.totals = joined
        self.done["register"] |= own

    # Lanes

    def in_warps(self, bits: list[int], is_last: bool) -> None:
        """Join pieces of 1, 2, 4 ... lanes: the upper half gets the total of the last lane of the lower one."""
        low, b = self.low, self.low.builder
        own, first = mask_of(bits), self.is_first()
        start = has_bits(low, low.lane, own, own if self.reverse else 0)
        is_pair = len(bits) == 1 and single_op(self.op.regions[0]) is not None
        for piece, total in self.totals.items():
            if is_pair:  # one exchange gives each lane the other's part
                others = [low.shuffle_xor(value, own) for value in total]
                self.totals[piece] = both = self.call(others, total)
                if first:
                    self.elements[piece] = b.select_all(lane_is(low, own, own if self.reverse else 0), total, both)
                else:
                    self.prepend(piece, others, unless=start)
                continue
            running, below = total, 0
            for bit in (1 << bit_index for bit_index in bits):
                source = self.lane_with(zeros=bit, ones=below)
                others = [low.shuffle(value, source) for value in running]
                upper = lane_is(low, bit, 0 if self.reverse else bit)
                running = b.select_all(upper, self.call(others, running), running)
                below |= bit
            if first:
                self.elements[piece] = running
            else:
                self.prepend(piece, [low.shuffle(value, self.lane_before(own)) for value in running], unless=start)
            if not is_last:
                self.totals[piece] = [low.shuffle(value, self.lane_with(zeros=0, ones=own)) for value in running]
        self.done["lane"] |= own

    def lane_with(self, zeros: int, ones: int) -> Value:
        """Return this lane id with bits cleared and set; in reverse, zeros and ones are exchanged."""
        b = self.low.builder
        zeros, ones = (ones, zeros) if self.reverse else (zeros, ones)
        return b.or_(b.and_(self.low.lane, ~zeros & self.low.lane_mask), ones)

    def lane_before(self, own: int) -> Value:
        """Return the preceding lane id (in reverse, the following one), counting in the bits `own`."""
        b, lane = self.low.builder, self.low.lane
        rest = ~own & self.low.lane_mask
        moved = b.add(b.or_(lane, rest), 1) if self.reverse else b.sub(b.and_(lane, own), 1)
        return b.or_(b.and_(moved, own), b.and_(lane, rest))

    # Warps

    def across_warps(self, bits: list[int], is_last: bool) -> None:
        low, b = self.low, self.low.builder
        count, own = 1 << len(bits), mask_of(bits)
        pieces = list(self.totals)
        parts = self.exchange(bits)
        columns = [1 << bits.index(bit) if bit in bits else 0 for bit in range(len(self.layout.by_in["warp"]))]
        index = b.xor(xor_columns(b, [(low.warp, columns)]).value, count - 1 if self.reverse else 0)
        start = has_bits(low, low.warp, own, own if self.reverse else 0)
        for piece_index, piece in enumerate(pieces):
            carry: Values | None = None
            before: Values | None = None
            for position, warp in enumerate(self.ordered(count)):
                part = parts[piece_index + len(pieces) * warp]
                if carry is None:
                    carry = part
                    continue
                mine = b.icmp("uge", index, position)
                before = carry if before is None else b.select_all(mine, carry, before)
                if position < count - 1 or not is_last:
                    carry = self.call(carry, part)
            assert carry is not None and before is not None
            self.prepend(piece, before, unless=start)
            self.totals[piece] = carry
        self.done["warp"] |= own

    def exchange(self, bits: list[int], readers: Mapping[int, int] | None = None) -> list[Values]:
        """Return the totals of the pieces in all warps along `bits`: all pieces of the first warp, then of the second
        ... With `readers` (`exchange_layouts`), only of the warps that are left to this lane.

        Lanes that are not joined yet have totals of their own, and write them one after the other to the same memory.
        """
        low, b = self.low, self.low.builder
        pending = self.pending_lanes()
        moves = self.moves(bits, readers)
        written = moves[0][2]
        shared = mask_of(bit for bit, column in enumerate(written.by_in["lane"]) if not column)
        copies = mask_of(bit for bit, column in enumerate(written.by_in["warp"]) if not column)
        pieces = list(self.totals)
        found: list[Values] | None = None
        for chosen_lanes in subsets(pending):
            if self.uses_memory:
                low.barrier()
            self.uses_memory = True
            conditions = (has_bits(low, low.lane, shared, chosen_lanes), has_bits(low, low.warp, copies, 0))
            known = [condition for condition in conditions if condition is not None]
            mine = b.and_(*known) if len(known) == 2 else known[0] if known else None
            for operand, (store, _, _) in enumerate(moves):
                store.store_if(mine, tuple(self.totals[piece][operand] for piece in pieces))
            low.barrier()
            columns = [load.load() for _, load, _ in moves]
            read = [list(values) for values in zip(*columns, strict=True)]
            is_selected = has_bits(low, low.lane, mask_of(pending), chosen_lanes)
            if found is None or is_selected is None:
                found = read
            else:
                found = [b.select_all(is_selected, now, then) for now, then in zip(read, found, strict=True)]
        assert found is not None
        return found

    def is_open(self, bit: Bit) -> bool:
        """Return True for a bit along the axis that is not joined yet."""
        return bit.dim == self.axis and not self.done.get(bit.level, 0) >> bit.index & 1

    def pending_lanes(self) -> list[int]:
        """Return the lane bits along the axis that are not joined yet."""
        return [bit for bit in bits_at(filter(self.is_open, self.bits), "lane") if bit not in self.traded]

    def left(self) -> list[Bit]:
        """Return the bits that distinguish totals."""
        return [bit for bit in self.bits if bit.dim != self.axis or self.is_open(bit)]

    def moves(self, bits: list[int], readers: Mapping[int, int] | None = None) -> list[tuple[Move, Move, LinearLayout]]:
        """Return the moves of each operand's totals to and from memory, and the layout of the writes."""
        left, pending = self.left(), self.pending_lanes()
        pieces, others = len(bits_at(left, "register")), [bit for bit in bits_at(left, "warp") if bit not in bits]
        lanes = [bit for bit in bits_at(left, "lane") if bit not in pending]
        return exchange_moves(
            self.low,
            self.op,
            lambda size: exchange_layouts(self.layout, size, pieces, lanes, others, bits, readers),
        )
