"""Stores past the caches: those that request it (``.cs``), and those of launches that store more than the last cache
holds.

    tl.store(out + i, x + y)        65536 elements of 4 bytes; in a grid of 256 programs these are 64 MB

    if grid * 262144 >= 36 MB and the row begins at a multiple of 16 bytes:      once for each row
        stores go past the caches: lines are not read first, and drive no others out
    else:
        they remain in the cache for the next reader

The size of the cache is that of the machine which compiles. Whether such stores pay depends on the processor:
`target.py` has those that were measured; on others the kernel must request them. A loop around the nest multiplies what
is stored by its rounds. Left alone are arrays that the kernel itself reads, tiles that each round of a loop stores to
the same address, small ones, and kernels whose programs may wait for each other. x86 keeps no order of such stores: a
fence follows each nest (`fork.py`).

Lines of memory that a nest fetches into the cache before they are needed: of rows further down, and of stores that
later nests do. Those at some distance in the same row are `nest_access.fetch_ahead`'s.
"""

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from xdsl.ir import Block, Operation, SSAValue

from tilework.analysis.provenance import NO_PARAMETER, Provenance, flows, is_address, spread
from tilework.ir import scf, tt, ttc
from tilework.ir.enums import CacheModifier, EvictionPolicy
from tilework.ir.functions import ops_in_order
from tilework.ir.llvm import GpuBarrierOp
from tilework.ir.types import int_property
from tilework.targets.cpu.lower.lanes import Linear, strides
from tilework.targets.cpu.lower.lowering import Lowering
from tilework.targets.cpu.lower.nest_access import (
    LONG_ROW,
    STREAM_ALIGN,
    access_stride,
    fetch_lines,
    is_volatile,
    step_of,
    streams,
)
from tilework.targets.cpu.target import CACHE_LINE
from tilework.targets.llvm.scalar_types import element_bytes, pointee_bytes
from tilework.targets.llvm.types import f64, i1, i64
from tilework.targets.llvm.values import Value, constant

if TYPE_CHECKING:
    from tilework.targets.cpu.lower.nests import Nest


ROWS_AHEAD = 2  # of a tile: its rows are far apart, so the hardware prefetcher does not find the next one


class Promised(NamedTuple):
    """A store of a later nest: the block, the ops that make its address, the address, the bytes of an element; whether
    it goes past the caches.
    """

    block: Block
    ops: list[Operation]
    address: SSAValue
    size: int
    past: Value


