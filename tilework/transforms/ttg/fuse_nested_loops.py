"""Flatten a loop nest into one loop, so that the pipeliner sees all iterations in a row.

    scf.for %i = 0 to %n {              scf.for %t' = 0 to %n * L iter_args(%t = 0, %i = -1, %j, %x) {
      %x = prologue(%i)                   %first = %t == 0
      scf.for %j = 0 to %m {              %j = select %first, 0, %j
        body(%i, %j, %x)          ==>     %x, %i = scf.if %first { %i + 1; prologue } else { %x, %i }
      }                                   body(%i, %j, %x); %j + 1
      epilogue(%i, %x)                    %last = %t == L - 1
    } {tt.flatten}                        scf.if %last { epilogue }
                                          %t = select %last, 0, %t + 1
                                        }

L is the trip count of the inner loop, at least one: prologue and epilogue also run if it is empty. So that the body
needs no test, the empty inner loop is handled separately: ``scf.if %m <= 0 { the outer loop alone } else { ... }``. The
loop carries values that the prologue computes for later. Values that the inner loop carries are reset in each outer
iteration: one from outside of both loops is reset at the end of the preceding one, where that is free for a dot (it
becomes the flag that ignores the accumulator).

`rounds_at_once` limits the counter to 32 bits.

Fires for an outer loop with `tt.flatten` around exactly one loop, whose bounds do not depend on the outer loop or can
be computed before it. With `ttg.always-fuse` (for tests) the outer loop may contain several loops, and these others:
each has its window of iterations, the last of one is the first of the next. Nests of a function that will be warp
specialized are not fused: the producer warps run ahead anyway, and a test in every iteration costs more.
Stage: TTGIR to TTGIR. Cost: one walk, and a copy of the outer loop for the empty case.
"""

from collections.abc import Sequence
from dataclasses import field

from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from tilework.analysis.integer_ranges import IntegerRanges
from tilework.ir import arith, scf, ub
from tilework.ir.arith import convert
from tilework.ir.effects import is_speculatable
from tilework.ir.functions import function_around, functions, ops_in_order
from tilework.ir.nesting import body_of, enclosing_op, end_of, is_inside, start_of
from tilework.ir.rewrite import (
    constant_value,
    defining_op,
    erase_op,
    insert_before,
    move_before,
    replace_op,
    replace_uses,
    replace_values,
)
from tilework.ir.scf import loop_around, make_for, make_if, make_yield
from tilework.ir.types import bit_width, element_type, i32, i64, is_float, is_integer, is_tensor
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.emitter import Emitter, iterations
from tilework.transforms.passes import Pass
from tilework.transforms.warp_specialize.channels import will_split

# The trip counts of both loops and of the fused loop are 32-bit integers, though the total need not fit.
#
# Where it may not, a loop around the new one runs as many outer iterations at a time as fit, usually all of them:
#
#     scf.for %i = 0 to %n {                  scf.for %s = 0 to %n step (2**31 - 1) / %m : i64 {
#       scf.for %j = 0 to %m { ... }    ==>     scf.for %i = %s to min(%n, %s + (2**31 - 1) / %m) {
#     }                                           scf.for %j = 0 to %m { ... }
#                                               }
#                                             }
#
# A 64-bit counter takes twice as many instructions per iteration; it is used only for inner loops with possibly more
# than 2**31 - 1 iterations.

MOST = (1 << 31) - 1


def counts_by_bound(loop: Operation) -> bool:
    """Return True if the trip count of `loop` is its upper bound divided by its step; empty if negative."""
    lower, upper, _ = loop.operands[:3]
    return constant_value(lower) == 0 and constant_value(upper) is None


def trip_count(code: Emitter, loop: Operation) -> SSAValue:
    """Return ``ceil((upper - lower) / step)``: unsigned, or, if `counts_by_bound`, negative for an empty loop too."""
    lower, upper, step = loop.operands[:3]
    if not counts_by_bound(loop):
        return iterations(code, lower, upper, step)
    return upper if constant_value(step) == 1 else code.binary(arith.CeilDivSIOp, upper, step)


