"""Rules of `ttg` ops: layouts, shared memory and its views, barriers, the pipeliner's ops, ``cp.async`` and ``wgmma``.

Layouts do not change values: `ttg.convert_layout` is the identity.

    %a = ttg.async_copy_global_to_local ...       the data is read now, the buffer is undefined until the wait
    %g = ttg.async_commit_group tokens %a         ends a group
    ttg.async_wait %g {num = 1 : i32}             all groups but the last one are complete

Tokens carry no facts: as in hardware, a wait counts the groups that were committed before it.

The result of an asynchronous `ttng.warp_group_dot` is an `InFlight`. It may be the accumulator of the next dot, and it
may be carried and rearranged; any other use is a fault until a `ttng.warp_group_dot_wait` has completed it.

"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from tilework.ir import scf, tt, ttg, ttng
from tilework.ir.effects import writes
from tilework.ir.llvm import GpuBarrierOp
from tilework.ir.ttg.memdesc_types import AsyncTokenType, MemDescType
from tilework.ir.types import shape_of
from tilework.numerics.rounding import Array, narrow, unpack_e2m1
from tilework.oracles.evaluator.access_rules import pointee
from tilework.oracles.evaluator.rules import Fault, Rule, evaluates, rules
from tilework.oracles.evaluator.shared_memory import MemView, assigned_offset, layout_offsets
from tilework.oracles.evaluator.tensor_rules import eval_dot
from tilework.oracles.evaluator.values import Dot, InFlight, fit, storage

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

rules(
    {
        ttg.ConvertLayoutOp: lambda machine, op, src: src,
        ttg.LocalDeallocOp: lambda machine, op, view: None,
        ttg.LocalLoadOp: lambda machine, op, view, *token: machine.shared.read(view),
        ttg.LocalDotOp: lambda machine, op, a, b, c: eval_dot(
            machine, op, machine.shared.read(a), machine.shared.read(b), c
        ),
        ttg.LocalStoreOp: lambda machine, op, src, view: machine.shared.write(view, src),
        ttg.MemDescTransOp: lambda machine, op, view: view.viewed(
            view.offsets.transpose(machine.integers(op, "order"))
        ),
        ttg.MemDescReshapeOp: lambda machine, op, view: view.viewed(view.offsets.reshape(shape_of(op.results[0].type))),
        ttg.LocalBarrierOp: lambda machine, op: machine.shared.barrier(),
        GpuBarrierOp: lambda machine, op: machine.shared.barrier(),
        ttng.FenceAsyncSharedOp: lambda machine, op: machine.shared.fence(),
        ttng.ClusterArriveOp: lambda machine, op: None,
        ttng.TakeTurnOp: lambda machine, op, barriers, phase: None,  # changes the order of warps, not the result
        ttng.GiveTurnOp: lambda machine, op, barriers: None,
        ttng.ClusterWaitOp: lambda machine, op: machine.shared.barrier(),  # all threads of all blocks have arrived
    }
)


@evaluates(ttg.Fp4ToFpOp)
def eval_fp4_to_fp(machine: "Machine", op: Operation, src: Array) -> Array:
    """A byte holds two e2m1, the low nibble first; the axis becomes twice as long."""
    return narrow(unpack_e2m1(src, machine.integer(op, "axis")), storage(op.results[0].type))


@evaluates(ttg.LocalAllocOp)
def eval_local_alloc(machine: "Machine", op: Operation, *src: Array) -> MemView:
    type_ = op.results[0].type
    assert isinstance(type_, MemDescType)
    view = machine.shared.allocate(type_, assigned_offset(op))
    if src:
        machine.shared.write(view, src[0])
    return view


@evaluates(ttg.MemDescIndexOp)
def eval_memdesc_index(machine: "Machine", op: Operation, view: MemView, index: Array) -> MemView:
    """An index out of range is a fault when the memory is used, because pipelined loops compute some that they do not
    use."""
    position, count = int(index), len(view.offsets)
    if not 0 <= position < count:
        return view.viewed(np.full(view.offsets.shape[1:], -1, np.int64))
    return view.viewed(view.offsets[position])


@evaluates(ttg.MemDescSubsliceOp)
def eval_memdesc_subslice(machine: "Machine", op: Operation, view: MemView) -> MemView:
    sizes = shape_of(op.results[0].type)
    starts = machine.integers(op, "offsets")
    return view.viewed(view.offsets[tuple(slice(a, a + size) for a, size in zip(starts, sizes, strict=True))])


@evaluates(ttg.MemDescReinterpretOp)
def eval_memdesc_reinterpret(machine: "Machine", op: Operation, view: MemView) -> MemView:
    """The bytes from the first one on, in the arrangement of the new encoding."""
    type_ = op.results[0].type
    assert isinstance(type_, MemDescType)
    offsets, _, _ = layout_offsets(type_)
    return MemView(view.buffer, offsets + int(view.offsets.min()), type_.element_type)


@evaluates(ttg.GlobalScratchAllocOp)
def eval_global_scratch_alloc(machine: "Machine", op: Operation) -> Array:
    """Return the same memory each time the op runs in a program through the same calls."""
    path = (*machine.calls, op)
    if (address := machine.scratch.get(path)) is None:
        memory = np.zeros(machine.integer(op, "nbytes"), np.uint8)
        machine.scratch_memory.append(memory)
        address = machine.scratch[path] = machine.memory.register("scratch memory", memory)
    return np.asarray(address, dtype=np.int64)


@evaluates(ttg.PredicateStageOp)
def eval_predicate_stage(machine: "Machine", op: Operation, iv: Array, ub: Array, step: Array) -> Array:
    """True if the iteration that a stage works on is one of the loop."""
    ahead = machine.integer(op, "maxStage") - machine.integer(op, "stage")
    return fit(np.asarray(int(iv) < int(ub) - ahead * int(step)), op.results[0].type)


@evaluates(ttg.MaskOp)
def eval_mask(machine: "Machine", op: Operation, pred: Array) -> Any:
    """Code without side effects always runs; the results of other code that does not run are undefined."""
    if not pred and any(writes(inner) for inner in op.regions[0].blocks[0].ops):
        return [nothing(result.type) for result in op.results]
    return machine.run_region(op.regions[0], ())[1]


def nothing(type: Any) -> Any:
    """Return an undefined value of `type`."""
    if isinstance(type, AsyncTokenType | MemDescType):
        return None
    return np.zeros(shape_of(type), storage(type))


# Ops that pass on or rearrange an unfinished dot without using its value.
CARRIERS = frozenset(
    {
        scf.ForOp,
        scf.WhileOp,
        scf.IfOp,
        scf.ExecuteRegionOp,
        tt.CallOp,
        tt.TransOp,
        tt.ReshapeOp,
        ttg.ConvertLayoutOp,
        ttng.WarpGroupDotOp,
        ttng.WarpGroupDotWaitOp,
    }
)


@evaluates(ttg.AsyncCopyGlobalToLocalOp)
def eval_async_copy(machine: "Machine", op: Operation, pointer: Array, view: MemView, *rest: Array) -> None:
    """Masked-off lanes write zero, whatever `other` says, as ``cp.async`` does."""
    _, _, masked, _ = machine.integers(op, "operandSegmentSizes")
    values = machine.memory.load(pointer, rest[0] if masked else None, pointee(op.operands[0].type))
    machine.open_copies.append(machine.shared.start(view, values.reshape(view.offsets.shape), op, True))


@evaluates(ttg.AsyncCommitGroupOp)
def eval_async_commit_group(machine: "Machine", op: Operation, *tokens: Any) -> None:
    machine.groups.append(machine.open_copies)
    machine.open_copies = []


@evaluates(ttg.AsyncWaitOp)
def eval_async_wait(machine: "Machine", op: Operation, *tokens: Any) -> None:
    done = max(0, len(machine.groups) - machine.integer(op, "num"))
    for group in machine.groups[:done]:
        machine.shared.finish(group)
    machine.groups = machine.groups[done:]


@evaluates(ttng.WarpGroupDotOp)
def eval_warp_group_dot(machine: "Machine", op: Operation, a: Any, b: MemView, c: Any, *use_c: Array) -> Any:
    if isinstance(a, InFlight):
        raise Fault("multiplies the result of an asynchronous dot before its ttng.warp_group_dot_wait")
    memory = [view for view in (a, b) if isinstance(view, MemView)]
    lhs = machine.shared.read(a, True) if isinstance(a, MemView) else a
    rhs = machine.shared.read(b, True)
    accumulator = c.value if isinstance(c, InFlight) else c
    if use_c and not use_c[0]:
        accumulator = np.zeros_like(accumulator)
    value = eval_dot(machine, op, lhs, rhs, accumulator)
    if not machine.integer(op, "isAsync"):
        finish_dots(machine, 0)
        return value
    dot = Dot()
    machine.dots.append((dot, machine.shared.hold(memory, op)))
    return InFlight(value, dot)


@evaluates(ttng.WarpGroupDotWaitOp)
def eval_warp_group_dot_wait(machine: "Machine", op: Operation, *inputs: Any) -> Any:
    finish_dots(machine, machine.integer(op, "pendings"))
    return [one.value if isinstance(one, InFlight) and one.dot.is_done else one for one in inputs]


def finish_dots(machine: "Machine", pendings: int) -> None:
    """Complete all but the last `pendings` dots."""
    count = max(0, len(machine.dots) - pendings)
    for dot, _ in machine.dots[:count]:
        dot.is_done = True
    machine.shared.release((reader for _, reader in machine.dots[:count]), by_warps=True)
    machine.dots = machine.dots[count:]


def has_background_dots(module: ModuleOp | Operation) -> bool:
    """Return True if some dot of the module is asynchronous."""
    return any(type(op) is ttng.WarpGroupDotOp and is_async(op) for op in module.walk())


def is_async(op: Operation) -> bool:
    flag = op.properties.get("isAsync")
    return isinstance(flag, IntegerAttr) and bool(flag.value.data)


def guarded(rule: Rule) -> Callable[..., Any]:
    """Return `rule` with a check that no operand is in flight."""

    def checked(machine: "Machine", op: Operation, *operands: Any) -> Any:
        for operand in operands:
            if operand.__class__ is InFlight:
                raise Fault("uses the result of an asynchronous dot before its ttng.warp_group_dot_wait")
        return rule(machine, op, *operands)

    return checked
