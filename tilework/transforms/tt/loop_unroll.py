"""Unroll the loops that request it.

    scf.for %i = %lb to %ub step %s {          %trip = iterations, %left = %trip remui 2
      body(%i)                                 %mid = %left == 0 ? %ub : %lb + (%trip - %left) * %s
    } {tt.loop_unroll_factor = 2 : i32}  ==>   scf.for %i = %lb to %mid step %s * 2 { body(%i); body(%i + %s * 1) }
                                               scf.for %i = %mid to %ub step %s { body(%i) } {tt.num_stages = 1 : i32}

The second loop runs what is left over and is not pipelined. With constant bounds the arithmetic is done here, a
remainder of zero needs no second loop, and a loop of one iteration becomes its body. A loop whose multiplied step would
not fit into its type is left alone; if the step is known only at run time, the second loop then runs all iterations.

`tt-unroll-short-loops` replaces innermost loops of two to four iterations, counted by constants, by their bodies: masks
and factors that depend on the counter become constants, and all loads can be in flight at once. Loops with dots or
descriptors are left to the pipeliner, loops with hints to the hints, and large bodies alone.
Stage: TTIR to TTIR. Cost: one walk, and a copy of the body per unrolled iteration.
"""

from math import prod

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.ir import arith, scf, tt
from tilework.ir.create import clone_op
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.nesting import end_of
from tilework.ir.rewrite import constant_value, insert_after, insert_before, move_before, replace_op, replace_values
from tilework.ir.scf import LOOPS
from tilework.ir.types import bit_width, i32, int_attr, shape_of
from tilework.transforms.building.emitter import Emitter, iterations
from tilework.transforms.common.canonicalize import canonicalize
from tilework.transforms.common.cse import eliminate_common_subexpressions
from tilework.transforms.passes import Pass, module_pass

FACTOR = "tt.loop_unroll_factor"
FEW = 4  # iterations of a loop that is replaced by its bodies
MOST = 1024  # instructions of a thread in these bodies
LANES = 32
KEPT = ("tt.dot", "tt.descriptor_", "tt.call", "tt.experimental_descriptor_")  # ops of loops that stay
FREE = frozenset({arith.ConstantOp, tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.MakeRangeOp, scf.YieldOp})


@module_pass("triton-loop-unroll")
def loop_unroll(module: ModuleOp) -> None:
    for loop in [inner for inner in module.walk(region_first=True) if type(inner) is scf.ForOp]:
        factor = loop.attributes.get(FACTOR)
        if isinstance(factor, IntegerAttr) and factor.value.data > 1:
            del loop.attributes[FACTOR]
            if len(loop.regions[0].blocks[0].ops) > 1:
                unroll(loop, factor.value.data)


