"""When each buffer of shared memory is in use, as an interval of op numbers.

Ops are numbered in program order, those inside of an op before the op itself:

    %m = ttg.local_alloc %x          0
    scf.for ... {
      %v = ttg.local_load %m         1
      scf.yield                      2
    }                                3        %m is live in [0, 4): until the loop is over

A value is live from its definition to its last use in each block, through all blocks between them, so also around loops
of branches. A buffer is live while any value that may name it is.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.analysis.alias import Aliases
from tilework.analysis.value_flows import reached
from tilework.ir.nesting import end_of, predecessors


@dataclass(frozen=True)
class Interval:
    """The numbers from `start` up to `end`, without `end`."""

    start: int
    end: int

    def overlaps(self, other: "Interval") -> bool:
        return self.start < other.end and other.start < self.end

    def join(self, other: "Interval") -> "Interval":
        return Interval(min(self.start, other.start), max(self.end, other.end))


Numbers = dict[Operation, int]
FOREVER = 1 << 62


def number_ops(root: Operation) -> Numbers:
    """A number for every op under `root`, and for `root`: in program order, bodies first."""
    numbers: Numbers = {}

    def visit(op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    visit(inner)
        numbers[op] = len(numbers)

    visit(root)
    return numbers


def buffer_lifetimes(known: Aliases, numbers: Numbers) -> dict[SSAValue, Interval]:
    """The interval of each buffer: that of all values which may name it."""
    found: dict[SSAValue, Interval] = {}
    for value, buffers in known.items():
        live = lifetime(value, numbers)
        for buffer in buffers:
            found[buffer] = found[buffer].join(live) if buffer in found else live
    return found


def lifetime(value: SSAValue, numbers: Numbers) -> Interval:
    """The smallest interval that holds every op at which `value` is live."""
    owner = value.owner
    home = owner if isinstance(owner, Block) else owner.parent
    assert home is not None and home.parent is not None, "the value is defined inside of a function"
    last_uses = last_use_per_block(value, home.parent, numbers)
    start = first_number(home, numbers) if isinstance(owner, Block) else numbers[owner]
    if len(home.parent.blocks) == 1:
        return Interval(start, max(last_uses.get(home, start), start) + 1)
    return spanning(home, start, last_uses, numbers)


def first_number(block: Block, numbers: Numbers) -> int:
    """The number of the first op, or of what is inside of it."""
    op = block.first_op
    assert op is not None, "a block ends with a terminator"
    while op.regions and op.regions[0].blocks and (inner := op.regions[0].blocks[0].first_op) is not None:
        op = inner
    return numbers[op]


def last_use_per_block(value: SSAValue, region: Region, numbers: Numbers) -> dict[Block, int]:
    """The last op of each block of `region` that uses `value`, itself or inside of it."""
    found: dict[Block, int] = {}
    for use in value.uses:
        op: Operation | None = use.operation
        while op is not None and op.parent_region() is not region:
            op = op.parent_op()
        if op is not None and op.parent is not None:
            found[op.parent] = max(found.get(op.parent, -1), numbers[op])
    return found


def spanning(home: Block, start: int, last_uses: dict[Block, int], numbers: Numbers) -> Interval:
    """The interval over several blocks: from `home`, through all blocks on the way to a use."""
    live_in = live_in_blocks(home, last_uses)
    low, high = start, max(last_uses.get(home, start), start)
    for block in live_in | {home}:
        if any(successor in live_in for successor in end_of(block).successors):
            high = max(high, numbers[end_of(block)])
        if block is not home:
            low = min(low, first_number(block, numbers))
            high = max(high, last_uses.get(block, high))
    return Interval(low, high + 1)


def live_in_blocks(home: Block, last_uses: Iterable[Block]) -> set[Block]:
    """The blocks at whose start the value is still needed."""
    before = predecessors(home.parent.blocks if home.parent is not None else ())
    uses = (block for block in last_uses if block is not home)
    return set(reached(uses, lambda block: (previous for previous in before.get(block, ()) if previous is not home)))
