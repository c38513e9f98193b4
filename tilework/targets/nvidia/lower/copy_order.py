"""Waits and fences between the copies of TMA and what threads do: `analysis/global_order.py`, `analysis/membar.py`."""

from xdsl.ir import Operation

from tilework.analysis.global_order import BARRIERS, GlobalOrder
from tilework.targets.gpu.lowering import Lowering
from tilework.targets.llvm.builder import Builder
from tilework.targets.nvidia.lower.inline_ptx import ptx


def show_stores(b: Builder) -> None:
    """What this thread has written to shared memory is visible to TMA and tensor cores."""
    ptx(b, "fence.proxy.async.shared::cta;", [], [], effect="write")


class CopyOrder:
    """What comes around ops."""

    def __init__(self, order: GlobalOrder, fences: set[Operation]) -> None:
        self.order = order
        self.fences = fences  # ops by which TMA writes shared memory that threads have used

    def before(self, low: Lowering, op: Operation) -> None:
        """Wait for what TMA writes, and make visible to it what threads have written."""
        b = low.builder
        if op in self.order.waits:
            ptx(b, "cp.async.bulk.wait_group 0;", [], [], effect="write")
            self.show_to_copies(b)
            if self.order.waits[op]:
                low.barrier(all_memory=True)
        elif type(op) in BARRIERS and op in self.order.fences:
            self.show_to_copies(b)
        if op in self.fences:
            show_stores(b)

    def after(self, low: Lowering, op: Operation) -> None:
        if op in self.order.fences and type(op) not in BARRIERS:
            self.show_to_copies(low.builder)
            low.barrier(all_memory=True)

    def concerns(self, op: Operation) -> bool:
        """Whether there is anything around `op`, which all threads do."""
        return op in self.fences or op in self.order.waits or op in self.order.fences

    def show_to_copies(self, b: Builder) -> None:
        """What this thread has written to global memory, or knows of, is visible to copies that start from now on."""
        ptx(b, "fence.proxy.async.global;", [], [], effect="write")
