"""Facts about the combine functions of reductions: whether they are commutative, and in which order a reduction
combines.

    sum, max, xor ...               any order: the function is one commutative op
    argmax, (sum, max) of pairs     any order: the same is shown of longer functions (`is_commutative`)
    (a, b), (c, d) -> (ac, bc + d)  the order of the axis: the function is only known to be associative

A function of two tuples is commutative if swapping the tuples does not change it:

    (a, b), (c, d) -> (a + c, max(b, d))     the same expressions of (c, d), (a, b), because + and max are commutative
    argmax                                   selects one of the two (`is_choice`)

A function for which this is not shown counts as one that depends on the order. A choice is a function that returns one
of the two tuples, and the same one if they are swapped:

    ^bb0(%a: i32, %i: i32, %b: i32, %j: i32):
      %more = arith.cmpi sgt, %a, %b             c is true for one of (a, i), (b, j) and (b, j), (a, i), unless they are
      %same = arith.cmpi eq, %a, %b              equal: `is_choice` computes c for all orders of a and b, and of i and j
      %left = arith.cmpi slt, %i, %j
      %tie = arith.andi %same, %left
      %c = arith.ori %more, %tie
      %x = arith.select %c, %a, %b
      %y = arith.select %c, %i, %j
      tt.reduce.return %x, %y

It does not matter which of two NaNs is chosen.

The positions of elements along the axis are known to ascend where a thread combines its own registers, so that function
compares none (`in_axis_order`): one of the two tuples of argmax is chosen by `%a >= %b`.

A GPU combines the registers of a thread first, then lanes, then warps. If a layout follows the axis in this way,
elements are combined in their order; a layout that `wraps` has registers after warps, and is combined bit by bit of the
index (`follows_axis`).
"""

import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import product
from math import isnan, nan
from typing import NamedTuple

from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.ir import arith, tt, ttg
from tilework.ir.arith import CMPF_PREDICATES, CMPI_PREDICATES, SelectOp, predicate_of
from tilework.ir.effects import is_pure
from tilework.ir.encodings import layout_of
from tilework.ir.module_facts import follows_tree
from tilework.ir.nesting import end_of, only_op
from tilework.ir.rewrite import constant, constant_value, defining_op, replace_op
from tilework.ir.types import axis_of, i1, int_property, is_float, shape_of
from tilework.layouts.linear import LinearLayout

Scalar = int | float
Pair = tuple[Scalar, Scalar]
ORDERED: tuple[Pair, ...] = ((0, 1), (0, 0), (1, 0))
UNORDERED: tuple[Pair, ...] = ((nan, 0), (0, nan))
MOST = 3  # values of a tuple
LOGIC: dict[type[Operation], Callable[..., Scalar]] = {
    arith.AndIOp: operator.and_,
    arith.OrIOp: operator.or_,
    arith.XOrIOp: operator.xor,
    SelectOp: lambda c, x, y: x if c else y,
}


def is_choice(block: Block) -> bool:
    """Return True if the function of a block is a choice; see the module."""
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
    """Return the condition on which all of the first tuple is chosen."""
    found: SSAValue | None = None
    for index, result in enumerate(end_of(block).operands):
        choice = defining_op(result)
        if not isinstance(choice, SelectOp) or found not in (None, choice.operands[0]):
            return None
        found = choice.operands[0]
        if tuple(choice.operands[1:]) != (block.args[index], block.args[count + index]):
            return None
    return found


def tuples(block: Block, count: int) -> Iterator[list[Pair]]:
    """Yield pairs of values that are less, equal, greater, and for floats unordered."""
    ways = [(*ORDERED, *(UNORDERED if is_float(arg.type) else ())) for arg in block.args[:count]]
    yield from map(list, product(*ways))


def decided(condition: SSAValue, block: Block, pairs: list[Pair]) -> bool | None:
    """Return the condition for these values; None if it is more than comparisons of values at the same index."""
    count = len(pairs)
    known: dict[SSAValue, Scalar] = dict(zip(block.args, [x for x, _ in pairs] + [y for _, y in pairs], strict=True))
    indices: dict[SSAValue, int] = {arg: position % count for position, arg in enumerate(block.args)}
    for op in block.ops:
        kind = type(op)
        if kind in (arith.CmpiOp, arith.CmpfOp):
            left, right = op.operands
            if indices.get(left, -1) != indices.get(right, -2):
                return None
            known[op.results[0]] = compared(op, known[left], known[right])
        elif (rule := LOGIC.get(kind)) is not None:
            values = [known.get(operand, constant_value(operand)) for operand in op.operands]
            if None in values or (kind is not SelectOp and any(operand in indices for operand in op.operands)):
                return None
            known[op.results[0]] = rule(*values)
    return bool(known[condition]) if condition in known else None


def compared(op: Operation, x: Scalar, y: Scalar) -> int:
    names = CMPI_PREDICATES if type(op) is arith.CmpiOp else CMPF_PREDICATES
    name = names[predicate_of(op)]
    if isnan(x) or isnan(y) or name in ("true", "false"):
        return name[0] in "ut"
    return int(name == "ord" or (name != "uno" and getattr(operator, name[-2:])(x, y)))


COMMUTATIVE: frozenset[type[Operation]] = frozenset({
    arith.AddfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp,
    arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp,
    arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp,
})  # fmt: skip
COMPARISONS: dict[type[Operation], Sequence[str]] = {
    arith.CmpiOp: CMPI_PREDICATES,
    arith.CmpfOp: CMPF_PREDICATES,
}
SWAPPED = str.maketrans("lg", "gl")  # slt and sgt, ole and oge ...


