"""Loops that carry more, and branches that give more: what is added comes behind what is there, in place.

(%n,) = also_carry(loop, [%zero])            scf.for ... iter_args(..., %n = %zero) -> (..., i32)
also_yield(body_of(loop), [%next])             scf.yield ..., %next
"""

from collections.abc import Sequence

from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.ir.create import add_result
from tilework.ir.nesting import body_of, end_of


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
