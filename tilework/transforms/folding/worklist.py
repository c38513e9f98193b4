"""The worklist behind `canonicalize`, `triton-combine` and `triton-reorder-broadcast`.

A table maps an op class to a rule. A *fold* is a pure function that returns another value for the op's result, or None.

    %y = arith.addi %x, %c0    the fold returns %x       every use of %y becomes %x
    %y = arith.addi %c1, %c2   the fold returns 3        a constant replaces %y

A *rewrite* does anything else through the `Driver` passed to it, and returns True if it did. After a change only the
ops that can notice are visited again: users of a replaced value, and producers that lost a use.

One run over a function is: unique the constants and move them to the start of the entry block, visit every op once in
program order, drain the worklist, simplify the control flow, and repeat while constants or blocks changed. The order in
which constants are hoisted (each in front of all earlier ones) is visible in the text and equals the reference
compiler's. Cost: 3 to 4 us for an op that no rule changes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, Use

from tilework.analysis.combine_regions import COMMUTATIVE
from tilework.ir import arith
from tilework.ir.effects import writes
from tilework.ir.functions import ops_in_order
from tilework.ir.locations import unknown
from tilework.ir.nesting import start_of
from tilework.ir.rewrite import constant, erase_op, replace_all_uses

# One object for equal attributes, found without hashing twice.
#
# xDSL compares and hashes attributes field by field (5 us and more for a dense constant). Passes that look attributes
# up use `identity` instead: an id that equal attributes share, memoized in the attribute itself.
#
#     >>> identity(IntegerAttr(1, i32)) == identity(IntegerAttr(1, i32))
#     True

FIRST: dict[Attribute, Attribute] = {}  # each attribute seen, to the first one equal to it, which is kept alive


def identity(attribute: Attribute) -> int:
    """An id that equal attributes share, and no others."""
    memo = vars(attribute)
    found = memo.get("_identity")
    if found is None:
        found = memo["_identity"] = id(FIRST.setdefault(attribute, attribute))
    return found


def is_same(a: Attribute, b: Attribute) -> bool:
    """Return True if `a` equals `b`; cheaper than ``==``, by which xDSL compares types field by field."""
    return a is b or identity(a) == identity(b)


Scalar: TypeAlias = int | float
Fold: TypeAlias = Callable[[Operation], SSAValue | Scalar | Attribute | None]
Rewrite: TypeAlias = Callable[[Operation, "Driver"], bool]

ISOLATED = frozenset({"ttg.warp_specialize.partitions"})  # their bodies use no values from outside
MAX_ROUNDS = 10  # rounds only repeat for constants and control flow; real kernels take two


class Rule(NamedTuple):
    """The rules of one kind of op: move its constant operand to the right, its fold, its rewrite."""

    commutative: bool
    fold: Fold | None
    rewrite: Rewrite | None


def rule_table(folds: Mapping[type[Operation], Fold], rewrites: Mapping[type[Operation], Rewrite]) -> dict[str, Rule]:
    """The rules by name of op: hashing a string is ten times cheaper than hashing a class of xDSL."""
    kinds = [*folds, *(kind for kind in rewrites if kind not in folds)]
    return {kind.name: Rule(kind in COMMUTATIVE, folds.get(kind), rewrites.get(kind)) for kind in kinds}


class Driver:
    """Applies `rules` to one function until none fires.

    It starts with the first op of the function, or with the last one if `bottom_up`: that decides which of several
    applicable rules fires first.
    """

    def __init__(self, rules: Mapping[str, Rule], bottom_up: bool = False) -> None:
        self.rules = rules
        self.bottom_up = bottom_up
        self.worklist: list[Operation] = []
        self.queued: set[int] = set()  # ids: an op in the worklist is alive
        self.changed = False
        self.constants = Constants()
        self.new_constants: list[Operation] = []
        self.isolated: list[Operation] = []  # ops whose bodies see nothing from outside

    def run(self, function: Operation, simplify: Callable[[Region, "Driver"], bool] | None = None) -> bool:
        """Visit every op of `function`; `simplify` cleans up its blocks between rounds. True if anything changed."""
        body = function.regions[0] if function.regions else None
        if body is None or body.first_block is None:
            return False
        self.run_body(body, simplify)
        for op in self.isolated:
            holder = op.parent_op()
            for region in op.regions:
                if Driver(self.rules, self.bottom_up).run_body(region, simplify) and holder is not None:
                    self.changed = True
                    self.push(holder)
        self.drain()
        return self.changed

    def run_body(self, body: Region, simplify: Callable[[Region, "Driver"], bool] | None) -> bool:
        """Visit the ops that may share constants; those in `ISOLATED` ops are left for a driver of their own."""
        self.constants.entry = body.first_block
        self.seed(body)
        for _ in range(MAX_ROUNDS):
            self.drain()
            blocks_changed = simplify is not None and simplify(body, self)
            self.changed |= blocks_changed
            if not self.new_constants and not self.worklist:
                break
            self.hoist_new_constants(body)
        return self.changed

    def seed(self, body: Region) -> None:
        """Hoist the constants of the function, sweep out dead ops, queue the ops that have a rule in program order.

        The sweep goes backwards, so that it sees the users of an op before the op; most dead ops (the frontend's
        overflow checks, when they are off) are never visited.
        """
        ops = visible_ops(body, self.isolated)
        unique = self.constants.unique
        for op in ops:
            if type(op) is arith.ConstantOp:
                unique(op)
        worklist, rules = self.worklist, self.rules
        for op in reversed(ops):
            for result in op.results:
                if result.first_use is not None:
                    break
            else:
                if op.parent is not None and is_removable(op):
                    erase_op(op)
                    self.changed = True
                    continue
            if op.name in rules:
                worklist.append(op)
        if self.bottom_up:
            worklist[:] = [op for op in ops_in_postorder(body) if op.name in rules]
        self.queued = set(map(id, worklist))

    def hoist_new_constants(self, body: Region) -> None:
        """Hoist the constants made since the last time, in program order."""
        new = self.new_constants
        self.new_constants = []
        if len(new) > 1:
            made = set(map(id, new))
            new = [op for op in visible_ops(body, []) if id(op) in made]
        for op in new:
            if op.parent is not None:
                self.share_constant(op)

    def share_constant(self, op: Operation) -> None:
        """Hoist `op`; if there is such a constant already, two operands of a user may be the same now."""
        users = [use.operation for use in op.results[0].uses]
        if not self.constants.unique(op):
            for user in users:
                self.push(user)

    def drain(self) -> None:
        """Visit ops until the worklist is empty."""
        worklist, queued, rules = self.worklist, self.queued, self.rules
        while worklist:
            op = worklist.pop()
            queued.discard(id(op))
            if op.parent is None:
                continue
            for result in op.results:
                if result.first_use is not None:
                    break
            else:
                if is_removable(op):
                    self.erase(op)
                    continue
            if (rule := rules.get(op.name)) is None:
                continue
            commutative, fold, rewrite = rule
            if commutative:
                self.constant_to_the_right(op)
            if fold is not None and (value := fold(op)) is not None:
                self.replace_by_fold(op, value)
            elif rewrite is not None and rewrite(op, self):
                self.changed = True

    def constant_to_the_right(self, op: Operation) -> None:
        lhs, rhs = op._operands  # the tuple itself: `op.operands` builds a wrapper
        if type(lhs.owner) is arith.ConstantOp and type(rhs.owner) is not arith.ConstantOp:
            op.operands = (rhs, lhs)
            self.changed = True

    def replace_by_fold(self, op: Operation, value: SSAValue | Scalar | Attribute) -> None:
        if isinstance(value, Attribute):
            types = (op.results[0].type,)
            known = arith.ConstantOp.create(properties={"value": value}, result_types=types, location=op.location)
            value = self.insert(op, known).results[0]
        elif not isinstance(value, SSAValue):
            value = self.constant(op, value, op.results[0].type)
        self.replace(op, (value,))
        if self.bottom_up and self.new_constants and self.new_constants[-1] is value.owner:
            self.share_constant(self.new_constants.pop())

    def push(self, op: Operation) -> None:
        """Visit `op` again."""
        if id(op) not in self.queued:
            self.queued.add(id(op))
            self.worklist.append(op)

    def push_users(self, value: SSAValue) -> None:
        for use in value.uses:
            self.push(use.operation)

    def push_owner(self, value: SSAValue) -> None:
        """Visit the producer of `value`, which may have lost its last use; for a loop argument, the loop."""
        owner = value.owner
        if isinstance(owner, Operation):
            self.push(owner)
        elif (parent := owner.parent_op()) is not None and parent.name in self.rules:
            self.push(parent)

    def insert(self, before: Operation, new: Operation) -> Operation:
        """Put `new` in front of `before`, and visit it."""
        block = before.parent
        assert block is not None, "an op in the worklist is in a block"
        block.insert_op_before(new, before)
        if type(new) is arith.ConstantOp:
            self.new_constants.append(new)
        else:
            self.push(new)
        self.changed = True
        return new

    def constant(self, before: Operation, value: Scalar, type_: Attribute) -> SSAValue:
        """A constant of `type_`, in front of `before`; hoisted and uniqued at the end of the round."""
        return self.insert(before, constant(value, type_, before.location)).results[0]

    def use_constant(self, uses: Sequence[Use], before: Operation, value: Scalar, like: SSAValue) -> None:
        """Replace the given uses of `like` by a constant in front of `before`."""
        made = self.constant(before, value, like.type)
        for use in uses:
            use.operation.operands[use.index] = made
            self.push(use.operation)

    def replace_value(self, old: SSAValue, new: SSAValue) -> None:
        """Use `new` wherever `old` was used."""
        self.push_users(old)
        replace_all_uses(old, new)
        self.changed = True

    def replace(self, op: Operation, values: Sequence[SSAValue]) -> bool:
        """Replace the results of `op` and erase it. Returns True."""
        for old, new in zip(op.results, values, strict=True):
            if old.first_use is not None:
                self.push_users(old)
                replace_all_uses(old, new)
        return self.erase(op)

    def replace_with(self, op: Operation, *new: Operation) -> bool:
        """Insert `new` in front of `op`, replace its results by those of the last one. Returns True."""
        for other in new:
            self.insert(op, other)
        return self.replace(op, new[-1].results)

    def set_operands(self, op: Operation, operands: Sequence[SSAValue]) -> bool:
        """Give `op` other operands, in place. Returns True."""
        old = op._operands
        op.operands = operands
        for value in old:
            self.push_owner(value)
        self.push(op)
        for result in op.results:
            self.push_users(result)
        self.changed = True
        return True

    def erase(self, op: Operation) -> bool:
        """Erase `op`, whose results are unused, and visit what it used. Returns True."""
        self.changed = True
        for inner in (op, *ops_in_order(*op.regions)) if op.regions else (op,):
            for value in inner._operands:
                self.push_owner(value)
        erase_op(op)
        return True


def ops_in_postorder(region: Region) -> list[Operation]:
    """Return the ops of `region`, each after those nested in it."""
    found: list[Operation] = []
    for block in region.blocks:
        op = block.first_op
        while op is not None:
            for inner in () if op.name in ISOLATED else op.regions:
                found += ops_in_postorder(inner)
            found.append(op)
            op = op.next_op
    return found


def visible_ops(body: Region, isolated: list[Operation]) -> list[Operation]:
    """`ops_in_order` without the bodies of `ISOLATED` ops, which are added to `isolated`."""
    found: list[Operation] = []

    def visit(region: Region) -> None:
        for block in region.blocks:
            op = block.first_op
            while op is not None:
                found.append(op)
                if op.regions:
                    if op.name in ISOLATED:
                        isolated.append(op)
                    else:
                        for inner in op.regions:
                            visit(inner)
                op = op.next_op

    visit(body)
    return found


class Constants:
    """The constants of a function: one of each value, at the start of its `entry` block.

    A constant that directly follows known constants at the start is left there; any other moves to the front. It loses
    its location when it replaces several constants, or comes from another block.
    """

    def __init__(self) -> None:
        self.entry: Block | None = None
        self.known: dict[int, Operation] = {}

    def unique(self, op: Operation) -> bool:
        """Hoist `op` and return True; return False if an equal constant replaces it."""
        value = identity(op.properties["value"])
        first = self.known.get(value)
        if first is not None and first.parent is not None:
            replace_all_uses(op.results[0], first.results[0])
            forget_location(first)
            erase_op(op)
            return False
        block, entry = op.parent, self.entry
        assert block is not None and entry is not None, "constants are hoisted into the function they are in"
        if block is not entry:
            forget_location(op)
        if block is not entry or (op.prev_op is not None and type(op.prev_op) is not arith.ConstantOp):
            block.detach_op(op)
            entry.insert_op_before(op, start_of(entry))
        self.known[value] = op
        return True


def forget_location(op: Operation) -> None:
    """Drop location and name of a constant that several uses share."""
    op.location = unknown
    op.results[0].name_hint = None


def is_unused(op: Operation) -> bool:
    """True if no result of `op` has a use."""
    results = op.results
    if len(results) == 1:
        return results[0].first_use is None
    return all(result.first_use is None for result in results)


def is_removable(op: Operation) -> bool:
    """Return True if `op` can be erased when its results are unused. Reads do not count; terminators and symbols are
    kept."""
    return bool(op.results or op.regions) and not writes(op)
