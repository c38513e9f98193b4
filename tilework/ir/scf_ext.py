"""Control flow: cheap constructors of xDSL's `scf` and `cf` ops, loop options as attributes, and additional
loop-carried values.

    tl.range(0, n, num_stages=4, flatten=True)   ->   {tt.flatten, tt.num_stages = 4 : i32}

Loops and branches get further values in place, after the existing ones:

    (%n,) = also_carry(loop, [%zero])            scf.for ... iter_args(..., %n = %zero) -> (..., i32)
    also_yield(body_of(loop), [%next])             scf.yield ..., %next
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.dialects import cf, scf, ub
from xdsl.dialects.builtin import LocationAttr, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue

from tilework.ir.create import add_result, create_op
from tilework.ir.llvm import LICM_DISABLED
from tilework.ir.nesting import body_of, end_of
from tilework.ir.types import i32, i32_array, int_attr


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


NUMBERS = ("num_stages", "loop_unroll_factor")
UNIT = UnitAttr()
COUNTED = "tt.counted"  # of an `scf.while`: a `for` that may be left early
SKIPS = "tt.skips"  # of a loop: it has `continue`
POISON = ub.PoisonAttr()


def loop_attributes(hints: Mapping[str, Any]) -> dict[str, Attribute]:
    """The attributes of a loop, in alphabetical order; a hint that is None or False is absent."""
    found: dict[str, Attribute] = {}
    for name, value in sorted(hints.items()):
        if value is None or value is False:
            continue
        if name == "disable_licm":
            found["llvm.loop_annotation"] = LICM_DISABLED
        else:
            found[f"tt.{name}"] = int_attr(int(value), i32) if name in NUMBERS else UNIT
    return dict(sorted(found.items()))


def poison(type: Attribute, loc: LocationAttr) -> ub.PoisonOp:
    """``ub.poison : type``: no particular value."""
    return ub.PoisonOp.create(result_types=(type,), properties={"value": POISON}, location=loc)


def also_carry(loop: Operation, values: Sequence[SSAValue]) -> list[BlockArgument]:
    """The new arguments of an `scf.for`, which starts with `values` and has results for them; yields are for the
    caller."""
    body = body_of(loop)
    loop.operands = (*loop.operands, *values)
    for value in values:
        also_give(loop, value.type)
    return [body.insert_arg(value.type, len(body.args)) for value in values]


def also_give(op: Operation, type: Attribute) -> OpResult:
    """A further result; the name that was given to those before does not cover all of them."""
    for result in op.results:
        result.name_hint = None
    return add_result(op, type)


def also_yield(block: Block, values: Sequence[SSAValue]) -> None:
    """Hand `values` on at the end of `block`, too."""
    end = end_of(block)
    end.operands = (*end.operands, *values)


def both_sides(branch: Operation) -> list[Block]:
    """The blocks of an `scf.if`; one that it lacks is made."""
    for region in branch.regions:
        if not region.blocks:
            region.add_block(Block([make_yield((), branch.location)]))
    return [region.blocks[0] for region in branch.regions]


def carry_beside(
    op: Operation,
    wanted: Callable[[SSAValue], bool],
    types: Callable[[SSAValue], Sequence[Attribute]],
    given: Callable[[SSAValue, SSAValue, Operation], Sequence[SSAValue]],
    learn: Callable[[SSAValue, Sequence[SSAValue]], None],
    visit: Callable[[Block], None] = lambda block: None,
) -> None:
    """Let a loop or branch hand on, beside each value that is `wanted`, further ones of the `types` for it.

    `given(value, like, before)` are those of a value that becomes `like`, known in front of `before`. What stands
    beside an argument or a result is told to `learn`; blocks are visited when their arguments have been, and before
    their ends are asked.
    """

    def hand(end: Operation, first: int, likes: Sequence[SSAValue]) -> None:
        places = [(end.operands[first + n], like) for n, like in enumerate(likes) if wanted(like)]
        end.operands = (*end.operands, *[new for value, like in places for new in given(value, like, end)])

    def through(block: Block, arguments: Sequence[SSAValue], first: int, likes: Sequence[SSAValue]) -> None:
        for argument in arguments:
            if wanted(argument):
                learn(argument, [block.insert_arg(type, len(block.args)) for type in types(argument)])
        visit(block)
        hand(end_of(block), first, likes)

    blocks, results = [region.blocks[0] for region in op.regions if region.blocks], tuple(op.results)
    own = [tuple(block.args) for block in blocks]
    if type(op) is scf.ForOp:
        hand(op, 3, own[0][1:])
        through(blocks[0], own[0][1:], 0, results)
    elif type(op) is scf.WhileOp:
        hand(op, 0, own[0])
        through(blocks[0], own[0], 1, own[1])
        through(blocks[1], own[1], 0, own[0])
    else:
        for block in blocks:
            through(block, (), 0, results)
    for result in results:
        if wanted(result):
            learn(result, [also_give(op, type) for type in types(result)])
