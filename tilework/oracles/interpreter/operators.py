"""Element-wise operators and functions, each a NumPy function on operands of one type; and ranges, views, gathers,
histograms.

    int32 + int32      wraps around                    int32 // int32     rounds toward zero, as in C
    bf16 * bf16        one rounding                    int1 + int1        exclusive or: one bit wraps around
    fp8 + fp8          in fp16, rounded back to fp8    ptr + int          moves by elements

fp32 results of elementary functions are computed in float64 and rounded, so they are as good as correctly rounded ones.
`fma` has a single rounding in every type.

Reductions, scans and maps call a user function.

It is written for scalars, but runs on whole slices: one call combines all neighbours of a block at once.

    reduce of 8 elements        x[0::2] and x[1::2] (4 pairs), then 2, then 1: the order of the elements is kept
    scan of 8 elements          slice after slice along the axis

`SUM_ORDER` chooses another association, which shows how far results depend on it (`tilework explain`).

A function that branches on its arguments cannot run on slices (a block has no single truth value). It is then called
again, element by element.
"""

import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import dtype, int1, int32, int64
from tilework.language.typing.carrier import Body, Pair, Shape
from tilework.language.typing.indexing import Part
from tilework.language.typing.operators import overflow_text
from tilework.language.typing.shapes import block, check_combined, packed_types
from tilework.numerics import libdevice_in_numpy as libdevice
from tilework.numerics.arithmetic import Arithmetic, greater, greater_number, lesser, lesser_number, wide
from tilework.numerics.integers import high_product
from tilework.numerics.rounding import UNSIGNED, Array, bits_of, canonical, narrow
from tilework.oracles.interpreter.allowed_memory import pointing
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.tensors import Values, bytes_in_memory, storage, tensor


def divide_toward_zero(a: Array, b: Array) -> Array:
    """C's integer division; by zero, which is undefined, it gives 0."""
    if a.dtype.kind == "u":
        return np.floor_divide(a, b)
    quotient = np.floor_divide(a, b)
    inexact = (np.subtract(a, np.multiply(quotient, b)) != 0) & (b != 0)
    return np.add(quotient, (inexact & ((a < 0) != (b < 0))).astype(a.dtype))


def shift_right_signed(a: Array, b: Array) -> Array:
    """An arithmetic shift, also if the type is unsigned."""
    signed = np.dtype(f"int{8 * a.dtype.itemsize}")
    return np.right_shift(bits_of(a).view(signed), b.astype(signed)).view(a.dtype)


def shift_right_unsigned(a: Array, b: Array) -> Array:
    """A logical shift."""
    unsigned = UNSIGNED[a.dtype.itemsize]
    return np.right_shift(bits_of(a), b.astype(unsigned)).view(a.dtype)


def formulas() -> Any:
    """Return the functions of reproducible kernels."""
    from tilework.targets.llvm.math import in_numpy  # lazily: few kernels are

    return in_numpy


Function = Callable[[Array, Array], Any]
BINARY: dict[str, Function] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "fdiv": np.divide,
    "//": divide_toward_zero,
    "%": np.fmod,
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": shift_right_signed,
    ">>>": shift_right_unsigned,
    "minimum": np.fmin,
    "maximum": np.fmax,
    "minimum_nan": np.minimum,
    "maximum_nan": np.maximum,
}
EXTREMES: dict[str, Function] = {  # in reproducible kernels
    "minimum": lesser_number,
    "maximum": greater_number,
    "minimum_nan": lesser,
    "maximum_nan": greater,
}
COMPARISONS: dict[str, Function] = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
REGISTERS: dict[str, Callable[[], int]] = {
    "%globaltimer": time.time_ns,
    "%smid": lambda: 0,
    "griddepcontrol": lambda: 0,  # one kernel at a time: no dependency
}


