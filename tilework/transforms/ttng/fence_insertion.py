"""Fence shared memory between accesses of threads and of the async proxy (tensor cores and TMA).

    %a = ttg.local_alloc %x                    %a = ttg.local_alloc %x
    %b = ttg.local_alloc %y                    %b = ttg.local_alloc %y
    ttng.warp_group_dot %a, %b, %c     ==>     ttng.fence_async_shared {bCluster = false}
                                               ttng.warp_group_dot %a, %b, %c

`wgmma` reads memory through the async proxy (PTX ISA, "Proxies"), so writes through the generic proxy must be fenced
first: those of `ttg.local_alloc` and `ttg.local_store`, and with the option `copies` those of `cp.async` after its
wait. TMA needs no fence. A fence is hoisted out of loops that do not write the memory, and two fences without a wait
between them are merged. Stage: TTGIR to TTGIR. Cost: one walk, and the aliases of each function with such a dot.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilework.analysis.alias import Aliases, aliases
from tilework.analysis.allocation import async_regions
from tilework.analysis.membar import proxy_fences
from tilework.ir import ttg, ttng
from tilework.ir.effects import is_pure
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import find_target
from tilework.ir.nesting import is_inside
from tilework.ir.rewrite import insert_after, insert_before
from tilework.ir.scf import loop_around
from tilework.ir.ttg.memory_types import is_memdesc
from tilework.target import Feature, Target
from tilework.transforms.passes import Pass
from tilework.transforms.ttg.pipeline.loops import group_dots

# ops that a fence may have to follow, and the fence itself
BEFORE = frozenset({ttg.LocalStoreOp, ttg.LocalAllocOp, ttg.AsyncWaitOp, ttng.WaitBarrierOp, ttng.FenceAsyncSharedOp})


class FenceInsertionPass(Pass):
    name = "triton-nvidia-gpu-fence-insertion"
    target: str = ""
    copies: bool = False

    def run(self, module: ModuleOp) -> None:
        if self.target and Feature.ASYNC_PROXY not in Target.parse(self.target).features:
            return
        if not (dots := group_dots(module)):
            return
        known = aliases(module)
        stores = stores_by_buffer(module, known, self.copies)
        for dot in dots:
            if copies := copies_into(dot, known, stores):
                fence(dot, copies, self.copies)


def stores_by_buffer(root: Operation, known: Aliases, with_copies: bool) -> dict[SSAValue, list[Operation]]:
    """Return the ops by which threads fill each buffer."""
    found: dict[SSAValue, list[Operation]] = {}
    for op in ops_in_order(*root.regions):
        if type(op) is ttg.LocalStoreOp or (with_copies and type(op) is ttg.AsyncCopyGlobalToLocalOp):
            for buffer in known.get(op.operands[1], ()):
                found.setdefault(buffer, []).append(op)
        elif type(op) is ttg.LocalAllocOp and op.operands:
            found.setdefault(op.results[0], []).append(op)
    return found


def copies_into(dot: Operation, known: Aliases, stores: dict[SSAValue, list[Operation]]) -> list[Operation]:
    """Return the stores to the shared memory that `dot` reads."""
    return [
        store
        for operand in dot.operands[:2]
        if is_memdesc(operand.type)
        for buffer in known.get(operand, ())
        for store in stores.get(buffer, ())
    ]


def fence(dot: Operation, copies: list[Operation], at_wait: bool) -> None:
    """Insert a fence before `dot`, outside of the loops around it that contain none of the `copies`, unless other warps
    copy.

    With `at_wait` it directly follows the wait for the copies, before the warps synchronize; after the barrier it costs
    a matmul 3 %. On an H200 it still costs short iterations: sageattention 2 to 4 %, tiles of 256x128x32 up to 17 %
    (2.22 ms instead of 1.85 without a fence).
    """
    anchor, warps = dot, async_regions(dot)
    is_alone = all(async_regions(copy) == warps for copy in copies)
    while is_alone and (loop := loop_around(anchor)) is not None and not any(is_inside(copy, loop) for copy in copies):
        anchor = loop
    previous = anchor.prev_op
    while previous is not None and type(previous) not in BEFORE and (not previous.regions or is_pure(previous)):
        previous = previous.prev_op
    if type(previous) is ttng.FenceAsyncSharedOp:
        return
    new = ttng.FenceAsyncSharedOp.make(False, dot.location)
    if at_wait and previous is not None and type(previous) is ttg.AsyncWaitOp:
        insert_after(previous, new)
    else:
        insert_before(anchor, new)


# Keep TMA writes from overtaking ordinary accesses to the same memory.
#
#     %x = ttg.local_load %m                                        %x = ttg.local_load %m
#     ttng.async_tma_copy_global_to_local %d[...] %m, ...    ==>    ttng.fence_async_shared {bCluster = false}
#                                                                   ttng.async_tma_copy_global_to_local %d[...] %m, ...
#
# The accesses that share bytes are known once shared memory is allocated: `analysis/membar.py`.
# Stage: TTGIR to TTGIR, after allocate-shared-memory. Cost: an allocation, and one walk per round of a loop.


class ProxyFenceInsertionPass(Pass):
    name = "triton-nvidia-gpu-proxy-fence-insertion"
    target: str = ""

    def run(self, module: ModuleOp) -> None:
        target = Target.parse(self.target) if self.target else find_target(module)
        for inner in proxy_fences(module, target):
            insert_before(inner, ttng.FenceAsyncSharedOp.make(False, inner.location))
