"""`ttg` ops that exist only inside the pipeliner: code of a stage that may not run in the first or last iterations."""

from xdsl.irdl import operand_def, prop_def, region_def, result_def, traits_def, var_operand_def, var_result_def
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import I1, I32_PROPERTY, SCALAR, names
from tilework.ir.declare import Op
from tilework.ir.forms import COMBINE_RETURN


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
    """Whether a stage has work: ``%p = ttg.predicate_stage %i, %end, %step maxStage 2 stage 0 : i32 -> i1``."""

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
