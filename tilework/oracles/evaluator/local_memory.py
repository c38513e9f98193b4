"""Rules of `ttg` ops without asynchrony: layouts, shared memory and its views, barriers, the pipeliner's own ops.

Layouts do not change values: `ttg.convert_layout` is the identity.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Operation

from tilework.ir import ttg, ttng
from tilework.ir.effects import writes
from tilework.ir.gpu import GpuBarrierOp
from tilework.ir.ttg.memdesc_types import AsyncTokenType, MemDescType
from tilework.ir.types import shape_of
from tilework.numerics.microscaling import unpack_e2m1
from tilework.numerics.rounding import Array, narrow
from tilework.oracles.evaluator.dot_rules import product
from tilework.oracles.evaluator.floats import fit, storage
from tilework.oracles.evaluator.shared_memory import MemView, assigned_offset, layout_places
from tilework.oracles.evaluator.table import evaluates, rules

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine


rules(
    {
        ttg.ConvertLayoutOp: lambda machine, op, src: src,
        ttg.LocalDeallocOp: lambda machine, op, view: None,
        ttg.LocalLoadOp: lambda machine, op, view, *token: machine.shared.read(view),
        ttg.LocalDotOp: lambda machine, op, a, b, c: product(
            machine, op, machine.shared.read(a), machine.shared.read(b), c
        ),
        ttg.LocalStoreOp: lambda machine, op, src, view: machine.shared.write(view, src),
        ttg.MemDescTransOp: lambda machine, op, view: view.viewed(view.places.transpose(machine.integers(op, "order"))),
        ttg.MemDescReshapeOp: lambda machine, op, view: view.viewed(view.places.reshape(shape_of(op.results[0].type))),
        ttg.LocalBarrierOp: lambda machine, op: machine.shared.barrier(),
        GpuBarrierOp: lambda machine, op: machine.shared.barrier(),
        ttng.FenceAsyncSharedOp: lambda machine, op: machine.shared.fence(),
        ttng.ClusterArriveOp: lambda machine, op: None,
        ttng.TakeTurnOp: lambda machine, op, barriers, phase: None,  # it decides who is first, not what is computed
        ttng.GiveTurnOp: lambda machine, op, barriers: None,
        ttng.ClusterWaitOp: lambda machine, op: machine.shared.barrier(),  # all threads of all blocks have come here
    }
)


@evaluates(ttg.Fp4ToFpOp)
def eval_fp4_to_fp(machine: "Machine", op: Operation, src: Array) -> Array:
    """Two e2m1 in a byte, the low nibble first; the axis becomes twice as long."""
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
    """A number outside is a fault where the memory is used: pipelined loops make some that are not."""
    number, count = int(index), len(view.places)
    if not 0 <= number < count:
        return view.viewed(np.full(view.places.shape[1:], -1, np.int64))
    return view.viewed(view.places[number])


@evaluates(ttg.MemDescSubsliceOp)
def eval_memdesc_subslice(machine: "Machine", op: Operation, view: MemView) -> MemView:
    sizes = shape_of(op.results[0].type)
    starts = machine.integers(op, "offsets")
    return view.viewed(view.places[tuple(slice(a, a + size) for a, size in zip(starts, sizes, strict=True))])


@evaluates(ttg.MemDescReinterpretOp)
def eval_memdesc_reinterpret(machine: "Machine", op: Operation, view: MemView) -> MemView:
    """The bytes from the first one on, as the new encoding arranges them."""
    type_ = op.results[0].type
    assert isinstance(type_, MemDescType)
    places, _, _ = layout_places(type_)
    return MemView(view.buffer, places + int(view.places.min()), type_.element_type)


@evaluates(ttg.GlobalScratchAllocOp)
def eval_global_scratch_alloc(machine: "Machine", op: Operation) -> Array:
    """The same memory each time the op runs in a program, by the same way of calls."""
    place = (*machine.calls, op)
    if (address := machine.scratch.get(place)) is None:
        memory = np.zeros(machine.integer(op, "nbytes"), np.uint8)
        machine.scratch_memory.append(memory)
        address = machine.scratch[place] = machine.memory.register("scratch memory", memory)
    return np.asarray(address, dtype=np.int64)


@evaluates(ttg.PredicateStageOp)
def eval_predicate_stage(machine: "Machine", op: Operation, iv: Array, ub: Array, step: Array) -> Array:
    """Whether the iteration that a stage works on is one of the loop."""
    ahead = machine.integer(op, "maxStage") - machine.integer(op, "stage")
    return fit(np.asarray(int(iv) < int(ub) - ahead * int(step)), op.results[0].type)


@evaluates(ttg.MaskOp)
def eval_mask(machine: "Machine", op: Operation, pred: Array) -> Any:
    """Code without effects always runs; what other code would have given, where it does not run, is worth nothing."""
    if not pred and any(writes(inner) for inner in op.regions[0].blocks[0].ops):
        return [nothing(result.type) for result in op.results]
    return machine.run_region(op.regions[0], ())[1]


def nothing(type: Any) -> Any:
    """A value of `type` that nobody may rely on."""
    if isinstance(type, AsyncTokenType | MemDescType):
        return None
    return np.zeros(shape_of(type), storage(type))
