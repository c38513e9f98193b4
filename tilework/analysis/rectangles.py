"""Which tiles of pointers are rectangles of an array whose bounds are exactly the mask of their load.

    tl.load(a + rows[:, None] * stride + columns[None, :], mask=(rows[:, None] < M) & (columns[None, :] < K), other=0)
    rows = pid * 128 + tl.arange(0, 128), columns = k * 64 + tl.arange(0, 64)

    base a, and two axes:      stride  start      size  block        an element is read iff 0 <= start + place < size, from
        rows                   stride  pid * 128  M     128          base + sum of stride * (start + place); what is not read is 0
        columns                1       k * 64     K     64

That is what a copy through a tensor descriptor reads, too, so one may take the place of the other. What the mask says about an axis decides where its
start ends and its size begins: of the bound that it compares with, what is known at launch is the size, and minus the rest is the start. What
remains of the address goes to axes without a mask, to further axes of one element (``head * stride_h``), and, if it is known at launch, to the base.
An axis without a mask is as long as its starts make it.

The decomposition is exact for integers that do not overflow; what this file cannot show it leaves to the launch, which knows the numbers: that
no sum overflows, starts are not negative where no mask says so, sizes and strides are what hardware can describe, and that tiles that wrap around
(`% M`) do not wrap inside. A mask that bounds anything else than the axes of the tile makes it no rectangle.
Stage: TTIR. Cost: what the address and the mask are computed from.
"""

from dataclasses import dataclass
from functools import reduce
from math import gcd, prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from tilework.analysis.index_forms import Atom, IndexForms, Poly, Wrapped, divided, has_places, plus, times, without
from tilework.ir import tt
from tilework.ir.integer_ops import SGE, SGT, SLE, SLT, predicate_of
from tilework.ir.rewrite import attr_value, constant_value, defining_op
from tilework.ir.types import PointerType, axis_of, bit_width, shape_of

MOST_AXES = 5
LARGEST_BLOCK = 256
ALIGNMENT = 16  # bytes, of bases and strides
LEAST_ROW = 32  # bytes that are worth a copy
CONTIGUOUS: Poly = {(): 1}


@dataclass(frozen=True)
class Axis:
    """One dimension of an array, and what a tile covers of it: elements from `start` on, `block` of them."""

    stride: Poly  # in elements
    start: Poly
    size: Poly | None  # None: no mask bounds it
    starts_masked: bool  # whether the mask leaves out what is before the first element
    block: int


@dataclass(frozen=True)
class Rectangle:
    """The axes of an array, outermost first; of a tile whose first dimension is contiguous the two last are swapped."""

    base: BlockArgument
    offset: Poly  # of its first element from the base
    axes: tuple[Axis, ...]
    is_transposed: bool


@dataclass
class Bounds:
    """What a mask says about a dimension: start + place < limit, start + place >= 0, each as (limit -) start."""

    above: Poly | None = None
    below: Poly | None = None


def rectangle_of(load: tt.LoadOp, forms: IndexForms) -> Rectangle | None:
    """The rectangle that a load reads, if it reads one and what is masked is 0."""
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
    for dim, said in bounds.items():
        axis = bounded_axis(said, strides[dim], shape[dim], forms)
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
    """Whether masked elements may be zeros, of which all bits are 0."""
    if load.other is None:
        return True
    value = constant_value(load.other)
    return value == 0 and str(value)[0] != "-"


def based(address: Poly, forms: IndexForms) -> tuple[BlockArgument, Poly] | None:
    """(the pointer among the arguments, elements from there) of an address."""
    for monomial in address:
        atom = forms.atoms[monomial[0]] if len(monomial) == 1 and monomial[0] >= 0 else None
        if isinstance(atom, BlockArgument) and isinstance(atom.type, PointerType):
            is_known = address[monomial] == 1 and forms.is_launch_constant(monomial[0])
            return (atom, plus(address, {monomial: 1}, -1)) if is_known else None
    return None


