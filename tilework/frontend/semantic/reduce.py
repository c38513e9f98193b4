"""Dots, and the operations whose meaning is a region of scalar code: reductions, scans and elementwise maps.

    c = tl.dot(a, b, acc)     tt.dot %a, %b, %acc, inputPrecision = tf32 : tensor<64x32xf16> * ... -> tensor<64x64xf32>

`tt.dot` has at most one batch dimension: further leading ones are merged into it and restored afterwards.

    tl.reduce(x, 1, add)      "tt.reduce"(%x) <{axis = 1 : i32}> ({
                              ^bb0(%a: f32, %b: f32):
                                %c = tt.call @add(%a, %b) : (f32, f32) -> f32
                                tt.reduce.return %c : f32
                              }) : (tensor<16x32xf32>) -> tensor<16xf32>

The language supplies the body as a function from scalars to scalars. It is called once, with the builder inside the
new block. For n inputs the block takes 2n scalars, the left group and then the right group, and returns n.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Region, SSAValue

from tilework.frontend.semantic.building import ir_type
from tilework.frontend.semantic.load_store import Windows, handle_of
from tilework.frontend.semantic.shape import with_shape
from tilework.ir import tt
from tilework.ir.enums import InputPrecision, ScaleDotElemType
from tilework.ir.locations import unknown
from tilework.language import core as tl
from tilework.language.dtypes import dtype
from tilework.language.typing.carrier import Body, Scaled
from tilework.language.typing.shapes import block, check_combined, packed_types, shape_of


class Dots(Windows):
    """The ops of `dot` and `dot_scaled`."""

    def matmul(
        self,
        lhs: tl.tensor,
        rhs: tl.tensor,
        acc: tl.tensor | None,
        type: dtype,
        precision: str,
        imprecise_limit: int,
    ) -> tl.tensor:
        shape = type.sizes
        flat = shape
        if len(shape) > 3:
            batches = prod(shape[:-2])
            flat = (batches, *shape[-2:])
            lhs, rhs = (self.reshape(value, (batches, *shape_of(value)[-2:])) for value in (lhs, rhs))
            acc = None if acc is None else self.reshape(acc, flat)
        result = block(type.scalar, flat)
        start = self._start(acc, result)
        precise = InputPrecision[precision.upper()]
        op = tt.DotOp.make(lhs.handle, rhs.handle, start, self.builder.loc, precise, imprecise_limit)
        return self.reshape(self._emit(op, result), shape)

    def _start(self, acc: tl.tensor | None, type: dtype) -> SSAValue:
        """Return the accumulator that a dot starts with."""
        if acc is not None:
            return acc.handle
        return self.builder.constant(0.0 if type.scalar.is_floating() else 0, ir_type(type))

    def scaled_matmul(self, lhs: Scaled, rhs: Scaled, acc: tl.tensor | None, type: dtype, fast_math: bool) -> tl.tensor:
        left, left_scale, left_format, left_packed = lhs
        right, right_scale, right_format, right_packed = rhs
        op = tt.DotScaledOp.make(
            left.handle,
            right.handle,
            self._start(acc, type),
            handle_of(left_scale),
            handle_of(right_scale),
            ScaleDotElemType[left_format.upper()],
            ScaleDotElemType[right_format.upper()],
            fast_math,
            self.builder.loc,
            lhs_k_pack=left_packed,
            rhs_k_pack=right_packed,
        )
        return self._emit(op, type)


Results = tuple[tl.tensor, ...]


class Reductions(Dots):
    """The ops of `reduce`, `scan` and `map_elementwise`."""

    def reduced(self, inputs: Sequence[tl.tensor], axis: int, body: Body) -> Results:
        region = self._combine_region(inputs, body, tt.ReduceReturnOp, "reduce")
        op = tt.ReduceOp.make([value.handle for value in inputs], axis, region, self.builder.loc)
        self.builder.insert(op)
        shape = shape_of(inputs[0])
        rest = (*shape[:axis], *shape[axis + 1 :])
        return tuple(with_shape(value, result, rest) for value, result in zip(inputs, op.results, strict=True))

    def scanned(self, inputs: Sequence[tl.tensor], axis: int, body: Body, reverse: bool) -> Results:
        region = self._combine_region(inputs, body, tt.ScanReturnOp, "scan")
        op = tt.ScanOp.make([value.handle for value in inputs], axis, reverse, region, self.builder.loc)
        self.builder.insert(op)
        return tuple(tl.tensor(result, value.type) for value, result in zip(inputs, op.results, strict=True))

    def _combine_region(self, inputs: Sequence[tl.tensor], body: Body, terminator: Any, name: str) -> Region:
        """The region of a combine function, which must give back the element types of `inputs`."""
        elements = [value.dtype for value in inputs]
        region, results = self._region([*elements, *elements], body, terminator)
        check_combined([value.type for value in results], elements, name)
        return region

    def _region(
        self, arguments: Sequence[dtype], body: Body, terminator: Any, loc: LocationAttr = unknown
    ) -> tuple[Region, list[tl.tensor]]:
        """A one-block region that applies `body` to its scalar arguments, at `loc`, and returns the results."""
        entry = Block()
        for index, type in enumerate(arguments):
            entry.insert_arg(ir_type(type), index, loc)
        region = Region(entry)
        with self.builder.saved():
            self.builder.set_to_end(entry)
            results = list(body([tl.tensor(arg, type) for arg, type in zip(entry.args, arguments, strict=True)]))
            results = [self.to_tensor(value) for value in results]
            self.builder.insert(terminator.make([value.handle for value in results], self.builder.loc))
        return region, results

    def mapped(self, blocks: Sequence[tl.tensor], pack: int, body: Body) -> Results:
        shape = shape_of(blocks[0])
        arguments = [value.dtype for value in blocks for _ in range(pack)]
        region, results = self._region(arguments, body, tt.MapElementwiseReturnOp, self.builder.loc)
        types = [block(element, shape) for element in packed_types([value.type for value in results], pack)]
        handles, results = [value.handle for value in blocks], [ir_type(type) for type in types]
        op = tt.MapElementwiseOp.make(handles, results, pack, region, self.builder.loc)
        self.builder.insert(op)
        return tuple(tl.tensor(result, type) for result, type in zip(op.results, types, strict=True))
