"""Programs take turns where a kernel has ordered atomics (`tl.atomic_add(..., ordered=True)`).

    %s = ...                                   %s = ...
    scf.for ...                                tt.take_turn
      tt.atomic_rmw ... {tilework.ordered}     scf.for ...
    %t = ...                         ==>         tt.atomic_rmw ... {tilework.ordered}
    tt.return                                  tt.pass_turn
                                               %t = ...
                                               tt.return

A program has one turn, from its first ordered atomic (or the loop, branch or call around it) to its last. A kernel that returns
in several places has it from its start to its end.
"""

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.functions import functions, is_private, symbol_of
from tilework.ir.rewrite import insert_after, insert_before


def insert_turns(module: ModuleOp) -> None:
    """Put the ends of a turn into the kernel."""
    taking: set[str] = set()
    while found := {symbol_of(op) for op in functions(module) if has_turn(op, taking)} - taking:
        taking |= found
    for kernel in functions(module):
        if symbol_of(kernel) not in taking or is_private(kernel):
            continue
        blocks = kernel.regions[0].blocks
        if len(blocks) == 1:
            inside = [op for op in blocks[0].ops if has_turn(op, taking)]
            insert_before(inside[0], tt.TakeTurnOp.make(inside[0].location))
            insert_after(inside[-1], tt.PassTurnOp.make(inside[-1].location))
            continue
        first = blocks[0].first_op
        assert first is not None, "a kernel has a return"
        insert_before(first, tt.TakeTurnOp.make(first.location))
        for end in [block.last_op for block in blocks if type(block.last_op) is tt.ReturnOp]:
            assert end is not None
            insert_before(end, tt.PassTurnOp.make(end.location))


def has_turn(op: Operation, taking: set[str]) -> bool:
    """Whether `op` is, holds or calls an ordered atomic."""
    for inner in op.walk():
        if tt.is_ordered(inner):
            return True
        if type(inner) is tt.CallOp and isinstance(callee := inner.properties["callee"], SymbolRefAttr):
            if callee.root_reference.data in taking:
                return True
    return False
