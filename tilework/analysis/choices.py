"""Functions of two tuples that give one of them, and the same one if the two change places: argmax is one.

    ^bb0(%a: i32, %i: i32, %b: i32, %j: i32):
      %more = arith.cmpi sgt, %a, %b             c is true for one of (a, i), (b, j) and (b, j), (a, i), unless they are equal:
      %same = arith.cmpi eq, %a, %b              this is found out by computing c for all ways in which a and b,
      %left = arith.cmpi slt, %i, %j             and i and j, may be compared
      %tie = arith.andi %same, %left
      %c = arith.ori %more, %tie
      %x = arith.select %c, %a, %b
      %y = arith.select %c, %i, %j
      tt.reduce.return %x, %y

Which of two NaNs is chosen is not asked.
"""

from collections.abc import Callable, Iterator
from itertools import product
from math import isnan, nan

from xdsl.dialects import arith
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS
from xdsl.ir import Block, Operation, SSAValue

from tilework.ir.arith_ext import SelectOp
from tilework.ir.integer_ops import predicate_of
from tilework.ir.nesting import end_of
from tilework.ir.rewrite import constant_value, defining_op
from tilework.ir.types import is_float

Number = int | float
Pair = tuple[Number, Number]
ORDERED: tuple[Pair, ...] = ((0, 1), (0, 0), (1, 0))
UNORDERED: tuple[Pair, ...] = ((nan, 0), (0, nan))
MOST = 3  # values of a tuple
BY_NAME: dict[str, Callable[[Number, Number], bool]] = {
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
}
LOGIC: dict[type[Operation], Callable[..., Number]] = {
    arith.AndIOp: lambda x, y: x & y,
    arith.OrIOp: lambda x, y: x | y,
    arith.XOrIOp: lambda x, y: x ^ y,
    SelectOp: lambda c, x, y: x if c else y,
}


def is_choice(block: Block) -> bool:
    """See the module."""
    count = len(block.args) // 2
    condition = chooser(block, count)
    if condition is None or count > MOST:
        return False
    for pairs in tuples(block, count):
        one, other = (decided(condition, block, pairs), decided(condition, block, [(y, x) for x, y in pairs]))
        if one is None or (one == other and any(x != y for x, y in pairs)):
            return False
    return True


def chooser(block: Block, count: int) -> SSAValue | None:
    """The condition on which all of the first tuple is chosen."""
    found: SSAValue | None = None
    for place, made in enumerate(end_of(block).operands):
        choice = defining_op(made)
        if not isinstance(choice, SelectOp) or found not in (None, choice.operands[0]):
            return None
        found = choice.operands[0]
        if tuple(choice.operands[1:]) != (block.args[place], block.args[count + place]):
            return None
    return found


def tuples(block: Block, count: int) -> Iterator[list[Pair]]:
    """Pairs of values that are smaller, equal, larger, and of floats not to be compared."""
    ways = [(*ORDERED, *(UNORDERED if is_float(arg.type) else ())) for arg in block.args[:count]]
    yield from map(list, product(*ways))


def decided(condition: SSAValue, block: Block, pairs: list[Pair]) -> bool | None:
    """The condition for these values; None if it is more than comparisons of values of the same place."""
    count = len(pairs)
    known: dict[SSAValue, Number] = dict(zip(block.args, [x for x, _ in pairs] + [y for _, y in pairs], strict=True))
    places: dict[SSAValue, int] = {arg: number % count for number, arg in enumerate(block.args)}
    for op in block.ops:
        kind = type(op)
        if kind in (arith.CmpiOp, arith.CmpfOp):
            left, right = op.operands
            if places.get(left, -1) != places.get(right, -2):
                return None
            known[op.results[0]] = compared(op, known[left], known[right])
        elif (rule := LOGIC.get(kind)) is not None:
            values = [known.get(operand, constant_value(operand)) for operand in op.operands]
            if None in values or (kind is not SelectOp and any(operand in places for operand in op.operands)):
                return None
            known[op.results[0]] = rule(*values)
    return bool(known[condition]) if condition in known else None


def compared(op: Operation, x: Number, y: Number) -> int:
    names = CMPI_COMPARISON_OPERATIONS if type(op) is arith.CmpiOp else CMPF_COMPARISON_OPERATIONS
    name = names[predicate_of(op)]
    if isnan(x) or isnan(y) or name in ("true", "false"):
        return name[0] in "ut"
    return int(name == "ord" or (name != "uno" and BY_NAME[name[-2:]](x, y)))
