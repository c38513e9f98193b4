"""`tt` elementwise ops: casts, pointer arithmetic, and calls of device libraries, inline assembly or a scalar
region."""

from math import prod

from xdsl.dialects.builtin import StringAttr
from xdsl.traits import IsTerminator, MemoryWriteEffect, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import (
    ANY,
    FLOAT_LIKE,
    I1_PROPERTY,
    I32_PROPERTY,
    I64_LIKE,
    INT_LIKE,
    PTR_LIKE,
    TENSOR,
    Elementwise,
    OneShape,
    SameEncoding,
    SameShape,
    SameType,
    TensorSize,
    enum_property,
    names,
    verify_returns,
)
from tilework.ir.declare import Op
from tilework.ir.enums import PropagateNan, RoundingMode
from tilework.ir.fields import (
    CONVERSION,
    RETURN,
    SAME_TYPE,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from tilework.ir.types import PointerType, bit_width, element_type, is_pointer, shape_of


class IntToPtrOp(Op):
    """Read an address as a pointer: ``%p = tt.int_to_ptr %a : i64 -> !tt.ptr<f32>``."""

    name = "tt.int_to_ptr"
    src = operand_def(I64_LIKE)
    result = result_def(PTR_LIKE)
    form = CONVERSION
    traits = traits_def(Pure(), Elementwise(), SameShape(), SameEncoding(), TensorSize())


class PtrToIntOp(Op):
    """The address of a pointer: ``%a = tt.ptr_to_int %p : !tt.ptr<f32> -> i64``."""

    name = "tt.ptr_to_int"
    src = operand_def(PTR_LIKE)
    result = result_def(I64_LIKE)
    form = CONVERSION
    traits = traits_def(Pure(), Elementwise(), SameShape(), SameEncoding(), TensorSize())


class BitcastOp(Op):
    """The same bits under another type: ``%i = tt.bitcast %f : f32 -> i32``."""

    name = "tt.bitcast"
    src = operand_def(ANY)
    result = result_def(ANY)
    form = CONVERSION
    traits = traits_def(Pure(), Elementwise(), SameShape(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        source, result = element_type(self.src.type), element_type(self.result.type)
        if isinstance(source, PointerType) and isinstance(result, PointerType):
            if source.address_space != result.address_space:
                raise VerifyException(f"Cannot bitcast pointer between address spaces: {source} to {result}")
        elif is_pointer(source) or is_pointer(result):
            raise VerifyException(f"Cannot bitcast pointer to non-pointer type: {source} to {result}")
        elif bit_width(source) != bit_width(result):
            raise VerifyException(
                f"Cannot bitcast data-type of size {bit_width(source)} to data-type of size {bit_width(result)}"
            )


class FpToFpOp(Op):
    """Convert between floats: ``%y = tt.fp_to_fp %x, rounding = rtne : f32 -> f8E5M2``."""

    name = "tt.fp_to_fp"
    src = operand_def(FLOAT_LIKE)
    result = result_def(FLOAT_LIKE)
    rounding = opt_prop_def(enum_property(RoundingMode))
    form = "$src {}(?, rounding = $rounding) : type($src) -> type($result)"
    traits = traits_def(Pure(), Elementwise(), SameShape(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        if bit_width(self.result.type) < bit_width(self.src.type) and self.rounding is None:
            raise VerifyException(f"Rounding mode is required for FP downcast: {self.src.type} to {self.result.type}")


class PreciseSqrtOp(Op):
    """The correctly rounded square root: ``%y = tt.precise_sqrt %x : f32``."""

    name = "tt.precise_sqrt"
    x = operand_def(FLOAT_LIKE)
    result = result_def(FLOAT_LIKE)
    form = SAME_TYPE
    traits = traits_def(Pure(), Elementwise(), SameType(), TensorSize())


class PreciseDivFOp(Op):
    """The correctly rounded quotient: ``%z = tt.precise_divf %x, %y : f32``."""

    name = "tt.precise_divf"
    x = operand_def(FLOAT_LIKE)
    y = operand_def(FLOAT_LIKE)
    result = result_def(FLOAT_LIKE)
    form = SAME_TYPE
    traits = traits_def(Pure(), Elementwise(), SameType(), TensorSize())


class MulhiUIOp(Op):
    """The upper half of the unsigned product: ``%z = tt.mulhiui %x, %y : i32``."""

    name = "tt.mulhiui"
    x = operand_def(INT_LIKE)
    y = operand_def(INT_LIKE)
    result = result_def(INT_LIKE)
    form = SAME_TYPE
    traits = traits_def(Pure(), Elementwise(), SameType(), TensorSize())


class ClampFOp(Op):
    """``min(max(x, low), high)``: ``%y = tt.clampf %x, %low, %high, propagateNan = none : f32``."""

    name = "tt.clampf"
    x = operand_def(FLOAT_LIKE)
    min = operand_def(FLOAT_LIKE)
    max = operand_def(FLOAT_LIKE)
    propagate_nan = prop_def(enum_property(PropagateNan), prop_name="propagateNan")
    result = result_def(FLOAT_LIKE)
    form = "$x, $min, $max, propagateNan = $propagate_nan {} : type($result)"
    traits = traits_def(Pure(), Elementwise(), SameType(), TensorSize())


class AddPtrOp(Op):
    """Move pointers by a number of elements: ``%q = tt.addptr %p, %i : !tt.ptr<f32>, i32``."""

    name = "tt.addptr"
    ptr = operand_def(PTR_LIKE)
    offset = operand_def(INT_LIKE)
    result = result_def(PTR_LIKE)
    form = "$ptr, $offset {} : type($result)(?, type($offset))"
    infer = {"result": "ptr"}
    traits = traits_def(Pure(), Elementwise(), SameShape(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        if self.ptr.type != self.result.type:
            raise VerifyException(f"tt.addptr of {self.ptr.type} cannot give {self.result.type}")


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
                    f"number of input elements {count} must be a multiple of the op's packed_element attribute,"
                    f" {packed}"
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
