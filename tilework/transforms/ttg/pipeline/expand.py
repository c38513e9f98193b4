"""Expand a loop and its schedule into a prologue and a kernel loop that works on several iterations at once.

With S the last stage, iteration j of the new loop runs the ops of stage s for iteration j + S - s of the old one:

    for k: a = load(k)  stage 0            a0 = load(0)          if 0 < n     prologue: what the first iteration of
           use(a)       stage 2     ==>    a1 = load(1)          if 1 < n     the new loop finds done already
                                           for k = 0 to n, carrying a0, a1:
                                               use(a0)
                                               a2 = load(k + 2)  if k < n - 2
                                               yield a1, a2

In the prologue, `Expander.at(value, k)` is the value in iteration k of the old loop. In the new loop a value that is
computed in stage d and read in stage s > d is carried through s - d arguments, oldest first. A value that the old loop
carried and that an op of stage d computes is, at the start of iteration j, the one for iteration j + S - d; an op of
stage d - 1 reads the result of that op directly.

Ops that run for iterations that may not exist are predicated, those with a `slack` only for later ones: their results
are read for that many more iterations. If a carried value is used after the loop, it keeps its value in those:
``select(exists, new, old)``.

The last iterations may instead be *peeled*: the loop ends S iterations early, and an epilogue completes them, with the
conditions of the prologue (if the loop ran at all, they all hold). Then no op inside the loop is conditional.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from tilework.ir import arith, scf, tt, ttg, ttng
from tilework.ir.arith import binary
from tilework.ir.create import append_op
from tilework.ir.effects import is_pure, writes
from tilework.ir.llvm import AssumeOp
from tilework.ir.nesting import body_of, location_of
from tilework.ir.rewrite import constant_value, insert_before, recreate, replace_op
from tilework.ir.scf import make_for, make_if, make_yield
from tilework.transforms.building.emitter import Emitter, iterations, narrowed, set_mask
from tilework.transforms.ttg.pipeline.loops import used_values, yield_of

# Predicate ops, so that they do nothing where the predicate is false: copies of ops before the first or after the last
# iteration that exists.
#
#     tt.store %p, %v                  ==>   tt.store %p, %v, (splat %pred)
#     tt.load %p, %m                   ==>   tt.load %p, (splat %pred) & %m
#     scf.if %c { ... }                ==>   scf.if %pred & %c { ... }
#     ttng.barrier_expect %b, 64, %q   ==>   ttng.barrier_expect %b, 64, %pred & %q
#
# Ops without side effects may run unconditionally, and so may waits, commits (of an empty group), accesses to shared
# memory of the loop, and descriptors, which are unused then. Other side effects cannot be predicated, and the loop is
# not pipelined.

Rule: TypeAlias = Callable[[Operation, SSAValue], list[Operation]]

GUARDED: tuple[type[Operation], ...] = (
    *(tt.LoadOp, tt.StoreOp, tt.AtomicRMWOp, ttg.AsyncCopyGlobalToLocalOp),
    *(ttng.WaitBarrierOp, ttng.ArriveBarrierOp),
)
HARMLESS: frozenset[type[Operation]] = frozenset(
    {
        AssumeOp,
        ttg.AsyncCommitGroupOp,
        ttg.AsyncWaitOp,
        ttg.LocalAllocOp,
        ttg.LocalLoadOp,
        ttg.LocalStoreOp,
        ttng.FenceAsyncSharedOp,
        ttng.TensormapCreateOp,
        ttng.TensormapFenceproxyAcquireOp,
        ttng.WarpGroupDotOp,
        ttng.WarpGroupDotWaitOp,
    }
)


def can_predicate(op: Operation) -> bool:
    """Return True if `op` can be predicated."""
    return type(op) in RULES or is_harmless(op)


def is_harmless(op: Operation) -> bool:
    """Return True if `op` may run unconditionally for an iteration that does not exist."""
    return type(op) in HARMLESS or is_pure(op) or (type(op) not in RULES and not writes(op))


def predicated(op: Operation, pred: SSAValue) -> list[Operation]:
    """Return the predicated form of the detached `op`: ops that compute its mask, then itself or its substitute."""
    return [op] if is_harmless(op) else RULES[type(op)](op, pred)


def in_branch(op: Operation, pred: SSAValue) -> list[Operation]:
    """Predicate `op` by a branch if it is expensive or cannot be predicated otherwise: a skipped dot yields its
    accumulator.
    """
    otherwise = [op.operands[2]] if type(op) in (tt.DotOp, tt.DotScaledOp) else []
    if len(otherwise) != len(op.results) or (not otherwise and can_predicate(op)):
        return predicated(op, pred)
    then = Region(Block([op, make_yield(op.results, op.location)]))
    other = Region(Block([make_yield(otherwise, op.location)])) if otherwise else None
    return [make_if(pred, [value.type for value in op.results], then, other, op.location)]


def guarded(op: Operation, pred: SSAValue) -> list[Operation]:
    """Predicate an access by pointers, a wait or an arrival, which may have no mask yet."""
    code = Emitter(op.location)
    set_mask(op, narrowed(code, op, pred))
    return [*code.ops, op]


def conditional(op: Operation, pred: SSAValue, position: int) -> list[Operation]:
    """Predicate an op whose operand at `position` is a predicate."""
    combined = binary(arith.AndIOp, pred, op.operands[position], op.location)
    op.operands[position] = combined.results[0]
    return [combined, op]


RULES: dict[type[Operation], Rule] = {
    scf.IfOp: partial(conditional, position=0),
    **dict.fromkeys(
        (ttng.BarrierExpectOp, ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMAGatherOp),
        lambda op, pred: conditional(op, pred, len(op.operands) - 1),
    ),
    **dict.fromkeys(GUARDED, guarded),
}


Order = Sequence[tuple[Operation, int]]


def problem(loop: Operation, order: Order, peels: bool = False) -> str | None:
    """Return the reason why the ops of `loop` cannot run in `order`, or None."""
    last = max((stage for _, stage in order), default=0)
    cycle = {op: position + stage * len(order) for position, (op, stage) in enumerate(order)}
    body, yields = body_of(loop), yield_of(loop).operands
    for op, stage in order:
        if (stage < last or (peels and op.results)) and not can_predicate(op):
            return f"{op.name} cannot run ahead: it has effects that cannot be made conditional"
        for value in used_values(op):
            shift = 0
            if isinstance(value, BlockArgument) and value.block is body and value.index > 0:
                value, shift = yields[value.index - 1], len(order)
                if isinstance(value, BlockArgument) and value.block is body:
                    return "a value is carried over more than one iteration"
            if isinstance(value, OpResult) and value.op in cycle and value.op is not op:
                if cycle[value.op] - shift >= cycle[op]:
                    return f"{op.name} would run before {value.op.name}, which it needs"
    return None


def expand(
    loop: Operation, order: Order, slack: Mapping[Operation, int] | None = None, peels: bool = False
) -> Operation:
    """Replace `loop` by a prologue and the new loop, and return that. `problem` must have returned None."""
    return Expander(loop, order, slack or {}, peels).run()


class Expander:
    """The expansion of one loop."""

    def __init__(self, loop: Operation, order: Order, slack: Mapping[Operation, int], peels: bool) -> None:
        self.loop = loop
        self.slack = slack
        self.peels = peels
        self.order = order
        self.body = body_of(loop)
        self.yields = tuple(yield_of(loop).operands)
        self.lower, self.upper, self.step, *self.initial = loop.operands
        self.stages = dict(order)
        self.last = max(stage for _, stage in order)
        self.code = Emitter(loop.location)
        self.versions: dict[SSAValue, dict[int, SSAValue]] = {}
        self.exists: list[SSAValue] = []
        self.starts: dict[int, SSAValue] = {}
        self.first = self.lower  # the iteration that versions are counted from
        self.is_behind = False
        self.made_at = [self.made_stage(position) for position in range(len(self.yields))]

    def run(self) -> Operation:
        """Emit the prologue and the new loop, and replace the uses of the old one."""
        self.emit_prologue()
        end = self.end_of_peeled() if self.peels else self.upper
        self.code.insert_before(self.loop)
        kernel = Kernel(self)
        new = kernel.build(end)
        insert_before(self.loop, new)
        results = list(new.results)
        if self.peels:
            self.emit_epilogue(kernel, results)
            self.code.insert_before(self.loop)
            results = [self.versions[argument][self.last] for argument in self.body.args[1:]]
        replace_op(self.loop, results=results[: len(self.loop.results)])
        return new

    def end_of_peeled(self) -> SSAValue:
        """Return the upper bound of the new loop if the last iterations, possibly all, are peeled."""
        end = self.code.binary(arith.SubiOp, self.upper, self.steps(self.last))
        return self.code.select(self.has_iteration(self.last), end, self.lower)

    def made_stage(self, position: int) -> int:
        """Return the stage that computes the next value of the argument at `position`."""
        value = self.yields[position]
        if isinstance(value, OpResult) and value.op in self.stages:
            return self.stages[value.op]
        readers = [stage for op, stage in self.order if self.body.args[1 + position] in set(used_values(op))]
        return min(readers, default=self.last)

    def is_used_after(self, position: int) -> bool:
        return self.loop.results[position].first_use is not None

    def emit_prologue(self) -> None:
        """Emit the stages that iterations in flight at the start of the new loop have completed."""
        for argument, value in zip(self.body.args[1:], self.initial, strict=True):
            self.versions[argument] = {0: value}
        for part in range(self.last):
            self.exists.append(self.has_iteration(part))
            self.emit_part(part)

    def has_iteration(self, iteration: int) -> SSAValue:
        """Return the condition that `iteration` exists; a sum from the lower bound might wrap around."""
        code = self.code
        if iteration == 0 or constant_value(self.lower) == 0:
            return code.compare("slt", self.start(iteration), self.upper)
        span = code.binary(arith.SubiOp, self.upper, self.lower)
        return code.binary(arith.AndIOp, self.exists[0], code.compare("ugt", span, self.steps(iteration)))

    def emit_epilogue(self, kernel: "Kernel", results: Sequence[SSAValue]) -> None:
        """Complete the last iterations. Versions count from the iteration with which the loop would have continued."""
        self.is_behind = True
        self.code, self.starts = Emitter(self.loop.location), {}
        self.versions = {}
        for (value, iteration), result in zip(kernel.alive(), results, strict=True):
            self.versions.setdefault(value, {})[iteration] = result
        for part in range(self.last, 2 * self.last):
            if part == self.last and any(self.body.args[0] in used_values(op) for op, stage in self.order if stage):
                self.first = self.end_of_kernel()
            self.emit_part(part)

    def end_of_kernel(self) -> SSAValue:
        """Return the counter after the new loop, which may not have run."""
        code = self.code
        count = iterations(code, self.lower, self.upper, self.step)
        last, zero = code.constant(self.last, count.type), code.constant(0, count.type)
        done = code.select(code.compare("ugt", count, last), code.binary(arith.SubiOp, count, last), zero)
        return code.binary(arith.AddiOp, self.lower, code.binary(arith.MuliOp, done, self.step))

    def emit_part(self, part: int) -> None:
        """Emit the ops of stage s for iteration `part` - s."""
        self.carry_invariants(part)
        for op, stage in self.order:
            if 0 <= part - stage < self.last:
                self.emit(op, part - stage)

    def start(self, iteration: int) -> SSAValue:
        """Return the loop counter in `iteration`."""
        if iteration not in self.starts:
            first = self.first
            self.starts[iteration] = (
                self.code.binary(arith.AddiOp, first, self.steps(iteration)) if iteration else first
            )
        return self.starts[iteration]

    def steps(self, count: int) -> SSAValue:
        """Return `count` times the step."""
        known = constant_value(self.step)
        if isinstance(known, int):
            return self.code.constant(known * count, self.step.type)
        return self.code.binary(arith.MuliOp, self.step, self.code.constant(count, self.step.type))

    def carry_invariants(self, part: int) -> None:
        """Record the versions of arguments whose next value is not computed in the loop."""
        for position, value in enumerate(self.yields):
            if not (isinstance(value, OpResult) and value.op in self.stages):
                if 0 <= (iteration := part - self.made_at[position]) < self.last:
                    self.next_version(position, iteration, value)

    def emit(self, op: Operation, iteration: int) -> None:
        """Emit a copy of `op` for `iteration`."""
        mapping = {value: self.at(value, iteration) for value in used_values(op) if self.is_inside(value)}
        copy = copy_op(op, mapping)
        needed = iteration - self.slack.get(op, 0)
        guard = in_branch if self.is_behind else predicated
        self.code.ops.extend(made := guard(copy, self.exists[needed]) if needed >= 0 else [copy])
        for old, new in zip(op.results, made[-1].results, strict=True):
            self.versions.setdefault(old, {})[iteration] = new
        for position, value in enumerate(self.yields):
            if isinstance(value, OpResult) and value.op is op:
                self.next_version(position, iteration, self.versions[value][iteration])

    def next_version(self, position: int, iteration: int, value: SSAValue) -> None:
        """Record `value` as the argument at `position` of the iteration after `iteration`."""
        versions = self.versions[self.body.args[1 + position]]
        if self.is_used_after(position):
            value = self.code.select(self.exists[iteration], value, versions[iteration])
        versions[iteration + 1] = value

    def is_inside(self, value: SSAValue) -> bool:
        """Return True if `value` is defined at the top level of the body."""
        if isinstance(value, OpResult):
            return value.op in self.stages
        return isinstance(value, BlockArgument) and value.block is self.body

    def at(self, value: SSAValue, iteration: int) -> SSAValue:
        """Return `value` in `iteration` of the old loop, in the prologue."""
        if value is self.body.args[0]:
            return self.start(iteration)
        return self.versions[value][iteration]


class Kernel:
    """The new loop."""

    def __init__(self, expander: Expander) -> None:
        self.old = expander
        self.last = expander.last
        self.location = expander.loop.location
        self.code = expander.code = Emitter(self.location)
        self.block = Block(arg_types=[argument.type for argument in expander.body.args])
        for argument, original in zip(self.block.args, expander.body.args, strict=True):
            argument.name_hint = original.name_hint
            argument.location = original.location
        self.made: dict[SSAValue, SSAValue] = {}
        self.exists: list[SSAValue] = []
        self.carried = self.cross_stage_values()
        self.slots: dict[SSAValue, list[SSAValue]] = {}

    def alive(self) -> Iterator[tuple[SSAValue, int]]:
        """Yield the values that the loop carries, in order, each with its iteration."""
        for position, argument in enumerate(self.old.body.args[1:]):
            yield argument, self.last - self.old.made_at[position]
        for value, count in self.carried.items():
            newest = self.last - self.stage_of(value)
            yield from ((value, iteration) for iteration in range(newest - count, newest))

    def build(self, end: SSAValue) -> Operation:
        """Build the loop, with its carried values, body and yield."""
        old = self.old
        initial = [old.at(*one) for one in self.alive()]
        for value, count in self.carried.items():
            where = location_of(value)
            self.slots[value] = [self.block.insert_arg(value.type, len(self.block.args), where) for _ in range(count)]
        self.emit_body()
        for op in self.code.ops:
            append_op(self.block, op)
        return make_for(old.lower, end, old.step, initial, Region(self.block), self.location, old.loop.attributes)

    def cross_stage_values(self) -> dict[SSAValue, int]:
        """Return the values that are read in a later stage than that of their definition, with the number of live
        versions.
        """
        counts: dict[SSAValue, int] = {}
        for op, stage in self.old.order:
            for value in used_values(op):
                if not self.old.is_inside(value) or value is self.old.body.args[0]:
                    continue
                if (distance := stage - self.stage_of(value)) > 0:
                    counts[value] = max(counts.get(value, 0), distance)
        return counts

    def stage_of(self, value: SSAValue) -> int:
        """Return the stage that computes `value`, or the next value of an argument."""
        if isinstance(value, OpResult):
            return self.old.stages[value.op]
        assert isinstance(value, BlockArgument), value
        return self.old.made_at[value.index - 1]

    def emit_body(self) -> None:
        old, code = self.old, self.code
        counter = self.block.args[0]
        for stage in range(0 if old.peels else self.last):
            end = code.binary(arith.SubiOp, old.upper, old.steps(self.last - stage))
            self.exists.append(code.compare("slt", counter, end))
        for op, stage in old.order:
            mapping = {value: self.read(value, stage) for value in used_values(op) if old.is_inside(value)}
            copy = copy_op(op, mapping)
            needed = stage + old.slack.get(op, 0)
            made = predicated(copy, self.exists[needed]) if needed < len(self.exists) else [copy]
            code.ops.extend(made)
            for before, after in zip(op.results, made[-1].results, strict=True):
                self.made[before] = after
        values = list(self.yielded())
        code.ops.append(make_yield(values, yield_of(old.loop).location))

    def read(self, value: SSAValue, stage: int) -> SSAValue:
        """Return the version of `value` that an op of `stage` reads."""
        if value is self.old.body.args[0]:
            counter = self.block.args[0]
            if stage == self.last:
                return counter
            return self.code.binary(arith.AddiOp, counter, self.old.steps(self.last - stage))
        distance = stage - self.stage_of(value)
        if distance > 0:
            return self.slots[value][len(self.slots[value]) - distance]
        if isinstance(value, OpResult):
            return self.made[value]
        assert isinstance(value, BlockArgument), value
        if distance == 0:
            return self.block.args[value.index]
        return self.next_value(value.index - 1)

    def next_value(self, position: int) -> SSAValue:
        """Return the value that this iteration computes for the argument at `position`."""
        value = self.old.yields[position]
        return self.made.get(value, value)

    def yielded(self) -> Iterator[SSAValue]:
        """Yield the value of each argument of the new loop in its next iteration."""
        for position in range(len(self.old.yields)):
            value, stage = self.next_value(position), self.old.made_at[position]
            if stage < len(self.exists) and self.old.is_used_after(position):
                value = self.code.select(self.exists[stage], value, self.block.args[1 + position])
            yield value
        for value, slots in self.slots.items():
            yield from slots[1:]
            yield self.block.args[value.index] if isinstance(value, BlockArgument) else self.made[value]


def copy_op(op: Operation, mapping: dict[SSAValue, SSAValue]) -> Operation:
    """Return a detached copy of `op` that reads other values, and add its results to `mapping`."""
    if op.regions:
        return op.clone(mapping)
    copy = recreate(op, operands=[mapping.get(value, value) for value in op.operands])
    mapping.update(zip(op.results, copy.results, strict=True))
    return copy