class Operators(Values):
    """Implements operators and functions of elements."""

    def binary(self, operator: str, a: tl.tensor, b: tl.tensor) -> tl.tensor:
        element, compute = a.dtype, BINARY[operator]
        if self.options.reproducible and element.is_floating() and operator in EXTREMES:
            return tensor(EXTREMES[operator](a.handle, b.handle), element)
        if element.is_fp8() or (operator == "fdiv" and element.primitive_bitwidth == 16):
            return self.through_wider(operator, a, b)
        if element.is_bool():
            bits = np.asarray(compute(a.handle.astype(np.uint8), b.handle.astype(np.uint8)))
            return tensor((bits & np.uint8(1)).astype(np.bool_), element)
        return tensor(np.asarray(compute(a.handle, b.handle)).astype(storage(element), copy=False), element)

    def overflow_checked(self, operator: str, a: tl.tensor, b: tl.tensor) -> tl.tensor:
        """Return the result of an operator; in debug mode raise an error if narrow integers overflow."""
        element = a.dtype
        if self.options.debug and element.int_bitwidth < 64:
            exact = BINARY[operator](a.handle.astype(np.int64), b.handle.astype(np.int64))
            if not np.all((exact >= element.get_int_min_value()) & (exact <= element.get_int_max_value())):
                raise at_run_time(AssertionError(overflow_text(operator, element)))
        return self.binary(operator, a, b)

    def compared(self, operator: str, a: tl.tensor, b: tl.tensor) -> tl.tensor:
        return tensor(np.asarray(COMPARISONS[operator](a.handle, b.handle)), int1)

    def inverted(self, x: tl.tensor) -> tl.tensor:
        return tensor(np.invert(x.handle), x.dtype)

    def move_pointer(self, pointer: tl.tensor, offset: int | tl.tensor, operator: str) -> tl.tensor:
        """Unsigned offsets are zero-extended."""
        if not isinstance(offset, tl.tensor):
            offset = self.constant(int(offset), int64)
        elif operator == "-" and not (offset.dtype.is_int_unsigned() and offset.dtype.int_bitwidth < 64):
            # as the compiler negates it: in its own type, whose most negative value has no opposite
            offset, operator = self.minus(offset), "+"
        pointer, offset = self.fitting(pointer, offset)
        size = bytes_in_memory(pointer.dtype.element_ty)  # pyright: ignore[reportAttributeAccessIssue]
        distance = offset.handle.astype(np.int64) * np.int64(size)
        move = np.add if operator == "+" else np.subtract
        return tensor(pointing(move(np.asarray(pointer.handle), distance), pointer.handle), pointer.dtype)

    def select(self, mask: tl.tensor, x: tl.tensor, y: tl.tensor) -> tl.tensor:
        if not mask.handle.shape:
            return x if mask.handle else y
        picked = np.where(mask.handle, np.asarray(x.handle), np.asarray(y.handle))
        if getattr(x.handle, "provenance", None) is getattr(y.handle, "provenance", None):
            picked = pointing(picked, x.handle)
        return tl.tensor(picked, block(x.dtype, picked.shape))

    def clamped(self, x: tl.tensor, low: tl.tensor, high: tl.tensor, keeps_nan: bool) -> tl.tensor:
        if self.options.reproducible:
            ending = "_nan" if keeps_nan else ""
            lesser, greater = EXTREMES[f"minimum{ending}"], EXTREMES[f"maximum{ending}"]
            return tensor(lesser(greater(x.handle, low.handle), high.handle), x.dtype)
        result = np.fmin(np.fmax(x.handle, low.handle), high.handle)
        return tensor(np.where(np.isnan(x.handle), x.handle, result) if keeps_nan else result, x.dtype)

    def absolute(self, x: tl.tensor) -> tl.tensor:
        """Clear the sign bit of a float; leave the most negative integer as it is."""
        element = x.dtype
        if element.is_int():
            return tensor(np.abs(x.handle), element)
        bits = bits_of(x.handle)
        mask = bits.dtype.type((1 << (element.primitive_bitwidth - 1)) - 1)
        cleared = np.asarray(bits & mask).view(storage(element))
        if element.name in ("fp8e4b8", "fp8e5b16"):  # 0x80 is their NaN, and it has no sign
            cleared = np.where(np.isnan(x.handle.astype(np.float32)), x.handle, cleared)
        return tensor(cleared, element)

    def fused(self, x: tl.tensor, y: tl.tensor, z: tl.tensor) -> tl.tensor:
        return tensor(Arithmetic.of(storage(z.dtype)).fma(x.handle, y.handle, z.handle), z.dtype)

    def multiplied_high(self, x: tl.tensor, y: tl.tensor) -> tl.tensor:
        high = high_product(bits_of(x.handle), bits_of(y.handle))
        return tensor(np.asarray(high).view(storage(x.dtype)), x.dtype)

    def elementary(self, name: str, x: tl.tensor) -> tl.tensor:
        if self.options.reproducible:
            return tensor(narrow(formulas().compute(name.removesuffix("_rn"), wide(x.handle)), x.handle.dtype), x.dtype)
        function = libdevice.DOUBLE[name.removesuffix("_rn")]
        return tensor(np.asarray(function(x.handle.astype(np.float64))).astype(x.handle.dtype), x.dtype)

    def precise_quotient(self, x: tl.tensor, y: tl.tensor) -> tl.tensor:
        return self.binary("/", x, y)

    def assembly(
        self, asm: str, constraints: str, args: Sequence[tl.tensor], types: Sequence[dtype], is_pure: bool, pack: int
    ) -> list[tl.tensor]:
        """Assembly is not executed, but the registers that `tl.extra.cuda` reads are known."""
        for text, value in REGISTERS.items():
            if text in asm and not args:
                return [self.constant(value(), element) for element in types]
        text = (
            f"inline_asm_elementwise({asm!r}) cannot be interpreted: it is assembly of a GPU; compile this kernel, or"
        )
        raise at_run_time(RuntimeError(text + " write the function with tl operations while interpreting"))

    def external(
        self, lib_name: str, lib_path: str, symbol: str, args: Sequence[tl.tensor], type: dtype, is_pure: bool
    ) -> tl.tensor:
        """Call a function of libdevice."""
        values = [value.handle for value in args]
        if self.options.reproducible:
            computed = formulas().call(symbol, [canonical(value) for value in values], storage(type.scalar))
        else:
            computed = libdevice.call(symbol, values, storage(type.scalar))
        if computed is None:
            raise RuntimeError(
                f"the library function {symbol} cannot be interpreted: it is not a function of libdevice"
            )
        return tl.tensor(computed, block(type.scalar, computed.shape))


