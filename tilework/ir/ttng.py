"""The `ttng` dialect: warp-group dots, mbarriers, fences, clusters and TMA, which NVIDIA GPUs have from Hopper on.

A barrier is an i64 in shared memory. A phase of it ends after as many arrivals as the barrier was initialised with, and
after all bytes that it expects have been written:

    ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttng.barrier_expect %b, 8192, %true : ...           an arrival, and 8192 bytes to come
    ttng.wait_barrier %b, %phase : ...                  until the phase with this parity has ended

A TMA descriptor is 128 bytes in global memory that describe the blocks of an array; copies between global and shared
memory go through one:

    ttng.tensormap_create %p, %base, [%box0, %box1], [%dim0, %dim1], [%stride], [%step0, %step1] {...} : (...) -> ()
    ttng.tensormap_fenceproxy_acquire %p : !tt.ptr<i8>
    %d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<tensor<64x64xf16, #shared>>

    ttng.barrier_expect %bar, 8192, %true : ...
    ttng.async_tma_copy_global_to_local %desc[%i, %j] %buffer, %bar, %true : DESC, BAR -> BUFFER    done at the barrier
    ttng.async_tma_copy_local_to_global %desc[%i, %j] %buffer : DESC, BUFFER                      done at a store_wait
    ttng.async_tma_store_wait {pendings = 0 : i32}
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import (
    DESCRIPTOR,
    I1,
    I1_PROPERTY,
    I16,
    I32,
    I32_PROPERTY,
    I32_TENSOR,
    I64,
    POINTER,
    TENSOR,
    Kind,
    TensorSize,
    enum_property,
    is_plain_tensor,
    names,
)
from tilework.ir.declare import Op, dialect_ops
from tilework.ir.effects import register
from tilework.ir.encodings import encoding_of
from tilework.ir.enums import DescriptorReduceKind, InputPrecision
from tilework.ir.fields import (
    default_prop,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from tilework.ir.module_facts import num_ctas
from tilework.ir.tt.memory_ops import block_type, cache_prop, evict_prop, is_block, verify_contents, verify_rows
from tilework.ir.tt.reduce_ops import verify_dot_shapes
from tilework.ir.ttg.memory_types import BARRIER, MEMDESC, MemDescType, is_memdesc
from tilework.ir.ttg.shared_memory_ops import require_mutable
from tilework.ir.types import (
    bit_width,
    element_type,
    f32,
    i1,
    i32,
    int_attr,
    is_float,
    read_block,
    shape_of,
    tensor_type,
)
from tilework.layouts.encodings import DotOperand, NvidiaMma, NvmmaShared, SharedLinear


class OnBarrier(Op):
    """An op on the barrier of each block of the cluster (``2xi64`` for two blocks), or on fewer, which blocks share."""

    SEES_MODULE = True

    def verify_(self) -> None:
        type = next(value.type for value in self.operands if BARRIER.accepts(value.type))
        if len(shape := shape_of(type)) != 1 or shape[0] > num_ctas(self):
            raise VerifyException(
                f"barrier allocation must be a descriptor of Nxi64 type with N <= number of CTAs, but got {type}"
            )


class OfCluster(Op):
    """An op that only the blocks of a cluster need."""

    SEES_MODULE = True
    form = "{}"

    def verify_(self) -> None:
        if num_ctas(self) < 2:
            raise VerifyException("requires ttg.num-ctas > 1")


class InitBarrierOp(OnBarrier):
    """Make a barrier that waits for `count` arrivals: ``ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, ...>``."""

    name = "ttng.init_barrier"
    alloc = operand_def(BARRIER)
    count = prop_def(I32_PROPERTY)
    form = "$alloc, $count {} : type($alloc)"


class InvalBarrierOp(OnBarrier):
    """The memory of the barrier may be used for something else: ``ttng.inval_barrier %b : !ttg.memdesc<1xi64,
    ...>``."""

    name = "ttng.inval_barrier"
    alloc = operand_def(BARRIER)
    form = "$alloc {} : type($alloc)"


class BarrierExpectOp(OnBarrier):
    """Arrive, and expect bytes of asynchronous copies: ``ttng.barrier_expect %b, 8192, %p : !ttg.memdesc<1xi64,
    ...>``."""

    name = "ttng.barrier_expect"
    alloc = operand_def(BARRIER)
    size = prop_def(I32_PROPERTY)
    pred = operand_def(I1)
    form = "$alloc, $size {}, $pred : type($alloc)"


class ArriveBarrierOp(OnBarrier):
    """Arrive `count` times: ``ttng.arrive_barrier %b, 2, %p : !ttg.memdesc<1xi64, ...>``."""

    name = "ttng.arrive_barrier"
    alloc = operand_def(BARRIER)
    count = prop_def(I32_PROPERTY)
    pred = opt_operand_def(I1)
    form = "$alloc, $count(?, $pred) {} : type($alloc)"

    def verify_(self) -> None:
        super().verify_()
        if (count := self.count.value.data) < 1:
            raise VerifyException(f"count must be greater than or equal to 1, but got {count}")


class WaitBarrierOp(OnBarrier):
    """Wait for a phase to end: ``ttng.wait_barrier %b, %phase, %p deps %m : !ttg.memdesc<1xi64, ...>, T``.

    `deps` is the memory that the barrier guards: it is in use until here.
    """

    name = "ttng.wait_barrier"
    alloc = operand_def(BARRIER)
    phase = operand_def(I32)
    pred = opt_operand_def(I1)
    deps = var_operand_def(MEMDESC)
    form = "$alloc, $phase(?, $pred)(? deps $deps) {} : type($alloc)(?, type($deps))"


class AsyncCopyMbarrierArriveOp(OnBarrier):
    """Arrive when the copies of this thread are done: ``ttng.async_copy_mbarrier_arrive %b {noIncrement} : T``."""

    name = "ttng.async_copy_mbarrier_arrive"
    barrier = operand_def(BARRIER)
    no_increment = opt_prop_def(UnitAttr, prop_name="noIncrement")
    form = "$barrier {} : type($barrier)"


class FenceAsyncSharedOp(Op):
    """Writes of threads are seen by TMA and tensor cores: ``ttng.fence_async_shared {bCluster = false}``."""

    name = "ttng.fence_async_shared"
    b_cluster = prop_def(I1_PROPERTY, prop_name="bCluster")
    form = "{}"


class PingPongWaitOp(Op):
    """Wait until the other warp group executes `ttng.pingpong_signal`: ``ttng.pingpong_wait %barriers, %phase : T``.

    Two warp groups, the eight warps of a region, run in ping-pong order; each has one of the two `barriers`. The first
    group starts. `phase` alternates between 0 and 1.
    """

    name = "ttng.pingpong_wait"
    barriers = operand_def(BARRIER)
    phase = operand_def(I32)
    form = "$barriers, $phase {} : type($barriers)"


class PingPongSignalOp(Op):
    """Release the other warp group from `pingpong_wait`, without waiting: ``ttng.pingpong_signal %barriers : T``."""

    name = "ttng.pingpong_signal"
    barriers = operand_def(BARRIER)
    form = "$barriers {} : type($barriers)"


class ClusterArriveOp(OfCluster):
    """Signal that this thread has reached the barrier of the cluster: ``ttng.cluster_arrive {relaxed = false}``."""

    name = "ttng.cluster_arrive"
    relaxed = prop_def(I1_PROPERTY)


class ClusterWaitOp(OfCluster):
    """Wait until all threads of the cluster have arrived: ``ttng.cluster_wait``."""

    name = "ttng.cluster_wait"


class FenceMbarrierInitReleaseClusterOp(OfCluster):
    """Barriers that this block has initialised may be used by the other blocks of the cluster, once they know of it:
    ``ttng.fence_mbarrier_init_release_cluster``."""

    name = "ttng.fence_mbarrier_init_release_cluster"


# The largest value of each property.
TENSORMAP_LIMITS = {"elem_type": 15, "interleave_layout": 2, "swizzle_mode": 3, "fill_mode": 1}


class TensormapCreateOp(Op):
    """Write a TMA descriptor of 128 bytes.

    ``ttng.tensormap_create %d, %base, [%box], [%dims], [%strides], [%steps] {elem_type = 3 : i32, ...} : (...) -> ()``
    """

    name = "ttng.tensormap_create"
    desc_ptr = operand_def(POINTER)
    global_address = operand_def(POINTER)
    box_dim = var_operand_def(I32)
    global_dim = var_operand_def(I32)
    global_stride = var_operand_def(I64)
    element_stride = var_operand_def(I32)
    elem_type = prop_def(I32_PROPERTY)
    interleave_layout = prop_def(I32_PROPERTY)
    swizzle_mode = prop_def(I32_PROPERTY)
    fill_mode = prop_def(I32_PROPERTY)
    form = "$desc_ptr, $global_address, [$box_dim], [$global_dim], [$global_stride], [$element_stride] {} : signature"

    def verify_(self) -> None:
        rank = len(self.box_dim)
        if rank == 0:
            raise VerifyException("a tensormap has at least one dimension")
        for name, group in (("global dim", self.global_dim), ("element stride", self.element_stride)):
            if len(group) != rank:
                raise VerifyException(f"Rank mismatch for {name}. Got {len(group)} but expected {rank}")
        if len(self.global_stride) != rank - 1:
            raise VerifyException(
                f"Rank mismatch for global stride. Got {len(self.global_stride)} but expected {rank - 1}"
            )
        for name, limit in TENSORMAP_LIMITS.items():
            value: IntegerAttr = getattr(self, name)
            if not 0 <= value.value.data <= limit:
                raise VerifyException(f"{name} must be between 0 and {limit}, but got {value.value.data}")


class TensormapFenceproxyAcquireOp(Op):
    """A descriptor that was just written may be used by TMA: ``ttng.tensormap_fenceproxy_acquire %d : !tt.ptr<i8>``."""

    name = "ttng.tensormap_fenceproxy_acquire"
    desc_ptr = operand_def(POINTER)
    form = "$desc_ptr {} : type($desc_ptr)"


class ReinterpretTensorDescOp(Op):
    """Memory that holds a descriptor: ``%d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to
    !tt.tensordesc<...>``."""

    name = "ttng.reinterpret_tensor_descriptor"
    raw_desc = operand_def(POINTER)
    result = result_def(DESCRIPTOR)
    form = "$raw_desc {} : type($raw_desc) to type($result)"
    traits = traits_def(Pure())


@irdl_attr_definition
class TensorDescIm2ColType(ParametrizedAttribute, TypeAttribute):
    """A view of a global array of 3 to 5 dimensions, read in blocks of pixels and channels as a convolution does:
    ``!ttng.tensordesc_im2col<tensor<64x64xf16, #shared>>``."""

    name = "ttng.tensordesc_im2col"
    block: Attribute

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return (read_block(parser),)

    def verify(self) -> None:
        if not isinstance(self.block, TensorType):
            raise VerifyException(f"a tensor descriptor is of a ranked tensor, not of {self.block}")
        if (rank := len(shape_of(self.block))) != 2:
            raise VerifyException(f"TensorDescIm2ColType requires rank-2 blockType, got rank {rank}")


