"""Does what control flow passes on fit where it goes? xDSL checks this for `scf.for` only.

    %r = scf.if %c -> (i32) { scf.yield %x : f32 } else { ... }        yields (f32), but gives (i32)
    cf.br ^bb1(%x : f32)                                               passes (f32) to a block of (i32)

`flow_problem` answers for one op whose own rules hold: the numbers of its operands, regions and blocks are right.
"""

from collections.abc import Callable, Iterable

from xdsl.dialects import cf, scf
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilework.ir.constraints import names


def types_of(values: Iterable[SSAValue]) -> list[Attribute]:
    return [value.type for value in values]


def end_problem(region: Region, end: type[Operation], first: int, wanted: list[Attribute]) -> str | None:
    """The region ends with an `end` whose operands from `first` on have the `wanted` types."""
    for last in (block.last_op for block in region.blocks):
        if last is None or not (last.successors or type(last) is end):
            return f"has a region that ends with {last.name if last else 'nothing'}, not with {end.name}"
        if type(last) is end and (found := types_of(last.operands[first:])) != wanted:
            return f"has a region that passes on {names(found)}, not {names(wanted)}"
    return None


def if_problem(op: Operation) -> str | None:
    results = types_of(op.results)
    then, other = op.regions
    if results and not other.blocks:
        return f"must have an else block if defining values: {names(results)}"
    return end_problem(then, scf.YieldOp, 0, results) or end_problem(other, scf.YieldOp, 0, results)


def for_problem(op: Operation) -> str | None:
    if (found := types_of(op.operands[3:])) != (results := types_of(op.results)):
        return f"carries {names(found)}, but gives {names(results)}"
    return None


def while_problem(op: Operation) -> str | None:
    before, after = op.regions
    carried, passed = types_of(op.operands), types_of(op.results)
    return end_problem(before, scf.ConditionOp, 1, passed) or end_problem(after, scf.YieldOp, 0, carried)


def edge_problem(block: Block, values: Iterable[SSAValue]) -> str | None:
    if (found := types_of(values)) != (wanted := types_of(block.args)):
        return f"passes {names(found)} to a block of {names(wanted)}"
    return None


def conditional_branch_problem(op: Operation) -> str | None:
    assert isinstance(op, cf.ConditionalBranchOp)
    return edge_problem(op.then_block, op.then_arguments) or edge_problem(op.else_block, op.else_arguments)


FLOWS: dict[type[Operation], Callable[[Operation], str | None]] = {
    cf.BranchOp: lambda op: edge_problem(op.successors[0], op.operands),
    cf.ConditionalBranchOp: conditional_branch_problem,
    scf.ExecuteRegionOp: lambda op: end_problem(op.regions[0], scf.YieldOp, 0, types_of(op.results)),
    scf.ForOp: for_problem,
    scf.IfOp: if_problem,
    scf.WhileOp: while_problem,
}


def flow_problem(op: Operation) -> str | None:
    """What is wrong with the values that `op` passes on, or None."""
    rule = FLOWS.get(type(op))
    return None if rule is None else rule(op)
