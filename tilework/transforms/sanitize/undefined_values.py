"""Which values may hold elements that no load has defined, and which of those can be followed exactly.

    %x = tt.load %p, %m              lanes where %m is false are undefined: %x is *partial*
    %y = arith.addf %x, %b           an element of %y is undefined where that of %x is: partial
    %h = tt.histogram %x             says nothing about single elements: *murky*

The other sources are listed in `undefined_sources.py`. A murky value comes from a partial one by an op that mixes elements in
a way that is not followed: exchanges by exclusive or (sort, flip), histograms, calls, branches between blocks. What is computed
from it is murky too. Only partial values get a shadow (`check_undefined.py`), so that nothing is reported that might be defined.

A partial tile whose elements are all undefined or all defined (its source is a scalar) has a scalar for its shadow; the others
are *varied*.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, OpResult, SSAValue

from tilework.analysis.value_flows import Pair, control_flows
from tilework.ir import tt
from tilework.ir.arith_ext import SelectOp
from tilework.ir.effects import is_elementwise, is_terminator
from tilework.ir.types import is_tensor
from tilework.transforms.sanitize.undefined_sources import CLEANING

VIEWS = frozenset(
    {
        tt.BroadcastOp,
        tt.CatOp,
        tt.ExpandDimsOp,
        tt.JoinOp,
        tt.ReshapeOp,
        tt.SplatOp,
        tt.SplitOp,
        tt.TransOp,
        tt.UnsplatOp,
    }
)
FOLLOWED = VIEWS | {tt.LoadOp, tt.ReduceOp, tt.ScanOp, tt.DotOp, tt.GatherOp}
CONTROL = (scf.ForOp, scf.WhileOp, scf.IfOp)
ENDS = (scf.YieldOp, scf.ConditionOp)
ABSORBING = (arith.AndIOp, arith.OrIOp, arith.MuliOp)  # one operand can decide alone
SIDE_EFFECTS = (tt.StoreOp, tt.AtomicRMWOp, tt.AtomicCASOp)


@dataclass(frozen=True)
class Flow:
    """The ops of a function, and what flows from where to where in it."""

    ops: list[Operation]
    edges: list[tuple[SSAValue, SSAValue]]


def flow_of(function: Operation) -> Flow:
    ops = [op for op in function.walk() if op is not function and not in_combine(op)]
    return Flow(ops, [edge for op in ops for edge in flows(op)])


def stored_numbers(flow: Flow) -> set[SSAValue]:
    """The values that may be stored as numbers, without those that only decide, mask or address."""
    numbers: set[SSAValue] = set()
    for op in flow.ops:
        if type(op) in SIDE_EFFECTS:
            numbers.update(op.operands[1:])
    back = [(target, source) for source, target in reversed(flow.edges) if type(target.owner) not in CLEANING]
    return closure(numbers, back)


def partial_values(flow: Flow, sources: Collection[Operation]) -> set[SSAValue]:
    """The values that may be partly undefined and are not murky."""
    partial = closure({op.results[0] for op in sources}, flow.edges)
    murky: set[SSAValue] = {
        result
        for op in flow.ops
        if not is_followed(op) and any(operand in partial for operand in op.operands)
        for result in (*op.results, *(argument for block in op.successors for argument in block.args))
    }
    return partial - closure(murky, flow.edges)


def varied_values(flow: Flow, partial: set[SSAValue], sources: Collection[Operation]) -> set[SSAValue]:
    """The partial tiles that may be undefined in some elements and defined in others."""
    start = {op.results[0] for op in sources if is_tensor(op.results[0].type)}
    start |= {op.results[0] for op in flow.ops if is_choice(op, partial)} & partial
    return closure(start, flow.edges) & partial


def is_choice(op: Operation, partial: set[SSAValue]) -> bool:
    """An operand decides, element by element, whether another one matters."""
    if type(op) in ABSORBING:
        return any(is_tensor(value.type) and scalar_of(value) is None for value in op.operands if value not in partial)
    return type(op) in (SelectOp, tt.LoadOp) and is_tensor(op.operands[0].type)


def scalar_of(value: SSAValue) -> SSAValue | None:
    """The scalar that a tile repeats, if it does; a constant is its own."""
    while isinstance(value, OpResult):
        if type(value.op) is arith.ConstantOp:
            return value
        if type(value.op) is tt.SplatOp:
            return value.op.operands[0]
        if type(value.op) is not tt.BroadcastOp and type(value.op) is not tt.ExpandDimsOp:
            break
        value = value.op.operands[0]
    return None if is_tensor(value.type) else value


def in_combine(op: Operation) -> bool:
    """In the region of a reduction, scan or map."""
    parent = op.parent_op()
    while parent is not None and type(parent) in CONTROL:
        parent = parent.parent_op()
    return parent is not None and type(parent) is not tt.FuncOp


def is_followed(op: Operation) -> bool:
    """Whether it is known which elements of the results depend on which of the operands."""
    kind = type(op)
    if kind is tt.ReduceOp:
        return any(type(inner) is not arith.XOrIOp for inner in op.regions[0].walk() if not is_terminator(inner))
    return kind in FOLLOWED or kind in CONTROL or is_elementwise(op)


def closure(start: Collection[SSAValue], edges: list[tuple[SSAValue, SSAValue]]) -> set[SSAValue]:
    """What can be reached; edges are in program order, so that few rounds do."""
    found, size = set(start), -1
    while size != len(found):
        size = len(found)
        found.update(target for source, target in edges if source in found)
    return found


def flows(op: Operation) -> Iterator[Pair]:
    """(source, target) wherever one value depends on another."""
    if op.successors:  # which block comes next depends on the operands, too
        yield from ((source, argument) for block in op.successors for source in op.operands for argument in block.args)
    elif (passed := control_flows(op)) is not None:
        yield from passed
    elif type(op) not in SIDE_EFFECTS:
        operands = op.operands[1:] if type(op) is tt.LoadOp else op.operands
        for operand in operands:
            yield from ((operand, result) for result in op.results)
