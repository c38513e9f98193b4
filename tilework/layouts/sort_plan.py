"""The plan by which the threads of a block sort runs of 2**bits elements: the layout in each step of the network.

Stage s merges pairs of runs into sorted runs of 2**s elements by comparing elements whose indices differ in bits s-1,
..., 0. A step along a bit of the register index costs a minimum and a maximum; along a bit of the lane index also a
shuffle, and each lane computes both and keeps one; warps cannot compare at all. So in the home layout registers have
the lowest bits of the index, which all stages use, lanes the next ones, and warps the highest:

    1024 elements, 32 per lane      registers: bits 0-4     lanes: bits 5-9
    stages 1-5                      home
    stages 6, 7                     home, bits 5 and 6 by shuffles
    stage 8                         registers: bits 3-7     lanes: bits 0-2, 8, 9;     then bits 2-0 in the home layout
    ...

A trip through shared memory costs about as much as two or three shuffles. Before the first stage elements may be
anywhere in their run, so that it starts in the home layout whatever layout they come in; after the last one they return
to that layout.

All runs are sorted upwards. So the first step of a stage compares with the mirror image, the index that differs in all
bits below s: then the lower half has the smaller elements, and both halves are bitonic. Before a stage that begins with
a trip the upper halves are reversed on the way.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import MEMO

MOST_SHUFFLES = 2  # of the steps of one stage, instead of a trip through shared memory
# in shared memory: rows of all banks, padded so that lanes with a row each access different banks
ROW_BYTES, PAD_BYTES = 128, 16
LEVELS = ("register", "lane", "warp")


class Step(NamedTuple):
    """Compare with the index that differs in the bits `mask`; those with bit `bit` keep the larger."""

    bit: int
    mask: int


class Trip(NamedTuple):
    """A conversion through shared memory that is indexed like the tensor, from the layout that is written to the one
    that is read."""

    source: LinearLayout
    result: LinearLayout

    @property
    def in_threads(self) -> bool:
        """True if only registers are permuted, in copies of threads as in the first ones."""
        return all(self.source.by_in[level] == self.result.by_in[level] for level in ("lane", "warp"))

    @property
    def in_warps(self) -> bool:
        """True if each warp reads what it wrote itself."""
        return self.source.by_in["warp"] == self.result.by_in["warp"] and all(self.source.by_in["warp"])


class Segment(NamedTuple):
    """Steps in one layout, and the trip to it."""

    trip: Trip | None
    layout: LinearLayout
    steps: tuple[Step, ...]


class SortPlan(NamedTuple):
    """Threads sort runs of 2**`in_threads` elements on their own, in the home layout; then come the segments, and a
    last trip.

    If they have more elements of other runs than of one, a `first` trip changes that.
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
    """Return the offset of a byte in shared memory with padding, or the padded size."""
    return offset + offset // ROW_BYTES * PAD_BYTES


def flat_layout(layout: LinearLayout) -> LinearLayout:
    """Return the layout of a tensor with its elements counted in row-major order."""
    return layout.transpose_outs(sorted(layout.out_names, key=lambda name: -int(name[3:]))).flatten_outs("dim0")


@lru_cache(maxsize=MEMO)
def sort_plan(layout: LinearLayout, bits: int) -> SortPlan | None:
    """Return the plan for a tensor with this flat layout, which the result has too; None if blocks share runs, or bits
    are mixed."""
    run_bits = RunBits(layout, bits)
    if len(run_bits.own) != bits or any(column & (column - 1) for column in layout.flat_columns):
        return None
    own = with_longer_runs(within_warps(layout, bits), bits)
    run_bits = RunBits(own, bits)
    held, lanes = run_bits.counts["register"], run_bits.counts["lane"]
    most, reach = (MOST_SHUFFLES, held) if held > MOST_SHUFFLES else (lanes, held + lanes)
    home = now = run_bits.arranged(range(bits))
    segments: list[Segment] = []
    for stage in range(held + 1, bits + 1):
        left = stage
        while left:
            is_home = left - held <= min(most, lanes)
            first = 0 if is_home else max(left - reach, min(held, bits - reach))
            there = home if is_home else run_bits.arranged(window(first, held, reach, bits))
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
    """Swap the bits of a run with bits of registers or lanes if only warps, which cannot compare, have them."""
    columns = {level: list(layout.by_in[level]) for level in LEVELS}
    inside = [bit for bit, column in enumerate(columns["warp"]) if 0 < column < 1 << bits]
    if len(inside) < bits:
        return layout
    targets = [(level, bit) for level in LEVELS[:2] for bit, column in enumerate(columns[level]) if column >> bits]
    copies = [("lane", bit) for bit, column in enumerate(columns["lane"]) if not column]
    for warp, (level, bit) in zip(inside, (*targets, *copies), strict=False):
        columns["warp"][warp], columns[level][bit] = columns[level][bit], columns["warp"][warp]
    for level, own in columns.items():
        layout = layout.replace_in(level, own)
    return layout


def with_longer_runs(layout: LinearLayout, bits: int) -> LinearLayout:
    """Swap bits of the index in a run from lanes to registers that have others, if that saves many shuffles."""
    registers, lanes = (list(layout.by_in[level]) for level in LEVELS[:2])
    others = [bit for bit, column in enumerate(registers) if column >> bits]
    inside = [bit for bit, column in enumerate(lanes) if 0 < column < 1 << bits]
    count = min(len(others), len(inside) - 1)
    held = sum(0 < column < 1 << bits for column in registers)
    if count < 2 or len(inside) < MOST_SHUFFLES + 2 or held > MOST_SHUFFLES:
        return layout
    for mine, theirs in zip(others[:count], inside[-count:], strict=True):
        registers[mine], lanes[theirs] = lanes[theirs], registers[mine]
    return layout.replace_in("register", registers).replace_in("lane", lanes)


def window(first: int, held: int, reach: int, bits: int) -> list[int]:
    """Return all bits of the index: the highest of the `reach` bits from `first` on in registers, then the others of
    them, then the rest.

    >>> window(3, 2, 5, 10)
    [6, 7, 3, 4, 5, 0, 1, 2, 8, 9]
    """
    middle = first + reach - held
    return [*range(middle, middle + held), *range(first, middle), *range(first), *range(first + reach, bits)]


def mirrored(layout: LinearLayout, top: int) -> LinearLayout:
    """Return the layout with the halves that have bit `top` reversed."""
    return layout.map_columns(lambda column: 2 * column - 1 if column == 1 << top else column, layout.outs)


class RunBits:
    """The bits of registers, lanes and warps that are bits of the index in a run."""

    def __init__(self, layout: LinearLayout, bits: int) -> None:
        self.layout = layout
        self.own = [
            (level, bit) for level in LEVELS for bit, column in enumerate(layout.by_in[level]) if 0 < column < 1 << bits
        ]
        self.counts = {level: sum(own == level for own, _ in self.own) for level in LEVELS}

    def arranged(self, order: Iterable[int]) -> LinearLayout:
        """Return the layout in which they are the bits of the index in this order."""
        given = dict(zip(self.own, order, strict=True))
        columns = tuple(
            (
                level,
                tuple(1 << given[level, bit] if (level, bit) in given else column for bit, column in enumerate(old)),
            )
            for level, old in self.layout.columns
        )
        return LinearLayout.packed(columns, self.layout.outs)
