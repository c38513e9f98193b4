"""Results are stored through memory of a ring, once it is empty for good: so there is room for another stage.

    %d = products ...                              the last stage is given back
    tt.descriptor_store %c[...], %d       ==>      wait_barrier %empty[part]           both consumers have read it
                                                   local_store %d, %buffers[part];  async_tma_copy_local_to_global

This is for what follows a loop that runs once, where the part of each consumer is as large as a stage of a channel and is
laid out like it: consumer number `part` uses that stage.
"""

from typing import NamedTuple

from xdsl.dialects import arith, scf
from xdsl.ir import Operation

from tilework.ir import tt, ttg, ttng
from tilework.ir.encodings import encoding_of
from tilework.ir.rewrite import erase_op
from tilework.ir.types import TensorDescType, element_type, i32, shape_of
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.ttng.tma_copies import start_store
from tilework.transforms.warp_specialize.rings import Reading, stage_of
from tilework.transforms.warp_specialize.slicing import Search, cut_shape


class Home(NamedTuple):
    """Where a store finds memory: the ring, and the number of a channel of it."""

    store: Operation
    reading: Reading
    channel: int


def find_homes(cuts: list[Search], readings: list[list[Reading]]) -> list[list[Home]] | None:
    """Homes for all stores by descriptor, of each consumer; None if one has none."""
    found = [
        [home_of(store, cut, own) for store in cut.ops if type(store) is tt.DescriptorStoreOp]
        for cut, own in zip(cuts, readings, strict=True)
    ]
    homes = [[home for home in own if home is not None] for own in found]
    return homes if homes == found and any(homes) else None


def home_of(store: Operation, cut: Search, readings: list[Reading]) -> Home | None:
    descriptor, value = store.operands[0].type, store.operands[1].type
    if (dim := cut.stores.get(store)) is None or not isinstance(descriptor, TensorDescType):
        return None
    wanted = cut_shape(shape_of(value), dim), element_type(value), encoding_of(descriptor.block)
    for reading in readings:
        loop = reading.block.parent_op()
        if type(loop) is not scf.ForOp or reading.memory.empty is None or len(reading.ring.blocks) != 1:
            continue
        if loop.parent_op() is not None or loop.parent is not store.parent or not loop.is_before_in_block(store):
            continue
        for number, channel in enumerate(reading.ring.channels):
            tile = channel.load.results[0].type
            if (shape_of(tile), element_type(tile), channel.encoding) == wanted:
                return Home(store, reading, number)
    return None


def store_through(homes: list[Home], part: int) -> None:
    """Store what consumer number `part` has, once it has been cut."""
    for store, reading, channel in homes:
        memory, loop = reading.memory, reading.block.parent_op()
        assert memory.empty is not None and loop is not None
        code = Emitter(store.location)
        position = reading.index.index - 1  # pyright: ignore[reportAttributeAccessIssue]
        index, phase = loop.results[position : position + 2]
        stage, one = code.constant(part, i32), code.constant(1, i32)
        other = code.binary(arith.XOrIOp, phase, one)
        last = code.select(
            code.compare("slt", stage, index), phase, other
        )  # of its last use, in this turn or the one before
        code.ops.append(ttng.WaitBarrierOp.make(stage_of(code, memory.empty, stage), last, None, (), code.loc))
        buffer = stage_of(code, memory.buffers[channel], stage)
        code.ops.append(ttg.LocalStoreOp.make(store.operands[1], buffer, code.loc))
        code.ops.append(ttng.FenceAsyncSharedOp.make(False, code.loc))
        code.ops.append(start_store(store, buffer))
        code.ops.append(ttng.AsyncTMAStoreWaitOp.make(0, code.loc))
        code.insert_before(store)
        erase_op(store)
