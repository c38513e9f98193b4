"""`tt.sort_runs`: the steps of `layouts/sort_plan.py` in registers, by shuffles, and through shared memory.

The elements of one thread are sorted by Batcher's odd-even merge sort, which needs fewer comparisons than a bitonic
network (191 for 32 elements, not 240).
"""

from collections.abc import Iterator

from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.encodings import layout_of
from tilework.ir.rewrite import attr_value
from tilework.layouts.banks import vector_bits
from tilework.layouts.linear import LinearLayout, log2
from tilework.layouts.sort_plan import PAD_BYTES, ROW_BYTES, Step, Trip, flat_layout, padded, sort_plan
from tilework.targets.gpu.axes import mask_of, spread_index, subsets
from tilework.targets.gpu.device import Access
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.gpu.packing import REGISTER_BITS, access_shape
from tilework.targets.gpu.views import spread_of
from tilework.targets.llvm.types import i32, vector
from tilework.targets.llvm.values import Value, constant


@lowers(tt.SortRunsOp)
def lower_sort_runs(low: Lowering, op: Operation) -> Registers:
    layout = flat_layout(layout_of(op.operands[0].type))
    bits, order, merges, is_signed = (attr_value(op.properties[name]) for name in ("bits", "order", "merges", "signed"))
    assert isinstance(bits, int)
    plan = sort_plan(layout, bits)
    if plan is None or merges:
        raise low.refuse(op, "runs that are only merged, or in a layout that mixes the bits of the index")
    network = Network(low, op, bool(is_signed))
    if order == tt.SortOrder.ALTERNATING:
        network.fall(plan.home, 1 << bits)
    elif order == tt.SortOrder.DOWNWARDS:
        network.falls = [True] * len(network.values)
    if plan.first is not None:
        network.travel(plan.first)
    network.invert()
    network.in_threads([bit for _, bit in bit_owners(plan.home, plan.in_threads)])
    for segment in plan.segments:
        if segment.trip is not None:
            network.travel(segment.trip)
        for step in segment.steps:
            network.step(step, bit_owners(segment.layout, bits))
    network.invert()
    network.travel(plan.last)
    return tuple(low.builder.cast(value, network.given) for value in network.values)


def bit_owners(layout: LinearLayout, bits: int) -> list[tuple[str, int]]:
    """Return the level and bit that hold each of the lowest bits of the index."""
    found = {column: (level, bit) for level, columns in layout.columns for bit, column in enumerate(columns)}
    return [found[1 << bit] for bit in range(bits)]


def odd_even_merge_sort(bits: int) -> Iterator[tuple[int, int]]:
    """Yield the comparisons that sort 2**bits elements; the smaller element goes to the first index.

    >>> list(odd_even_merge_sort(2))
    [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)]
    """
    size = 1 << bits
    for run in (1 << bit for bit in range(bits)):
        for apart in (run >> bit for bit in range(run.bit_length())):
            for start in range(apart % run, size - apart, 2 * apart):
                for index in range(start, min(start + apart, size - apart)):
                    if index // (2 * run) == (index + apart) // (2 * run):
                        yield index, index + apart


