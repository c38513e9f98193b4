"""Large nests that several threads can share, for grids with fewer programs than there are cores.

    ttc.nest [1048576] {...}
    ==>
    void @tilework.fork.0(ptr %slots, i64 %chunk, ptr)   takes `chunk` indices of the outermost loop from the counter in slot 0
                                                         until none are left; the other slots hold what the body uses
    in the kernel:
        slots = 0, values ...
        if the arena names a worker: worker(@tilework.fork.0, slots, size, step, arena)
        call @tilework.fork.0(slots, size, null)         what is left: everything, or nothing

Whether anybody helps is decided for each launch (`pool.py`), by the address at byte FORK of the arena: that of
`pool_share` (`pool_code.py`); in a large grid it is 0 and the nest costs one test and one call more. A nest qualifies
if its work is worth waking a thread for, if no reduction runs along the outermost loop, and if different indices of
that loop write to different places. Large dots are shared in the same way, by strips of columns (`dot_rules.py`), and
large scans, by rows or columns (`scan.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from math import prod
from typing import TypeVar

from xdsl.ir import Operation, SSAValue

from tilework.ir import tt, ttc
from tilework.targets.cpu.lower.atomic_rules import orders
from tilework.targets.cpu.lower.grouped import nest_of
from tilework.targets.cpu.lower.lowering import Lowering, lowers
from tilework.targets.cpu.lower.nest_access import access_stride, is_volatile
from tilework.targets.cpu.lower.nests import Nest
from tilework.targets.cpu.lower.promised_stores import promised_stores
from tilework.targets.cpu.lower.streaming import stores_past
from tilework.targets.cpu.run.interface import FORK
from tilework.targets.cpu.run.library import FORK_SYMBOL
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import i64, ptr, void
from tilework.targets.llvm.values import Value, constant
from tilework.targets.recording import is_recording

FORK_WORK = 1 << 21  # instructions on elements: about 0.1 ms
ACCESS_COST = 4  # of an element that comes from memory, beside the instructions
Key = TypeVar("Key")
Emit = Callable[[Builder, Mapping[Key, Value], Value, Value], None]
SHAREABLE = (tt.LoadOp, tt.StoreOp, ttc.ReadOp, ttc.WriteOp, ttc.ReduceOp)


@lowers(ttc.NestOp)
def lower_nest(low: Lowering, op: Operation) -> None:
    nest = nest_of(low, op)
    nest.past = stores_past(nest, op)
    if is_recording():
        from tilework.targets.cpu.lower.nest_remarks import remark_nest  # lazily: few look

        remark_nest(nest)
    if is_shareable(nest):
        share_nest(low, op, nest)
        return
    nest.promised = promised_stores(nest, op)
    releases, acquires = any(map(orders, nest.ops)), any(map(is_ordered, nest.ops))
    if releases:
        low.builder.fence("release")
    emit_nest(nest)
    if acquires:
        low.builder.fence("acq_rel" if releases else "acquire")


def emit_nest(nest: Nest) -> None:
    """The nest, and the order of stores past the caches, which x86 does not keep by itself."""
    nest.emit()
    if nest.low.target.arch == "x86_64" and nest.past:
        with nest.b.if_(reduce(nest.b.or_, nest.past.values())):
            nest.b.call("llvm.x86.sse.sfence", void, [])


def is_ordered(op: Operation) -> bool:
    """Return True if the ops that follow must run after it."""
    return orders(op) or (type(op) is tt.LoadOp and is_volatile(op))


def is_shareable(nest: Nest) -> bool:
    """See the module docstring."""
    if not nest.shape or prod(nest.shape) * (nest.cost() + ACCESS_COST) < FORK_WORK:
        return False
    outermost = nest.order[0]
    step = nest.step if outermost == nest.dim else 1
    if nest.shape[outermost] < 2 * step or any(fold.axis == outermost for fold in nest.folds):
        return False
    if any(fold.is_tree and fold.axis != nest.order[-1] for fold in nest.folds):  # its partial results are in the arena
        return False
    return all(is_independent(nest, op, outermost) for op in nest.ops)


def is_independent(nest: Nest, op: Operation, dim: int) -> bool:
    """Return True if the op may run for several indices of `dim` at once."""
    kind = type(op)
    if kind is tt.StoreOp or kind is ttc.WriteOp:
        access = access_stride(op, nest.strides, dim)
        return access is not None and access[0] not in (0, None)
    return kind in nest.low.elementwise or (kind in SHAREABLE and not (kind is tt.LoadOp and is_volatile(op)))


def share_nest(low: Lowering, op: Operation, nest: Nest) -> None:
    """Write the nest as a function of its own, and call it."""
    outermost = nest.order[0]

    def emit(first: Value, last: Value, *past: Value) -> None:
        nest.b, nest.bounds, nest.past = low.builder, (first, last), dict(zip(nest.past, past, strict=True))
        emit_nest(nest)

    step = nest.step if outermost == nest.dim else 1
    share_op(low, op, nest.shape[outermost], step, emit, *nest.past.values())


def share_op(low: Lowering, op: Operation, size: int, step: int, emit: Callable[..., None], *more: Value) -> None:
    """`share` what ``emit(first, behind the last, *more)`` lowers of an op, with all values that it uses."""
    used = list(outer_values(op))
    moved = {place: value for place, value in enumerate([*map(low.__getitem__, used), *more]) if not is_fixed(value)}
    outer, values, lines = low.builder, low.values, low.lines

    def inside(b: Builder, known: Mapping[int, Value], first: Value, last: Value) -> None:
        there = {value: known[place] for place, value in enumerate(used) if place in known}
        low.builder, low.values, low.lines = b, {**values, **there}, None
        emit(first, last, *(known.get(place, value) for place, value in enumerate(more, len(used))))
        low.builder, low.values, low.lines = outer, values, lines

    share(low, moved, size, step, inside)


def share(low: Lowering, moved: Mapping[Key, Value], size: int, step: int, emit: Emit[Key]) -> None:
    """Have indices 0 to `size` - 1 taken by several threads, multiples of `step` at once: ``emit(builder, the moved
    values there, first, behind the last)`` writes what is done for some of them.
    """
    b = low.builder
    name = f"{FORK_SYMBOL}{sum(known.startswith(FORK_SYMBOL) for known in low.module.functions)}"
    slots = b.alloca(i64, 1 + len(moved), align=8)
    b.store(constant(i64, 0), slots, align=8)
    for place, value in enumerate(moved.values(), 1):
        b.store(value, b.gep(slots, 8 * place), align=8)
    define(low, name, moved, size, emit)
    function = Value(ptr, f"@{name}")
    worker = b.load(ptr, b.gep(low.arena, FORK), align=8)
    with b.if_(b.icmp("ne", worker, constant(ptr, 0)), weights=(1, 1000)):
        b.call(worker, void, [function, slots, constant(i64, size), constant(i64, step), low.arena])
    b.call(name, void, [slots, constant(i64, size), constant(ptr, 0)])


def outer_values(op: Operation) -> Iterator[SSAValue]:
    """The values that the body of a nest uses but does not make, once each."""
    seen: set[SSAValue] = set()
    for inner in op.walk():
        seen.update(inner.results)
        seen.update(arg for region in inner.regions for block in region.blocks for arg in block.args)
        for operand in inner.operands:
            if operand not in seen:
                seen.add(operand)
                yield operand


def is_fixed(value: Value) -> bool:
    """A constant or a global: the same text in every function."""
    return value.constant is not None or not value.text.startswith("%")


def define(low: Lowering, name: str, moved: Mapping[Key, Value], size: int, emit: Emit[Key]) -> None:
    """The function that threads run."""
    params = [(ptr, "slots"), (i64, "chunk"), (ptr, "worker")]
    function = low.module.function(name, void, params, linkage="internal", attributes=("nounwind",))
    b = Builder(function)
    b.flags = low.builder.flags
    slots, chunk, _ = function.args
    inside = {
        key: b.load(known.type, b.gep(slots, 8 * place), align=8) for place, (key, known) in enumerate(moved.items(), 1)
    }
    claim, run, done = (function.block(label) for label in ("claim", "run", "done"))
    b.br(claim)
    b.resume(claim)
    first = b.atomic_rmw("add", slots, chunk, align=8)
    b.cond_br(b.icmp("slt", first, size), run, done)
    b.resume(run)
    emit(b, inside, first, b.smin(b.add(first, chunk), constant(i64, size)))
    b.br(claim)
    b.resume(done)
    b.ret()
