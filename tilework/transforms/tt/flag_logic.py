"""Boolean logic on i1 values: the definition of a flag, and what its value implies.

    %stop = scf.if %c -> (i1) { ...; scf.yield %d } else { scf.yield %true }

If %stop is false, so is %d, and %c is true.
"""

import operator
from collections.abc import Callable, Iterator
from itertools import product

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilework.ir import arith, scf
from tilework.ir.arith import INVERSE, SelectOp, predicate_of
from tilework.ir.nesting import enclosing_op, end_of, start_of
from tilework.ir.rewrite import constant, constant_value, defining_op, put, replace_uses
from tilework.ir.types import i1

LOGIC: dict[type[Operation], Callable[[bool, bool], bool]] = {
    arith.AndIOp: operator.and_,
    arith.OrIOp: operator.or_,
    arith.XOrIOp: operator.xor,
}


def assume(value: SSAValue, known: bool, scope: Block) -> None:
    """Replace `value` by `known` in `scope`, and every value by what that implies for it."""
    op = defining_op(value)
    if op is None or type(op) is arith.ConstantOp:
        return
    if any(is_under(use.operation, scope) for use in value.uses):
        known_value = put(start_of(scope), constant(int(known), i1, op.location))
        replace_uses(value, known_value, lambda user: is_under(user, scope))
    for other, is_same in compared_alike(op):
        if any(is_under(use.operation, scope) for use in other.uses):
            assume(other, known if is_same else not known, scope)
    if (opposite := inverted(value)) is not None:
        assume(opposite, not known, scope)
    elif isinstance(op, arith.AndIOp if known else arith.OrIOp):
        for operand in op.operands:
            assume(operand, known, scope)
    elif (choice := choice_of(value)) is not None and is_under(op, scope):
        condition, *given = choice
        for side, holds in enumerate((True, False)):
            if constant_value(given[side]) == int(not known):
                assume(condition, not holds, scope)
                assume(given[1 - side], known, scope_of(op, 1 - side, scope))
            elif op.regions:
                assume(given[side], known, scope_of(op, side, scope))


def scope_of(op: Operation, side: int, scope: Block) -> Block:
    """The scope in which `side` is chosen: its branch; everywhere for a select, which is only evaluated where its
    condition is known."""
    return op.regions[side].blocks[0] if op.regions else scope


def compared_alike(op: Operation) -> Iterator[tuple[SSAValue, bool]]:
    """Other comparisons of what `op` compares that say the same, or the opposite."""
    if type(op) is not arith.CmpiOp:
        return
    own = predicate_of(op)
    for use in tuple(op.operands[0].uses):
        other = use.operation
        if type(other) is arith.CmpiOp and other is not op and tuple(other.operands) == tuple(op.operands):
            if (predicate := predicate_of(other)) == own or predicate == INVERSE[own]:
                yield other.results[0], predicate == own


def comparison_of(value: SSAValue) -> tuple[int, SSAValue, SSAValue] | None:
    """Predicate and operands of a comparison of integers."""
    op = defining_op(value)
    return (predicate_of(op), *op.operands) if isinstance(op, arith.CmpiOp) else None  # pyright: ignore


def choice_of(value: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue] | None:
    """The condition of a branch or select, and what `value` is on its two sides."""
    op = defining_op(value)
    if isinstance(op, SelectOp):
        return tuple(op.operands)  # pyright: ignore[reportReturnType]
    if isinstance(op, scf.IfOp):
        yes, no = (end_of(region.blocks[0]).operands[value.index] for region in op.regions)  # pyright: ignore
        return op.operands[0], yes, no
    return None


def is_none_of(value: SSAValue, block: Block) -> bool:
    """Return True if `value` is true exactly if none of the arguments of `block` that it is computed from is."""
    flags = list(dict.fromkeys(arguments_in(value)))
    if not flags or len(flags) > 2 or not all(flag.block is block for flag in flags):
        return False
    tries = product((False, True), repeat=len(flags))
    return all(truth(value, dict(zip(flags, given, strict=True))) is not any(given) for given in tries)


def truth(value: SSAValue, given: dict[BlockArgument, bool]) -> bool | None:
    """The truth value of an i1 expression for the given arguments; None if it is no pure logic."""
    if isinstance(value, BlockArgument):
        return given.get(value)
    op = defining_op(value)
    if (known := constant_value(value)) is not None:
        return bool(known)
    if type(op) not in LOGIC:
        return None
    one, other = (truth(operand, given) for operand in op.operands)  # pyright: ignore[reportOptionalMemberAccess]
    return None if one is None or other is None else LOGIC[type(op)](one, other)  # pyright: ignore[reportArgumentType]


def is_under(op: Operation, block: Block) -> bool:
    """Return True if `op` is in `block` or nested in it."""
    return enclosing_op(op, block) is not None


def inverted(value: SSAValue) -> SSAValue | None:
    """`x` of ``not x``."""
    op = defining_op(value)
    is_not = type(op) is arith.XOrIOp and constant_value(op.operands[1]) == 1
    return op.operands[0] if op is not None and is_not else None


def arguments_in(value: SSAValue) -> Iterator[BlockArgument]:
    """The arguments of blocks that `value` is computed from."""
    if isinstance(value, BlockArgument):
        yield value
    elif (op := defining_op(value)) is not None:
        for operand in op.operands:
            yield from arguments_in(operand)


def only_ends(flag: SSAValue, user: Operation, body: Block) -> bool:
    """Return True if nothing in `body` but `user`, which passes it on, depends on `flag` or its conditions."""
    if any(use.operation is not user and is_under(use.operation, body) for use in flag.uses):
        return False
    op = defining_op(flag)
    if op is None or not is_under(op, body):
        return True
    if any(is_under(use.operation, body) for other, _ in compared_alike(op) for use in other.uses):
        return False
    if type(op) in LOGIC:
        return all(only_ends(operand, op, body) for operand in op.operands if constant_value(operand) is None)
    if (choice := choice_of(flag)) is None:
        return True
    if not op.regions or 1 in map(constant_value, choice[1:]):
        return False
    return all(
        only_ends(given, end_of(region.blocks[0]), body) for given, region in zip(choice[1:], op.regions, strict=True)
    )
