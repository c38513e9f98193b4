"""Pad tiles to powers of two with invisible lanes: GPU layouts support no other sizes.

    %i = tt.make_range {end = 96, start = 0}          %i = tt.make_range {end = 128, start = 0} : tensor<128xi32>
    %x = tt.load %p : tensor<96x!tt.ptr<f32>>         %x = tt.load %p, %seen : tensor<128x!tt.ptr<f32>>
    %s = "tt.reduce"(%x) ... addf               ==>   %y = arith.select %seen, %x, %minus_zero
                                                      %s = "tt.reduce"(%y) ... addf

where ``%seen`` is ``0..127 < 96``, computed once at the start of the function. Every dimension of every type is rounded
up to the next power of two, so that most ops (elementwise ops, loops, branches and calls) only change their types: what
they compute in the invisible lanes is never observed. `RULES` lists the ops that could expose it, and how each is kept
from doing so: accesses get a mask, reductions neutral elements, dots zeros along K, views with other rows a gather.
Stage: TTIR to TTIR, GPUs, behind all passes over TTIR. Cost: one look at the types where no tile is odd.
"""

from collections.abc import Callable, Sequence
from functools import cache
from math import inf, nan, prod

from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.analysis.value_flows import CONTROL_FLOW
from tilework.errors import PassError
from tilework.ir import arith, tt, ub
from tilework.ir.arith import SelectOp, binary
from tilework.ir.attr_text import is_true
from tilework.ir.create import set_type
from tilework.ir.effects import DIVISIONS as QUOTIENTS
from tilework.ir.effects import ELEMENTWISE
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.module_facts import IN_ORDER, is_reproducible
from tilework.ir.nesting import body_of, end_of, only_op, start_of, values_of
from tilework.ir.rewrite import constant, constant_value, defining_op, erase_op, insert_before, recreate, splat_element
from tilework.ir.tt.function_ops import function_type, function_type_of
from tilework.ir.tt.shape_ops import reduced_type
from tilework.ir.types import (
    Shape,
    array_values,
    axis_of,
    bit_width,
    element_type,
    i1,
    i32,
    i32_array,
    i64,
    int_attr,
    int_property,
    is_float,
    is_odd,
    is_pointer,
    is_tensor,
    shape_of,
    tensor_type,
)
from tilework.numerics.formats import of_ir
from tilework.transforms.building.emitter import Emitter, mask_of, set_mask
from tilework.transforms.common.canonicalize import canonicalize
from tilework.transforms.common.cse import eliminate_common_subexpressions
from tilework.transforms.passes import module_pass


def power_above(size: int) -> int:
    """The next power of two: 96 gives 128, 64 gives 64."""
    return 1 << (size - 1).bit_length()


def padded_shape(shape: Shape) -> Shape:
    return tuple(map(power_above, shape))


@cache
def padded_type(type: Attribute) -> Attribute:
    """``tensor<96x3xf32>`` gives ``tensor<128x4xf32>``; any other type is its own."""
    return tensor_type(padded_shape(shape_of(type)), element_type(type)) if is_tensor(type) else type


