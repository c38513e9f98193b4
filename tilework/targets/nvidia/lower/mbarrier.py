"""Barriers in shared memory (mbarrier), the fence between the two ways to it, and barriers of a cluster.

    mbarrier.init.shared::cta.b64 [%bar], 1;                            # one thread; others use it behind a block's barrier
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16384;         # one thread
    W: mbarrier.try_wait.parity.shared::cta.b64 %p, [%bar], %phase;     # every thread, until the phase is over
       @!%p bra W;

Threads write shared memory by one way, TMA and tensor cores reach it by another ("async proxy"): the fence orders what a
thread wrote before what they do.
"""

from xdsl.ir import Operation, SSAValue

from tilework.analysis.membar import arrive_by_warps
from tilework.ir import ttg, ttng
from tilework.ir.types import array_values
from tilework.target import Feature
from tilework.targets.gpu.lowering import Lowering, Shared, number_of
from tilework.targets.llvm.values import Value
from tilework.targets.nvidia.lower.inline_ptx import ptx, shared_word
from tilework.targets.nvidia.lower.own_rules import lowers

BYTES = 8  # of an mbarrier
GROUP_BITS = 2  # of a warp's number: its place in the group of four


def barrier_address(low: Lowering, barrier: SSAValue) -> Value:
    memory: Shared = low[barrier]
    return shared_word(low.builder, memory.base, memory.origin * BYTES)


def by_one(
    low: Lowering, text: str, inputs: list[Value], condition: SSAValue | None = None, of_warp: bool = False
) -> None:
    """An instruction that only the first thread executes, of all or of each warp, if `condition` is true."""
    b = low.builder
    first = b.icmp("eq", low.lane if of_warp else low.thread, 0)
    chosen = first if condition is None else b.and_(first, low.scalar(condition))
    guard = f"@${len(inputs)} "
    ptx(b, " ".join(f"{guard}{part};" for part in text.split(";") if part), [], [*inputs, chosen], effect="write")


def needs(low: Lowering, op: Operation, feature: Feature, what: str) -> None:
    if not low.gpu.has(feature):
        raise low.refuse(op, what)


@lowers(ttng.InitBarrierOp)
def lower_init_barrier(low: Lowering, op: Operation) -> None:
    """The other blocks of a cluster, and TMA, see it behind a fence, one for neighbours, and a barrier (`analysis/membar.py`)."""
    scope, fence = (
        ("::cta", ";fence.mbarrier_init.release.cluster") if low.gpu.has(Feature.MBARRIER_BYTES) else ("", "")
    )
    following = op.next_op
    while isinstance(following, ttg.MemDescIndexOp) or (
        isinstance(following, ttg.LocalAllocOp) and not following.operands
    ):
        following = following.next_op
    fence = "" if isinstance(following, ttng.InitBarrierOp) else fence
    text = f"mbarrier.init.shared{scope}.b64 [$0], {number_of(op, 'count', 1)}{fence}"
    by_one(low, text, [barrier_address(low, op.operands[0])])


@lowers(ttng.InvalBarrierOp)
def lower_inval_barrier(low: Lowering, op: Operation) -> None:
    by_one(low, "mbarrier.inval.shared.b64 [$0]", [barrier_address(low, op.operands[0])])


@lowers(ttng.BarrierExpectOp)
def lower_barrier_expect(low: Lowering, op: Operation) -> None:
    needs(low, op, Feature.MBARRIER_BYTES, "a barrier that counts bytes")
    text = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], {number_of(op, 'size', 0)}"
    by_one(low, text, [barrier_address(low, op.operands[0])], op.operands[1])


