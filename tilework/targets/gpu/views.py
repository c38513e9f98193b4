"""Ops that only rename registers: each element of the result is in a register of the same thread.

`moved(source, result, where)` finds it: `where` maps the coordinates of an element of the result to its coordinates in
the source. Layouts are linear and inferred from each other, so the registers of thread 0 determine those of all
threads.

Linear layouts are also evaluated at run time here: the coordinates of this thread's registers, or their offsets.

    coordinates(low, layout)      # for each register its coordinates: [(%row, %column), (%row, %column + 1), ...]

The xor of the bases of the set bits of `lane` is a few shifts and masks: bits that shift by the same distance share one
shift. The contribution of the register index is a constant. Where the two have no bit in common, the xor is a sum, and
addressing modes can add a constant.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from tilework.ir import arith, tt, ttg, ub
from tilework.ir.encodings import layout_of
from tilework.ir.rewrite import attr_value, splat_attr
from tilework.ir.types import array_values, element_type, int_property, shape_of
from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.lowering import Lowering, Registers, lowers, register_count
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.scalars import scalar_constant
from tilework.targets.llvm.types import i32
from tilework.targets.llvm.values import Value, constant


class Spread(NamedTuple):
    """An i32 that depends on the thread, and the bits that may be set in it."""

    value: Value
    mask: int


def xor_columns(b: Builder, parts: Iterable[tuple[Value, Sequence[int]]]) -> Spread:
    """Return the xor, over the set bits of each value, of the bit's column."""
    total, covered = constant(i32, 0), 0
    for value, columns in parts:
        groups: dict[int, int] = {}  # distance -> bits of `value` that move by it
        for bit, column in enumerate(columns):
            while column:
                to = (column & -column).bit_length() - 1
                groups[to - bit] = groups.get(to - bit, 0) | 1 << bit
                column &= column - 1
        for distance, mask in groups.items():
            kept = b.and_(value, mask)
            moved = b.shl(kept, distance) if distance >= 0 else b.lshr(kept, -distance)
            target = mask << distance if distance >= 0 else mask >> -distance
            total = b.xor(total, moved) if covered & target else b.or_(total, moved)
            covered |= target
    return Spread(total, covered)


def combined(b: Builder, spread: Spread, fixed: int) -> Value:
    """Return `spread ^ fixed`, as a sum where they have no bit in common."""
    both = fixed & spread.mask
    base = b.xor(spread.value, both) if both else spread.value
    made = b.add(base, fixed ^ both)
    if base.constant is None and fixed != both:
        b.exact[made.text] = (base, fixed ^ both)
    b.bound(made, fixed ^ both, (fixed ^ both) + spread.mask)
    return made


def spread_of(low: Lowering, layout: LinearLayout, out: str, more: Mapping[str, Value] | None = None) -> Spread:
    """Return what lane, warp and block (and `more` values) contribute to one output of a layout."""
    position = layout.out_names.index(out)
    columns = {name: [vector[position] for vector in vectors] for name, vectors in layout.bases}
    values = {**low.ids, **(more or {})}
    if low.has_thread_id and len(columns.get("lane", ())) == low.lane_mask.bit_length():
        columns["thread"] = columns.pop("lane") + columns.pop("warp", [])
        values = {"thread": low.thread, **values}
    parts = [(value, columns[name]) for name, value in values.items() if name in columns]
    return xor_columns(low.builder, parts)


def coordinates(low: Lowering, layout: LinearLayout) -> list[tuple[Value, ...]]:
    """Return the coordinates of each register of this thread, dimension 0 first."""
    names = sorted(layout.out_names, key=lambda name: int(name.removeprefix("dim")))
    spreads = [(layout.out_names.index(name), spread_of(low, layout, name)) for name in names]
    offsets = [layout.vector(column) for column in layout.images("register")]
    return [tuple(combined(low.builder, spread, offset[at]) for at, spread in spreads) for offset in offsets]


def chosen(
    b: Builder, index: Value, bits: Sequence[tuple[int, int]], first: int, read: Callable[[int], Value]
) -> Value:
    """Apply `read` to the offset that `index` selects: `first`, xor the offset of each (bit, offset) pair whose bit is
    set in `index`.
    """
    if not bits:
        return read(first)
    (bit, distance), *rest = bits
    without, with_bit = (chosen(b, index, rest, first ^ more, read) for more in (0, distance))
    return b.select(b.icmp("ne", b.and_(index, bit), 0), with_bit, without)


Coords = tuple[int, ...]


def register_coords(layout: LinearLayout) -> list[Coords]:
    """Return the coordinates of each register of thread 0."""
    fields = [layout.fields[f"dim{dim}"] for dim in range(len(layout.outs))]
    if len(fields) == 2:
        (shift, mask), (other, more) = fields
        return [(packed >> shift & mask, packed >> other & more) for packed in layout.images("register")]
    return [tuple(packed >> shift & mask for shift, mask in fields) for packed in layout.images("register")]