LOAD_DESCRIPTOR = Kind(
    "a tensor descriptor", lambda type: isinstance(type, TensorDescIm2ColType) or DESCRIPTOR.accepts(type)
)
MAX_COORDINATES = 5


def verify_memory(op: Operation, memory: Attribute) -> None:
    """Check that the destination of a load has TMA's own swizzle; Triton checks nothing for the other copies."""
    if op.name == "ttng.async_tma_copy_global_to_local" and not isinstance(encoding_of(memory), NvmmaShared):
        raise VerifyException(f"TMA result must have NVMMA shared layout: {memory}")


def verify_block(op: Operation, descriptor: Attribute, coordinates: int, memory: Attribute) -> None:
    """Check the type of a block of the descriptor, and that there is one index per dimension."""
    assert isinstance(memory, MemDescType)
    if not 1 <= coordinates <= MAX_COORDINATES:
        raise VerifyException(f"TMA copies must have between 1 and 5 coordinates, but got {coordinates}")
    verify_memory(op, memory)
    verify_contents(block_type(descriptor), memory.dims, memory.element_type)
    if not is_block(descriptor, memory.dims, memory.element_type):
        raise VerifyException(f"{op.name} on blocks of {block_type(descriptor)} does not fit {memory}")


def verify_window(descriptor: Attribute, coordinates: int, offsets: int) -> None:
    """Check the offsets of a copy: only im2col descriptors have them, one for each dimension except images and
    channels."""
    if not isinstance(descriptor, TensorDescIm2ColType):
        if offsets:
            raise VerifyException("TILED mode does not support offsets")
        return
    if coordinates < 3:
        raise VerifyException(f"IM2COL mode requires at least 3D coordinates, but got {coordinates}D")
    if not offsets:
        raise VerifyException("IM2COL mode requires offsets to be provided")
    if offsets != coordinates - 2:
        raise VerifyException(
            f"IM2COL mode with {coordinates}D coordinates requires {coordinates - 2} offsets, but got {offsets}"
        )


