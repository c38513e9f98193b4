"""Common subexpressions: an op that computes what an op before it computed is replaced by it.

    %a = arith.addi %x, %y                     %a = arith.addi %x, %y
    scf.for ... {                        ==>   scf.for ... {
      %b = arith.addi %y, %x                     use %a
      use %b

"Before" means on every path: earlier in the block, in an enclosing block, or in a block that dominates it. Pure ops
always qualify, ops with regions (`tt.reduce`) if the regions do the same; ops that only read memory qualify within
one block if nothing was written in between. Ops without effect whose results are unused are erased on the way.

Two ops are the same if they have one *key*: the class, the operands, the attributes and the result types, all as
small integers, so that one dictionary look-up decides. Stage: any. Cost: one walk, 5 to 10 us per op.
"""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from tilework.analysis.combine_regions import COMMUTATIVE
from tilework.analysis.value_flows import dominator_children
from tilework.ir import arith, scf
from tilework.ir.effects import PURE, is_pure, reads, writes
from tilework.ir.functions import ops_in_order
from tilework.ir.locations import unknown
from tilework.ir.nesting import end_of
from tilework.ir.rewrite import erase_op, replace_values
from tilework.transforms.folding.structured import drop_invariant_arguments
from tilework.transforms.folding.worklist import ISOLATED, Driver, identity, is_removable, is_unused, rule_table
from tilework.transforms.passes import function_pass

COMMUTATIVE_NAMES = frozenset(kind.name for kind in COMMUTATIVE)
# An absent property means the same.
NO_FLAGS = frozenset({identity(arith.NO_OVERFLOW), identity(arith.NO_FAST_MATH)})
PURE_NAMES = frozenset(kind.name for kind in PURE)


@function_pass("cse")
def eliminate_common_subexpressions(function: Operation) -> None:
    """Apply CSE to the body of one function."""
    for region in function.regions:
        Eliminator().visit_region(region)


class Eliminator:
    """The ops known at one point of the walk, by key; leaving a scope forgets what was learned in it."""

    def __init__(self) -> None:
        self.known: dict[Hashable, tuple[Operation, object]] = {}
        self.learned: list[tuple[Hashable, tuple[Operation, object] | None]] = []

    def visit_region(self, region: Region) -> None:
        entry = region.first_block
        if entry is None:
            return
        if entry is region.last_block:
            with self.scope():
                self.visit_block(entry)
            return
        children = dominator_children(region)

        def visit(block: Block) -> None:
            with self.scope():
                self.visit_block(block)
                for child in children[block]:
                    visit(child)

        visit(entry)

    @contextmanager
    def scope(self) -> Iterator[None]:
        mark = len(self.learned)
        yield
        while len(self.learned) > mark:
            key, before = self.learned.pop()
            if before is None:
                del self.known[key]
            else:
                self.known[key] = before

    def visit_block(self, block: Block) -> None:
        epoch = object()  # changes at every write: reads of one epoch see the same memory
        op = block.first_op
        while op is not None:
            following = op.next_op
            if op.regions:
                for region in op.regions:
                    (Eliminator() if op.name in ISOLATED else self).visit_region(region)
            if is_unused(op) and is_removable(op):
                erase_op(op)
            elif op.results and (op.name in PURE_NAMES or is_pure(op)):
                self.replace_or_learn(op, None)
            elif writes(op):
                epoch = object()
            elif op.results and reads(op):
                self.replace_or_learn(op, epoch)
            op = following

    def replace_or_learn(self, op: Operation, epoch: object) -> None:
        """Replace `op` by an equal op of the same epoch (None: any), or remember it."""
        if op.regions and any(region.first_block is not region.last_block for region in op.regions):
            return
        key = key_of(op, {})
        found = self.known.get(key)
        if found is not None and found[1] is epoch:
            first = found[0]
            replace_values(op.results, first.results)
            if first.location == unknown:
                first.location = op.location
            erase_op(op)
            return
        self.learned.append((key, found))
        self.known[key] = (op, epoch)


def key_of(op: Operation, inner: dict[SSAValue, int]) -> Hashable:
    """A hashable key of what `op` computes; values defined inside the op are named by their position, in `inner`."""
    facts: list[Hashable]
    if inner:
        facts = [op.name, *(inner.get(value, id(value)) for value in op._operands)]
    else:
        facts = [op.name, *map(id, op._operands)]
    if op.name in COMMUTATIVE_NAMES and facts[1] > facts[2]:  # pyright: ignore[reportOperatorIssue]
        facts[1], facts[2] = facts[2], facts[1]
    for result in op.results:
        facts.append(identity(result.type))
    for group in (op.properties, op.attributes):
        for name in sorted(group) if len(group) > 1 else group:
            value = identity(group[name])
            if value not in NO_FLAGS:
                facts.append(name)
                facts.append(value)
    for region in op.regions:
        facts.append(region_key(region, inner))
    return tuple(facts)


def region_key(region: Region, inner: dict[SSAValue, int]) -> Hashable:
    block = region.first_block
    if block is None:
        return None
    for argument in block.args:
        inner[argument] = ~len(inner)  # negative: no id
    facts: list[Hashable] = [identity(argument.type) for argument in block.args]
    for op in block.ops:
        facts.append(key_of(op, inner))
        for result in op.results:
            inner[result] = ~len(inner)
    return tuple(facts)


# Merge loop-carried values that are always equal.
#
#     %r:2 = scf.for ... iter_args(%a = %i, %b = %i) {           %r = scf.for ... iter_args(%a = %i) {
#       %s = arith.addi %a, %k                                     %s = arith.addi %a, %k
#       %t = arith.addi %b, %k                         ==>         scf.yield %s
#       scf.yield %s, %t                                         }
#     }                                                          (both results are %r)
#
# Ordinary CSE cannot see this: `%s` equals `%t` only if `%a` equals `%b`, and the reverse. So the pass assumes that
# values with equal initial values remain equal, computes value numbers of the body under that assumption, splits the
# classes whose yielded values differ, and repeats until nothing splits. The remaining classes are equal in every
# iteration. Values that the loop only passes on are dropped too.
# Stage: TTIR or TTGIR to itself. Cost: one CSE, or two where loops have such values, and two walks over each loop body.


DROP_FORWARDED = rule_table({}, {scf.ForOp: drop_invariant_arguments})


@function_pass("triton-loop-aware-cse")
def loop_aware_cse(function: Operation) -> None:
    eliminate_common_subexpressions(function)
    loops = loops_within(function)
    merged = [merge_equal(loop, equal_classes(loop)) for loop in loops]
    if any(merged):
        eliminate_common_subexpressions(function)
    if loops:
        Driver(DROP_FORWARDED).run(function)


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
