"""Where in shared memory each buffer lies.

Three kinds of buffers: what `ttg.local_alloc` makes lives as long as a value names it; the scratch memory of an op
(`scratch.py`) lives for that op; a call has the whole frame of the function it calls. Two buffers may share bytes
unless they live at the same time, or in two regions that run at the same time. What a `ttg.local_dealloc` in such a region frees
is free from there on, for that region: others that know the buffer are done with it by then.

    %m = ttg.local_alloc %x      4096 bytes, live [0, 3)         offset 0
    %y = ttg.convert_layout %x   4096 bytes, live [1, 2)         offset 4096
    %z = ttg.local_load %m       -
    %r = tt.reduce %x            512 bytes, live [3, 4)          offset 0 again

Large buffers are placed first. `first_fit` keeps a list of free corners, each an offset with an interval of time in
which everything above it is still free, and puts into the lowest corner the first buffer that fits there without
covering another corner's time. That may still leave conflicts with what is not in the time of the corner, so
`separate` then moves buffers up, one colour of the interference graph after the other, until there is none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilework.analysis.alias import Aliases, aliases
from tilework.analysis.liveness import FOREVER, Interval, Numbers, buffer_lifetimes, number_ops
from tilework.analysis.scratch import ALIGNMENTS, SCRATCH_ALIGNMENT, scratch_size
from tilework.ir import tt, ttg
from tilework.ir.encodings import shared_of
from tilework.ir.functions import callee_of, callees_first, functions_by_name, has_body, modules
from tilework.ir.module_facts import partition_warps
from tilework.ir.types import bit_width
from tilework.layouts.queries import shape_per_cta
from tilework.target import Target


@dataclass(eq=False)
class Buffer:
    """Bytes that belong to `owner`. `regions` are the regions around it that run beside others."""

    owner: Operation
    kind: str  # "explicit", "scratch" or "call"
    size: int
    alignment: int
    live: Interval
    regions: tuple[tuple[Operation, int], ...] = ()
    offset: int = 0
    freed_in: Operation | None = None  # the op with regions that the buffer is handed to, and freed in

    def meets(self, other: "Buffer") -> bool:
        """Whether both are in use at the same time; what passes values to regions does so before these run."""
        passes = other.owner is self.freed_in or self.owner is other.freed_in
        return passes or self.live.overlaps(other.live) or run_together(self, other)

    @property
    def end(self) -> int:
        return self.offset + self.size

    @property
    def bytes(self) -> Interval:
        """The offsets it covers."""
        return Interval(self.offset, self.end)


@dataclass
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
        """What the start of the memory must be a multiple of, wherever a caller puts it."""
        return max((buffer.alignment for buffer in self.buffers), default=1)

    def buffers_of(self, value: SSAValue) -> list[Buffer]:
        """The buffers that a memory descriptor may name."""
        return [self.explicit[buffer] for buffer in self.known.get(value, ())]


def allocations(root: ModuleOp, target: Target) -> list[Allocation]:
    """The allocation of every function with a body, of the modules inside `root` too."""
    return [found for module in modules(root) for found in module_allocation(module, target).values()]


def module_allocation(module: ModuleOp, target: Target) -> dict[str, Allocation]:
    """The allocation of the functions with a body that stand in `module` itself by name, callees before callers."""
    functions = {name: function for name, function in functions_by_name(module).items() if has_body(function)}
    done: dict[str, Allocation] = {}
    for name in callees_first(functions):
        done[name] = function_allocation(functions[name], target, done)
    return done


def function_allocation(function: Operation, target: Target, frames: dict[str, Allocation]) -> Allocation:
    """Place the buffers of one function; `frames` are those of the functions it calls."""
    numbers = number_ops(function)
    known = aliases(function)
    buffers = collect(function, numbers, known, target, frames)
    size = place(buffers)
    return Allocation(function, buffers, size, known)


def collect(
    function: Operation, numbers: Numbers, known: Aliases, target: Target, frames: dict[str, Allocation]
) -> list[Buffer]:
    """All buffers that have bytes: what is allocated, then what the function and its ops need, in program order."""
    lifetimes = buffer_lifetimes(known, numbers)
    explicit: list[Buffer] = []
    temporary: list[Buffer] = []
    for op, number in numbers.items():
        if type(op) is ttg.LocalAllocOp:
            buffer = Buffer(
                op, "explicit", explicit_bytes(op), explicit_alignment(op), lifetimes[op.results[0]], async_regions(op)
            )
            end_with_dealloc(buffer, numbers)
            explicit.append(buffer)
            continue
        alignment = ALIGNMENTS.get(type(op), SCRATCH_ALIGNMENT)
        if type(op) is tt.CallOp:
            frame = frames.get(callee_of(op))
            size, kind = (frame.size, "call") if frame is not None else (0, "call")
            alignment = max(alignment, frame.alignment) if frame is not None else alignment
        elif op is function:
            size, kind = partition_warps(op), "scratch"  # a byte for each: where it reads what to do next
        else:
            size, kind = scratch_size(op, target), "scratch"
        if size:
            live = Interval(0, FOREVER) if op is function else Interval(number, number + 1)
            temporary.append(Buffer(op, kind, size, alignment, live, async_regions(op)))
    if temporary and temporary[-1].owner is function:
        temporary.insert(0, temporary.pop())
    return explicit + temporary


def end_with_dealloc(buffer: Buffer, numbers: Numbers) -> None:
    """Let a buffer that is made around a `ttg.warp_specialize`, and freed in one region of it, end there."""
    for use in buffer.owner.results[0].uses:
        inside = async_regions(use.operation)
        if type(use.operation) is ttg.LocalDeallocOp and len(inside) > len(buffer.regions):
            buffer.live = Interval(buffer.live.start, numbers[use.operation] + 1)
            buffer.regions, buffer.freed_in = inside, inside[0][0]


def async_regions(op: Operation) -> tuple[tuple[Operation, int], ...]:
    """The regions of `ttg.warp_specialize` around `op`, each with its number: 0 is the default, then the partitions."""
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
    """Whether the two are in different regions of one op that runs them beside each other."""
    return any(first is second and i != j for first, i in a.regions for second, j in b.regions)


def explicit_bytes(op: Operation) -> int:
    """The bytes of a `ttg.local_alloc` in one block, with padding."""
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
    """What the op asks for, or what the encoding needs."""
    if (given := op.properties.get("alignment")) is not None:
        return given.value.data  # pyright: ignore[reportAttributeAccessIssue]
    encoding = shared_of(op.results[0].type)
    assert encoding is not None
    return encoding.alignment


def place(buffers: Sequence[Buffer]) -> int:
    """Give every buffer an offset; the bytes that are needed in all."""
    if not buffers:
        return 0
    ordered = sorted(buffers, key=lambda buffer: -buffer.size)
    first_fit(ordered)
    separate(ordered)
    return max(buffer.end for buffer in buffers)


def aligned(offset: int, alignment: int) -> int:
    """The next multiple of `alignment`."""
    return -(-offset // alignment) * alignment


def first_fit(buffers: Sequence[Buffer]) -> None:
    """The first offsets: each buffer into the lowest corner in whose time it lives."""
    corners: list[tuple[int, Interval]] = [(0, Interval(0, FOREVER))]
    left = list(buffers)
    while left:
        lowest = min(range(len(corners)), key=lambda index: corners[index][0])
        offset, time = corners.pop(lowest)
        chosen = next(
            (
                buffer
                for buffer in left
                if buffer.live.overlaps(time) and not any(buffer.live.overlaps(other) for _, other in corners)
            ),
            None,
        )
        if chosen is None:
            continue
        chosen.offset = aligned(offset, chosen.alignment)
        left.remove(chosen)
        live = chosen.live
        corners.append((chosen.end, Interval(max(time.start, live.start), min(time.end, live.end))))
        if time.start < live.start:
            corners.append((offset, Interval(time.start, live.end)))
        if live.end < time.end:
            corners.append((offset, Interval(live.start, time.end)))


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
    """For each buffer, the others it must not share bytes with but does."""
    found: list[list[int]] = [[] for _ in buffers]
    for i, a in enumerate(buffers):
        for j in range(i + 1, len(buffers)):
            b = buffers[j]
            if a.bytes.overlaps(b.bytes) and a.meets(b):
                found[i].append(j)
                found[j].append(i)
    return found


def coloured(conflicts: Sequence[Sequence[int]]) -> list[int]:
    """The smallest colour for each buffer that no neighbour before it has."""
    colours: list[int] = []
    for index, neighbours in enumerate(conflicts):
        taken = {colours[other] for other in neighbours if other < index}
        colours.append(next(colour for colour in range(len(conflicts) + 1) if colour not in taken))
    return colours
