"""Insert barriers so that all warps load a repeated value before one of them overwrites it, and scalars are stored
before they are loaded.

    %n = tt.load %count                 %n = tt.load %count        a scalar: every thread loads it
    tt.store %count, %m        ==>      ttg.barrier all
                                        tt.store %count, %m        only the first thread stores

Warps that load at different times would continue with different values, and maybe into different branches: a lock's
counter, a flag that is waited for and then reset, tiles with fewer elements than threads. Conversely a scalar that the
first thread has stored, or changed by an atomic whose result is unused, must be visible to all threads. Tiles that are
stored and loaded again need a `tl.debug_barrier()`, as in Triton. Two accesses may meet if they are through the same
parameter of the kernel, or both through pointers that were loaded or computed. An atomic whose result is used ends with
a barrier of its own. Warp-specialized partitions and functions that are not inlined are left alone.
Stage: TTGIR to TTGIR, behind all passes that move loads: loops are pipelined as before. Cost: one walk, and one over
each loop and branch where there are such pairs.
"""

from functools import cache, reduce
from operator import or_
from typing import NamedTuple

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.analysis.provenance import parameter_of
from tilework.ir import tt, ttg
from tilework.ir.encodings import layout_of
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import find_num_warps, num_ctas
from tilework.ir.nesting import successors
from tilework.ir.types import is_tensor
from tilework.transforms.building.emitter import order
from tilework.transforms.passes import function_pass

ATOMICS = (tt.AtomicRMWOp, tt.AtomicCASOp)
Bases = frozenset[SSAValue | None]  # parameters; None is any other memory
NOWHERE: Bases = frozenset()


class Accesses(NamedTuple):
    """The memory accesses since the last barrier."""

    read: Bases = NOWHERE  # by several warps or blocks separately
    written: Bases = NOWHERE
    scalars: Bases = NOWHERE  # written by one thread

    def __or__(self, other: "Accesses") -> "Accesses":  # pyright: ignore[reportIncompatibleMethodOverride]
        return Accesses(self.read | other.read, self.written | other.written, self.scalars | other.scalars)

    def conflicts(self, later: "Accesses") -> bool:
        return bool(self.read & later.written or self.scalars & later.read)


NONE = Accesses()


@function_pass("tritongpu-repeated-loads")
def repeated_loads(function: Operation) -> None:
    if find_num_warps(function) == 1 and num_ctas(function) == 1:
        return
    blocks = function.regions[0].blocks
    everything = reduce(or_, (accesses(op) for block in blocks for op in block.ops), NONE)
    if not everything.conflicts(everything):
        return
    ends: dict[Block, Accesses] = {}
    for block in blocks:  # a block that comes later may have been run before this one
        before = [ends.get(other, everything) for other in blocks if block in successors(other)]
        ends[block] = order(block, reduce(or_, before, NONE), accesses, NONE)


def accesses(op: Operation) -> Accesses:
    """Return the accesses of an op and of those inside it."""
    if not op.regions:
        return own_accesses(op)
    return NONE if type(op) is ttg.WarpSpecializeOp else reduce(or_, map(own_accesses, ops_in_order(*op.regions)), NONE)


def own_accesses(op: Operation) -> Accesses:
    kind = type(op)
    if kind is tt.LoadOp:
        return Accesses(read=bases_of(op)) if is_repeated(op.results[0].type) else NONE
    if kind is tt.StoreOp:
        return Accesses(written=bases_of(op), scalars=NOWHERE if is_tensor(op.operands[1].type) else bases_of(op))
    if kind in ATOMICS:
        is_read_back = is_tensor(op.results[0].type) or op.results[0].first_use is not None
        return Accesses(written=bases_of(op), scalars=NOWHERE if is_read_back else bases_of(op))
    return NONE


def bases_of(access: Operation) -> Bases:
    return frozenset({parameter_of(access.operands[0])})


@cache
def is_repeated(type: Attribute) -> bool:
    """Return True if several warps, or several blocks of a cluster, hold the same elements."""
    if not is_tensor(type):
        return True
    layout = layout_of(type)
    return not all(layout.by_in["warp"]) or not all(layout.by_in.get("block", ()))
