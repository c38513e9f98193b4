"""Pad tiles to powers of two with invisible lanes: GPU layouts support no other sizes.

    %i = tt.make_range {end = 96, start = 0} : tensor<96xi32>     %i = tt.make_range {end = 128, start = 0} : tensor<128xi32>
    %x = tt.load %p : tensor<96x!tt.ptr<f32>>                     %x = tt.load %p, %seen : tensor<128x!tt.ptr<f32>>
    %s = "tt.reduce"(%x) ... addf                           ==>   %y = arith.select %seen, %x, %minus_zero
                                                                  %s = "tt.reduce"(%y) ... addf

where ``%seen`` is ``0..127 < 96``, made once at the start of the function. Every dimension of every type is rounded up
to the next power of two, so that most ops (elementwise ops, loops, branches and calls) only change their types: what
they compute in the invisible lanes is never observed. `RULES` lists the ops that could expose it, and how they are kept
from it: accesses get a mask, reductions neutral elements, dots zeros along K, views with other rows a gather
(`views.py`).
Stage: TTIR to TTIR, GPUs, behind all passes over TTIR. Cost: one look at the types where no tile is odd.
"""

from collections.abc import Callable, Iterable, Sequence
from math import inf, nan, prod

from xdsl.dialects import arith, ub
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.analysis.value_flows import CONTROL_FLOW
from tilework.errors import PassError
from tilework.ir import tt
from tilework.ir.arith_ext import SelectOp, binary
from tilework.ir.effects import DIVISIONS as QUOTIENTS
from tilework.ir.effects import ELEMENTWISE
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.module_facts import IN_ORDER, is_reproducible
from tilework.ir.nesting import end_of, only_op, start_of
from tilework.ir.property_text import is_true
from tilework.ir.rewrite import constant, constant_value, defining_op, insert_before, recreate, splat_element
from tilework.ir.tt.function_ops import function_type_of
from tilework.ir.tt.inference import reduced_type
from tilework.ir.types import (
    array_values,
    axis_of,
    bit_width,
    element_type,
    i1,
    i32,
    i32_array,
    int_attr,
    is_float,
    is_odd,
    shape_of,
    tensor_type,
)
from tilework.numerics.formats import of_ir
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.building.memory_access import MASKS, mask_of, set_mask
from tilework.transforms.common.canonicalize import canonicalize
from tilework.transforms.common.cse import eliminate_common_subexpressions
from tilework.transforms.padding import views
from tilework.transforms.padding.padded import Padding, padded_shape
from tilework.transforms.padding.views import reshaped
from tilework.transforms.passes import module_pass

# Ops that take lanes one by one and could show the invisible ones: constants, accesses, divisions, prints, asserts.

# Undefined where the divisor is 0.
DIVISIONS = QUOTIENTS | {arith.FloorDivSIOp, arith.RemSIOp, arith.RemUIOp}
REPEATS = (tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp)


def pad_constant(padding: Padding, op: Operation) -> None:
    """All elements are equal: the front end knows no other constants."""
    value, (result,) = op.properties["value"], op.results
    assert isinstance(value, DenseIntOrFPElementsAttr) and splat_element(value) is not None, f"{value} is no splat"
    first = value.data.data[: value.get_element_type().compile_time_size]  # its bits: of a NaN, too
    op.properties["value"] = DenseIntOrFPElementsAttr(result.type, BytesAttr(first))  # pyright: ignore


def pad_range(padding: Padding, op: Operation) -> None:
    """Count on."""
    start = op.properties["start"].value.data  # pyright: ignore[reportAttributeAccessIssue]
    op.properties["end"] = int_attr(start + shape_of(op.results[0].type)[0], i32)


def pad_division(padding: Padding, op: Operation) -> None:
    """Nothing is divided by what an invisible lane happens to hold; a divisor of all lanes is the user's."""
    divisor = op.operands[1]
    if not is_uniform(divisor):
        op.operands[1] = padding.filled(divisor, padding.axes(divisor), 1, op)


def is_uniform(value: SSAValue) -> bool:
    """Return True if all lanes hold the same."""
    owner = defining_op(value)
    if isinstance(owner, REPEATS):
        return type(owner) is tt.SplatOp or is_uniform(owner.operands[0])
    return constant_value(value) is not None


def divisions_in(op: Operation) -> list[Operation]:
    return [inner for region in op.regions for inner in region.walk() if type(inner) in DIVISIONS]


