"""`ttg.warp_specialize`: the regions of one program that run at the same time.

Each partition is a `Strand`: a copy of the machine with its own values and its own work in the background, in a thread of its
own; shared memory, mbarriers and descriptors are the program's. One strand runs at a time, until it ends or waits for a phase
that is not over; then the first one that can go on does, so a run is the same every time. When none can, the error
says what each of them waits for.
"""

from collections.abc import Callable, Sequence
from copy import copy
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Operation, Region

from tilework.ir import ttg
from tilework.oracles.evaluator.evaluation_errors import Fault
from tilework.oracles.evaluator.region_order import RegionOrder
from tilework.oracles.evaluator.table import evaluates
from tilework.oracles.evaluator.tma_rules import check_stores_are_over

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine


class Cancelled(BaseException):
    """Another strand failed: this one ends where it waits."""


class Strand:
    """A region that runs in a thread of its own whenever it is `resume`d, up to its next wait."""

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
        """Let it run until it waits or ends; what it raised is raised here."""
        self.go.release()
        self.back.acquire()
        if self.error is not None:
            raise self.error

    def wait(self, is_ready: Callable[[], bool], waits_for: Callable[[], str]) -> None:
        """Called by the region itself: others run until `is_ready`."""
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
    for number, region in enumerate(op.partitions):
        name = f"partition{number}"
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
    """What a partition sees of the program: its memory, and nothing under way that would be its own."""
    found = copy(machine)
    found.values, found.folds = {}, {}
    found.begin_warps()
    found.shared = machine.shared.of_other_warps(order, name)
    return found


def run_together(strands: list[Strand]) -> None:
    """Until all have ended."""
    while running := [strand for strand in strands if strand.values is None]:
        ready = next((strand for strand in running if strand.is_ready()), None)
        if ready is None:
            waits = "; ".join(f"{strand.name} {strand.waits_for()}" for strand in running)
            raise Fault(f"waits for ever: {waits}")
        ready.resume()