def rounds_at_once(outer: Operation, inner: Operation) -> SSAValue | None:
    """Return the number of iterations of `outer` to run at a time, as an i32, such that those of the fused loop are
    below 2**31; None if 64 bits are needed.

    If these may not be all iterations, `outer` is wrapped in a loop that repeats it.
    """
    ranges = IntegerRanges(function_around(outer))
    most_outer, most_inner = (most_iterations(ranges, loop) for loop in (outer, inner))
    if outer.operands[0].type != i32 or inner.operands[0].type != i32 or most_inner > MOST:
        return None
    before, lower, step = Emitter(outer.location), outer.operands[0], outer.operands[2]
    count = iterations(before, *outer.operands[:3])
    if most_outer * most_inner <= MOST:
        before.insert_before(outer)
        return count
    one = before.constant(1, i32)
    length = before.binary(arith.MaxSIOp, trip_count(before, inner), one)
    fitting = before.binary(arith.DivUIOp, before.constant(MOST, i32), length)
    further = before.binary(arith.MuliOp, fitting, step)
    count, at_once = (widened(before, value, i64, arith.ExtUIOp) for value in (count, fitting))
    zero, initial = before.constant(0, i64), (lower, *outer.operands[3:])
    around, inside = Block(arg_types=(i64, *(value.type for value in initial))), Emitter(outer.location)
    done, first, *carried = around.args
    now = inside.binary(arith.MinSIOp, inside.binary(arith.SubiOp, count, done), at_once)
    rounds = inside.append(convert(arith.TruncIOp, now, i32, outer.location))
    following = inside.binary(arith.AddiOp, first, further)
    loop = make_for(zero, count, at_once, initial, Region(around), outer.location)
    before.insert_before(outer)
    insert_before(outer, loop)
    replace_values(outer.results, loop.results[1:])
    outer.detach()
    outer.operands = (first, *outer.operands[1:3], *carried)
    around.add_ops((*inside.ops, outer))
    around.add_op(make_yield((following, *outer.results), outer.location))
    return rounds


