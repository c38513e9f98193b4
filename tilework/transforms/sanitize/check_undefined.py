"""Stop a kernel that uses undefined elements.

    %x = tt.load %p, %m                            %x = tt.load %p, %m
    %s = "tt.reduce"(%x) addf         ==>          %u = arith.select %m, 0, 1           1: the id of the load
    tt.store %q, %s                                %v = "tt.reduce"(%u) maxui           %s is undefined if an element is
                                                   tt.assert (%v != 1), "sanitizer: ..."    at the location of the load
                                                   %s = ... ; tt.store %q, %s

A load with a mask and without `other` leaves the masked-off lanes undefined; other sources are divisions by zero and
the like (`undefined_values.py`). Every value that may hold such elements has a *shadow*, a tile of small integers: the
id of the source, or 0 where the element is defined. Computing with undefined elements is allowed. It is a mistake to
store one in an active lane, to use one in the address or mask of such a lane, to count one, or to let one decide a
branch or the bounds of a loop. An element is defined, although an operand is not, when the operand cannot matter: the
side of a select that is not taken, ``false & x``, ``true | x``, ``0 * x`` of integers. Loading under a mask and storing
under the same mask, or under one that implies it, costs nothing: the pass proves it at compile time.

A report is about the line of the source; the second line of its text is the use. An element that a load leaves
undefined is a warning unless the option `strict` is set. Values outside of the bins of a histogram are an error where
they are counted.

Not followed (`undefined_values.py`): memory, calls and sorting.
Stage: TTIR to TTIR. Cost: one walk; ops for the shadows.
"""

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from tilework.analysis.provenance import Provenance, pointer_provenance
from tilework.errors import SANITIZER
from tilework.ir import arith, cf, scf, tt
from tilework.ir.arith import SelectOp, signed
from tilework.ir.create import create_op
from tilework.ir.effects import is_elementwise
from tilework.ir.functions import functions, has_body
from tilework.ir.rewrite import attr_value, constant_value
from tilework.ir.scf import carry_beside
from tilework.ir.types import bit_width, element_type, i1, is_tensor, shape_of, with_element
from tilework.transforms.building.emitter import Emitter, mask_of
from tilework.transforms.passes import Pass
from tilework.transforms.sanitize.undefined_shadows import (
    Shadow,
    Shadows,
    Sources,
    folded,
    folded_bits,
    highest,
    highest_region,
    implies_all,
    joined_sources,
    sources_below,
)
from tilework.transforms.sanitize.undefined_values import (
    ABSORBING,
    CLEANING,
    CONTROL,
    VIEWS,
    find_sources,
    flow_of,
    is_partial_load,
    partial_values,
    scalar_of,
    stored_values,
    varied_values,
)

# Loops and branches carry shadows beside values.


def carried_sources(shadows: Shadows, op: Operation) -> Sources:
    """The sources whose elements a loop or branch may carry: those inside it, and those of values used inside it."""
    found = [(*sources_below(shadows, inner), *shadows.sources.get(inner, ())) for inner in op.walk()]
    return tuple(dict.fromkeys(source for sources in found for source in sources))


def carry_shadows(shadows: Shadows, op: Operation) -> None:
    sources = carried_sources(shadows, op)

    def shadow_of(value: SSAValue, like: SSAValue, before: Operation) -> list[SSAValue]:
        code = Emitter(before.location)
        made = shadows.carried(code, value, like)
        code.insert_before(before)
        return [made]

    def learn(value: SSAValue, made: Sequence[SSAValue]) -> None:
        shadows.known[value] = Shadow(sources, value=made[0])

    carry_beside(
        op, shadows.partial.__contains__, lambda value: [shadows.type_of(value)], shadow_of, learn, shadows.visit_block
    )


# Propagation: which elements of the results are undefined where elements of the operands are.

Follow = Callable[[Shadows, Emitter, Operation], Shadow | None]


