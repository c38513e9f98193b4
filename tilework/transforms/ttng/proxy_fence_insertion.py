"""Keep TMA from overtaking ordinary accesses to the memory that it writes.

    %x = ttg.local_load %m                                        %x = ttg.local_load %m
    ttng.async_tma_copy_global_to_local %d[...] %m, ...    ==>    ttng.fence_async_shared {bCluster = false}
                                                                  ttng.async_tma_copy_global_to_local %d[...] %m, ...

Which accesses share bytes is known once shared memory is allocated: `analysis/membar.py`.
Stage: TTGIR to TTGIR, after allocate-shared-memory. Cost: an allocation, and one walk per round of a loop.
"""

from xdsl.dialects.builtin import ModuleOp

from tilework.analysis.membar import proxy_fences
from tilework.ir import ttng
from tilework.ir.module_facts import find_target
from tilework.ir.rewrite import insert_before
from tilework.target import Target
from tilework.transforms.passes import Pass


class ProxyFenceInsertionPass(Pass):
    name = "triton-nvidia-gpu-proxy-fence-insertion"
    target: str = ""

    def run(self, module: ModuleOp) -> None:
        target = Target.parse(self.target) if self.target else find_target(module)
        for inner in proxy_fences(module, target):
            insert_before(inner, ttng.FenceAsyncSharedOp.make(False, inner.location))
