"""Reductions, scans and elementwise maps: operations whose meaning is a region of scalar code.

    tl.reduce(x, 1, add)      "tt.reduce"(%x) <{axis = 1 : i32}> ({
                              ^bb0(%a: f32, %b: f32):
                                %c = tt.call @add(%a, %b) : (f32, f32) -> f32
                                tt.reduce.return %c : f32
                              }) : (tensor<16x32xf32>) -> tensor<16xf32>

The language supplies the body as a function from scalars to scalars. It is called once, with the builder inside the
new block. For n inputs the block takes 2n scalars, the left group and then the right group, and returns n.
"""

# A method of a mixin sees the whole `Semantic`, which pyright does not accept as the type of `self`.
# pyright: reportGeneralTypeIssues=false

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Region

from tilework.frontend.semantic.type_mapping import ir_type
from tilework.ir import tt
from tilework.ir.locations import unknown
from tilework.language import core as tl
from tilework.language.dtypes import dtype

from .shape import block, normal_axis, shape_of, with_shape

if TYPE_CHECKING:
    from . import Semantic

Body = Callable[[list[tl.tensor]], Sequence[tl.tensor]]


class ReduceMixin:
    """`reduce`, `scan` and `map_elementwise`."""

    def reduce(
        self: "Semantic", inputs: Sequence[tl.tensor], axis: int | None, region_builder: Body
    ) -> tuple[tl.tensor, ...]:
        """Combine all elements along `axis` (of the whole block for None, in any order)."""
        shape = common_input_shape(inputs, "reduce")
        if axis is None:
            inputs = [self.reshape(value, (prod(shape),), True) for value in inputs]
            shape, axis = (prod(shape),), 0
        axis = normal_axis(axis, len(shape))
        region = self._combine_region(inputs, region_builder, tt.ReduceReturnOp, "reduce")
        op = tt.ReduceOp.make([value.handle for value in inputs], axis, region, self.builder.loc)
        self.builder.insert(op)
        rest = (*shape[:axis], *shape[axis + 1 :])
        return tuple(with_shape(value, result, rest) for value, result in zip(inputs, op.results))

    def scan(
        self: "Semantic", inputs: Sequence[tl.tensor], axis: int, region_builder: Body, reverse: bool
    ) -> tuple[tl.tensor, ...]:
        """Each element combined with all before it along `axis` (with all after it if `reverse`)."""
        shape = common_input_shape(inputs, "scan")
        axis = normal_axis(axis, len(shape))
        region = self._combine_region(inputs, region_builder, tt.ScanReturnOp, "scan")
        op = tt.ScanOp.make([value.handle for value in inputs], axis, bool(reverse), region, self.builder.loc)
        self.builder.insert(op)
        return tuple(with_shape(value, result, shape) for value, result in zip(inputs, op.results))

    def _combine_region(self: "Semantic", inputs, body: Body, terminator, name: str) -> Region:
        """The region of a combine function, which must give back the element types of `inputs`."""
        elements = [value.type.scalar for value in inputs]
        region, results = self._region([*elements, *elements], body, terminator)
        given = [value.type for value in results]
        if given != elements:
            raise TypeError(
                f"the combine function of {name} must return the element types of its inputs: expected "
                f"({', '.join(map(str, elements))}), got ({', '.join(map(str, given))}); cast inside the function"
            )
        return region

    def _region(
        self: "Semantic", arguments: Sequence[dtype], body: Body, terminator, loc: LocationAttr = unknown
    ) -> tuple[Region, list[tl.tensor]]:
        """A one-block region that applies `body` to its scalar arguments, at `loc`, and returns the results."""
        entry = Block()
        for index, type in enumerate(arguments):
            entry.insert_arg(ir_type(type), index, loc)
        region = Region(entry)
        with self.builder.saved():
            self.builder.set_to_end(entry)
            results = list(body([tl.tensor(arg, type) for arg, type in zip(entry.args, arguments)]))
            results = [self.to_tensor(value) for value in results]
            self.builder.insert(terminator.make([value.handle for value in results], self.builder.loc))
        return region, results

    def map_elementwise(
        self: "Semantic", args: Sequence[tl.tensor], pack: int, region_builder: Body
    ) -> tuple[tl.tensor, ...]:
        """`region_builder` applied to each element (to `pack` elements at once); one result per value it returns.

        With pack 2 the function of two arguments sees ``a0, a1, b0, b1`` and returns ``x0, x1, y0, y1``.
        """
        if not args:
            raise ValueError("map_elementwise needs at least one tensor")
        if pack < 1 or pack & (pack - 1):
            raise ValueError(f"map_elementwise's pack must be a power of 2, got {pack}")
        blocks = self.broadcast_all([self.to_tensor(value) for value in args])
        shape = shape_of(blocks[0])
        if not shape:
            blocks, shape = [self.splat(value, (1,)) for value in blocks], (1,)
        arguments = [value.type.scalar for value in blocks for _ in range(pack)]
        region, results = self._region(arguments, region_builder, tt.MapElementwiseReturnOp, self.builder.loc)
        elements = packed_types([value.type for value in results], pack)
        op = tt.MapElementwiseOp.make(
            [value.handle for value in blocks],
            [ir_type(block(element, shape)) for element in elements],
            pack,
            region,
            self.builder.loc,
        )
        self.builder.insert(op)
        return tuple(tl.tensor(result, block(element, shape)) for result, element in zip(op.results, elements))


def common_input_shape(inputs: Sequence[tl.tensor], name: str) -> tuple[int, ...]:
    """The one shape that all inputs of a reduction have."""
    shapes = [shape_of(value) for value in inputs]
    if not shapes or not shapes[0]:
        raise ValueError(f"{name} needs a block, got a scalar" if shapes else f"{name} needs at least one block")
    for shape in shapes:
        if shape != shapes[0]:
            raise ValueError(f"all inputs of {name} must have one shape, got {list(shapes[0])} and {list(shape)}")
    return shapes[0]


def packed_types(types: Sequence[dtype], pack: int) -> list[dtype]:
    """The element type of each output, from the types of `pack` values per output."""
    if not types or len(types) % pack:
        raise ValueError(f"a function mapped with pack={pack} must return {pack} values per output, got {len(types)}")
    for first in range(0, len(types), pack):
        group = types[first : first + pack]
        if any(type != group[0] for type in group):
            raise TypeError(
                f"the {pack} packed values of one output must have one type, got ({', '.join(map(str, group))})"
            )
    for type in types:
        if type.is_block() or type.is_void():
            raise TypeError(f"a function mapped over elements must return scalars, got {type}")
    return list(types[::pack])
