"""Tiles of pointers that are rectangles of an array whose bounds are exactly the mask of their load; and loads worth
copying by TMA.

    tl.load(a + rows[:, None] * stride + columns[None, :], mask=(rows[:, None] < M) & (columns[None, :] < K), other=0)
    rows = pid * 128 + tl.arange(0, 128), columns = k * 64 + tl.arange(0, 64)

    base a, and two axes:      stride  start      size  block        an element is read iff 0 <= start + i < size, from
        rows                   stride  pid * 128  M     128          base + sum of stride * (start + i); others are 0
        columns                1       k * 64     K     64

A copy through a tensor descriptor reads the same, so it can replace the load. The mask of an axis separates its start
from its size: of the bound that it compares with, the part that is known at launch is the size, and minus the rest is
the start. The rest of the address goes to axes without a mask, to further axes of one element (``head * stride_h``),
and, if it is known at launch, to the base. An axis without a mask is as long as its starts make it.

The decomposition is exact for integers that do not overflow; the launch, which knows the values, checks the rest: that
no sum overflows, starts are not negative unless a mask says so, sizes and strides are what hardware can describe, and
tiles that wrap around (`% M`) do not wrap inside. A mask that bounds anything else than the axes of the tile makes it
no rectangle.

The operands of a loop's large dots on tensor cores should be copies, all of them (`worth_copying`):

    for k in range(...):                   for k in range(...):                     for k in range(...):
        a, b = tl.load(...), tl.load(...)      a = tl.load(...)                         q = tl.load(...)
        acc = tl.dot(a, b, acc)                b = tl.load(...).to(tl.float16)          acc = tl.dot(q, codes[k], acc)
    both                                   none: all threads must load b            none, if q is small

On an H200 copies of 32 KB in each iteration gain 6 to 12 % for matrix multiplications (17 % for tf32 with an operand of
the wrong major), and 4 to 35 % for attention with 128 keys. Those of 16 KB lose up to 6 % (64 keys), and those beside
operands that all threads load 5 %. Stage: TTIR. Cost: what the address and the mask are computed from, and the operands
of dots in loops.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from math import gcd, prod
from typing import TypeGuard

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilework.analysis.index_forms import Atom, IndexForms, Poly, Wrapped, divided, has_axis_atoms, plus, times, without
from tilework.analysis.value_flows import reached
from tilework.ir import arith, scf, tt
from tilework.ir.arith import SGE, SGT, SLE, SLT, predicate_of
from tilework.ir.enums import InputPrecision
from tilework.ir.nesting import is_inside
from tilework.ir.rewrite import attr_value, constant_value, defining_op
from tilework.ir.scf import loop_around
from tilework.ir.types import PointerType, axis_of, bit_width, shape_of, tile_bits
from tilework.light_dataclass import light_dataclass

MOST_AXES = 5
LARGEST_BLOCK = 256
ALIGNMENT = 16  # bytes, of bases and strides
LEAST_ROW = 32  # bytes that are worth a copy
CONTIGUOUS: Poly = {(): 1}


@light_dataclass
class Axis:
    """One dimension of an array, and the part of it that a tile covers: `block` elements from `start` on."""

    stride: Poly  # in elements
    start: Poly
    size: Poly | None  # None: no mask bounds it
    starts_masked: bool  # the mask excludes elements before the first
    block: int


@light_dataclass
class Rectangle:
    """The axes of an array, outermost first; if the first dimension of the tile is contiguous the two last are
    swapped."""

    base: BlockArgument
    offset: Poly  # of its first element from the base
    axes: tuple[Axis, ...]
    is_transposed: bool


@light_dataclass(frozen=False)
class Bounds:
    """The bounds of a dimension in a mask: start + i < limit, start + i >= 0, each as (limit -) start."""

    above: Poly | None = None
    below: Poly | None = None


def rectangle_of(load: tt.LoadOp, forms: IndexForms) -> Rectangle | None:
    """Return the rectangle that a load reads, if it reads one and masked elements are 0."""
    shape, bits = shape_of(load.result.type), bit_width(load.result.type)
    address = forms.of(load.ptr) if len(shape) == 2 and max(shape) <= LARGEST_BLOCK and bits in (8, 16, 32) else None
    bounds = None if address is None else bounds_of(load.mask, len(shape), forms)
    if address is None or bounds is None or not pads_with_zero(load):
        return None
    if (found := based(address, forms)) is None or (parts := split_address(found[1], forms, len(shape))) is None:
        return None
    base, (strides, rest) = found[0], parts
    if CONTIGUOUS not in strides:
        return None
    inner = len(shape) - 1 - strides[::-1].index(CONTIGUOUS)
    axes: dict[int, Axis] = {}
    for dim, bound in bounds.items():
        axis = bounded_axis(bound, strides[dim], shape[dim], forms)
        if axis is None:
            return None
        axes[dim] = axis
        rest = plus(rest, times(axis.stride, axis.start), -1)
    offset = {monomial: value for monomial, value in rest.items() if forms.is_constant({monomial: value})}
    rest = plus(rest, offset, -1)
    outer = 1 - inner
    if outer not in axes:
        start, rest = divided(rest, strides[outer]) if len(strides[outer]) == 1 else ({}, rest)
        axes[outer] = Axis(strides[outer], start, None, False, shape[outer])
    further, rest = further_axes(rest, forms, 1 if inner not in axes else ALIGNMENT * 8 // bits)
    if inner not in axes:
        axes[inner], rest = Axis(CONTIGUOUS, rest, None, False, shape[inner]), {}
    made = Rectangle(base, offset, (*further, axes[outer], axes[inner]), inner != len(shape) - 1)
    return made if not rest and is_describable(made, bits) else None


def pads_with_zero(load: tt.LoadOp) -> bool:
    """Return True if masked elements may be zeros with all bits 0."""
    if load.other is None:
        return True
    value = constant_value(load.other)
    return value == 0 and str(value)[0] != "-"


def based(address: Poly, forms: IndexForms) -> tuple[BlockArgument, Poly] | None:
    """Return (the pointer among the arguments, elements from there) of an address."""
    for monomial in address:
        atom = forms.atoms[monomial[0]] if len(monomial) == 1 and monomial[0] >= 0 else None
        if isinstance(atom, BlockArgument) and isinstance(atom.type, PointerType):
            is_known = address[monomial] == 1 and forms.is_launch_constant(monomial[0])
            return (atom, plus(address, {monomial: 1}, -1)) if is_known else None
    return None


def split_address(offsets: Poly, forms: IndexForms, rank: int) -> tuple[list[Poly], Poly] | None:
    """Return (the stride of each dimension, the part that is uniform in the tile), if strides are known at launch."""
    strides: list[Poly] = [{} for _ in range(rank)]
    rest: Poly = {}
    for monomial, value in offsets.items():
        axes = [atom for atom in monomial if atom < 0]
        if len(axes) > 1:
            return None
        if axes:
            left = without(monomial, (axes[0],))
            assert left is not None
            strides[-1 - axes[0]][left] = value
        else:
            rest[monomial] = value
    return (strides, rest) if all(stride and forms.is_constant(stride) for stride in strides) else None


def bounds_of(mask: SSAValue | None, rank: int, forms: IndexForms) -> dict[int, Bounds] | None:
    """Return the bounds of each dimension in a mask; None if it contains anything else."""
    found: dict[int, Bounds] = {}
    waiting = [] if mask is None else [(mask, tuple(range(rank)))]  # with their dimensions in the tile
    while waiting:
        value, dims = waiting.pop()
        op = defining_op(value)
        if isinstance(op, arith.AndIOp | tt.BroadcastOp):
            waiting += [(operand, dims) for operand in op.operands]
        elif type(op) is tt.ExpandDimsOp:
            waiting.append((op.operands[0], dims[: axis_of(op)] + dims[axis_of(op) + 1 :]))
        elif constant_value(value) == 1:
            continue
        elif type(op) is not arith.CmpiOp or (margin := positive_margin(op, forms)) is None:
            return None
        else:
            along_axis = {monomial: value for monomial, value in margin.items() if any(atom < 0 for atom in monomial)}
            if len(along_axis) != 1 or len(along := next(iter(along_axis))) != 1 or abs(sign := along_axis[along]) != 1:
                return None
            bounds, left = found.setdefault(dims[-1 - along[0]], Bounds()), plus(margin, along_axis, -1)
            if (bounds.above if sign < 0 else bounds.below) is not None:
                return None
            if sign < 0:
                bounds.above = left
            else:
                bounds.below = plus(left, {(): -1})
    return found


def positive_margin(op: Operation, forms: IndexForms) -> Poly | None:
    """Return the polynomial that is greater than 0 if a comparison of signed integers is true."""
    left, right = map(forms.of, op.operands)
    predicate = predicate_of(op)
    if left is None or right is None or predicate not in (SLT, SLE, SGT, SGE):
        return None
    less = plus(right, left, -1) if predicate in (SLT, SLE) else plus(left, right, -1)
    return plus(less, CONTIGUOUS) if predicate in (SLE, SGE) else less


def bounded_axis(bounds: Bounds, stride: Poly, block: int, forms: IndexForms) -> Axis | None:
    """Return the axis that a mask bounds: its size is known at launch, its start is the rest."""
    if bounds.below is not None:
        start = bounds.below
        size = None if bounds.above is None else plus(bounds.above, start)
    else:
        assert bounds.above is not None
        size = {monomial: value for monomial, value in bounds.above.items() if forms.is_constant({monomial: value})}
        start = plus(size, bounds.above, -1)
    if size is not None and not forms.is_constant(size):
        return None
    return Axis(stride, start, size, bounds.below is not None, block)


def further_axes(rest: Poly, forms: IndexForms, multiple: int) -> tuple[list[Axis], Poly]:
    """Return (axes, rest): axes of one element for the terms that move the tile by multiples of a launch constant.

    Terms with constant steps may remain for a contiguous axis without a mask (`multiple` 1), or are multiples of
    `multiple`.
    """
    groups: dict[tuple[int, ...], Poly] = {}
    for monomial, value in rest.items():
        known = tuple(atom for atom in monomial if forms.is_launch_constant(atom))
        moving = without(monomial, known)
        assert moving is not None
        groups.setdefault(known, {})[moving] = value
    axes: list[Axis] = []
    left: Poly = {}
    for known, starts in groups.items():
        step = reduce(gcd, starts.values())
        if known or (multiple > 1 and step % multiple == 0):
            start = {monomial: value // step for monomial, value in starts.items()}
            axes.append(Axis({known: step}, start, None, False, 1))
        else:
            left = plus(left, starts)
    return axes, left


def is_describable(found: Rectangle, bits: int) -> bool:
    """Return True if hardware may describe it, as far as is known now; the launch checks the rest."""
    *outer, inner = found.axes
    aligned = all(axis.stride.keys() != {()} or axis.stride[()] * bits // 8 % ALIGNMENT == 0 for axis in outer)
    forwards = all(axis.starts_masked or all(value > 0 for value in axis.start.values()) for axis in found.axes)
    plain = not any(has_axis_atoms(axis.start) or (axis.size and has_axis_atoms(axis.size)) for axis in found.axes)
    fits = len(found.axes) <= MOST_AXES and inner.block * bits // 8 >= LEAST_ROW
    return aligned and forwards and plain and fits


def is_likely(found: Rectangle, forms: IndexForms, size: int) -> bool:
    """Return True if launches will likely satisfy the conditions of a copy of elements of `size` bytes, given the known
    divisibility of the arguments.

    Bases and strides are multiples of 16 bytes, and the size that a tile wraps around in is a multiple of its block or
    of 16.
    """
    *outer, _ = found.axes
    steps = [found.offset, *(axis.stride for axis in outer)]
    atoms = [forms.atoms[n] for axis in found.axes for monomial in axis.start for n in monomial]
    wraps = [atom for atom in atoms if isinstance(atom, Wrapped) and atom.way == "wrapped"]
    return (
        promised(found.base) % ALIGNMENT == 0
        and all(divisor_of(step, forms) * size % ALIGNMENT == 0 for step in steps)
        and all(divisor_of(dict(atom.size), forms) % min(atom.block, ALIGNMENT) == 0 for atom in wraps)
    )


def divisor_of(poly: Poly, forms: IndexForms) -> int:
    """Return a divisor of a polynomial of arguments."""
    atoms = forms.atoms
    return gcd(*(value * prod(promised(atoms[n]) for n in monomial) for monomial, value in poly.items()))


def promised(atom: Atom) -> int:
    """Return the divisor of an argument: its attribute `tt.divisibility`."""
    function = atom.block.parent_op() if isinstance(atom, BlockArgument) else None
    attributes = function.properties.get("arg_attrs") if type(function) is tt.FuncOp else None
    if not isinstance(attributes, ArrayAttr) or not isinstance(atom, BlockArgument):
        return 1
    hint = attributes.data[atom.index].data.get("tt.divisibility")
    return 1 if hint is None else int(attr_value(hint) or 1)


WARPGROUP = 4  # warps
LEAST_ROWS = 64  # of a dot that a warpgroup computes
LEAST_BYTES = 32768  # of the tiles of an iteration


def feeds_dots(value: SSAValue) -> bool:
    """Return True if only dots use a tile, as it is or transposed."""
    users = [(use.operation, use.index) for use in value.uses]
    return bool(users) and all(
        index < 2 if type(user) is tt.DotOp else type(user) is tt.TransOp and feeds_dots(user.results[0])
        for user, index in users
    )


def is_candidate(op: Operation) -> TypeGuard[tt.LoadOp]:
    """Return True if an op is a load whose result only dots use."""
    return isinstance(op, tt.LoadOp) and not op.is_volatile.value.data and feeds_dots(op.result)


def loops_of_dots(ops: Iterable[Operation], num_warps: int) -> dict[Operation, list[tt.DotOp]]:
    """Return the dots of each loop whose dots are all large ones for tensor cores that read shared memory."""
    found: dict[Operation, list[tt.DotOp]] = {}
    for op in ops if num_warps % WARPGROUP == 0 else ():
        if type(op) is tt.DotOp and (loop := loop_around(op)) is not None and type(loop) is scf.ForOp:
            found.setdefault(loop, []).append(op)
    return {loop: dots for loop, dots in found.items() if all(map(is_large, dots))}


def is_large(dot: tt.DotOp) -> bool:
    shape, bits = shape_of(dot.d.type), bit_width(dot.a.type)
    is_read = bits in (8, 16) or (bits == 32 and dot.input_precision.value.data == InputPrecision.TF32)
    return is_read and len(shape) == 2 and shape[0] >= LEAST_ROWS


def worth_copying(
    loops: dict[Operation, list[tt.DotOp]], is_copyable: Callable[[tt.LoadOp], bool]
) -> Iterator[tt.LoadOp]:
    """Yield the loads that should be copies if the loads inside of the loops can be."""
    for loop, dots in loops.items():
        operands = [operand for dot in dots for operand in (dot.a, dot.b)]
        loads = dict.fromkeys(load for load in map(load_of, operands) if load is not None)
        inside = [load for load in loads if is_inside(load, loop)]
        mixed = any(load_of(operand) is None and is_loaded(operand, loop) for operand in operands)
        is_much = sum(tile_bits(load.result.type) for load in inside) >= 8 * LEAST_BYTES
        if is_much and not mixed and all(is_candidate(load) and is_copyable(load) for load in inside):
            yield from filter(is_candidate, loads)


def load_of(operand: SSAValue) -> tt.LoadOp | None:
    """Return the load whose result an operand is, perhaps transposed."""
    op = defining_op(operand)
    while type(op) is tt.TransOp:
        op = defining_op(op.operands[0])
    return op if isinstance(op, tt.LoadOp) else None


def is_loaded(operand: SSAValue, loop: Operation) -> bool:
    """Return True if an operand is computed in a loop from values loaded there, and not from another dot."""

    def makers(values: Iterable[SSAValue]) -> list[Operation]:
        return [op for op in map(defining_op, values) if op is not None and is_inside(op, loop)]

    kinds = {type(op) for op in reached(makers([operand]), lambda op: makers(op.operands))}
    return tt.LoadOp in kinds and tt.DotOp not in kinds
