"""A loop whose step is not positive would never end: stop the kernel instead.

    scf.for %i = %lb to %ub step %s {...}   ==>   %ok = arith.cmpi sgt, %s, %zero : i32
                                                  tt.assert %ok, "the step of a loop must be positive" : i1
                                                  scf.for %i = %lb to %ub step %s {...}

Loops with a constant step are left alone: the frontend has refused those that are not positive, or turned them around.
Stage: TTIR to TTIR. Cost: one walk.
"""

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.arith_ext import cmpi
from tilework.ir.create import create_op
from tilework.ir.rewrite import constant, constant_value, insert_before
from tilework.ir.types import string_attr
from tilework.transforms.passes import Pass

MESSAGE = "the step of a loop must be positive"


class CheckStepsPass(Pass):
    name = "ttc-check-steps"

    def run(self, module: ModuleOp) -> None:
        for loop in tuple(module.walk()):
            if type(loop) is scf.ForOp and constant_value(loop.operands[2]) is None:
                check_step(loop)


def check_step(loop: Operation) -> None:
    """Put the assertion in front of `loop`."""
    step = loop.operands[2]
    zero = constant(0, step.type, loop.location)
    positive = cmpi("sgt", step, zero.results[0], loop.location)
    properties = {"message": string_attr(MESSAGE)}
    insert_before(loop, zero, positive, create_op(tt.AssertOp, (positive.results[0],), (), loop.location, properties))
