"""Lines of memory that a nest fetches into the cache before they are needed: of rows further down, and of stores that later nests do.
Those at some distance in the same row are `nest_access.fetch_ahead`'s."""

from typing import TYPE_CHECKING, NamedTuple

from xdsl.ir import Block, Operation, SSAValue

from tilework.ir import tt
from tilework.targets.cpu.lower.lanes import Linear, strides
from tilework.targets.cpu.lower.nest_access import LONG_ROW, fetch_lines
from tilework.targets.llvm.scalar_types import pointee_bytes
from tilework.targets.llvm.types import i1
from tilework.targets.llvm.values import Value, constant

if TYPE_CHECKING:
    from tilework.targets.cpu.lower.nests import Nest

ROWS_AHEAD = 2  # of a tile: its rows lie apart, so that the processor does not find the next one by itself


class Promised(NamedTuple):
    """A store of a later nest: the block, the ops that make its address, the address, the bytes of an element; whether it goes past the
    caches."""

    block: Block
    ops: list[Operation]
    address: SSAValue
    size: int
    past: Value


def later_rows(nest: "Nest", depth: int) -> dict[Operation, Linear]:
    """Where accesses to short rows will be when the loop around the innermost one is some steps further."""
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