class AsyncTMACopyGlobalToLocalOp(OnBarrier):
    """Start copying a block to shared memory; its bytes are counted by the barrier.

    ``ttng.async_tma_copy_global_to_local %d[%i, %j] %m, %b, %p cacheModifier = ca : DESC, BARRIER -> MEMORY``

    With `multicast` one block of a cluster copies for all that have the same part. Copies by an im2col descriptor have
    an offset for each dimension of the window: ``%d[%n, %h, %w, %c] offsets = [%y, %x] %m, ...``.
    """

    name = "ttng.async_tma_copy_global_to_local"
    desc = operand_def(LOAD_DESCRIPTOR)
    coord = var_operand_def(I32)
    offsets = var_operand_def(I16)
    barrier = operand_def(BARRIER)
    dst = operand_def(MEMDESC)
    pred = operand_def(I1)
    cache = cache_prop()
    evict = evict_prop()
    is_volatile = default_prop(I1_PROPERTY, False, "isVolatile")
    multicast = opt_prop_def(UnitAttr)
    form = (
        "$desc[$coord](? offsets = [$offsets]) $dst, $barrier, $pred(? cacheModifier = $cache)"
        "(? evictionPolicy = $evict) {} : type($desc), type($barrier) -> type($dst)"
    )

    def verify_(self) -> None:
        super().verify_()
        require_mutable("Cannot store into immutable memory", self.dst.type)
        verify_window(self.desc.type, len(self.coord), len(self.offsets))
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


