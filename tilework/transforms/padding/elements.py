"""Ops that take lanes one by one and could show the invisible ones: constants, accesses, divisions, prints, asserts."""

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr
from xdsl.ir import Block, Operation, SSAValue

from tilework.ir import tt
from tilework.ir.effects import DIVISIONS as QUOTIENTS
from tilework.ir.nesting import start_of
from tilework.ir.rewrite import constant_value, defining_op, recreate, splat_element
from tilework.ir.types import element_type, i1, i32, int_attr, shape_of, tensor_type
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.building.masks import mask_of, set_mask
from tilework.transforms.padding.padded import Padding, padded_shape
from tilework.transforms.padding.views import reshaped

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
    """Whether all lanes hold the same."""
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
    """Where the region divides, it is told which lanes are seen."""
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
    """What is not seen holds."""
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
    """What is not seen comes from the first place."""
    indices = op.operands[1]
    if indices in padding.sizes:
        op.operands[1] = padding.filled(indices, padding.axes(indices), 0, op)
