"""Stop a kernel that uses elements which are undefined.

    %x = tt.load %p, %m                            %x = tt.load %p, %m
    %s = "tt.reduce"(%x) addf         ==>          %u = arith.select %m, 0, 1          1: the load is the source
    tt.store %q, %s                                %v = "tt.reduce"(%u) maxui          %s is undefined if any of these is
                                                   tt.assert (%v != 1), "sanitizer: ..."    at the place of the load
                                                   %s = ... ; tt.store %q, %s

A load with a mask and without `other` leaves the lanes that are masked off undefined; other sources are divisions by zero and
the like (`undefined_sources.py`). Every value that may hold such elements has a *shadow*, a tile of small integers: the number
of the source, or 0 where the element is defined. Undefined elements may be computed with. It is a mistake when one is stored in
a lane that is on, is part of an address or mask of such a lane, is counted, or decides a branch or the bounds of a loop. An
element is defined, although an operand is not, when the operand cannot matter: the side of a select that is not taken,
``false & x``, ``true | x``, ``0 * x`` of integers. Loading under a mask and storing under it, or under one that implies it,
costs nothing: that is seen while compiling.

A report is about the line of the source; the second line of its text is where the element is used. What a load leaves undefined
is a warning unless the option `strict` is set. Numbers outside of the bins of a histogram are an error where they are counted.

Not followed (`undefined_values.py`): what goes through memory, calls and sorting. Stage: TTIR to TTIR. Cost: one walk; ops for
the shadows.
"""

from collections.abc import Callable

from xdsl.dialects import arith, cf, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from tilework.analysis.provenance import Provenance, pointer_provenance
from tilework.errors import SANITIZER
from tilework.ir import tt
from tilework.ir.effects import is_elementwise
from tilework.ir.functions import functions, has_body
from tilework.ir.types import bit_width, element_type, i8, shape_of
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.building.masks import mask_of
from tilework.transforms.passes import Pass
from tilework.transforms.sanitize.undefined_control import carry_shadows
from tilework.transforms.sanitize.undefined_rules import RULES, follow_elements, follow_view
from tilework.transforms.sanitize.undefined_shadows import Shadows, folded_bits
from tilework.transforms.sanitize.undefined_sources import CLEANING, find_sources, is_partial_load
from tilework.transforms.sanitize.undefined_values import (
    CONTROL,
    VIEWS,
    flow_of,
    partial_values,
    stored_numbers,
    varied_values,
)

DECIDES = "decides a branch"
BINS = "tl.histogram counts a number that is outside of its {count} bins"


class CheckUndefinedPass(Pass):
    name = "triton-check-undefined"
    strict: bool = False

    def run(self, module: ModuleOp) -> None:
        origins = pointer_provenance(module)
        for function in functions(module):
            if isinstance(function, tt.FuncOp) and has_body(function):
                check_function(function, origins, self.strict)


def check_function(function: tt.FuncOp, origins: Provenance, strict: bool) -> None:
    flow = flow_of(function)
    sources = find_sources(flow.ops, stored_numbers(flow), strict)
    if not sources and not any(type(op) is tt.HistogramOp for op in flow.ops):
        return
    partial = partial_values(flow, sources)
    shadows = Visitor(sources, partial, varied_values(flow, partial, sources), origins)
    for block in tuple(function.body.blocks):
        shadows.visit_block(block)


class Visitor(Shadows):
    """Walks over a function."""

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
    """The first operands are used like this, in all lanes."""

    def use(shadows: Shadows, op: Operation) -> None:
        for value, what in zip(op.operands, uses, strict=False):
            shadows.refuse(op, value, None, what)

    return use


def use_histogram(shadows: Shadows, op: Operation) -> None:
    """What is counted is defined, and lies in the bins."""
    numbers, mask = op.operands[0], op.operands[1] if len(op.operands) > 1 else None
    shadows.refuse(op, numbers, mask, "is counted")
    bits, count = bit_width(element_type(numbers.type)), shape_of(op.results[0].type)[0]
    if count >> bits:
        return
    code = Emitter(op.location)
    limit = code.constant(count - (1 << bits) if count >> (bits - 1) else count, numbers.type)
    good = code.compare("ult", numbers, limit)
    if mask is not None:
        good = code.binary(arith.OrIOp, good, code.negated(mask))
    if shadows.of(numbers) is not None:
        undefined = shadows.tile(code, numbers)
        good = code.binary(arith.OrIOp, good, code.compare("ne", undefined, shadows.number(code, 0, undefined.type)))
    good = code.compare("eq", folded_bits(code, code.negated(good)), code.constant(0, i8))
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
