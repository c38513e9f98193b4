"""Bring a module into its simplest form: fold constants, apply identities, drop what is dead.

    %c0 = arith.constant 0 : i32
    %y = arith.addi %x, %c0 : i32                                        tt.store %p, %v
    %m = tt.splat %true : i1 -> tensor<4xi1>                   ==>
    tt.store %p, %v, %m

The rules are tables in `folding/`: `arith` (integers), `casts` (casts, floats), `tiles`, `structured` (loops, branches,
partitions), `blocks` and `convert_layout`. Constants end up unique, at the start of the function.
Stage: TTIR and TTGIR. Cost: one visit per op, and per op that a change can affect.
"""

from xdsl.ir import Operation

from tilework.ir import ttg
from tilework.transforms.folding import arith as folding_arith
from tilework.transforms.folding import casts as folding_casts
from tilework.transforms.folding import convert_layout as convert_canonicalize
from tilework.transforms.folding import structured as folding_scf
from tilework.transforms.folding import tiles as folding_tt
from tilework.transforms.folding.structured import simplify_blocks
from tilework.transforms.folding.worklist import Driver, Rewrite, rule_table
from tilework.transforms.passes import function_pass


def first_of(one: Rewrite | None, other: Rewrite) -> Rewrite:
    """`other` where `one` finds nothing to do."""
    return other if one is None else lambda op, driver: one(op, driver) or other(op, driver)


FOLDS = convert_canonicalize.CLEAN_FOLDS
REWRITES: dict[type[Operation], Rewrite] = {
    **folding_arith.REWRITES,
    **folding_casts.REWRITES,
    **folding_tt.REWRITES,
    **folding_scf.REWRITES,
    ttg.MemDescTransOp: folding_tt.rewrite_trans,
    ttg.MemDescSubsliceOp: folding_tt.rewrite_subslice,
}
for kind, rewrite in convert_canonicalize.REWRITES.items():
    REWRITES[kind] = first_of(REWRITES.get(kind), rewrite)
RULES = rule_table(FOLDS, REWRITES)


@function_pass("canonicalize")
def canonicalize(function: Operation) -> bool:
    """Canonicalize the body of one function. True if anything changed."""
    return Driver(RULES).run(function, simplify_blocks)
