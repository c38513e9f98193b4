"""`ttng` ops that make TMA descriptors: 128 bytes in global memory that say where the blocks of an array are.

ttng.tensormap_create %p, %base, [%box0, %box1], [%dim0, %dim1], [%stride], [%step0, %step1] {...} : (...) -> ()
ttng.tensormap_fenceproxy_acquire %p : !tt.ptr<i8>
%d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<tensor<64x64xf16, #shared>>
"""

from xdsl.dialects.builtin import IntegerAttr
from xdsl.irdl import operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import DESCRIPTOR, I32, I32_PROPERTY, I64, POINTER
from tilework.ir.declare import Op

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
    """Memory that holds a descriptor: ``%d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<...>``."""

    name = "ttng.reinterpret_tensor_descriptor"
    raw_desc = operand_def(POINTER)
    result = result_def(DESCRIPTOR)
    form = "$raw_desc {} : type($raw_desc) to type($result)"
    traits = traits_def(Pure())
