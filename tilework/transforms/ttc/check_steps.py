"""A loop whose step is not positive would never end: stop the kernel instead.

    scf.for %i = %lb to %ub step %s {...}   ==>   %ok = arith.cmpi sgt, %s, %zero : i32
                                                  tt.assert %ok, "the step of a loop must be positive" : i1
                                                  scf.for %i = %lb to %ub step %s {...}

Loops with a constant step are left alone: the frontend has refused those that are not positive, or reversed the loop.
Stage: TTIR to TTIR. Cost: one walk.
"""

from xdsl.dialects import scf
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.arith_ext import cmpi
from tilework.ir.create import create_op
from tilework.ir.rewrite import constant, constant_value, insert_before
from tilework.ir.types import string_attr
from tilework.transforms.passes import op_pass

MESSAGE = "the step of a loop must be positive"


@op_pass("ttc-check-steps", scf.ForOp)
def check_step(loop: Operation) -> None:
    """Put the assertion in front of `loop`, if its step is not known."""
    step = loop.operands[2]
    if constant_value(step) is not None:
        return
    zero = constant(0, step.type, loop.location)
    positive = cmpi("sgt", step, zero.results[0], loop.location)
    properties = {"message": string_attr(MESSAGE)}
    insert_before(loop, zero, positive, create_op(tt.AssertOp, (positive.results[0],), (), loop.location, properties))