def split_address(offsets: Poly, forms: IndexForms, rank: int) -> tuple[list[Poly], Poly] | None:
    """(the stride of each dimension, what is the same for the whole tile), if strides are known at launch."""
    strides: list[Poly] = [{} for _ in range(rank)]
    rest: Poly = {}
    for monomial, value in offsets.items():
        places = [number for number in monomial if number < 0]
        if len(places) > 1:
            return None
        if places:
            left = without(monomial, (places[0],))
            assert left is not None
            strides[-1 - places[0]][left] = value
        else:
            rest[monomial] = value
    return (strides, rest) if all(stride and forms.is_constant(stride) for stride in strides) else None


def bounds_of(mask: SSAValue | None, rank: int, forms: IndexForms) -> dict[int, Bounds] | None:
    """What a mask says about each dimension that it mentions; None if it says anything else."""
    found: dict[int, Bounds] = {}
    waiting = [] if mask is None else [(mask, tuple(range(rank)))]  # with the dimensions of the tile that theirs are
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
            places = {monomial: value for monomial, value in margin.items() if any(number < 0 for number in monomial)}
            if len(places) != 1 or len(along := next(iter(places))) != 1 or abs(sign := places[along]) != 1:
                return None
            bounds, left = found.setdefault(dims[-1 - along[0]], Bounds()), plus(margin, places, -1)
            if (bounds.above if sign < 0 else bounds.below) is not None:
                return None
            if sign < 0:
                bounds.above = left
            else:
                bounds.below = plus(left, {(): -1})
    return found


def positive_margin(op: Operation, forms: IndexForms) -> Poly | None:
    """What is greater than 0 where a comparison of signed integers is true."""
    left, right = map(forms.of, op.operands)
    predicate = predicate_of(op)
    if left is None or right is None or predicate not in (SLT, SLE, SGT, SGE):
        return None
    less = plus(right, left, -1) if predicate in (SLT, SLE) else plus(left, right, -1)
    return plus(less, CONTIGUOUS) if predicate in (SLE, SGE) else less


def bounded_axis(bounds: Bounds, stride: Poly, block: int, forms: IndexForms) -> Axis | None:
    """The axis that a mask bounds: its size is known at launch, its start is the rest."""
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
    """Axes of one element for what moves the tile by multiples of something known at launch; (axes, what is left).

    What moves by plain numbers may stay for a contiguous axis without a mask (`multiple` 1), or they are multiples of `multiple`.
    """
    groups: dict[tuple[int, ...], Poly] = {}
    for monomial, value in rest.items():
        known = tuple(number for number in monomial if forms.is_launch_constant(number))
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
    """Whether hardware may describe it: what is known now; the launch looks at the rest."""
    *outer, inner = found.axes
    aligned = all(axis.stride.keys() != {()} or axis.stride[()] * bits // 8 % ALIGNMENT == 0 for axis in outer)
    forwards = all(axis.starts_masked or all(value > 0 for value in axis.start.values()) for axis in found.axes)
    plain = not any(has_places(axis.start) or (axis.size and has_places(axis.size)) for axis in found.axes)
    room = len(found.axes) <= MOST_AXES and inner.block * bits // 8 >= LEAST_ROW
    return aligned and forwards and plain and room


def is_likely(found: Rectangle, forms: IndexForms, size: int) -> bool:
    """Whether launches should justify a copy of elements of `size` bytes, as far as is known of the arguments now.

    Bases and strides are multiples of 16 bytes, and so is what a tile wraps around in a multiple of its block or of 16.
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
    """What divides a polynomial of arguments."""
    atoms = forms.atoms
    return gcd(*(value * prod(promised(atoms[n]) for n in monomial) for monomial, value in poly.items()))


def promised(atom: Atom) -> int:
    """What divides an argument: its attribute `tt.divisibility`."""
    function = atom.block.parent_op() if isinstance(atom, BlockArgument) else None
    attributes = function.properties.get("arg_attrs") if type(function) is tt.FuncOp else None
    if not isinstance(attributes, ArrayAttr) or not isinstance(atom, BlockArgument):
        return 1
    hint = attributes.data[atom.index].data.get("tt.divisibility")
    return 1 if hint is None else int(attr_value(hint) or 1)
