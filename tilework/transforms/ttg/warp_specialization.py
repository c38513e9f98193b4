"""Loops that ask to be split between producer and consumer warps stay whole.

    scf.for ... { ... } {tt.warp_specialize}   ==>   scf.for ... { ... }         with a remark

All warps then run the whole loop, pipelined like any other: the result is the same. Code without such loops is not
touched.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilework.transforms.remarks import warning

WARP_SPECIALIZE = "tt.warp_specialize"


@dataclass(frozen=True)
class WarpSpecializationPass(ModulePass):
    name = "nvgpu-warp-specialization"
    num_stages: int = 3
    dump_intermediate_steps: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if inner.attributes.pop(WARP_SPECIALIZE, None) is not None:
                warning(inner, "the loop is not warp specialized: all warps run the whole of it")