class AsyncTMAGatherOp(OnBarrier):
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
        super().verify_()
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
    """Wait until at most `pendings` copies to global memory still read: ``ttng.async_tma_store_wait {pendings = 0 :
    i32}``."""

    name = "ttng.async_tma_store_wait"
    pendings = prop_def(I32_PROPERTY)
    form = "{}"


TENSOR_OR_MEMDESC = Kind("a tensor or a memory descriptor", lambda type: is_plain_tensor(type) or is_memdesc(type))


class WarpGroupDotOp(Op):
    """``d = a @ b + c`` by groups of four warps, with b, and mostly a, in shared memory.

    ``%d = ttng.warp_group_dot %a, %b, %c, %use {inputPrecision = 0 : i32, isAsync = true} : A * B -> D``

    Where `use` is false, c counts as 0. An asynchronous one is done at a `ttng.warp_group_dot_wait`.
    """

    name = "ttng.warp_group_dot"
    a = operand_def(TENSOR_OR_MEMDESC)
    b = operand_def(MEMDESC)
    c = operand_def(TENSOR)
    use_c = opt_operand_def(I1)
    input_precision = prop_def(
        enum_property(InputPrecision), default_value=int_attr(InputPrecision.IEEE, i32), prop_name="inputPrecision"
    )
    max_num_imprecise_acc = prop_def(I32_PROPERTY, default_value=int_attr(0, i32), prop_name="maxNumImpreciseAcc")
    is_async = prop_def(I1_PROPERTY, default_value=int_attr(0, i1), prop_name="isAsync")
    d = result_def(TENSOR)
    form = "$operands {} : type($a) * type($b) -> type($d)"
    infer = {"d": "c"}
    traits = traits_def(MemoryReadEffect(), TensorSize())

    def verify_(self) -> None:
        a, b, d = self.a.type, self.b.type, self.d.type
        if self.c.type != d:
            raise VerifyException(f"ttng.warp_group_dot with an accumulator of {self.c.type} cannot give {d}")
        verify_dot_shapes(self, shape_of(a), shape_of(b), shape_of(d))
        mma = encoding_of(d)
        if not isinstance(mma, NvidiaMma) or not mma.is_hopper:
            raise VerifyException(f"WGMMA result layout must be Hopper NVMMA: {d}")
        verify_tile(mma, d)
        verify_factors(a, b, mma)
        verify_imprecise(a, d, self.max_num_imprecise_acc.value.data)