def follow_elements(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    return shadows.joined(code, op.operands, op.results[0].type)


def whole_shadow(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """The shadow of an op whose results are undefined or defined as a whole; None for other ops."""
    if any(is_tensor(shadows.type_of(result)) for result in op.results if is_tensor(result.type)):
        return None
    found = [shadow for operand in op.operands if (shadow := shadows.of(operand)) is not None]
    values = [shadow.value for shadow in found if shadow.value is not None and not is_tensor(shadow.value.type)]
    return Shadow(joined_sources(found), value=highest(code, values)) if values and len(values) == len(found) else None


def follow_view(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """Apply the same op to the shadows; each half of a split is one result."""
    found = [shadow for operand in op.operands if (shadow := shadows.of(operand)) is not None]
    if not found:
        return None
    if (whole := whole_shadow(shadows, code, op)) is not None:
        return whole
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
    value = code.select(mask, shadows.id(code, 0, other.type), shadows.tile(code, other))
    return Shadow(shadow.sources, value=value)


def follow_select(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """Combine the shadow of the chosen side with that of the condition."""
    condition, yes, no = op.operands
    taken = shadows.of(yes)
    if taken is not None and taken.value is None and implies_all(condition, taken.masks):
        taken = None
    if taken is None and shadows.of(no) is None:
        return shadows.joined(code, (condition,), op.results[0].type)
    sources = joined_sources(one for one in (taken, shadows.of(no), shadows.of(condition)) if one is not None)
    second = shadows.carried(code, no, op.results[0])
    first = shadows.carried(code, yes, op.results[0]) if taken is not None else shadows.id(code, 0, second.type)
    sides = code.select(condition, first, second)
    whole = shadows.joined(code, (condition,), op.results[0].type)
    if whole is not None:
        shadows.known[op.results[0]] = whole
        sides = highest(code, [sides, shadows.carried(code, op.results[0], op.results[0])])
    return Shadow(sources, value=sides)


def follow_absorbing(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """``and``, ``or`` and integer multiplication: one operand can decide alone."""
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
        matters = decides if is_bool else code.compare("ne", decides, 0)
    value = shadow.value if scalar is not None and shadow.value is not None else shadows.tile(code, undefined)
    return Shadow(shadow.sources, value=code.select(matters, value, shadows.id(code, 0, value.type)))


def follow_fold(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """Reductions and scans."""
    sources = sources_below(shadows, op)
    if not sources:
        return None
    if (whole := whole_shadow(shadows, code, op)) is not None:
        return whole
    part = highest(code, [shadows.tile(code, operand) for operand in op.operands if shadows.of(operand) is not None])
    axis = int(attr_value(op.properties["axis"]) or 0)
    if type(op) is tt.ReduceOp:
        return Shadow(sources, value=folded(code, part, axis))
    region = highest_region(tt.ScanReturnOp, shadows.element, op.location)
    reverse = bool(attr_value(op.properties["reverse"]))
    return Shadow(sources, value=code.append(tt.ScanOp.make([part], axis, reverse, region, op.location)))


def follow_dot(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """Element (i, j) depends on row i of `a` and column j of `b`."""
    sources = sources_below(shadows, op)
    if not sources:
        return None
    if (whole := whole_shadow(shadows, code, op)) is not None:
        return whole
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


DECIDES = "decides a branch"
BINS = "tl.histogram counts a value that is outside of its {count} bins"


class CheckUndefinedPass(Pass):
    name = "triton-check-undefined"
    strict: bool = False

    def run(self, module: ModuleOp) -> None:
        provenance = pointer_provenance(module)
        for function in functions(module):
            if isinstance(function, tt.FuncOp) and has_body(function):
                check_function(function, provenance, self.strict)


def check_function(function: tt.FuncOp, provenance: Provenance, strict: bool) -> None:
    flow = flow_of(function)
    sources = find_sources(flow.ops, stored_values(flow), strict)
    if not sources and not any(type(op) is tt.HistogramOp for op in flow.ops):
        return
    partial = partial_values(flow, sources)
    shadows = Visitor(sources, partial, varied_values(flow, partial, sources), provenance)
    for block in tuple(function.body.blocks):
        shadows.visit_block(block)


class Visitor(Shadows):
    """Computes the shadows of a function, in program order."""

    def visit_block(self, block: Block) -> None:
        for op in tuple(block.ops):
            self.visit(op)

    def visit(self, op: Operation) -> None:
        kind = type(op)
        if (sink := SINKS.get(kind)) is not None:
            sink(self, op)
        if kind in CONTROL:
            carry_shadows(self, op)
        elif any(result in self.partial for result in op.results):
            rule = RULES.get(kind) or (follow_view if kind in VIEWS else follow_elements)
            assert kind in RULES or kind in VIEWS or is_elementwise(op), f"{op.name} is not followed"
            code = Emitter(op.location)
            made = rule(self, code, op)
            if made is not None and kind in CLEANING:
                made = self.cleaned(code, op.results[0], made)
            if op in self.sources and not is_partial_load(op):
                made = self.with_own(code, op, made)
            assert op.next_op is not None, "a terminator has no results"
            code.insert_before(op.next_op)
            if made is not None:
                self.known.update(dict.fromkeys(op.results, made))


# Uses.


def use_access(shadows: Shadows, op: Operation) -> None:
    mask = mask_of(op)
    if mask is not None:
        shadows.refuse(op, mask, None, "is part of a mask")
    shadows.refuse(op, op.operands[0], mask, "is part of an address")
    if type(op) is not tt.LoadOp:
        shadows.refuse(op, op.operands[1], mask, "is stored", overflow=True)


def use_as(*uses: str) -> Callable[[Shadows, Operation], None]:
    """Refuse undefined elements in the first operands, in all lanes."""

    def use(shadows: Shadows, op: Operation) -> None:
        for value, what in zip(op.operands, uses, strict=False):
            shadows.refuse(op, value, None, what)

    return use


def use_histogram(shadows: Shadows, op: Operation) -> None:
    """Check that counted values are defined and inside the bins."""
    counted, mask = op.operands[0], op.operands[1] if len(op.operands) > 1 else None
    shadows.refuse(op, counted, mask, "is counted")
    bits, count = bit_width(element_type(counted.type)), shape_of(op.results[0].type)[0]
    if count >> bits:
        return
    code = Emitter(op.location)
    good = code.compare("ult", counted, signed(count, bits))
    if mask is not None:
        good = code.binary(arith.OrIOp, good, code.negated(mask))
    if shadows.of(counted) is not None:
        undefined = shadows.tile(code, counted)
        good = code.binary(arith.OrIOp, good, code.compare("ne", undefined, 0))
    good = code.compare("eq", folded_bits(code, code.negated(good)), 0)
    code.ops.append(tt.AssertOp.make(good, SANITIZER + BINS.format(count=count), op.location))
    code.insert_before(op)


SINKS: dict[type[Operation], Callable[[Shadows, Operation], None]] = {
    cf.ConditionalBranchOp: use_as(DECIDES),
    scf.ConditionOp: use_as(DECIDES),
    scf.ForOp: use_as(*("bounds a loop",) * 3),
    scf.IfOp: use_as(DECIDES),
    tt.AtomicCASOp: use_as("is part of an address", "is compared", "is stored"),
    tt.AtomicRMWOp: use_access,
    tt.HistogramOp: use_histogram,
    tt.LoadOp: use_access,
    tt.StoreOp: use_access,
}
