"""`ttg` ops that exist only inside the pipeliner: code of a stage that may not run in the first or last iterations."""

from collections.abc import Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import IntegerAttr, LocationAttr
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.tt.constraints import I1, SCALAR, names
from tilework.ir.tt.forms import CombineReturnForm
from tilework.ir.tt.text_parts import (
    Attributes,
    parse_attr_dict,
    parse_conversion_type,
    parse_operands,
    print_attr_dict,
    print_conversion_type,
    print_operands,
)
from tilework.ir.types import i1, i32, int_attr


@irdl_op_definition
class MaskReturnOp(CombineReturnForm):
    """The results of the masked code: ``ttg.mask.return %x : i32``."""

    name = "ttg.mask.return"
    result = var_operand_def()
    traits = traits_def(Pure(), IsTerminator())


@irdl_op_definition
class MaskOp(IRDLOperation):
    """Code that counts only where the predicate is true. Printed in generic form: ``"ttg.mask"(%p) ({...}) : ...``."""

    name = "ttg.mask"
    pred = operand_def(I1)
    result = var_result_def()
    body = region_def()
    traits = traits_def(RecursiveMemoryEffect())

    @classmethod
    def make(cls, pred: SSAValue, types: Sequence[Attribute], body: Region, loc: LocationAttr) -> Self:
        return cls.create(operands=(pred,), result_types=types, regions=(body,), location=loc)

    def verify_(self) -> None:
        last = self.body.blocks[0].last_op if self.body.blocks else None
        if not isinstance(last, MaskReturnOp):
            raise VerifyException(
                f"ttg.mask must end with ttg.mask.return, not {'nothing' if last is None else last.name}"
            )
        if (found := [v.type for v in last.operands]) != (wanted := [v.type for v in self.result]):
            raise VerifyException(f"ttg.mask gives {names(wanted)}, but its body returns {names(found)}")


@cache
def stage_properties(max_stage: int, stage: int) -> Attributes:
    return {"maxStage": int_attr(max_stage, i32), "stage": int_attr(stage, i32)}


@irdl_op_definition
class PredicateStageOp(IRDLOperation):
    """Whether a stage has work: ``%p = ttg.predicate_stage %i, %end, %step maxStage 2 stage 0 : i32 -> i1``."""

    name = "ttg.predicate_stage"
    iv = operand_def(SCALAR)
    ub = operand_def(SCALAR)
    step = operand_def(SCALAR)
    max_stage = prop_def(IntegerAttr, prop_name="maxStage")
    stage = prop_def(IntegerAttr)
    result = result_def(I1)
    traits = traits_def(Pure())

    @classmethod
    def make(cls, iv: SSAValue, ub: SSAValue, step: SSAValue, max_stage: int, stage: int, loc: LocationAttr) -> Self:
        return create_op(cls, (iv, ub, step), (i1,), loc, stage_properties(max_stage, stage))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        parser.parse_keyword("maxStage")
        max_stage = parser.parse_integer()
        parser.parse_keyword("stage")
        stage = parser.parse_integer()
        properties, attributes = parse_attr_dict(cls, parser)
        source, result = parse_conversion_type(parser)
        return cls.create(
            operands=[parser.resolve_operand(operand, source) for operand in operands],
            result_types=(result,),
            properties={**properties, **stage_properties(max_stage, stage)},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        printer.print_string(f" maxStage {self.max_stage.value.data} stage {self.stage.value.data}")
        print_attr_dict(self, printer, ("maxStage", "stage"))
        print_conversion_type(printer, self.operands[0].type, self.results[0].type)

    def verify_(self) -> None:
        if len({value.type for value in self.operands}) > 1:
            raise VerifyException(
                f"ttg.predicate_stage needs operands of one type, got {names([v.type for v in self.operands])}"
            )
