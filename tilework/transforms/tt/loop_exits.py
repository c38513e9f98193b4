"""Loops that the frontend has marked since they end early (`count_exits.py`) or skip iterations (`lift_skipped_loads.py`).

Few kernels have any: only these pay for more than a walk.
"""

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from tilework.ir.functions import ops_in_order
from tilework.ir.scf_ext import COUNTED, SKIPS
from tilework.transforms.passes import Pass, module_pass


class CountExitsPass(Pass):
    """Count the iterations of loops that end early; with `may_alias` any two parameters may be the same memory."""

    name = "triton-count-exits"
    may_alias: bool = False

    def run(self, module: ModuleOp) -> None:
        found = [op for op in ops_in_order(*module.regions) if type(op) is scf.WhileOp and COUNTED in op.attributes]
        for loop in reversed(found):  # inner ones first
            from tilework.transforms.tt.count_exits import count_exits  # lazily: few kernels need it

            del loop.attributes[COUNTED]
            count_exits(loop, module, self.may_alias)


@module_pass("triton-lift-skipped-loads")
def lift_marked_loads(module: ModuleOp) -> None:
    for loop in [op for op in ops_in_order(*module.regions) if type(op) is scf.ForOp and SKIPS in op.attributes]:
        from tilework.transforms.tt.lift_skipped_loads import lift_skipped_loads  # lazily: few kernels need it

        lift_skipped_loads(loop)
