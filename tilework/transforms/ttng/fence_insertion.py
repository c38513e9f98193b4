"""Let tensor cores see what threads wrote to shared memory.

    %a = ttg.local_alloc %x                    %a = ttg.local_alloc %x
    %b = ttg.local_alloc %y                    %b = ttg.local_alloc %y
    ttng.warp_group_dot %a, %b, %c     ==>     ttng.fence_async_shared {bCluster = false}
                                               ttng.warp_group_dot %a, %b, %c

`wgmma` reads memory through another path, the async proxy (PTX ISA, "Proxies"); what was written by ordinary stores
must be fenced first. That is memory filled by `ttg.local_alloc` or `ttg.local_store`; `cp.async` and TMA need no fence
here. A fence leaves the loops in which nothing is stored, and two in a row are one.
Stage: TTGIR to TTGIR. Cost: one walk, and the aliases of each function with such a dot.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilework.analysis.alias import Aliases, aliases
from tilework.ir import ttg, ttng
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import is_inside, loop_around
from tilework.ir.rewrite import insert_before
from tilework.ir.ttg.memdesc_types import is_memdesc
from tilework.target import Feature, Target
from tilework.transforms.passes import Pass


class FenceInsertionPass(Pass):
    name = "triton-nvidia-gpu-fence-insertion"
    target: str = ""

    def run(self, module: ModuleOp) -> None:
        if self.target and Feature.ASYNC_PROXY not in Target.parse(self.target).features:
            return
        dots = [inner for inner in ops_in_order(*module.regions) if type(inner) is ttng.WarpGroupDotOp]
        if not dots:
            return
        known = aliases(module)
        stores = stores_by_buffer(module, known)
        for dot in dots:
            if copies := copies_into(dot, known, stores):
                fence(dot, copies)


def stores_by_buffer(root: Operation, known: Aliases) -> dict[SSAValue, list[Operation]]:
    """The ops by which threads fill each buffer."""
    found: dict[SSAValue, list[Operation]] = {}
    for op in ops_in_order(*root.regions):
        if type(op) is ttg.LocalStoreOp:
            for buffer in known.get(op.operands[1], ()):
                found.setdefault(buffer, []).append(op)
        elif type(op) is ttg.LocalAllocOp and op.operands:
            found.setdefault(op.results[0], []).append(op)
    return found


def copies_into(dot: Operation, known: Aliases, stores: dict[SSAValue, list[Operation]]) -> list[Operation]:
    """The stores that fill what `dot` reads from shared memory."""
    return [
        store
        for operand in dot.operands[:2]
        if is_memdesc(operand.type)
        for buffer in known.get(operand, ())
        for store in stores.get(buffer, ())
    ]


def fence(dot: Operation, copies: list[Operation]) -> None:
    """A fence before `dot`, outside of the loops around it that hold none of the `copies`."""
    place = dot
    while (loop := loop_around(place)) is not None and not any(is_inside(copy, loop) for copy in copies):
        place = loop
    previous = place.prev_op
    if previous is None or type(previous) is not ttng.FenceAsyncSharedOp:
        insert_before(place, ttng.FenceAsyncSharedOp.make(False, dot.location))
