"""Contiguity, divisibility and constancy of integers and pointers along each axis.

    %b = arith.muli %pid, %c64 : i32                      divisibility 64
    %r = tt.make_range {start = 0, end = 64}              contiguity 64
    %o = arith.addi %splat_of_b, %r                       contiguity 64, divisibility 64
    %q = tt.addptr %splat_of_p, %o                        contiguity 64, divisibility 16 (bytes, from %p)

so 64 neighbouring elements of `%q` are one block of memory that starts at a multiple of 16 bytes: with f32 a thread may
move four at once (`AxisFacts.alignment`). `axis_transfer.py` defines the facts and the rule of each op.

Facts come from the ops, from the attributes `tt.contiguity`, `tt.divisibility` and `tt.constancy` of function
arguments, and from the same attributes of ops, which are promises of the user and replace what was computed. Values
carried by a loop (or a branch back) start optimistic and are weakened until they hold: the join of the initial and the
yielded facts. A function called within the module gets, per scalar argument, what holds at all its calls; nothing flows
back.

Cost: one walk, and one more per round of a loop (two or three).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from math import gcd

from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, DictionaryAttr, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilework.analysis.axis_transfer import TRANSFER, AxisInfo, join, moved, pointee_bytes, unknown
from tilework.analysis.value_flows import branch_edges
from tilework.ir import scf, tt, ttg
from tilework.ir.functions import callee_of, callees_first, functions_by_name, modules, ops_in_order, symbol_of
from tilework.ir.nesting import end_of
from tilework.ir.types import is_tensor, shape_of

HINTS = (("tt.contiguity", "contiguity"), ("tt.divisibility", "divisibility"), ("tt.constancy", "constancy"))

__all__ = ["AxisFacts", "AxisInfo", "axis_info"]


class AxisFacts:
    """The facts about every value of a module; read them with `of` or with one of the queries below it."""

    def __init__(self, known: dict[SSAValue, AxisInfo]) -> None:
        self.known = known

    def of(self, value: SSAValue) -> AxisInfo:
        """Return the fact about `value`; nothing is known about values that the analysis did not reach."""
        info = self.known.get(value)
        return unknown(value.type) if info is None else info

    def alignment(self, pointers: SSAValue, order: Sequence[int]) -> int:
        """Return the number of elements, along the fastest axis of `order`, that form one aligned block of memory."""
        return aligned(self.of(pointers), pointee_bytes(pointers.type), order[0])

    def alignment_from(self, base: SSAValue, offsets: SSAValue, order: Sequence[int]) -> int:
        """Like `alignment`, for the elements at `offsets` from the pointer `base`."""
        size, shape, start = pointee_bytes(base.type), shape_of(offsets.type), self.of(base)
        everywhere = AxisInfo((1,) * len(shape), start.divisibility * len(shape), shape)
        return aligned(moved(everywhere, self.of(offsets), size), size, order[0])

    def contiguity(self, pointers: SSAValue, order: Sequence[int], per_thread: Sequence[int]) -> int:
        """Return `alignment`, limited to the contiguous elements of a thread."""
        return min(self.alignment(pointers, order), per_thread[order[0]])

    def mask_alignment(self, mask: SSAValue, order: Sequence[int]) -> int:
        """Return the number of neighbouring elements that share one mask bit."""
        return max(self.of(mask).constancy[order[0]], 1)


def aligned(info: AxisInfo, size: int, axis: int) -> int:
    """Return the number of elements of `size` bytes that form one aligned block of memory along an axis."""
    return min(max(info.divisibility[axis] // size, 1), info.contiguity[axis])


def axis_info(root: Operation) -> AxisFacts:
    """Return the facts about all values under `root`: a module, or one function."""
    facts = AxisFacts({})
    tables = [functions_by_name(module) for module in modules(root)] or [{symbol_of(root): root}]
    for functions in tables:
        calls: dict[str, list[Operation]] = {}
        for function in functions.values() if len(functions) > 1 else ():
            for op in ops_in_order(*function.regions):
                if type(op) is tt.CallOp:
                    calls.setdefault(callee_of(op), []).append(op)
        for name in reversed(callees_first(functions)) if calls else functions:
            enter_function(facts, functions[name], calls.get(name, ()))
            run_region(facts, functions[name].regions[0])
    return facts


def enter_function(facts: AxisFacts, function: Operation, calls: Sequence[Operation]) -> None:
    """Initialise the facts of the arguments from their attributes, or from the calls of the function."""
    if not function.regions[0].blocks:
        return
    attributes = function.properties.get("arg_attrs")
    per_argument = attributes.data if isinstance(attributes, ArrayAttr) else ()
    for index, argument in enumerate(function.regions[0].blocks[0].args):
        info = unknown(argument.type)
        if calls and not is_tensor(argument.type):
            info = reduce(join, (facts.of(call.operands[index]) for call in calls))._replace(constant=None)
        if index < len(per_argument) and isinstance(given := per_argument[index], DictionaryAttr):
            info = with_hints(info, given.data)
        facts.known[argument] = info


def with_hints(info: AxisInfo, attributes: Mapping[str, Attribute]) -> AxisInfo:
    """Return `info` with the vectors that the user promised."""
    for name, field in HINTS:
        if (hint := attributes.get(name)) is not None:
            info = info._replace(**{field: hint_values(hint, len(info.contiguity))})
    return info


@cache
def hint_values(hint: Attribute, rank: int) -> tuple[int, ...]:
    """Return an integer per axis, from ``16 : i32`` or ``dense<[1, 16]> : tensor<2xi32>``."""
    if isinstance(hint, IntegerAttr):
        return (hint.value.data,) * rank
    assert isinstance(hint, DenseIntOrFPElementsAttr), f"an axis hint is an integer or dense, not {hint}"
    values = tuple(int(value) for value in hint.get_values())
    return values * rank if len(values) == 1 else values[:rank]


def run_region(facts: AxisFacts, region: Region) -> None:
    """Visit the blocks until the facts about their arguments no longer change."""
    blocks = tuple(region.blocks)
    if len(blocks) == 1:
        run_block(facts, blocks[0])
        return
    reached = set(blocks[:1])
    changed = True
    while changed:
        changed = False
        for block in blocks:
            if block in reached:
                run_block(facts, block)
                for successor, values in branch_edges(end_of(block)):
                    changed |= successor not in reached
                    reached.add(successor)
                    changed |= meet(facts, successor.args, values)


def meet(facts: AxisFacts, targets: Sequence[SSAValue], values: Sequence[SSAValue]) -> bool:
    """Weaken `targets` to hold for `values` too; return True if one changed."""
    changed = False
    known = facts.known
    for target, value in zip(targets, values, strict=True):
        old, new = known.get(target), facts.of(value)
        if old is not None:
            new = join(old, new)
        if new != old:
            known[target] = new
            changed = True
    return changed


def run_block(facts: AxisFacts, block: Block) -> None:
    """Walk over the ops of `block`, including loops and branches."""
    known, of = facts.known, facts.of
    for op in block.ops:
        kind = type(op)
        if (rule := TRANSFER.get(kind)) is not None:
            info = rule(op, [of(value) for value in op.operands])
        elif (flow := FLOW.get(kind)) is not None:
            flow(facts, op)
            continue
        elif op.results and op.attributes:
            info = unknown(op.results[0].type)
        else:
            continue
        known[op.results[0]] = with_hints(info, op.attributes) if op.attributes else info


def run_for(facts: AxisFacts, op: Operation) -> None:
    """The induction variable is a multiple of the gcd of the lower bound and the step."""
    (body,) = op.regions[0].blocks
    lower, _, step, *initial = op.operands
    divisor = gcd(facts.of(lower).divisibility[0], facts.of(step).divisibility[0])
    facts.known[body.args[0]] = AxisInfo((1,), (divisor,), (1,))
    carried = body.args[1:]
    start(facts, carried, initial)
    while True:
        run_block(facts, body)
        if not meet(facts, carried, tuple(end_of(body).operands)):
            break
    start(facts, op.results, carried)


def run_while(facts: AxisFacts, op: Operation) -> None:
    """The values of the condition enter the body and leave the loop; those of the body go back to the condition."""
    (before,), (after,) = (region.blocks for region in op.regions)
    start(facts, before.args, tuple(op.operands))
    while True:
        run_block(facts, before)
        start(facts, after.args, end_of(before).operands[1:])
        run_block(facts, after)
        if not meet(facts, before.args, tuple(end_of(after).operands)):
            break
    start(facts, op.results, end_of(before).operands[1:])


def run_if(facts: AxisFacts, op: Operation) -> None:
    """A result is what either branch yields, or the branch that a constant condition selects."""
    yields: list[Sequence[SSAValue]] = []
    for region in op.regions:
        for block in region.blocks:
            run_block(facts, block)
            yields.append(tuple(block.last_op.operands) if block.last_op is not None else ())
    if op.results:
        condition = facts.of(op.operands[0]).constant
        chosen = yields if condition is None else yields[:1] if condition else yields[1:]
        start(facts, op.results, chosen[0])
        for values in chosen[1:]:
            meet(facts, op.results, values)


def run_mask(facts: AxisFacts, op: Operation) -> None:
    """The results of a predicated body are the values it returns if it ran."""
    (body,) = op.regions[0].blocks
    run_block(facts, body)
    start(facts, op.results, tuple(end_of(body).operands))


def run_warp_specialize(facts: AxisFacts, op: Operation) -> None:
    """The captured values enter every partition; the default region gives the results."""
    default, holder = op.regions
    run_region(facts, default)
    last = default.blocks[-1].last_op if default.blocks else None
    if last is not None and type(last) is ttg.WarpYieldOp:
        start(facts, op.results, tuple(last.operands))
    for block in holder.blocks:
        for partitions in block.ops:
            for region in partitions.regions:
                start(facts, region.blocks[0].args, tuple(op.operands))
                run_region(facts, region)


def start(facts: AxisFacts, targets: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
    for target, value in zip(targets, values, strict=True):
        facts.known[target] = facts.of(value)


FLOW: dict[type[Operation], Callable[[AxisFacts, Operation], None]] = {
    scf.ForOp: run_for,
    scf.WhileOp: run_while,
    scf.IfOp: run_if,
    ttg.MaskOp: run_mask,
    ttg.WarpSpecializeOp: run_warp_specialize,
}
