"""`amdg.extract_slice` and `amdg.concat`: each thread has all elements already, in other registers."""

from xdsl.ir import Operation

from tilework.ir import amdg
from tilework.ir.encodings import layout_of
from tilework.ir.types import array_values, shape_of
from tilework.targets.amd.lower import lowers
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.gpu.views import moved, register_coords, view


@lowers(amdg.ExtractSliceOp)
def lower_extract_slice(low: Lowering, op: Operation) -> Registers:
    starts = array_values(op.properties["static_offsets"])
    return view(low, op, lambda coords: tuple(at + start for at, start in zip(coords, starts, strict=True)))


@lowers(amdg.ConcatOp)
def lower_concat(low: Lowering, op: Operation) -> Registers:
    """Select the tile by its place in the grid, whose last dimension comes first."""
    source, result = layout_of(op.operands[0].type), layout_of(op.results[0].type)
    part, whole = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    found = moved(source, result, lambda coords: tuple(at % size for at, size in zip(coords, part, strict=True)))
    registers = []
    for coords, register in zip(register_coords(result), found, strict=True):
        tile = 0
        for at, size, all in zip(coords, part, whole, strict=True):
            tile = tile * (all // size) + at // size
        registers.append(low[op.operands[tile]][register])
    return tuple(registers)
