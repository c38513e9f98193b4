"""Which buffers of shared memory each memory descriptor may name.

    %a = ttg.local_alloc : () -> !ttg.memdesc<2x64xf16, ...>             {%a}
    %b = ttg.memdesc_index %a[%i]                                        {%a}
    %c = scf.if %p { scf.yield %b } else { scf.yield %other }            {%a, %other}

A buffer is known by the value its `ttg.local_alloc` gives. Views name the memory of their operand; arguments and
results of loops and branches name all that may come in. A descriptor that is poison, or an argument of a function,
names none.
"""

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, cf, scf
from xdsl.ir import Operation, Region, SSAValue

from tilework.ir import ttg, ttng
from tilework.ir.ttg.memdesc_types import is_memdesc

Aliases = dict[SSAValue, tuple[SSAValue, ...]]
"""The buffers of each descriptor, in program order."""

Pair = tuple[SSAValue, SSAValue]
VIEWS = frozenset(
    {
        ttg.MemDescIndexOp,
        ttg.MemDescReinterpretOp,
        ttg.MemDescReshapeOp,
        ttg.MemDescSubsliceOp,
        ttg.MemDescTransOp,
    }
)


def aliases(root: Operation) -> Aliases:
    """The buffers behind every memory descriptor under `root`; those that name none are absent."""
    buffers: list[SSAValue] = []
    edges: dict[SSAValue, list[SSAValue]] = {}
    for op in root.walk():
        if type(op) is ttg.LocalAllocOp:
            buffers.append(op.results[0])
        for source, target in value_flows(op):
            if is_memdesc(source.type) and is_memdesc(target.type):
                edges.setdefault(source, []).append(target)
    found: Aliases = {}
    for buffer in buffers:
        for value in reachable(buffer, edges):
            found[value] = (*found.get(value, ()), buffer)
    return found


def reachable(start: SSAValue, edges: dict[SSAValue, list[SSAValue]]) -> Iterator[SSAValue]:
    """`start` and all that it flows to."""
    seen = {start}
    open_values = [start]
    while open_values:
        value = open_values.pop()
        yield value
        for target in edges.get(value, ()):
            if target not in seen:
                seen.add(target)
                open_values.append(target)


def value_flows(op: Operation) -> Sequence[Pair]:
    """(source, target) for each value that `op` passes on as it is, or a part of: views, loops, branches, yields."""
    kind = type(op)
    if kind in VIEWS:
        return [(op.operands[0], op.results[0])]
    rule = FLOWS.get(kind)
    return () if rule is None else rule(op)


def pairs(sources: Sequence[SSAValue], *targets: Sequence[SSAValue]) -> list[Pair]:
    """Each source with the target at the same place of every list."""
    return [pair for values in targets for pair in zip(sources, values, strict=False)]


def entry_args(region: Region) -> Sequence[SSAValue]:
    """The arguments of the first block."""
    return region.blocks[0].args


def for_flows(op: Operation) -> list[Pair]:
    return pairs(op.operands[3:], entry_args(op.regions[0])[1:], op.results)


def while_flows(op: Operation) -> list[Pair]:
    return pairs(op.operands, entry_args(op.regions[0]))


def yield_flows(op: Operation) -> list[Pair]:
    """To the results of the op around, and for loops to the next iteration."""
    parent = op.parent_op()
    if type(parent) is scf.WhileOp:
        return pairs(op.operands, entry_args(parent.regions[0]))
    if type(parent) is scf.ForOp:
        return pairs(op.operands, parent.results, entry_args(parent.regions[0])[1:])
    return [] if parent is None else pairs(op.operands, parent.results)


def condition_flows(op: Operation) -> list[Pair]:
    loop = op.parent_op()
    return [] if loop is None else pairs(op.operands[1:], loop.results, entry_args(loop.regions[1]))


def branch_flows(op: Operation) -> list[Pair]:
    return pairs(op.operands, op.successors[0].args)


def conditional_branch_flows(op: Operation) -> list[Pair]:
    first, second = op.successors
    count = len(first.args)
    return pairs(op.operands[1 : 1 + count], first.args) + pairs(op.operands[1 + count :], second.args)


def specialize_flows(op: Operation) -> list[Pair]:
    assert isinstance(op, ttg.WarpSpecializeOp)
    return pairs(op.operands, *(entry_args(region) for region in op.partitions if region.blocks))


def wait_flows(op: Operation) -> list[Pair]:
    return pairs(op.operands, op.results)


def select_flows(op: Operation) -> list[Pair]:
    return [(operand, op.results[0]) for operand in op.operands[1:]]


def return_flows(op: Operation) -> list[Pair]:
    parent = op.parent_op()
    return [] if parent is None else pairs(op.operands, parent.results)


FLOWS = {
    scf.ForOp: for_flows,
    scf.WhileOp: while_flows,
    scf.YieldOp: yield_flows,
    scf.ConditionOp: condition_flows,
    cf.BranchOp: branch_flows,
    cf.ConditionalBranchOp: conditional_branch_flows,
    arith.SelectOp: select_flows,
    ttg.WarpSpecializeOp: specialize_flows,
    ttg.WarpYieldOp: return_flows,
    ttg.MaskReturnOp: return_flows,
    ttng.WarpGroupDotWaitOp: wait_flows,
}
