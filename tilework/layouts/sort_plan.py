"""How the threads of a block sort runs of 2**bits elements: where the elements are in each step of the network.

Stage s makes sorted runs of 2**s elements out of pairs of them by comparing elements whose indices differ in bits s-1, ..., 0.
A step along a bit of the register number costs a smaller and a larger of two; along a bit of the lane number a shuffle more,
and each lane computes both and keeps one; warps cannot compare at all. So registers have the lowest bits of the index at home,
which all stages use, lanes the next ones, and warps the highest:

    1024 elements, 32 per lane      registers: bits 0-4     lanes: bits 5-9
    stages 1-5                      at home
    stages 6, 7                     at home, bits 5 and 6 by shuffles
    stage 8                         registers: bits 3-7     lanes: bits 0-2, 8, 9;     then bits 2-0 at home
    ...

A trip through shared memory costs about as much as two or three shuffles. Before the first stage elements may be anywhere in
their run, so that it starts at home whatever layout they come in; behind the last one they go where they belong.

All runs are sorted upwards. So the first step of a stage compares with the mirror image, the index that differs in all bits
below s: then the lower half has the smaller elements, and both halves rise and then fall, or the reverse. Before a stage that
begins with a trip the upper halves are turned around on the way.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import MEMO

MOST_SHUFFLES = 2  # of the steps of one stage, in the place of a trip through shared memory
ROW_BYTES, PAD_BYTES = (
    128,
    16,
)  # in shared memory: rows of all banks, apart so that lanes with a row each meet different ones
LEVELS = ("register", "lane", "warp")


class Step(NamedTuple):
    """Compare with the index that differs in the bits `mask`; those with bit `bit` keep the larger."""

    bit: int
    mask: int


class Trip(NamedTuple):
    """From where the elements are to where they are read, in shared memory that is indexed like the tensor."""

    source: LinearLayout
    result: LinearLayout

    @property
    def in_threads(self) -> bool:
        """Whether registers only change places, in copies of threads as in the first ones."""
        return all(self.source.by_in[level] == self.result.by_in[level] for level in ("lane", "warp"))

    @property
    def in_warps(self) -> bool:
        """Whether each warp reads what it wrote itself."""
        return self.source.by_in["warp"] == self.result.by_in["warp"] and all(self.source.by_in["warp"])


class Segment(NamedTuple):
    """Steps in one layout, and how the elements come there."""

    trip: Trip | None
    layout: LinearLayout
    steps: tuple[Step, ...]


class SortPlan(NamedTuple):
    """Threads sort runs of 2**`in_threads` elements by themselves, at home; then come the segments, and a last trip.

    Where they have more elements of other runs than of one, a `first` trip changes that.
    """

    first: Trip | None
    in_threads: int
    home: LinearLayout
    segments: tuple[Segment, ...]
    last: Trip

    @property
    def trips(self) -> list[Trip]:
        inner = (self.first, *(segment.trip for segment in self.segments))
        return [*(trip for trip in inner if trip is not None), self.last]


def padded(offset: int) -> int:
    """Where a byte lies in shared memory, or how many bytes so many need."""
    return offset + offset // ROW_BYTES * PAD_BYTES


def flat_layout(layout: LinearLayout) -> LinearLayout:
    """The layout of a tensor as one of its elements counted in row-major order."""
    return layout.transpose_outs(sorted(layout.out_names, key=lambda name: -int(name[3:]))).flatten_outs("dim0")


@lru_cache(maxsize=MEMO)
def sort_plan(layout: LinearLayout, bits: int) -> SortPlan | None:
    """Sort the runs of a tensor with this flat layout, which the result has too; None if blocks share runs, or bits are mixed."""
    places = Places(layout, bits)
    if len(places.own) != bits or any(column & (column - 1) for column in layout.flat_columns):
        return None
    own = with_longer_runs(within_warps(layout, bits), bits)
    places = Places(own, bits)
    held, lanes = places.counts["register"], places.counts["lane"]
    most, reach = (MOST_SHUFFLES, held) if held > MOST_SHUFFLES else (lanes, held + lanes)
    home = now = places.arranged(range(bits))
    segments: list[Segment] = []
    for stage in range(held + 1, bits + 1):
        left = stage
        while left:
            stays = left - held <= min(most, lanes)
            first = 0 if stays else max(left - reach, min(held, bits - reach))
            there = home if stays else places.arranged(window(first, held, reach, bits))
            trip, mirrors = None, left == stage
            if there != now:
                trip = Trip(now, mirrored(there, stage - 1) if mirrors else there)
                mirrors = False
            steps = [Step(bit, 1 << bit) for bit in reversed(range(first, left))]
            if mirrors:
                steps[0] = Step(stage - 1, (1 << stage) - 1)
            segments.append(Segment(trip, there, tuple(steps)))
            left, now = first, there
    return SortPlan(None if own == layout else Trip(layout, home), held, home, tuple(segments), Trip(now, layout))


def within_warps(layout: LinearLayout, bits: int) -> LinearLayout:
    """Where only warps have bits of the index in a run, which cannot compare, registers or lanes take them for others of theirs."""
    columns = {level: list(layout.by_in[level]) for level in LEVELS}
    inside = [place for place, column in enumerate(columns["warp"]) if 0 < column < 1 << bits]
    if len(inside) < bits:
        return layout
    places = [(level, place) for level in LEVELS[:2] for place, column in enumerate(columns[level]) if column >> bits]
    copies = [("lane", place) for place, column in enumerate(columns["lane"]) if not column]
    for warp, (level, place) in zip(inside, (*places, *copies), strict=False):
        columns["warp"][warp], columns[level][place] = columns[level][place], columns["warp"][warp]
    for level, own in columns.items():
        layout = layout.replace_in(level, own)
    return layout


def with_longer_runs(layout: LinearLayout, bits: int) -> LinearLayout:
    """Give bits of the index in a run that lanes have to registers that have others, where that saves many shuffles."""
    registers, lanes = (list(layout.by_in[level]) for level in LEVELS[:2])
    others = [place for place, column in enumerate(registers) if column >> bits]
    inside = [place for place, column in enumerate(lanes) if 0 < column < 1 << bits]
    count = min(len(others), len(inside) - 1)
    held = sum(0 < column < 1 << bits for column in registers)
    if count < 2 or len(inside) < MOST_SHUFFLES + 2 or held > MOST_SHUFFLES:
        return layout
    for mine, theirs in zip(others[:count], inside[-count:], strict=True):
        registers[mine], lanes[theirs] = lanes[theirs], registers[mine]
    return layout.replace_in("register", registers).replace_in("lane", lanes)


def window(first: int, held: int, reach: int, bits: int) -> list[int]:
    """All bits of the index: the highest of the `reach` bits from `first` on in registers, then the others of them, then the rest.

    >>> window(3, 2, 5, 10)
    [6, 7, 3, 4, 5, 0, 1, 2, 8, 9]
    """
    middle = first + reach - held
    return [*range(middle, middle + held), *range(first, middle), *range(first), *range(first + reach, bits)]


def mirrored(layout: LinearLayout, top: int) -> LinearLayout:
    """The layout with the halves that have bit `top` turned around."""
    return layout.map_columns(lambda column: 2 * column - 1 if column == 1 << top else column, layout.outs)


class Places:
    """The bits of registers, lanes and warps that are bits of the index in a run."""

    def __init__(self, layout: LinearLayout, bits: int) -> None:
        self.layout = layout
        self.own = [
            (level, number)
            for level in LEVELS
            for number, column in enumerate(layout.by_in[level])
            if 0 < column < 1 << bits
        ]
        self.counts = {level: sum(own == level for own, _ in self.own) for level in LEVELS}

    def arranged(self, order: Iterable[int]) -> LinearLayout:
        """The layout in which these places have the bits of the index in this order."""
        given = dict(zip(self.own, order, strict=True))
        columns = tuple(
            (
                level,
                tuple(
                    1 << given[level, number] if (level, number) in given else column
                    for number, column in enumerate(old)
                ),
            )
            for level, old in self.layout.columns
        )
        return LinearLayout.packed(columns, self.layout.outs)
