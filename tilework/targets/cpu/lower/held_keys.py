"""Elements of a sort in vector registers, and which bit of their index each bit of their place is.

    32 elements in two registers of 16: lanes count from 0, registers from bit 4

    order     0 1 2 3 | 4       element 16 is lane 0 of the second register
    exchange  4 1 2 3 | 0       element 1 is there, and 16 is lane 1 of the first: elements that differ in bit 0 can be compared
    compare bit 0               the smaller of each two goes to the first register
    exchange  0 1 2 3 | 4

Comparing costs two instructions for two registers, exchanging as many. So a bit stays among those of registers until its place is needed
for another, which takes that of the bit that is needed last.
"""

from collections.abc import Sequence

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.values import Value, constant


class HeldKeys:
    """Registers of ``2**lanes`` integers each; `order` has the bit of the index for each bit of the place."""

    def __init__(self, b: Builder, sign: str, values: list[Value], lanes: int) -> None:
        self.b, self.sign, self.values, self.lanes = b, sign, values, lanes
        self.order = list(range(lanes + len(values).bit_length() - 1))

    def begin_with_registers(self, bits: int) -> None:
        """Call elements of a run of ``2**bits``, which have no order yet, so that those in different registers are neighbours."""
        free = range(min(bits, len(self.order)))
        names = iter(free)
        for place in [*free[self.lanes :], *free[: self.lanes]]:
            self.order[place] = next(names)

    def index(self, place: int) -> int:
        """The index of the element at a place, which counts lanes of the first register, then of the second and so on."""
        return sum((place >> position & 1) << bit for position, bit in enumerate(self.order))

    def masks(self, given: Value | int | None) -> list[Value]:
        """For each register -1 where an index has the bit `given`; or the value that all have; or none."""
        if isinstance(given, Value):
            return [given] * len(self.values)
        size, type = 1 << self.lanes, self.values[0].type
        if given is None:
            return [constant(type, 0)] * len(self.values)
        position = self.order.index(given)
        places = range(size * len(self.values))
        lanes = [-(place >> position & 1) for place in places]
        found = [tuple(lanes[start : start + size]) for start in places[::size]]
        return [constant(type, mask if type.is_vector else mask[0]) for mask in found]

    def invert(self, masks: Sequence[Value]) -> None:
        self.values = [self.b.xor(value, mask) for value, mask in zip(self.values, masks, strict=True)]

    def compare(self, bits: Sequence[int], later: Sequence[int] = ()) -> None:
        """Put the smaller element of each two that differ in one bit first, for one bit after the other; `later` ones follow."""
        for number, bit in enumerate(bits):
            place = self.order.index(bit)
            if len(self.values) == 1:
                self.compare_lanes(place)
                continue
            if place < self.lanes:
                place = self.exchange(place, self.least_needed(place, [*bits[number + 1 :], *later]))
            apart = 1 << (place - self.lanes)
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
        """The place among registers whose bit is needed last; of those that are not, one that is at home in `lane`."""

        def need(place: int) -> tuple[int, bool]:
            bit = self.order[place]
            return later.index(bit) if bit in later else len(later), bit == lane

        return max(range(self.lanes, len(self.order)), key=need)

    def exchange(self, lane: int, place: int) -> int:
        """Let two bits change places, of which the second is one of registers; the latter."""
        b, beside = self.b, 1 << (place - self.lanes)
        for first in range(len(self.values)):
            if not first & beside:
                pair = b.exchanged(self.values[first], self.values[first | beside], lane)
                self.values[first], self.values[first | beside] = map(b.opaque, pair)
        self.order[lane], self.order[place] = self.order[place], self.order[lane]
        return place

    def in_order(self) -> list[Value]:
        """The registers, each element at the place of its index."""
        b, size = self.b, 1 << self.lanes
        for lane in range(self.lanes):
            if self.order[lane] >= self.lanes:
                self.exchange(
                    lane, next(place for place in range(self.lanes, len(self.order)) if self.order[place] < self.lanes)
                )
        places = {self.index(place): place for place in range(size)}  # in each register
        lanes = [places[lane] for lane in range(size)]
        found = {self.index(register * size): value for register, value in enumerate(self.values)}
        return [b.shuffle(found[register * size], None, lanes) for register in range(len(self.values))]
