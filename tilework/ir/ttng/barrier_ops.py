"""`ttng` ops on mbarriers, fences and clusters.

A barrier is an i64 in shared memory. A phase of it ends when as many arrivals as it was made for, and all bytes it was
told to expect, have come:

    ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
    ttng.barrier_expect %b, 8192, %true : ...           an arrival, and 8192 bytes to come
    ttng.wait_barrier %b, %phase : ...                  until the phase with this parity has ended
"""

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, prop_def, var_operand_def
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import I1, I1_PROPERTY, I32, I32_PROPERTY
from tilework.ir.declare import Op
from tilework.ir.ttg.memdesc_types import BARRIER, MEMDESC, MemDescType


def verify_barrier(type: Attribute) -> None:
    """One barrier: ``1xi64``."""
    assert isinstance(type, MemDescType)
    if type.dims != (1,):
        raise VerifyException(f"barrier allocation must be a descriptor of 1xi64 type, but got {type}")


class InitBarrierOp(Op):
    """Make a barrier that waits for `count` arrivals: ``ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, ...>``."""

    name = "ttng.init_barrier"
    alloc = operand_def(BARRIER)
    count = prop_def(I32_PROPERTY)
    form = "$alloc, $count {} : type($alloc)"

    def verify_(self) -> None:
        verify_barrier(self.alloc.type)


class InvalBarrierOp(Op):
    """The memory of the barrier may be used for something else: ``ttng.inval_barrier %b : !ttg.memdesc<1xi64, ...>``."""

    name = "ttng.inval_barrier"
    alloc = operand_def(BARRIER)
    form = "$alloc {} : type($alloc)"

    def verify_(self) -> None:
        verify_barrier(self.alloc.type)


class BarrierExpectOp(Op):
    """Arrive, and expect bytes of asynchronous copies: ``ttng.barrier_expect %b, 8192, %p : !ttg.memdesc<1xi64, ...>``."""

    name = "ttng.barrier_expect"
    alloc = operand_def(BARRIER)
    size = prop_def(I32_PROPERTY)
    pred = operand_def(I1)
    form = "$alloc, $size {}, $pred : type($alloc)"

    def verify_(self) -> None:
        verify_barrier(self.alloc.type)


class ArriveBarrierOp(Op):
    """Arrive `count` times: ``ttng.arrive_barrier %b, 2, %p : !ttg.memdesc<1xi64, ...>``."""

    name = "ttng.arrive_barrier"
    alloc = operand_def(BARRIER)
    count = prop_def(I32_PROPERTY)
    pred = opt_operand_def(I1)
    form = "$alloc, $count(?, $pred) {} : type($alloc)"

    def verify_(self) -> None:
        verify_barrier(self.alloc.type)
        if (count := self.count.value.data) < 1:
            raise VerifyException(f"count must be greater than or equal to 1, but got {count}")


class WaitBarrierOp(Op):
    """Wait for a phase to end: ``ttng.wait_barrier %b, %phase, %p deps %m : !ttg.memdesc<1xi64, ...>, T``.

    `deps` is the memory that the barrier stands for: it is in use until here.
    """

    name = "ttng.wait_barrier"
    alloc = operand_def(BARRIER)
    phase = operand_def(I32)
    pred = opt_operand_def(I1)
    deps = var_operand_def(MEMDESC)
    form = "$alloc, $phase(?, $pred)(? deps $deps) {} : type($alloc)(?, type($deps))"

    def verify_(self) -> None:
        verify_barrier(self.alloc.type)


class AsyncCopyMbarrierArriveOp(Op):
    """Arrive when the copies of this thread are done: ``ttng.async_copy_mbarrier_arrive %b {noIncrement} : T``."""

    name = "ttng.async_copy_mbarrier_arrive"
    barrier = operand_def(BARRIER)
    no_increment = opt_prop_def(UnitAttr, prop_name="noIncrement")
    form = "$barrier {} : type($barrier)"

    def verify_(self) -> None:
        verify_barrier(self.barrier.type)


class FenceAsyncSharedOp(Op):
    """Writes of threads are seen by TMA and tensor cores: ``ttng.fence_async_shared {bCluster = false}``."""

    name = "ttng.fence_async_shared"
    b_cluster = prop_def(I1_PROPERTY, prop_name="bCluster")
    form = "{}"


class TakeTurnOp(Op):
    """Wait until the other one of two groups of warps gives its turn away: ``ttng.take_turn %barriers, %phase : T``.

    The eight warps of a region are the groups, and each has one of the two `barriers`. The first group has the first turn. `phase` is 0
    and 1 in turn.
    """

    name = "ttng.take_turn"
    barriers = operand_def(BARRIER)
    phase = operand_def(I32)
    form = "$barriers, $phase {} : type($barriers)"


class GiveTurnOp(Op):
    """It is the turn of the other group of warps: ``ttng.give_turn %barriers : T``. Nobody waits here."""

    name = "ttng.give_turn"
    barriers = operand_def(BARRIER)
    form = "$barriers {} : type($barriers)"


class ClusterArriveOp(Op):
    """This thread has come to the barrier of the cluster: ``ttng.cluster_arrive {relaxed = false}``."""

    name = "ttng.cluster_arrive"
    relaxed = prop_def(I1_PROPERTY)
    form = "{}"


class ClusterWaitOp(Op):
    """Wait until all threads of the cluster have arrived: ``ttng.cluster_wait``."""

    name = "ttng.cluster_wait"
    form = "{}"
