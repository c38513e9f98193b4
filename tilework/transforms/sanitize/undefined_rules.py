"""How shadows go through ops: which elements of the results are undefined where elements of the operands are."""

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.arith_ext import SelectOp
from tilework.ir.create import create_op
from tilework.ir.rewrite import attr_value, constant_value
from tilework.ir.types import element_type, i1, is_tensor, shape_of, with_element
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.sanitize.undefined_shadows import (
    Shadow,
    Shadows,
    folded,
    highest,
    highest_region,
    implies_all,
    joined_sources,
    sources_below,
)
from tilework.transforms.sanitize.undefined_sources import is_partial_load
from tilework.transforms.sanitize.undefined_values import ABSORBING, scalar_of

Follow = Callable[[Shadows, Emitter, Operation], Shadow | None]


def follow_elements(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    return shadows.joined(code, op.operands, op.results[0].type)


def whole_shadow(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """That of an op all of whose results are undefined or defined as a whole."""
    if any(is_tensor(shadows.type_of(result)) for result in op.results if is_tensor(result.type)):
        return None
    found = [shadow for operand in op.operands if (shadow := shadows.of(operand)) is not None]
    values = [shadow.value for shadow in found if shadow.value is not None and not is_tensor(shadow.value.type)]
    return Shadow(joined_sources(found), value=highest(code, values)) if values and len(values) == len(found) else None


def follow_view(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """The same op on shadows. Of a split each half is one result."""
    found = [shadow for operand in op.operands if (shadow := shadows.of(operand)) is not None]
    if not found or (whole := whole_shadow(shadows, code, op)) is not None:
        return whole if found else None
    sources = joined_sources(found)
    parts = [shadows.tile(code, operand) for operand in op.operands]
    types = [with_element(result.type, shadows.element) for result in op.results]
    new = create_op(type(op), parts, types, op.location, op.properties)
    code.append(new)
    for old, result in zip(op.results[1:], new.results[1:], strict=True):
        shadows.known[old] = Shadow(sources, value=result)
    made = Shadow(sources, value=new.results[0])
    if len(op.results) > 1:
        shadows.known[op.results[0]] = made
        return None
    return made


def follow_load(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    if is_partial_load(op):
        (source,) = shadows.sources[op]
        return Shadow((source,), ((op.operands[1], source),))
    _, mask, other = op.operands
    shadow = shadows.of(other)
    if shadow is None:
        return None
    value = code.select(mask, shadows.number(code, 0, other.type), shadows.tile(code, other))
    return Shadow(shadow.sources, value=value)


def follow_select(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """The side that is taken, and the condition."""
    condition, yes, no = op.operands
    taken = shadows.of(yes)
    if taken is not None and taken.value is None and implies_all(condition, taken.masks):
        taken = None
    if taken is None and shadows.of(no) is None:
        return shadows.joined(code, (condition,), op.results[0].type)
    sources = joined_sources(one for one in (taken, shadows.of(no), shadows.of(condition)) if one is not None)
    second = shadows.carried(code, no, op.results[0])
    first = shadows.carried(code, yes, op.results[0]) if taken is not None else shadows.number(code, 0, second.type)
    sides = code.select(condition, first, second)
    whole = shadows.joined(code, (condition,), op.results[0].type)
    if whole is not None:
        shadows.known[op.results[0]] = whole
        sides = highest(code, [sides, shadows.carried(code, op.results[0], op.results[0])])
    return Shadow(sources, value=sides)


def follow_absorbing(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """``and``, ``or`` and products of integers: one operand can decide alone."""
    a, b = op.operands
    if shadows.of(a) is not None and shadows.of(b) is not None:
        return follow_elements(shadows, code, op)
    undefined, other = (a, b) if shadows.of(a) is not None else (b, a)
    shadow, result = shadows.of(undefined), op.results[0]
    is_bool = element_type(a.type) == i1
    if shadow is None or (type(op) is arith.OrIOp and not is_bool):
        return shadow
    if type(op) is arith.AndIOp and is_bool and shadow.value is None and implies_all(other, shadow.masks):
        return None
    scalar = scalar_of(other) if shadow.value is not None and not is_tensor(shadow.value.type) else None
    if scalar is None and is_tensor(result.type) and not is_tensor(shadows.type_of(result)):
        return shadow
    decides = other if scalar is None else scalar
    if (known := constant_value(decides)) is not None:
        absorbs = known != 0 if type(op) is arith.OrIOp else known == 0
        return None if absorbs else shadow
    if type(op) is arith.OrIOp:
        matters = code.negated(decides)
    else:
        matters = decides if is_bool else code.compare("ne", decides, code.constant(0, decides.type))
    value = shadow.value if scalar is not None and shadow.value is not None else shadows.tile(code, undefined)
    return Shadow(shadow.sources, value=code.select(matters, value, shadows.number(code, 0, value.type)))


def follow_fold(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """Reductions and scans."""
    sources = sources_below(shadows, op)
    if not sources or (whole := whole_shadow(shadows, code, op)) is not None:
        return whole if sources else None
    part = highest(code, [shadows.tile(code, operand) for operand in op.operands if shadows.of(operand) is not None])
    axis = int(attr_value(op.properties["axis"]) or 0)
    if type(op) is tt.ReduceOp:
        return Shadow(sources, value=folded(code, part, axis))
    region = highest_region(tt.ScanReturnOp, shadows.element, op.location)
    reverse = bool(attr_value(op.properties["reverse"]))
    return Shadow(sources, value=code.append(tt.ScanOp.make([part], axis, reverse, region, op.location)))


def follow_dot(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """Row i of `a` and column j of `b` make element (i, j)."""
    sources = sources_below(shadows, op)
    if not sources or (whole := whole_shadow(shadows, code, op)) is not None:
        return whole if sources else None
    shape = shape_of(op.results[0].type)
    rank = len(shape)
    parts = [shadows.tile(code, op.operands[2])] if shadows.of(op.operands[2]) is not None else []
    for operand, axis in ((op.operands[0], rank - 1), (op.operands[1], rank - 2)):
        if shadows.of(operand) is not None:
            line = folded(code, shadows.tile(code, operand), axis)
            parts.append(code.broadcast(code.expanded(line, (axis,)), shape))
    return Shadow(sources, value=highest(code, parts))


def follow_gather(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    source, indices = op.operands
    sources = sources_below(shadows, op)
    if not sources:
        return None
    parts = [shadows.tile(code, indices)] if shadows.of(indices) is not None else []
    if shadows.of(source) is not None:
        type = with_element(op.results[0].type, shadows.element)
        picked = create_op(tt.GatherOp, (shadows.tile(code, source), indices), (type,), op.location, op.properties)
        parts.append(code.append(picked))
    return Shadow(sources, value=highest(code, parts))


RULES: dict[type[Operation], Follow] = {
    SelectOp: follow_select,
    **dict.fromkeys(ABSORBING, follow_absorbing),
    tt.DotOp: follow_dot,
    tt.GatherOp: follow_gather,
    tt.LoadOp: follow_load,
    tt.ReduceOp: follow_fold,
    tt.ScanOp: follow_fold,
}