class Padding:
    """A function whose tiles are being padded; `sizes` maps each padded value to the shape that the user sees.

    padding.change_types()      tensor<96x3xf32> becomes tensor<128x4xf32>
    padding.size(value)         (96, 3)
    padding.seen(value)         ``0..127 < 96`` and ``0..3 < 3``, as tensor<128x4xi1>, at the start of the function
    """

    def __init__(self, function: Operation) -> None:
        self.function = function
        self.sizes: dict[SSAValue, Shape] = {}
        self.start = Emitter(function.location)  # ops for the start of the function
        self.masks: dict[tuple[Shape, Shape], SSAValue] = {}
        self.dead: list[Operation] = []

    def change_types(self) -> list[Operation]:
        """Pad the type of each value. Return all ops, in program order."""
        if isinstance(self.function, tt.FuncOp):
            own = function_type_of(self.function)
            types = [tuple(map(padded_type, types)) for types in (own.inputs, own.outputs)]
            self.function.properties["function_type"] = function_type(*types)
        ops = ops_in_order(*self.function.regions)
        for op in (self.function, *ops):
            for value in values_of(op):
                if is_odd(value.type):
                    self.sizes[value] = shape_of(value.type)
                    set_type(value, padded_type(value.type))
        return ops

    def finish(self) -> None:
        """Insert the ops for the start of the function, and erase replaced ops."""
        if self.start.ops:
            self.start.insert_before(start_of(body_of(self.function)))
        for op in reversed(self.dead):
            erase_op(op)

    def touches(self, op: Operation) -> bool:
        """Return True if an operand or a result of `op` is a padded tile."""
        return any(value in self.sizes for value in (*op.operands, *op.results))

    def size(self, value: SSAValue) -> Shape:
        """The shape of `value` as the user sees it."""
        return self.sizes.get(value) or shape_of(value.type)

    def axes(self, value: SSAValue) -> list[int]:
        """The dimensions of `value` that are padded."""
        return [
            axis
            for axis, (seen, size) in enumerate(zip(self.size(value), shape_of(value.type), strict=True))
            if seen != size
        ]

    def seen(self, value: SSAValue, axes: Sequence[int] | None = None) -> SSAValue:
        """The mask of visible lanes of `value`, along `axes` if given."""
        padded, size = shape_of(value.type), self.size(value)
        if axes is not None:
            size = tuple(size[axis] if axis in axes else padded[axis] for axis in range(len(size)))
        return self.mask(size, padded)

    def mask(self, size: Shape, shape: Shape) -> SSAValue:
        """The mask of lanes of a tile of `shape` whose indices are below `size`."""
        if (known := self.masks.get((size, shape))) is None:
            known = self.masks[size, shape] = self.make_mask(size, shape)
        return known

    def make_mask(self, size: Shape, shape: Shape) -> SSAValue:
        code, mask = self.start, None
        for axis, (limit, extent) in enumerate(zip(size, shape, strict=True)):
            if limit == extent:
                continue
            positions = code.append(tt.MakeRangeOp.make(0, extent, code.loc))
            inside = code.compare("slt", positions, limit)
            inside = code.expanded(inside, [other for other in range(len(shape)) if other != axis])
            inside = code.broadcast(inside, shape)
            mask = inside if mask is None else code.binary(arith.AndIOp, mask, inside)
        assert mask is not None, f"all of {shape} is seen"
        return mask

    def filled(self, value: SSAValue, axes: Sequence[int], fill: int | float, before: Operation) -> SSAValue:
        """`value` with `fill` in the invisible lanes along `axes`, computed in front of `before`."""
        code = Emitter(before.location)
        chosen = code.select(self.seen(value, axes), value, code.constant(fill, value.type))
        code.insert_before(before)
        self.keep_size(value, chosen)
        return chosen

    def keep_size(self, value: SSAValue, *others: SSAValue) -> None:
        """Record that `others` have the visible size of `value`."""
        if (size := self.sizes.get(value)) is not None:
            self.sizes.update(dict.fromkeys(others, size))

    def replace(self, op: Operation, code: Emitter, *results: SSAValue) -> None:
        """Put `code` in front of `op`, and let `results` replace its results.

        A value has one visible size: where an existing value of another size would replace a result (``tt.resize`` from
        3 to 4 lanes, which are padded to 4), a view of it does.
        """
        for old, new in zip(op.results, results, strict=True):
            if new.owner not in code.ops and self.size(new) != self.size(old):
                new = code.append(tt.ReshapeOp.make(new, old.type, code.loc))  # pyright: ignore[reportArgumentType]
            if old in self.sizes:
                self.sizes[new] = self.sizes[old]
            old.replace_all_uses_with(new)
        insert_before(op, *code.ops)
        self.dead.append(op)


# Reshapes, resizes and concatenations: visible elements keep their order, with padding between them.
#
#     tensor<6x4xf32> -> tensor<3x2x4xf32>     tensor<8x4xf32> -> tensor<4x2x4xf32>: no element moves, a reshape
#     tensor<3x5xf32> -> tensor<15xf32>        tensor<4x8xf32> -> tensor<16xf32>: element 5 moves from position 8 to 5,
#                                              a gather


def pad_reshape(padding: Padding, op: Operation) -> None:
    assert isinstance(op, tt.ReshapeOp)
    code = Emitter(op.location)
    padding.replace(op, code, reshaped(code, op.src, padding.size(op.src), padding.size(op.result)))


