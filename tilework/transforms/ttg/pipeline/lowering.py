"""What the lowerings of loads share: memory for the time of the loop, and counters that go around the buffers.

scf.for ... iter_args(..., %insert = -1, %extract = -1, %phase = 0) {
  %i = %insert + 1 >= n ? 0 : %insert + 1                the buffer that is filled for this iteration
  %e = %extract + 1 >= n ? 0 : %extract + 1              the buffer that is read in it
  %p = %e wrapped ? %phase ^ 1 : %phase                  which time around, for barriers
  ...
  scf.yield ..., %i, %e, %p
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import ttg
from tilework.ir.arith_ext import SelectOp
from tilework.ir.nesting import body_of, start_of
from tilework.ir.rewrite import insert_after, insert_before, put
from tilework.ir.scf_ext import also_carry, also_yield
from tilework.ir.types import i32
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.ttg.pipeline.coarse_schedule import Cluster, Schedule
from tilework.transforms.ttg.pipeline.load_plans import Kind, LoadPlan

Place = tuple[int, Cluster]


@dataclass(frozen=True)
class Counters:
    """Which buffer is filled next, which is read next, and the phase of its barrier."""

    insert: SSAValue
    extract: SSAValue
    phase: SSAValue | None


@dataclass
class Lowering:
    """A loop whose loads are being lowered."""

    loop: Operation
    schedule: Schedule
    allocs: dict[Operation, SSAValue] = field(default_factory=dict)
    counters: dict[int, Counters] = field(default_factory=dict)

    def put(self, before: Operation, op: Operation, place: Place) -> Operation:
        """Insert a new op of the body and schedule it."""
        insert_before(before, op)
        self.schedule.place(op, *place)
        return op

    def value(self, before: Operation, op: Operation, place: Place) -> SSAValue:
        """The result of a new op of the body."""
        return self.put(before, op, place).results[0]

    def replaced(self, old: Operation, new: Sequence[Operation]) -> None:
        """`new` ops run where `old` did."""
        place = self.schedule.places.pop(old)
        for op in new:
            self.schedule.place(op, *place)

    def alloc(self, type: Attribute, like: Operation) -> SSAValue:
        """Memory for the time of the loop."""
        memory = put(self.loop, ttg.LocalAllocOp.make(None, type, like.location))
        insert_after(self.loop, ttg.LocalDeallocOp.make(memory, self.loop.location))
        return memory


def carry_counters(low: Lowering, plans: Sequence[LoadPlan]) -> None:
    """Give the loop counters for each number of buffers, and step them at the start of its body."""
    with_phase: dict[int, bool] = {}
    for plan in plans:
        with_phase[plan.buffers] = with_phase.get(plan.buffers, False) or plan.kind is Kind.TMA
    code = Emitter(low.loop.location)
    minus_one, zero, one = (code.constant(value, i32) for value in (-1, 0, 1))
    code.insert_before(low.loop)
    initial = [value for has_phase in with_phase.values() for value in (minus_one, minus_one, zero)[: 2 + has_phase]]
    arguments, body = iter(also_carry(low.loop, initial)), body_of(low.loop)
    stepped: list[SSAValue] = []
    for count, has_phase in with_phase.items():
        limit = code.constant(count, i32)
        insert, _ = next_in_turn(code, next(arguments), limit, zero, one)
        extract, wraps = next_in_turn(code, next(arguments), limit, zero, one)
        phase = None
        if has_phase:
            current = next(arguments)
            flipped = code.binary(arith.XOrIOp, current, one)
            phase = code.append(SelectOp.make(wraps, flipped, current, code.loc))
        low.counters[count] = Counters(insert, extract, phase)
        stepped += [insert, extract] if phase is None else [insert, extract, phase]
        code.insert_before(start_of(body))
    also_yield(body, stepped)


def next_in_turn(
    code: Emitter, counter: SSAValue, limit: SSAValue, zero: SSAValue, one: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """The number after `counter`, going around at `limit`, and whether it went around."""
    following = code.binary(arith.AddiOp, counter, one)
    wraps = code.compare("sge", following, limit)
    return code.append(SelectOp.make(wraps, zero, following, code.loc)), wraps
