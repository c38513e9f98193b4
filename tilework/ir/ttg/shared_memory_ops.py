"""`ttg` ops that make, read and write shared memory, and scratch memory in global memory."""

from typing import Self

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.traits import MemoryAllocEffect, MemoryFreeEffect, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import I32_PROPERTY, POINTER, TENSOR, TensorSize
from tilework.ir.create import create_op
from tilework.ir.declare import Op
from tilework.ir.encodings import encoding_of
from tilework.ir.tt.dot_ops import verify_product
from tilework.ir.ttg.memdesc_types import MEMDESC, TOKEN, MemDescType, listed
from tilework.ir.types import element_type, i8, pointer_type, shape_of
from tilework.layouts.encodings import Blocked


def verify_copy(source: Attribute, target: Attribute) -> None:
    """A tensor and memory, one copied to the other: the same shape and elements, and a rank that the encoding has."""
    memory = source if isinstance(source, MemDescType) else target
    assert isinstance(memory, MemDescType)
    before, after = shape_of(source), shape_of(target)
    if before != after:
        raise VerifyException(f"source shape [{listed(before)}] must match [destination shape {listed(after)}]")
    tensor = target if memory is source else source
    if (element := element_type(tensor)) != memory.element_type:
        pair = (memory.element_type, element) if memory is source else (element, memory.element_type)
        raise VerifyException(f"source element type '{pair[0]}' must match destination element type '{pair[1]}'")
    encoding = encoding_of(memory)
    if encoding is not None and encoding.rank != len(before):
        raise VerifyException(f"source has rank {len(before)} but memdesc encoding has rank {encoding.rank}")


class LocalAllocOp(Op):
    """Shared memory, perhaps filled with a tensor: ``%m = ttg.local_alloc %x : (T) -> !ttg.memdesc<...>``.

    Memory that is filled here and not mutable has the value of the tensor: the op is then as good as pure.
    """

    name = "ttg.local_alloc"
    src = opt_operand_def(TENSOR)
    alignment = opt_prop_def(I32_PROPERTY)
    result = result_def(MEMDESC)
    form = "(? $src) {} : signature"
    traits = traits_def(MemoryAllocEffect(), MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        type = self.result.type
        assert isinstance(type, MemDescType)
        if type.dims != type.alloc_dims:
            raise VerifyException(f"result shape and its alloc shape must match: {type}")
        if self.src is not None:
            verify_copy(self.src.type, type)
        elif not type.is_mutable:
            raise VerifyException(f"uninitialized alloc must have a mutable memdesc type, but got {type}")


class LocalDeallocOp(Op):
    """The memory is not used any more: ``ttg.local_dealloc %m : !ttg.memdesc<...>``."""

    name = "ttg.local_dealloc"
    src = operand_def(MEMDESC)
    form = "$src {} : type($src)"
    traits = traits_def(MemoryFreeEffect())


class LocalLoadOp(Op):
    """Read shared memory: ``%x = ttg.local_load %m token %t : !ttg.memdesc<...> -> tensor<...>``.

    The token, if there is one, is that of a wait for the copies that wrote the memory.
    """

    name = "ttg.local_load"
    src = operand_def(MEMDESC)
    token = opt_operand_def(TOKEN)
    result = result_def(TENSOR)
    form = "$src(? token $token) {} : type($src) -> type($result)"
    traits = traits_def(MemoryReadEffect(), TensorSize())

    @classmethod
    def make(cls, src: SSAValue, type: Attribute, loc: LocationAttr, token: SSAValue | None = None) -> Self:
        return create_op(cls, (src,) if token is None else (src, token), (type,), loc)

    def verify_(self) -> None:
        verify_copy(self.src.type, self.result.type)


class LocalDotOp(Op):
    """``d = a @ b + c`` with both factors in shared memory, one multiplication at a time: each thread reads what it multiplies next.

    ``%d = ttg.local_dot %a, %b, %c : !ttg.memdesc<64x32xf16, ...> * !ttg.memdesc<32x64xf16, ...> -> tensor<64x64xf32, #blocked>``

    Factors may have fewer bits than the sums. Only what becomes LLVM text has it (`transforms/ttg/dots_from_memory.py`).
    """

    name = "ttg.local_dot"
    a = operand_def(MEMDESC)
    b = operand_def(MEMDESC)
    c = operand_def(TENSOR)
    d = result_def(TENSOR)
    form = "$a, $b, $c {} : type($a) * type($b) -> type($d)"
    infer = {"d": "c"}
    traits = traits_def(MemoryReadEffect(), TensorSize())

    def verify_(self) -> None:
        verify_product(self, shape_of(self.a.type), shape_of(self.b.type), shape_of(self.d.type))
        if not isinstance(encoding_of(self.d.type), Blocked):
            raise VerifyException(f"ttg.local_dot needs a blocked layout of its sums: {self.d.type}")


class LocalStoreOp(Op):
    """Write shared memory: ``ttg.local_store %x, %m : tensor<...> -> !ttg.memdesc<..., mutable>``."""

    name = "ttg.local_store"
    src = operand_def(TENSOR)
    dst = operand_def(MEMDESC)
    form = "$src, $dst {} : type($src) -> type($dst)"
    traits = traits_def(MemoryWriteEffect(), TensorSize())

    def verify_(self) -> None:
        require_mutable("Cannot store into immutable memory", self.dst.type)
        verify_copy(self.src.type, self.dst.type)


def require_mutable(message: str, type: Attribute) -> None:
    """Refuse to write memory that is not ``mutable``."""
    assert isinstance(type, MemDescType)
    if not type.is_mutable:
        raise VerifyException(f"{message}: {type}")


class LocalBarrierOp(Op):
    """All threads of the block wait for each other's accesses to shared memory: ``ttg.local_barrier``."""

    name = "ttg.local_barrier"
    form = "{}"


class GlobalScratchAllocOp(Op):
    """Global memory of this program: ``%p = ttg.global_scratch_alloc {alignment = 16 : i32, nbytes = 128 : i32} : T``."""

    name = "ttg.global_scratch_alloc"
    nbytes = prop_def(I32_PROPERTY)
    alignment = prop_def(I32_PROPERTY)
    result = result_def(POINTER)
    form = "{} : type($result)"
    infer = {"result": pointer_type(i8)}
    traits = traits_def(MemoryAllocEffect())