def reshaped(code: Emitter, value: SSAValue, before: Shape, after: Shape) -> SSAValue:
    """Reshape `value`, whose visible shape is `before`, to a padded tile of visible shape `after`."""
    if not keeps_positions(before, after):
        value = flat_gather(code, value, before, after)
    return code.reshaped(value, padded_shape(after))


def keeps_positions(before: Shape, after: Shape) -> bool:
    """Return True if every element has the same position in both padded tiles."""
    return prod(padded_shape(before)) == prod(padded_shape(after)) and jumps(before) == jumps(after)


def jumps(shape: Shape) -> dict[int, int]:
    """The padding after each run of elements: {5: 3} for rows of 5 that are padded to 8.

    Element e of the tile has the position e + sum of (e // elements) * skipped.
    """
    found: dict[int, int] = {}
    elements, positions = 1, 1
    for size, padded in reversed(tuple(zip(shape, padded_shape(shape), strict=True))):
        elements *= size
        if size != padded and elements < prod(shape):
            found[elements] = (padded - size) * positions
        positions *= padded
    return found


def flat_gather(code: Emitter, value: SSAValue, before: Shape, after: Shape) -> SSAValue:
    """Gather a padded tile of visible shape `after`, in one dimension, from a padded tile of `before`."""
    source, count = prod(shape_of(value.type)), prod(padded_shape(after))
    position = code.append(tt.MakeRangeOp.make(0, count, code.loc))
    element = position
    if jumps(after):
        element, positions, elements = code.constant(0, position.type), 1, 1
        for size, padded in reversed(tuple(zip(after, padded_shape(after), strict=True))):
            along = code.binary(arith.RemUIOp, code.binary(arith.DivUIOp, position, positions), padded)
            element = code.binary(arith.AddiOp, element, code.binary(arith.MuliOp, along, elements))
            positions, elements = positions * padded, elements * size
    found = element
    for elements, skipped in jumps(before).items():
        padding = code.binary(arith.MuliOp, code.binary(arith.DivUIOp, element, elements), skipped)
        found = code.binary(arith.AddiOp, found, padding)
    found = code.binary(arith.MinSIOp, found, source - 1)
    flat = code.append(tt.ReshapeOp.make(value, tensor_type((source,), element_type(value.type)), code.loc))
    return gathered(code, flat, found)


def gathered(code: Emitter, source: SSAValue, positions: SSAValue) -> SSAValue:
    """The rows of `source` at `positions`; pointers are gathered as integers."""
    pointer = element_type(source.type)
    if is_pointer(pointer):
        source = code.append(tt.PtrToIntOp.make(source, tensor_type(shape_of(source.type), i64), code.loc))
    made = code.append(tt.GatherOp.make(source, positions, 0, code.loc))
    if is_pointer(pointer):
        made = code.append(tt.IntToPtrOp.make(made, tensor_type(shape_of(made.type), pointer), code.loc))
    return made


def pad_resize(padding: Padding, op: Operation) -> None:
    code = Emitter(op.location)
    padding.replace(op, code, resized(code, op.operands[0], shape_of(op.results[0].type)))


