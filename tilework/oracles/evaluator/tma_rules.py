"""Rules of mbarriers, TMA copies and the descriptors that kernels make.

A barrier counts phases. A phase ends when as many arrivals as the barrier was made for have come, and as many bytes as
were announced. `ttng.wait_barrier` with parity p waits for the end of the last phase with that parity:

    phase being counted       0    1    2    3
    parity 0 is over          no   yes  no   yes
    parity 1 is over          yes  no   yes  no         (before phase 0, parity 1 counts as over)

A wait for a phase that is not over lets the other regions of a `ttg.warp_specialize` run; without any it would never end, a
fault: programs run alone here. What a copy brought may be read
once a wait has seen the end of the phase in which its bytes were counted; a wait for the wrong parity sees nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from tilework.ir import ttg, ttng
from tilework.ir.encodings import encoding_of
from tilework.ir.module_facts import find_num_warps, threads_per_warp
from tilework.ir.ttg.memdesc_types import MemDescType
from tilework.ir.types import PointerType, i64
from tilework.layouts.queries import shape_per_cta
from tilework.numerics.rounding import Array
from tilework.oracles.evaluator.access_rules import (
    Descriptor,
    block_at,
    read_window,
    rows_at,
    update_window,
    write_window,
)
from tilework.oracles.evaluator.compound_values import BlockView, DescriptorAt, InFlight, Tensormap
from tilework.oracles.evaluator.evaluation_errors import Fault
from tilework.oracles.evaluator.floats import memory_bytes
from tilework.oracles.evaluator.global_memory import plain
from tilework.oracles.evaluator.region_order import Clocks, learn
from tilework.oracles.evaluator.shared_memory import READ, WRITTEN, Buffer, Copy, MemView, SharedMemory, described
from tilework.oracles.evaluator.table import evaluates

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine


@dataclass(eq=False)
class Mbarrier:
    """A barrier for `count` arrivals: what is missing in the phase being counted, and the copies of each phase."""

    count: int
    phase: int = 0
    missing: int = 0
    bytes: int = 0  # announced and not yet counted
    copies: dict[int, list[Copy]] = field(default_factory=dict)
    told: Clocks = field(default_factory=dict)  # by those who arrived in this phase
    knows: Clocks = field(default_factory=dict)  # from the phases that are over

    def __post_init__(self) -> None:
        self.missing = self.count

    def arrive(self, count: int, shared: SharedMemory) -> None:
        shared.tell(self.told)
        if count > self.missing:
            raise Fault(f"arrives {count} times at a barrier that waits for {self.missing} of {self.count} arrivals")
        self.missing -= count
        self.advance()

    def advance(self) -> None:
        """Begin the next phase if this one is complete."""
        if self.missing == 0 and self.bytes == 0:
            self.phase, self.missing = self.phase + 1, self.count
            learn(self.knows, self.told | {self: self.phase})
            self.told = {}


Key = tuple[Buffer, int]


def key(view: MemView) -> Key:
    return view.buffer, int(view.places.reshape(-1)[0])


def barrier_at(machine: "Machine", view: MemView, init: bool = False) -> Mbarrier:
    """The barrier in this memory."""
    if (found := machine.mbarriers.get(key(view))) is None:
        raise Fault("uses a barrier that was not initialised, or not any more")
    if machine.shared.barriers and machine.shared.flagged(view) & WRITTEN:
        raise Fault("uses a barrier that was initialised since the last gpu.barrier: a barrier is missing")
    return found


@evaluates(ttng.InitBarrierOp)
def eval_init_barrier(machine: "Machine", op: Operation, view: MemView) -> None:
    machine.shared.write(view, np.zeros(view.places.shape, np.int64))
    machine.mbarriers[key(view)] = Mbarrier(machine.integer(op, "count"))


@evaluates(ttng.InvalBarrierOp)
def eval_inval_barrier(machine: "Machine", op: Operation, view: MemView) -> None:
    barrier_at(machine, view)
    machine.shared.check_write(view)
    del machine.mbarriers[key(view)]


@evaluates(ttng.BarrierExpectOp)
def eval_barrier_expect(machine: "Machine", op: Operation, view: MemView, pred: Array) -> None:
    if pred:
        barrier = barrier_at(machine, view)
        barrier.bytes += machine.integer(op, "size")
        barrier.arrive(1, machine.shared)


@evaluates(ttng.ArriveBarrierOp)
def eval_arrive_barrier(machine: "Machine", op: Operation, view: MemView, *pred: Array) -> None:
    if not pred or pred[0]:
        barrier_at(machine, view).arrive(machine.integer(op, "count"), machine.shared)


@evaluates(ttng.WaitBarrierOp)
def eval_wait_barrier(machine: "Machine", op: Operation, view: MemView, phase: Array, *rest: object) -> None:
    _, _, predicated, _ = machine.integers(op, "operandSegmentSizes")
    if predicated and not rest[0]:
        return
    barrier, parity = barrier_at(machine, view), int(phase) & 1

    def is_over() -> bool:
        return barrier.phase & 1 != parity

    if machine.strand is not None:
        where = f"waits in {described(op)}{barrier_name(op.operands[0])}"
        machine.strand.wait(is_over, lambda: f"{where}, {unfinished(barrier, parity)}")
    if not is_over():
        raise Fault(f"waits for ever: {unfinished(barrier, parity)}")
    for number in [number for number in barrier.copies if number < barrier.phase]:
        machine.shared.finish(barrier.copies.pop(number), (barrier, number + 1))
    learn(machine.shared.known, barrier.knows)
    if machine.shared.barriers:
        machine.shared.mark(view, READ)


def unfinished(barrier: Mbarrier, parity: int) -> str:
    """Why a wait for the end of the phase of `parity` goes on."""
    came = f"{barrier.count - barrier.missing} of {barrier.count} arrivals came, {barrier.bytes} bytes are missing"
    return f"phase {barrier.phase} of the barrier, of parity {parity}, is not over; {came}"


def barrier_name(value: SSAValue) -> str:
    """How the IR calls a barrier, or the array that it is one of; what it is called in text alone is not known."""
    while value.name_hint is None and isinstance(value.owner, ttg.MemDescIndexOp):
        value = value.owner.operands[0]
    return f" for %{value.name_hint}" if value.name_hint else ""


@evaluates(ttng.AsyncCopyMbarrierArriveOp)
def eval_async_copy_mbarrier_arrive(machine: "Machine", op: Operation, view: MemView) -> None:
    """The copies of this program so far belong to the phase; each thread arrives, and was perhaps counted for it."""
    barrier = barrier_at(machine, view)
    under_way = [copy for group in (*machine.groups, machine.open_copies) for copy in group]
    barrier.copies.setdefault(barrier.phase, []).extend(copy for copy in under_way if copy in machine.shared.coming)
    if "noIncrement" in op.properties:
        barrier.arrive((find_num_warps(op) or 1) * threads_per_warp(op), machine.shared)


def block_bytes(op: Operation, view: MemView) -> int:
    """What arrives in one block of a cluster: each has its own barrier, and all are alike."""
    memory = op.operands[-2].type  # a predicate comes last
    encoding = encoding_of(memory)
    assert isinstance(memory, MemDescType) and encoding is not None, memory
    return prod(shape_per_cta(encoding, memory.dims)) * memory_bytes(view.element)


def bring(machine: "Machine", op: Operation, view: MemView, bar: MemView, values: Array) -> None:
    """Start a copy whose bytes `bar` counts."""
    barrier = barrier_at(machine, bar)
    copy = machine.shared.start(view, values.reshape(view.places.shape), op, False)
    barrier.copies.setdefault(barrier.phase, []).append(copy)
    barrier.bytes -= block_bytes(op, view)
    barrier.advance()


@evaluates(ttng.AsyncTMACopyGlobalToLocalOp)
def eval_tma_load(machine: "Machine", op: Operation, desc: Descriptor, *operands: Any) -> None:
    *coordinates, barrier, target, pred = operands
    if pred:
        bring(machine, op, target, barrier, read_window(machine, desc, block_at, *coordinates))


@evaluates(ttng.AsyncTMAGatherOp)
def eval_tma_gather(machine: "Machine", op: Operation, desc: Descriptor, *operands: Any) -> None:
    rows, column, barrier, target, pred = operands
    if pred:
        bring(machine, op, target, barrier, read_window(machine, desc, rows_at, rows, column))


def sent(machine: "Machine", op: Operation, source: MemView) -> Array:
    """What a store reads; the memory is in use until the wait for it."""
    values = machine.shared.read(source, True)
    machine.tma_stores.append(machine.shared.hold([source], op))
    return values


@evaluates(ttng.AsyncTMACopyLocalToGlobalOp)
def eval_tma_store(machine: "Machine", op: Operation, desc: Descriptor, *operands: Any) -> None:
    *coordinates, source = operands
    write_window(machine, desc, sent(machine, op, source), block_at, *coordinates)


@evaluates(ttng.AsyncTMAReduceOp)
def eval_tma_reduce(machine: "Machine", op: Operation, desc: Descriptor, *operands: Any) -> None:
    *coordinates, source = operands
    update_window(machine, op, desc, sent(machine, op, source), *coordinates)


@evaluates(ttng.AsyncTMAScatterOp)
def eval_tma_scatter(machine: "Machine", op: Operation, desc: Descriptor, *operands: Any) -> None:
    rows, column, source = operands
    write_window(machine, desc, sent(machine, op, source), rows_at, rows, column)


@evaluates(ttng.AsyncTMAStoreWaitOp)
def eval_tma_store_wait(machine: "Machine", op: Operation) -> None:
    done = max(0, len(machine.tma_stores) - machine.integer(op, "pendings"))
    machine.shared.release(machine.tma_stores[:done])
    machine.tma_stores = machine.tma_stores[done:]


@evaluates(ttng.TensormapCreateOp)
def eval_tensormap_create(machine: "Machine", op: Operation, where: Array, base: Array, *numbers: Array) -> None:
    """Dimensions come innermost first, the strides in bytes and without the innermost."""
    *_, boxes, dims, strides, _ = machine.integers(op, "operandSegmentSizes")
    values = [int(number) for number in numbers]
    pointer = op.operands[1].type
    assert isinstance(pointer, PointerType)
    size = memory_bytes(pointer.pointee)
    box, shape = values[:boxes], values[boxes : boxes + dims]
    steps = [1, *(step // size for step in values[boxes + dims : boxes + dims + strides])]
    with_nan = bool(machine.integer(op, "fill_mode"))
    view = BlockView(int(base), tuple(shape[::-1]), tuple(steps[::-1]), pointer.pointee, tuple(box[::-1]), (), with_nan)
    machine.memory.store(where, np.asarray(0, np.int64), None, i64)
    machine.tensormaps[int(plain(where))] = Tensormap(view)


@evaluates(ttng.TensormapFenceproxyAcquireOp)
def eval_tensormap_acquire(machine: "Machine", op: Operation, where: Array) -> None:
    if (found := machine.tensormaps.get(int(plain(where)))) is not None:
        found.is_acquired = True


@evaluates(ttng.ReinterpretTensorDescOp)
def eval_reinterpret_tensor_desc(machine: "Machine", op: Operation, where: Array) -> DescriptorAt:
    return DescriptorAt(int(plain(where)), op.results[0].type)


def end_program(machine: "Machine", returned: Sequence[object]) -> None:
    """What must be over when a program ends."""
    if any(isinstance(value, InFlight) for value in returned):
        raise Fault("returns the result of an asynchronous dot before its ttng.warp_group_dot_wait")
    check_stores_are_over(machine, "ends")


def check_stores_are_over(machine: "Machine", ends: str) -> None:
    if machine.tma_stores:
        raise Fault(f"{ends} while a TMA store still reads shared memory: a ttng.async_tma_store_wait is missing")