class Shapes(Operators):
    """Functions that move elements without computing."""

    def counting(self, start: int, end: int) -> tl.tensor:
        return tensor(np.arange(start, end, dtype=np.int32), int32)

    def with_axis(self, x: tl.tensor, axis: int) -> tl.tensor:
        return tensor(np.expand_dims(x.handle, axis), x.dtype)

    def reshaped(self, x: tl.tensor, shape: Shape, can_reorder: bool) -> tl.tensor:
        return tensor(x.handle.reshape(shape), x.dtype)

    def resized(self, x: tl.tensor, shape: Shape) -> tl.tensor:
        """Undefined elements are copies of others, on which no result may depend."""
        have = x.handle.shape
        return tensor(
            x.handle[np.ix_(*(np.arange(size) % own for size, own in zip(shape, have, strict=True)))], x.dtype
        )

    def permuted(self, x: tl.tensor, order: Shape) -> tl.tensor:
        return tensor(np.transpose(x.handle, order), x.dtype)

    def concatenated(self, x: tl.tensor, y: tl.tensor) -> tl.tensor:
        return tensor(np.concatenate((x.handle, y.handle)), x.dtype)

    def joined(self, x: tl.tensor, y: tl.tensor) -> tl.tensor:
        return tensor(np.stack((x.handle, y.handle), axis=-1), x.dtype)

    def halves(self, x: tl.tensor) -> Pair:
        return tensor(x.handle[..., 0], x.dtype), tensor(x.handle[..., 1], x.dtype)

    def gathered(self, src: tl.tensor, index: tl.tensor, axis: int) -> tl.tensor:
        indices, size = index.handle.astype(np.int64), src.handle.shape[axis]
        outside = (indices < 0) | (indices >= size)
        if outside.any():
            text = f"gather: index {indices[outside][0]} is outside axis {axis}, which has {size} elements"
            raise at_run_time(IndexError(text))
        return tensor(np.take_along_axis(src.handle, indices, axis), src.dtype)

    def extracted(self, x: tl.tensor, parts: Sequence[Part]) -> tl.tensor:
        return tensor(x.handle[tuple(map(self._numpy_index, parts))], x.dtype)

    def inserted(self, x: tl.tensor, parts: Sequence[Part], value: tl.tensor) -> tl.tensor:
        made = x.handle.copy()
        made[tuple(map(self._numpy_index, parts))] = value.handle
        return tensor(made, x.dtype)

    def _numpy_index(self, part: Part) -> Any:
        if part.picked:
            return int(part.start.handle) if isinstance(part.start, tl.tensor) else part.start
        assert isinstance(part.start, int)
        end = part.start + part.step * part.count
        return slice(part.start, end if end >= 0 else None, part.step)

    def counted(self, x: tl.tensor, bins: int, mask: tl.tensor | None) -> tl.tensor:
        """Values outside of the bins are ignored; under the sanitizer they are an error."""
        values = x.handle.astype(np.int64)
        if mask is not None:
            values = values[mask.handle]
        inside = (values >= 0) & (values < bins)
        if self.options.sanitize and not inside.all():
            text = f"histogram: value {values[~inside][0]} is outside the {bins} bins; mask it"
            raise at_run_time(IndexError(text))
        return tensor(np.bincount(values[inside], minlength=bins).astype(np.int32), int32)