def verify_tile(mma: NvidiaMma, d: Attribute) -> None:
    """The instruction works on 64 rows and multiples of 8 columns, with warps in groups of four."""
    splits = [1 << sum(bool(basis[dim]) for basis in mma.cga) for dim in range(mma.rank)]
    *_, rows, columns = (size // split for size, split in zip(shape_of(d), splits, strict=True))
    if rows % 64:
        raise VerifyException(f"WGMMA result M dimension must be divisible by 64: {rows}")
    if columns % 8:
        raise VerifyException(f"WGMMA result N dimension must be divisible by 8: {columns}")
    if mma.warps_per_cta[0] % 4:
        raise VerifyException(
            f"Cannot use warp_group_dot when the warps per group are not 4: {list(mma.warps_per_cta)}"
        )


def verify_factors(a: Attribute, b: Attribute, mma: NvidiaMma) -> None:
    """Matrices in shared memory are as the tensor cores read them; A in registers is an operand of the result."""
    if is_memdesc(a) and not isinstance(encoding_of(a), NvmmaShared | SharedLinear):
        raise VerifyException(f"WGMMA A operand must have NVMMA shared or dot layout: {a}")
    if not isinstance(encoding_of(b), NvmmaShared | SharedLinear):
        raise VerifyException(f"WGMMA B operand must have NVMMA shared layout: {b}")
    if is_memdesc(a):
        return
    encoding = encoding_of(a)
    if not isinstance(encoding, DotOperand):
        raise VerifyException(f"WGMMA A operand must have NVMMA shared or dot layout: {a}")
    if encoding.parent != mma:
        raise VerifyException(f"WGMMA A operand must be an operand of the result's layout: {a}")
    if encoding.k_width != (width := 32 // bit_width(a)):
        raise VerifyException(f"in-register LHS operand must have a kWidth of {width} but got {encoding.k_width}")


def verify_imprecise(a: Attribute, d: Attribute, limit: int) -> None:
    """The tensor cores add 8-bit floats with few bits: how often before the sum goes to f32 must be said."""
    element = getattr(a, "element_type", None)
    if element is not None and is_float(element) and bit_width(a) == 8 and element_type(d) == f32 and limit < 32:
        raise VerifyException(
            "Cannot use F32 as the accumulator element type when the max_num_imprecise_acc is less than 32: "
            f"it is {limit}, the operands are {a}"
        )


class WarpGroupDotWaitOp(Op):
    """Wait until at most `pendings` asynchronous dots are under way; the operands are passed on.

    ``%d:2 = ttng.warp_group_dot_wait %a, %b {pendings = 1 : i32} : A, B``
    """

    name = "ttng.warp_group_dot_wait"
    inputs = var_operand_def(TENSOR_OR_MEMDESC)
    pendings = prop_def(I32_PROPERTY)
    outputs = var_result_def(TENSOR_OR_MEMDESC)
    form = "$inputs {} : type($inputs)"
    infer = {"outputs": "inputs"}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        if not self.inputs:
            raise VerifyException("expected to be waiting on at least one dependency")
        if (given := [v.type for v in self.inputs]) != (found := [v.type for v in self.outputs]):
            raise VerifyException(f"ttng.warp_group_dot_wait of {names(given)} cannot give {names(found)}")


TTNG = Dialect("ttng", dialect_ops("ttng"), [TensorDescIm2ColType])
register(TTNG)
