"""`ttc.sort_runs`: a bitonic network as loops over its steps.

Stage s merges runs of ``2**s`` elements: it compares elements whose indices differ in bit s-1, then s-2, ... 0.
Elements of runs that are to fall are kept inverted (``~x``) during the stage, so every comparison puts the smaller
element first; between two stages what changes its direction is inverted.

    chunk     as many neighbours as fill half of the registers, 64 with 16 registers of 4: all stages of so few
              elements, or the last bits of a later stage, between one load and one store
    stride    registers that are ``2**low`` elements apart: up to four higher bits of a stage, between one load and one
              store

For 1024 elements: chunk (stages 1 to 6), and for stages 7 to 10 stride (bits from 6 on), chunk (bits 5 to 0). Chunks
and strides are functions that all stages call, so code hardly grows with the number of elements. Runs that fill no
chunk come last, one by one.

Two elements are compared in the same lane of two registers. A lane bit of the index is exchanged with a register bit:

    a0 a1 a2 a3        a0 b0 a2 b2
    b0 b1 b2 b3  <==>  a1 b1 a3 b3

and remains there until its slot is needed. The input has no order yet, so the first stages begin with whichever bits
select registers.

The map from the bits of a slot (lane and register) to the bits of the element's index:

    32 elements in two registers of 16: lanes count from 0, registers from bit 4

    order     0 1 2 3 | 4       element 16 is lane 0 of the second register
    exchange  4 1 2 3 | 0       element 1 is there, and 16 is lane 1 of the first: elements that differ in bit 0 can be
                                compared
    compare bit 0               the smaller of each two goes to the first register
    exchange  0 1 2 3 | 4

A comparison costs two instructions for two registers, an exchange as many. So a bit remains a register bit until
another bit needs a register slot, and then the bit that is needed last gives way.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from xdsl.ir import Operation

from tilework.ir import ttc
from tilework.ir.rewrite import attr_value
from tilework.ir.tt import SortOrder
from tilework.targets.cpu.lower.lowering import Lowering, lowers, shaped
from tilework.targets.llvm.builder import Builder, unwritten
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.scalar_types import memory_type
from tilework.targets.llvm.types import Type, i64, ptr, void
from tilework.targets.llvm.values import Value, constant


class HeldKeys:
    """Registers of ``2**lanes`` integers each; `order` maps each bit of the slot to a bit of the index."""

    def __init__(self, b: Builder, sign: str, values: list[Value], lanes: int) -> None:
        self.b, self.sign, self.values, self.lanes = b, sign, values, lanes
        self.order = list(range(lanes + len(values).bit_length() - 1))

    def begin_with_registers(self, bits: int) -> None:
        """Renumber the elements of a run of ``2**bits``, which have no order yet, so that elements in different
        registers are neighbours.
        """
        free = range(min(bits, len(self.order)))
        names = iter(free)
        for slot in [*free[self.lanes :], *free[: self.lanes]]:
            self.order[slot] = next(names)

    def index(self, slot: int) -> int:
        """The index of the element in a slot; slots count the lanes of the first register, then of the second ..."""
        return sum((slot >> position & 1) << bit for position, bit in enumerate(self.order))

    def masks(self, given: Value | int | None) -> list[Value]:
        """Return masks, one for each register: -1 in the lanes whose index has the bit `given`. A `given` value is the
        mask of all registers; None gives 0."""
        if isinstance(given, Value):
            return [given] * len(self.values)
        size, type = 1 << self.lanes, self.values[0].type
        if given is None:
            return [constant(type, 0)] * len(self.values)
        position = self.order.index(given)
        slots = range(size * len(self.values))
        lanes = [-(slot >> position & 1) for slot in slots]
        found = [tuple(lanes[start : start + size]) for start in slots[::size]]
        return [constant(type, mask if type.is_vector else mask[0]) for mask in found]

    def invert(self, masks: Sequence[Value]) -> None:
        self.values = [self.b.xor(value, mask) for value, mask in zip(self.values, masks, strict=True)]

    def compare(self, bits: Sequence[int], later: Sequence[int] = ()) -> None:
        """Put the smaller element of each two that differ in one bit first, for one bit after the other; `later` ones
        follow.
        """
        for done, bit in enumerate(bits, 1):
            slot = self.order.index(bit)
            if len(self.values) == 1:
                self.compare_lanes(slot)
                continue
            if slot < self.lanes:
                slot = self.exchange(slot, self.least_needed(slot, [*bits[done:], *later]))
            apart = 1 << (slot - self.lanes)
            for first in range(len(self.values)):
                if not first & apart:
                    pair = self.values[first], self.values[first | apart]
                    self.values[first], self.values[first | apart] = self.b.in_order(self.sign, *pair)

    def compare_lanes(self, bit: int) -> None:
        """The same within the only register."""
        b, (value,), lanes = self.b, self.values, range(1 << self.lanes)
        other = b.shuffle(value, None, [lane ^ 1 << bit for lane in lanes])
        small, large = map(b.opaque, b.in_order(self.sign, value, other))
        self.values = [b.shuffle(small, large, [lane + len(lanes) * (lane >> bit & 1) for lane in lanes])]

    def least_needed(self, lane: int, later: Sequence[int]) -> int:
        """The register bit that is needed last; among those that are not needed, the one that belongs to `lane`."""

        def need(slot: int) -> tuple[int, bool]:
            bit = self.order[slot]
            return later.index(bit) if bit in later else len(later), bit == lane

        return max(range(self.lanes, len(self.order)), key=need)

    def exchange(self, lane: int, slot: int) -> int:
        """Exchange a lane bit with a register bit; return the latter."""
        b, beside = self.b, 1 << (slot - self.lanes)
        for first in range(len(self.values)):
            if not first & beside:
                pair = b.exchanged(self.values[first], self.values[first | beside], lane)
                self.values[first], self.values[first | beside] = map(b.opaque, pair)
        self.order[lane], self.order[slot] = self.order[slot], self.order[lane]
        return slot

    def in_order(self) -> list[Value]:
        """The registers, with each element in the slot of its index."""
        b, size = self.b, 1 << self.lanes
        for lane in range(self.lanes):
            if self.order[lane] >= self.lanes:
                self.exchange(
                    lane, next(slot for slot in range(self.lanes, len(self.order)) if self.order[slot] < self.lanes)
                )
        slots = {self.index(slot): slot for slot in range(size)}  # in each register
        lanes = [slots[lane] for lane in range(size)]
        found = {self.index(register * size): value for register, value in enumerate(self.values)}
        return [b.shuffle(found[register * size], None, lanes) for register in range(len(self.values))]


STRIDE_BITS = 4  # that one pass over strided registers compares
MOST_CHUNK_BITS = 7  # of the index of a chunk: its stages are straight code


@lowers(ttc.SortRunsOp)
def lower_sort_runs(low: Lowering, op: Operation) -> None:
    source = ttc.buffer_of(op.operands[0])
    bits, is_signed = (attr_value(op.properties[name]) for name in ("bits", "signed"))
    assert isinstance(bits, int)
    element, count = memory_type(source.element), prod(source.shape)
    total = count.bit_length() - 1
    registers = low.target.vector_registers.bit_length() - 2  # as a power of two: half of them hold elements
    lanes = min(low.target.lanes(element.bits).bit_length() - 1, total)
    chunk = min(lanes + registers, max(lanes + 1, MOST_CHUNK_BITS), total)
    sorter = Sorter(low.builder.module, element, bool(is_signed), lanes, chunk)
    whole = count >> max(bits, chunk) << max(bits, chunk)
    sort(low, op, sorter, bits, 0, whole)
    if whole < count:  # runs that fill no chunk
        sort(low, op, Sorter(low.builder.module, element, bool(is_signed), min(lanes, bits), bits), bits, whole, count)


def sort(low: Lowering, op: Operation, sorter: "Sorter", bits: int, first: int, last: int) -> None:
    """Call the function for the elements from `first` to `last`."""
    order, merges = (attr_value(op.properties[name]) for name in ("order", "merges"))
    assert isinstance(order, int)
    network = Network(sorter, bits, order, bool(merges))
    extent = f"{last.bit_length() - 1}" if first == 0 and last & (last - 1) == 0 else f"{first}-{last}"
    name = f"sort.{extent}.{bits}.{order}.{int(bool(merges))}.{sorter.suffix}"
    sorter.function(name, [ptr, ptr], partial(network.portions, first, last))
    low.builder.call(name, void, [low[operand] for operand in op.operands])


class Sorter:
    """Passes over elements of one type; a register has ``2**lanes`` of them, a chunk ``2**chunk``."""

    def __init__(self, module: Module, element: Type, is_signed: bool, lanes: int, chunk: int) -> None:
        self.module, self.element, self.sign = module, element, "s" if is_signed else "u"
        self.lanes, self.chunk = lanes, chunk
        self.register = shaped(element, 1 << lanes)
        self.suffix = f"{'i' if is_signed else 'u'}{element.bits}.{lanes}.{chunk}"

    def function(self, name: str, types: Sequence[Type], body: Callable[[Builder, Sequence[Value]], None]) -> str:
        """An internal function, written when it is first used."""
        if (b := unwritten(self.module, name, void, types, ("nounwind", "noinline"))) is not None:
            body(b, b.function.args)
            b.ret()
        return name

    def address(self, b: Builder, base: Value, index: Value) -> Value:
        return b.gep(base, index, self.element)

    def parity(self, b: Builder, index: Value) -> Value:
        """-1 for an odd index, 0 for an even one."""
        return b.cast(b.sub(constant(i64, 0), b.and_(index, 1)), self.element)

    def spread(self, b: Builder, value: Value) -> Value:
        return b.splat(value, 1 << self.lanes) if self.lanes else value

    def load(self, b: Builder, addresses: Sequence[Value]) -> list[Value]:
        return [b.load(self.register, address, align=self.element.bits // 8) for address in addresses]

    def store(self, b: Builder, held: Sequence[Value], addresses: Sequence[Value]) -> None:
        for value, address in zip(held, addresses, strict=True):
            b.store(value, address, align=self.element.bits // 8)

    def chunk_addresses(self, b: Builder, base: Value, index: Value) -> list[Value]:
        """The addresses of the registers of a chunk."""
        start = self.address(b, base, b.shl(index, self.chunk))
        size = (self.element.bits // 8) << self.lanes
        return [b.gep(start, register * size) for register in range(1 << (self.chunk - self.lanes))]

    def merge_chunks(self, b: Builder, args: Sequence[Value]) -> None:
        """The last bits of a stage, of `count` chunks, and the inversion at its end."""
        base, count, inverts = args
        with b.loop(constant(i64, 0), count, unroll=1) as index:
            addresses = self.chunk_addresses(b, base, index)
            held = self.held(b, addresses)
            held.compare(range(self.chunk)[::-1])
            self.store(b, [b.xor(value, self.spread(b, inverts)) for value in held.in_order()], addresses)

    def strides(self, bits: int, b: Builder, args: Sequence[Value]) -> None:
        """Bits ``low .. low + bits - 1`` of `count` runs of ``2**(low + bits)`` elements.

        First elements are inverted: by `inverts`, in every second run if `alternates` is 1, and in upper halves by
        `upper` too.
        """
        source, target, low, count, alternates, inverts, upper = args
        registers = 1 << bits
        with b.loop(constant(i64, 0), count, unroll=1) as run:
            lower = b.xor(self.parity(b, b.and_(run, alternates)), inverts)
            masks = [self.spread(b, mask) for mask in (lower, b.xor(lower, upper)) for _ in range(registers // 2)]
            start = b.shl(run, b.add(low, bits))
            with b.loop(constant(i64, 0), b.shl(constant(i64, 1), low), 1 << self.lanes, unroll=1) as inner:
                first = b.add(start, inner)
                indices = [b.add(first, b.shl(constant(i64, register), low)) for register in range(registers)]
                held = self.held(b, [self.address(b, source, index) for index in indices])
                held.invert(masks)
                held.compare(range(self.lanes, self.lanes + bits)[::-1])
                self.store(b, held.in_order(), [self.address(b, target, index) for index in indices])

    def held(self, b: Builder, addresses: Sequence[Value]) -> HeldKeys:
        """The keys in memory, in their own order."""
        return HeldKeys(b, self.sign, self.load(b, addresses), self.lanes)


class Network:
    """The passes that sort runs of ``2**bits`` elements."""

    def __init__(self, sorter: Sorter, bits: int, order: int, merges: bool) -> None:
        self.sorter, self.bits, self.order, self.merges = sorter, bits, order, merges

    def portions(self, first: int, last: int, b: Builder, args: Sequence[Value]) -> None:
        """Elements from `first` to `last`; a portion is a run or, of small ones, a chunk of them, and goes through all
        stages before the next.
        """
        sorter, (source, target) = self.sorter, args
        size = max(self.bits, sorter.chunk)
        with b.loop(constant(i64, first >> size), last >> size, unroll=1) as index:
            start = b.shl(index, size)
            alternates_runs = self.order == SortOrder.ALTERNATING
            falls = sorter.parity(b, index) if alternates_runs else constant(sorter.element, -self.order)
            self.portion(b, sorter.address(b, source, start), sorter.address(b, target, start), size, falls)

    def portion(self, b: Builder, source: Value, target: Value, size: int, falls: Value) -> None:
        """Emit all stages; `falls` is -1 for a descending result."""
        sorter, element = self.sorter, self.sorter.element
        none = constant(element, 0)
        first = self.bits if self.merges else 1
        if first <= sorter.chunk:
            stages = range(first, min(self.bits, sorter.chunk) + 1)
            with b.loop(constant(i64, 0), 1 << (size - sorter.chunk), unroll=1) as index:
                self.first_stages(b, source, target, index, stages, falls)
            source, first = target, stages.stop
        for stage in range(first, self.bits + 1):
            is_last, high = stage == self.bits, stage
            while high > sorter.chunk:
                low = max(sorter.chunk, high - STRIDE_BITS)
                enters = high == stage
                name = sorter.function(
                    f"sort.strides.{high - low}.{sorter.suffix}",
                    [ptr, ptr, i64, i64, i64, element, element],
                    partial(sorter.strides, high - low),
                )
                alternates, upper = int(enters and not is_last), -int(enters and not self.merges)
                constants = [constant(i64, value) for value in (low, 1 << (size - high), alternates)]
                inverts = falls if enters and is_last else none
                b.call(name, void, [source, target, *constants, inverts, constant(element, upper)])
                source, high = target, low
            merge = sorter.function(f"sort.chunks.{sorter.suffix}", [ptr, i64, element], sorter.merge_chunks)
            count = constant(i64, 1 << (size - sorter.chunk))
            b.call(merge, void, [target, count, falls if is_last else none])

    def first_stages(self, b: Builder, source: Value, target: Value, index: Value, stages: range, falls: Value) -> None:
        """The stages of one chunk that need no other."""
        sorter = self.sorter
        held = sorter.held(b, sorter.chunk_addresses(b, source, index))
        if not self.merges:
            held.begin_with_registers(self.bits)
        later = [bit for stage in stages for bit in range(stage)[::-1]]
        before = None
        for stage in stages:
            now = self.falling(b, stage, index, falls)
            held.invert([b.xor(new, old) for new, old in zip(held.masks(now), held.masks(before), strict=True)])
            held.compare(later[:stage], later[stage:])
            later, before = later[stage:], now
        if stages[-1] == self.bits:
            held.invert(held.masks(before))
        sorter.store(b, held.in_order(), sorter.chunk_addresses(b, target, index))

    def falling(self, b: Builder, stage: int, index: Value, falls: Value) -> Value | int:
        """The direction of the runs of a stage: the bit of the index that makes them fall, or -1 or 0 for a chunk as a
        whole.
        """
        if stage < self.sorter.chunk and (stage < self.bits or self.order == SortOrder.ALTERNATING):
            return stage
        return self.sorter.spread(b, falls if stage == self.bits else self.sorter.parity(b, index))
