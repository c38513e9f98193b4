"""Rules of `ttg` and `ttng` ops: layouts, shared memory and its views, barriers, the pipeliner's ops, ``cp.async``,
``wgmma``, mbarriers, TMA copies, descriptors that kernels build, and `ttg.warp_specialize`.

Layouts do not change values: `ttg.convert_layout` is the identity.

    %a = ttg.async_copy_global_to_local ...       the data is read now, the buffer is undefined until the wait
    %g = ttg.async_commit_group tokens %a         ends a group
    ttg.async_wait %g {num = 1 : i32}             all groups but the last one are complete

Tokens carry no facts: as in hardware, a wait counts the groups that were committed before it.

The result of an asynchronous `ttng.warp_group_dot` is an `InFlight`. It may be the accumulator of the next dot, and it
may be carried and rearranged; any other use is a fault until a `ttng.warp_group_dot_wait` has completed it.

A barrier counts phases. A phase ends when the expected arrivals and the announced bytes have come. `ttng.wait_barrier`
with parity p waits for the end of the last phase with that parity:

    current phase             0    1    2    3
    parity 0 is over          no   yes  no   yes
    parity 1 is over          yes  no   yes  no         (before phase 0, parity 1 counts as over)

A wait for a phase that is not over lets the other regions of a `ttg.warp_specialize` run; without any it would never
end, which is a fault, because programs run alone. The data of a copy may be read once a wait has seen the end of the
phase in which its bytes were counted; a wait for the wrong parity sees nothing.

Each partition of a `ttg.warp_specialize` is a `Strand`: a copy of the machine with its own values and its own
operations in flight, in its own thread; shared memory, mbarriers and descriptors are the program's. One strand runs at
a time, until it ends or waits for a phase that is not over; then the first one that can continue runs, so every run is
the same. If none can, the error says what each of them waits for.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from math import prod
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation, Region, SSAValue

from tilework.ir import scf, tt, ttg, ttng
from tilework.ir.effects import writes
from tilework.ir.encodings import encoding_of
from tilework.ir.module_facts import find_num_warps, threads_per_warp
from tilework.ir.ttg.memory_types import AsyncTokenType, MemDescType
from tilework.ir.types import PointerType, i64, shape_of
from tilework.layouts.to_linear import shape_per_cta
from tilework.numerics.rounding import Array, narrow, unpack_e2m1
from tilework.oracles.evaluator.access_rules import (
    Descriptor,
    block_at,
    pointee,
    read_window,
    rows_at,
    update_window,
    write_window,
)
from tilework.oracles.evaluator.global_memory import plain
from tilework.oracles.evaluator.shared_memory import (
    READ,
    WRITTEN,
    Buffer,
    Clocks,
    Copy,
    MemView,
    RegionOrder,
    SharedMemory,
    assigned_offset,
    described,
    layout_offsets,
    learn,
)
from tilework.oracles.evaluator.tensor_rules import eval_dot
from tilework.oracles.evaluator.values import (
    BlockView,
    DescriptorAt,
    Dot,
    Fault,
    InFlight,
    Rule,
    Tensormap,
    evaluates,
    fit,
    memory_bytes,
    rules,
    storage,
)

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
        ttg.LocalGatherOp: lambda machine, op, view, indices, *token: machine.shared.read(
            indexed(machine, op, view, indices)
        ),
        ttg.LocalScatterOp: lambda machine, op, view, indices, values, *token: machine.shared.write(
            indexed(machine, op, view, indices), values
        ),
        ttg.MemDescTransOp: lambda machine, op, view: view.viewed(
            view.offsets.transpose(machine.integers(op, "order"))
        ),
        ttg.MemDescReshapeOp: lambda machine, op, view: view.viewed(view.offsets.reshape(shape_of(op.results[0].type))),
        ttg.BarrierOp: lambda machine, op: machine.shared.barrier() if ttg.is_local_barrier(op) else None,
        ttng.FenceAsyncSharedOp: lambda machine, op: machine.shared.fence(),
        ttng.ClusterArriveOp: lambda machine, op: None,
        ttng.FenceMbarrierInitReleaseClusterOp: lambda machine, op: None,
        ttng.PingPongWaitOp: lambda machine, op, barriers, phase: None,  # changes the order of warps, not the result
        ttng.PingPongSignalOp: lambda machine, op, barriers: None,
        ttng.ClusterWaitOp: lambda machine, op: machine.shared.barrier(),  # all threads of all blocks have arrived
    }
)


def indexed(machine: "Machine", op: Operation, view: MemView, indices: Array) -> MemView:
    """Return the elements that `indices` select along the axis of `op`; outside of it they are taken modulo the size,
    as by `tt.gather`."""
    axis = machine.integer(op, "axis")
    offsets = view.offsets[tuple(slice(None if dim == axis else size) for dim, size in enumerate(indices.shape))]
    return view.viewed(np.take_along_axis(offsets, indices.astype(np.int64) % offsets.shape[axis], axis))


@evaluates(ttg.WarpIdOp)
def eval_warp_id(machine: "Machine", op: Operation) -> Array:
    raise Fault("differs between the warps of a program, which the evaluator runs as one")


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


@dataclass(eq=False)
class Mbarrier:
    """A barrier for `count` arrivals: what is missing in the current phase, and the copies of each phase."""

    count: int
    phase: int = 0
    missing: int = 0
    bytes: int = 0  # announced and not yet counted
    copies: dict[int, list[Copy]] = field(default_factory=dict)
    arrived: Clocks = field(default_factory=dict)  # joined clocks of the arrivals of this phase
    completed: Clocks = field(default_factory=dict)  # joined clocks of the phases that are over

    def __post_init__(self) -> None:
        self.missing = self.count

    def arrive(self, count: int, shared: SharedMemory) -> None:
        shared.publish(self.arrived)
        if count > self.missing:
            raise Fault(f"arrives {count} times at a barrier that waits for {self.missing} of {self.count} arrivals")
        self.missing -= count
        self.advance()

    def advance(self) -> None:
        """Begin the next phase if this one is complete."""
        if self.missing == 0 and self.bytes == 0:
            self.phase, self.missing = self.phase + 1, self.count
            learn(self.completed, self.arrived | {self: self.phase})
            self.arrived = {}


Key = tuple[Buffer, int]


def key(view: MemView) -> Key:
    return view.buffer, int(view.offsets.reshape(-1)[0])


def barrier_at(machine: "Machine", view: MemView) -> Mbarrier:
    """Return the barrier in this memory."""
    if (found := machine.mbarriers.get(key(view))) is None:
        raise Fault("uses a barrier that was not initialised, or not any more")
    if machine.shared.barriers and machine.shared.flagged(view) & WRITTEN:
        raise Fault("uses a barrier that was initialised since the last barrier: a barrier is missing")
    return found


@evaluates(ttng.InitBarrierOp)
def eval_init_barrier(machine: "Machine", op: Operation, view: MemView) -> None:
    machine.shared.write(view, np.zeros(view.offsets.shape, np.int64))
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
    for index in [index for index in barrier.copies if index < barrier.phase]:
        machine.shared.finish(barrier.copies.pop(index), (barrier, index + 1))
    learn(machine.shared.known, barrier.completed)
    if machine.shared.barriers:
        machine.shared.mark(view, READ)


def unfinished(barrier: Mbarrier, parity: int) -> str:
    """Describe why the phase of `parity` has not ended."""
    came = f"{barrier.count - barrier.missing} of {barrier.count} arrivals came, {barrier.bytes} bytes are missing"
    return f"phase {barrier.phase} of the barrier, of parity {parity}, is not over; {came}"


def barrier_name(value: SSAValue) -> str:
    """Return the IR name of a barrier, or of the array that contains it; empty for a value without a name hint."""
    while value.name_hint is None and isinstance(value.owner, ttg.MemDescIndexOp):
        value = value.owner.operands[0]
    return f" for %{value.name_hint}" if value.name_hint else ""


@evaluates(ttng.AsyncCopyMbarrierArriveOp)
def eval_async_copy_mbarrier_arrive(machine: "Machine", op: Operation, view: MemView) -> None:
    """The copies of this program so far belong to the phase; each thread arrives, with `noIncrement` as one of the
    expected arrivals."""
    barrier = barrier_at(machine, view)
    under_way = [copy for group in (*machine.groups, machine.open_copies) for copy in group]
    barrier.copies.setdefault(barrier.phase, []).extend(copy for copy in under_way if copy in machine.shared.coming)
    if "noIncrement" in op.properties:
        barrier.arrive((find_num_warps(op) or 1) * threads_per_warp(op), machine.shared)


def block_bytes(op: Operation, view: MemView) -> int:
    """Return the bytes that arrive in one block of a cluster: each has its own barrier, and all are alike."""
    memory = op.operands[-2].type  # a predicate comes last
    encoding = encoding_of(memory)
    assert isinstance(memory, MemDescType) and encoding is not None, memory
    return prod(shape_per_cta(encoding, memory.dims)) * memory_bytes(view.element)


def bring(machine: "Machine", op: Operation, view: MemView, bar: MemView, values: Array) -> None:
    """Start a copy whose bytes `bar` counts."""
    barrier = barrier_at(machine, bar)
    copy = machine.shared.start(view, values.reshape(view.offsets.shape), op, False)
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
    """Return the values that a store reads; the memory is held until its wait."""
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
def eval_tensormap_create(machine: "Machine", op: Operation, where: Array, base: Array, *integers: Array) -> None:
    """Dimensions come innermost first, the strides in bytes and without the innermost."""
    *_, boxes, dims, strides, _ = machine.integers(op, "operandSegmentSizes")
    values = [int(integer) for integer in integers]
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
    """Check that no asynchronous operation is in flight when a program ends."""
    if any(isinstance(value, InFlight) for value in returned):
        raise Fault("returns the result of an asynchronous dot before its ttng.warp_group_dot_wait")
    check_stores_are_over(machine, "ends")


def check_stores_are_over(machine: "Machine", ends: str) -> None:
    if machine.tma_stores:
        raise Fault(f"{ends} while a TMA store still reads shared memory: a ttng.async_tma_store_wait is missing")


class Cancelled(BaseException):
    """Another strand failed: this one ends where it waits."""


class Strand:
    """A region that runs in its own thread whenever it is `resume`d, up to its next wait."""

    def __init__(self, machine: "Machine", name: str, region: Region, arguments: Sequence[Any]) -> None:
        self.machine, self.name, self.region, self.arguments = machine, name, region, arguments
        self.go, self.back = Semaphore(0), Semaphore(0)
        self.is_ready: Callable[[], bool] = lambda: True
        self.waits_for: Callable[[], str] = str
        self.values: list[Any] | None = None  # what the region yields, once it has ended
        self.error: BaseException | None = None
        self.is_cancelled = False
        self.thread = Thread(target=self.main, name=name, daemon=True)
        machine.strand = self
        self.thread.start()

    def main(self) -> None:
        self.go.acquire()
        try:
            with np.errstate(all="ignore"):
                if not self.is_cancelled:
                    _, self.values = self.machine.run_blocks(self.region.blocks[0], self.arguments)
        except BaseException as error:
            self.error = error
        self.back.release()

    def resume(self) -> None:
        """Run until it waits or ends; raise its exception here."""
        self.go.release()
        self.back.acquire()
        if self.error is not None:
            raise self.error

    def wait(self, is_ready: Callable[[], bool], waits_for: Callable[[], str]) -> None:
        """Called by the region itself: run others until `is_ready`."""
        if not is_ready():
            self.is_ready, self.waits_for = is_ready, waits_for
            self.back.release()
            self.go.acquire()
            if self.is_cancelled:
                raise Cancelled

    def cancel(self) -> None:
        """End the thread."""
        self.is_cancelled = True
        self.go.release()
        self.thread.join()


@evaluates(ttg.WarpSpecializeOp)
def eval_warp_specialize(machine: "Machine", op: Operation, *captures: Any) -> Any:
    assert isinstance(op, ttg.WarpSpecializeOp)
    order = RegionOrder()
    machine.shared.barrier()
    machine.shared.begin_region(order, "the default region")
    strands = [Strand(machine, "the default region", op.default_region, ())]
    for index, region in enumerate(op.partitions):
        name = f"partition{index}"
        strands.append(Strand(partition_machine(machine, order, name), name, region, captures))
    try:
        run_together(strands)
    finally:
        machine.strand = machine.shared.order = None
        for strand in strands:
            if strand.thread.is_alive():
                strand.cancel()
    for strand in strands[1:]:
        check_stores_are_over(strand.machine, f"{strand.name} ends")
    machine.shared.barrier()
    values = strands[0].values
    assert values is not None, "the default region has ended"
    return values


def partition_machine(machine: "Machine", order: RegionOrder, name: str) -> "Machine":
    """Return the machine of a partition: the program's memory, and nothing of its own in flight."""
    found = copy(machine)
    found.values, found.folds = {}, {}
    found.begin_warps()
    found.shared = machine.shared.of_other_warps(order, name)
    return found


def run_together(strands: list[Strand]) -> None:
    """Run all strands until they have ended."""
    while running := [strand for strand in strands if strand.values is None]:
        ready = next((strand for strand in running if strand.is_ready()), None)
        if ready is None:
            waits = "; ".join(f"{strand.name} {strand.waits_for()}" for strand in running)
            raise Fault(f"waits for ever: {waits}")
        ready.resume()
