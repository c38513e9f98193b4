"""Merge loop-carried values that are always equal.

    %r:2 = scf.for ... iter_args(%a = %i, %b = %i) {           %r = scf.for ... iter_args(%a = %i) {
      %s = arith.addi %a, %k                                     %s = arith.addi %a, %k
      %t = arith.addi %b, %k                         ==>         scf.yield %s
      scf.yield %s, %t                                         }
    }                                                          (both results are %r)

Ordinary CSE cannot see this: `%s` equals `%t` only if `%a` equals `%b`, and the reverse. So the pass assumes that
values with equal initial values remain equal, computes value numbers of the body under that assumption, splits the
classes whose yielded values differ, and repeats until nothing splits. The remaining classes are equal in every
iteration. Values that the loop only passes on are dropped too.
Stage: TTIR or TTGIR to itself. Cost: one CSE, or two where loops have such values, and two walks over each loop body.
"""

from collections.abc import Hashable, Sequence

from xdsl.ir import Block, Operation, OpResult, SSAValue

from tilework.ir import scf
from tilework.ir.effects import is_pure
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import end_of
from tilework.ir.rewrite import recreate, replace_op
from tilework.transforms.common.cse import eliminate_common_subexpressions, key_of
from tilework.transforms.passes import function_pass


@function_pass("triton-loop-aware-cse")
def loop_aware_cse(function: Operation) -> None:
    eliminate_common_subexpressions(function)
    loops = loops_within(function)
    merged = [merge_equal(loop, equal_classes(loop)) for loop in loops]
    if any(merged):
        eliminate_common_subexpressions(function)
        loops = loops_within(function)
    for loop in loops:
        drop_forwarded(loop)


def loops_within(op: Operation) -> list[Operation]:
    """The `scf.for` ops under `op`, inner ones first."""
    return [inner for inner in reversed(ops_in_order(*op.regions)) if type(inner) is scf.ForOp]


def equal_classes(loop: Operation) -> list[int]:
    """Return, for each carried value, the index of the first one that is always equal to it."""
    (body,) = loop.regions[0].blocks
    yields = tuple(end_of(body).operands)
    classes = firsts(list(loop.operands[3:]))
    while True:
        numbering = Numbering(body, classes)
        refined = firsts([(own, numbering.of(value)) for own, value in zip(classes, yields, strict=True)])
        if refined == classes:
            return classes
        classes = refined


def firsts(keys: Sequence[Hashable]) -> list[int]:
    """The position of the first key equal to each: ``a b a`` gives 0 1 0."""
    seen: dict[Hashable, int] = {}
    return [seen.setdefault(key, position) for position, key in enumerate(keys)]


class Numbering:
    """Value numbers of a loop body: equal numbers are equal values, if the classes of its arguments hold."""

    def __init__(self, body: Block, classes: Sequence[int]) -> None:
        self.body = body
        self.value_numbers: dict[SSAValue, int] = {
            argument: id(body.args[1 + first]) for argument, first in zip(body.args[1:], classes, strict=True)
        }
        self.keys: dict[Hashable, int] = {}

    def of(self, value: SSAValue) -> int:
        """The value number of `value`; that of a pure op in the body follows from those of its operands."""
        if (number := self.value_numbers.get(value)) is None:
            number = id(value)
            if (
                isinstance(value, OpResult)
                and value.op.parent is self.body
                and is_pure(value.op)
                and not value.op.regions
            ):
                for operand in value.op.operands:
                    self.of(operand)
                number = self.keys.setdefault((value.index, key_of(value.op, self.value_numbers)), number)
            self.value_numbers[value] = number
        return number


def merge_equal(loop: Operation, classes: Sequence[int]) -> bool:
    """Use the first of each class; the others become values that the loop only passes on. True if there are others."""
    (body,) = loop.regions[0].blocks
    terminator = end_of(body)
    for position, first in enumerate(classes):
        if position != first:
            body.args[1 + position].replace_all_uses_with(body.args[1 + first])
            loop.results[position].replace_all_uses_with(loop.results[first])
            terminator.operands[position] = body.args[1 + position]
    return len(set(classes)) < len(classes)


def drop_forwarded(loop: Operation) -> None:
    """Drop the carried values that every iteration passes on unchanged: they are the initial ones."""
    (body,) = loop.regions[0].blocks
    terminator = end_of(body)
    carried, initial, yields = body.args[1:], loop.operands[3:], tuple(terminator.operands)
    kept = [
        value is not argument and value is not start
        for argument, start, value in zip(carried, initial, yields, strict=True)
    ]
    if all(kept):
        return
    terminator.operands = [value for value, keep in zip(yields, kept, strict=True) if keep]
    for argument, start, keep in zip(carried, initial, kept, strict=True):
        if not keep:
            argument.replace_all_uses_with(start)
            body.erase_arg(argument)
    operands = [*loop.operands[:3], *(value for value, keep in zip(initial, kept, strict=True) if keep)]
    types = [result.type for result, keep in zip(loop.results, kept, strict=True) if keep]
    new = recreate(loop, operands=operands, result_types=types, regions=(loop.detach_region(0),))
    results = iter(new.results)
    replace_op(loop, new, results=[next(results) if keep else start for start, keep in zip(initial, kept, strict=True)])
