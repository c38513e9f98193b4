"""Shapes, subscripts and dots, and the operations with a region of scalar code: reductions, scans, elementwise maps.

    a : (64,)      ->  tt.expand_dims  ->  (1, 64)   ->  tt.broadcast  ->  (32, 64)
    b : (32, 1)                                          tt.broadcast  ->  (32, 64)

A constant scalar becomes a dense constant instead of a `tt.splat`. A subscript that is read becomes a gather, one that
is assigned a select.

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
from math import isnan, prod
from typing import Any

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.frontend.semantic.arith import Arithmetic
from tilework.frontend.semantic.building import ir_type
from tilework.ir import tt
from tilework.ir.enums import InputPrecision, ScaleDotElemType
from tilework.ir.locations import unknown
from tilework.ir.rewrite import constant_value
from tilework.ir.types import Shape
from tilework.language import core as tl
from tilework.language.dtypes import dtype, int32
from tilework.language.typing.carrier import Body, Pair, Scaled
from tilework.language.typing.indexing import Part, sizes_of
from tilework.language.typing.shapes import block, check_combined, packed_types, shape_of


def with_shape(value: tl.tensor, handle: SSAValue, shape: Shape) -> tl.tensor:
    """`handle` as a value with the element type of `value`."""
    return tl.tensor(handle, block(value.dtype, shape))


class Shapes(Arithmetic):
    """Operations that create ranges or change shapes."""

    def _view(self, op: Operation, value: tl.tensor, shape: Shape) -> tl.tensor:
        """The result of `op`: elements like those of `value`, in `shape`."""
        return with_shape(value, self.builder.insert(op).results[0], shape)

    def counting(self, start: int, end: int) -> tl.tensor:
        op = self.builder.insert(tt.MakeRangeOp.make(start, end, self.builder.loc))
        return tl.tensor(op.results[0], block(int32, (end - start,)))

    def stretch(self, x: tl.tensor, shape: Shape) -> tl.tensor:
        """`x` in `shape`, which is known to be reachable: leading axes are added, unit axes repeated."""
        if not x.type.is_block():
            return self._splat(x, block(x.dtype, shape)) if shape else x
        while len(x.type.sizes) < len(shape):
            x = self.with_axis(x, 0)
        if x.type.sizes == shape:
            return x
        type = ir_type(block(x.dtype, shape))
        return self._view(tt.BroadcastOp.make(x.handle, type, self.builder.loc), x, shape)

    def resized(self, x: tl.tensor, shape: Shape) -> tl.tensor:
        type = ir_type(block(x.dtype, shape))
        return self._view(tt.ResizeOp.make(x.handle, type, self.builder.loc), x, shape)

    def _splat(self, x: tl.tensor, type: dtype) -> tl.tensor:
        known, result = constant_value(x.handle), ir_type(type)
        if known is not None and not isnan(known):  # a NaN keeps its payload only through tt.splat
            return tl.tensor(self.builder.constant(known, result), type)
        return self._emit(tt.SplatOp.make(x.handle, result, self.builder.loc), type)

    def only_element(self, x: tl.tensor) -> tl.tensor:
        return self._view(tt.UnsplatOp.make(x.handle, self.builder.loc), x, ())

    def with_axis(self, x: tl.tensor, axis: int) -> tl.tensor:
        """`tt.expand_dims`, or a splat of a scalar."""
        shape = shape_of(x)
        if not shape:
            return self.stretch(x, (1,))
        op = tt.ExpandDimsOp.make(x.handle, axis, self.builder.loc)
        return self._view(op, x, (*shape[:axis], 1, *shape[axis:]))

    def reshaped(self, x: tl.tensor, shape: Shape, can_reorder: bool) -> tl.tensor:
        """`tt.reshape`; scalars are splat and unsplat."""
        have = shape_of(x)
        if not shape:
            return self.unsplat(x)
        if not have:
            return self.stretch(x, shape)
        if shape == have and not can_reorder:
            return x
        type = ir_type(block(x.dtype, shape))
        return self._view(tt.ReshapeOp.make(x.handle, type, self.builder.loc, allow_reorder=can_reorder), x, shape)

    def permuted(self, x: tl.tensor, order: Shape) -> tl.tensor:
        shape = shape_of(x)
        return self._view(tt.TransOp.make(x.handle, order, self.builder.loc), x, tuple(shape[axis] for axis in order))

    def concatenated(self, x: tl.tensor, y: tl.tensor) -> tl.tensor:
        shape = (2 * shape_of(x)[0],)
        type = ir_type(block(x.dtype, shape))
        return self._view(tt.CatOp.make(x.handle, y.handle, type, self.builder.loc), x, shape)

    def joined(self, x: tl.tensor, y: tl.tensor) -> tl.tensor:
        """`tt.join`, of scalars by way of one-element blocks."""
        if are_scalars := not x.type.is_block():
            x, y = self.with_axis(x, 0), self.with_axis(y, 0)
        result = self._view(tt.JoinOp.make(x.handle, y.handle, self.builder.loc), x, (*shape_of(x), 2))
        return self.reshaped(result, (2,), False) if are_scalars else result

    def halves(self, x: tl.tensor) -> Pair:
        """`tt.split`, to scalars by way of one-element blocks."""
        if to_scalars := len(shape_of(x)) == 1:
            x = self.with_axis(x, 0)
        op = self.builder.insert(tt.SplitOp.make(x.handle, self.builder.loc))
        left, right = (with_shape(x, result, shape_of(x)[:-1]) for result in op.results)
        return (self.only_element(left), self.only_element(right)) if to_scalars else (left, right)

    def gathered(self, src: tl.tensor, index: tl.tensor, axis: int) -> tl.tensor:
        op = tt.GatherOp.make(src.handle, index.handle, axis, self.builder.loc)
        return self._view(op, src, shape_of(index))

    def counted(self, x: tl.tensor, bins: int, mask: tl.tensor | None) -> tl.tensor:
        """`tt.histogram`, which reads bits: -1 would be the last bin of an 8-bit type."""
        if x.dtype.is_int_signed() and bins > x.dtype.get_int_max_value() + 1:
            x = self.cast(x, int32)
        condition = None if mask is None else mask.handle
        op = self.builder.insert(tt.HistogramOp.make(x.handle, condition, bins, self.builder.loc))
        return tl.tensor(op.results[0], block(int32, (bins,)))

    def sorted_runs(self, keys: tl.tensor, bits: int, order: int, merges: bool) -> tl.tensor:
        """`tt.sort_runs`; runs of one element are sorted."""
        if bits == 0:
            return keys
        is_signed = keys.dtype.is_int_signed()
        op = tt.SortRunsOp.make(keys.handle, bits, order, merges, is_signed, self.builder.loc)
        return self._view(op, keys, shape_of(keys))


class Indices(Shapes):
    """`taken` and `placed`."""

    def extracted(self, x: tl.tensor, parts: Sequence[Part]) -> tl.tensor:
        """Return the selected parts of a tensor: one `tt.gather` for each axis that is not taken as a whole."""
        for axis, part in enumerate(parts):
            shape = list(shape_of(x))
            if not part.is_whole(shape[axis]):
                shape[axis] = part.count
                x = self.gathered(x, self._spread(self._indices(part), axis, shape), axis)
        return self.reshaped(x, sizes_of(parts), False)

    def inserted(self, x: tl.tensor, parts: Sequence[Part], value: tl.tensor) -> tl.tensor:
        """`value`, spread over the whole block, where `parts` are, and `x` elsewhere."""
        shape = shape_of(x)
        own = shape_of(value)
        sizes = [1] * (len(sizes_of(parts)) - len(own)) + list(own)
        given = iter(sizes)
        value = self.reshaped(value, tuple(1 if part.picked else next(given) for part in parts), False)
        inside: tl.tensor | None = None
        for axis, (part, size) in enumerate(zip(parts, shape, strict=True)):
            if part.is_whole(size):
                continue
            indices = self.counting(0, size)
            if part.picked:
                mask = self.equal(indices, self.cast(self.to_tensor(part.start), int32))
            else:
                steps = self.sub(indices, part.start, False)
                steps = steps if part.step > 0 else self.sub(part.start, indices, False)
                index = self.floordiv(steps, abs(part.step)) if abs(part.step) > 1 else steps
                mask = self.and_(self.greater_equal(steps, 0), self.less_than(index, part.count))
                if abs(part.step) > 1:
                    mask = self.and_(mask, self.equal(self.mod(steps, abs(part.step)), 0))
                if (have := list(shape_of(value)))[axis] > 1:
                    index = self.where(mask, index, 0)
                    have[axis] = size
                    value = self.gathered(value, self._spread(index, axis, have), axis)
            mask = self._spread(mask, axis, shape)
            inside = mask if inside is None else self.and_(inside, mask)
        value = self.stretch(value, shape)
        return value if inside is None else self.select(inside, value, x)

    def _indices(self, part: Part) -> tl.tensor:
        """Return the selected indices along an axis, as a block of one axis."""
        if part.picked:
            return self.stretch(self.cast(self.to_tensor(part.start), int32), (1,))
        indices = self.counting(0, part.count)
        return self.add(self.mul(indices, part.step, False), part.start, False)

    def _spread(self, line: tl.tensor, axis: int, shape: Sequence[int]) -> tl.tensor:
        """A block of one axis along `axis` of a block of `shape`."""
        sizes = [1] * len(shape)
        sizes[axis] = shape[axis]
        return self.stretch(self.reshaped(line, tuple(sizes), False), tuple(shape))


def handle_of(value: tl.tensor | None) -> SSAValue | None:
    """The SSA value of an optional operand."""
    return None if value is None else value.handle


class Dots(Indices):
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
        """The region of a combine function, which must return the element types of `inputs`."""
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