Arrays = list[Array]
ORDERS = ("forward", "backward")
# reductions and dots add one element after the other, from the first one on or from the last; None: as above
SUM_ORDER: ContextVar[str | None] = ContextVar("sum_order", default=None)


class AmbiguousTruth(ValueError):
    """The truth value of a block with several elements was requested."""


class Reductions(Shapes):
    """Implements `reduce`, `associative_scan` and `map_elementwise`."""

    def reduced(self, inputs: Sequence[tl.tensor], axis: int, body: Body) -> tuple[tl.tensor, ...]:
        elements = [value.dtype for value in inputs]
        combine = Combine(self, body, elements, "reduce")
        arrays = [np.moveaxis(value.handle, axis, 0) for value in inputs]
        if (order := SUM_ORDER.get()) is not None:
            arrays = folded(combine, arrays, order)
        while (length := arrays[0].shape[0]) > 1:
            even = length - length % 2
            pairs = combine([array[0:even:2] for array in arrays], [array[1:even:2] for array in arrays])
            arrays = [np.concatenate((pair, array[even:])) for pair, array in zip(pairs, arrays, strict=True)]
        return tuple(tensor(array[0], element) for array, element in zip(arrays, elements, strict=True))

    def scanned(self, inputs: Sequence[tl.tensor], axis: int, body: Body, reverse: bool) -> tuple[tl.tensor, ...]:
        elements = [value.dtype for value in inputs]
        combine = Combine(self, body, elements, "scan")
        arrays = [np.moveaxis(value.handle, axis, 0) for value in inputs]
        if self.options.reproducible or SUM_ORDER.get() is not None:
            joined = self.scanned_by_halves(arrays, combine, reverse)
            pairs = zip(joined, elements, strict=True)
            return tuple(tensor(np.moveaxis(array, 0, axis), element) for array, element in pairs)
        if reverse:
            arrays = [array[::-1] for array in arrays]
        total = [array[:1] for array in arrays]
        rows = [total]
        for position in range(1, arrays[0].shape[0]):
            total = combine(total, [array[position : position + 1] for array in arrays])
            rows.append(total)
        results = []
        for index, element in enumerate(elements):
            scanned = np.concatenate([row[index] for row in rows])
            results.append(tensor(np.moveaxis(scanned[::-1] if reverse else scanned, 0, axis), element))
        return tuple(results)

    def scanned_by_halves(self, arrays: Arrays, combine: "Combine", reverse: bool) -> Arrays:
        """Join blocks of 1, 2, 4 ... elements in pairs: the later one of a pair is combined with the total of the
        earlier one.

        Blocks start at multiples of their size; in reverse, the one with the higher indices is the earlier one.
        """
        results, size = [array.copy() for array in arrays], 1
        while size < len(results[0]):
            for start in range(0, len(results[0]) - size, 2 * size):
                low, high = slice(start, start + size), slice(start + size, start + 2 * size)
                later, total = (low, start + size) if reverse else (high, start + size - 1)
                count = len(results[0][later])
                before = [np.repeat(array[total : total + 1], count, axis=0) for array in results]
                joined = combine(before, [array[later] for array in results])
                for array, made in zip(results, joined, strict=True):
                    array[later] = made
            size *= 2
        return results

    def mapped(self, blocks: Sequence[tl.tensor], pack: int, body: Body) -> tuple[tl.tensor, ...]:
        shape = blocks[0].handle.shape
        elements = [block.dtype for block in blocks for _ in range(pack)]
        arrays = [block.handle.reshape(-1)[lane::pack] for block in blocks for lane in range(pack)]
        results = self.on_slices(body, arrays, elements)
        types = packed_types([value.dtype for value in results], pack)
        groups = [[value.handle for value in results[first : first + pack]] for first in range(0, len(results), pack)]
        stacked = [np.stack(group, axis=-1).reshape(shape) for group in groups]
        return tuple(tensor(values, element) for values, element in zip(stacked, types, strict=True))

    def on_slices(self, body: Body, arrays: Arrays, elements: Sequence[dtype]) -> list[tl.tensor]:
        """Apply `body` to every position of equally shaped arrays; its results have the same shape."""
        shape = arrays[0].shape
        flat = [array.reshape(-1) for array in arrays]
        try:
            results = self.results_of(body, flat, elements)
        except AmbiguousTruth:
            rows = [self.results_of(body, list(scalars), elements) for scalars in zip(*flat, strict=True)]
            columns = zip(*rows, strict=True)
            results = [tensor(np.stack([value.handle for value in column]), column[0].dtype) for column in columns]
        count = flat[0].shape
        return [tensor(np.broadcast_to(value.handle, count).reshape(shape), value.dtype) for value in results]

    def results_of(self, body: Body, arrays: Sequence[Any], elements: Sequence[dtype]) -> list[tl.tensor]:
        values = [tensor(array, element) for array, element in zip(arrays, elements, strict=True)]
        return [self.to_tensor(value) for value in body(values)]


def folded(combine: "Combine", arrays: Arrays, order: str) -> Arrays:
    """Combine the elements along the first axis one by one; the function need not be commutative."""
    count, is_forward = len(arrays[0]), order == ORDERS[0]
    total = [array[:1] if is_forward else array[-1:] for array in arrays]
    for position in range(1, count) if is_forward else range(count - 2, -1, -1):
        element = [array[position : position + 1] for array in arrays]
        total = combine(total, element) if is_forward else combine(element, total)
    return total


class Combine:
    """A combine function on slices: ``combine(left, right)`` of lists of arrays."""

    def __init__(self, semantic: Reductions, body: Body, elements: Sequence[dtype], name: str) -> None:
        self.semantic, self.body, self.elements, self.name = semantic, body, list(elements), name

    def __call__(self, left: Arrays, right: Arrays) -> Arrays:
        results = self.semantic.on_slices(self.body, [*left, *right], [*self.elements, *self.elements])
        check_combined([value.dtype for value in results], self.elements, self.name)
        return [value.handle for value in results]