def most_iterations(ranges: IntegerRanges, loop: Operation) -> int:
    """Return an upper bound of the trip count of `loop`, at least 1."""
    (least, _), (_, most), (step, _) = map(ranges.of, loop.operands[:3])
    return max(1, -((least - most) // max(step, 1)))


def widened(code: Emitter, count: SSAValue, type: Attribute, extension: type[Operation]) -> SSAValue:
    """Return an iteration count in a wider type; constants are folded."""
    if count.type == type:
        return count
    if isinstance(known := constant_value(count), int):
        return code.constant(known % (1 << bit_width(count.type)) if extension is arith.ExtUIOp else known, type)
    return code.append(convert(extension, count, type, code.loc))


FLATTEN, ALWAYS, SPECIALIZE = "tt.flatten", "ttg.always-fuse", "tt.warp_specialize"


class FuseNestedLoopsPass(Pass):
    name = "tritongpu-fuse-nested-loops"
    partitions: str = "never"  # the option `when` of `nvgpu-warp-specialization`
    num_stages: int = 3

    def run(self, module: ModuleOp) -> None:
        for function in functions(module):
            for outer in [inner for inner in ops_in_order(*function.regions) if type(inner) is scf.ForOp]:
                if outer.parent is None:
                    continue
                if ALWAYS in outer.attributes:
                    fuse_tree(outer)
                elif FLATTEN in outer.attributes and is_pair(outer):
                    if not will_split(function, self.partitions, self.num_stages):
                        flatten(outer)


def children(loop: Operation) -> list[Operation]:
    """Return the loops directly in the body of `loop`."""
    return [op for op in body_of(loop).ops if type(op) is scf.ForOp]


def is_pair(outer: Operation) -> bool:
    """Return True if `outer` contains exactly one loop, and is in none."""
    inner = children(outer)
    return loop_around(outer, (scf.ForOp,)) is None and len(inner) == 1 and not children(inner[0])


def fuse_tree(outer: Operation) -> bool:
    """Fuse the loops in `outer`, the innermost first; return False if one of them cannot be fused."""
    loops = children(outer)
    for child in loops:
        if children(child) and not fuse_tree(child):
            return False
    if not loops or not can_fuse(outer):
        return False
    Fusion(outer, must_execute=False).run()
    return True


def flatten(outer: Operation) -> None:
    """Fuse `outer` with its inner loop, after a test for an empty inner loop."""
    if not can_fuse(outer):
        return
    (inner,) = children(outer)
    code = Emitter(outer.location)
    count = trip_count(code, inner)
    known = constant_value(count)
    if known is not None and known > 0:
        Fusion(outer, must_execute=True, rounds=rounds_at_once(outer, inner)).run()
        return
    # Not `== 0`: a loop whose upper bound is below its lower bound is empty too.
    test = "sle" if counts_by_bound(inner) else "eq"
    is_empty = code.compare(test, count, code.constant(0, count.type))
    code.insert_before(outer)
    fused_block, empty_block = Block(), Block()
    branch = make_if(
        is_empty, [r.type for r in outer.results], Region(empty_block), Region(fused_block), outer.location
    )
    insert_before(outer, branch)
    replace_values(outer.results, branch.results)
    alone = without_child(outer)
    outer.detach()
    for block, loop in ((empty_block, alone), (fused_block, outer)):
        block.add_op(loop)
        block.add_op(make_yield(loop.results, outer.location))
    Fusion(outer, must_execute=True, rounds=rounds_at_once(outer, inner)).run()


def without_child(outer: Operation) -> Operation:
    """Return a copy of `outer` in which the inner loop has no iterations."""
    copy = outer.clone()
    copy.attributes.pop(SPECIALIZE, None)
    (inner,) = children(copy)
    replace_op(inner, results=inner.operands[3:])
    return copy


def can_fuse(outer: Operation) -> bool:
    """Return True if the trip counts of all children can be computed before `outer`, and move their ops there."""
    inside = body_of(outer)
    hoisted: dict[Operation, None] = {}
    for loop in (outer, *children(outer)):
        if not isinstance(loop.operands[0].type, IntegerType):
            return False
        if loop is not outer and not all(is_hoistable(bound, inside, hoisted) for bound in loop.operands[:3]):
            return False
    move_before(outer, *(op for op in inside.ops if op in hoisted))
    return True


def is_hoistable(value: SSAValue, inside: Block, hoisted: dict[Operation, None]) -> bool:
    """Return True if `value` is defined outside of the loop with body `inside`, or by hoistable scalar code."""
    if isinstance(value, BlockArgument):
        return value.owner is not inside
    op = defining_op(value)
    assert op is not None
    if op.parent is not inside or op in hoisted:
        return True
    if op.regions or not is_speculatable(op) or any(is_tensor(result.type) for result in op.results):
        return False
    if not all(is_hoistable(operand, inside, hoisted) for operand in op.operands):
        return False
    hoisted[op] = None
    return True


@light_dataclass(frozen=False)
class Child:
    """An inner loop, the ops between the preceding loop and it, and its window of iterations."""

    loop: Operation
    prologue: list[Operation]
    captured: list[SSAValue] = field(default_factory=list)  # values of the prologue that later ops use
    renewed: list[int] = field(default_factory=list)  # carried values whose initial value is of the outer loop
    start: SSAValue | None = None  # the iteration of its first body; None: the first one
    count: SSAValue | None = None


class Fusion:
    """The loop that replaces `outer` and its children."""

    def __init__(self, outer: Operation, must_execute: bool, rounds: SSAValue | None = None) -> None:
        self.outer = outer
        self.rounds = rounds  # the iterations of `outer`, if all iterations fit into their type
        self.must_execute = must_execute
        self.code = Emitter(outer.location)
        self.children: list[Child] = []
        self.epilogue: list[Operation] = []
        self.body = Block()

    def run(self) -> None:
        """Build the fused loop; it carries time, outer index and values, those of each child, and captured values."""
        self.split()
        before = Emitter(self.outer.location)
        width = max(loop.operands[0].type.width.data for loop in self.loops)  # pyright: ignore
        self.time_type = IntegerType(width)
        length, total = self.lengths(before)
        initial, slots = self.initial_values(before)
        zero, one = before.constant(0, total.type), before.constant(1, total.type)
        before.insert_before(self.outer)
        self.body.insert_arg(total.type, 0)
        for value in initial:
            self.body.insert_arg(value.type, len(self.body.args))
        self.fill(length, slots)
        attributes = {}
        for loop in (*(child.loop for child in self.children), self.outer):
            attributes |= loop.attributes
        for name in (FLATTEN, ALWAYS):
            attributes.pop(name, None)
        fused = make_for(zero, total, one, initial, Region(self.body), self.outer.location, attributes)
        insert_before(self.outer, fused)
        replace_values(self.outer.results, fused.results[2 : 2 + len(self.outer.results)])
        for child in self.children:
            erase_op(child.loop)
        erase_op(self.outer)

    @property
    def loops(self) -> list[Operation]:
        return [self.outer, *(child.loop for child in self.children)]

    def split(self) -> None:
        """Divide the body of the outer loop; its index becomes the first op of the first prologue."""
        body = body_of(self.outer)
        code = Emitter(self.outer.location)
        index = code.binary(arith.AddiOp, body.args[0], self.outer.operands[2])
        section: list[Operation] = [*code.ops]
        replace_uses(body.args[0], index, lambda user: user is not code.ops[0])
        insert_before(start_of(body), *code.ops)
        for op in list(body.ops)[1:-1]:
            if type(op) is scf.ForOp:
                self.children.append(Child(op, section))
                section = []
            else:
                section.append(op)
        self.epilogue = section
        self.sink()
        for position, child in enumerate(self.children):
            own = set(child.prologue)
            initial = child.loop.operands[3:]
            child.renewed = [offset for offset, value in enumerate(initial) if not self.is_invariant(value)]
            child.captured = [
                result
                for op in child.prologue
                for result in op.results
                if any(self.section_op(use.operation) not in own for use in result.uses) and result is not index
            ]
            if position == 0:
                child.captured.append(index)

    def section_op(self, op: Operation) -> Operation:
        """Return the op of the outer body that is or contains `op`."""
        found = enclosing_op(op, body_of(self.outer))
        assert found is not None, "a value of a loop is used in it"
        return found

    def sink(self) -> None:
        """Move pure ops that only the epilogue uses into it, so that they need not be carried."""
        late = set(self.epilogue)
        for child in reversed(self.children):
            for op in reversed(child.prologue[1:] if child is self.children[0] else child.prologue[:]):
                users = [self.section_op(use.operation) for result in op.results for use in result.uses]
                if users and not op.regions and is_speculatable(op) and all(user in late for user in users):
                    child.prologue.remove(op)
                    self.epilogue.insert(0, op)
                    late.add(op)

    def lengths(self, code: Emitter) -> tuple[SSAValue, SSAValue]:
        """Return the fused iterations of one outer iteration, and their total."""
        one = code.constant(1, self.time_type)
        length: SSAValue | None = None
        for child in self.children:
            extension = arith.ExtSIOp if counts_by_bound(child.loop) else arith.ExtUIOp
            child.count = widened(code, trip_count(code, child.loop), self.time_type, extension)
            known = constant_value(child.count)
            at_least_one = (
                child.count
                if known is not None and known > 0
                else code.binary(arith.MaxSIOp if counts_by_bound(child.loop) else arith.MaxUIOp, child.count, one)
            )
            if length is None:
                length = at_least_one
            else:
                child.start = code.binary(arith.SubiOp, length, one)
                length = code.binary(arith.AddiOp, child.start, at_least_one)
        assert length is not None
        if self.rounds is not None:
            return length, code.binary(arith.MuliOp, self.rounds, length)
        outer = iterations(code, *self.outer.operands[:3])
        total = code.binary(arith.MuliOp, *(widened(code, count, i64, arith.ExtUIOp) for count in (outer, length)))
        return length, total

    def initial_values(self, code: Emitter) -> tuple[list[SSAValue], dict[object, int]]:
        """Return the initial values of the new loop, and the index of the body argument of each."""
        outer = self.outer
        values = [code.constant(0, self.time_type), code.binary(arith.SubiOp, outer.operands[0], outer.operands[2])]
        values += outer.operands[3:]
        slots: dict[object, int] = {}
        for child in self.children:
            slots[child.loop] = len(values) + 1
            if not self.is_time(child):
                values.append(code.constant(0, child.loop.operands[0].type))
            for offset, value in enumerate(child.loop.operands[3:]):
                values.append(placeholder(code, value.type) if offset in child.renewed else value)
        for child in self.children:
            for value in child.captured:
                if child is self.children[0] and value is child.captured[-1]:
                    slots[value] = 2
                else:
                    slots[value] = len(values) + 1
                    values.append(placeholder(code, value.type))
        return values, slots

    def is_time(self, child: Child) -> bool:
        """Return True if the index of `child` equals the time since the start of the outer iteration."""
        first, step = (constant_value(child.loop.operands[position]) for position in (0, 2))
        return child is self.children[0] and first == 0 and step == 1 and child.loop.operands[0].type == self.time_type

    def is_invariant(self, value: SSAValue) -> bool:
        """Return True if `value` is defined outside of the outer loop."""
        body = body_of(self.outer)
        return (value.owner if isinstance(value, BlockArgument) else value.owner.parent) is not body

    # The body

    def fill(self, length: SSAValue, slots: dict[object, int]) -> None:
        """Emit prologues, bodies, epilogue, and the yield."""
        args, outer_body = self.body.args, body_of(self.outer)
        time = args[1]
        replace_values(outer_body.args, args[2 : 2 + len(outer_body.args)])
        carried: list[SSAValue] = []
        resets: list[tuple[int, SSAValue]] = []  # indices in `carried` that are reset to this value
        kept: dict[int, SSAValue] = {}
        for child in self.children:
            first = slots[child.loop]
            index, current = self.start_child(child, time, args, slots, kept)
            next_index, following = self.run_child(child, time, index, current)
            replace_values(child.loop.results, following)
            assert first == 3 + len(self.outer.results) + len(carried)
            carried += () if self.is_time(child) else (next_index,)
            for offset, value in enumerate(child.loop.operands[3:]):
                if offset not in child.renewed:
                    resets.append((len(carried) + offset, value))
            carried += following
        code = self.code
        one = code.constant(1, self.time_type)
        is_last = code.compare("eq", time, code.binary(arith.SubiOp, length, one))
        results = self.finish(is_last, args[3 : 3 + len(self.outer.results)])
        for position, value in resets:
            carried[position] = self.select(is_last, value, carried[position])
        zero = code.constant(0, self.time_type)
        next_time = self.select(is_last, zero, code.binary(arith.AddiOp, time, one))
        captured = [kept[index] for index in sorted(kept) if index != 2]
        self.body.add_ops(code.ops)
        self.body.add_op(make_yield((next_time, kept[2], *results, *carried, *captured), self.outer.location))

    def select(self, condition: SSAValue, on_true: SSAValue, on_false: SSAValue) -> SSAValue:
        return on_true if on_true is on_false else self.code.select(condition, on_true, on_false)

    def start_child(
        self,
        child: Child,
        time: SSAValue,
        args: Sequence[SSAValue],
        slots: dict[object, int],
        kept: dict[int, SSAValue],
    ) -> tuple[SSAValue, list[SSAValue]]:
        """Emit the prologue of `child`, for its first iteration; return its index and carried values in this one."""
        code, first = self.code, slots[child.loop]
        start = child.start if child.start is not None else code.constant(0, self.time_type)
        is_first = code.compare("eq", time, start)
        if self.is_time(child):
            index = time
        else:
            index, first = self.select(is_first, child.loop.operands[0], args[first]), first + 1
        initial = child.loop.operands[3:]
        carried = list(args[first : first + len(initial)])
        inside = [*child.captured, *(initial[offset] for offset in child.renewed)]
        outside = [*(args[slots[value]] for value in child.captured), *(carried[offset] for offset in child.renewed)]
        if not inside and not child.prologue:
            return index, carried
        branch = self.branch(is_first, child.prologue, inside, outside)
        for value, result in zip(child.captured, branch.results, strict=False):
            replace_uses(value, result, lambda user: not is_inside(user, branch))
            kept[slots[value]] = result
        for offset, result in zip(child.renewed, branch.results[len(child.captured) :], strict=True):
            carried[offset] = result
        return index, carried

    def branch(
        self, condition: SSAValue, ops: Sequence[Operation], inside: Sequence[SSAValue], outside: Sequence[SSAValue]
    ) -> Operation:
        """Emit ``scf.if condition { ops; yield inside } else { yield outside }``."""
        loc, types = self.outer.location, [value.type for value in inside]
        then_block, else_block = Block([*taken_out(ops), make_yield(inside, loc)]), Block([make_yield(outside, loc)])
        new = make_if(condition, types, Region(then_block), Region(else_block), loc)
        self.code.ops.append(new)
        return new

    def run_child(
        self, child: Child, time: SSAValue, index: SSAValue, carried: list[SSAValue]
    ) -> tuple[SSAValue, list[SSAValue]]:
        """Emit the body of `child`; return its index and carried values after it."""
        body = body_of(child.loop)
        replace_values(body.args, (index, *carried))
        end = end_of(body)
        yielded = list(end.operands)
        erase_op(end)
        step = Emitter(child.loop.location)
        following = step.binary(arith.AddiOp, index, child.loop.operands[2])
        ops = [*body.ops, *step.ops]
        if not self.must_execute:
            branch = self.branch(self.is_running(child, time), ops, (following, *yielded), (index, *carried))
            return branch.results[0], list(branch.results[1:])
        self.code.ops += taken_out(ops)
        return following, yielded

    def is_running(self, child: Child, time: SSAValue) -> SSAValue:
        """Return the condition that the time is in the window of `child`."""
        code, count = self.code, child.count
        assert count is not None
        if child.start is None:
            return code.compare("slt", time, count)
        late = code.compare("sge", time, child.start)
        early = code.compare("slt", time, code.binary(arith.AddiOp, child.start, count))
        return code.binary(arith.AndIOp, late, early)

    def finish(self, is_last: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """Emit the epilogue; return the values that the outer loop carries into its next iteration."""
        end = end_of(body_of(self.outer))
        following = list(end.operands)
        computed = [i for i, value in enumerate(following) if defining_op(value) in self.epilogue]
        results = list(carried)
        if self.epilogue:
            branch = self.branch(
                is_last, self.epilogue, [following[i] for i in computed], [carried[i] for i in computed]
            )
            for index, result in zip(computed, branch.results, strict=True):
                results[index] = result
        for index, value in enumerate(following):
            if index not in computed:
                results[index] = self.select(is_last, value, carried[index])
        return results


def taken_out(ops: Sequence[Operation]) -> Sequence[Operation]:
    """Detach `ops` from their blocks."""
    for op in ops:
        if op.parent is not None:
            op.detach()
    return ops


def placeholder(code: Emitter, type: Attribute) -> SSAValue:
    """Return an arbitrary value of `type`, to carry until the first real one."""
    element = element_type(type)
    if is_float(element) or is_integer(element):
        return code.constant(0, type)
    return code.append(ub.PoisonOp.create(result_types=(type,), location=code.loc))
