"""Erase ops without effects whose results are unused, and those that become unused by that.

    %a = arith.addi %x, %y
    %b = arith.muli %a, %a        ==>   (nothing)
    %v = tt.load %p                     a read is no effect, a volatile one is

Stage: any. Cost: one backward walk.
"""

from collections.abc import Mapping

from xdsl.ir import Operation

from tilework.analysis.value_flows import reached
from tilework.ir.functions import callees, is_private, ops_in_order
from tilework.ir.rewrite import erase_op
from tilework.transforms.folding.worklist import is_removable, is_unused
from tilework.transforms.passes import function_pass, names_pass


@function_pass("dce")
def dce(function: Operation) -> None:
    for candidate in reversed(ops_in_order(*function.regions)):
        if is_unused(candidate) and is_removable(candidate):
            erase_op(candidate)


# Drop private functions that no public function can reach.
#
#     tt.func public @kernel() { tt.call @used() }
#     tt.func private @used()                            is kept
#     tt.func private @unused() { tt.call @unused() }    is erased, although it calls itself
#
# Stage: any. Cost: a walk, if there are private functions.


@names_pass("symbol-dce")
def drop_uncalled(functions: Mapping[str, Operation]) -> None:
    """Erase the private functions of one module that no public one calls, directly or through others."""
    public = [name for name, function in functions.items() if not is_private(function)]
    if len(public) == len(functions):
        return
    live = set(reached(public, lambda name: callees(functions[name]) if name in functions else ()))
    for name, function in functions.items():
        if name not in live:
            erase_op(function)
