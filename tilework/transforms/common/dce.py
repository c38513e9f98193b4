"""Erase ops without effect whose results nobody uses, and what becomes unused by that.

    %a = arith.addi %x, %y
    %b = arith.muli %a, %a        ==>   (nothing)
    %v = tt.load %p                     a read is no effect, a volatile one is

Stage: any. Cost: one backward walk.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilework.ir.functions import functions, ops_in_order
from tilework.ir.rewrite import erase_op
from tilework.transforms.folding.worklist import is_removable, is_unused


@dataclass(frozen=True)
class DCEPass(ModulePass):
    name = "dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for candidate in reversed(ops_in_order(*function.regions)):
                if is_unused(candidate) and is_removable(candidate):
                    erase_op(candidate)
