"""The buffers of shared memory that each memory descriptor may refer to.

    %a = ttg.local_alloc : () -> !ttg.memdesc<2x64xf16, ...>             {%a}
    %b = ttg.memdesc_index %a[%i]                                        {%a}
    %c = scf.if %p { scf.yield %b } else { scf.yield %other }            {%a, %other}

A buffer is identified by the result of its `ttg.local_alloc`. Views refer to the memory of their operand; arguments and
results of loops and branches refer to all that may flow in. A descriptor that is poison, or an argument of a function,
refers to none.
"""

from collections.abc import Callable, Sequence

from xdsl.ir import Operation, SSAValue

from tilework.analysis.value_flows import Pair, control_flows, pairs, parent_of, reached
from tilework.ir import arith, ttg, ttng
from tilework.ir.functions import ops_in_order
from tilework.ir.ttg.memdesc_types import is_memdesc

Aliases = dict[SSAValue, tuple[SSAValue, ...]]
"""The buffers of each descriptor, in program order."""

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
    """Return the buffers of every memory descriptor under `root`; those that refer to none are absent."""
    buffers: list[SSAValue] = []
    edges: dict[SSAValue, list[SSAValue]] = {}
    for op in ops_in_order(*root.regions):
        if type(op) is ttg.LocalAllocOp:
            buffers.append(op.results[0])
        for source, target in value_flows(op):
            if is_memdesc(source.type) and is_memdesc(target.type):
                edges.setdefault(source, []).append(target)
    found: Aliases = {}
    for buffer in buffers:
        for value in reached([buffer], lambda value: edges.get(value, ())):
            found[value] = (*found.get(value, ()), buffer)
    return found


def value_flows(op: Operation) -> Sequence[Pair]:
    """Return (source, target) for each value that `op` passes on, or a part of it: views, loops, branches, yields."""
    kind = type(op)
    if kind in VIEWS:
        return [(op.operands[0], op.results[0])]
    rule = FLOWS.get(kind)
    return (control_flows(op) or ()) if rule is None else rule(op)


def specialize_flows(op: Operation) -> list[Pair]:
    assert isinstance(op, ttg.WarpSpecializeOp)
    return pairs(op.operands, *(region.blocks[0].args for region in op.partitions if region.blocks))


def return_flows(op: Operation) -> list[Pair]:
    return pairs(op.operands, parent_of(op).results)


FLOWS: dict[type[Operation], Callable[[Operation], list[Pair]]] = {
    arith.SelectOp: lambda op: [(operand, op.results[0]) for operand in op.operands[1:]],
    ttg.WarpSpecializeOp: specialize_flows,
    ttg.WarpYieldOp: return_flows,
    ttg.MaskReturnOp: return_flows,
    ttng.WarpGroupDotWaitOp: lambda op: pairs(op.operands, op.results),
}
