"""Atomics at which programs take turns, and the elements of a tile too.

    tt.take_turn        the first thread waits until the counter of the launch is the number of this program
    tt.atomic_rmw       element after element: registers in program order; where a bit of the index is one of the lane or
                        warp, a loop over its values, in which the others wait
    tt.pass_turn        the counter goes to the next program; the last one sets it to 0, for the next launch

The counter comes in the second hidden parameter of a kernel (`runtime/devices/gpu/turn_counters.py`). Blocks must start in the
order of their numbers, x fastest: one that runs and waits keeps its place, and the one that it waits for has got one before.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.encodings import layout_of
from tilework.ir.enums import MemSemantic, MemSyncScope, RMWOp
from tilework.targets.gpu.axes import Bit, moving_bits, subsets
from tilework.targets.gpu.device import Atomic
from tilework.targets.gpu.lowering import Lowering, lowers
from tilework.targets.llvm.types import i32
from tilework.targets.llvm.values import Value, constant

Found = dict[int, Value]  # what was in memory, by register
Change = Callable[[int, Value | None], Value]


@lowers(tt.TakeTurnOp)
def lower_take_turn(low: Lowering, op: Operation) -> None:
    b, number = low.builder, turn_of(low, op)[0]
    counter = Atomic(low.turns, None, MemSemantic.ACQUIRE, MemSyncScope.GPU, True)

    def look(_: Value) -> tuple[Value, Value]:
        (seen,) = low.gpu.atomic_load(low, counter, i32)
        return seen, b.icmp("eq", seen, number)

    with b.if_(b.icmp("eq", low.thread, 0)):
        b.until(constant(i32, 0), look)
    low.barrier(all_memory=True)


@lowers(tt.PassTurnOp)
def lower_pass_turn(low: Lowering, op: Operation) -> None:
    b, (number, total) = low.builder, turn_of(low, op)
    following = b.add(number, 1)
    low.barrier(all_memory=True)
    with b.if_(b.icmp("eq", low.thread, 0)):
        low.gpu.fence(b, MemSyncScope.GPU)
        counter = Atomic(low.turns, None, MemSemantic.RELEASE, MemSyncScope.GPU, False)
        low.gpu.atomic_rmw(low, counter, RMWOp.EXCH, [b.select(b.icmp("eq", following, total), 0, following)])


def turn_of(low: Lowering, op: Operation) -> tuple[Value, Value]:
    """The number of this program, and how many there are."""
    if low.facts.num_ctas > 1:
        raise low.refuse(op, "an ordered atomic in a kernel with num_ctas > 1")
    low.takes_turns = True
    b, gpu = low.builder, low.gpu
    x, y, z = (gpu.program_id(b, axis, clusters=False) for axis in range(3))
    width, height, depth = (gpu.num_programs(b, axis, clusters=False) for axis in range(3))
    return b.add(b.mul(b.add(b.mul(z, height), y), width), x), b.mul(b.mul(depth, height), width)


def one_by_one(low: Lowering, op: Operation, change: Change, nothing: Value, is_used: bool) -> Found:
    """``change(register, where)`` for every element of a tile, in row-major order; what it gives, `nothing` where that is not used."""
    bits = sorted(moving_bits(low, op, layout_of(op.operands[0].type)), key=lambda bit: (bit.dim, -bit.place))
    return Elements(low, change, nothing, is_used).emit(bits, 0, None)


class Elements(NamedTuple):
    """Walks over the bits of an index, the highest first."""

    low: Lowering
    change: Change
    nothing: Value
    is_used: bool

    def emit(self, bits: Sequence[Bit], register: int, where: Value | None) -> Found:
        if not bits:
            return {register: self.change(register, where)}
        if bits[0].level == "register":
            halves = [self.emit(bits[1:], register | on << bits[0].number, where) for on in (0, 1)]
            return halves[0] | halves[1]
        run = next((place for place, bit in enumerate(bits) if bit.level == "register"), len(bits))
        return self.turns(bits[:run], bits[run:], register, where)

    def turns(self, run: Sequence[Bit], rest: Sequence[Bit], register: int, where: Value | None) -> Found:
        """The lanes and warps that `run` tells apart, one after the other."""
        low, b = self.low, self.low.builder
        mine = constant(i32, 0)
        for bit in run:
            mine = b.or_(b.shl(mine, 1), b.and_(b.lshr(low.places[bit.level], bit.number), 1))
        inside = [register | place for place in subsets([bit.number for bit in rest if bit.level == "register"])]
        kept = [self.nothing] * len(inside) if self.is_used else []
        with b.loop_carrying(constant(i32, 0), constant(i32, 1 << len(run)), 1, kept, unroll=1) as loop:
            is_turn = b.icmp("eq", mine, loop.index)
            made = self.emit(rest, register, is_turn if where is None else b.and_(where, is_turn))
            if any(bit.level == "warp" for bit in run):
                low.barrier(all_memory=True)
            else:
                low.warp_barrier()
            if self.is_used:
                pairs = zip(inside, loop.carried, strict=True)
                loop.next([b.select(is_turn, made[number], old) for number, old in pairs])
        return dict(zip(inside, loop.results or [self.nothing] * len(inside), strict=True))
