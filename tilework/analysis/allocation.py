"""The offset of each buffer in shared memory, and of the scratch memory of a program in global memory.

There are three kinds of buffers: a `ttg.local_alloc` is live as long as a value refers to it; the scratch memory of an
op (`scratch.py`) is live during that op; a call has the whole frame of the function it calls. Two buffers may share
bytes unless they are live at the same time, or in two regions that run concurrently. A `ttg.local_dealloc` in such a
region frees a buffer from there on: the other regions no longer use it by then.

    %m = ttg.local_alloc %x      4096 bytes, live [0, 3)         offset 0
    %y = ttg.convert_layout %x   4096 bytes, live [1, 2)         offset 4096
    %z = ttg.local_load %m       -
    %r = tt.reduce %x            512 bytes, live [3, 4)          offset 0 again

Liveness is an interval of positions. Ops have positions in program order, those inside of an op before the op itself:

    %m = ttg.local_alloc %x          0
    scf.for ... {
      %v = ttg.local_load %m         1
      scf.yield                      2
    }                                3        %m is live in [0, 4): until the loop is over

A value is live from its definition to its last use in each block, through all blocks between them, so also around loops
of branches. A buffer is live while any value that may refer to it is.

Large buffers are allocated first. `first_fit` keeps a list of free corners, each an offset with an interval of time in
which everything above it is still free, and assigns the lowest corner to the first buffer whose lifetime overlaps that
interval and no other corner's. That may still leave conflicts with buffers outside of the interval, so `separate` then
moves buffers up, one colour of the interference graph after the other, until there is none.

Global scratch memory is not shared:

    %0 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32}      offset 0
    tt.call @callee()                                                              offset 128: the frame of @callee
    tt.call @callee()                                                              offset 256: its frame for this call

The contents, such as a descriptor, outlive the next call. An op in a loop uses the same bytes in every iteration.
Offsets are relative to the frame of the function.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from heapq import heappop, heappush
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.analysis.alias import Aliases, aliases
from tilework.analysis.scratch import ALIGNMENTS, SCRATCH_ALIGNMENT, scratch_size
from tilework.analysis.value_flows import reached
from tilework.ir import tt, ttg
from tilework.ir.encodings import shared_of
from tilework.ir.functions import (
    callee_of,
    callees_first,
    functions_by_name,
    has_body,
    is_private,
    modules,
    ops_in_order,
)
from tilework.ir.module_facts import partition_warps
from tilework.ir.nesting import end_of, predecessors
from tilework.ir.types import bit_width, int_property
from tilework.layouts.to_linear import shape_per_cta
from tilework.light_dataclass import light_dataclass
from tilework.target import Target


@light_dataclass
class Interval:
    """The integers from `start` up to `end`, without `end`."""

    start: int
    end: int

    def overlaps(self, other: "Interval") -> bool:
        return self.start < other.end and other.start < self.end

    def join(self, other: "Interval") -> "Interval":
        return Interval(min(self.start, other.start), max(self.end, other.end))


Positions = dict[Operation, int]
FOREVER = 1 << 62


def positions_of(root: Operation) -> Positions:
    """Return the position of `root` and of every op under it: program order, bodies first."""
    positions: Positions = {}

    def visit(op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    visit(inner)
        positions[op] = len(positions)

    visit(root)
    return positions


def buffer_lifetimes(known: Aliases, positions: Positions) -> dict[SSAValue, Interval]:
    """Return the interval of each buffer: that of all values which may refer to it."""
    found: dict[SSAValue, Interval] = {}
    for value, buffers in known.items():
        live = lifetime(value, positions)
        for buffer in buffers:
            found[buffer] = found[buffer].join(live) if buffer in found else live
    return found


def lifetime(value: SSAValue, positions: Positions) -> Interval:
    """Return the smallest interval that contains every op at which `value` is live."""
    owner = value.owner
    home = owner if isinstance(owner, Block) else owner.parent
    assert home is not None and home.parent is not None, "the value is defined inside of a function"
    last_uses = last_use_per_block(value, home.parent, positions)
    start = first_position(home, positions) if isinstance(owner, Block) else positions[owner]
    if len(home.parent.blocks) == 1:
        return Interval(start, max(last_uses.get(home, start), start) + 1)
    return spanning(home, start, last_uses, positions)


def first_position(block: Block, positions: Positions) -> int:
    """Return the position of the first op, or of the first op inside of it."""
    op = block.first_op
    assert op is not None, "a block ends with a terminator"
    while op.regions and op.regions[0].blocks and (inner := op.regions[0].blocks[0].first_op) is not None:
        op = inner
    return positions[op]


def last_use_per_block(value: SSAValue, region: Region, positions: Positions) -> dict[Block, int]:
    """Return the last op of each block of `region` that uses `value`, itself or inside of it."""
    found: dict[Block, int] = {}
    for use in value.uses:
        op: Operation | None = use.operation
        while op is not None and op.parent_region() is not region:
            op = op.parent_op()
        if op is not None and op.parent is not None:
            found[op.parent] = max(found.get(op.parent, -1), positions[op])
    return found


def spanning(home: Block, start: int, last_uses: dict[Block, int], positions: Positions) -> Interval:
    """Return the interval over several blocks: from `home`, through all blocks on the way to a use."""
    live_in = live_in_blocks(home, last_uses)
    low, high = start, max(last_uses.get(home, start), start)
    for block in live_in | {home}:
        if any(successor in live_in for successor in end_of(block).successors):
            high = max(high, positions[end_of(block)])
        if block is not home:
            low = min(low, first_position(block, positions))
            high = max(high, last_uses.get(block, high))
    return Interval(low, high + 1)


def live_in_blocks(home: Block, last_uses: Iterable[Block]) -> set[Block]:
    """Return the blocks at whose start the value is still needed."""
    before = predecessors(home.parent.blocks if home.parent is not None else ())
    uses = (block for block in last_uses if block is not home)
    return set(reached(uses, lambda block: (previous for previous in before.get(block, ()) if previous is not home)))


@light_dataclass(frozen=False, eq=False)
class Buffer:
    """Bytes that belong to `owner`. `regions` are the regions around it that run concurrently with others."""

    owner: Operation
    kind: str  # "explicit", "scratch" or "call"
    size: int
    alignment: int
    live: Interval
    regions: tuple[tuple[Operation, int], ...] = ()
    offset: int = 0
    freed_in: Operation | None = None  # the op with regions that the buffer is passed to, and freed in

    def meets(self, other: "Buffer") -> bool:
        """Return True if both are in use at the same time; values are passed to regions before those run."""
        passes = other.owner is self.freed_in or self.owner is other.freed_in
        return passes or self.live.overlaps(other.live) or run_together(self, other)

    @property
    def end(self) -> int:
        return self.offset + self.size

    @property
    def bytes(self) -> Interval:
        """The offsets it covers."""
        return Interval(self.offset, self.end)


@light_dataclass(frozen=False)
class Allocation:
    """The shared memory of one function: its buffers by owner, and its size."""

    function: Operation
    buffers: list[Buffer]
    size: int
    known: Aliases

    def __post_init__(self) -> None:
        self.explicit: dict[SSAValue, Buffer] = {b.owner.results[0]: b for b in self.buffers if b.kind == "explicit"}
        self.scratch: dict[Operation, Buffer] = {b.owner: b for b in self.buffers if b.kind != "explicit"}

    @property
    def alignment(self) -> int:
        """The alignment of the memory, wherever a caller puts it."""
        return max((buffer.alignment for buffer in self.buffers), default=1)

    def buffers_of(self, value: SSAValue) -> list[Buffer]:
        """Return the buffers that a memory descriptor may refer to."""
        return [self.explicit[buffer] for buffer in self.known.get(value, ())]


Allocations = dict[str, Allocation]  # of the functions of a module by name, callees before callers


def allocations(root: ModuleOp, target: Target, own: Allocations | None = None) -> list[Allocation]:
    """Return the allocation of every function with a body, including the modules inside of `root`."""
    return [found for _, those in allocations_by_module(root, target, own) for found in those.values()]


def allocations_by_module(
    root: ModuleOp, target: Target, own: Allocations | None = None
) -> Iterator[tuple[ModuleOp, Allocations]]:
    """Yield `root` and the modules inside of it, and what `module_allocation` returns for each; `own` is that of
    `root` if known."""
    for module in modules(root):
        yield module, own if module is root and own is not None else module_allocation(module, target)


def module_allocation(module: ModuleOp, target: Target) -> Allocations:
    """Return the allocation of the functions with a body of `module` itself."""
    functions = {name: function for name, function in functions_by_name(module).items() if has_body(function)}
    done: Allocations = {}
    for name in callees_first(functions):
        done[name] = function_allocation(functions[name], target, done)
    return done


def function_allocation(function: Operation, target: Target, frames: dict[str, Allocation]) -> Allocation:
    """Allocate the buffers of one function; `frames` are those of the functions it calls."""
    positions = positions_of(function)
    known = aliases(function)
    buffers = collect(function, positions, known, target, frames)
    size = assign_offsets(buffers)
    return Allocation(function, buffers, size, known)


def collect(
    function: Operation, positions: Positions, known: Aliases, target: Target, frames: dict[str, Allocation]
) -> list[Buffer]:
    """Return all buffers that have bytes: allocations, then the scratch memory of the function and its ops, in program
    order."""
    lifetimes = buffer_lifetimes(known, positions)
    explicit: list[Buffer] = []
    temporary: list[Buffer] = []
    for op, position in positions.items():
        if type(op) is ttg.LocalAllocOp:
            buffer = Buffer(
                op, "explicit", explicit_bytes(op), explicit_alignment(op), lifetimes[op.results[0]], async_regions(op)
            )
            end_with_dealloc(buffer, positions)
            explicit.append(buffer)
            continue
        alignment = ALIGNMENTS.get(type(op), SCRATCH_ALIGNMENT)
        if type(op) is tt.CallOp:
            frame, kind = frames.get(callee_of(op)), "call"
            size = 0 if frame is None else frame.size
            alignment = alignment if frame is None else max(alignment, frame.alignment)
        elif op is function:
            size, kind = partition_warps(op), "scratch"  # a byte per warp: the partition that it is to run next
        else:
            size, kind = scratch_size(op, target), "scratch"
        if size:
            live = Interval(0, FOREVER) if op is function else Interval(position, position + 1)
            temporary.append(Buffer(op, kind, size, alignment, live, async_regions(op)))
    if temporary and temporary[-1].owner is function:
        temporary.insert(0, temporary.pop())
    return explicit + temporary


def end_with_dealloc(buffer: Buffer, positions: Positions) -> None:
    """Let a buffer that is allocated outside of a `ttg.warp_specialize`, and freed in one region of it, end there."""
    for use in buffer.owner.results[0].uses:
        inside = async_regions(use.operation)
        if type(use.operation) is ttg.LocalDeallocOp and len(inside) > len(buffer.regions):
            buffer.live = Interval(buffer.live.start, positions[use.operation] + 1)
            buffer.regions, buffer.freed_in = inside, inside[0][0]


def async_regions(op: Operation) -> tuple[tuple[Operation, int], ...]:
    """Return the regions of `ttg.warp_specialize` around `op`, each with its index: 0 is the default, then the
    partitions."""
    found: list[tuple[Operation, int]] = []
    inner, outer = op, op.parent_op()
    while outer is not None:
        if isinstance(outer, ttg.WarpSpecializePartitionsOp):
            region, holder = inner.parent_region(), outer.parent_op()
            if region is not None and holder is not None:
                found.append((holder, 1 + outer.regions.index(region)))
        elif isinstance(outer, ttg.WarpSpecializeOp) and not isinstance(inner, ttg.WarpSpecializePartitionsOp):
            found.append((outer, 0))
        inner, outer = outer, outer.parent_op()
    return tuple(found)


def run_together(a: Buffer, b: Buffer) -> bool:
    """Return True if the two are in different regions of one op that runs them concurrently."""
    return any(first is second and i != j for first, i in a.regions for second, j in b.regions)


def explicit_bytes(op: Operation) -> int:
    """Return the bytes of a `ttg.local_alloc` in one block, with padding."""
    memory = op.results[0].type
    assert isinstance(memory, ttg.MemDescType)
    encoding = shared_of(memory)
    assert encoding is not None
    count = prod(shape_per_cta(encoding, memory.alloc_dims))
    count += sum((count // interval - (count % interval == 0)) * padding for interval, padding in encoding.intervals)
    size = count * max(8, bit_width(memory.element_type)) // 8
    buffers = prod(memory.alloc_dims[: -encoding.rank])
    return size if buffers == 1 else buffers * aligned(size // buffers, encoding.buffer_alignment)


def explicit_alignment(op: Operation) -> int:
    """Return the alignment of the op, or that of its encoding."""
    if (given := op.properties.get("alignment")) is not None:
        return given.value.data  # pyright: ignore[reportAttributeAccessIssue]
    encoding = shared_of(op.results[0].type)
    assert encoding is not None
    return encoding.alignment


def assign_offsets(buffers: Sequence[Buffer]) -> int:
    """Give every buffer an offset; return the total size."""
    if not buffers:
        return 0
    ordered = sorted(buffers, key=lambda buffer: -buffer.size)
    first_fit(ordered)
    separate(ordered)
    return max(buffer.end for buffer in buffers)


def aligned(offset: int, alignment: int) -> int:
    """Return the next multiple of `alignment`."""
    return -(-offset // alignment) * alignment


def first_fit(buffers: Sequence[Buffer]) -> None:
    """Assign the first offsets: each buffer goes to the lowest corner whose interval its lifetime overlaps."""
    lowest = [(0, 0, Interval(0, FOREVER))]  # a heap: offset, number of the corner, and its time
    made = 1
    corners, waiting = Overlaps(()), Overlaps(buffer.live for buffer in buffers)
    left = list(buffers)
    corners.add(lowest[0][-1])
    while left:
        offset, _, time = heappop(lowest)
        corners.remove(time)
        chosen = next((buffer for buffer in meeting(time, left, waiting) if not corners.count(buffer.live)), None)
        if chosen is None:
            continue
        chosen.offset = aligned(offset, chosen.alignment)
        left.remove(chosen)
        live = chosen.live
        waiting.remove(live)
        opened = [(chosen.end, Interval(max(time.start, live.start), min(time.end, live.end)))]
        if time.start < live.start:
            opened.append((offset, Interval(time.start, live.end)))
        if live.end < time.end:
            opened.append((offset, Interval(live.start, time.end)))
        for corner, free in opened:
            heappush(lowest, (corner, made, free))
            made += 1
            corners.add(free)


class Overlaps:
    """A multiset of intervals that counts how many of them overlap a given one: those that start before its end, minus
    those that end before its start."""

    def __init__(self, intervals: Iterable[Interval]) -> None:
        every = list(intervals)
        self.starts = sorted(interval.start for interval in every)
        self.ends = sorted(interval.end for interval in every)

    def add(self, interval: Interval) -> None:
        insort(self.starts, interval.start)
        insort(self.ends, interval.end)

    def remove(self, interval: Interval) -> None:
        del self.starts[bisect_left(self.starts, interval.start)]
        del self.ends[bisect_left(self.ends, interval.end)]

    def count(self, interval: Interval) -> int:
        return bisect_left(self.starts, interval.end) - bisect_right(self.ends, interval.start)


def meeting(time: Interval, left: Sequence[Buffer], waiting: Overlaps) -> Iterator[Buffer]:
    """Yield the buffers of `left` that are live in `time`; `waiting` has the lifetimes of `left`."""
    remaining = waiting.count(time)
    for buffer in left if remaining else ():
        if buffer.live.overlaps(time):
            yield buffer
            remaining -= 1
            if not remaining:
                return


def separate(buffers: Sequence[Buffer]) -> None:
    """Move buffers up until no two that are in use at the same time share bytes."""
    while True:
        conflicts = interference(buffers)
        if not any(conflicts):
            return
        colours = coloured(conflicts)
        for index, buffer in enumerate(buffers):
            if colours[index]:
                top = max(buffers[other].end for other in conflicts[index])
                buffer.offset = aligned(top, buffer.alignment)


def interference(buffers: Sequence[Buffer]) -> list[list[int]]:
    """Return for each buffer the indices of the buffers that wrongly share bytes with it."""
    found: list[set[int]] = [set() for _ in buffers]
    for i, j in may_meet(buffers):
        if buffers[i].bytes.overlaps(buffers[j].bytes) and buffers[i].meets(buffers[j]):
            found[i].add(j)
            found[j].add(i)
    return [sorted(others) for others in found]


def may_meet(buffers: Sequence[Buffer]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of buffers that are live at the same time, and each buffer of a concurrent region with all
    others."""
    live: list[int] = []
    for i in sorted(range(len(buffers)), key=lambda index: buffers[index].live.start):
        start = buffers[i].live.start
        live = [j for j in live if buffers[j].live.end > start]
        for j in live:
            yield i, j
        live.append(i)
    for i, buffer in enumerate(buffers):
        if buffer.regions or buffer.freed_in is not None:
            for j in range(len(buffers)):
                if j != i:
                    yield i, j


