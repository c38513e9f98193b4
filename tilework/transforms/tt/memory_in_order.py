"""What a program reads and writes in memory happens in the order of the program, whichever threads do it, in kernels that are reproducible.

    %x = tt.load %p                %x = tt.load %p
    tt.store %p, %y        ==>     gpu.barrier
                                   tt.store %p, %y

Threads of a program do not wait for each other. An element may be loaded by one and stored by another, whose layouts the number of warps decides:
then the later access can overtake the earlier one. So there is a barrier between two accesses of which one writes. Which arrays
they are of is not looked at: any two may overlap. In front of a loop or a branch one barrier stands for all that it would need inside.
Where a kernel returns in several places its blocks go on with what the blocks before them have done.
Loops with a barrier are not pipelined, as their loads would be in front of the stores of the iteration before.
Stage: TTIR to TTIR, for GPUs. Cost: one walk, and one over each loop and branch.
"""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import NamedTuple

from xdsl.ir import Block, Operation

from tilework.ir import tt
from tilework.ir.effects import is_pure, reads, writes
from tilework.ir.llvm import GpuBarrierOp
from tilework.ir.nesting import successors
from tilework.transforms.building.barriers import order
from tilework.transforms.passes import function_pass

SEEN_BY_NO_LOAD = frozenset({tt.PrintOp, tt.AssertOp, GpuBarrierOp})


class Accesses(NamedTuple):
    """What has been done to memory since the last barrier."""

    read: bool = False
    written: bool = False

    def __or__(self, other: "Accesses") -> "Accesses":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Accesses(self.read or other.read, self.written or other.written)

    def conflicts(self, later: "Accesses") -> bool:
        return (self.written and (later.read or later.written)) or (self.read and later.written)


NONE = Accesses()


@function_pass("tt-memory-in-order")
def memory_in_order(function: Operation) -> None:
    blocks = function.regions[0].blocks
    anything = of_blocks(blocks) if len(blocks) > 1 else NONE
    ends: dict[Block, Accesses] = {}
    for block in blocks:  # a block that comes later may have been run before this one
        before = [ends.get(other, anything) for other in blocks if block in successors(other)]
        ends[block] = order(block, union(before), accesses, NONE)


def accesses(op: Operation) -> Accesses:
    """Of an op and those in it."""
    if type(op) in SEEN_BY_NO_LOAD or is_pure(op):
        return NONE
    if op.regions:
        return of_blocks([block for region in op.regions for block in region.blocks])
    return Accesses(reads(op), writes(op))


def of_blocks(blocks: Iterable[Block]) -> Accesses:
    return union(accesses(op) for block in blocks for op in block.ops)


def union(parts: Iterable[Accesses]) -> Accesses:
    return reduce(or_, parts, NONE)
