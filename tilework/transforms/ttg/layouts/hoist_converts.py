"""Hoist the remaining conversions to where they move less data, or where they can be pipelined.

    over an extension       %x = arith.extf %v : f16 #a to f32 #a        %w = convert_layout %v : f16 #a -> #b
                            %y = convert_layout %x : f32 #a -> #b   ==>  %y = arith.extf %w : f16 #b to f32 #b

    into a branch           %x = scf.if %c { yield %v } else { yield %zero }       one branch converts, the other
                            %y = convert_layout %x                                 computes in the new layout

    to the loads            %x = arith.addf %v, %u ; dot(convert_layout %x)        dot operands are converted
                                                                                   where they are loaded

Each hoist is a slice that ends at the new conversion; ops after it are recomputed in the new layout.
"""

from xdsl.ir import Operation, OpResult, SSAValue

from tilework.ir import arith, scf, tt, ttg
from tilework.ir.encodings import with_encoding
from tilework.ir.nesting import behind, end_of
from tilework.ir.rewrite import insert_before, put, recreate
from tilework.ir.types import bit_width
from tilework.layouts.encodings import Distributed
from tilework.transforms.ttg.layouts.backward_slice import Slice, backward_slice
from tilework.transforms.ttg.layouts.layout_rules import DOTS, backward, encoding, moves_no_data
from tilework.transforms.ttg.layouts.rematerialize import Rematerializer, Yields, conversions, target_layout

WIDENING = frozenset(
    {arith.ExtSIOp.name, arith.ExtUIOp.name, arith.ExtFOp.name, tt.BroadcastOp.name, tt.ExpandDimsOp.name}
)
LOADS = frozenset({tt.LoadOp.name, tt.DescriptorLoadOp.name})


def hoist_converts(function: Operation) -> None:
    """Move the conversions of `function` over extensions, into branches, and to the loads before dots."""
    for hoist in (hoist_over_extension, hoist_into_branches, hoist_to_loads):
        remat = Rematerializer()
        for convert in conversions(function):
            if not hoist(convert, remat):
                remat.keep(convert)
        remat.finish()


# Over extensions and broadcasts


def hoist_over_extension(convert: Operation, remat: Rematerializer) -> bool:
    """Convert the smaller operand of the only widening op in between; return True if this was possible."""
    layout = target_layout(convert)
    if layout.operand_index is not None:
        return False
    found = remat.slice_of(convert._operands[0], convert, layout, is_widening)
    if found is None:
        return False
    blocker: OpResult | None = None
    for value in found.stopped:
        narrow = backward(value.op, found.layouts[value])
        if narrow is None:
            return False
        rest = remat.slice_of(value.op._operands[0], value.op, narrow)
        if rest is not None and found.agrees(rest):
            found.merge(rest)
        elif blocker is None:
            blocker = value
        else:
            return False
    if blocker is None or (narrow := backward(blocker.op, found.layouts[blocker])) is None:
        return False
    op = blocker.op
    source = op._operands[0]
    smaller = ttg.ConvertLayoutOp.make(source, with_encoding(source.type, narrow), convert.location)
    types = (with_encoding(blocker.type, found.layouts[blocker]),)
    wider = recreate(op, operands=smaller.results, result_types=types)
    insert_before(op, smaller, wider)
    remat.rebuild_for(convert, found, {blocker: wider.results[0]})
    return True


def is_widening(op: Operation) -> bool:
    """Return True if the result has more bits than the operand."""
    if op.name == tt.FpToFpOp.name:
        return bit_width(op._operands[0].type) < bit_width(op.results[0].type)
    return op.name in WIDENING


# Into branches


def hoist_into_branches(convert: Operation, remat: Rematerializer) -> bool:
    """Convert in the branches that need it, if one does not; return True if this was possible."""
    layout = target_layout(convert)
    if layout.operand_index is not None:
        return False
    found = remat.slice_of(convert._operands[0], convert, layout, lambda op: op.name == scf.IfOp.name)
    if found is None or not found.stopped:
        return False
    outside: list[OpResult] = []
    inside: list[tuple[OpResult, int]] = []
    for value in tuple(found.stopped):
        missing = slice_branches(value, found, remat)
        if len(missing) == 2 or (missing and not isinstance(value.op.parent_op(), scf.ForOp)):
            outside.append(value)
        else:
            inside += [(value, side) for side in missing]
    if len(outside) == len(found.stopped):
        return False
    seeds: dict[SSAValue, SSAValue] = {value: converted_behind(value, found, convert) for value in outside}
    yields: Yields = {}
    for value, side in inside:
        end = end_of(value.op.regions[side].first_block)
        yields[value, side] = put(end, converted(end._operands[value.index], found.layouts[value], convert))
    remat.rebuild_for(convert, found, seeds, yields)
    return True


def slice_branches(value: OpResult, found: Slice, remat: Rematerializer) -> list[int]:
    """Add the values that the branches recompute for `value` to `found`; return the branches that cannot."""
    sides: list[Slice | None] = []
    for region in value.op.regions:
        end = end_of(region.first_block)
        side = remat.slice_of(end._operands[value.index], end, found.layouts[value])
        sides.append(side if side is not None and found.agrees(side) else None)
    first, second = sides
    if first is not None and second is not None and not first.agrees(second):
        second = None
    missing = [index for index, side in enumerate((first, second)) if side is None]
    if not missing or (len(missing) == 1 and isinstance(value.op.parent_op(), scf.ForOp)):
        for side in (first, second):
            if side is not None:
                found.merge(side)
    return missing


def converted_behind(value: SSAValue, found: Slice, convert: Operation) -> SSAValue:
    """Convert a value of the slice to its new layout, directly after its definition."""
    return put(behind(value), converted(value, found.layouts[value], convert))


def converted(value: SSAValue, layout: Distributed, convert: Operation) -> ttg.ConvertLayoutOp:
    """Return a conversion like `convert` of another value."""
    return ttg.ConvertLayoutOp.make(value, with_encoding(value.type, layout), convert.location)


# To the loads before a dot


def hoist_to_loads(convert: Operation, remat: Rematerializer) -> bool:
    """Convert dot operands directly after their loads, so that the conversion can be pipelined; return True if this was
    possible.
    """
    if not feeds_dot(convert):
        return False
    layout = target_layout(convert)
    found = backward_slice(convert._operands[0], convert, layout, remat.known, lambda op: not moves_no_data(op))
    if found is None or not starts_from_loads(found):
        return False
    loads = [value for value in found.layouts if is_load(value)]
    if len(loads) == len(found.layouts) and not found.reused:
        return False
    remat.rebuild_for(convert, found, {value: converted_behind(value, found, convert) for value in loads})
    return True


def feeds_dot(convert: Operation) -> bool:
    """Return True if a tensor-core dot on registers follows in the same block."""
    op = convert.next_op
    while op is not None:
        if op.name in DOTS:
            first = encoding(op._operands[0])
            if first is not None and first.operand_index is not None and first.root.is_accumulator:
                return True
        op = op.next_op
    return False


def is_load(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and value.op.name in LOADS


def starts_from_loads(found: Slice) -> bool:
    """Return True if the slice starts from loads and constants: then recomputing it moves no data."""
    return all(
        isinstance(value, OpResult)
        and (value.op.name in LOADS or value.op.name == arith.ConstantOp.name or moves_no_data(value.op))
        for value in (*found.layouts, *found.reused.values())
    )
