"""`amdg` and `rocdl`: what TTGIR for AMD GPUs has beside `ttg`.

    %x = amdg.buffer_load %p[%offsets], %mask, %other : tensor<64x32xf16, #blocked>     offsets from a scalar pointer
    amdg.buffer_store %v, %p[%offsets], %mask : tensor<64x64xf16, #mma>
    %t = amdg.buffer_load_to_local %p[%offsets] into %buffer {contiguity = 8 : i32} : <f16>[...]  -> <...>
    %y = amdg.in_thread_transpose %x : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #linear>     registers move
    amdg.cond_barrier %p                                                                warps where %p holds wait

Types that the text leaves out follow from the tensor. `stride` is a hint for caches; `contiguity` is the number of
neighbouring elements that a thread may access at once, because their addresses are contiguous and aligned and their
mask is the same.
"""

from functools import cache
from math import prod

from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import (
    BOOL_LIKE,
    I1,
    I1_PROPERTY,
    I32,
    I32_ARRAY,
    I32_PROPERTY,
    I32_TENSOR,
    POINTER,
    PTR_LIKE,
    RUN_PROPERTY,
    TENSOR,
    SameElement,
    SameShape,
    TensorSize,
    enum_property,
)
from tilework.ir.declare import Op, dialect_ops
from tilework.ir.effects import register
from tilework.ir.encodings import distributed_of, dot_operand_of, layout_of, shared_of
from tilework.ir.enums import MemSemantic, MemSyncScope, RMWOp, ScaleDotElemType, SchedHint
from tilework.ir.fields import (
    CONVERSION,
    default_prop,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from tilework.ir.tt.memory_ops import cache_prop, evict_prop, loaded_type, mask_type, verify_mask
from tilework.ir.ttg.memory_types import MEMDESC, TOKEN
from tilework.ir.ttg.shared_memory_ops import copied_mask_type, require_mutable, verify_copy
from tilework.ir.types import (
    array_values,
    bf16,
    element_type,
    f8E4M3FN,
    f8E5M2,
    f16,
    f32,
    i8,
    i32,
    pointer_type,
    shape_of,
    with_element,
)
from tilework.layouts.linear import LinearLayout


@cache
def base_type(value: Attribute) -> Attribute:
    """The scalar pointer to elements like those of `value`."""
    return pointer_type(element_type(value))


@cache
def offsets_type(value: Attribute) -> Attribute:
    """An i32 for each element of `value`."""
    return with_element(value, i32)


ADDRESSING = {"ptr": (base_type, "result"), "offsets": (offsets_type, "result"), "mask": (mask_type, "result")}


def verify_access(op: Operation, ptr: SSAValue, offsets: SSAValue, mask: SSAValue | None, value: Attribute) -> None:
    """Pointer, offsets and mask of an access to elements like those of `value`."""
    if ptr.type != base_type(value):
        raise VerifyException(f"{op.name} of {value} needs the pointer {base_type(value)}, not {ptr.type}")
    if offsets.type != offsets_type(value):
        raise VerifyException(f"{op.name} of {value} needs the offsets {offsets_type(value)}, not {offsets.type}")
    verify_mask(op, mask, value)


class BufferLoadOp(Op):
    """Read elements at offsets from a pointer: ``%x = amdg.buffer_load %p[%o], %mask, %other cacheModifier = cg :
    tensor<...>``."""

    name = "amdg.buffer_load"
    ptr = operand_def(POINTER)
    offsets = operand_def(I32_TENSOR)
    stride = opt_operand_def(I32)
    cache = cache_prop()
    mask = opt_operand_def(BOOL_LIKE)
    other = opt_operand_def(TENSOR)
    contiguity = default_prop(RUN_PROPERTY, 1)
    result = result_def(TENSOR)
    form = "$ptr[$offsets](?, $mask)(?, $other)(? cacheModifier = $cache)(? stride = $stride) {} : type($result)"
    infer = {**ADDRESSING, "other": "result"}
    traits = traits_def(MemoryReadEffect(), TensorSize())

    def verify_(self) -> None:
        verify_access(self, self.ptr, self.offsets, self.mask, self.result.type)
        if self.other is not None and self.other.type != self.result.type:
            raise VerifyException(f"{self.name} of {self.result.type} cannot take {self.other.type} as other")


class BufferStoreOp(Op):
    """Write elements at offsets from a pointer: ``amdg.buffer_store %v, %p[%o], %mask : tensor<...>``."""

    name = "amdg.buffer_store"
    value = operand_def(TENSOR)
    ptr = operand_def(POINTER)
    offsets = operand_def(I32_TENSOR)
    stride = opt_operand_def(I32)
    cache = cache_prop()
    mask = opt_operand_def(BOOL_LIKE)
    contiguity = default_prop(RUN_PROPERTY, 1)
    form = "$value, $ptr[$offsets](?, $mask)(? cacheModifier = $cache)(? stride = $stride) {} : type($value)"
    infer = {name: (rule, "value") for name, (rule, _) in ADDRESSING.items()}
    traits = traits_def(MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        verify_access(self, self.ptr, self.offsets, self.mask, self.value.type)


class BufferAtomicRMWOp(Op):
    """Change elements at offsets from a pointer: ``%old = amdg.buffer_atomic_rmw add, acq_rel, gpu, %v, %p[%o], %mask :
    ...``."""

    name = "amdg.buffer_atomic_rmw"
    atomic_rmw_op = prop_def(enum_property(RMWOp))
    value = operand_def(TENSOR)
    ptr = operand_def(POINTER)
    offsets = operand_def(I32_TENSOR)
    stride = opt_operand_def(I32)
    sem = prop_def(enum_property(MemSemantic))
    scope = prop_def(enum_property(MemSyncScope))
    mask = opt_operand_def(BOOL_LIKE)
    result = result_def(TENSOR)
    form = "$atomic_rmw_op, $sem, $scope, $value, $ptr[$offsets](?, $mask)(? stride = $stride) {} : type($result)"
    infer = {**ADDRESSING, "value": "result"}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        verify_access(self, self.ptr, self.offsets, self.mask, self.result.type)


class BufferAtomicCASOp(Op):
    """Replace elements that equal `cmp`: ``%old = amdg.buffer_atomic_cas acq_rel, gpu, %cmp, %v, %p[%o] :
    tensor<...>``."""

    name = "amdg.buffer_atomic_cas"
    cmp = operand_def(TENSOR)
    val = operand_def(TENSOR)
    ptr = operand_def(POINTER)
    offsets = operand_def(I32_TENSOR)
    stride = opt_operand_def(I32)
    sem = prop_def(enum_property(MemSemantic))
    scope = prop_def(enum_property(MemSyncScope))
    result = result_def(TENSOR)
    form = "$sem, $scope, $cmp, $val, $ptr[$offsets](? stride = $stride) {} : type($result)"
    infer = {"ptr": ADDRESSING["ptr"], "offsets": ADDRESSING["offsets"], "cmp": "result", "val": "result"}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        verify_access(self, self.ptr, self.offsets, None, self.result.type)


class BufferLoadToLocalOp(Op):
    """Start copying elements at offsets from a pointer to LDS; they are there after a wait.

    ``%t = amdg.buffer_load_to_local %p[%o] mask = %m into %buffer {contiguity = 8 : i32} : <f16>[tensor<..xi32>]  ->
    <...>``
    """

    name = "amdg.buffer_load_to_local"
    dest = operand_def(MEMDESC)
    ptr = operand_def(POINTER)
    offsets = operand_def(I32_TENSOR)
    mask = opt_operand_def(BOOL_LIKE)
    other = opt_operand_def(TENSOR)
    stride = opt_operand_def(I32)
    cache = cache_prop()
    contiguity = default_prop(RUN_PROPERTY, 1)
    token = result_def(TOKEN)
    form = (
        "$ptr[$offsets](? mask = $mask)(? other = $other)(? stride = $stride)(? cacheModifier = $cache)"
        " into $dest {} : "
        "bare($ptr)[type($offsets)] (?type($other)) -> bare($dest)"
    )
    infer = {"mask": (mask_type, "offsets")}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        copied = with_element(self.offsets.type, element_type(self.ptr.type).pointee)  # type: ignore[attr-defined]
        require_mutable("Cannot store into immutable memory", self.dest.type)
        verify_copy(copied, self.dest.type)
        verify_access(self, self.ptr, self.offsets, self.mask, copied)
        if self.other is not None and self.other.type != copied:
            raise VerifyException(f"{self.name} of {copied} cannot take {self.other.type} as other")


class AsyncWaitOp(Op):
    """Wait until at most `num_inst` copies to LDS, counted as instructions, are under way: ``%t = amdg.async_wait %u
    {num_inst = 4 : i32}``."""

    name = "amdg.async_wait"
    tokens = var_operand_def(TOKEN)
    num_inst = prop_def(I32_PROPERTY)
    token = result_def(TOKEN)
    form = "(? $tokens) {}"


class InThreadTransposeOp(Op):
    """The same tensor with the registers of each thread in another order."""

    name = "amdg.in_thread_transpose"
    src = operand_def(TENSOR)
    result = result_def(TENSOR)
    form = CONVERSION
    traits = traits_def(Pure(), SameShape(), SameElement(), TensorSize())


def require_layout(op: Operation, *types: Attribute) -> None:
    """Raise VerifyException unless each tensor has an encoding, of the rank of the tensor."""
    for type in types:
        encoding = distributed_of(type)
        if encoding is None or encoding.rank != len(shape_of(type)):
            raise VerifyException(f"{op.name} needs tensors with an encoding of their rank, not {type}")


class ExtractSliceOp(Op):
    """The elements of a tensor from fixed offsets on, which each thread has already.

    ``%y = amdg.extract_slice %x [0, 16] : tensor<64x64xf32, #l> to tensor<64x16xf32, #l>``
    """

    name = "amdg.extract_slice"
    source = operand_def(TENSOR)
    static_offsets = prop_def(I32_ARRAY)
    result = result_def(TENSOR)
    form = "$source $static_offsets {} : type($source) to type($result)"
    traits = traits_def(Pure(), SameElement(), TensorSize())

    def verify_(self) -> None:
        source, result = self.source.type, self.result.type
        offsets, before, after = array_values(self.static_offsets), shape_of(source), shape_of(result)
        if not len(offsets) == len(before) == len(after):
            raise VerifyException("ranks of source and destination tensors must match the number of offsets")
        require_layout(self, source, result)
        for dim, (offset, size, length) in enumerate(zip(offsets, after, before, strict=True)):
            if size > length:
                raise VerifyException(f"result shape cannot exceed source shape at dimension {dim}")
            if not 0 <= offset <= length - size:
                raise VerifyException(f"invalid offset at dimension {dim}")
        large, small = layout_of(source), layout_of(result)
        if any(large.by_in[name] != small.by_in[name] for name in ("lane", "warp")) and vectors_of(large) != vectors_of(
            small
        ):
            raise VerifyException("Lane and warp dim basis must match between source and destination layout.")
        held = {large.vector(image) for image in large.images("register")}
        for image in small.images("register"):
            index = tuple(at + offset for at, offset in zip(small.vector(image), offsets, strict=True))
            if index not in held:
                raise VerifyException(
                    f"No source register holds the element for destination index [{', '.join(map(str, index))}]"
                )


def vectors_of(layout: LinearLayout) -> list[tuple[tuple[int, ...], ...]]:
    """Return the bases of lanes and warps as coordinates, which do not depend on the shape."""
    return [vectors for name, vectors in layout.bases if name in ("lane", "warp")]


class ConcatOp(Op):
    """Tiles of one type side by side, the last dimension first: ``%z = amdg.concat %x, %y : tensor<64x32xf32, #l>,
    tensor<64x32xf32, #l> -> tensor<128x32xf32, #l>``."""

    name = "amdg.concat"
    sources = var_operand_def(TENSOR)
    result = result_def(TENSOR)
    form = "$sources {} : type($sources) -> type($result)"
    traits = traits_def(Pure(), SameElement(), TensorSize())

    def verify_(self) -> None:
        types = {source.type for source in self.sources}
        if len(types) != 1:
            raise VerifyException("All sources must have identical tensor types")
        (source,) = types
        require_layout(self, source, self.result.type)
        before, after = shape_of(source), shape_of(self.result.type)
        if len(before) != len(after):
            raise VerifyException("Source and destination tensors must have the same rank")
        if any(whole % part for whole, part in zip(after, before, strict=True)):
            raise VerifyException("Source and destination tensor shapes don't match")
        wanted = prod(whole // part for whole, part in zip(after, before, strict=True))
        if len(self.sources) != wanted:
            raise VerifyException(
                f"Number of source tiles ({len(self.sources)}) doesn't match required count ({wanted})."
            )
        if vectors_of(layout_of(source)) != vectors_of(layout_of(self.result.type)):
            raise VerifyException("Lane and warp dim basis must match between source and destination layout.")


class LocalLoadPackedTransposedOp(Op):
    """Read two 4-bit floats for each byte of a dot operand from memory in which they are packed along the other
    dimension.

    ``%x = amdg.local_load_packed_tranposed %m : !ttg.memdesc<128x64xi8, ...> -> tensor<64x128xi8, #dot_op>``
    """

    name = "amdg.local_load_packed_tranposed"  # as Triton spells it
    src = operand_def(MEMDESC)
    token = opt_operand_def(TOKEN)
    result = result_def(TENSOR)
    form = "$src(? token $token) {} : type($src) -> type($result)"
    traits = traits_def(MemoryReadEffect(), TensorSize())

    def verify_(self) -> None:
        operand = dot_operand_of(self.result.type)
        if operand is None:
            raise VerifyException("only works with DotOperandEncodingAttr dst encoding")
        require_layout(self, self.result.type)
        if operand.rank != 2:
            raise VerifyException(f"{self.name} needs a result of rank 2, not {self.result.type}")
        memory = shared_of(self.src.type)
        order = getattr(memory, "order", None)
        rows, columns = shape_of(self.result.type)
        if order is not None and order[0] == operand.k_dim:
            raise VerifyException("Order of dimensions don't match expected")
        packed = (rows // 2, columns * 2) if operand.op_idx == 0 else (rows * 2, columns // 2)
        if tuple(self.src.type.dims) != packed:
            raise VerifyException("Input and output dimensions don't match after packing changes")


SCALE_AXIS_ELEMENTS = 32  # elements that share a scale


class UpcastMxfpOp(Op):
    """Multiply the elements of a dot operand in a microscaling format by their scales, one for 32 along K.

    ``%y = amdg.upcast_mxfp %x, %s fp_type = e2m1 {fastMath = false} : tensor<64x64xi8, #d>, tensor<64x4xi8, #l> ->
    tensor<64x128xbf16, #d>``
    """

    name = "amdg.upcast_mxfp"
    src = operand_def(TENSOR)
    scale = operand_def(TENSOR)
    fp_type = prop_def(enum_property(ScaleDotElemType))
    fast_math = prop_def(I1_PROPERTY, prop_name="fastMath")
    result = result_def(TENSOR)
    form = "$src, $scale fp_type = $fp_type {} : type($src), type($scale) -> type($result)"
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        operand = dot_operand_of(self.src.type)
        if operand is None:
            raise VerifyException("Expected a DotOperandEncodingAttr for values")
        if element_type(self.src.type) not in (i8, f16, bf16, f8E4M3FN, f8E5M2) or element_type(self.scale.type) != i8:
            raise VerifyException(f"{self.name} cannot scale {self.src.type} by {self.scale.type}")
        require_layout(self, self.src.type)
        k, sizes = operand.k_dim, list(shape_of(self.src.type))
        sizes[k] *= 1 + (self.fp_type.value.data == ScaleDotElemType.E2M1)
        if shape_of(self.result.type) != tuple(sizes):
            raise VerifyException(f"{self.name} of {self.src.type} cannot give {self.result.type}")
        *lines, blocks = shape_of(self.scale.type) or (0,)
        if blocks * SCALE_AXIS_ELEMENTS != sizes.pop(k):
            raise VerifyException("Scales and values must have the same number of blocks along K")
        if lines != sizes:
            values, scales = self.src.type, self.scale.type
            raise VerifyException(f"{self.name} of {values} needs scales of each row along K, not {scales}")


def verify_scaled(op: Operation, scale: Attribute, result: Attribute, shape: tuple[int, ...]) -> None:
    """Raise VerifyException unless a scaled conversion to `shape` fits its scale and its result."""
    if shape_of(scale) != shape_of(result):
        raise VerifyException("scale and output should have the same shape")
    if element_type(scale) not in (bf16, i8):
        raise VerifyException(f"{op.name} has scales of bf16 or i8, not {scale}")
    if element_type(result) not in (f16, bf16, f32) or shape_of(result) != shape:
        raise VerifyException(f"{op.name} of {op.operands[0].type} cannot give {result}")


class ScaledUpcastFp4Op(Op):
    """Two 4-bit floats (e2m1) for each byte along an axis, each times its scale: a bf16, or the exponent of one as i8.

    ``%y = amdg.scaled_upcast_fp4 %x scale %s {axis = 1 : i32} : tensor<64x64xi8, #a>, tensor<64x128xi8, #b> ->
    tensor<64x128xf16, #b>``
    """

    name = "amdg.scaled_upcast_fp4"
    input = operand_def(TENSOR)
    scale = operand_def(TENSOR)
    axis = prop_def(I32_PROPERTY)
    result = result_def(TENSOR)
    form = "$input scale $scale {} : type($input), type($scale) -> type($result)"
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        axis, sizes = self.axis.value.data, list(shape_of(self.input.type))
        if element_type(self.input.type) != i8:
            raise VerifyException(f"{self.name} reads i8, not {self.input.type}")
        if not 0 <= axis < len(sizes):
            raise VerifyException(f"axis {axis} out of range for rank {len(sizes)}")
        sizes[axis] *= 2
        verify_scaled(self, self.scale.type, self.result.type, tuple(sizes))


class ScaledUpcastFp8Op(Op):
    """8-bit floats, each times its scale: ``%y = amdg.scaled_upcast_fp8 %x scale %s : tensor<64xf8E4M3FN, #a>,
    tensor<64xbf16, #a> -> tensor<64xf32, #a>``."""

    name = "amdg.scaled_upcast_fp8"
    input = operand_def(TENSOR)
    scale = operand_def(TENSOR)
    result = result_def(TENSOR)
    form = "$input scale $scale {} : type($input), type($scale) -> type($result)"
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        if element_type(self.input.type) not in (f8E4M3FN, f8E5M2):
            raise VerifyException(f"{self.name} reads f8E4M3FN or f8E5M2, not {self.input.type}")
        verify_scaled(self, self.scale.type, self.result.type, shape_of(self.input.type))


class AsyncCopyLocalToGlobalOp(Op):
    """Start copying LDS to elements at pointers; they are there after a wait.

    ``%t = amdg.async_copy_local_to_global %m, %p mask %k : !ttg.memdesc<...> -> tensor<64x64x!tt.ptr<f16>, #b>``
    """

    name = "amdg.async_copy_local_to_global"
    src = operand_def(MEMDESC)
    dst = operand_def(PTR_LIKE)
    mask = opt_operand_def(BOOL_LIKE)
    cache = cache_prop()
    evict = evict_prop()
    contiguity = default_prop(RUN_PROPERTY, 1)
    token = result_def(TOKEN)
    form = "$src, $dst(? mask $mask)(? cacheModifier = $cache)(? evictionPolicy = $evict) {} : type($src) -> type($dst)"
    infer = {"mask": (copied_mask_type, "dst")}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        stored = loaded_type(self.dst.type)
        verify_copy(stored, self.src.type)
        verify_mask(self, self.mask, stored)


class CondBarrierOp(Op):
    """A barrier for the warps whose predicate holds: ``amdg.cond_barrier %p``."""

    name = "amdg.cond_barrier"
    pred = operand_def(I1)
    form = "$pred {}"


class InstructionSchedHintOp(Op):
    """The kind of a block, for the scheduler: ``amdg.instruction_sched_hint {variant =
    #amdg.SchedHintVariant<attention>}``."""

    name = "amdg.instruction_sched_hint"
    variant = prop_def(enum_property(SchedHint))
    form = "{variant = #amdg.SchedHintVariant<$variant>}"


class SetPrioOp(Op):
    """The priority of this wave from here on: ``rocdl.s.setprio 1``."""

    name = "rocdl.s.setprio"
    priority = prop_def(I32_PROPERTY)
    form = "$priority {}"


class SchedBarrierOp(Op):
    """A barrier for the scheduler; the mask has the instructions that may cross it: ``rocdl.sched.barrier 0``, none."""

    name = "rocdl.sched.barrier"
    mask = prop_def(I32_PROPERTY)
    form = "$mask {}"


class SchedGroupBarrierOp(Op):
    """The order that the scheduler gives the instructions around it: ``rocdl.sched.group.barrier 8, 1, 0`` puts the
    next one of a kind (8: of the matrix unit, 4: scalar) here, in the sequence of all such ops with this `groupId`."""

    name = "rocdl.sched.group.barrier"
    mask = prop_def(I32_PROPERTY)
    size = prop_def(I32_PROPERTY)
    groupId = prop_def(I32_PROPERTY)
    form = "$mask, $size, $groupId {}"


class WaveBarrierOp(Op):
    """A barrier of all waves that orders no memory: ``rocdl.s.barrier``."""

    name = "rocdl.s.barrier"
    form = "{}"


class WorkitemIdXOp(Op):
    """The index of a thread in its program: ``%i = rocdl.workitem.id.x : i32``."""

    name = "rocdl.workitem.id.x"
    result = result_def(I32)
    form = "{} : type($result)"
    traits = traits_def(Pure())


AMDG = Dialect("amdg", dialect_ops("amdg"), [])
ROCDL = Dialect("rocdl", dialect_ops("rocdl"), [])
register(AMDG)
register(ROCDL)