def is_commutative(block: Block) -> bool:
    """Return True if the function of one block is shown to be commutative."""
    if is_choice(block):
        return True
    if any(inner.regions or not is_pure(inner) for inner in block.ops if inner is not block.last_op):
        return False
    count, ids = len(block.args) // 2, dict[Hashable, int]()
    swapped = (*block.args[count:], *block.args[:count])
    return results(block, block.args, ids) == results(block, swapped, ids)


def results(block: Block, args: Sequence[SSAValue], ids: dict[Hashable, int]) -> list[int]:
    """Return the results of the function as ids of expressions, with its arguments in the order of `args`."""
    known = {arg: ids.setdefault(("argument", index), len(ids)) for index, arg in enumerate(args)}

    def id_of(value: SSAValue) -> int:
        return known[value] if value in known else ids.setdefault(value, len(ids))

    for op in block.ops:
        operands, properties = list(map(id_of, op.operands)), tuple(sorted(op.properties.items()))
        for index, result in enumerate(op.results):
            expression = (type(op), index, result.type, *ordered(op, operands, properties))
            known[result] = ids.setdefault(expression, len(ids))
    return [id_of(value) for value in end_of(block).operands]


def ordered(op: Operation, operands: list[int], properties: Hashable) -> tuple[Hashable, ...]:
    """Return the operands of a commutative op in one order, and its properties."""
    if type(op) in COMMUTATIVE:
        return properties, *sorted(operands)
    if (names := COMPARISONS.get(type(op))) is None:
        return properties, *operands
    name = names[predicate_of(op)]
    if operands != sorted(operands):
        name = name.translate(SWAPPED)
    return name, *sorted(operands)


LEVELS = ("register", "lane", "warp")


def single_op(region: Region) -> type[Operation] | None:
    """Return the commutative op that is the whole function of two scalars, if it is one."""
    found = type(only_op(region.blocks[0])) if len(region.blocks) == 1 else None
    return found if found in COMMUTATIVE else None


def lanes_agree(region: Region) -> bool:
    """Return True if lanes that combine each other's parts, each its own first, have the same bits.

    A choice may depend on the order if neither is larger. A multiplication, or a division that becomes one, may be
    fused with the addition after it, and then one lane rounds where another does not.
    """
    if single_op(region) is not None:
        return True
    block = region.blocks[0]
    is_exact = not any(isinstance(op, arith.MulfOp | arith.DivfOp) for op in block.ops)
    return len(region.blocks) == 1 and is_exact and not is_choice(block) and is_commutative(block)


def follows_axis(op: Operation) -> bool:
    """Return True if a reduction must combine the bits of the index from the lowest to the highest, wherever the layout
    has them."""
    if follows_tree(op):
        return True
    region = op.regions[0]
    if single_op(region) is not None or not wraps(layout_of(op.operands[0].type), axis_of(op)):
        return False
    return len(region.blocks) > 1 or not is_commutative(region.blocks[0])


def wraps(layout: LinearLayout, axis: int) -> bool:
    """Return True if registers, lanes and warps do not follow each other along `axis`."""
    positions = [
        (vector[axis], LEVELS.index(level)) for level, vectors in layout.bases if level in LEVELS for vector in vectors
    ]
    levels = [level for position, level in sorted(positions) if position]
    return levels != sorted(levels)


SAME_POSITIONS = (arith.ExtSIOp, arith.ExtUIOp, tt.BroadcastOp, ttg.ConvertLayoutOp)


def is_position(value: SSAValue, axis: int) -> bool:
    """Return True for an integer that is not negative and ascends with the position along `axis`."""
    op = defining_op(value)
    if isinstance(op, tt.MakeRangeOp):
        return axis == 0 and int_property(op, "start") >= 0
    if isinstance(op, tt.ExpandDimsOp):
        added = axis_of(op)
        return axis != added and is_position(op.operands[0], axis - (axis > added))
    if not isinstance(op, SAME_POSITIONS) or shape_of(op.operands[0].type)[axis] != shape_of(value.type)[axis]:
        return False
    return is_position(op.operands[0], axis)


class Ordered(NamedTuple):
    """The function of a reduction for tuples of which the first comes first along the axis."""

    region: Region
    chosen: Sequence[int]  # operands that are positions of which the function chooses one, and does nothing else


def in_axis_order(op: Operation) -> Ordered:
    """Return the function of a reduction with constants for the comparisons of two positions along the axis, if it
    returns one of the two: with anything else the left one would be no position after the first combination.
    """
    region, axis, count = op.regions[0], axis_of(op), len(op.operands)
    positions = [index for index, operand in enumerate(op.operands) if is_position(operand, axis)]
    if len(region.blocks) > 1 or not positions:
        return Ordered(region, ())
    made = region.clone()
    block = made.blocks[0]
    both = {index: (block.args[index], block.args[count + index]) for index in positions}
    pairs = {index: pair for index, pair in both.items() if is_one_of(end_of(block).operands[index], pair)}
    for inner in [op for op in block.ops if isinstance(op, arith.CmpiOp)]:
        left, right = inner.operands
        if (left, right) in pairs.values():
            replace_op(inner, constant(bool(compared(inner, 0, 1)), i1, inner.location))
        elif (right, left) in pairs.values():
            replace_op(inner, constant(bool(compared(inner, 1, 0)), i1, inner.location))
    return Ordered(made, [index for index, pair in pairs.items() if is_chosen(block, index, pair)])


def is_one_of(result: SSAValue, pair: tuple[SSAValue, SSAValue]) -> bool:
    choice = defining_op(result)
    return isinstance(choice, SelectOp) and set(choice.operands[1:]) == set(pair)


def is_chosen(block: Block, index: int, pair: tuple[SSAValue, SSAValue]) -> bool:
    """Return True if a result is one of two values, and nothing else uses it or them."""
    return all(value.has_one_use() for value in (end_of(block).operands[index], *pair))
