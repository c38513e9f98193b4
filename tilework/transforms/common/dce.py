"""Erase ops without effects whose results are unused, and those that become unused by that.

    %a = arith.addi %x, %y
    %b = arith.muli %a, %a        ==>   (nothing)
    %v = tt.load %p                     a read is no effect, a volatile one is

Stage: any. Cost: one backward walk.
"""

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from tilework.analysis.value_flows import reached, sources_of
from tilework.ir import scf
from tilework.ir.effects import TERMINATORS, is_pure, writes
from tilework.ir.functions import callees, is_private, ops_in_order
from tilework.ir.nesting import body_of, end_of, owner_of
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


# Find dead loop-carried values.
#
#     scf.for ... iter_args(%p = %p0, %q = %q0) {           scf.for ... iter_args(%p = %p0, %q = %q0) {
#       %v = tt.load %q                                       %v = tt.load %q
#       %p1 = tt.addptr %p, %step                     ==>     %q1 = tt.addptr %q, %step
#       %q1 = tt.addptr %q, %step                             scf.yield %p, %q1
#       scf.yield %p1, %q1
#     }
#
# `%p` only keeps itself alive. A value is live if an op with side effects, control flow, or a used result of the loop
# depends on it. Dead arguments yield themselves here; `canonicalize` and its relatives then drop them.

FOLLOWED = frozenset({scf.ForOp, scf.IfOp})  # their yielded values are as live as their results
TERMINATOR_NAMES = frozenset(kind.name for kind in TERMINATORS)


def cut_dead_loop_arguments(function: Operation) -> bool:
    """Let the dead arguments of all `scf.for` under `function` yield themselves; return True if there was one."""
    ops = ops_in_order(*function.regions)
    loops = [op for op in ops if type(op) is scf.ForOp and len(op._operands) > 3]
    if not loops:
        return False
    live = live_values(ops)
    changed = False
    for loop in loops:
        block = body_of(loop)
        end = end_of(block)
        kept = [
            yielded if argument in live or result in live else argument
            for argument, result, yielded in zip(block.args[1:], loop.results, end._operands, strict=True)
        ]
        if any(new is not old for new, old in zip(kept, end._operands, strict=True)):
            end.operands = kept
            changed = True
    return changed


def live_values(ops: Sequence[Operation]) -> set[SSAValue]:
    """Return the values on which side effects, control flow or used results depend."""
    roots: list[SSAValue] = []
    for op in ops:
        kind = type(op)
        if kind is scf.ForOp:
            roots += op._operands[:3]
        elif kind is scf.IfOp or kind is scf.WhileOp:
            roots += op._operands
        elif op.name in TERMINATOR_NAMES:
            if type(op.parent_op()) not in FOLLOWED:
                roots += op._operands
        elif writes(op) or (op.regions and not is_pure(op)):
            roots += op._operands
    return set(reached(roots, needed_for))


def needed_for(value: SSAValue) -> Sequence[SSAValue]:
    """Return the values that `value` is computed from."""
    if type(value) is OpResult and type(value.op) not in FOLLOWED:
        return value.op._operands
    is_followed = type(owner_of(value)) in FOLLOWED
    return [source for sources in sources_of(value) for source in sources] if is_followed else ()
