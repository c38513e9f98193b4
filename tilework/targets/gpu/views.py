"""Ops that name registers anew: the element at each place of the result is found in a register of the same thread.

`moved(source, result, where)` is that search: `where` gives, for the coordinates of an element of the result, its
coordinates in the source. Layouts are linear and inferred from each other, so it is enough to look at the registers of
thread 0.
"""

from collections.abc import Callable

from xdsl.dialects import arith, ub
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.encodings import layout_of
from tilework.ir.rewrite import attr_value, splat_attr
from tilework.ir.types import array_values, element_type, shape_of
from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.indices import coordinates
from tilework.targets.gpu.lowering import Lowering, Registers, lowers, number_of, register_count
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.scalars import scalar_constant
from tilework.targets.llvm.types import i32
from tilework.targets.llvm.values import constant

Places = tuple[int, ...]


def register_places(layout: LinearLayout) -> list[Places]:
    """The coordinates of each register of thread 0."""
    fields = [layout.fields[f"dim{dim}"] for dim in range(len(layout.outs))]
    if len(fields) == 2:
        (shift, mask), (other, more) = fields
        return [(image >> shift & mask, image >> other & more) for image in layout.images("register")]
    return [tuple(image >> shift & mask for shift, mask in fields) for image in layout.images("register")]


def moved(source: LinearLayout, result: LinearLayout, where: Callable[[Places], Places]) -> list[int]:
    """The register of the source for each register of the result."""
    known: dict[Places, int] = {}
    for register, place in enumerate(register_places(source)):
        known.setdefault(place, register)
    return [known[where(place)] for place in register_places(result)]


def view(low: Lowering, op: Operation, where: Callable[[Places], Places]) -> Registers:
    registers = low[op.operands[0]]
    return tuple(
        registers[place] for place in moved(layout_of(op.operands[0].type), layout_of(op.results[0].type), where)
    )


@lowers(arith.ConstantOp, overrides=True)
def lower_constant(low: Lowering, op: Operation) -> Registers:
    value, type = op.properties["value"], op.results[0].type
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return (scalar_constant(low, value),)
    if (number := attr_value(value)) is None:
        raise low.refuse(op, "a constant tensor with different elements")
    return (scalar_constant(low, splat_attr(number, value.get_element_type())),) * register_count(type)


@lowers(ub.PoisonOp, overrides=True)
def lower_poison(low: Lowering, op: Operation) -> Registers:
    """One that LLVM may choose, the same in all registers."""
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
    start = number_of(op, "start")
    return tuple(
        low.builder.add(place, constant(i32, start)) for (place,) in coordinates(low, layout_of(op.results[0].type))
    )


@lowers(tt.ExpandDimsOp)
def lower_expand_dims(low: Lowering, op: Operation) -> Registers:
    axis = number_of(op, "axis")
    return view(low, op, lambda place: place[:axis] + place[axis + 1 :])


@lowers(tt.BroadcastOp)
def lower_broadcast(low: Lowering, op: Operation) -> Registers:
    shape = shape_of(op.operands[0].type)
    return view(low, op, lambda place: tuple(at % size for at, size in zip(place, shape, strict=True)))


@lowers(tt.TransOp)
def lower_trans(low: Lowering, op: Operation) -> Registers:
    """Dimension `order[i]` of the source is dimension i of the result."""
    order = array_values(op.properties["order"])
    back = [order.index(dim) for dim in range(len(order))]
    return view(low, op, lambda place: tuple(place[dim] for dim in back))


@lowers(tt.ReshapeOp)
def lower_reshape(low: Lowering, op: Operation) -> Registers:
    """The same row-major number; if the order is free, the same register."""
    before, after = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    if op.properties.get("allow_reorder") is not None:
        registers = low[op.operands[0]]
        assert len(registers) == register_count(op.results[0].type), "a reshape that may reorder keeps its registers"
        return registers

    def where(place: Places) -> Places:
        number = 0
        for at, size in zip(place, after, strict=True):
            number = number * size + at
        found = []
        for size in reversed(before):
            number, at = divmod(number, size)
            found.append(at)
        return tuple(reversed(found))

    return view(low, op, where)


@lowers(tt.JoinOp)
def lower_join(low: Lowering, op: Operation) -> Registers:
    """The last coordinate says which operand."""
    sides = [low[operand] for operand in op.operands]
    result = layout_of(op.results[0].type)
    found = moved(layout_of(op.operands[0].type), result, lambda place: place[:-1])
    return tuple(sides[place[-1]][number] for place, number in zip(register_places(result), found, strict=True))


@lowers(tt.SplitOp)
def lower_split(low: Lowering, op: Operation) -> list[Registers]:
    source = layout_of(op.operands[0].type)
    registers, result = low[op.operands[0]], layout_of(op.results[0].type)
    return [
        tuple(registers[number] for number in moved(source, result, lambda place, side=side: (*place, side)))
        for side in (0, 1)
    ]


@lowers(tt.CatOp)
def lower_cat(low: Lowering, op: Operation) -> Registers:
    """Elements may come in any order: the registers of both."""
    registers = low[op.operands[0]] + low[op.operands[1]]
    count = register_count(op.results[0].type)
    if len(registers) != count:
        raise low.refuse(op, f"tl.cat of {len(registers)} registers into {count}")
    return registers
