"""Cheap constructors for control flow: xDSL's `scf` and `cf` ops, built without argument processing."""

from collections.abc import Mapping, Sequence

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from tilework.ir.create import create_op
from tilework.ir.types import i32_array


def make_for(
    lb: SSAValue,
    ub: SSAValue,
    step: SSAValue,
    iter_args: Sequence[SSAValue],
    body_region: Region,
    loc: LocationAttr,
    attributes: Mapping[str, Attribute] | None = None,
) -> scf.ForOp:
    """``scf.for``; the body's block takes the index, then one argument per carried value."""
    return scf.ForOp.create(
        operands=(lb, ub, step, *iter_args),
        result_types=[value.type for value in iter_args],
        attributes=attributes or {},
        regions=(body_region,),
        location=loc,
    )


def make_if(
    cond: SSAValue,
    result_types: Sequence[Attribute],
    then_region: Region,
    else_region: Region | None,
    loc: LocationAttr,
) -> scf.IfOp:
    """``scf.if``; both regions end with a yield."""
    return scf.IfOp.create(
        operands=(cond,),
        result_types=result_types,
        regions=(then_region, Region() if else_region is None else else_region),
        location=loc,
    )


def make_while(
    inits: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    before_region: Region,
    after_region: Region,
    loc: LocationAttr,
) -> scf.WhileOp:
    """``scf.while``; `before_region` ends with a condition, `after_region` with a yield."""
    return scf.WhileOp.create(
        operands=inits, result_types=result_types, regions=(before_region, after_region), location=loc
    )


def make_yield(values: Sequence[SSAValue], loc: LocationAttr) -> scf.YieldOp:
    """``scf.yield``."""
    return create_op(scf.YieldOp, values, (), loc)


def make_condition(cond: SSAValue, values: Sequence[SSAValue], loc: LocationAttr) -> scf.ConditionOp:
    """``scf.condition``: go on with the loop while `cond`; `values` go to the body, or are the results."""
    return create_op(scf.ConditionOp, (cond, *values), (), loc)


def make_br(block: Block, args: Sequence[SSAValue], loc: LocationAttr) -> cf.BranchOp:
    """``cf.br``."""
    return cf.BranchOp.create(operands=args, successors=(block,), location=loc)


def make_cond_br(
    cond: SSAValue,
    true_block: Block,
    true_args: Sequence[SSAValue],
    false_block: Block,
    false_args: Sequence[SSAValue],
    loc: LocationAttr,
) -> cf.ConditionalBranchOp:
    """``cf.cond_br``."""
    return cf.ConditionalBranchOp.create(
        operands=(cond, *true_args, *false_args),
        properties={"operandSegmentSizes": i32_array(1, len(true_args), len(false_args))},
        successors=(true_block, false_block),
        location=loc,
    )
