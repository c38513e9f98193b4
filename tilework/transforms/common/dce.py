"""Erase ops without effect whose results nobody uses, and what becomes unused by that.

    %a = arith.addi %x, %y
    %b = arith.muli %a, %a        ==>   (nothing)
    %v = tt.load %p                     a read is no effect, a volatile one is

Stage: any. Cost: one backward walk.
"""

from xdsl.dialects.builtin import ModuleOp

from tilework.ir.functions import functions, ops_in_order
from tilework.ir.rewrite import erase_op
from tilework.transforms.folding.worklist import is_removable, is_unused
from tilework.transforms.passes import Pass


class DCEPass(Pass):
    name = "dce"

    def run(self, module: ModuleOp) -> None:
        for function in functions(module):
            for candidate in reversed(ops_in_order(*function.regions)):
                if is_unused(candidate) and is_removable(candidate):
                    erase_op(candidate)
