"""Loops that carry more, and branches that give more: what is added comes behind what is there, in place.

(%n,) = also_carry(loop, [%zero])            scf.for ... iter_args(..., %n = %zero) -> (..., i32)
also_yield(body_of(loop), [%next])             scf.yield ..., %next
"""

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.ir.create import add_result
from tilework.ir.nesting import body_of, end_of
from tilework.ir.scf_ext import make_yield


def also_carry(loop: Operation, values: Sequence[SSAValue]) -> list[BlockArgument]:
    """The new arguments of an `scf.for`, which starts with `values` and has results for them; yields are for the caller."""
    body = body_of(loop)
    loop.operands = (*loop.operands, *values)
    for value in values:
        also_give(loop, value.type)
    return [body.insert_arg(value.type, len(body.args)) for value in values]


def also_give(op: Operation, type: Attribute) -> OpResult:
    """A further result; the name that was given to those before does not stand for all of them."""
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

    `given(value, like, before)` are those of a value that becomes `like`, known in front of `before`. What stands beside an argument
    or a result is told to `learn`; blocks are visited when their arguments have been, and before their ends are asked.
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
