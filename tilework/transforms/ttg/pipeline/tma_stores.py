"""Step 5 of the pipeliner: stores by descriptor in loops go on while the loop does.

    tt.descriptor_store %d[%i, %j], %x       ttng.async_tma_store_wait {pendings = 0}      the one before has read the buffer
                                      ==>    ttg.local_store %x, %buffer
                                             ttng.fence_async_shared
                                             ttng.async_tma_copy_local_to_global %d[%i, %j] %buffer

The wait of a store is put off to the next one, or to behind the loop. Stores of the same shape share a buffer.
"""

from xdsl.ir import Operation, SSAValue

from tilework.ir import ttg, ttng
from tilework.ir.encodings import (
    shared_of,
)
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import insert_after, put, replace_op
from tilework.ir.tt.descriptor_ops import block_type
from tilework.ir.ttg.memdesc_types import MemDescType, memdesc_type
from tilework.ir.types import element_type, shape_of
from tilework.transforms.building.tma_copies import STORES, start_store, stored_value
from tilework.transforms.ttg.pipeline.descriptors import buffer_descriptors, called_for
from tilework.transforms.ttg.pipeline.loops import loops_in, num_stages, ops_outside_loops

DESCRIPTOR_SLOTS = 2  # the store of the iteration before may still read its descriptor


def pipeline_stores(root: Operation, default_stages: int) -> None:
    """Let the stores by descriptor in the loops under `root` run on."""
    for loop in loops_in(root):
        if num_stages(loop, default_stages) > 1:
            body = body_of(loop)
            stores = [
                store
                for store in ops_outside_loops(body, *STORES)
                if buffer_type(store) is not None and not called_for(store.operands[0], body)
            ]
            if stores:
                pipeline_loop(loop, stores)


def buffer_type(store: Operation) -> MemDescType | None:
    """The memory that TMA reads; None if the descriptor says nothing that fits."""
    encoding, value = shared_of(block_type(store.operands[0].type)), stored_value(store)
    shape = shape_of(value.type)
    if encoding is None or encoding.rank != len(shape) or encoding.without_leading(0) is None:
        return None
    return memdesc_type(shape, element_type(value.type), encoding, True)


def pipeline_loop(loop: Operation, stores: list[Operation]) -> None:
    """Rewrite the `stores` of `loop`."""
    buffers: dict[MemDescType, SSAValue] = {}
    for store in stores:
        kind = buffer_type(store)
        assert kind is not None
        if kind not in buffers:
            buffers[kind] = put(loop, ttg.LocalAllocOp.make(None, kind, store.location))
        rewrite_store(store, buffers[kind])
    deallocs = [ttg.LocalDeallocOp.make(buffer, loop.location) for buffer in reversed(buffers.values())]
    insert_after(loop, ttng.AsyncTMAStoreWaitOp.make(0, loop.location), *deallocs)
    buffer_descriptors(loop, DESCRIPTOR_SLOTS, lambda old, new: None)


def rewrite_store(store: Operation, buffer: SSAValue) -> None:
    """Wait for the store before, fill the buffer, and start."""
    location = store.location
    replace_op(
        store,
        ttng.AsyncTMAStoreWaitOp.make(0, location),
        ttg.LocalStoreOp.make(stored_value(store), buffer, location),
        ttng.FenceAsyncSharedOp.make(False, location),
        start_store(store, buffer),
        results=(),
    )