def guard_divisions(op: Operation, block: Block, flags: Sequence[SSAValue], all_of: type[Operation]) -> None:
    """Divide by 1 in the region of `op` unless `flags` hold (all or one of them: ``arith.andi`` or ``arith.ori``)."""
    divisions = divisions_in(op)
    if not divisions:
        return
    code, (may, *others) = Emitter(op.location), flags
    for flag in others:
        may = code.binary(all_of, may, flag)
    code.insert_before(start_of(block))
    for division in divisions:
        divisor, guard = division.operands[1], Emitter(division.location)
        division.operands[1] = guard.select(may, divisor, guard.constant(1, divisor.type))
        guard.insert_before(division)


def pad_map(padding: Padding, op: Operation) -> None:
    """Where the region divides, pass it the mask of visible lanes."""
    pack = op.properties["pack"].value.data  # pyright: ignore[reportAttributeAccessIssue]
    if padding.size(op.operands[0])[-1] % pack:
        op = in_one_row(padding, op)
    if not divisions_in(op):
        return
    block = op.regions[0].blocks[0]
    op.operands = (*op.operands, padding.seen(op.operands[0]))
    flags = [block.insert_arg(i1, len(block.args)) for _ in range(pack)]
    guard_divisions(op, block, flags, arith.OrIOp)


def in_one_row(padding: Padding, op: Operation) -> Operation:
    """The op on one dimension, in which neighbours are neighbours although rows have padding between them."""
    code, size = Emitter(op.location), padding.size(op.operands[0])
    flat = (prod(size),)
    rows = [reshaped(code, operand, size, flat) for operand in op.operands]
    padding.sizes.update(dict.fromkeys(rows, flat))
    types = [tensor_type(padded_shape(flat), element_type(result.type)) for result in op.results]
    new = recreate(op, operands=rows, result_types=types, regions=op.regions)
    code.append(new)
    padding.replace(op, code, *(reshaped(code, result, flat, size) for result in new.results))
    return new


def pad_assert(padding: Padding, op: Operation) -> None:
    """Make invisible lanes true."""
    (condition,) = op.operands
    op.operands[0] = padding.filled(condition, padding.axes(condition), 1, op)


def pad_masked(padding: Padding, op: Operation) -> None:
    """Touch, or count, only what is seen; what is not read is `other`, or anything."""
    if (first := op.operands[0]) in padding.sizes:
        mask, code = padding.seen(first), Emitter(op.location)
        if (given := mask_of(op)) is not None:
            mask = code.binary(arith.AndIOp, given, mask)
            padding.keep_size(first, mask)
        code.insert_before(op)
        set_mask(op, mask)


def pad_gather(padding: Padding, op: Operation) -> None:
    """Let invisible lanes read index 0."""
    indices = op.operands[1]
    if indices in padding.sizes:
        op.operands[1] = padding.filled(indices, padding.axes(indices), 0, op)


# Reductions and scans: what is not seen must not count.
#
# A function that is one op has a neutral element, which the invisible lanes hold:
#
#     addf -0.0    mulf 1.0    maximumf -inf    maxnumf NaN    andi -1    ...        (x + -0.0 is x, bit by bit, and x + 0.0 is not)
#
# Any other function is told which of its operands are valid, and takes the other one where only one is:
#
#     (a, b) -> f(a, b)      ==>      (a, va, b, vb) -> (va ? (vb ? f(a, b) : a) : b, va | vb)
#
# which is exact for every associative f, also for tuples (argmax); such reductions follow the order of the axis.
# Padding lies behind what is seen, so scans from the first element on need nothing of this, and those from the last one
# do.

NEUTRAL: dict[type[Operation], Callable[[int], int | float]] = {  # by the number of bits
    arith.AddfOp: lambda bits: -0.0,
    arith.MulfOp: lambda bits: 1.0,
    arith.MaximumfOp: lambda bits: -inf,
    arith.MinimumfOp: lambda bits: inf,
    arith.MaxnumfOp: lambda bits: nan,  # the other operand is the maximum, also when it is -inf or NaN
    arith.MinnumfOp: lambda bits: nan,
    arith.AddiOp: lambda bits: 0,
    arith.MuliOp: lambda bits: 1,
    arith.MaxSIOp: lambda bits: -(1 << bits - 1),
    arith.MinSIOp: lambda bits: (1 << bits - 1) - 1,
    arith.MaxUIOp: lambda bits: 0,
    arith.MinUIOp: lambda bits: -1,
    arith.AndIOp: lambda bits: -1,
    arith.OrIOp: lambda bits: 0,
    arith.XOrIOp: lambda bits: 0,
}


