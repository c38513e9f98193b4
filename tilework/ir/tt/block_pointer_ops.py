"""`tt` ops on block pointers: one pointer to a whole block of a tensor in memory."""

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import SameVariadicOperandSize, operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import BLOCK_POINTER, I32, I32_ARRAY, I64, POINTER, TensorSize
from tilework.ir.create import create_op
from tilework.ir.declare import Op
from tilework.ir.types import PointerType, array_values, element_type, i32_array, pointer_type, shape_of, tensor_type


def element_pointer(block: Attribute) -> Attribute:
    """A pointer to an element of what `block` points to."""
    assert isinstance(block, PointerType), f"expected a pointer to a block, but got {block}"
    return pointer_type(element_type(block.pointee), block.address_space.value.data)


class MakeTensorPtrOp(Op):
    """A block of a tensor in memory, as one pointer.

    ``%p = tt.make_tensor_ptr %base, [%m, %n], [%sm, %sn], [%i, %j] {order = array<i32: 1, 0>} : <tensor<64x32xf16>>``
    """

    name = "tt.make_tensor_ptr"
    base = operand_def(POINTER)
    shape = var_operand_def(I64)
    strides = var_operand_def(I64)
    offsets = var_operand_def(I32)
    order = prop_def(I32_ARRAY)
    result = result_def(BLOCK_POINTER)
    form = "$base, [$shape], [$strides], [$offsets] {} : bare($result)"
    infer = {"base": (element_pointer, "result")}
    irdl_options = (SameVariadicOperandSize(),)
    traits = traits_def(Pure(), TensorSize())

    @classmethod
    def make(
        cls,
        base: SSAValue,
        shape: Sequence[SSAValue],
        strides: Sequence[SSAValue],
        offsets: Sequence[SSAValue],
        block_shape: Sequence[int],
        order: Sequence[int],
        loc: LocationAttr,
    ) -> Self:
        pointer = base.type
        assert isinstance(pointer, PointerType), pointer
        space = pointer.address_space.value.data
        block = tensor_type(tuple(block_shape), pointer.pointee)
        return create_op(
            cls, (base, *shape, *strides, *offsets), (pointer_type(block, space),), loc, {"order": i32_array(*order)}
        )

    def verify_(self) -> None:
        base, result = self.base.type, self.result.type
        assert isinstance(base, PointerType) and isinstance(result, PointerType)
        if base.pointee != element_type(result.pointee) or base.address_space != result.address_space:
            raise VerifyException(f"tt.make_tensor_ptr from {base} cannot give {result}")
        rank = len(shape_of(result.pointee))
        if len(self.shape) != rank:
            raise VerifyException(f"tt.make_tensor_ptr of rank {rank} has {len(self.shape)} sizes")
        if sorted(order := array_values(self.order)) != list(range(rank)):
            raise VerifyException(f"order must be a permutation of [0, ..., rank - 1], got {list(order)}")


class AdvanceOp(Op):
    """Move a block pointer by elements: ``%q = tt.advance %p, [%i, %j] : <tensor<64x32xf16>>``."""

    name = "tt.advance"
    ptr = operand_def(BLOCK_POINTER)
    offsets = var_operand_def(I32)
    result = result_def(BLOCK_POINTER)
    form = "$ptr, [$offsets] {} : bare($result)"
    infer = {"result": "ptr"}
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        if self.ptr.type != self.result.type:
            raise VerifyException(f"tt.advance of {self.ptr.type} cannot give {self.result.type}")
        pointer = self.ptr.type
        assert isinstance(pointer, PointerType)
        if len(self.offsets) != (rank := len(shape_of(pointer.pointee))):
            raise VerifyException(f"tt.advance of rank {rank} has {len(self.offsets)} offsets")