def moved(source: LinearLayout, result: LinearLayout, where: Callable[[Coords], Coords]) -> list[int]:
    """Return the source register of each register of the result."""
    known: dict[Coords, int] = {}
    for register, coords in enumerate(register_coords(source)):
        known.setdefault(coords, register)
    return [known[where(coords)] for coords in register_coords(result)]


def view(low: Lowering, op: Operation, where: Callable[[Coords], Coords]) -> Registers:
    registers = low[op.operands[0]]
    return tuple(
        registers[register] for register in moved(layout_of(op.operands[0].type), layout_of(op.results[0].type), where)
    )


@lowers(arith.ConstantOp, overrides=True)
def lower_constant(low: Lowering, op: Operation) -> Registers:
    value, type = op.properties["value"], op.results[0].type
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return (scalar_constant(low, value),)
    if (element := attr_value(value)) is None:
        raise low.refuse(op, "a constant tensor with different elements")
    return (scalar_constant(low, splat_attr(element, value.get_element_type())),) * register_count(type)


@lowers(ub.PoisonOp, overrides=True)
def lower_poison(low: Lowering, op: Operation) -> Registers:
    """Return an arbitrary value that LLVM chooses, the same in all registers."""
    type = op.results[0].type
    made = register_type(element_type(type))
    return (low.builder.pure(f"freeze {made.text} poison", made),) * register_count(type)


@lowers(tt.SplatOp)
def lower_splat(low: Lowering, op: Operation) -> Registers:
    return low[op.operands[0]] * register_count(op.results[0].type)


@lowers(tt.UnsplatOp)
def lower_unsplat(low: Lowering, op: Operation) -> Registers:
    return low[op.operands[0]][:1]


@lowers(tt.MakeRangeOp)
def lower_make_range(low: Lowering, op: Operation) -> Registers:
    start = int_property(op, "start")
    return tuple(
        low.builder.add(index, constant(i32, start)) for (index,) in coordinates(low, layout_of(op.results[0].type))
    )


@lowers(ttg.WarpIdOp)
def lower_warp_id(low: Lowering, op: Operation) -> Registers:
    """The hint is an instruction; where warps run code of their own, the id already has it."""
    if "omitUniformHint" in op.properties or low.facts.by_groups or low.warp.constant is not None:
        return (low.warp,)
    return (low.gpu.uniform(low.builder, low.warp),)


@lowers(tt.ExpandDimsOp)
def lower_expand_dims(low: Lowering, op: Operation) -> Registers:
    axis = int_property(op, "axis")
    return view(low, op, lambda coords: coords[:axis] + coords[axis + 1 :])


@lowers(tt.BroadcastOp)
def lower_broadcast(low: Lowering, op: Operation) -> Registers:
    shape = shape_of(op.operands[0].type)
    return view(low, op, lambda coords: tuple(at % size for at, size in zip(coords, shape, strict=True)))


@lowers(tt.TransOp)
def lower_trans(low: Lowering, op: Operation) -> Registers:
    """Transpose: dimension `order[i]` of the source is dimension i of the result."""
    order = array_values(op.properties["order"])
    back = [order.index(dim) for dim in range(len(order))]
    return view(low, op, lambda coords: tuple(coords[dim] for dim in back))


@lowers(tt.ReshapeOp)
def lower_reshape(low: Lowering, op: Operation) -> Registers:
    """Keep the row-major index of each element; with `allow_reorder`, keep the registers."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    if op.properties.get("allow_reorder") is not None:
        registers = low[op.operands[0]]
        assert len(registers) == register_count(op.results[0].type), "a reshape that may reorder keeps its registers"
        return registers

    def where(coords: Coords) -> Coords:
        index = 0
        for at, size in zip(coords, after, strict=True):
            index = index * size + at
        found = []
        for size in reversed(before):
            index, at = divmod(index, size)
            found.append(at)
        return tuple(reversed(found))

    return view(low, op, where)


@lowers(tt.JoinOp)
def lower_join(low: Lowering, op: Operation) -> Registers:
    """Select the operand by the last coordinate."""
    sides = [low[operand] for operand in op.operands]
    result = layout_of(op.results[0].type)
    found = moved(layout_of(op.operands[0].type), result, lambda coords: coords[:-1])
    return tuple(sides[coords[-1]][register] for coords, register in zip(register_coords(result), found, strict=True))


@lowers(tt.SplitOp)
def lower_split(low: Lowering, op: Operation) -> list[Registers]:
    source = layout_of(op.operands[0].type)
    registers, result = low[op.operands[0]], layout_of(op.results[0].type)
    return [
        tuple(registers[register] for register in moved(source, result, lambda coords, side=side: (*coords, side)))
        for side in (0, 1)
    ]


@lowers(tt.CatOp)
def lower_cat(low: Lowering, op: Operation) -> Registers:
    """Concatenate the registers of both operands: the order of elements is unspecified."""
    registers = low[op.operands[0]] + low[op.operands[1]]
    count = register_count(op.results[0].type)
    if len(registers) != count:
        raise low.refuse(op, f"tl.cat of {len(registers)} registers into {count}")
    return registers
