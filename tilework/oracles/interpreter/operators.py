"""Element-wise operators and functions, each a NumPy function on operands of one type; and ranges, views, gathers,
histograms.

    int32 + int32      wraps around                    int32 // int32     rounds toward zero, as in C
    bf16 * bf16        one rounding                    int1 + int1        exclusive or: one bit wraps around
    fp8 + fp8          in fp16, rounded back to fp8    ptr + int          moves by elements

fp32 results of elementary functions are computed in float64 and rounded, so they are as good as correctly rounded ones.
`fma` has a single rounding in every type.

"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import dtype, int1, int32, int64
from tilework.language.typing.carrier import Pair, Shape
from tilework.language.typing.indexing import Part
from tilework.language.typing.operators import overflow_text
from tilework.language.typing.shapes import block
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
        """In debug mode narrow integers must not overflow."""
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