def combine(padding: Padding, op: Operation, counts: bool) -> None:
    """Keep the padding along the axis out of what is seen, where it `counts`; where the function divides, all padding."""
    padded = padding.axes(op.operands[0])
    axes = [axis for axis in padded if axis == axis_of(op)] if counts else []
    if divisions_in(op):
        mark_validity(padding, op, padded)
    elif axes and (only := only_op(op.regions[0].blocks[0])) is not None and type(only) in NEUTRAL:
        (source,) = op.operands
        op.operands[0] = padding.filled(source, axes, NEUTRAL[type(only)](bit_width(source.type)), op)
    elif axes:
        mark_validity(padding, op, axes)


def mark_validity(padding: Padding, op: Operation, axes: list[int]) -> None:
    """Combine pairs of values and whether they are seen along `axes`."""
    count, block = len(op.operands), op.regions[0].blocks[0]
    own = block.insert_arg(i1, count, op.location)
    other = block.insert_arg(i1, 2 * count + 1, op.location)
    guard_divisions(op, block, (own, other), arith.AndIOp)
    end = end_of(block)
    chosen: list[Operation] = []
    for left, right, made in zip(block.args[:count], block.args[count + 1 :], end.operands, strict=False):
        both = SelectOp.make(other, made, left, end.location)
        chosen += (both, SelectOp.make(own, both.results[0], right, end.location))
    valid = binary(arith.OrIOp, own, other, end.location)
    insert_before(end, *chosen, valid)
    end.operands = (*(choice.results[0] for choice in chosen[1::2]), valid.results[0])
    seen = padding.seen(op.operands[0], axes)
    types = [result.type for result in op.results]
    last = reduced_type(seen.type, axis_of(op)) if type(op) is tt.ReduceOp else seen.type  # pyright: ignore
    new = recreate(op, operands=(*op.operands, seen), result_types=(*types, last), regions=op.regions)
    if type(op) is tt.ReduceOp:
        new.attributes[IN_ORDER] = UnitAttr()
    insert_before(op, new)
    for old, result in zip(op.results, new.results, strict=False):
        padding.keep_size(old, result)
        old.replace_all_uses_with(result)
    padding.dead.append(op)


# Matrix products: zeros along K, of both operands, because 0 times infinity is no 0; other rows and columns are not
# seen.
#
# A load that may give anything in the invisible lanes gives zeros there, so that it stays a copy to shared memory that
# a loop starts early. Any other value is selected. In kernels that are reproducible the zeros of one operand are
# negative: adding 0 * 0 to a sum of -0 makes it +0, and adding -0 * 0 changes nothing.

UNIT_EXPONENT = 127  # the byte of a scale that is 1
TWO_NEGATIVE_ZEROS = 0x88 - 0x100  # of 4 bits each, as a byte: what integers are in a scaled dot
KEEPS_ZERO = frozenset(
    {
        arith.ExtFOp,
        arith.TruncFOp,
        arith.SIToFPOp,
        arith.UIToFPOp,
        arith.ExtSIOp,
        arith.ExtUIOp,
        arith.TruncIOp,
        tt.FpToFpOp,
        tt.BitcastOp,
    }
)


def pad_dot(padding: Padding, op: Operation) -> None:
    zeros = {index: zero for index in (0, 1) if (zero := negative_zero(op, index)) is not None}
    signed = list(zeros) if is_reproducible(op) else []
    for index, axis in ((0, -1), (1, -2)):
        axis += len(padding.size(op.operands[index]))
        if axis not in padding.axes(op.operands[index]):
            continue
        if signed or not is_zero_along(padding, op.operands[index], axis):
            zero = zeros[index] if index in signed[:1] else 0
            op.operands[index] = padding.filled(op.operands[index], [axis], zero, op)


def negative_zero(op: Operation, index: int) -> int | float | None:
    """-0 as an element of an operand, if there is one."""
    element = element_type(op.operands[index].type)
    if is_float(element):
        return -0.0 if of_ir(str(element)).has_negative_zero else None
    return TWO_NEGATIVE_ZEROS if type(op) is tt.DotScaledOp else None


