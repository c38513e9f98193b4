"""The original size of each tile of a padded function, and the masks of its visible lanes.

padding = Padding(function)
padding.change_types()               # tensor<96x3xf32> is now tensor<128x4xf32>
padding.size(value)                  # (96, 3)
padding.seen(value)                  # ``0..127 < 96`` and ``0..3 < 3``, as tensor<128x4xi1>, at the start of the function
"""

from collections.abc import Sequence
from functools import cache

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt
from tilework.ir.create import set_type
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import body_of, start_of, values_of
from tilework.ir.rewrite import erase_op, insert_before
from tilework.ir.tt.function_ops import function_type, function_type_of
from tilework.ir.types import Shape, element_type, i32, is_odd, is_tensor, shape_of, tensor_type
from tilework.transforms.building.emitter import Emitter


def power_above(size: int) -> int:
    """The next power of two: 96 gives 128, 64 gives 64."""
    return 1 << (size - 1).bit_length()


def padded_shape(shape: Shape) -> Shape:
    return tuple(map(power_above, shape))


@cache
def padded_type(type: Attribute) -> Attribute:
    """``tensor<96x3xf32>`` gives ``tensor<128x4xf32>``; any other type is its own."""
    return tensor_type(padded_shape(shape_of(type)), element_type(type)) if is_tensor(type) else type


class Padding:
    """A function whose tiles are being padded; `sizes` are those that the user sees, of each value that has others now."""

    def __init__(self, function: Operation) -> None:
        self.function = function
        self.sizes: dict[SSAValue, Shape] = {}
        self.start = Emitter(function.location)  # what is put at the start of the function
        self.masks: dict[tuple[Shape, Shape], SSAValue] = {}
        self.dead: list[Operation] = []

    def change_types(self) -> list[Operation]:
        """Pad the type of each value; all ops, in program order."""
        if isinstance(self.function, tt.FuncOp):
            own = function_type_of(self.function)
            types = [tuple(map(padded_type, types)) for types in (own.inputs, own.outputs)]
            self.function.properties["function_type"] = function_type(*types)
        ops = ops_in_order(*self.function.regions)
        for op in (self.function, *ops):
            for value in values_of(op):
                if is_odd(value.type):
                    self.sizes[value] = shape_of(value.type)
                    set_type(value, padded_type(value.type))
        return ops

    def finish(self) -> None:
        """Put what was made for the start of the function there, and drop what nothing uses any more."""
        if self.start.ops:
            self.start.insert_before(start_of(body_of(self.function)))
        for op in reversed(self.dead):
            erase_op(op)

    def touches(self, op: Operation) -> bool:
        """Return True if `op` takes or gives a padded tile."""
        return any(value in self.sizes for value in (*op.operands, *op.results))

    def size(self, value: SSAValue) -> Shape:
        """The shape of `value` as the user sees it."""
        return self.sizes.get(value) or shape_of(value.type)

    def axes(self, value: SSAValue) -> list[int]:
        """The dimensions of `value` that are padded."""
        return [
            axis
            for axis, (seen, size) in enumerate(zip(self.size(value), shape_of(value.type), strict=True))
            if seen != size
        ]

    def seen(self, value: SSAValue, axes: Sequence[int] | None = None) -> SSAValue:
        """The mask of visible lanes of `value`, along `axes` if given."""
        padded = shape_of(value.type)
        size = self.size(value)
        return self.mask(
            size if axes is None else tuple(size[a] if a in axes else padded[a] for a in range(len(size))), padded
        )

    def mask(self, size: Shape, shape: Shape) -> SSAValue:
        """The mask of lanes of a tile of `shape` whose indices are below `size`."""
        if (known := self.masks.get((size, shape))) is None:
            known = self.masks[size, shape] = self.make_mask(size, shape)
        return known

    def make_mask(self, size: Shape, shape: Shape) -> SSAValue:
        code, mask = self.start, None
        for axis, (limit, extent) in enumerate(zip(size, shape, strict=True)):
            if limit == extent:
                continue
            positions = code.append(tt.MakeRangeOp.make(0, extent, code.loc))
            inside = code.compare("slt", positions, code.constant(limit, tensor_type((extent,), i32)))
            inside = code.expanded(inside, [other for other in range(len(shape)) if other != axis])
            inside = code.broadcast(inside, shape)
            mask = inside if mask is None else code.binary(arith.AndIOp, mask, inside)
        assert mask is not None, f"all of {shape} is seen"
        return mask

    def filled(self, value: SSAValue, axes: Sequence[int], fill: int | float, before: Operation) -> SSAValue:
        """`value` with `fill` in the invisible lanes along `axes`, computed in front of `before`."""
        code = Emitter(before.location)
        chosen = code.select(self.seen(value, axes), value, code.constant(fill, value.type))
        code.insert_before(before)
        self.keep_size(value, chosen)
        return chosen

    def keep_size(self, value: SSAValue, *others: SSAValue) -> None:
        """`others` are as large as `value`."""
        if (size := self.sizes.get(value)) is not None:
            self.sizes.update(dict.fromkeys(others, size))

    def replace(self, op: Operation, code: Emitter, *results: SSAValue) -> None:
        """Put `code` in front of `op`, whose results are `results` from now on.

        A value has one visible size: a result that is an older value of another one (``tt.resize`` from 3 to 4 lanes,
        which are padded to 4) becomes a view of it.
        """
        for old, new in zip(op.results, results, strict=True):
            if new.owner not in code.ops and self.size(new) != self.size(old):
                new = code.append(tt.ReshapeOp.make(new, old.type, code.loc))  # pyright: ignore[reportArgumentType]
            if old in self.sizes:
                self.sizes[new] = self.sizes[old]
            old.replace_all_uses_with(new)
        insert_before(op, *code.ops)
        self.dead.append(op)
