"""Build TMA copies, and lower `tt.make_tensor_descriptor` to the 128-byte tensor map that they read.

    %d = tt.make_tensor_descriptor %p, [%m, %n], [%s, 1]

    ttng.tensormap_create %slot, %p, [box], [%n, %m], [2 * %s], [1, 1]
    ttng.tensormap_fenceproxy_acquire %slot
    %d = ttng.reinterpret_tensor_descriptor %slot

TMA counts dimensions from the contiguous one, and strides in bytes, without that of the contiguous dimension, which is
1. A box is what one instruction copies: at most 256 in each dimension, and one row of the swizzle in the contiguous
one.
"""

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType, Signedness
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.errors import PassError
from tilework.ir import arith, tt, ttng
from tilework.ir.create import create_op
from tilework.ir.encodings import encoding_of, shared_of
from tilework.ir.enums import PaddingOption
from tilework.ir.rewrite import constant_value
from tilework.ir.types import TensorDescType, bit_width, element_type, i32, i64, int_property, shape_of
from tilework.layouts.encodings import NvmmaShared
from tilework.layouts.to_linear import shape_per_cta
from tilework.target import refused_stride
from tilework.transforms.building.emitter import Emitter

TENSORMAP_BYTES = 128
MAX_BOX = 256
SWIZZLE_MODES = {0: 0, 32: 1, 64: 2, 128: 3}
FLOAT_KINDS: dict[type[Attribute], int] = {Float16Type: 6, Float32Type: 7, Float64Type: 9, BFloat16Type: 10}
UNSIGNED_KINDS = {8: 0, 16: 1, 32: 2, 64: 4}
SIGNED_KINDS = {8: 0, 16: 1, 32: 3, 64: 5}


def element_kind(element: Attribute) -> int:
    """The code of an element type in a tensor map; 8-bit floats are bytes to TMA."""
    if (kind := FLOAT_KINDS.get(type(element))) is not None:
        return kind
    if isinstance(element, IntegerType) and element.signedness.data == Signedness.SIGNED:
        return SIGNED_KINDS[element.width.data]
    return UNSIGNED_KINDS[bit_width(element)]


def box_shape(block: Attribute, rows: int | None = None) -> tuple[int, ...]:
    """The shape that one instruction copies of a block, with at most `rows` rows."""
    encoding = encoding_of(block)
    shape = shape_of(block)
    if not isinstance(encoding, NvmmaShared):  # only its rows are swizzled by the hardware, and bound a box
        return tuple(min(size, MAX_BOX) for size in shape)
    box = [min(size, MAX_BOX) for size in shape_per_cta(encoding, shape)]
    if encoding.swizzling_byte_width:
        contiguous = 0 if encoding.transposed else len(box) - 1
        box[contiguous] = min(box[contiguous], encoding.swizzling_byte_width * 8 // bit_width(block))
    if rows is not None:
        box[0] = min(box[0], rows)
    return tuple(box)


def write_tensormap(code: Emitter, make: Operation, slot: SSAValue) -> SSAValue:
    """Write the tensor map that `make` describes to the memory at `slot`, and return the descriptor."""
    assert isinstance(make, tt.MakeTensorDescOp)
    descriptor = make.result.type
    assert isinstance(descriptor, TensorDescType)
    block = descriptor.block
    encoding = shared_of(block)
    swizzle = 0 if encoding is None else encoding.swizzle
    refuse_impossible(make, bit_width(block) // 8)
    box = [code.constant(size, i32) for size in reversed(box_shape(block))]
    strides = list(reversed(tuple(make.strides)[:-1]))
    if strides and (size := bit_width(block) // 8) > 1:
        width = code.constant(size, i64)
        strides = [code.binary(arith.MuliOp, stride, width) for stride in strides]
    one = code.constant(1, i32)
    fill = int(int_property(make, "padding") == PaddingOption.NAN)
    sizes = tuple(reversed(tuple(make.shape)))
    kind = element_kind(element_type(block))
    code.ops.append(
        ttng.TensormapCreateOp.make(
            slot, make.base, box, sizes, strides, [one] * len(box), kind, 0, SWIZZLE_MODES[swizzle], fill, code.loc
        )
    )
    code.ops.append(ttng.TensormapFenceproxyAcquireOp.make(slot, code.loc))
    return code.append(ttng.ReinterpretTensorDescOp.make(slot, descriptor, code.loc))


def refuse_impossible(make: tt.MakeTensorDescOp, itemsize: int) -> None:
    """Raise an error for constants that no tensor map can have; the stride of a single row is never used."""
    sizes, strides = map(constant_value, make.shape), map(constant_value, make.strides)
    for axis, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        if size is not None and size < 0:
            raise PassError(f"shape must not be negative, axis {axis} has {size} elements", make.location)
        is_used = axis < len(make.strides) - 1 and (size is None or size > 1)
        if is_used and isinstance(stride, int) and (refusal := refused_stride(axis, stride, itemsize)):
            raise PassError(refusal, make.location)


# The asynchronous copies that loads and stores by descriptor become.

LOADS = (tt.DescriptorLoadOp, tt.DescriptorGatherOp)
STORES = (tt.DescriptorStoreOp, tt.DescriptorReduceOp, tt.DescriptorScatterOp)


def start_load(load: Operation, target: SSAValue, barrier: SSAValue, always: SSAValue) -> Operation:
    """The copy of a block, or of rows of one, to shared memory."""
    desc, *offsets = load.operands
    if type(load) is tt.DescriptorGatherOp:
        return ttng.AsyncTMAGatherOp.make(desc, offsets[0], offsets[1], barrier, target, always, load.location)
    return ttng.AsyncTMACopyGlobalToLocalOp.make(desc, offsets, (), barrier, target, always, load.location)


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
