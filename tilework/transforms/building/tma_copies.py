"""The asynchronous copies that loads and stores by descriptor become."""

from xdsl.ir import Operation, SSAValue

from tilework.ir import tt, ttng
from tilework.ir.create import create_op

LOADS = (tt.DescriptorLoadOp, tt.DescriptorGatherOp)
STORES = (tt.DescriptorStoreOp, tt.DescriptorReduceOp, tt.DescriptorScatterOp)


def start_load(load: Operation, target: SSAValue, barrier: SSAValue, always: SSAValue) -> Operation:
    """The copy of a block, or of rows of one, to shared memory."""
    desc, *offsets = load.operands
    if type(load) is tt.DescriptorGatherOp:
        return ttng.AsyncTMAGatherOp.make(desc, offsets[0], offsets[1], barrier, target, always, load.location)
    return ttng.AsyncTMACopyGlobalToLocalOp.make(desc, offsets, barrier, target, always, load.location)


def stored_value(store: Operation) -> SSAValue:
    """The tensor that is written."""
    assert isinstance(store, STORES)
    return store.src


def start_store(store: Operation, buffer: SSAValue) -> Operation:
    """The asynchronous form of `store`."""
    location = store.location
    if isinstance(store, tt.DescriptorScatterOp):
        return ttng.AsyncTMAScatterOp.make(store.desc, store.x_offsets, store.y_offset, buffer, location)
    if isinstance(store, tt.DescriptorReduceOp):
        operands = (store.desc, *store.indices, buffer)
        return create_op(ttng.AsyncTMAReduceOp, operands, (), location, {"kind": store.properties["kind"]})
    assert isinstance(store, tt.DescriptorStoreOp)
    return ttng.AsyncTMACopyLocalToGlobalOp.make(store.desc, tuple(store.indices), buffer, location)
