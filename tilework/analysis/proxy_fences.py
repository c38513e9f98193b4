"""Where the async proxy writes shared memory that threads have used in the ordinary way.

    %x = ttg.local_load %m                                        through the generic proxy
    ttng.async_tma_copy_global_to_local %d[...] %n, ...           through the async proxy, into the same bytes

TMA may overtake the load: between the two belongs a `ttng.fence_async_shared` (PTX ISA, "Async proxy"). Pending is what
was read and written since the last fence, by address: two buffers may lie in the same place, one after the other. Only
what tensor cores read and TMA loads write does not count; that is the async proxy too. Barriers between threads are
another matter (`membar.py`).
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.allocation import Allocation, allocations
from tilework.analysis.pending import CLEAN, EVERYTHING, Accesses, Pending, Walk
from tilework.ir import ttg, ttng
from tilework.ir.functions import is_private, ops_in_order
from tilework.target import Target

ASYNC_WRITES = frozenset({ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMAGatherOp})


def proxy_fences(module: ModuleOp, target: Target) -> list[Operation]:
    """The ops that need a fence in front of them, in program order."""
    found: dict[Operation, None] = {}
    if not any(type(op) in ASYNC_WRITES for op in ops_in_order(*module.regions)):
        return []
    for allocation in allocations(module, target):
        # a function that is called finds memory that its callers have used
        everything: Accesses = frozenset({(EVERYTHING, allocation.function)})
        FenceWalk(allocation, found).run(Pending(everything, everything) if is_private(allocation.function) else CLEAN)
    return [op for op in ops_in_order(*module.regions) if op in found] if found else []


class FenceWalk(Walk):
    """One function."""

    def __init__(self, allocation: Allocation, found: dict[Operation, None]) -> None:
        super().__init__(allocation)
        self.found = found

    def visit(self, op: Operation, state: Pending) -> Pending:
        kind = type(op)
        if kind is ttng.FenceAsyncSharedOp:
            return CLEAN
        if kind in ASYNC_WRITES:
            written = Pending(writes=self.touched(op, [op.operands[-2]]))
            if op in self.found or state.conflicts(written, None):
                self.found[op] = None
                return CLEAN
            return state
        return state if kind is ttng.WarpGroupDotOp else state.join(self.accesses(op))

    def specialized(self, op: Operation, state: Pending) -> Pending:
        """Partitions do not see what was used before them, so the fence comes before all of them."""
        assert isinstance(op, ttg.WarpSpecializeOp)
        copies = [inner for inner in op.walk() if type(inner) in ASYNC_WRITES]
        written = frozenset(access for copy in copies for access in self.touched(copy, [copy.operands[-2]]))
        if op in self.found or state.conflicts(Pending(writes=written), None):
            self.found[op] = None
            state = CLEAN
        for region in (op.default_region, *op.partitions):
            state = state.join(self.region(region, self.accesses(op)))
        return state
