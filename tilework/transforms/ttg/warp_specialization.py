"""Loops that ask to be split between producer and consumer warps stay whole.

    scf.for ... { ... } {tt.warp_specialize}   ==>   scf.for ... { ... }         with a remark

All warps then run the whole loop, pipelined like any other: the result is the same. Code without such loops is not
touched.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from xdsl.dialects.builtin import ModuleOp

from tilework.transforms.passes import Pass
from tilework.transforms.remarks import warning

WARP_SPECIALIZE = "tt.warp_specialize"


class WarpSpecializationPass(Pass):
    name = "nvgpu-warp-specialization"
    num_stages: int = 3
    dump_intermediate_steps: bool = False

    def run(self, module: ModuleOp) -> None:
        for inner in module.walk():
            if inner.attributes.pop(WARP_SPECIALIZE, None) is not None:
                warning(inner, "the loop is not warp specialized: all warps run the whole of it")
