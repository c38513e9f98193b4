"""The order of the two ways to access global memory: loads and stores of threads, and copies of TMA.

    tt.descriptor_store %d, %v          TMA writes some time later: readers wait until the store is complete
    %x = tt.descriptor_load %d          a full wait before it, by the thread that starts the copies
    %y = tt.load %p                     the same memory: a full wait, and a barrier for the other threads
    tt.store %p, %z                     writes of threads are not visible to TMA: a proxy fence and a barrier after it
    %w = tt.descriptor_load %d

A pair of accesses needs this if the second may follow the first, in the same iteration of the loops around them or in a
later one, and if they may access the same memory, judged by the provenance of their addresses (`provenance.py`):

- the same parameter of the kernel, or the same table of pointers, or an unknown address: the same memory;
- two different ones: not the same memory, for waits for TMA. Loads are pipelined past stores under this assumption,
  too. A barrier (`tl.debug_barrier`) and an atomic that releases wait for all writes of TMA;
- a fence is cheap, so it is also put after stores through other parameters, unless the store and the copy are in the
  same innermost loop. An atomic that acquires, and a barrier, count as stores to everything.

Two stores of TMA through the same parameter are ordered only if they write the same block; those of a loop over blocks
overlap. Waits are put before the outermost loop that has the second access but not the first, fences after the
outermost that has the first but not the second.

If a cluster of blocks runs a program, its copies and its loads and stores are in several of them: there a write to
memory that another access has read waits for that as well, and each wait has a barrier of the cluster.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tilework.analysis.provenance import UNKNOWN, Provenance, memory_provenance
from tilework.ir import tt, ttg, ttng
from tilework.ir.enums import MemSemantic
from tilework.ir.functions import callee_of, callees_first, functions_by_name, modules, ops_in_order
from tilework.ir.module_facts import num_ctas
from tilework.ir.nesting import is_defined_in
from tilework.ir.rewrite import constant_value
from tilework.ir.scf import LOOPS, loop_around
from tilework.ir.types import int_property, shape_of
from tilework.light_dataclass import light_dataclass

EVERYTHING = frozenset({UNKNOWN})
COPIES_IN = frozenset({ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMAGatherOp})
COPIES_OUT = frozenset({ttng.AsyncTMACopyLocalToGlobalOp, ttng.AsyncTMAReduceOp, ttng.AsyncTMAScatterOp})
LOADS = frozenset({tt.LoadOp, ttg.AsyncCopyGlobalToLocalOp})
ATOMICS = frozenset({tt.AtomicRMWOp, tt.AtomicCASOp})
FOREIGN = frozenset({tt.ElementwiseInlineAsmOp, tt.ExternElementwiseOp})


@light_dataclass(frozen=False)
class GlobalOrder:
    """Ops with a full wait for TMA before them, and whether a barrier follows it; ops with a fence and a barrier after
    them.

    A barrier op has its fence in front, and needs no other.
    """

    waits: dict[Operation, bool] = field(default_factory=dict)
    fences: dict[Operation, None] = field(default_factory=dict)


@light_dataclass
class Access:
    """An access of an op to global memory: through TMA or not, reading or writing."""

    op: Operation
    by_tma: bool
    writes: bool
    parameters: frozenset[int]


def global_order(module: ModuleOp) -> GlobalOrder:
    """Return the waits and fences of a module of TTGIR; none without TMA."""
    found = GlobalOrder()
    if not any(type(op) in COPIES_IN or type(op) in COPIES_OUT for op in ops_in_order(*module.regions)):
        return found
    provenance = memory_provenance(module)
    copies: set[Operation] = set()
    for functions in map(functions_by_name, modules(module)):
        known: dict[str, list[Access]] = {}
        for name in callees_first(functions):
            known[name] = accesses_of(functions[name], provenance, known)
        for name, function in functions.items():
            order(known[name], found, num_ctas(function) > 1)
            copies.update(access.op for access in known[name] if access.by_tma)
    drop_repeated(found, copies)
    return found


def accesses_of(function: Operation, provenance: Provenance, known: Mapping[str, Sequence[Access]]) -> list[Access]:
    """Return the accesses of a function in program order; a call makes those of its callee."""
    own: list[Access] = []
    for op in ops_in_order(*function.regions):
        if type(op) is tt.CallOp:
            own += dict.fromkeys(replace(one, op=op) for one in known.get(callee_of(op), ()))
        else:
            own += access_of(op, provenance)
    return own


def access_of(op: Operation, provenance: Provenance) -> Iterator[Access]:
    kind = type(op)
    if kind in COPIES_IN or kind in COPIES_OUT:
        yield Access(op, True, kind in COPIES_OUT, provenance.get(op.operands[0], EVERYTHING))
    elif kind in LOADS or kind is tt.StoreOp:
        yield Access(op, False, kind is tt.StoreOp, provenance.get(op.operands[0], EVERYTHING))
    elif kind in ATOMICS:
        sem = MemSemantic(int_property(op, "sem"))
        own = provenance.get(op.operands[0], EVERYTHING)
        yield Access(op, False, False, EVERYTHING if sem in RELEASES else own)
        yield Access(op, False, True, EVERYTHING if sem in ACQUIRES else own)
    elif kind is ttg.BarrierOp or (kind in FOREIGN and not int_property(op, "pure")):
        yield Access(op, False, False, EVERYTHING)
        yield Access(op, False, True, EVERYTHING)


RELEASES = frozenset({MemSemantic.RELEASE, MemSemantic.ACQ_REL})
ACQUIRES = frozenset({MemSemantic.ACQUIRE, MemSemantic.ACQ_REL})


def order(accesses: Sequence[Access], found: GlobalOrder, in_clusters: bool) -> None:
    """Record what the accesses of one function need."""
    if not any(access.by_tma for access in accesses):
        return
    positions = {access.op: Position(access.op, index) for index, access in enumerate(accesses)}
    for first in accesses:
        if not (first.writes or in_clusters):
            continue
        for second in accesses:
            if not (first.by_tma or second.by_tma) or not positions[first.op].reaches(positions[second.op]):
                continue
            if not first.writes and not (second.writes and may_meet(first, second)):
                continue
            if not first.writes or (first.by_tma and waits(first, second)):
                _, before = between(positions[first.op], positions[second.op])
                has_barrier = (in_clusters or not second.by_tma) and type(before) is not ttg.BarrierOp
                found.waits[before] = found.waits.get(before, False) or has_barrier
            elif not first.by_tma and is_hidden(first, second, positions):
                behind, _ = between(positions[first.op], positions[second.op])
                found.fences[behind] = None


def may_meet(first: Access, second: Access) -> bool:
    """Return True if two accesses may be through the same parameter."""
    return UNKNOWN in first.parameters or UNKNOWN in second.parameters or bool(first.parameters & second.parameters)


def waits(first: Access, second: Access) -> bool:
    """Return True if the writes of TMA in `first` must be complete before `second`."""
    if not may_meet(first, second):
        return False
    if second.by_tma and second.writes:
        return type(second.op) is tt.CallOp or type(first.op) is tt.CallOp or write_same_block(first.op, second.op)
    return True


def write_same_block(first: Operation, second: Operation) -> bool:
    """Return True if two copies to global memory surely overlap; two reductions of the same kind may, in any order."""
    if type(first) is type(second) is ttng.AsyncTMAReduceOp and first.properties["kind"] == second.properties["kind"]:
        return False
    if ttng.AsyncTMAScatterOp in (type(first), type(second)):
        return first is second or first.operands[1:3] == second.operands[1:3]
    indices, others = first.operands[1:-1], second.operands[1:-1]
    if len(indices) != len(others):
        return True
    loop = loop_around(first)
    if first is second:
        return loop is not None and not any(is_defined_in(index, loop) for index in indices)
    shape = shape_of(first.operands[-1].type)
    sizes = (1,) * (len(indices) - len(shape)) + tuple(shape)
    return all(overlap(one, other, size) for one, other, size in zip(indices, others, sizes, strict=True))


def overlap(one: SSAValue, other: SSAValue, size: int) -> bool:
    if one is other:
        return True
    first, second = constant_value(one), constant_value(other)
    return first is not None and second is not None and abs(first - second) < size


def is_hidden(first: Access, second: Access, positions: dict[Operation, "Position"]) -> bool:
    """Return True if the writes of threads in `first` must be made visible to the copy `second`."""
    if not second.by_tma:
        return False
    if may_meet(first, second):
        return True
    loop = positions[first.op].innermost
    return loop is None or loop is not positions[second.op].innermost or has_loops(loop)


def has_loops(loop: Operation) -> bool:
    return any(type(op) in LOOPS for op in loop.walk() if op is not loop)


class Position:
    """The position of an op: the blocks around it and the op in each that contains it, from the function inwards."""

    def __init__(self, op: Operation, index: int) -> None:
        self.index = index
        self.path: list[tuple[Block, Operation]] = []
        at: Operation | None = op
        while at is not None and type(at) is not tt.FuncOp:
            assert at.parent is not None
            self.path.append((at.parent, at))
            at = at.parent_op()
        self.path.reverse()
        self.innermost = loop_around(op)

    def common(self, other: "Position") -> int:
        """Return the number of blocks that the two have in common."""
        count = 0
        for (mine, _), (theirs, _) in zip(self.path, other.path, strict=False):
            if mine is not theirs:
                break
            count += 1
        return count

    def reaches(self, other: "Position") -> bool:
        """Return True if the other op may run after this one."""
        count = self.common(other)
        if not count:  # blocks of a function
            return True
        pairs = zip(self.path[:count], other.path, strict=False)
        if any(mine is theirs and type(mine) in LOOPS for (_, mine), (_, theirs) in pairs):
            return True
        (_, mine), (_, theirs) = self.path[count - 1], other.path[count - 1]
        if mine is theirs:  # the two sides of a branch, or one op
            return False
        return self.index < other.index


def between(first: Position, second: Position) -> tuple[Operation, Operation]:
    """Return (after which op, before which op): on every path from the first to the second, in as few loops as
    possible."""
    start = max(first.common(second) - 1, 0)
    if first.path[start][1] is second.path[start][1]:
        start += 1
    behind = next((op for _, op in first.path[start:] if type(op) in LOOPS), first.path[-1][1])
    before = next((op for _, op in second.path[start:] if type(op) in LOOPS), second.path[-1][1])
    return behind, before


def drop_repeated(found: GlobalOrder, copies: set[Operation]) -> None:
    """Keep only the last of several fences in one block without one of `copies` between them; an existing barrier
    serves too."""
    for op in list(found.fences):
        following = op.next_op
        while following is not None and not any(inner in copies for inner in following.walk()):
            if following in found.fences:
                del found.fences[op]
                break
            following = following.next_op
