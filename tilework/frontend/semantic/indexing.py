"""Parts of blocks as ops: what a subscript takes is gathered, what it replaces is selected."""

from collections.abc import Sequence

from tilework.frontend.semantic.shape import Shapes
from tilework.language import core as tl
from tilework.language.dtypes import int32
from tilework.language.typing.indexing import Part, sizes_of
from tilework.language.typing.shapes import shape_of


class Indices(Shapes):
    """`taken` and `placed`."""

    def taken(self, x: tl.tensor, parts: Sequence[Part]) -> tl.tensor:
        """One `tt.gather` for each axis of which not all is taken."""
        for axis, part in enumerate(parts):
            shape = list(shape_of(x))
            if not part.is_whole(shape[axis]):
                shape[axis] = part.count
                x = self.gathered(x, self._spread(self._places(part), axis, shape), axis)
        return self.reshaped(x, sizes_of(parts), False)

    def placed(self, x: tl.tensor, parts: Sequence[Part], value: tl.tensor) -> tl.tensor:
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
            places = self.counting(0, size)
            if part.picked:
                mask = self.equal(places, self.cast(self.to_tensor(part.start), int32))
            else:
                steps = self.sub(places, part.start, False)
                steps = steps if part.step > 0 else self.sub(part.start, places, False)
                turn = self.floordiv(steps, abs(part.step)) if abs(part.step) > 1 else steps
                mask = self.and_(self.greater_equal(steps, 0), self.less_than(turn, part.count))
                if abs(part.step) > 1:
                    mask = self.and_(mask, self.equal(self.mod(steps, abs(part.step)), 0))
                if (have := list(shape_of(value)))[axis] > 1:
                    turn = self.where(mask, turn, 0)
                    have[axis] = size
                    value = self.gathered(value, self._spread(turn, axis, have), axis)
            mask = self._spread(mask, axis, shape)
            inside = mask if inside is None else self.and_(inside, mask)
        value = self.stretch(value, shape)
        return value if inside is None else self.select(inside, value, x)

    def _places(self, part: Part) -> tl.tensor:
        """The places along an axis that are taken, as a block of one axis."""
        if part.picked:
            return self.stretch(self.cast(self.to_tensor(part.start), int32), (1,))
        places = self.counting(0, part.count)
        return self.add(self.mul(places, part.step, False), part.start, False)

    def _spread(self, line: tl.tensor, axis: int, shape: Sequence[int]) -> tl.tensor:
        """A block of one axis along `axis` of a block of `shape`."""
        sizes = [1] * len(shape)
        sizes[axis] = shape[axis]
        return self.stretch(self.reshaped(line, tuple(sizes), False), tuple(shape))
