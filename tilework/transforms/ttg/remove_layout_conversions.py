"""Remove the layout conversions that are not needed, and make the others cheap.

    %r = tt.make_range : #a
    %o = ttg.convert_layout %r : #a -> #slice                   %o = tt.make_range : #slice
    %e = tt.expand_dims %o : #slice -> #c               ==>     %e = tt.expand_dims %o : #slice -> #d
    %d = ttg.convert_layout %e : #c -> #d                       tt.store %e : #d
    tt.store %d : #d

Passes before this one give each op the layout it likes and convert between them. Here the whole function is looked at:

    propagate_layouts      what follows a load or a dot takes over its layout
    rematerialize          what is cheap to compute is computed in the layout in which it is wanted
    hoist_converts         conversions that stay move to where less data is converted
    dead_loop_arguments    the old loop-carried values go

Between the steps `clean_converts` drops the conversions that became trivial. Stage: TTGIR to TTGIR. Cost: rounds of
rematerialisation until none is left to do, usually two or three; each is a walk and the slices of the conversions.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tilework.transforms.common import folding_arith, folding_casts, folding_scf, folding_tt
from tilework.transforms.common.driver import Driver, rule_table
from tilework.transforms.ttg import convert_canonicalize
from tilework.transforms.ttg.convert_canonicalize import clean_converts
from tilework.transforms.ttg.dead_loop_arguments import cut_dead_loop_arguments
from tilework.transforms.ttg.hoist_converts import hoist_converts
from tilework.transforms.ttg.propagate_layouts import propagate_layouts
from tilework.transforms.ttg.rematerialize import rematerialize


@dataclass(frozen=True)
class RemoveLayoutConversionsPass(ModulePass):
    name = "tritongpu-remove-layout-conversions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in tuple(op.ops):
            if function.regions and function.regions[0].first_block is not None:
                remove_layout_conversions(function)


def remove_layout_conversions(function: Operation) -> None:
    """Remove the conversions of one function."""
    propagate_layouts(function)
    clean_converts(function)
    while rematerialize(function):
        clean_converts(function)
    hoist_converts(function)
    cut_dead_loop_arguments(function)
    Driver(FINAL_RULES).run(function)


FINAL_RULES = rule_table(
    {**folding_arith.FOLDS, **folding_casts.FOLDS, **folding_tt.FOLDS, **convert_canonicalize.FOLDS},
    {
        **convert_canonicalize.REWRITES,
        **{kind: folding_scf.REWRITES[kind] for kind in (scf.ForOp, scf.IfOp, scf.YieldOp)},
    },
)
