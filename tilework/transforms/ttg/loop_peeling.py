"""Peel the last iteration of a loop.

    scf.for %i = %lb to %ub step %s {          %r = scf.for %i = %lb to %ub - %s step %s { body(%i) }
      body(%i)                                 %last = %lb + ((%ub - %lb - 1) / %s) * %s
    }                                   ==>    scf.if %lb < %ub { body(%last) } else { yield %r }

Ops that the last iteration does not need can then be removed from it. The pass is for tests: it peels loops with
`__test_peel_epilogue`.
Stage: any. Cost: a copy of the body.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.ir import arith
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import insert_after, replace_uses
from tilework.ir.scf import make_if, make_yield
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import module_pass
from tilework.transforms.ttg.pipeline.expand import copy_op
from tilework.transforms.ttg.pipeline.loops import body_ops, is_inside, loops_in, yield_of

MARK = "__test_peel_epilogue"


@module_pass("triton-test-loop-peeling")
def loop_peeling(module: ModuleOp) -> None:
    for loop in loops_in(module):
        if loop.attributes.pop(MARK, None) is not None:
            peel_last(loop)


def peel_last(loop: Operation) -> Operation:
    """Let `loop` end one iteration early, and run the last one after it, in the `scf.if` that is returned."""
    lower, upper, step = loop.operands[:3]
    before = Emitter(loop.location)
    end = before.binary(arith.SubiOp, upper, step)
    before.insert_before(loop)
    code = Emitter(loop.location)
    span = code.binary(arith.SubiOp, upper, lower)
    span = code.binary(arith.SubiOp, span, code.constant(1, lower.type))
    steps = code.binary(arith.DivSIOp, span, step)
    last = code.binary(arith.AddiOp, code.binary(arith.MuliOp, steps, step), lower)
    exists = code.compare("slt", lower, upper)
    otherwise = Region(Block([make_yield(loop.results, loop.location)])) if loop.results else None
    types = [result.type for result in loop.results]
    peeled = make_if(exists, types, Region(last_iteration(loop, last)), otherwise, loop.location)
    for result, new in zip(loop.results, peeled.results, strict=True):
        replace_uses(result, new, lambda user: not is_inside(user, peeled))
    insert_after(loop, *code.ops, peeled)
    loop.operands[1] = end
    return peeled


def last_iteration(loop: Operation, counter: SSAValue) -> Block:
    """Return a copy of the body for `counter`, on the results of the loop."""
    body = body_of(loop)
    mapping: dict[SSAValue, SSAValue] = {}
    mapping.update(zip(body.args, (counter, *loop.results), strict=True))
    block = Block([copy_op(op, mapping) for op in body_ops(loop)])
    values = [mapping.get(value, value) for value in yield_of(loop).operands]
    block.add_op(make_yield(values, loop.location))
    return block
