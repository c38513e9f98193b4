"""Lines that a later nest stores to, fetched by a nest that computes and leaves memory alone meanwhile.

    ttc.nest [4096] {... %e = math.exp ...; ttc.write %e, %row[%j]}       fetches the lines of %out, one with each vector
    ttc.nest [4096] {... %y = arith.divf ...; tt.store %p, %y}            %p = %out + %j: finds them in the cache

A store to a line that is not in the cache waits for memory, so that a kernel which first computes and then stores takes
as long as both. The address is what the ops of the later nest compute for the same indices, if they are arithmetic on
values that are known already. Fetching changes no result.
"""

from math import prod

from xdsl.ir import Block, Operation, SSAValue

from tilework.ir import tt, ttc
from tilework.ir.types import array_values
from tilework.targets.cpu.lower.lanes import NEVER, strides
from tilework.targets.cpu.lower.nest_access import access_stride, streams
from tilework.targets.cpu.lower.nests import Nest
from tilework.targets.cpu.lower.streaming import Promised, is_large
from tilework.targets.llvm.scalar_types import element_bytes

LEAST_COST = 20  # instructions per vector, in which a line can come
MOST_BYTES = 1 << 18  # of a tile, so that it is still there when it is stored to


def promised_stores(nest: Nest, op: Operation) -> list[Promised]:
    """The stores that nests behind `op` do at the same indices; none if this nest does not leave memory idle."""
    if not nest.low.target.stream_ahead or type(nest) is not Nest or nest.lanes == 1 or nest.cost() < LEAST_COST:
        return []
    if any(type(inner) in (tt.LoadOp, tt.StoreOp) for inner in nest.ops):
        return []
    found: list[Promised] = []
    unknown, later = set[SSAValue](), op.next_op
    while later is not None:
        if type(later) is ttc.NestOp and list(array_values(later.properties["shape"])) == list(nest.shape):
            found += stores_of(nest, later.regions[0].block, unknown)
        unknown.update(later.results)
        later = later.next_op
    return found


def stores_of(nest: Nest, block: Block, unknown: set[SSAValue]) -> list[Promised]:
    known, found = strides(block, nest.shape), list[Promised]()
    for store in block.ops:
        if type(store) is not tt.StoreOp or streams(store):
            continue
        size = element_bytes(store.operands[1].type)
        is_contiguous = access_stride(store, known, nest.dim) == (size, size)
        if is_contiguous and prod(nest.shape) * size <= MOST_BYTES:
            ops = address_ops(nest, block, store.operands[0], unknown)
            if ops is not None:
                past = NEVER
                if store in nest.low.streamed and (later := block.parent_op()) is not None:
                    past = is_large(nest.low, later, prod(nest.shape) * size)
                found.append(Promised(block, ops, store.operands[0], size, past))
    return found


def address_ops(nest: Nest, block: Block, address: SSAValue, unknown: set[SSAValue]) -> list[Operation] | None:
    """The ops of a block that make an address, in order; None if one is more than arithmetic or a value is not known
    yet.
    """
    needed, left = set[Operation](), [address]
    while left:
        value = left.pop()
        owner = value.owner
        if owner is block:
            continue
        if isinstance(owner, Block) or owner.parent_block() is not block:
            if value in unknown or value not in nest.low.values:
                return None
        elif type(owner) not in nest.low.elementwise:
            return None
        elif owner not in needed:
            needed.add(owner)
            left += owner.operands
    return [op for op in block.ops if op in needed]
