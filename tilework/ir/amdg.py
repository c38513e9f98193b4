"""`amdg` and `rocdl`: what TTGIR for AMD GPUs has beside `ttg`.

    %x = amdg.buffer_load %p[%offsets], %mask, %other : tensor<64x32xf16, #blocked>     offsets from a scalar pointer
    amdg.buffer_store %v, %p[%offsets], %mask : tensor<64x64xf16, #mma>
    %t = amdg.buffer_load_to_local %p[%offsets] into %buffer {contiguity = 8 : i32} : <f16>[...]  -> <...>
    %y = amdg.in_thread_transpose %x : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #linear>     registers move
    amdg.cond_barrier %p                                                                warps where %p holds wait

Types that the text leaves out follow from the tensor. `stride` is a hint for caches.
"""

from functools import cache

from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import (
    BOOL_LIKE,
    I1,
    I32,
    I32_PROPERTY,
    I32_TENSOR,
    POINTER,
    TENSOR,
    SameElement,
    SameShape,
    TensorSize,
    enum_property,
)
from tilework.ir.declare import Op, dialect_ops
from tilework.ir.effects import register
from tilework.ir.enums import MemSemantic, MemSyncScope, RMWOp, SchedHint
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
from tilework.ir.tt.memory_ops import cache_prop, mask_type, verify_mask
from tilework.ir.ttg.shared_memory_ops import MEMDESC, TOKEN, require_mutable, verify_copy
from tilework.ir.types import element_type, i32, pointer_type, with_element


@cache
def base_type(value: Attribute) -> Attribute:
    """The scalar pointer to elements like those of `value`."""
    return pointer_type(element_type(value))


@cache
def offsets_type(value: Attribute) -> Attribute:
    """An i32 for each element of `value`."""
    return with_element(value, i32)


PLACES = {"ptr": (base_type, "result"), "offsets": (offsets_type, "result"), "mask": (mask_type, "result")}


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
    result = result_def(TENSOR)
    form = "$ptr[$offsets](?, $mask)(?, $other)(? cacheModifier = $cache)(? stride = $stride) {} : type($result)"
    infer = {**PLACES, "other": "result"}
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
    form = "$value, $ptr[$offsets](?, $mask)(? cacheModifier = $cache)(? stride = $stride) {} : type($value)"
    infer = {name: (rule, "value") for name, (rule, _) in PLACES.items()}
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
    infer = {**PLACES, "value": "result"}
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
    infer = {"ptr": PLACES["ptr"], "offsets": PLACES["offsets"], "cmp": "result", "val": "result"}
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
    contiguity = default_prop(I32_PROPERTY, 1)
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