def resized(code: Emitter, value: SSAValue, shape: Shape) -> SSAValue:
    """Keep the first elements along each dimension, with anything after them; all sizes are powers of two."""
    for axis, size in enumerate(shape):
        have = shape_of(value.type)[axis]
        if have < size:
            value = repeated(code, value, axis, size // have)
        elif have > size:
            value = first_of(code, value, axis, have // size)
    return value


def repeated(code: Emitter, value: SSAValue, axis: int, times: int) -> SSAValue:
    shape = shape_of(value.type)
    wide = code.broadcast(code.expanded(value, [axis]), (*shape[:axis], times, *shape[axis:]))
    return code.reshaped(wide, (*shape[:axis], times * shape[axis], *shape[axis + 1 :]))


def first_of(code: Emitter, value: SSAValue, axis: int, parts: int) -> SSAValue:
    """Return the first of `parts` equal parts; each split halves their count."""
    shape = shape_of(value.type)
    left = (*shape[:axis], shape[axis] // parts, *shape[axis + 1 :])
    value = code.reshaped(value, (*shape[:axis], parts, *left[axis:]))
    order = (*range(axis), *range(axis + 1, len(shape) + 1), axis)
    value = code.append(tt.TransOp.make(value, order, code.loc))
    while parts > 1:
        parts //= 2
        value = code.append(tt.SplitOp.make(code.reshaped(value, (*left, parts, 2)), code.loc))
    return code.reshaped(value, left)


def pad_cat(padding: Padding, op: Operation) -> None:
    """Select the first tile below its size, and the second one from there on."""
    lhs, rhs = op.operands
    shape, size = shape_of(op.results[0].type), padding.size(lhs)[0]
    code = Emitter(op.location)
    position = code.append(tt.MakeRangeOp.make(0, shape[0], code.loc))
    others = range(1, len(shape))

    def along(line: SSAValue) -> SSAValue:
        return code.broadcast(code.expanded(line, others), shape)

    behind = code.binary(arith.MaxSIOp, code.binary(arith.AddiOp, position, -size), 0)
    second = gathered(code, rhs, along(code.binary(arith.MinSIOp, behind, shape_of(rhs.type)[0] - 1)))
    is_first = along(code.compare("slt", position, size))
    padding.replace(op, code, code.select(is_first, resized(code, lhs, shape), second))


# Ops that work lane by lane and could expose the invisible ones: constants, accesses, divisions, prints, asserts.

# Undefined where the divisor is 0.
DIVISIONS = QUOTIENTS | {arith.FloorDivSIOp, arith.RemSIOp, arith.RemUIOp}
REPEATS = (tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp)


def pad_constant(padding: Padding, op: Operation) -> None:
    """Repeat the element: the frontend creates only splat constants."""
    value, (result,) = op.properties["value"], op.results
    assert isinstance(value, DenseIntOrFPElementsAttr) and splat_element(value) is not None, f"{value} is no splat"
    first = value.data.data[: value.get_element_type().compile_time_size]  # its bits, also those of a NaN
    op.properties["value"] = DenseIntOrFPElementsAttr(result.type, BytesAttr(first))  # pyright: ignore


def pad_range(padding: Padding, op: Operation) -> None:
    """Extend the range."""
    start = int_property(op, "start")
    op.properties["end"] = int_attr(start + shape_of(op.results[0].type)[0], i32)


def pad_division(padding: Padding, op: Operation) -> None:
    """Divide by 1 in invisible lanes; a divisor that all lanes share is the user's."""
    divisor = op.operands[1]
    if not is_uniform(divisor):
        op.operands[1] = padding.filled(divisor, padding.axes(divisor), 1, op)


def is_uniform(value: SSAValue) -> bool:
    """Return True if all lanes hold the same value."""
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
    """Pass the mask of visible lanes to a region that divides."""
    pack = int_property(op, "pack")
    if padding.size(op.operands[0])[-1] % pack:
        op = in_one_row(padding, op)
    if not divisions_in(op):
        return
    block = op.regions[0].blocks[0]
    op.operands = (*op.operands, padding.seen(op.operands[0]))
    flags = [block.insert_arg(i1, len(block.args)) for _ in range(pack)]
    guard_divisions(op, block, flags, arith.OrIOp)


def in_one_row(padding: Padding, op: Operation) -> Operation:
    """Apply the op to one dimension, where neighbours are adjacent although rows are padded."""
    code, size = Emitter(op.location), padding.size(op.operands[0])
    flat = (prod(size),)
    rows = [reshaped(code, operand, size, flat) for operand in op.operands]
    padding.sizes.update(dict.fromkeys(rows, flat))
    types = [tensor_type(padded_shape(flat), element_type(result.type)) for result in op.results]
    new = recreate(op, operands=rows, result_types=types, regions=op.regions)
    code.append(new)
    padding.replace(op, code, *(reshaped(code, result, flat, size) for result in new.results))
    return new


def fill_operand(index: int, fill: int) -> Callable[[Padding, Operation], None]:
    """Return a rule: invisible lanes of an operand hold `fill`."""

    def rule(padding: Padding, op: Operation) -> None:
        if (value := op.operands[index]) in padding.sizes:
            op.operands[index] = padding.filled(value, padding.axes(value), fill, op)

    return rule


def pad_masked(padding: Padding, op: Operation) -> None:
    """Access, or count, only visible elements; the invisible ones are `other`, or undefined."""
    if (first := op.operands[0]) in padding.sizes:
        mask, code = padding.seen(first), Emitter(op.location)
        if (given := mask_of(op)) is not None:
            mask = code.binary(arith.AndIOp, given, mask)
            padding.keep_size(first, mask)
        code.insert_before(op)
        set_mask(op, mask)


# Reductions and scans: invisible lanes must not contribute.
#
# A combine function of one op has a neutral element, which the invisible lanes are filled with:
#
#     addf -0.0    mulf 1.0    maximumf -inf    maxnumf NaN    andi -1    ...
#
# (x + -0.0 is x, bit by bit; x + 0.0 is not.)
#
# Any other function gets a validity flag beside each operand, and returns the valid one where only one is:
#
#     (a, b) -> f(a, b)      ==>      (a, va, b, vb) -> (va ? (vb ? f(a, b) : a) : b, va | vb)
#
# which is exact for every associative f, also for tuples (argmax); such reductions follow the order of the axis.
# Padding comes after the visible elements, so forward scans need none of this, and reverse ones do.

NEUTRAL: dict[type[Operation], Callable[[int], int | float]] = {  # by bit width
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
    """Keep padding along the axis out of the result if it `counts`; all padding, where the function divides."""
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
    """Combine pairs of a value and a flag: visible along `axes`."""
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


# Dots: zeros along K in both operands, because 0 times infinity is not 0; padded rows and columns are invisible.
#
# A load that may return anything in the invisible lanes returns zeros there, so that it remains a copy to shared memory
# that a loop starts early. Any other value goes through a select. In reproducible kernels the zeros of one operand are
# negative: adding 0 * 0 to an accumulator of -0 makes it +0, and adding -0 * 0 changes nothing.

UNIT_EXPONENT = 127  # the byte of a scale that is 1
TWO_NEGATIVE_ZEROS = 0x88 - 0x100  # two 4-bit floats in a byte: integer operands of a scaled dot hold those
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
    """Return -0 as an element of an operand; None if its type has none."""
    element = element_type(op.operands[index].type)
    if is_float(element):
        return -0.0 if of_ir(str(element)).has_negative_zero else None
    return TWO_NEGATIVE_ZEROS if type(op) is tt.DotScaledOp else None


def pad_scaled_dot(padding: Padding, op: Operation) -> None:
    """Fill values with 0 along K, and scales with 1: some scale bytes are NaN."""
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
    signatures = [function_type_of(function) for function in functions(module) if isinstance(function, tt.FuncOp)]
    return any(map(is_odd, (*types.values(), *(type for signature in signatures for type in signature.inputs))))


def pad(function: Operation) -> None:
    """Give every value of `function` its padded type, then apply the rules of ops that could expose the padding."""
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


# Ops that never move the content of an invisible lane to a visible one.
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
# Ops that record their visible sizes, for printing and for counts of bytes and operations.
SIZED = frozenset({tt.AtomicCASOp, tt.AtomicRMWOp, tt.DotOp, tt.DotScaledOp, tt.LoadOp, tt.PrintOp, tt.StoreOp})
RULES: dict[type[Operation], Callable[[Padding, Operation], None]] = {
    arith.ConstantOp: pad_constant,
    tt.MakeRangeOp: pad_range,
    **dict.fromkeys(DIVISIONS, pad_division),
    tt.MapElementwiseOp: pad_map,
    tt.AssertOp: fill_operand(0, 1),  # they do not fail
    **dict.fromkeys((tt.LoadOp, tt.StoreOp, tt.AtomicRMWOp, tt.AtomicCASOp, tt.HistogramOp), pad_masked),
    tt.GatherOp: fill_operand(1, 0),  # they read index 0
    tt.ReduceOp: lambda padding, op: combine(padding, op, counts=True),
    tt.ScanOp: lambda padding, op: combine(padding, op, counts=is_true(op.properties["reverse"])),
    tt.DotOp: pad_dot,
    tt.DotScaledOp: pad_scaled_dot,
    tt.ReshapeOp: pad_reshape,
    tt.ResizeOp: pad_resize,
    tt.CatOp: pad_cat,
}
