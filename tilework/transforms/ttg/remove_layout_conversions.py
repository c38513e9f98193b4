"""Remove unnecessary layout conversions, and make the others cheap.

    %r = tt.make_range : #a
    %o = ttg.convert_layout %r : #a -> #slice                   %o = tt.make_range : #slice
    %e = tt.expand_dims %o : #slice -> #c               ==>     %e = tt.expand_dims %o : #slice -> #d
    %d = ttg.convert_layout %e : #c -> #d                       tt.store %e : #d
    tt.store %d : #d

Earlier passes give each op its preferred layout and convert between them. This pass optimizes the whole function:

    propagate_layouts      users of a load or a dot take over its layout
    rematerialize          cheap values are recomputed in the layout of their use
    hoist_converts         the remaining conversions move to where less data is converted
    dead_loop_arguments    the old loop-carried values are removed

Between the steps `clean_converts` drops the conversions that became trivial.
Stage: TTGIR to TTGIR. Cost: rounds of rematerialisation to a fixed point, usually two or three; each is a walk
and the slices of the conversions.
"""

from xdsl.ir import Operation

from tilework.ir import scf
from tilework.ir.functions import ops_in_order
from tilework.transforms.folding import structured as folding_scf
from tilework.transforms.folding.blocks import simplify_blocks
from tilework.transforms.folding.convert_layout import CLEAN_FOLDS, CLEAN_REWRITES, clean_converts
from tilework.transforms.folding.worklist import MAX_ROUNDS, Driver, rule_table
from tilework.transforms.passes import function_pass
from tilework.transforms.ttg.layouts.dead_loop_arguments import cut_dead_loop_arguments
from tilework.transforms.ttg.layouts.hoist_converts import hoist_converts
from tilework.transforms.ttg.layouts.propagate_layouts import propagate_layouts
from tilework.transforms.ttg.layouts.rematerialize import conversions, rematerialize


@function_pass("tritongpu-remove-layout-conversions")
def remove_layout_conversions(function: Operation) -> None:
    """Remove the conversions of one function; without any, only fold and remove dead code."""
    if conversions(function):
        propagate_layouts(function)
        clean_converts(function)
        while rematerialize(function):
            clean_converts(function)
        hoist_converts(function)
    cut_dead_loop_arguments(function)
    for _ in range(MAX_ROUNDS):  # a branch that becomes empty is removed, with ops that only it used
        if not Driver(FINAL_RULES, bottom_up=True).run(function, simplify_blocks) or not has_branches(function):
            break


def has_branches(function: Operation) -> bool:
    """Return True if there is an `scf.if` in `function`."""
    return any(op.name == scf.IfOp.name for op in ops_in_order(*function.regions))


FINAL_RULES = rule_table(
    CLEAN_FOLDS,
    {**CLEAN_REWRITES, **{kind: folding_scf.REWRITES[kind] for kind in (scf.ForOp, scf.IfOp, scf.YieldOp)}},
)
