"""Two dots with work between them, as in attention: overlap the work of one iteration with the second dot of the
iteration before.

    for n:                                    for n:
        s = q @ k[n]                              wait for acc, release v[n - 2]
        p, a = softmax(s)                         s = q @ k[n]                           started
        acc = acc * a + p @ v[n]      ==>         unless it is the first iteration:
                                                      acc = acc * a + p @ v[n - 1]       started
                                                  wait for s, release k[n]
                                                  p, a = softmax(s)                      while p @ v runs
                                              if there was an iteration:
                                                  wait for acc, release v[last - 1]
                                                  acc = acc * a + p @ v[last]

The ops of the body form three parts: `first`, the dot that can run ahead and its operands; `second`, the other dot and
the ops that only it needs; and `between`. The loop carries what `second` needs from the preceding iteration. Results
are bitwise identical. The first iteration is a branch in the loop, not a prologue: the code between the dots is most of
a kernel, and a second copy would double the time of ptxas. The wait for acc is at the start of an iteration, not at the
end of the preceding one, where ptxas would hoist it above the work.
"""

from collections.abc import Iterable, Sequence

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilework.analysis.cost import TENSOR, loop_cost
from tilework.analysis.scratch import scratch_size
from tilework.analysis.value_flows import reached
from tilework.ir import arith, ttg, ttng
from tilework.ir.create import append_op, clone_op
from tilework.ir.effects import is_pure
from tilework.ir.module_facts import find_target, num_warps
from tilework.ir.nesting import body_of, enclosing_op, end_of, ops_around
from tilework.ir.rewrite import erase_op, insert_after, insert_before, replace_all_uses
from tilework.ir.scf import make_for, make_if, make_yield
from tilework.ir.types import element_type, i1, i32, int_attr, is_float, is_integer, is_tensor, shape_of
from tilework.ir.ub import poison
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.ttg.pipeline.loops import NUM_STAGES, body_ops, producers, set_integer, used_values, yield_of
from tilework.transforms.ttg.pipeline.wgmma import wait_for
from tilework.transforms.warp_specialize.channels import readers_of
from tilework.transforms.warp_specialize.multi_buffering import Reading, arrive, carry, make_barriers

# Ping-pong order: two groups of warps alternate in starting their dots, so that one uses the tensor cores while the
# other does the work between dots.
#
#     for n:
#         pingpong_wait %barriers, %phase                               the other one has started its dots
#         s = q @ k[n];  acc = acc * a + p @ v[n - 1]               started
#         pingpong_signal %barriers
#         wait for s;  p, a = softmax(s)                            while the other one's dots run
#
# Otherwise both groups may wait for their dots at the same time, and compute at the same time while tensor cores idle.
# Where tensor cores are the bottleneck that hardly ever happens, and waiting for the other group keeps them
# idle (docs/cost-model.md has figures). The groups run the same code, so that they wait and signal equally often, and
# the phase continues from loop to loop. The group that is not waiting must not wait for all warps, because the others
# wait for its signal. The barriers are mbarriers: with named barriers one group would have waited once more than the
# other, and racecheck then reports accesses ordered by a block-wide barrier as races
# (benchmarks/results/sanitizer-h200.txt).

GROUPS = 2
CLEARLY = 1.1  # at 1.03 ping-pong costs as much as it gains, at 1.2 it gains
WRITES = frozenset({ttg.LocalAllocOp, ttg.LocalStoreOp})


def ping_pong_pays(loop: Operation) -> bool:
    """Return True if a resource other than tensor cores clearly bounds `loop`."""
    cost = loop_cost(loop)
    return cost is not None and cost.bound > CLEARLY * cost.cycles[TENSOR]


def may_meet(ops: Iterable[Operation]) -> bool:
    """Return True if one of `ops` may need a barrier of all warps, because it writes shared memory."""
    inside = (inner for op in ops for inner in op.walk())
    return any(type(op) in WRITES or scratch_size(op, find_target(op)) > 0 for op in inside)


