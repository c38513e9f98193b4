"""`tt` ops that run code from elsewhere on each element: device libraries, assembly, a scalar region."""

from math import prod

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import prop_def, region_def, result_def, traits_def, var_operand_def, var_result_def
from xdsl.traits import IsTerminator, MemoryWriteEffect, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import (
    ANY,
    I1_PROPERTY,
    I32_PROPERTY,
    TENSOR,
    Elementwise,
    OneShape,
    SameEncoding,
    SameShape,
    TensorSize,
    names,
    verify_returns,
)
from tilework.ir.declare import Op
from tilework.ir.forms import RETURN
from tilework.ir.types import element_type, shape_of


class ExternElementwiseOp(Op):
    """Call a device-library function on each element.

    ``%y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (f32) -> f32``
    """

    name = "tt.extern_elementwise"
    srcs = var_operand_def(ANY)
    result = result_def(ANY)
    libname = prop_def(StringAttr)
    libpath = prop_def(StringAttr)
    symbol = prop_def(StringAttr)
    pure = prop_def(I1_PROPERTY)
    form = "(? $srcs) {} : signature"
    traits = traits_def(Elementwise(), OneShape(), SameEncoding(), TensorSize())


class ElementwiseInlineAsmOp(Op):
    """Run assembly on each element, or on `packed_element` of them at once.

    ``%y = tt.elementwise_inline_asm "..." {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : T -> U``
    """

    name = "tt.elementwise_inline_asm"
    args = var_operand_def(ANY)
    result = var_result_def(ANY)
    asm_string = prop_def(StringAttr)
    constraints = prop_def(StringAttr)
    pure = prop_def(I1_PROPERTY)
    packed_element = prop_def(I32_PROPERTY)
    form = "$asm_string {}(? $args : type($args)) -> type($result)"
    traits = traits_def(Elementwise(), OneShape(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        packed = self.packed_element.value.data
        if packed < 1:
            raise VerifyException(f"packed_element must be positive, got {packed}")
        if self.operands and (shape := shape_of(self.operands[0].type)):
            if (count := prod(shape)) % packed:
                raise VerifyException(
                    f"number of input elements {count} must be a multiple of the op's packed_element attribute, {packed}"
                )


class MapElementwiseReturnOp(Op):
    """The results of one call of the region of `tt.map_elementwise`: ``tt.map_elementwise.return %r : f32``."""

    name = "tt.map_elementwise.return"
    result = var_operand_def()
    form = RETURN
    traits = traits_def(Pure(), IsTerminator(), TensorSize())


class MapElementwiseOp(Op):
    """Run a scalar region on each element, or on `pack` of them at once.

    The region's arguments are the elements of each operand, `pack` per operand; it returns `pack` per result.
    """

    name = "tt.map_elementwise"
    srcs = var_operand_def(TENSOR)
    result = var_result_def(TENSOR)
    pack = prop_def(I32_PROPERTY)
    scalar_op = region_def()
    traits = traits_def(RecursiveMemoryEffect(), SameShape(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        pack = self.pack.value.data
        if pack < 1 or pack & (pack - 1):
            raise VerifyException(f"pack must be a power of two, got {pack}")
        entry = self.regions[0].blocks.first
        if entry is None:
            raise VerifyException("tt.map_elementwise needs a region with a block")
        expected = [element_type(v.type) for v in self.operands for _ in range(pack)]
        if (found := [arg.type for arg in entry.args]) != expected:
            raise VerifyException(f"region arguments must be {names(expected)}, got {names(found)}")
        for inner in self.regions[0].walk():
            if inner.has_trait(MemoryWriteEffect):
                raise VerifyException(f"Stores are not supported inside map_elementwise: {inner.name}")
        expected = [element_type(v.type) for v in self.results for _ in range(pack)]
        verify_returns(self, expected, MapElementwiseReturnOp)
