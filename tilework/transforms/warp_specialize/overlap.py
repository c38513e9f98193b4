"""Two products with work between them, as in attention: the work of one iteration runs under the second product of the
iteration before.

    for n:                                    for n:
        s = q @ k[n]                              wait for acc, give v[n - 2] back
        p, a = softmax(s)                         s = q @ k[n]                           started
        acc = acc * a + p @ v[n]      ==>         unless it is the first iteration:
                                                      acc = acc * a + p @ v[n - 1]       started
                                                  wait for s, give k[n] back
                                                  p, a = softmax(s)                      while p @ v runs
                                              if there was an iteration:
                                                  wait for acc, give v[last - 1] back
                                                  acc = acc * a + p @ v[last]

The ops of the body fall into three parts: `first`, the product that can run ahead and what it needs; `second`, the other
product and what only it needs; and `between`. What `second` needs of the iteration before is carried. The values are
the same, bit by bit. The first iteration is a branch in the loop, not code in front of it: what is between the products is
most of a kernel, and ptxas would take its time for a second copy. The wait for acc is at the start of an iteration, not at
the end of the one before: there ptxas would move it in front of the work.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilework.analysis.value_flows import reached
from tilework.ir import ttng
from tilework.ir.create import append_op, clone_op
from tilework.ir.effects import is_pure
from tilework.ir.nesting import body_of, enclosing_op, end_of
from tilework.ir.rewrite import erase_op, insert_before, replace_all_uses
from tilework.ir.scf_ext import make_for, make_if, make_yield, poison
from tilework.ir.types import element_type, i1, int_attr, is_float, is_integer, is_tensor, shape_of
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.ttg.pipeline.loops import NUM_STAGES, body_ops, producers, set_integer, used_values, yield_of
from tilework.transforms.ttg.pipeline.wgmma import wait_for
from tilework.transforms.warp_specialize.channels import readers_of
from tilework.transforms.warp_specialize.releases import arrive
from tilework.transforms.warp_specialize.rings import Reading
from tilework.transforms.warp_specialize.turns import may_meet, take_turns

Mapping = dict[SSAValue, SSAValue]


@dataclass
class Parts:
    """The ops of a body, and which of the values it carries `second` computes."""

    dots: tuple[Operation, Operation]
    first: list[Operation]
    between: list[Operation]
    second: list[Operation]
    late: list[int]


def overlap(loop: Operation, readings: Sequence[Reading], in_turn: bool) -> tuple[Operation | None, list[Reading]]:
    """Rewrite `loop` if it has that form: the new loop, and the rings of `readings` that are given back by what was written.

    Two groups of warps start their products `in_turn`.
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
    rotation = Rotation(loop, parts, *rings, in_turn and not may_meet(parts.second))
    return (None, []) if not all(is_of_numbers(value.type) for value in rotation.passed) else (rotation.run(), own)


def find_parts(loop: Operation, readings: Sequence[Reading]) -> Parts | None:
    """How the body falls into parts, if it does."""
    ops, end = body_ops(loop), yield_of(loop)
    dots = [op for op in ops if type(op) is ttng.WarpGroupDotOp]
    inner = [op for op in body_of(loop).walk() if type(op) is ttng.WarpGroupDotOp]
    if len(dots) != 2 or len(inner) != 2 or "unsignedCmp" in loop.properties:
        return None
    waits = {reading.wait: enclosing_op(next(readers_of(reading.views[0])), body_of(loop)) for reading in readings}
    first = closure([dots[0], *(wait for wait, reader in waits.items() if reader is dots[0])], body_of(loop))
    second = {dots[1], *(wait for wait, reader in waits.items() if reader is dots[1])}
    for op in reversed(ops):  # what only the second product needs
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
    early += [value for index, value in enumerate(end.operands) if index not in late]  # handed on: ``before = acc``
    made = {result for op in second for result in op.results}
    if len(late) != 1 or any(value in arguments or value in made for value in early):
        return None
    return None if any(value.owner in between for op in first for value in used_values(op)) else parts


def closure(roots: Iterable[Operation], body: Block) -> set[Operation]:
    """`roots` and the ops of the body that they need in the same iteration."""
    return set(reached(roots, lambda op: producers(op, body)))


def is_of_numbers(type: Attribute) -> bool:
    element = element_type(type)
    return is_float(element) or is_integer(element)


def stand_in(code: Emitter, type: Attribute) -> SSAValue:
    """What is there in place of a value of no iteration. Waits look at rows all the same, and barriers are found by numbers."""
    is_tile = is_tensor(type) and len(shape_of(type)) > 1
    return code.append(poison(type, code.loc)) if is_tile else code.constant(0, type)


def is_behind_second(code: Emitter, lower: SSAValue, index: SSAValue, step: SSAValue) -> SSAValue:
    """Whether `index` is more than one step from `lower`."""
    return code.compare("ugt", code.binary(arith.SubiOp, index, lower), step)


class Rotation:
    """The new code of one loop; `early` rings are read by the first product, `late` ones by the second."""

    def __init__(self, loop: Operation, parts: Parts, early: list[Reading], late: list[Reading], in_turn: bool) -> None:
        self.loop, self.parts, self.early, self.late, self.in_turn = loop, parts, early, late, in_turn
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
        self.given_back = [reading.index for reading in late]

    def run(self) -> Operation:
        """The new loop."""
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
        if self.in_turn:
            take_turns(behind, *self.started)
        return behind

    def make_loop(self, lower: SSAValue, upper: SSAValue, step: SSAValue, initial: Sequence[SSAValue]) -> Operation:
        """The loop that carries what `second` needs of the iteration before; the first one finds stand-ins there."""
        location = self.loop.location
        code = Emitter(location)
        passed = [stand_in(code, value.type) for value in (*self.passed, *self.given_back)]
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
        given_back = (before[value] for value in self.given_back)
        append_op(body, make_yield([*values, *(now[value] for value in self.passed), *given_back], location))
        return new

    def add_to_last(self, block: Block, now: Mapping, before: Mapping, lower: SSAValue) -> None:
        """Start the second product of the iteration before, if there was one; if not, wait for what runs alone."""
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
        """Wait for the second product of the iteration before, and give back what it read, if there was one.

        What the next one reads goes through the wait: its registers must not be filled before.
        """
        (total,) = (index for index in self.parts.late if self.yields[index] is self.parts.dots[1].results[0])
        held = [self.arguments[1 + total], *(value for value in self.passed if is_tensor(value.type))]
        wait = wait_for([here[value] for value in held], 0, behind=behind)
        here.update(zip(held, wait.results, strict=True))
        own = carried[len(self.yields) + len(self.passed) :]
        for reading, index in reversed(list(zip(self.late, own, strict=True))):
            arrive(reading, index, wait, condition)

    def compute(self, block: Block, here: Mapping) -> None:
        """Wait for the first product, give back what it read, and do what comes between."""
        result = self.parts.dots[0].results[0]
        wait = wait_for([here[result]], 1, behind=block.last_op)
        here[result] = wait.results[0]
        for reading in self.early:
            arrive(reading, here.get(reading.index, reading.index), block.last_op or wait)
        self.emit(block, self.parts.between, here)

    def add(self, block: Block, here: Mapping) -> Operation:
        """Start the second product."""
        self.emit(block, self.parts.second, here)
        dot = here[self.parts.dots[1].results[0]].owner
        assert isinstance(dot, Operation)
        return dot

    def finish(self, block: Block, here: Mapping, dot: Operation) -> None:
        """Wait for the second product and give back what it read."""
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
