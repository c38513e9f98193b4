"""Sparse conditional constant propagation: find constants that hold along every executable path.

    %r = scf.for ... iter_args(%a = %c1) {            the loop carries 1 in and yields 1 * 1, so %a is 1
      %b = arith.muli %a, %a                    ==>   in every iteration: %b and %r become the constant 1
      scf.yield %b
    }

Where folding looks at one op, this starts from the assumption that nothing is executed and every value is a constant,
and follows only the branches that a known condition allows. A value is `UNSEEN`, a constant, or `VARIES`; it can only
move in that direction, so the loop ends. Stage: any. Cost: a visit per op and per change of an operand.
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, TypeAlias

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilework.analysis.value_flows import branch_edges, control_flows
from tilework.ir import arith, cf, scf, tt
from tilework.ir.arith import SelectOp, signed, unsigned
from tilework.ir.functions import ops_in_order
from tilework.ir.locations import unknown
from tilework.ir.nesting import body_of, start_of, values_of
from tilework.ir.rewrite import attr_value, constant, erase_op, put, replace_all_uses
from tilework.ir.types import bit_width, element_type, i1
from tilework.transforms.folding import casts as folding_casts
from tilework.transforms.folding.worklist import ISOLATED, is_removable
from tilework.transforms.passes import function_pass


class State(Enum):
    """Lattice values that are no constant: a value that no executed op has defined yet, and one that varies."""

    UNSEEN = auto()
    VARIES = auto()


UNSEEN, VARIES = State.UNSEEN, State.VARIES
Fact: TypeAlias = int | float | State
COPIES = frozenset({tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp, tt.UnsplatOp})


@function_pass("sccp")
def sccp(function: Operation) -> None:
    replace_known_values(function.regions[0], Propagation(function.regions[0]).facts)


def replace_known_values(body: Region, facts: dict[SSAValue, Fact]) -> None:
    """Replace the values that `facts` knows by constants at the start of the function (or partition)."""
    made: dict[tuple[str, Attribute, Block], SSAValue] = {}

    def replace(value: SSAValue, location: LocationAttr) -> bool:
        fact = facts.get(value, UNSEEN)
        if isinstance(fact, State):
            return False
        entry = entry_block(value, body)
        key = (repr(fact), value.type, entry)  # repr: 0.0 and -0.0 compare equal
        if key not in made:
            new = constant(fact, value.type, location)
            made[key] = put(start_of(entry), new)
        replace_all_uses(value, made[key])
        return True

    for op in ops_in_order(body):
        if op.parent is None:
            continue
        known = [replace(result, op.location) for result in op.results]
        if known and all(known) and is_removable(op):
            erase_op(op)
            continue
        for argument in values_of(op)[len(op.results) :]:
            replace(argument, op.location)
    for block in body.blocks:
        for argument in block.args:
            replace(argument, unknown)


def entry_block(value: SSAValue, body: Region) -> Block:
    """The first block of the function, or of the part of it that sees nothing from outside, that `value` is in."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    region = None if block is None else block.parent
    while region is not None and region is not body:
        above = region.parent
        if above is None or above.name in ISOLATED:
            break
        region = above.parent_region()
    entry = (region or body).first_block
    assert entry is not None, "a function body has an entry block"
    return entry