@lowers(ttng.ArriveBarrierOp)
def lower_arrive_barrier(low: Lowering, op: Operation) -> None:
    """Each warp arrives for itself if `count` says so, or one thread for all: the analysis of barriers puts one before it."""
    share = arrive_by_warps(op)
    if share:
        low.warp_barrier()
    count = share or number_of(op, "count", 1)
    if count > 1:
        needs(low, op, Feature.MBARRIER_BYTES, "an arrival that counts more than once")
    scope, counted = ("::cta", f", {count}" if count > 1 else "") if low.gpu.has(Feature.MBARRIER_BYTES) else ("", "")
    barrier, *pred = op.operands
    by_one(
        low,
        f"mbarrier.arrive.shared{scope}.b64 _, [$0]{counted}",
        [barrier_address(low, barrier)],
        pred[0] if pred else None,
        of_warp=share > 0,
    )


@lowers(ttng.WaitBarrierOp)
def lower_wait_barrier(low: Lowering, op: Operation) -> None:
    """Every thread asks until the phase is over; one that finds the predicate false does not."""
    inputs = [barrier_address(low, op.operands[0]), low.scalar(op.operands[1])]
    has_pred = array_values(op.properties["operandSegmentSizes"])[2]
    wait_for_phase(low, inputs, low.scalar(op.operands[2]) if has_pred else None)


def wait_for_phase(low: Lowering, inputs: list[Value], condition: Value | None = None) -> None:
    """Ask the barrier of an address for a parity until the phase is over, if `condition` is true."""
    ask = "try_wait.parity.shared::cta" if low.gpu.has(Feature.MBARRIER_BYTES) else "test_wait.parity.shared"
    again = f"WAIT: mbarrier.{ask}.b64 done, [$0], $1; @!done bra WAIT;"
    if condition is not None:
        inputs, again = [*inputs, condition], f"@!$2 bra OVER; {again} OVER:"
    ptx(low.builder, f"{{ .reg .pred done; {again} }}", [], inputs, effect="write")


@lowers(ttng.AsyncCopyMbarrierArriveOp)
def lower_async_copy_arrive(low: Lowering, op: Operation) -> None:
    """Each thread arrives when its own copies are done; the barrier was made for all, or counts them now."""
    kind = ".noinc" if "noIncrement" in op.properties else ""
    text = f"cp.async.mbarrier.arrive{kind}.shared.b64 [$0];"
    ptx(low.builder, text, [], [barrier_address(low, op.operands[0])], effect="write")


@lowers(ttng.FenceAsyncSharedOp)
def lower_fence(low: Lowering, op: Operation) -> None:
    needs(low, op, Feature.ASYNC_PROXY, "a fence before TMA and tensor cores")
    space = "cluster" if number_of(op, "bCluster", 0) else "cta"
    ptx(low.builder, f"fence.proxy.async.shared::{space};", [], [], effect="write")


@lowers(ttng.TakeTurnOp)
def lower_take_turn(low: Lowering, op: Operation) -> None:
    """The first group waits for one arrival less than the second: at first for the phase before the first one, which is over."""
    b = low.builder
    group = b.lshr(low.warp, GROUP_BITS)
    parity = b.xor(low.scalar(op.operands[1]), b.xor(group, 1))
    wait_for_phase(low, [barrier_of_group(low, op, group), parity])


@lowers(ttng.GiveTurnOp)
def lower_give_turn(low: Lowering, op: Operation) -> None:
    """Each warp arrives for itself."""
    b = low.builder
    low.warp_barrier()
    other = b.xor(b.lshr(low.warp, GROUP_BITS), 1)
    by_one(low, "mbarrier.arrive.shared::cta.b64 _, [$0]", [barrier_of_group(low, op, other)], of_warp=True)


def barrier_of_group(low: Lowering, op: Operation, group: Value) -> Value:
    return low.builder.add(barrier_address(low, op.operands[0]), low.builder.mul(group, BYTES))


@lowers(ttng.ClusterArriveOp, ttng.ClusterWaitOp)
def lower_cluster_barrier(low: Lowering, op: Operation) -> None:
    needs(low, op, Feature.CLUSTERS, "a barrier of a cluster")
    step = "wait" if type(op) is ttng.ClusterWaitOp else "arrive.relaxed" if number_of(op, "relaxed", 0) else "arrive"
    ptx(low.builder, f"barrier.cluster.{step}.aligned;", [], [], effect="write", convergent=True)