def later_rows(nest: "Nest", depth: int) -> dict[Operation, Linear]:
    """The addresses of accesses to short rows some iterations of the outer loop later."""
    outer = nest.order[depth - 1]
    accesses = [op for op in nest.ops if type(op) in (tt.LoadOp, tt.StoreOp) and row_bytes(nest, op) <= LONG_ROW]
    longest = max((row_bytes(nest, op) for op in accesses), default=0)
    rows = max(ROWS_AHEAD, 2 * nest.ahead // longest) if accesses else 0
    if not accesses or nest.shape[outer] <= rows:
        return {}
    around = nest.block.args[outer]
    now, nest.kinds = nest.kinds, dict(nest.kinds)
    nest.kinds[around] = nest.b.add(nest.vector(around), rows)
    for op in nest.ops:
        if nest.depths[op] == depth and type(op) in nest.low.elementwise:
            if nest.stride(op.results[0]) is not None:
                nest.kinds[op.results[0]] = nest.form(op)
    found = {op: kind for op in accesses if isinstance(kind := nest.kinds.get(op.operands[0]), Linear)}
    nest.kinds = now
    return found


def row_bytes(nest: "Nest", access: Operation) -> int:
    return nest.shape[nest.dim] * pointee_bytes(access.operands[0].type)


def fetch_promised(nest: "Nest") -> None:
    """Fetch the lines at these indices that later nests store to."""
    for block, ops, address, size, past in nest.promised:
        known, nest.kinds = nest.kinds, dict(nest.kinds)
        nest.strides |= strides(block, nest.shape)
        nest.kinds |= {arg: nest.kind(own) for arg, own in zip(block.args, nest.block.args, strict=True)}
        with nest.b.if_(nest.b.xor(past, constant(i1, 1))):
            for op in ops:
                nest.kinds[op.results[0]] = nest.form(op)
            fetch_lines(nest, size, nest.kind(address), 0, write=True)
        nest.kinds = known


LEAST = 4096  # bytes of a tile: waiting for the stores at its end takes some time
MEETING = (tt.AtomicRMWOp, tt.AtomicCASOp, tt.CallOp, GpuBarrierOp)  # programs that have these may know of each other


def streamed_stores(function: Operation) -> frozenset[Operation]:
    """The stores of a kernel that may go past the caches if the launch stores much."""
    ops = ops_in_order(*function.regions)
    stores = [op for op in ops if type(op) is tt.StoreOp and is_plain(op)]
    if not stores or any(type(op) in MEETING or (type(op) is tt.LoadOp and is_volatile(op)) for op in ops):
        return frozenset()
    provenance: Provenance = {}
    for position, argument in enumerate(function.regions[0].blocks[0].args):
        if is_address(argument.type):
            provenance[argument] = frozenset({position})
    spread(provenance, [edge for op in ops for edge in flows(op)])
    read = [provenance.get(op.operands[0], NO_PARAMETER) for op in ops if type(op) is tt.LoadOp]
    if NO_PARAMETER in read:
        return frozenset()
    known = frozenset[int]().union(*read)
    return frozenset(op for op in stores if (own := provenance.get(op.operands[0], NO_PARAMETER)) and not own & known)


def is_plain(store: Operation) -> bool:
    """A store of a tile without a cache modifier, to another address in each iteration of the loops around it."""
    nest = store.parent_op()
    if type(nest) is not ttc.NestOp or int_property(store, "cache") != CacheModifier.NONE:
        return False
    if int_property(store, "evict") == EvictionPolicy.LAST:
        return False
    return all(type(loop) is scf.ForOp and changes_in(store.operands[0], loop) for loop in loops_around(nest))


def loops_around(nest: Operation) -> Iterator[Operation]:
    """From the innermost one."""
    around = nest.parent_op()
    while around is not None:
        if type(around) is scf.ForOp or type(around) is scf.WhileOp:
            yield around
        around = around.parent_op()


def changes_in(value: SSAValue, loop: Operation) -> bool:
    """Return True if a value is computed from what is another one in each round."""
    left, seen = [value], set[SSAValue]()
    while left:
        owner = (value := left.pop()).owner
        if value in seen:
            continue
        seen.add(value)
        if owner is loop.regions[0].block:
            return True
        op = owner.parent_op() if isinstance(owner, Block) else owner
        if op is not None and (op is owner or type(op) is scf.ForOp):
            left += op.operands
    return False


def is_large(low: Lowering, nest: Operation, size: int) -> Value:
    """Return True if a launch stores more than the last cache holds, if a run of the nest stores `size` bytes."""
    b = low.builder
    stored, limit = constant(f64, float(size)), constant(f64, float(low.target.streams_from))
    for extent in low.grid:
        stored = b.fmul(stored, b.sitofp(extent, f64))
    for loop in loops_around(nest):
        start, end, step = (b.sitofp(low[operand], f64) for operand in loop.operands[:3])
        stored, limit = b.fmul(stored, b.fsub(end, start)), b.fmul(limit, step)
    return b.fcmp("oge", stored, limit)


def stores_past(nest: "Nest", op: Operation) -> dict[Operation, Value]:
    """The stores of a nest that go past the caches, and whether they do."""
    requested = {store: constant(i1, 1) for store in nest.ops if streams(store)}
    fitting = [store for store in nest.ops if store in nest.low.streamed and suits(nest, store)]
    stored = sum(element_bytes(store.operands[1].type) for store in fitting) * prod(nest.shape)
    if stored < LEAST:
        return requested
    return requested | dict.fromkeys(fitting, is_large(nest.low, op, stored))


def suits(nest: "Nest", store: Operation) -> bool:
    """Return True if each chunk of the innermost loop fills lines."""
    size = element_bytes(store.operands[1].type)
    is_contiguous = bool(nest.shape) and access_stride(store, nest.strides, nest.dim) == (size, size)
    return is_contiguous and nest.order[-1] == nest.dim and nest.lanes * size % CACHE_LINE == 0


def rows_past(nest: "Nest") -> dict[Operation, tuple[Value, Value]]:
    """For stores to the row that begins: whether it goes past the caches, and whether it begins with a line."""
    b, found = nest.b, dict[Operation, tuple[Value, Value]]()
    for store, past in nest.past.items():
        line = nest.kinds.get(store.operands[0])
        if isinstance(line, Linear) and line.sum is None and step_of(line) == element_bytes(store.operands[1].type):
            address = b.ptrtoint(line.start, i64)
            is_line, is_aligned = (b.icmp("eq", b.and_(address, align - 1), 0) for align in (CACHE_LINE, STREAM_ALIGN))
            found[store] = b.and_(past, is_aligned), is_line
    return found