class Propagation:
    """The facts about one function body, computed by the constructor."""

    def __init__(self, body: Region) -> None:
        self.facts: dict[SSAValue, Fact] = {}
        self.executed: set[Block] = set()
        self.worklist: list[Operation] = []
        entry = body.first_block
        assert entry is not None, "a function body has an entry block"
        for argument in entry.args:
            self.facts[argument] = VARIES
        self.execute(entry)
        while self.worklist:
            op = self.worklist.pop()
            if op.parent in self.executed:
                self.visit(op)

    def execute(self, block: Block | None) -> None:
        """`block` may run: visit its ops."""
        if block is not None and block not in self.executed:
            self.executed.add(block)
            self.worklist.extend(reversed(tuple(block.ops)))

    def fact(self, value: SSAValue) -> Fact:
        return self.facts.get(value, UNSEEN)

    def learn(self, value: SSAValue, fact: Fact) -> None:
        """Join `fact` into what is known of `value`, and visit the users if that changes it."""
        known = self.facts.get(value, UNSEEN)
        if known is VARIES:
            return
        joined = fact if known is UNSEEN else known if fact is UNSEEN or same(known, fact) else VARIES
        if joined is UNSEEN or (known is not UNSEEN and same(known, joined)):
            return
        self.facts[value] = joined
        for use in value.uses:
            self.worklist.append(use.operation)

    def flow(self, sources: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        """Propagate the fact of each source to its target."""
        for source, target in zip(sources, targets, strict=True):
            self.learn(target, self.fact(source))

    def pass_on(self, op: Operation) -> None:
        """Propagate the values that a loop or terminator passes on."""
        for source, target in control_flows(op) or ():
            self.learn(target, self.fact(source))

    def visit(self, op: Operation) -> None:
        if (rule := RULES.get(type(op))) is not None:
            rule(self, op)
        elif op.regions:
            self.visit_unknown(op)
        elif op.results and self.facts.get(op.results[0]) is not VARIES:
            fact = evaluate(op, [self.fact(value) for value in op._operands])
            for result in op.results:
                self.learn(result, fact)

    def visit_unknown(self, op: Operation) -> None:
        """Assume nothing about the arguments of the regions of an op (`tt.reduce`)."""
        for value in values_of(op):
            self.learn(value, VARIES)
        for region in op.regions:
            self.execute(region.first_block)

    def visit_branch(self, op: Operation) -> None:
        taken = branch_edges(op)
        if type(op) is cf.ConditionalBranchOp:
            taken = self.possible(self.fact(op._operands[0]), taken)
        for target, passed in taken:
            self.flow(passed, target.args)
            self.execute(target)

    def possible(self, condition: Fact, choices: Sequence[Any]) -> Sequence[Any]:
        """Return the choices, given for true and false, that `condition` allows."""
        if isinstance(condition, State):
            return choices if condition is VARIES else ()
        return choices[:1] if condition else choices[1:]

    def visit_if(self, op: Operation) -> None:
        for region in self.possible(self.fact(op._operands[0]), op.regions):
            self.execute(block := region.first_block)
            if block is not None and block.last_op is not None:
                self.worklist.append(block.last_op)  # again: the op that it yields to can be reached now

    def visit_for(self, op: Operation) -> None:
        self.learn(body_of(op).args[0], VARIES)
        self.visit_while(op)

    def visit_while(self, op: Operation) -> None:
        self.pass_on(op)
        self.execute(body_of(op))

    def visit_condition(self, op: Operation) -> None:
        parent = op.parent_op()
        assert parent is not None, "scf.condition is in scf.while"
        condition, passed = self.fact(op._operands[0]), op._operands[1:]
        after = parent.regions[1].blocks[0]
        if condition is VARIES or (not isinstance(condition, State) and condition):
            self.flow(passed, after.args)
            self.execute(after)
        if condition is VARIES or condition == 0:
            self.flow(passed, parent.results)


def same(a: Fact, b: Fact) -> bool:
    """Equal as constants: 0.0 is not -0.0, and a NaN is itself."""
    return a is b or repr(a) == repr(b)


def evaluate(op: Operation, known: Sequence[Fact]) -> Fact:
    """The value of `op` for these operands."""
    if type(op) is arith.ConstantOp:
        value = attr_value(op.properties["value"])
        return VARIES if value is None else value
    if type(op) is SelectOp:
        return choose(*known)
    if not known or VARIES in known:
        return decided(op, known)
    if UNSEEN in known:
        return UNSEEN
    values = [fact for fact in known if not isinstance(fact, State)]
    value = compute(op, values)
    return VARIES if value is None else value


def decided(op: Operation, known: Sequence[Fact]) -> Fact:
    """The value of an op that one operand decides, or that has the same operand twice: ``x * 0``, ``x ^ x``."""
    kind = type(op)
    if kind is arith.CmpiOp and op._operands[0] is op._operands[1]:
        return int(arith.compare(arith.predicate_of(op), 0, 0, 1))
    if kind in (arith.XOrIOp, arith.SubiOp) and op._operands[0] is op._operands[1]:
        return 0
    if kind in (arith.MuliOp, arith.AndIOp) and 0 in known:
        return 0
    if kind is arith.OrIOp:
        width = bit_width(op._operands[0].type)
        ones = wrapped(-1, width)
        return ones if ones in known else VARIES
    return VARIES


def choose(condition: Fact, if_true: Fact, if_false: Fact) -> Fact:
    """A select needs only the side it takes."""
    if condition is UNSEEN:
        return UNSEEN
    if condition is VARIES:
        return if_true if same(if_true, if_false) else VARIES
    return if_true if condition else if_false


def compute(op: Operation, values: Sequence[int | float]) -> int | float | None:
    """The constant result of `op` for constant operands, or None where it is undefined or unknown."""
    kind = type(op)
    if kind in COPIES:
        return values[0]
    source, result = op._operands[0].type, op.results[0].type
    width = bit_width(source)
    if (integer := arith.EVALUATE.get(kind)) is not None:
        value = integer(int(values[0]), int(values[1]), width)
        return None if value is None else wrapped(value, bit_width(result))
    if kind is arith.CmpiOp:
        return int(arith.compare(arith.predicate_of(op), int(values[0]), int(values[1]), width))
    if kind in (arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, arith.IndexCastOp):
        value = int(values[0])
        if kind is arith.ExtUIOp:
            value = unsigned(value, width)
        elif kind is arith.ExtSIOp and width == 1:
            value = -value
        return wrapped(value, bit_width(result))
    element = element_type(result)
    if kind in (arith.SIToFPOp, arith.UIToFPOp):
        return folding_casts.converted(op, int(values[0]))
    if kind is arith.BitcastOp:
        return folding_casts.reinterpreted(values[0], element_type(source), element)
    if (floating := folding_casts.EVALUATE.get(kind)) is not None and element in folding_casts.FORMATS:
        value = floating(float(values[0]), float(values[1]))
        return None if value is None or value != value else folding_casts.rounded(value, element)
    return None


def wrapped(value: int, width: int) -> int:
    """`value` as a signed integer of `width` bits; i1 is 0 or 1."""
    return value & 1 if width == bit_width(i1) else signed(value, width)


RULES = {
    scf.IfOp: Propagation.visit_if,
    scf.ForOp: Propagation.visit_for,
    scf.WhileOp: Propagation.visit_while,
    scf.YieldOp: Propagation.pass_on,
    scf.ConditionOp: Propagation.visit_condition,
    cf.BranchOp: Propagation.visit_branch,
    cf.ConditionalBranchOp: Propagation.visit_branch,
}