def coloured(conflicts: Sequence[Sequence[int]]) -> list[int]:
    """Return the smallest colour for each buffer that no neighbour before it has."""
    colours: list[int] = []
    for index, neighbours in enumerate(conflicts):
        taken = {colours[other] for other in neighbours if other < index}
        colours.append(next(colour for colour in range(len(conflicts) + 1) if colour not in taken))
    return colours


@light_dataclass
class Frame:
    """The bytes that a function needs, and their alignment."""

    size: int
    alignment: int


@light_dataclass(frozen=False)
class GlobalScratch:
    """The frames of functions by name; the offsets of the allocations and calls that need memory."""

    frames: dict[str, Frame] = field(default_factory=dict)
    offsets: dict[Operation, int] = field(default_factory=dict)

    def whole(self, kernels: list[str]) -> Frame:
        """Return what a program of any of the `kernels` needs."""
        frames = [self.frames[name] for name in kernels]
        alignment = max((frame.alignment for frame in frames), default=1)
        return Frame(aligned(max((frame.size for frame in frames), default=0), alignment), alignment)


def global_scratch(module: ModuleOp) -> GlobalScratch:
    """Lay out the frames of all functions, callees first."""
    functions = functions_by_name(module)
    found = GlobalScratch()
    for name in callees_first(functions):
        found.frames[name] = lay_out(functions[name], found)
    return found


def lay_out(function: Operation, found: GlobalScratch) -> Frame:
    end, alignment = 0, 1
    for op in ops_in_order(*function.regions):
        if isinstance(op, ttg.GlobalScratchAllocOp):
            if not op.is_default:
                continue
            needed = Frame(int_property(op, "nbytes"), int_property(op, "alignment"))
        elif type(op) is tt.CallOp:
            needed = found.frames.get(callee_of(op), Frame(0, 1))  # a recursive function has no memory
        else:
            continue
        if needed.size:
            found.offsets[op] = aligned(end, needed.alignment)
            end, alignment = found.offsets[op] + needed.size, max(alignment, needed.alignment)
    return Frame(aligned(end, alignment), alignment)


def public_functions(module: ModuleOp) -> list[str]:
    """Return the names of the kernels."""
    return [name for name, function in functions_by_name(module).items() if not is_private(function)]
