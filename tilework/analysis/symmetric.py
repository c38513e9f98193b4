"""Functions of two tuples whose arguments may change places: reductions may combine with them in any order.

    (a, b), (c, d) -> (a + c, max(b, d))     the same expressions of (c, d), (a, b), if the operands of + and max may change places
    argmax                                   a choice of one of the two (`choices.py`)

What is not proved is taken for a function that depends on the order.
"""

from collections.abc import Hashable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS
from xdsl.ir import Block, Operation, SSAValue

from tilework.analysis.choices import is_choice
from tilework.ir.effects import is_pure
from tilework.ir.integer_ops import predicate_of
from tilework.ir.nesting import end_of

SYMMETRIC: frozenset[type[Operation]] = frozenset({
    arith.AddfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp,
    arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp,
    arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp,
})  # fmt: skip
COMPARISONS: dict[type[Operation], Sequence[str]] = {
    arith.CmpiOp: CMPI_COMPARISON_OPERATIONS,
    arith.CmpfOp: CMPF_COMPARISON_OPERATIONS,
}
SWAPPED = str.maketrans("lg", "gl")  # slt and sgt, ole and oge ...


def is_symmetric(block: Block) -> bool:
    """Whether the function of one block is proved to be one of those."""
    if is_choice(block):
        return True
    if any(inner.regions or not is_pure(inner) for inner in block.ops if inner is not block.last_op):
        return False
    count, numbers = len(block.args) // 2, dict[Hashable, int]()
    swapped = (*block.args[count:], *block.args[:count])
    return results(block, block.args, numbers) == results(block, swapped, numbers)


def results(block: Block, args: Sequence[SSAValue], numbers: dict[Hashable, int]) -> list[int]:
    """What the function returns, as numbers of expressions, if its arguments are called by their places in `args`."""
    known = {arg: numbers.setdefault(("argument", place), len(numbers)) for place, arg in enumerate(args)}

    def number(value: SSAValue) -> int:
        return known[value] if value in known else numbers.setdefault(value, len(numbers))

    for op in block.ops:
        operands, told = list(map(number, op.operands)), tuple(sorted(op.properties.items()))
        for place, result in enumerate(op.results):
            expression = (type(op), place, result.type, *ordered(op, operands, told))
            known[result] = numbers.setdefault(expression, len(numbers))
    return [number(value) for value in end_of(block).operands]


def ordered(op: Operation, operands: list[int], told: Hashable) -> tuple[Hashable, ...]:
    """The operands in one order, where they may change places, and the properties that belong to it."""
    if type(op) in SYMMETRIC:
        return told, *sorted(operands)
    if (names := COMPARISONS.get(type(op))) is None:
        return told, *operands
    name = names[predicate_of(op)]
    if operands != sorted(operands):
        name = name.translate(SWAPPED)
    return name, *sorted(operands)
