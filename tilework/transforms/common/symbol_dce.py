"""Drop private functions that no public function can reach.

    tt.func public @kernel() { tt.call @used() }
    tt.func private @used()                        stays
    tt.func private @helper() { tt.call @helper() }   goes, although it calls itself

Stage: any. Cost: a walk, if there are private functions.
"""

from collections.abc import Mapping

from xdsl.ir import Operation

from tilework.analysis.value_flows import reached
from tilework.ir.functions import callees, is_private
from tilework.ir.rewrite import erase_op
from tilework.transforms.passes import names_pass


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
