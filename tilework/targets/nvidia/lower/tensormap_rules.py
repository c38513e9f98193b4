"""Tensor descriptors: tensor maps of 128 bytes that kernels take as parameters or create.

A host descriptor is passed by value; the launcher encodes it from metadata of the compiler:

    describe(type)      # {"swizzle": 3, "elem_size": 2, "elem_type": 6, "block_size": [64, 64], "fp4_padded": false}

A kernel creates one in shared memory, field by field, and the first warp copies it to global memory:

    st.shared.b32 [%s + 4 * lane], 0;                                          # no field has an old value
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%s], %base;   # one thread; rank, sizes, strides ...
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%slot], [%s], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%slot], 128;                   # every thread, before copies use it

A stride that no tensor map can have (not a multiple of 16 bytes, negative, or at least 2^40 bytes) traps. The value of
a descriptor is the generic address of its map.
"""

from functools import reduce
from typing import Any

from xdsl.ir import Attribute, Operation

from tilework.ir import ttng
from tilework.ir.encodings import encoding_of
from tilework.ir.types import TensorDescType, array_values, bit_width, element_type, int_property
from tilework.layouts.encodings import NvmmaShared
from tilework.target import LARGEST_MAP_STRIDE, MAP_ALIGNMENT
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.llvm.types import i32, i64, ptr
from tilework.targets.llvm.values import Value, constant
from tilework.targets.nvidia.lower import lowers
from tilework.targets.nvidia.lower.inline_ptx import ptx, shared_address
from tilework.transforms.building.tma import SWIZZLE_MODES, box_shape, element_kind

MAP_BYTES = 128
WORD_BYTES = 4


def describe(type: Attribute, rows: int | None = None) -> dict[str, Any]:
    """Return the metadata from which the launcher encodes the map of a host descriptor; sizes outermost first."""
    assert isinstance(type, TensorDescType)
    block = type.block
    encoding = encoding_of(block)
    laid_out = encoding if isinstance(encoding, NvmmaShared) else None
    return {
        "swizzle": SWIZZLE_MODES[laid_out.swizzling_byte_width if laid_out else 0],
        "elem_size": bit_width(block) // 8,
        "elem_type": element_kind(element_type(block)),
        "block_size": list(box_shape(block, rows)),
        "fp4_padded": laid_out is not None and laid_out.fp4_padded,
    }


@lowers(ttng.TensormapCreateOp)
def lower_create(low: Lowering, op: Operation) -> None:
    """Create a map. The barrier at the end frees the op's scratch memory, and lets all threads acquire the map."""
    b = low.builder
    slot, memory = low.scalar(op.operands[0]), low.scratch_address(op)
    map = shared_address(b, memory)
    with low.only_if(b.icmp("eq", low.warp, 0)):
        b.store(constant(i32, 0), b.gep(memory, b.mul(low.lane, WORD_BYTES)), align=WORD_BYTES)
        low.warp_barrier()
        with low.only_if(b.icmp("eq", low.lane, 0)):
            write_fields(low, op, map)
        low.warp_barrier()
        text = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
        ptx(b, f"{text} [$0], [$1], {MAP_BYTES};", [], [slot, map], effect="write", convergent=True)
    low.barrier()


def write_fields(low: Lowering, op: Operation, map: Value) -> None:
    """Write all fields of a map, the contiguous dimension first; the rank field is rank - 1."""
    values = [low.scalar(operand) for operand in op.operands]
    first, groups = 0, []
    for size in array_values(op.properties["operandSegmentSizes"]):
        groups.append(values[first : first + size])
        first += size
    _, (base,), box, sizes, strides, steps = groups

    def replace(field: str, width: int, text: str, *inputs: Value) -> None:
        line = f"tensormap.replace.tile.{field}.shared::cta.b1024.b{width} [$0], {text};"
        ptx(low.builder, line, [], [map, *inputs], effect="write")

    replace("global_address", 64, "$1", base)
    replace("rank", 32, str(len(box) - 1))
    for field, width, values in (
        ("box_dim", 32, box), ("global_dim", 32, sizes), ("global_stride", 64, strides), ("element_stride", 32, steps),
    ):  # fmt: skip
        for dim, value in enumerate(values):
            replace(field, width, f"{dim}, $1", value)
    replace("elemtype", 32, str(int_property(op, "elem_type", 0)))
    for field in ("interleave_layout", "swizzle_mode", "fill_mode"):
        replace(field, 32, str(int_property(op, field, 0)))
    stop_at_impossible(low, sizes[1:], strides)


def stop_at_impossible(low: Lowering, sizes: list[Value], strides: list[Value]) -> None:
    """Trap on invalid strides: the hardware checks bases and sizes when a copy uses them, but not strides.

    The stride of a dimension of size 1 is unused.
    """
    b = low.builder
    pairs = zip(sizes, strides, strict=True)
    used = reduce(b.or_, [b.select(b.icmp("sgt", size, 1), stride, 0) for size, stride in pairs], constant(i64, 0))
    wrong = b.or_(b.and_(used, MAP_ALIGNMENT - 1), b.lshr(used, LARGEST_MAP_STRIDE.bit_length() - 1))
    if wrong.constant != 0:
        text = "{ .reg .pred wrong; setp.ne.b64 wrong, $0, 0; @wrong trap; }"
        ptx(b, text, [], [wrong], effect="write")


@lowers(ttng.TensormapFenceproxyAcquireOp)
def lower_acquire(low: Lowering, op: Operation) -> None:
    """Acquire a map; the wait for an empty group keeps ptxas from hoisting copies above the fence."""
    text = f"fence.proxy.tensormap::generic.acquire.gpu [$0], {MAP_BYTES}; "
    text += "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;"
    ptx(low.builder, text, [], [low.scalar(op.operands[0])], effect="write")


@lowers(ttng.ReinterpretTensorDescOp)
def lower_reinterpret(low: Lowering, op: Operation) -> Registers:
    return (low.builder.addrspacecast(low.scalar(op.operands[0]), ptr),)
