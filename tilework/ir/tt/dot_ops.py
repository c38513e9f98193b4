"""`tt` ops for matrix multiplication."""

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import I1_PROPERTY, I32_PROPERTY, NUMERIC_TENSOR, TensorSize, enum_property
from tilework.ir.declare import Op
from tilework.ir.enums import InputPrecision, ScaleDotElemType
from tilework.ir.fields import default_prop, operand_def, opt_operand_def, prop_def, result_def, traits_def
from tilework.ir.property_text import is_true
from tilework.ir.tt.inference import verify_dot_operands
from tilework.ir.types import bit_width, element_type, f8E4M3FN, i8, shape_of


def input_precision_prop() -> IntegerAttr:
    """A property for the precision of the factors of a dot."""
    return default_prop(enum_property(InputPrecision), InputPrecision.IEEE, "inputPrecision")


def max_imprecise_prop() -> IntegerAttr:
    """A property for the number of multiply-adds that may be accumulated in reduced precision."""
    return default_prop(I32_PROPERTY, 0, "maxNumImpreciseAcc")


class DotOp(Op):
    """``d = a @ b + c``, of matrices or of batches of them.

    ``%d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>``
    """

    name = "tt.dot"
    a = operand_def(NUMERIC_TENSOR)
    b = operand_def(NUMERIC_TENSOR)
    c = operand_def(NUMERIC_TENSOR)
    d = result_def(NUMERIC_TENSOR)
    input_precision = input_precision_prop()
    max_num_imprecise_acc = max_imprecise_prop()
    form = "$a, $b, $c(?, inputPrecision = $input_precision) {} : type($a) * type($b) -> type($d)"
    infer = {"d": "c"}
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        a, b = self.a.type, self.b.type
        if bit_width(a) != bit_width(b):
            raise VerifyException(f"element types of operands A and B must have same bit width: {a}, {b}")
        if self.c.type != self.d.type:
            raise VerifyException(f"tt.dot with an accumulator of {self.c.type} cannot give {self.d.type}")
        verify_dot_shapes(self, shape_of(a), shape_of(b), shape_of(self.d.type))
        verify_dot_operands(a, b, self.d.type)


def verify_dot_shapes(op: Operation, a: Sequence[int], b: Sequence[int], d: Sequence[int]) -> None:
    """Check the shapes of a dot, rank 2 or 3 with the batch first."""
    if len(a) not in (2, 3) or len(a) != len(b) or len(a) != len(d):
        raise VerifyException(f"{op.name} needs operands of rank 2 or 3, but got {a}, {b} and {d}")
    if a[-1] != b[-2]:
        raise VerifyException(
            "expected the last dimension of the first operand to be equal to the second-to-last dimension of the "
            f"second operand: {a[-1]}, {b[-2]}"
        )
    if tuple(d) != (*a[:-1], b[-1]) or a[:-2] != b[:-2]:
        raise VerifyException(
            "expected the output shape to be the concatenation of the last dimension of the first operand and the last "
            f"dimension of the second : {op.name} of shapes {a} and {b} cannot give {d}"
        )


class DotScaledOp(Op):
    """A dot of small floats with shared exponents.

    ``%d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e5m2 {fastMath = false} : A, SA * B, SB -> D``
    """

    name = "tt.dot_scaled"
    a = operand_def(NUMERIC_TENSOR)
    b = operand_def(NUMERIC_TENSOR)
    c = operand_def(NUMERIC_TENSOR)
    a_scale = opt_operand_def(NUMERIC_TENSOR)
    b_scale = opt_operand_def(NUMERIC_TENSOR)
    a_elem_type = prop_def(enum_property(ScaleDotElemType))
    b_elem_type = prop_def(enum_property(ScaleDotElemType))
    fast_math = prop_def(I1_PROPERTY, prop_name="fastMath")
    lhs_k_pack = default_prop(I1_PROPERTY, True)
    rhs_k_pack = default_prop(I1_PROPERTY, True)
    d = result_def(NUMERIC_TENSOR)
    form = (
        "$a(? scale $a_scale), $b(? scale $b_scale), $c lhs = $a_elem_type rhs = $b_elem_type {} : "
        "type($a)(?, type($a_scale)) * type($b)(?, type($b_scale)) -> type($d)"
    )
    infer = {"d": "c"}
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        if self.c.type != self.d.type:
            raise VerifyException(f"tt.dot_scaled with an accumulator of {self.c.type} cannot give {self.d.type}")
        a, b = list(shape_of(self.a.type)), list(shape_of(self.b.type))
        if len(a) < 2 or len(b) < 2:
            raise VerifyException(f"tt.dot_scaled needs operands of rank 2 or 3, but got {a} and {b}")
        if self.a_elem_type.value.data == ScaleDotElemType.E2M1:
            require_bytes(self.a.type)
            a[-1 if is_true(self.lhs_k_pack) else -2] *= 2
        if self.b_elem_type.value.data == ScaleDotElemType.E2M1:
            require_bytes(self.b.type)
            b[-2 if is_true(self.rhs_k_pack) else -1] *= 2
        verify_dot_shapes(self, a, b, shape_of(self.d.type))
        verify_scale("M", self.a_scale, a[-2], a[-1])
        verify_scale("N", self.b_scale, b[-1], b[-2])


def require_bytes(type: Attribute) -> None:
    """Two e2m1 values are packed into an i8."""
    if element_type(type) != i8:
        raise VerifyException(f"tt.dot_scaled has e2m1 values packed into i8, not {type}")


def verify_scale(name: str, scale: SSAValue | None, size: int, depth: int) -> None:
    """One scale for each row and 32 values along K; for each 16 when the scales are ``f8E4M3FN``."""
    if scale is None:
        return
    if len(shape_of(scale.type)) < 2:
        raise VerifyException(f"scales of {name} must have rank 2 or 3, but got {scale.type}")
    *_, rows, groups = shape_of(scale.type)
    values = 16 if element_type(scale.type) == f8E4M3FN else 32
    if rows != size:
        raise VerifyException(f"scales {name} dimension must match the operand {name} dimension: {rows}, {size}")
    if groups * values != depth:
        raise VerifyException(
            f"scales K dimension must match the operand K divided by the scale factor: {groups}, {depth} / {values}"
        )
