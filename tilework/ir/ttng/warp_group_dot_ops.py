"""`ttng` ops for matrix products of a warp group (``wgmma``)."""

from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def, traits_def, var_operand_def, var_result_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import (
    I1,
    I1_PROPERTY,
    I32_PROPERTY,
    TENSOR,
    Kind,
    TensorSize,
    enum_property,
    is_plain_tensor,
    names,
)
from tilework.ir.declare import Op
from tilework.ir.encodings import encoding_of
from tilework.ir.enums import InputPrecision
from tilework.ir.tt.dot_ops import verify_product
from tilework.ir.ttg.memdesc_types import MEMDESC, is_memdesc
from tilework.ir.types import bit_width, element_type, f32, i1, i32, int_attr, is_float, shape_of
from tilework.layouts.encodings import DotOperand, NvidiaMma, NvmmaShared, SharedLinear

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
        verify_product(self, shape_of(a), shape_of(b), shape_of(d))
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