class UnrollShortLoopsPass(Pass):
    name = "tt-unroll-short-loops"
    num_warps: int = 4

    def run(self, module: ModuleOp) -> None:
        for function in filter(has_body, functions(module)):
            short = [op for op in ops_in_order(*function.regions) if type(op) is scf.ForOp and self.is_short(op)]
            for loop in short:
                lower, upper, step = (constant_value(value) for value in loop.operands[:3])
                unroll_constant(loop, trips_of(loop), lower, upper, step)  # pyright: ignore
            if short:
                canonicalize(function)
                eliminate_common_subexpressions(function)

    def is_short(self, loop: Operation) -> bool:
        trips, ops = trips_of(loop), list(ops_in_order(*loop.regions))
        hinted = any(name.startswith("tt.") for name in loop.attributes)
        if not 1 < trips <= FEW or hinted or "unsignedCmp" in loop.properties:
            return False
        if any(type(op) in LOOPS or op.name.startswith(KEPT) for op in ops):
            return False
        return trips * sum(self.instructions(op) for op in ops) <= MOST

    def instructions(self, op: Operation) -> int:
        """Return about how many instructions of a thread an op takes."""
        if type(op) in FREE:
            return 0
        sizes = [prod(shape_of(value.type)) for value in (*op.operands, *op.results)]
        return max(max(sizes, default=1) // (LANES * self.num_warps), 1)


def trips_of(loop: Operation) -> int:
    """Return the iterations of a loop with constant bounds; 0 if they are not known."""
    lower, upper, step = (constant_value(value) for value in loop.operands[:3])
    if not (isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int)) or step <= 0:
        return 0
    return max(0, -((lower - upper) // step))


def unroll(loop: Operation, factor: int) -> None:
    """Make `loop` do `factor` iterations at once, and put a loop for the others behind it."""
    bounds = [constant_value(value) for value in loop.operands[:3]]
    if isinstance(bounds[2], int) and bounds[2] * factor > largest(loop.operands[2].type):
        return
    if all(isinstance(bound, int) for bound in bounds) and bounds[2] > 0:  # pyright: ignore
        unroll_constant(loop, factor, *bounds)  # pyright: ignore
        return
    middle, step = split_bounds(loop, factor, bounds[2])
    add_epilogue(loop, middle)
    repeat_body(loop, factor)
    loop.operands[1], loop.operands[2] = middle, step


def split_bounds(loop: Operation, factor: int, known_step: object) -> tuple[SSAValue, SSAValue]:
    """The upper bound and the step of the unrolled loop. Steps that would not fit are left to the loop behind it."""
    lower, upper, step = loop.operands[:3]
    code = Emitter(loop.location)
    trips, count = iterations(code, lower, upper, step), code.constant(factor, lower.type)
    left = code.binary(arith.RemUIOp, trips, count)
    wide_step = code.binary(arith.MuliOp, step, count)
    if not isinstance(known_step, int):
        fits = code.compare("sle", step, largest(lower.type) // factor)
        left, wide_step = code.select(fits, left, trips), code.select(fits, wide_step, step)
    whole = code.binary(arith.MuliOp, code.binary(arith.SubiOp, trips, left), step)
    is_whole = code.compare("eq", left, 0)
    middle = code.select(is_whole, upper, code.binary(arith.AddiOp, lower, whole))  # a sum beyond `upper` may not fit
    code.insert_before(loop)
    return middle, wide_step


def largest(type: Attribute) -> int:
    return (1 << bit_width(type) - 1) - 1


def unroll_constant(loop: Operation, factor: int, lower: int, upper: int, step: int) -> None:
    """Bounds are known: no arithmetic, no needless loops."""
    trips = trips_of(loop)
    whole = trips - trips % factor
    code = Emitter(loop.location)
    type = loop.operands[0].type
    middle = loop.operands[1]
    if whole != trips:
        middle = code.constant(lower + whole * step, type)
    wide_step = code.constant(step * factor, type)
    code.insert_before(loop)
    epilogue = add_epilogue(loop, middle) if whole != trips else None
    repeat_body(loop, factor)
    loop.operands[1], loop.operands[2] = middle, wide_step
    if epilogue is not None and trips - whole == 1:
        inline_body(epilogue)
    if whole == 0:
        replace_op(loop, results=loop.operands[3:])
    elif whole == factor:
        inline_body(loop)


def add_epilogue(loop: Operation, middle: SSAValue) -> Operation:
    """A copy of `loop` behind it that starts at `middle`, with what `loop` computed."""
    epilogue = loop.clone()
    epilogue.attributes["tt.num_stages"] = int_attr(1, i32)
    replace_values(loop.results, epilogue.results)
    epilogue.operands = (middle, *epilogue.operands[1:3], *loop.results)
    insert_after(loop, epilogue)
    return epilogue


def repeat_body(loop: Operation, factor: int) -> None:
    """Append `factor` - 1 copies of the body, each on the values that the one before it yields."""
    (body,) = loop.regions[0].blocks
    terminator = end_of(body)
    ops = [op for op in body.ops if op is not terminator]
    counter, *carried = body.args
    counter_is_used = counter.first_use is not None
    first_yield = tuple(terminator.operands)
    values = first_yield
    for copy in range(1, factor):
        mapping: dict[SSAValue, SSAValue] = {}
        mapping.update(zip(carried, values, strict=True))
        if counter_is_used:
            mapping[counter] = advanced_counter(loop, body, terminator, copy)
        insert_before(terminator, *[clone_op(op, mapping) for op in ops])
        values = tuple(mapping.get(value, value) for value in first_yield)
    terminator.operands = values


def advanced_counter(loop: Operation, body: Block, terminator: Operation, copy: int) -> SSAValue:
    """The induction variable of iteration `copy` of the group."""
    counter = body.args[0]
    code = Emitter(loop.location)
    distance = code.binary(arith.MuliOp, loop.operands[2], copy)
    value = code.binary(arith.AddiOp, counter, distance)
    code.insert_before(terminator)
    return value


def inline_body(loop: Operation) -> None:
    """Replace a loop of one iteration by its body."""
    (body,) = loop.regions[0].blocks
    terminator = end_of(body)
    replace_values(body.args, (loop.operands[0], *loop.operands[3:]))
    move_before(loop, *(op for op in body.ops if op is not terminator))
    replace_op(loop, results=terminator.operands)
