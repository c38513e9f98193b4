"""Transpose dot operands in registers before they are stored to LDS, so that they are read along K.

    %v = tt.load %p : 64x128xf16, sizePerThread = [1, 8], rows are K      one row of K per thread: scalar LDS reads
    ttg.local_store %v, %buffer : ... #ttg.swizzled_shared<{vec = 1, ...}>

    %v = tt.load %q : sizePerThread = [4, 8]                              four rows, still 8 adjacent elements of each
    %t = amdg.in_thread_transpose %v : #blocked2 -> #linear               the same elements, those along K first
    ttg.local_store %t, %buffer : ... #ttg.amd_rotating_shared<{vec = 4, ..., order = [0, 1]}>

Fires for a buffer that only dots read, that is filled by `tt.load`s of one blocked layout whose fastest dimension is
not K, and where a thread can hold at least two elements along K. A buffer with an unknown use is left alone.
Stage: TTGIR to TTGIR. Cost: one walk, the flow of descriptors.
"""

from collections.abc import Iterator
from dataclasses import replace

from xdsl.ir import Operation, OpResult, SSAValue

from tilework.analysis.alias import Aliases, aliases
from tilework.analysis.value_flows import CONTROL_FLOW, reached, sources_of
from tilework.ir import amdg, tt, ttg
from tilework.ir.create import set_type
from tilework.ir.encodings import dot_operand_of, encoding_of, with_encoding
from tilework.ir.nesting import owner_of
from tilework.ir.rewrite import put, recreate, replace_op
from tilework.ir.ttg.memory_types import MemDescType, retyped
from tilework.ir.types import bit_width, shape_of
from tilework.layouts.amd import RotatingShared, operand_swizzle
from tilework.layouts.encodings import Blocked, DotOperand, Linear
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import to_linear
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.emitter import laid_out
from tilework.transforms.passes import function_pass

STORE_BITS = 64  # that a thread should write to LDS at a time
PASSED_ON = CONTROL_FLOW | {ttg.MemDescIndexOp, ttg.LocalDeallocOp}


@function_pass("tritonamdgpu-in-thread-transpose")
def in_thread_transpose(function: Operation) -> None:
    known = aliases(function)
    for buffer in dict.fromkeys(buffer for named in known.values() for buffer in named):
        if (found := operand_in(buffer, known)) is not None:
            transpose_in_threads(found)


@light_dataclass
class Operand:
    """A buffer that holds a dot operand: its descriptors, the ops that fill it, the loads of their values, and the
    layout in which dots read it.
    """

    descriptors: list[SSAValue]
    fills: list[Operation]
    loads: list[Operation]
    dot: DotOperand
    given: Blocked
    wanted: Blocked


def operand_in(buffer: SSAValue, known: Aliases) -> Operand | None:
    """Return the operand stored in `buffer`; None if its layout should not change."""
    descriptors = [value for value, named in known.items() if buffer in named]
    if any(len(known[value]) > 1 for value in descriptors):
        return None
    assert isinstance(buffer, OpResult)
    fills = [buffer.op] if buffer.op.operands else []
    dots: set[DotOperand | None] = set()
    for op in (use.operation for value in descriptors for use in value.uses):
        if type(op) is ttg.LocalStoreOp:
            fills.append(op)
        elif type(op) is ttg.LocalLoadOp:
            dots.add(dot_operand_of(op.results[0].type))
        elif type(op) not in PASSED_ON:
            return None
    dot = dots.pop() if len(dots) == 1 else None
    if dot is None or not dot.parent.is_accumulator or not fills:
        return None
    loads = list(dict.fromkeys(load for fill in fills for load in loads_behind(fill.operands[0])))
    types = {load.results[0].type for load in loads if type(load) is tt.LoadOp}
    if len(types) != 1 or any(type(load) is not tt.LoadOp for load in loads):
        return None
    (type_,) = types
    given, shape = encoding_of(type_), shape_of(type_)
    if not isinstance(given, Blocked) or len(shape) != 2 or given.order[0] == dot.k_dim or given.cga:
        return None
    k = dot.k_dim
    held = min(shape[k] // (given.threads_per_warp[k] * given.warps_per_cta[k]), STORE_BITS // bit_width(type_))
    sizes = tuple(held if dim == k else size for dim, size in enumerate(given.size_per_thread))
    return Operand(descriptors, fills, loads, dot, given, replace(given, size_per_thread=sizes)) if held > 1 else None


def loads_behind(value: SSAValue) -> Iterator[Operation]:
    """Yield the ops that define a value, looking through loops and branches."""
    for one in reached([value], handed_on):
        if not handed_on(one) and (op := owner_of(one)) is not None:
            yield op


def handed_on(value: SSAValue) -> list[SSAValue]:
    """Return the values that loops and branches pass to `value`."""
    before, within = sources_of(value)
    return before + within


def transpose_in_threads(operand: Operand) -> None:
    k, wanted = operand.dot.k_dim, operand.wanted
    for load in operand.loads:
        operands = [laid_out(load, value, wanted) for value in load.operands]
        given = load.results[0].type
        new = recreate(load, operands=operands, result_types=(with_encoding(given, wanted),))
        replace_op(load, new, ttg.ConvertLayoutOp.make(new.results[0], given, load.location))
    for fill in operand.fills:
        value = laid_out(fill, fill.operands[0], wanted)
        shape = shape_of(value.type)
        transposed = Linear(along_first(to_linear(wanted, shape), k, wanted.size_per_thread))
        type_ = with_encoding(value.type, transposed)
        made = amdg.InThreadTransposeOp.create(operands=(value,), result_types=(type_,), location=fill.location)
        fill.operands[0] = put(fill, made)
    order = (k, 1 - k)
    for value in operand.descriptors:
        type_ = value.type
        assert isinstance(type_, MemDescType)
        shape = type_.dims[-2:]
        swizzle = operand_swizzle(operand.dot, shape, order, bit_width(type_.element_type), False, ())
        encoding = RotatingShared(*swizzle, order)
        set_type(value, retyped(type_, type_.dims, encoding))


def along_first(layout: LinearLayout, k: int, sizes: tuple[int, ...]) -> LinearLayout:
    """Return the layout with the registers of a thread's tile reordered: those along K first."""
    bases = dict(layout.bases)
    own = (sizes[0] * sizes[1]).bit_length() - 1
    tile, rest = bases["register"][:own], bases["register"][own:]
    bases["register"] = (*sorted(tile, key=lambda basis: basis[k] == 0), *rest)
    return LinearLayout(bases, layout.outs)
