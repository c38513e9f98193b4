"""Split loops of dots where a mask becomes, or stops being, true for whole tiles.

    for n in range(0, end, BN):                               for n in range(0, middle, BN):
        s = dot(q, k)                                             s = dot(q, k)
        s = where(rows >= n + columns, s, -inf)      ==>          ...
        ...                                                   for n in range(middle, end, BN):
                                                                  s = where(rows >= n + columns, dot(q, k), -inf)
                                                                  ...

Causal attention, and keys beyond the end of a sequence: only the last tiles need their masks (only the first ones in
the gradient of keys). A comparison whose margin is linear in the loop's counter and the tile's indices holds for all
elements of a tile from, or until, an iteration that scalars determine. All iterations run in order, so results are
bitwise the same.

Margins are exact unless an operand of the comparison wraps around. The code in front of the loop computes the extremes
of both operands in 64 bits; if one does not fit 32 bits, all iterations run with the mask.
Stage: TTIR, before layouts. Cost: one walk, and the address forms of comparisons in loops of dots.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import chain
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilework.analysis.index_forms import RULES, Atom, IndexForms, Poly, axis_atom, plus
from tilework.analysis.rectangles import positive_margin
from tilework.analysis.value_flows import reached, sources_of
from tilework.ir import arith, scf, tt
from tilework.ir.arith import SelectOp
from tilework.ir.create import clone_op
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.module_facts import MOST_TRIPS
from tilework.ir.nesting import body_of, is_defined_in
from tilework.ir.rewrite import constant, constant_value, defining_op, insert_before, replace_all_uses
from tilework.ir.types import bit_width, i32, i64, int_attr, shape_of
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.common.canonicalize import canonicalize
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark

LARGEST = 1 << 24  # coefficients of at most `MOST_TERMS` 32-bit values: sums fit 64 bits
MOST_TERMS = 8
MOST_REGISTERS = 192  # for results of dots: with more, what both loops need is spilled
LANES = 32
ALIKE = (arith.AndIOp, tt.BroadcastOp, tt.ExpandDimsOp)  # a mask that is computed from a mask


@light_dataclass
class Linear:
    """A tile of integers: `rest` + `step` * counter + an offset of each element, from `least` to `most`."""

    rest: Poly
    step: int
    least: int
    most: int


@light_dataclass(eq=False)
class Test:
    """A comparison that is true where `margin` is positive."""

    op: Operation
    sides: tuple[Linear, Linear]
    margin: Linear


class SplitMaskedLoopsPass(Pass):
    name = "tt-split-masked-loops"
    num_warps: int = 4

    def run(self, module: ModuleOp) -> None:
        for function in filter(has_body, functions(module)):
            loops = [op for op in ops_in_order(*function.regions) if type(op) is scf.ForOp]
            if sum(split(loop) for loop in loops if 0 < dot_registers(loop, self.num_warps) <= MOST_REGISTERS):
                canonicalize(function)


def dot_registers(loop: Operation, num_warps: int) -> int:
    """Return the registers of a thread for the results of the dots of `loop`."""
    dots = [op for op in body_of(loop).ops if type(op) is tt.DotOp]
    return sum(prod(shape_of(dot.results[0].type)) for dot in dots) // (num_warps * LANES)


def split(loop: Operation) -> bool:
    """Split `loop` at the first iteration that needs its masks, or else at the first one that does not, if there are
    such masks.
    """
    step = constant_value(loop.operands[2])
    if not isinstance(step, int) or not is_power(step) or loop.operands[0].type != i32:
        return False
    if "unsignedCmp" in loop.properties or MOST_TRIPS in loop.attributes:
        return False
    forms = IndexForms()
    tests = [test for op in body_of(loop).ops if is_mask(op) if (test := test_of(op, loop, forms)) is not None]
    selecting = [test.margin.step for test in tests if selects_elements(test.op)]
    if not selecting:
        return False
    falling = min(selecting) < 0
    chosen = [test for test in tests if (test.margin.step < 0) == falling]
    bounds = {test: most_trips(loop, test.margin, forms, step) for test in chosen}
    chosen = [test for test in chosen if selects_elements(test.op) or bounds[test] is not None]
    if any(needs_all_masks(loop, test.margin, forms) for test in chosen):
        return False
    code = Emitter(loop.location)
    lower, upper = map(code.sign_extended, loop.operands[:2])
    points = [first_change(code, test.margin, forms, lower, step) for test in chosen]
    fits = [fits_32_bits(code, side, forms, lower, upper) for test in chosen for side in test.sides]
    pick = arith.MinSIOp if falling else arith.MaxSIOp
    middle = reduce(lambda one, other: code.binary(pick, one, other), points)
    middle = code.convert(arith.TruncIOp, code.binary(arith.MinSIOp, middle, upper), i32)
    is_exact = reduce(lambda one, other: code.binary(arith.AndIOp, one, other), fits)
    middle = code.select(is_exact, middle, loop.operands[0 if falling else 1])
    code.insert_before(loop)
    trips = [bounds[test] for test in chosen]
    copies: dict[SSAValue, SSAValue] = {}
    before = clone_op(loop, copies)
    before.operands[1] = middle
    insert_before(loop, before)
    loop.operands = (middle, *loop.operands[1:3], *before.results)
    for test in chosen:
        result = test.op.results[0]
        is_true = constant(1, result.type, test.op.location)
        insert_before(before if falling else loop, is_true)
        replace_all_uses(copies[result] if falling else result, is_true.results[0])
    if None not in trips:
        masked = loop if falling else before
        masked.attributes[MOST_TRIPS] = int_attr(max(trip for trip in trips if trip is not None), i32)
    remark(before, f"the {'first' if falling else 'last'} iterations run without masks that are true there")
    return True


def needs_all_masks(loop: Operation, margin: Linear, forms: IndexForms) -> bool:
    """Return True if no iteration selects a whole tile: programs that split their loops themselves have such loops."""
    best = forms.of(loop.operands[0]) if margin.step < 0 else forms.of(loop.operands[1])
    if best is None:
        return False
    largest = plus(plus(margin.rest, {(): margin.least}), best, margin.step)
    largest = largest if margin.step < 0 else plus(largest, {(): -margin.step})
    return not largest.keys() - {()} and largest.get((), 0) <= 0


def is_power(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def is_mask(op: Operation) -> bool:
    """Return True if `op` compares tiles."""
    return type(op) is arith.CmpiOp and bool(shape_of(op.results[0].type))


def selects_elements(mask: Operation) -> bool:
    """Return True if a comparison selects elements of a tile with several dimensions, not only those to load."""
    users = reached(
        [use.operation for use in mask.results[0].uses],
        lambda user: [use.operation for use in user.results[0].uses] if isinstance(user, ALIKE) else (),
    )
    return any(type(user) is SelectOp and len(shape_of(user.results[0].type)) > 1 for user in users)


def test_of(op: Operation, loop: Operation, forms: IndexForms) -> Test | None:
    """Return a comparison of 32-bit integers that are linear in the counter of `loop`, if the outcome depends on it."""
    left, right = op.operands
    if bit_width(left.type) != 32 or not (computes_exactly(left) and computes_exactly(right)):
        return None
    parts = [linear(form, op, loop, forms) for form in (forms.of(left), forms.of(right), positive_margin(op, forms))]
    if any(part is None for part in parts):
        return None
    one, other, margin = (part for part in parts if part is not None)
    return Test(op, (one, other), margin) if is_power(abs(margin.step)) else None


def computes_exactly(value: SSAValue) -> bool:
    """Return True if `value` is its polynomial modulo 2 to the power of its bits."""

    def sources(value: SSAValue) -> Sequence[SSAValue]:
        op = defining_op(value)
        if op is not None:
            return op.operands if type(op) in RULES else ()
        return [*chain(*sources_of(value))] if isinstance(value, BlockArgument) else ()

    return not any(type(defining_op(source)) is arith.ExtSIOp for source in reached([value], sources))


def linear(form: Poly | None, op: Operation, loop: Operation, forms: IndexForms) -> Linear | None:
    """Return a polynomial as a linear one whose other terms are few 32-bit scalars from outside of `loop`."""
    if form is None:
        return None
    shape, counter = shape_of(op.results[0].type), forms.atom(body_of(loop).args[0])
    rest: Poly = {}
    step = least = most = 0
    for monomial, value in form.items():
        if len(monomial) > 1 or abs(value) > LARGEST:
            return None
        if monomial in counter:
            step = value
        elif monomial and monomial[0] < 0:
            span = value * (shape[axis_atom(monomial[0])] - 1)
            least, most = least + min(span, 0), most + max(span, 0)
        elif not monomial or is_small(forms.atoms[monomial[0]], loop):
            rest[monomial] = value
        else:
            return None
    return Linear(rest, step, least, most) if len(rest) <= MOST_TERMS else None


def is_small(atom: Atom, loop: Operation) -> bool:
    return isinstance(atom, SSAValue) and bit_width(atom.type) <= 32 and not is_defined_in(atom, loop)


def total(code: Emitter, form: Poly, forms: IndexForms) -> SSAValue:
    """Emit a polynomial of scalars, in 64 bits."""
    made = code.constant(form.get((), 0), i64)
    for monomial, value in form.items():
        if monomial:
            atom = forms.atoms[monomial[0]]
            assert isinstance(atom, SSAValue)
            made = code.binary(arith.AddiOp, made, code.binary(arith.MuliOp, code.sign_extended(atom), value))
    return made


def fits_32_bits(code: Emitter, side: Linear, forms: IndexForms, lower: SSAValue, upper: SSAValue) -> SSAValue:
    """Emit the test that no element of a tile, in any iteration, exceeds 32 bits."""
    rest, last = total(code, side.rest, forms), code.binary(arith.SubiOp, upper, 1)
    ends = (lower, last) if side.step >= 0 else (last, lower)
    least, most = (code.binary(arith.AddiOp, rest, code.binary(arith.MuliOp, end, side.step)) for end in ends)
    is_above = code.compare("sge", code.binary(arith.AddiOp, least, side.least), -(1 << 31))
    return code.binary(arith.AndIOp, is_above, code.compare("slt", code.binary(arith.AddiOp, most, side.most), 1 << 31))


def first_change(code: Emitter, margin: Linear, forms: IndexForms, lower: SSAValue, step: int) -> SSAValue:
    """Emit the first counter at which a falling margin is not positive for all elements, or a rising one is."""
    rest = plus(margin.rest, {(): margin.least - 1})
    last = floor_divided(code, total(code, rest, forms), abs(margin.step))  # the last counter, or minus the first
    if margin.step < 0:
        count = floor_divided(code, code.binary(arith.AddiOp, code.binary(arith.SubiOp, last, lower), step), step)
    else:
        behind = floor_divided(code, code.binary(arith.AddiOp, last, lower), step)
        count = code.binary(arith.SubiOp, code.constant(0, i64), behind)
    count = code.binary(arith.MaxSIOp, count, 0)
    return code.binary(arith.AddiOp, lower, code.binary(arith.MuliOp, count, step))


def floor_divided(code: Emitter, value: SSAValue, power: int) -> SSAValue:
    return code.binary(arith.ShRSIOp, value, power.bit_length() - 1) if power > 1 else value


def most_trips(loop: Operation, margin: Linear, forms: IndexForms, step: int) -> int | None:
    """Return a bound of the iterations that need the mask, if it is a constant."""
    if abs(margin.step) != 1:
        return None
    edge = plus(margin.rest, {(): margin.least})  # a falling margin is positive before this counter
    edge = edge if margin.step < 0 else plus({(): 1}, edge, -1)  # a rising one from it on
    lower = forms.of(loop.operands[0])
    if lower is None:
        return None
    distance = plus(edge, lower, -1)
    is_whole = all(value % step == 0 for monomial, value in distance.items() if monomial)
    up = -distance.get((), 0) % step if is_whole else step - 1  # to the first iteration from there on
    if margin.step > 0:
        spans = [plus(distance, {(): up})]
    else:
        upper = defining_op(loop.operands[1])
        ends = upper.operands if isinstance(upper, arith.MinSIOp) else loop.operands[1:2]
        first = plus(edge, {(): up if is_whole else 0})
        spans = [plus(end, first, -1) for end in map(forms.of, ends) if end is not None]
    known = [span.get((), 0) for span in spans if not span.keys() - {()}]
    return max(-(-min(known) // step), 1) if known else None
