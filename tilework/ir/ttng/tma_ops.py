"""`ttng` ops that copy blocks between global and shared memory by descriptor (TMA).

ttng.barrier_expect %bar, 8192, %true : ...
ttng.async_tma_copy_global_to_local %desc[%i, %j] %buffer, %bar, %true : DESC, BAR -> BUFFER     done at the barrier
ttng.async_tma_copy_local_to_global %desc[%i, %j] %buffer : DESC, BUFFER                       done at a store_wait
ttng.async_tma_store_wait {pendings = 0 : i32}
"""

from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, operand_def, prop_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import (
    DESCRIPTOR,
    I1,
    I1_PROPERTY,
    I32,
    I32_PROPERTY,
    I32_TENSOR,
    default_prop,
    enum_property,
)
from tilework.ir.declare import Op
from tilework.ir.encodings import encoding_of
from tilework.ir.enums import DescriptorReduceKind
from tilework.ir.tt.descriptor_ops import block_type, is_block, verify_rows
from tilework.ir.tt.memory_ops import cache_prop, evict_prop
from tilework.ir.ttg.memdesc_types import BARRIER, MEMDESC, MemDescType
from tilework.ir.ttg.shared_memory_ops import require_mutable
from tilework.ir.ttng.barrier_ops import verify_barrier
from tilework.ir.types import tensor_type
from tilework.layouts.encodings import NvmmaShared

MAX_COORDINATES = 5


def verify_memory(op: IRDLOperation, memory: Attribute) -> None:
    """What a load writes is laid out by TMA's own swizzle; Triton asks nothing of the other copies."""
    if op.name == "ttng.async_tma_copy_global_to_local" and not isinstance(encoding_of(memory), NvmmaShared):
        raise VerifyException(f"TMA result must have NVMMA shared layout: {memory}")


def verify_block(op: IRDLOperation, descriptor: Attribute, coordinates: int, memory: Attribute) -> None:
    """A block of the descriptor, and a number for each dimension."""
    assert isinstance(memory, MemDescType)
    if not 1 <= coordinates <= MAX_COORDINATES:
        raise VerifyException(f"TMA copies must have between 1 and 5 coordinates, but got {coordinates}")
    verify_memory(op, memory)
    if not is_block(descriptor, memory.dims, memory.element_type):
        raise VerifyException(f"{op.name} on blocks of {block_type(descriptor)} does not fit {memory}")


class AsyncTMACopyGlobalToLocalOp(Op):
    """Start copying a block to shared memory; its bytes are counted by the barrier.

    ``ttng.async_tma_copy_global_to_local %d[%i, %j] %m, %b, %p cacheModifier = ca : DESC, BARRIER -> MEMORY``
    """

    name = "ttng.async_tma_copy_global_to_local"
    desc = operand_def(DESCRIPTOR)
    coord = var_operand_def(I32)
    barrier = operand_def(BARRIER)
    dst = operand_def(MEMDESC)
    pred = operand_def(I1)
    cache = cache_prop()
    evict = evict_prop()
    is_volatile = default_prop(I1_PROPERTY, False, "isVolatile")
    form = (
        "$desc[$coord] $dst, $barrier, $pred(? cacheModifier = $cache)(? evictionPolicy = $evict) {} : "
        "type($desc), type($barrier) -> type($dst)"
    )

    def verify_(self) -> None:
        verify_barrier(self.barrier.type)
        require_mutable("Cannot store into immutable memory", self.dst.type)
        verify_block(self, self.desc.type, len(self.coord), self.dst.type)


class AsyncTMACopyLocalToGlobalOp(Op):
    """Start copying shared memory to a block: ``ttng.async_tma_copy_local_to_global %d[%i, %j] %m : DESC, MEMORY``."""

    name = "ttng.async_tma_copy_local_to_global"
    desc = operand_def(DESCRIPTOR)
    coord = var_operand_def(I32)
    src = operand_def(MEMDESC)
    form = "$desc[$coord] $src {} : type($desc), type($src)"

    def verify_(self) -> None:
        verify_block(self, self.desc.type, len(self.coord), self.src.type)


class AsyncTMAReduceOp(Op):
    """Start combining a block with shared memory: ``ttng.async_tma_reduce add, %d[%i, %j] %m : DESC, MEMORY``."""

    name = "ttng.async_tma_reduce"
    kind = prop_def(enum_property(DescriptorReduceKind))
    desc = operand_def(DESCRIPTOR)
    coord = var_operand_def(I32)
    src = operand_def(MEMDESC)
    form = "$kind, $desc[$coord] $src {} : type($desc), type($src)"

    def verify_(self) -> None:
        verify_block(self, self.desc.type, len(self.coord), self.src.type)


def contents(memory: Attribute) -> Attribute:
    """The tensor that the memory holds."""
    assert isinstance(memory, MemDescType)
    return tensor_type(memory.dims, memory.element_type)


class AsyncTMAGatherOp(Op):
    """Start copying rows to shared memory: ``ttng.async_tma_gather %d[%x, %y] %m, %b, %p : ...``."""

    name = "ttng.async_tma_gather"
    desc = operand_def(DESCRIPTOR)
    x_offsets = operand_def(I32_TENSOR)
    y_offset = operand_def(I32)
    barrier = operand_def(BARRIER)
    dst = operand_def(MEMDESC)
    pred = operand_def(I1)
    form = "$desc[$x_offsets, $y_offset] $dst, $barrier, $pred {} : type($operands)"

    def verify_(self) -> None:
        verify_barrier(self.barrier.type)
        require_mutable("cannot store into immutable memory", self.dst.type)
        verify_rows(self, self.desc.type, self.x_offsets.type, contents(self.dst.type))


class AsyncTMAScatterOp(Op):
    """Start copying shared memory to rows: ``ttng.async_tma_scatter %d[%x, %y] %m : ...``."""

    name = "ttng.async_tma_scatter"
    desc = operand_def(DESCRIPTOR)
    x_offsets = operand_def(I32_TENSOR)
    y_offset = operand_def(I32)
    src = operand_def(MEMDESC)
    form = "$desc[$x_offsets, $y_offset] $src {} : type($operands)"

    def verify_(self) -> None:
        verify_rows(self, self.desc.type, self.x_offsets.type, contents(self.src.type))


class AsyncTMAStoreWaitOp(Op):
    """Wait until at most `pendings` copies to global memory still read: ``ttng.async_tma_store_wait {pendings = 0 : i32}``."""

    name = "ttng.async_tma_store_wait"
    pendings = prop_def(I32_PROPERTY)
    form = "{}"
