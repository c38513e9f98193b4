"""Find the values that may hold elements that no load has defined, and those that can be followed exactly.

    %x = tt.load %p, %m              lanes where %m is false are undefined: %x is *partial*
    %y = arith.addf %x, %b           an element of %y is undefined where that of %x is: partial
    %h = tt.histogram %x             not followed element by element: *untracked*

An untracked value comes from a partial one by an op that mixes elements in a way that is not followed: exchanges by
exclusive or (sort, flip), histograms, calls, branches between blocks. A value computed from it is untracked too. Only
partial values get a shadow (`check_undefined.py`), so that no value that might be defined is reported.

A partial tile whose elements are all undefined or all defined (its source is a scalar) has a scalar for its shadow; the
others are *varied*.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from tilework.analysis.value_flows import Pair, control_flows
from tilework.ir import arith, scf, tt
from tilework.ir.arith import NO_SIGNED_WRAP, SelectOp
from tilework.ir.effects import has_safe_divisor, is_elementwise, is_terminator
from tilework.ir.rewrite import attr_value, constant_value
from tilework.ir.types import bit_width, element_type, is_tensor, shape_of
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.emitter import Emitter

# Where undefined elements come from.
#
#     %x = tt.load %p, %m                  lanes that %m masks off
#     %q = arith.divsi %a, %b              lanes where %b is 0, or %a / %b is the smallest integer by -1
#     %s = arith.shli %a, %n               lanes where %n is the width of %a or more
#     %g = tt.gather %x[%i]                lanes whose index is outside of the axis
#     %r = arith.addi %a, %b overflow<nsw> lanes where the signed sum wraps around
#
# Each is a `Source` with an id. For each element, the shadow of a value (`check_undefined.py`) holds the id of the
# source that made it undefined, or 0: that is how a report finds the line of the mistake. Where several sources meet,
# the highest id is kept, so that an error takes precedence over a warning.
#
# Overflow counts only where its result is stored as data: indices and masks have their own checks, and an integer that
# is masked, shifted, truncated or divided with a remainder was brought back into its range on purpose. The frontend
# sets the flag on signed sums, differences and products, the ones that Triton's debug builds check.

MASKED = "a load of {what} masks elements off and gives no `other` for them, and one"
BY_ZERO = "division by zero, and the result"
MINIMUM = "int{width} overflow detected for operation div (the smallest integer by -1), and the result"
SHIFT = "an int{width} is shifted by {width} bits or more, and the result"
GATHER = "the index of a tl.gather is outside of axis {axis}, which has {size} elements, and the result"
OVERFLOW = "int{width} overflow detected for operation {name}, and the result"
NAMES: dict[type[Operation], str] = {arith.AddiOp: "add", arith.SubiOp: "sub", arith.MuliOp: "mul"}
DIVISIONS = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)
SHIFTS = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
CLEANING = frozenset(  # ops that undo an overflow, or do not use the result as data
    {
        arith.AndIOp,
        arith.OrIOp,
        arith.XOrIOp,
        arith.RemSIOp,
        arith.RemUIOp,
        arith.TruncIOp,
        arith.CmpiOp,
        arith.CmpfOp,
        *SHIFTS,
    }
)
WIDEST = 64  # only narrower integers are checked, as in Triton


@light_dataclass(eq=False)
class Source:
    """A way in which an op makes elements undefined; reports contain `text`."""

    op: Operation
    id: int
    text: str
    is_warning: bool
    is_overflow: bool = False


def is_partial_load(op: Operation) -> bool:
    """Return True for a load with a mask and no `other`."""
    return type(op) is tt.LoadOp and len(op.operands) == 2


def is_shift(op: Operation) -> bool:
    """Return True for a shift by an amount that is not known to be in range."""
    if type(op) not in SHIFTS:
        return False
    amount = constant_value(op.operands[1])
    return amount is None or not 0 <= amount < width_of(op)


def is_signed(op: Operation) -> bool:
    """Return True for an addition, subtraction or multiplication that must not wrap around."""
    kind = type(op)
    return kind in NAMES and op.properties.get("overflowFlags") == NO_SIGNED_WRAP and width_of(op) < WIDEST


def width_of(op: Operation) -> int:
    return bit_width(element_type(op.operands[0].type))


def texts_of(op: Operation) -> list[str]:
    """The messages for what can be wrong with an op, except overflow."""
    kind = type(op)
    if is_partial_load(op):
        return [MASKED]
    if kind is tt.GatherOp:
        axis = int(attr_value(op.properties["axis"]) or 0)
        return [GATHER.format(axis=axis, size=shape_of(op.operands[0].type)[axis])]
    if kind in DIVISIONS and not has_safe_divisor(op):
        return [BY_ZERO, MINIMUM.format(width=width_of(op))] if kind is arith.DivSIOp else [BY_ZERO]
    return [SHIFT.format(width=width_of(op))] if is_shift(op) else []


def find_sources(ops: Sequence[Operation], stored: set[SSAValue], strict: bool) -> dict[Operation, list[Source]]:
    """The sources among `ops`, ordered as overflow, warnings, errors; `stored` are the values that may be stored as
    data."""
    signed = [op for op in ops if is_signed(op) and op.results[0] in stored]
    found = [(op, OVERFLOW.format(width=width_of(op), name=NAMES[type(op)])) for op in signed]
    others = [(op, text) for op in ops for text in texts_of(op)]
    ordered = [
        *found,
        *(pair for pair in others if pair[1] is MASKED),
        *(pair for pair in others if pair[1] is not MASKED),
    ]
    sources: dict[Operation, list[Source]] = {}
    for id, (op, text) in enumerate(ordered, 1):
        made = Source(op, id, text, text is MASKED and not strict, id <= len(found))
        sources.setdefault(op, []).append(made)
    return sources


# When an op makes an element undefined, one condition per source.


def by_zero(code: Emitter, op: Operation) -> list[SSAValue]:
    dividend, divisor = op.operands
    zero = code.compare("eq", divisor, 0)
    if type(op) is not arith.DivSIOp:
        return [zero]
    smallest = code.compare("eq", dividend, -(1 << (width_of(op) - 1)))
    negative = code.compare("eq", divisor, -1)
    return [zero, code.binary(arith.AndIOp, smallest, negative)]


def out_of_axis(code: Emitter, op: Operation) -> list[SSAValue]:
    source, index = op.operands
    size = shape_of(source.type)[int(attr_value(op.properties["axis"]) or 0)]
    if size >> (bit_width(element_type(index.type)) - 1):  # no index is too large
        return [code.compare("slt", index, 0)]
    return [code.compare("uge", index, size)]


def wrapped(code: Emitter, op: Operation) -> list[SSAValue]:
    """The result in 64 bits differs."""
    left, right, result = (code.sign_extended(value) for value in (*op.operands, op.results[0]))
    return [code.compare("ne", code.binary(type(op), left, right), result)]


CONDITIONS: dict[type[Operation], Callable[[Emitter, Operation], list[SSAValue]]] = {
    **dict.fromkeys(DIVISIONS, by_zero),
    **dict.fromkeys(SHIFTS, lambda code, op: [code.compare("uge", op.operands[1], width_of(op))]),
    **dict.fromkeys(NAMES, wrapped),
    tt.GatherOp: out_of_axis,
}
# A defined second operand for lanes where the given one is not allowed.
SAFE: dict[type[Operation], int] = {**dict.fromkeys(DIVISIONS, 1), **dict.fromkeys(SHIFTS, 0), tt.GatherOp: 0}


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


@light_dataclass
class Flow:
    """The ops of a function, and its (source, target) dependences between values."""

    ops: list[Operation]
    edges: list[tuple[SSAValue, SSAValue]]


def flow_of(function: Operation) -> Flow:
    ops = [op for op in function.walk() if op is not function and not in_combine(op)]
    return Flow(ops, [edge for op in ops for edge in flows(op)])


def stored_values(flow: Flow) -> set[SSAValue]:
    """The values that may be stored as data, without those that only decide, mask or address."""
    stored: set[SSAValue] = set()
    for op in flow.ops:
        if type(op) in SIDE_EFFECTS:
            stored.update(op.operands[1:])
    back = [(target, source) for source, target in reversed(flow.edges) if type(target.owner) not in CLEANING]
    return closure(stored, back)


def partial_values(flow: Flow, sources: Collection[Operation]) -> set[SSAValue]:
    """The values that may be partly undefined and are tracked."""
    partial = closure({op.results[0] for op in sources}, flow.edges)
    untracked: set[SSAValue] = {
        result
        for op in flow.ops
        if not is_followed(op) and any(operand in partial for operand in op.operands)
        for result in (*op.results, *(argument for block in op.successors for argument in block.args))
    }
    return partial - closure(untracked, flow.edges)


def varied_values(flow: Flow, partial: set[SSAValue], sources: Collection[Operation]) -> set[SSAValue]:
    """The partial tiles that may be undefined in some elements and defined in others."""
    start = {op.results[0] for op in sources if is_tensor(op.results[0].type)}
    start |= {op.results[0] for op in flow.ops if is_choice(op, partial)} & partial
    return closure(start, flow.edges) & partial


def is_choice(op: Operation, partial: set[SSAValue]) -> bool:
    """Return True if an operand decides, element by element, whether another one matters."""
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
    """Return True for an op in the region of a reduction, scan or map."""
    parent = op.parent_op()
    while parent is not None and type(parent) in CONTROL:
        parent = parent.parent_op()
    return parent is not None and type(parent) is not tt.FuncOp


def is_followed(op: Operation) -> bool:
    """Return True if the dependence of result elements on operand elements is known."""
    kind = type(op)
    if kind is tt.ReduceOp:
        return any(type(inner) is not arith.XOrIOp for inner in op.regions[0].walk() if not is_terminator(inner))
    return kind in FOLLOWED or kind in CONTROL or is_elementwise(op)


def closure(start: Collection[SSAValue], edges: list[tuple[SSAValue, SSAValue]]) -> set[SSAValue]:
    """The values reachable from `start`; edges are in program order, so that few rounds suffice."""
    found, size = set(start), -1
    while size != len(found):
        size = len(found)
        found.update(target for source, target in edges if source in found)
    return found


def flows(op: Operation) -> Iterator[Pair]:
    """Yield (source, target) wherever one value depends on another."""
    if op.successors:  # which block comes next depends on the operands, too
        yield from ((source, argument) for block in op.successors for source in op.operands for argument in block.args)
    elif (passed := control_flows(op)) is not None:
        yield from passed
    elif type(op) not in SIDE_EFFECTS:
        operands = op.operands[1:] if type(op) is tt.LoadOp else op.operands
        for operand in operands:
            yield from ((operand, result) for result in op.results)