def start_ping_pong(loop: Operation, first: Operation, last: Operation) -> None:
    """Let the two groups of warps that run `loop` start its dots, `first` to `last`, in ping-pong order."""
    specialized = next(op for op in ops_around(loop) if isinstance(op, ttg.WarpSpecializeOp))
    code = Emitter(loop.location)
    barriers = make_barriers(code, GROUPS, num_warps(loop) // GROUPS)
    code.insert_before(specialized)
    ((phase,),) = carry(frozenset({body_of(loop)}), body_of(specialized), 1, flip, loop.location).values()
    insert_before(first, ttng.PingPongWaitOp.make(barriers, phase, first.location))
    insert_after(last, ttng.PingPongSignalOp.make(barriers, last.location))


def flip(code: Emitter, phase: list[SSAValue]) -> list[SSAValue]:
    return [code.binary(arith.XOrIOp, phase[0], code.constant(1, i32))]


Mapping = dict[SSAValue, SSAValue]


@light_dataclass(frozen=False)
class Parts:
    """The ops of a body by part, and the indices of the carried values that `second` computes."""

    dots: tuple[Operation, Operation]
    first: list[Operation]
    between: list[Operation]
    second: list[Operation]
    late: list[int]


def overlap(loop: Operation, readings: Sequence[Reading], ping_pong: bool) -> tuple[Operation | None, list[Reading]]:
    """Rewrite `loop` if it has this form; return the new loop, and the readings whose slots the new code releases.

    With `ping_pong` two groups of warps start their dots alternately.
    """
    own = [reading for reading in readings if reading.block is body_of(loop)]
    parts = find_parts(loop, own)
    if parts is None:
        return None, []
    users = [{enclosing_op(op, body_of(loop)) for view in ring.views for op in readers_of(view)} for ring in own]
    if any(found not in ({parts.dots[0]}, {parts.dots[1]}) for found in users):
        return None, []
    rings = ([], [])
    for reading, found in zip(own, users, strict=True):
        rings[parts.dots[1] in found].append(reading)
    rotation = Rotation(loop, parts, *rings, ping_pong and not may_meet(parts.second))
    return (None, []) if not all(is_numeric(value.type) for value in rotation.passed) else (rotation.run(), own)


def find_parts(loop: Operation, readings: Sequence[Reading]) -> Parts | None:
    """Return the parts of the body, or None if it does not have this form."""
    ops, end = body_ops(loop), yield_of(loop)
    dots = [op for op in ops if type(op) is ttng.WarpGroupDotOp]
    inner = [op for op in body_of(loop).walk() if type(op) is ttng.WarpGroupDotOp]
    if len(dots) != 2 or len(inner) != 2 or "unsignedCmp" in loop.properties:
        return None
    waits = {reading.wait: enclosing_op(next(readers_of(reading.views[0])), body_of(loop)) for reading in readings}
    first = closure([dots[0], *(wait for wait, reader in waits.items() if reader is dots[0])], body_of(loop))
    second = {dots[1], *(wait for wait, reader in waits.items() if reader is dots[1])}
    for op in reversed(ops):  # ops that only the second dot needs
        users = {enclosing_op(use.operation, body_of(loop)) for result in op.results for use in result.uses}
        if op.results and users and users <= second and is_pure(op):
            second.add(op)
    if dots[1] in first or first & second or dots[0] not in closure([dots[1]], body_of(loop)):
        return None
    between = [op for op in ops if op not in first and op not in second]
    late = [index for index, value in enumerate(end.operands) if value.owner in second]
    parts = Parts(
        (dots[0], dots[1]), [op for op in ops if op in first], between, [op for op in ops if op in second], late
    )
    arguments = {body_of(loop).args[1 + index] for index in late}
    early = [value for op in (*parts.first, *between) for value in used_values(op)]
    early += [value for index, value in enumerate(end.operands) if index not in late]  # passed on: ``before = acc``
    made = {result for op in second for result in op.results}
    if len(late) != 1 or any(value in arguments or value in made for value in early):
        return None
    return None if any(value.owner in between for op in first for value in used_values(op)) else parts


def closure(roots: Iterable[Operation], body: Block) -> set[Operation]:
    """Return `roots` and the ops of the body that they depend on in the same iteration."""
    return set(reached(roots, lambda op: producers(op, body)))


def is_numeric(type: Attribute) -> bool:
    element = element_type(type)
    return is_float(element) or is_integer(element)


def placeholder(code: Emitter, type: Attribute) -> SSAValue:
    """Return a placeholder for a value that the first iteration does not use. Vectors and scalars are 0: waits read
    rows, and barriers are indexed.
    """
    is_tile = is_tensor(type) and len(shape_of(type)) > 1
    return code.append(poison(type, code.loc)) if is_tile else code.constant(0, type)


def is_behind_second(code: Emitter, lower: SSAValue, index: SSAValue, step: SSAValue) -> SSAValue:
    """Return True if `index` is more than one step from `lower`."""
    return code.compare("ugt", code.binary(arith.SubiOp, index, lower), step)


class Rotation:
    """The rewrite of one loop; the first dot reads `early` rings, the second `late` ones."""

    def __init__(
        self, loop: Operation, parts: Parts, early: list[Reading], late: list[Reading], ping_pong: bool
    ) -> None:
        self.loop, self.parts, self.early, self.late, self.ping_pong = loop, parts, early, late, ping_pong
        self.arguments = list(body_of(loop).args)
        self.yields = list(yield_of(loop).operands)
        inside = {result for op in parts.second for result in op.results}
        late_arguments = {self.arguments[1 + index] for index in parts.late}
        needed = [value for op in parts.second for value in used_values(op)]
        needed += [reading.index for reading in late]
        own = {result for op in (*parts.first, *parts.between) for result in op.results} | set(self.arguments)
        self.passed = [
            value for value in dict.fromkeys(needed) if value in own and value not in inside | late_arguments
        ]
        self.released = [reading.index for reading in late]

    def run(self) -> Operation:
        """Replace the loop and return the new one."""
        loop, location, late = self.loop, self.loop.location, self.parts.late
        lower, upper, step, *initial = loop.operands
        behind = self.make_loop(lower, upper, step, initial)
        last: Mapping = dict(zip(self.arguments[1:], behind.results, strict=False))
        last |= dict(zip(self.passed, behind.results[len(initial) :], strict=False))
        code = Emitter(location)
        exists = code.compare("slt", lower, upper)
        had_two = code.binary(arith.AndIOp, exists, is_behind_second(code, lower, upper, step))
        insert_before(loop, *code.ops)
        self.settle(code.ops[-1], last, behind.results, had_two)
        some, none = Block(), Block([make_yield([last[self.arguments[1 + index]] for index in late], location)])
        self.finish(some, last, self.add(some, last))
        append_op(some, make_yield([last[self.yields[index]] for index in late], location))
        branch = make_if(exists, [loop.results[index].type for index in late], Region(some), Region(none), location)
        insert_before(loop, branch)
        results = {**dict(enumerate(behind.results)), **dict(zip(late, branch.results, strict=True))}
        for index, old in enumerate(loop.results):
            replace_all_uses(old, results[index])
        erase_op(loop)
        if self.ping_pong:
            start_ping_pong(behind, *self.started)
        return behind

    def make_loop(self, lower: SSAValue, upper: SSAValue, step: SSAValue, initial: Sequence[SSAValue]) -> Operation:
        """Build the loop, which carries the values that `second` needs from the preceding iteration, at first
        placeholders.
        """
        location = self.loop.location
        code = Emitter(location)
        passed = [placeholder(code, value.type) for value in (*self.passed, *self.released)]
        carried = [*initial, *passed]
        body = Block(arg_types=[lower.type, *(value.type for value in carried)])
        new = make_for(lower, upper, step, carried, Region(body), location, self.loop.attributes)
        set_integer(new, NUM_STAGES, 0)
        insert_before(self.loop, *code.ops, new)
        now: Mapping = dict(zip(self.arguments, body.args, strict=False))
        before = {**now, **dict(zip(self.passed, body.args[len(self.arguments) :], strict=False))}
        code = Emitter(location)
        had_two = is_behind_second(code, lower, body.args[0], step)
        for op in code.ops:
            append_op(body, op)
        self.settle(code.ops[-1], before, body.args[1:], had_two)
        self.emit(body, self.parts.first, now)
        self.add_to_last(body, now, before, lower)
        dot = now[self.parts.dots[0].results[0]].owner
        assert isinstance(dot, Operation)
        self.started = dot, end_of(body)
        self.compute(body, now)
        values = [
            (before if index in self.parts.late else now).get(value, value) for index, value in enumerate(self.yields)
        ]
        released = (before[value] for value in self.released)
        append_op(body, make_yield([*values, *(now[value] for value in self.passed), *released], location))
        return new

    def add_to_last(self, block: Block, now: Mapping, before: Mapping, lower: SSAValue) -> None:
        """Start the second dot of the preceding iteration; in the first iteration, wait for the first dot instead."""
        late, location = self.parts.late, self.loop.location
        alone = Block([make_yield([before[self.arguments[1 + index]] for index in late], location)])
        wait_for([now[self.parts.dots[0].results[0]]], 0, before=alone.last_op)
        added = Block()
        self.add(added, before)
        append_op(added, make_yield([before[self.yields[index]] for index in late], location))
        code = Emitter(location)
        is_second = code.compare("ne", now[self.arguments[0]], lower)
        types = [self.yields[index].type for index in late]
        branch = make_if(is_second, types, Region(added), Region(alone), location)
        for op in (*code.ops, branch):
            append_op(block, op)
        before.update(zip((self.yields[index] for index in late), branch.results, strict=True))

    def settle(self, behind: Operation, here: Mapping, carried: Sequence[SSAValue], condition: SSAValue) -> None:
        """Wait for the second dot of the preceding iteration, and release its stages, if there was one.

        The operands of the next one pass through the wait: their registers must not be overwritten before.
        """
        (total,) = (index for index in self.parts.late if self.yields[index] is self.parts.dots[1].results[0])
        held = [self.arguments[1 + total], *(value for value in self.passed if is_tensor(value.type))]
        wait = wait_for([here[value] for value in held], 0, behind=behind)
        here.update(zip(held, wait.results, strict=True))
        own = carried[len(self.yields) + len(self.passed) :]
        for reading, index in reversed(list(zip(self.late, own, strict=True))):
            arrive(reading, index, wait, condition)

    def compute(self, block: Block, here: Mapping) -> None:
        """Wait for the first dot, release its stages, and emit the part between."""
        result = self.parts.dots[0].results[0]
        wait = wait_for([here[result]], 1, behind=block.last_op)
        here[result] = wait.results[0]
        for reading in self.early:
            arrive(reading, here.get(reading.index, reading.index), block.last_op or wait)
        self.emit(block, self.parts.between, here)

    def add(self, block: Block, here: Mapping) -> Operation:
        """Start the second dot."""
        self.emit(block, self.parts.second, here)
        dot = here[self.parts.dots[1].results[0]].owner
        assert isinstance(dot, Operation)
        return dot

    def finish(self, block: Block, here: Mapping, dot: Operation) -> None:
        """Wait for the second dot and release its stages."""
        wait = wait_for(dot.results, 0, behind=end_of(block))
        result = self.parts.dots[1].results[0]
        for value in [value for value, new in here.items() if new is dot.results[0]]:
            here[value] = wait.results[0]
        assert here[result] is wait.results[0]
        for reading in self.late:
            arrive(reading, here.get(reading.index, reading.index), end_of(block))

    def emit(self, block: Block, ops: Iterable[Operation], here: Mapping) -> None:
        """Copy `ops` to the end of `block`."""
        for op in ops:
            copy = clone_op(op, here)
            if type(copy) is ttng.WarpGroupDotOp:
                copy.properties["isAsync"] = int_attr(1, i1)
            block.add_op(copy)