class Network:
    """The registers of a thread during the sort, with elements of at least 32 bits.

    `falls` marks registers of descending runs. Where all runs of a thread descend, its elements are inverted before and
    after.
    """

    def __init__(self, low: Lowering, op: Operation, is_signed: bool) -> None:
        self.low, self.op, self.sign = low, op, "s" if is_signed else "u"
        given: Registers = low[op.operands[0]]
        self.given = given[0].type
        self.values = [
            low.builder.cast(value, self.given if self.given.bits > REGISTER_BITS else i32, is_signed)
            for value in given
        ]
        self.falls = [False] * len(given)
        self.inverted: Value | None = None
        self.last: Trip | None = None

    def fall(self, layout: LinearLayout, column: int) -> None:
        """Sort in descending order where this bit of the index is set."""
        for level, columns in layout.columns:
            if column in columns:
                bit = 1 << columns.index(column)
                if level == "register":
                    self.falls = [bool(register & bit) for register in range(len(self.values))]
                else:
                    self.inverted = self.has_bit(level, bit)

    def has_bit(self, level: str, bit: int) -> Value:
        b = self.low.builder
        return b.icmp("ne", b.and_(self.low.ids[level], bit), 0)

    def invert(self) -> None:
        if self.inverted is not None:
            b, type = self.low.builder, self.values[0].type
            mask = b.select(self.inverted, constant(type, -1), constant(type, 0))
            self.values = [b.xor(value, mask) for value in self.values]

    def in_threads(self, bits: list[int]) -> None:
        others = [bit for bit in range((len(self.values) - 1).bit_length()) if bit not in bits]
        for row in subsets(others):
            for pair in odd_even_merge_sort(len(bits)):
                self.order(*(row | spread_index(index, bits) for index in pair))

    def order(self, first: int, second: int) -> None:
        """Put the smaller of two registers first, or the larger one if their run descends."""
        small, large = self.low.builder.in_order(self.sign, self.values[first], self.values[second])
        self.values[first], self.values[second] = (large, small) if self.falls[first] else (small, large)

    def step(self, step: Step, owners: list[tuple[str, int]]) -> None:
        moved = [owners[bit] for bit in range(step.mask.bit_length()) if step.mask >> bit & 1]
        lanes, registers = (mask_of(bit for at, bit in moved if at == level) for level in ("lane", "register"))
        level, owner_bit = owners[step.bit]
        if not lanes:
            for register in range(len(self.values)):
                if not register >> owner_bit & 1:
                    self.order(register, register ^ registers)
            return
        b, is_upper = self.low.builder, self.has_bit(level, 1 << owner_bit)
        made = []
        for register, value in enumerate(self.values):
            other = self.low.shuffle_xor(self.values[register ^ registers], lanes)
            small, large = b.in_order(self.sign, value, other)
            made.append(b.select(is_upper, small, large) if self.falls[register] else b.select(is_upper, large, small))
        self.values = made

    def travel(self, trip: Trip) -> None:
        """Change the layout: rename registers, or write all of them to shared memory, wait, and read."""
        if trip.in_threads:
            at = {index: register for register, index in enumerate(trip.source.images("register"))}
            self.values = [self.values[at[index]] for index in trip.result.images("register")]
            return
        if self.last is not None:
            self.wait(trip.in_warps and self.last.in_warps)
        self.store(without_blocks(trip.source))
        self.wait(trip.in_warps)
        self.load(without_blocks(trip.result))
        self.last = trip

    def wait(self, in_warps: bool) -> None:
        self.low.warp_barrier() if in_warps else self.low.barrier()

    def accesses(self, layout: LinearLayout) -> Iterator[tuple[Value, list[int]]]:
        """Yield the address of each vector of elements and its registers, without duplicates."""
        low, b, columns = self.low, self.low.builder, layout.by_in["register"]
        bits = self.values[0].type.bits
        base, threads = low.scratch_address(self.op), spread_of(low, layout, "dim0")
        together = [columns.index(1 << bit) for bit in range(vector_bits(layout, bits))]
        first = mask_of([*together, *(bit for bit, column in enumerate(columns) if not column)])
        for register, index in enumerate(layout.images("register")):
            if not register & first:
                mine = b.mul(b.xor(threads.value, index & threads.mask), bits // 8)
                mine = b.add(mine, b.shl(b.lshr(mine, log2(ROW_BYTES)), log2(PAD_BYTES)))
                address = b.gep(b.gep(base, mine), padded((index & ~threads.mask) * bits // 8))
                yield address, [register | other for other in subsets(together)]

    def store(self, layout: LinearLayout) -> None:
        low, b, bits = self.low, self.low.builder, self.values[0].type.bits
        mine = low.is_first_copy(layout)
        for address, registers in self.accesses(layout):
            given = [self.values[register] for register in registers]
            if mine is not None:
                low.gpu.store_shared(b, Access(address, access_shape(bits, len(given)), mine), given)
            else:
                b.store(b.joined(given), address, align=len(given) * bits // 8)

    def load(self, layout: LinearLayout) -> None:
        b, type = self.low.builder, self.values[0].type
        copies = mask_of(bit for bit, column in enumerate(layout.by_in["register"]) if not column)
        found: dict[int, Value] = {}
        for address, registers in self.accesses(layout):
            count = len(registers)
            loaded = b.load(vector(type, count) if count > 1 else type, address, align=count * type.bits // 8)
            found.update(zip(registers, b.lanes(loaded), strict=True))
        self.values = [found[register & ~copies] for register in range(len(self.values))]


def without_blocks(layout: LinearLayout) -> LinearLayout:
    """Return the layout within one block."""
    return LinearLayout.packed(tuple((name, some) for name, some in layout.columns if name != "block"), layout.outs)
