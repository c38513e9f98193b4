"""Functions of single elements: minima, absolute values, elementary functions, and functions of device libraries.

fp32 results of elementary functions are computed in float64 and rounded, so they are as good as correctly rounded ones.
`fma` has a single rounding in every type.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import dtype, float32
from tilework.oracles.interpreter import libdevice
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.formats import Array, bits_of, storage
from tilework.oracles.interpreter.fused import fused
from tilework.oracles.interpreter.operators import Operators
from tilework.oracles.interpreter.tensors import shaped, tensor

MULHI_TYPES = ("int32", "int64", "uint32", "uint64")
WIDE_FLOATS = ("fp32", "fp64")
REGISTERS: dict[str, Callable[[], int]] = {
    "%globaltimer": time.time_ns,
    "%smid": lambda: 0,
    "griddepcontrol": lambda: 0,  # one kernel at a time: nothing to wait for
}

MATH: dict[str, Callable[[Array], Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "floor": np.floor,
    "ceil": np.ceil,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
}


class Elementwise(Operators):
    """`minimum`, `exp` and their kin."""

    def minimum(self, x: Any, y: Any, propagate_nan: Any) -> tl.tensor:
        return self.apply(np.minimum if propagates(propagate_nan) else np.fmin, *self.wide(x, y, "minimum"), "minimum")

    def maximum(self, x: Any, y: Any, propagate_nan: Any) -> tl.tensor:
        return self.apply(np.maximum if propagates(propagate_nan) else np.fmax, *self.wide(x, y, "maximum"), "maximum")

    def wide(self, x: Any, y: Any, name: str) -> tuple[tl.tensor, tl.tensor]:
        """Both operands in one type; bfloat16 is compared in fp32."""
        x, y = (
            self.cast(value, float32) if isinstance(value, tl.tensor) and value.dtype.is_bf16() else value
            for value in (x, y)
        )
        return self.operands(x, y, name, weak=False)

    def clamp(self, x: Any, min: Any, max: Any, propagate_nan: Any) -> tl.tensor:
        """`x` limited to [min, max]; a NaN becomes `min` unless it propagates."""
        keeps_nan = propagates(propagate_nan)
        low, high = self.wide(min, max, "clamp")
        value, low = self.wide(x, low, "clamp")
        value, high = self.wide(value, high, "clamp")
        value, low = self.operands(value, low, "clamp")
        if not value.dtype.is_standard_floating():
            raise TypeError(
                f"Unexpected dtype {value.dtype}. Only floating point clamp is supported; "
                "use tl.minimum and tl.maximum for integers"
            )
        result = np.fmin(np.fmax(value.handle, low.handle), high.handle)
        if keeps_nan:
            result = np.where(np.isnan(value.handle), value.handle, result)
        return tensor(result, value.dtype)

    def abs(self, x: Any) -> tl.tensor:
        """Clears the sign bit of a float; leaves the most negative integer as it is."""
        value = self.to_tensor(x)
        element = value.dtype
        if element.is_floating():
            bits = bits_of(value.handle)
            mask = bits.dtype.type((1 << (element.primitive_bitwidth - 1)) - 1)
            cleared = np.asarray(bits & mask).view(storage(element))
            if element.name in ("fp8e4b8", "fp8e5b16"):  # 0x80 is their NaN, and it has no sign
                cleared = np.where(np.isnan(value.handle.astype(np.float32)), value.handle, cleared)
            return tensor(cleared, element)
        assert element.is_int(), f"Unexpected dtype {element}: abs takes numbers"
        return tensor(np.abs(value.handle), element) if element.is_int_signed() else value

    def fma(self, x: Any, y: Any, z: Any) -> tl.tensor:
        """``x * y + z`` with one rounding."""
        a, b = self.operands(x, y, "fma", weak=False)
        a, c = self.operands(a, z, "fma", weak=False)
        b, c = self.operands(b, c, "fma", weak=False)
        a, c = self.operands(a, c, "fma", weak=False)
        if not c.dtype.is_standard_floating():
            raise TypeError(f"fma takes floats of 16 bits or more, got {c.dtype}; use x * y + z for integers")
        return tensor(fused(a.handle, b.handle, c.handle, c.dtype), c.dtype)

    def umulhi(self, x: Any, y: Any) -> tl.tensor:
        """The high half of the unsigned product."""
        for value in (x, y):
            expect_dtype(value, MULHI_TYPES, "umulhi")
        a, b = self.operands(x, y, "umulhi", weak=False)
        expect_dtype(a, MULHI_TYPES, "umulhi")
        high = high_product(bits_of(a.handle), bits_of(b.handle))
        return tensor(np.asarray(high).view(storage(a.dtype)), a.dtype)

    def math_op(self, name: str, x: Any) -> tl.tensor:
        """An elementary function of fp32 or fp64."""
        value = self.to_tensor(x)
        expect_dtype(value, ("fp32",) if name == "sqrt_rn" else WIDE_FLOATS, name)
        return tensor(np.asarray(MATH[name](value.handle.astype(np.float64))).astype(value.handle.dtype), value.dtype)

    def div_rn(self, a: Any, b: Any) -> tl.tensor:
        for value in (a, b):
            expect_dtype(value, ("fp32",), "div_rn")
        return self.apply(np.divide, *self.operands(a, b, "div_rn", weak=False), "/")

    def inline_asm_elementwise(
        self, asm: str, constraints: str, args: Sequence[Any], dtypes: Sequence[dtype], is_pure: bool, pack: int
    ) -> Sequence[tl.tensor]:
        """There is no assembler here, but the registers that `tl.extra.cuda` reads are known."""
        for text, value in REGISTERS.items():
            if text in asm and not args:
                return [self.scalar_constant(value(), element) for element in dtypes]
        text = (
            f"inline_asm_elementwise({asm!r}) cannot be interpreted: it is assembly of a GPU; compile this kernel, or"
        )
        raise at_run_time(RuntimeError(text + " write the function with tl operations while interpreting"))

    def extern_elementwise(
        self,
        lib_name: str,
        lib_path: str,
        args: Sequence[Any],
        arg_type_symbol_dict: Mapping[tuple[dtype, ...], tuple[str, dtype]],
        is_pure: bool,
    ) -> tl.tensor:
        """A function of libdevice; the types of the arguments choose the symbol."""
        values = [self.to_tensor(x) for x in args]
        key = tuple(value.dtype for value in values)
        if key not in arg_type_symbol_dict:
            known = "; ".join(", ".join(map(str, types)) for types in arg_type_symbol_dict)
            raise ValueError(f"no function for arguments of type ({', '.join(map(str, key))}); it exists for: {known}")
        symbol, result = arg_type_symbol_dict[key]
        values = self.broadcast_all(values)
        computed = libdevice.call(symbol, [value.handle for value in values], storage(result))
        return tl.tensor(computed, shaped(result, computed.shape))


def high_product(a: Array, b: Array) -> Array:
    """The high half of products of uint32 or uint64."""
    if a.dtype.itemsize == 4:
        return ((a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    low_a, high_a, low_b, high_b = a & mask, a >> half, b & mask, b >> half
    middle = high_a * low_b + (low_a * low_b >> half)
    other = low_a * high_b + (middle & mask)
    return high_a * high_b + (middle >> half) + (other >> half)


def propagates(propagate_nan: Any) -> bool:
    """Whether NaN wins over numbers."""
    if (name := getattr(propagate_nan, "name", "")) not in ("NONE", "ALL"):
        raise ValueError(f"unexpected propagate_nan {propagate_nan!r}: use tl.PropagateNan.NONE or tl.PropagateNan.ALL")
    return name == "ALL"


def expect_dtype(value: object, names: tuple[str, ...], function: str) -> None:
    """Refuse tensors of other types; numbers are converted later."""
    if isinstance(value, tl.tensor) and value.dtype.name not in names:
        raise ValueError(f"Expected dtype {list(names)} but got {value.dtype}: cast the argument of {function}")
