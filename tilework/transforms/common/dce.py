"""Erase ops without effect whose results nobody uses, and what becomes unused by that.

    %a = arith.addi %x, %y
    %b = arith.muli %a, %a        ==>   (nothing)
    %v = tt.load %p                     a read is no effect, a volatile one is

Stage: any. Cost: one backward walk.
"""

from xdsl.ir import Operation

from tilework.ir.functions import ops_in_order
from tilework.ir.rewrite import erase_op
from tilework.transforms.folding.worklist import is_removable, is_unused
from tilework.transforms.passes import function_pass


@function_pass("dce")
def dce(function: Operation) -> None:
    for candidate in reversed(ops_in_order(*function.regions)):
        if is_unused(candidate) and is_removable(candidate):
            erase_op(candidate)