def pad_scaled_dot(padding: Padding, op: Operation) -> None:
    """Values are 0 along K, and scales 1: as bytes some are NaN."""
    assert isinstance(op, tt.DotScaledOp)
    pad_dot(padding, op)
    for index, operand in enumerate(tuple(op.operands)):
        if operand in (op.a_scale, op.b_scale) and index > 2:
            last = len(padding.size(operand)) - 1
            if last in padding.axes(operand):
                unit = 1.0 if is_float(element_type(operand.type)) else UNIT_EXPONENT
                op.operands[index] = padding.filled(operand, [last], unit, op)


def is_zero_along(padding: Padding, value: SSAValue, axis: int) -> bool:
    """Return True if the invisible lanes along `axis` hold 0, or the load that defines them can be made to return 0."""
    owner = defining_op(value)
    if isinstance(owner, tt.LoadOp):
        if owner.other is None:
            zero = constant(0, value.type, owner.location)
            insert_before(owner, zero)
            owner.operands = (*owner.operands, zero.results[0])
            owner.properties["operandSegmentSizes"] = i32_array(1, 1, 1)
        return constant_value(owner.other) == 0  # pyright: ignore[reportArgumentType]
    if isinstance(owner, tt.TransOp):
        return is_zero_along(padding, owner.src, array_values(owner.order)[axis])
    if owner is not None and type(owner) in KEEPS_ZERO:
        return is_zero_along(padding, owner.operands[0], axis)
    return constant_value(value) == 0


@module_pass("pad-tiles")
def pad_tiles(module: ModuleOp) -> None:
    if not has_odd_tiles(module):
        return
    for function in functions(module):
        pad(function)
        if has_body(function):
            canonicalize(function)
            eliminate_common_subexpressions(function)


def has_odd_tiles(module: ModuleOp) -> bool:
    """Return True if a size of a tile is no power of two. Types are shared: each is looked at once."""
    types = {id(result.type): result.type for op in ops_in_order(*module.regions) for result in op.results}
    given = [type for function in functions(module) if isinstance(function, tt.FuncOp) for type in inputs_of(function)]
    return any(map(is_odd, (*types.values(), *given)))


def inputs_of(function: tt.FuncOp) -> Iterable[Attribute]:
    return function_type_of(function).inputs


def pad(function: Operation) -> None:
    """Give every value of `function` its padded type, then see to the ops that could show the padding."""
    padding = Padding(function)
    ops = padding.change_types()
    for op in ops:
        if padding.touches(op):
            if type(op) in SIZED:
                tt.set_visible_sizes(op, map(padding.size, op.operands))
            if (rule := RULES.get(type(op))) is not None:
                rule(padding, op)
            elif type(op) not in PLAIN:
                raise PassError(f"'{op.name}' has no rule for tiles whose sizes are not powers of two", op.location)
    padding.finish()


# What an invisible lane holds stays there.
PLAIN = (
    ELEMENTWISE
    | CONTROL_FLOW
    | {
        tt.BroadcastOp,
        tt.CallOp,
        tt.ExpandDimsOp,
        tt.JoinOp,
        tt.PrintOp,
        tt.ReturnOp,
        tt.SortRunsOp,
        tt.SplatOp,
        tt.SplitOp,
        tt.TransOp,
        ub.PoisonOp,
    }
)
# Who prints, or counts bytes and operations, asks these for their sizes.
SIZED = frozenset({tt.AtomicCASOp, tt.AtomicRMWOp, tt.DotOp, tt.DotScaledOp, tt.LoadOp, tt.PrintOp, tt.StoreOp})
RULES: dict[type[Operation], Callable[[Padding, Operation], None]] = {
    arith.ConstantOp: pad_constant,
    tt.MakeRangeOp: pad_range,
    **dict.fromkeys(DIVISIONS, pad_division),
    tt.MapElementwiseOp: pad_map,
    tt.AssertOp: pad_assert,
    **dict.fromkeys(MASKS, pad_masked),
    tt.GatherOp: pad_gather,
    tt.ReduceOp: lambda padding, op: combine(padding, op, counts=True),
    tt.ScanOp: lambda padding, op: combine(padding, op, counts=is_true(op.properties["reverse"])),
    tt.DotOp: pad_dot,
    tt.DotScaledOp: pad_scaled_dot,
    tt.ReshapeOp: views.pad_reshape,
    tt.ResizeOp: views.pad_resize,
    tt.CatOp: views.pad_cat,
}
