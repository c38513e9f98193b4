"""The float formats of PTX: correctly rounded arithmetic, and the GPU's treatment of NaN and denormal numbers.

>>> Format.of("f32").add(np.float32([1]), np.float32([2**-30]), "rp")
array([1.0000001], dtype=float32)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.rounding import BF16, F16, F32, F64, Array

DTYPES = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
NANS = {
    "f16": 0x7FFF,
    "bf16": 0x7FFF,
    "f32": 0x7FFFFFFF,
    "f64": 0xFFF8000000000000,
}  # results of invalid operations on numbers


@dataclass(frozen=True)
class Format(Arithmetic):
    """A float format under its PTX name."""

    name: str

    @staticmethod
    @cache
    def of(name: str) -> "Format":  # pyright: ignore[reportIncompatibleMethodOverride]
        plain = Arithmetic.of(DTYPES[name])
        return Format(plain.dtype, plain.least, plain.dropped, name)

    @staticmethod
    def of_dtype(dtype: np.dtype[Any]) -> "Format":
        return Format.of(next(name for name, found in DTYPES.items() if found == dtype))

    def canonical(self, values: Array, operands: Sequence[Array] = ()) -> Array:
        """Replace NaNs by those that the GPU produces: a fixed one; f64 keeps the payload of the last operand that is
        NaN.

        An H200 takes the second of two NaNs in `add.f64`; other instructions were measured with one NaN.
        """
        return self.propagate(values, operands[::-1] if self.dtype == F64 else (), NANS[self.name])

    def flush(self, values: Array) -> Array:
        """Flush denormals to zeros of the same sign."""
        tiny = (np.abs(values) < self.dtype.type(self.least)) & (values != 0)
        if not np.count_nonzero(tiny):
            return values
        return np.where(tiny, np.copysign(self.dtype.type(0), values), values).astype(self.dtype)
