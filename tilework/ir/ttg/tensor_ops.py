"""`ttg` ops on tensors: layout conversions, the unpacking of 4-bit floats, and the predicated stages of the
pipeliner; the index of a warp."""

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import I1, I32, I32_PROPERTY, SCALAR, TENSOR, SameElement, SameShape, TensorSize, names
from tilework.ir.declare import Op
from tilework.ir.encodings import encoding_of
from tilework.ir.fields import (
    COMBINE_RETURN,
    CONVERSION,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from tilework.ir.types import bf16, element_type, f16, i8, i32, shape_of
from tilework.layouts.linear import LayoutError
from tilework.layouts.to_linear import to_linear


class ConvertLayoutOp(Op):
    """The same tensor in another layout: ``%y = ttg.convert_layout %x : tensor<.., #blocked> -> tensor<.., #mma>``."""

    name = "ttg.convert_layout"
    src = operand_def(TENSOR)
    result = result_def(TENSOR)
    form = CONVERSION
    traits = traits_def(Pure(), SameShape(), SameElement(), TensorSize())

    def verify_(self) -> None:
        for type in (self.src.type, self.result.type):
            if encoding_of(type) is None:
                raise VerifyException(f"ttg.convert_layout needs tensors with an encoding, but got {type}")


class Fp4ToFpOp(Op):
    """Two 4-bit floats (e2m1, the low half first) for each byte, along an axis that doubles.

    ``%y = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<16x32xi8, #a> -> tensor<16x64xf16, #b>``
    """

    name = "ttg.fp4_to_fp"
    src = operand_def(TENSOR)
    axis = prop_def(I32_PROPERTY)
    result = result_def(TENSOR)
    form = CONVERSION
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        source, result, axis = self.src.type, self.result.type, self.axis.value.data
        if element_type(source) != i8:
            raise VerifyException(f"ttg.fp4_to_fp reads i8, not {source}")
        if element_type(result) not in (f16, bf16):
            raise VerifyException(f"ttg.fp4_to_fp gives f16 or bf16, not {result}")
        shape = shape_of(source)
        if not 0 <= axis < len(shape):
            raise VerifyException(f"axis {axis} out of range for rank {len(shape)}")
        if len(shape_of(result)) != len(shape):
            raise VerifyException(f"source and result must have the same rank: {source}, {result}")
        for dim, (old, new) in enumerate(zip(shape, shape_of(result), strict=True)):
            if new != (old * 2 if dim == axis else old):
                raise VerifyException(f"dimension {dim} mismatch (src={old}, dst={new}, axis={axis})")
        verify_unpacked(source, result, axis)


def verify_unpacked(source: Attribute, result: Attribute, axis: int) -> None:
    """Check that each thread holds both halves of its bytes: register 1 of the result is a step of 1 along `axis`."""
    before, after = encoding_of(source), encoding_of(result)
    if before is None and after is None:
        return
    if before is None or after is None:
        raise VerifyException(f"both or neither of source and result have an encoding: {source}, {result}")
    packed, unpacked = to_linear(before, shape_of(source)), to_linear(after, shape_of(result))
    try:
        step = unpacked.basis("register", 0)
    except (LayoutError, IndexError):
        step = ()
    if tuple(step) != tuple(int(dim == axis) for dim in range(len(shape_of(source)))):
        raise VerifyException(f"the first two registers of {result} must be neighbours along axis {axis}")
    for name in ("lane", "warp", "block"):
        doubled = [
            tuple(value * 2 if dim == axis else value for dim, value in enumerate(basis))
            for basis in dict(packed.bases)[name]
        ]
        if doubled != [tuple(basis) for basis in dict(unpacked.bases)[name]]:
            raise VerifyException(f"the {name}s of {source} and {result} hold different elements")


class WarpIdOp(Op):
    """The index of this warp among those that run the op: ``%w = ttg.warp_id {omitUniformHint}``.

    It is known to be equal in all lanes of a warp, unless `omitUniformHint` is there: then no instruction says so.
    """

    name = "ttg.warp_id"
    omit_uniform_hint = opt_prop_def(UnitAttr, prop_name="omitUniformHint")
    result = result_def(I32)
    form = "{}"
    infer = {"result": i32}
    traits = traits_def(Pure())


class MaskReturnOp(Op):
    """The results of the masked code: ``ttg.mask.return %x : i32``."""

    name = "ttg.mask.return"
    result = var_operand_def()
    form = COMBINE_RETURN
    traits = traits_def(Pure(), IsTerminator())


class MaskOp(Op):
    """Code that counts only where the predicate is true. Printed in generic form: ``"ttg.mask"(%p) ({...}) : ...``."""

    name = "ttg.mask"
    pred = operand_def(I1)
    result = var_result_def()
    body = region_def()
    traits = traits_def(RecursiveMemoryEffect())

    def verify_(self) -> None:
        last = self.body.blocks[0].last_op if self.body.blocks else None
        if not isinstance(last, MaskReturnOp):
            raise VerifyException(
                f"ttg.mask must end with ttg.mask.return, not {'nothing' if last is None else last.name}"
            )
        if (found := [v.type for v in last.operands]) != (wanted := [v.type for v in self.result]):
            raise VerifyException(f"ttg.mask gives {names(wanted)}, but its body returns {names(found)}")


class PredicateStageOp(Op):
    """The predicate of a pipeline stage: ``%p = ttg.predicate_stage %i, %end, %step maxStage 2 stage 0 : i32 ->
    i1``."""

    name = "ttg.predicate_stage"
    iv = operand_def(SCALAR)
    ub = operand_def(SCALAR)
    step = operand_def(SCALAR)
    max_stage = prop_def(I32_PROPERTY, prop_name="maxStage")
    stage = prop_def(I32_PROPERTY)
    result = result_def(I1)
    form = "$operands maxStage $max_stage stage $stage {} : type($iv) -> type($result)"
    infer = {"ub": "iv", "step": "iv"}
    traits = traits_def(Pure())

    def verify_(self) -> None:
        if len({value.type for value in self.operands}) > 1:
            raise VerifyException(
                f"ttg.predicate_stage needs operands of one type, got {names([v.type for v in self.operands])}"
            )
