"""Reorder ops to shorten the live ranges of shared memory and registers.

    1  a conversion sinks below the `ttg.local_dealloc`s before its first use: the two share memory
    2  a load from shared memory, or a conversion to a dot operand, moves into the loop that alone uses it
    3  `ttg.local_alloc %x` is hoisted to %x: the tensor is not kept in registers until then
    4  a transposition is hoisted to its source
    5  the load of operand B of a dot sinks below the load of operand A

        %b = ttg.local_load %mb                      %a = ttg.local_load %ma
        %a = ttg.local_load %ma             ==>      %b = ttg.local_load %mb
        tt.dot %a, %b, %c                            tt.dot %a, %b, %c

No load moves over a write to memory.
Stage: TTGIR to TTGIR. Cost: a walk for each of the five.
"""

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from tilework.analysis.alias import Aliases, aliases
from tilework.ir import arith, scf, tt, ttg, ttng
from tilework.ir.effects import is_value_alloc, writes
from tilework.ir.encodings import operand_index
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import enclosing_op, ops_behind
from tilework.ir.rewrite import defining_op, move_before, move_behind
from tilework.ir.scf import loop_around
from tilework.ir.ttg.memory_types import is_memdesc
from tilework.transforms.passes import module_pass

TRANSPOSITIONS = frozenset({tt.TransOp, ttg.MemDescTransOp})
SPLATS = frozenset({tt.SplatOp, arith.ConstantOp})
# Ops that write a buffer or deallocate it; and ops that signal others to do so.
CHANGES = frozenset(
    {
        ttg.LocalStoreOp,
        ttg.LocalDeallocOp,
        ttg.AsyncCopyGlobalToLocalOp,
        ttng.AsyncTMACopyGlobalToLocalOp,
        ttng.AsyncTMAGatherOp,
    }
)
RELEASES = frozenset({tt.CallOp, ttng.ArriveBarrierOp})


@module_pass("tritongpu-reorder-instructions")
def reorder_instructions(module: ModuleOp) -> None:
    ops = ops_in_order(*module.regions)
    for inner in ops:
        if type(inner) is ttg.ConvertLayoutOp:
            sink_below_deallocs(inner)
    known = aliases(module)
    sink_into_loops(ops, known)
    for inner in ops:
        if type(inner) is ttg.LocalAllocOp and inner.operands:
            raise_alloc(inner)
    for inner in ops:
        if type(inner) in TRANSPOSITIONS and (source := defining_op(inner.operands[0])) is not None:
            move_behind(source, inner)
    for inner in ops_in_order(*module.regions):
        if type(inner) is ttg.LocalLoadOp and operand_index(inner.results[0].type) == 1:
            load_a_first(inner)


def users(value: SSAValue) -> Iterator[Operation]:
    for use in value.uses:
        yield use.operation


def sink_below_deallocs(convert: Operation) -> None:
    """Sink a conversion below deallocations (step 1)."""
    block = convert.parent
    assert block is not None
    uses = {enclosing_op(user, block) for user in users(convert.results[0])}
    last = None
    for op in ops_behind(convert):
        if op in uses:
            break
        if type(op) is ttg.LocalDeallocOp:
            last = op
    if last is not None:
        move_behind(last, convert)


def sink_into_loops(ops: Iterable[Operation], known: Aliases | None) -> None:
    """Move loads and conversions into loops (step 2); without aliases only conversions."""
    moves: list[tuple[Operation, Operation]] = []
    for op in ops:
        kind = type(op)
        if kind is not ttg.LocalLoadOp and not (
            kind is ttg.ConvertLayoutOp and operand_index(op.results[0].type) is not None
        ):
            continue
        all_users = list(users(op.results[0]))
        if len(all_users) != 1 or loop_around(all_users[0], (scf.ForOp,)) is loop_around(op, (scf.ForOp,)):
            continue
        if kind is ttg.ConvertLayoutOp or (known is not None and not memory_changes(op, all_users[0], known)):
            moves.append((op, all_users[0]))
    for op, user in moves:
        move_before(user, op)


def memory_changes(load: Operation, user: Operation, known: Aliases) -> bool:
    """Return True if the memory may be written or released between `load` and `user`, including later iterations of the
    loop that contains it.
    """
    assert load.parent is not None
    outer = enclosing_op(user, load.parent)
    if outer is None:
        return True
    buffers = known.get(load.operands[0], ())
    return any(
        changes(inner, buffers, known)
        for op in (*ops_behind(load, outer), outer)
        for inner in op.walk()
        if inner is not load
    )


def changes(op: Operation, buffers: Sequence[SSAValue], known: Aliases) -> bool:
    """Return True if `op` may write or release `buffers`; an unknown buffer may be any."""
    kind = type(op)
    if kind in RELEASES:
        return True
    if kind not in CHANGES:
        return False
    touched = [buffer for operand in op.operands if is_memdesc(operand.type) for buffer in known.get(operand, ())]
    return not touched or not buffers or any(buffer in buffers for buffer in touched)


def raise_alloc(alloc: Operation) -> None:
    """Hoist an allocation to its source (step 3)."""
    source = defining_op(alloc.operands[0])
    if source is None or type(source) in SPLATS:
        return
    if source.parent is alloc.parent or is_value_alloc(alloc):
        move_behind(source, alloc)


def load_a_first(load: Operation) -> None:
    """Sink `load`, operand B of its only user, below the load of operand A (step 5)."""
    all_users = list(users(load.results[0]))
    if len(all_users) != 1 or type(all_users[0]) is not tt.DotOp:
        return
    dot = all_users[0]
    other = dot.operands[0]
    if not isinstance(other, OpResult) or type(other.op) is not ttg.LocalLoadOp:
        return
    if other.op.parent is not load.parent or dot.parent is not load.parent:
        return
    passed = list(ops_behind(load, other.op))
    if passed and passed[-1].next_op is not other.op:
        return  # A precedes it already
    if not any(writes(op) for op in passed):
        move_behind(other.op, load)
