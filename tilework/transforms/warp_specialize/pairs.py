"""Neighbouring programs that load the same tiles share them: each copies half of a tile, to both (multicast).

    program 2i:      A[row, k], B[k, column]           both wait until a stage is empty in both; each copies its own A, and
    program 2i + 1:  A[row', k], B[k, column]          every other box of B into the shared memory of both

A launch makes pairs of neighbours along x (clusters of two blocks) where the grid is even there. Nothing is proved when the
kernel is compiled: a program also computes what its neighbour's numbers are, from the other's `tt.get_program_id`, and
shares a tile if all that its place depends on, and the bounds of the loop, are equal. Its neighbour finds the same. Where
they differ, or there is no neighbour, all copies are as without.

The protocol, for a ring with a tile that may be shared (`shared`: for each such tile; `joined`: any of them is shared):

    full[i]     one arrival (barrier_expect) and the bytes of all tiles, whoever copies them; of each block for itself.
                The neighbour's bytes may come before the arrival: the phase waits for both
    empty[i]    twice the arrivals of the block's own consumers. Joined, each consumer arrives once in both blocks; if
                not, twice in its own. So a producer that has waited may write the stage in both blocks
    start       a cluster's barrier behind the initialisation of all barriers: nobody arrives at, or copies to, memory of
                a block that has not come so far
    end         a producer waits until all stages are empty: everything that others send to its block has come, and what
                it sends to others they wait for themselves. So a block that ends is not written any more

Both run the loop equally often, so every wait has its arrivals.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from tilework.analysis.cost import L2, loop_cost
from tilework.ir import tt, ttng
from tilework.ir.arith_ext import convert
from tilework.ir.effects import DECLARED, is_pure
from tilework.ir.enums import ProgramDim
from tilework.ir.nesting import body_of, end_of
from tilework.ir.types import TensorDescType, i32, is_tensor, shape_of
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.ttng.tensormap import box_shape
from tilework.transforms.warp_specialize.channels import Channel, Ring

PAIR = 2
BUSY = 2 / 3  # of the time


@dataclass(eq=False)
class Pairing:
    """What a ring shares at run time: conditions for its tiles, and whether any holds."""

    shared: dict[Operation, SSAValue] = field(default_factory=dict)  # by the load
    joined: SSAValue | None = None


def find_pairings(function: Operation, rings: list[Ring], code: Emitter) -> dict[Ring, Pairing]:
    """The rings that neighbours may share, with the conditions, computed by `code` from what the function is given."""
    found: dict[Ring, Pairing] = {}
    neighbour = Neighbour(code)
    for ring in rings:
        loop = ring.block.parent_op()
        if type(loop) is not scf.ForOp or loop.parent_op() is not function or len(ring.blocks) != 1 or not pays(loop):
            continue
        pairing = Pairing()
        for channel in ring.channels:
            places = None if not may_be_halved(channel, function) else sources(channel.load.operands[1:], loop)
            if places is not None:
                pairing.shared[channel.load] = condition = neighbour.agrees(places)
                pairing.joined = (
                    condition if pairing.joined is None else code.binary(arith.OrIOp, pairing.joined, condition)
                )
        if pairing.joined is not None:
            found[ring] = pairing
    return found


def pays(loop: Operation) -> bool:
    """What the loop reads keeps L2 busy for most of the time: so less of it saves time, or power that others get."""
    cost = loop_cost(loop)
    return cost is None or cost.cycles[L2] > BUSY * cost.bound


def may_be_halved(channel: Channel, function: Operation) -> bool:
    """It is copied in several boxes, by a descriptor that all programs are given."""
    descriptor = channel.load.operands[0]
    if (
        channel.contiguity
        or not isinstance(descriptor.type, TensorDescType)
        or descriptor.owner is not body_of(function)
    ):
        return False
    block = descriptor.type.block
    return prod(-(-size // part) for size, part in zip(shape_of(block), box_shape(block), strict=True)) % PAIR == 0


def sources(values: Sequence[SSAValue], loop: Operation) -> list[SSAValue] | None:
    """What `values`, in a loop, and how often it runs, depend on: values in front of it; None if not on these alone."""
    body, found = body_of(loop), dict.fromkeys(loop.operands[:3])
    pending, seen = list(values), set[SSAValue]()
    while pending:
        if (value := pending.pop()) in seen:
            continue
        seen.add(value)
        if isinstance(value, BlockArgument) and value.block is body:
            if value.index:
                pending += loop.operands[2 + value.index], end_of(body).operands[value.index - 1]
        elif isinstance(owner := value.owner, Operation) and owner.parent is body:
            if not is_alike(owner):
                return None
            pending += owner.operands
        else:
            found[value] = None
    return list(found) if are_numbers(found) else None


def is_alike(op: Operation) -> bool:
    """It gives the same in all programs where its operands are the same; assembly may ask where it runs."""
    return not op.regions and is_pure(op) and type(op) not in DECLARED


def are_numbers(values: Iterable[SSAValue]) -> bool:
    """They are computed from what all programs are given, and from a program's place in the grid."""
    pending, seen = list(values), set[SSAValue]()
    while pending:
        if (value := pending.pop()) in seen:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, Block):
            if not isinstance(owner.parent_op(), tt.FuncOp):
                return False
        elif not is_alike(owner) or is_tensor(value.type):
            return False
        else:
            pending += owner.operands
    return True


class Neighbour:
    """Computes numbers as this program has them, and as its neighbour has them."""

    def __init__(self, code: Emitter) -> None:
        self.code = code
        self.own: dict[SSAValue, SSAValue] = {}
        self.other: dict[SSAValue, SSAValue] = {}
        size = code.append(ttng.ClusterSizeOp.make(code.loc))
        self.exists = code.compare("eq", size, code.constant(PAIR, i32))

    def agrees(self, values: list[SSAValue]) -> SSAValue:
        """There is a neighbour, and it has the same numbers."""
        code, agreed = self.code, self.exists
        for value in values:
            own, other = self.of_own(value), self.of_other(value)
            if own is not other:
                agreed = code.binary(arith.AndIOp, agreed, code.compare("eq", own, other))
        return agreed

    def of_own(self, value: SSAValue) -> SSAValue:
        if isinstance(op := value.owner, Operation) and value not in self.own:
            self.compute(op, [self.of_own(operand) for operand in op.operands], self.own)
        return self.own.get(value, value)

    def of_other(self, value: SSAValue) -> SSAValue:
        """The same value as `of_own` where both programs have it alike."""
        if isinstance(op := value.owner, Operation) and value not in self.other:
            own = self.of_own(value)
            operands = [self.of_other(operand) for operand in op.operands]
            if isinstance(op, tt.GetProgramIdOp) and op.axis.value.data == ProgramDim.X:
                step = self.code.append(convert(arith.ExtUIOp, self.exists, i32, self.code.loc))
                self.other[value] = self.code.binary(arith.XOrIOp, own, step)  # not a program that does not exist
            elif operands == [self.of_own(operand) for operand in op.operands]:
                self.other[value] = own
            else:
                self.compute(op, operands, self.other)
        return self.other.get(value, value)

    def compute(self, op: Operation, operands: list[SSAValue], done: dict[SSAValue, SSAValue]) -> None:
        copy = op.clone(value_mapper=dict(zip(op.operands, operands, strict=True)))
        self.code.ops.append(copy)
        done.update(zip(op.results, copy.results, strict=True))
