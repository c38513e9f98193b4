"""The float formats of PTX: correctly rounded arithmetic, and what this GPU does with NaN and denormal numbers.

>>> Format.of("f32").add(np.float32([1]), np.float32([2**-30]), "rp")
array([1.0000001], dtype=float32)
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.rounding import BF16, F16, F32, F64, Array

DTYPES = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
NANS = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0xFFF8000000000000}  # that operations make


@dataclass(frozen=True)
class Format(Arithmetic):
    """A format under its name in PTX."""

    name: str

    @staticmethod
    @cache
    def of(name: str) -> "Format":  # pyright: ignore[reportIncompatibleMethodOverride]
        plain = Arithmetic.of(DTYPES[name])
        return Format(plain.dtype, plain.least, plain.dropped, name)

    def canonical(self, values: Array) -> Array:
        """NaNs as this GPU makes them."""
        if self.name == "f64":
            return values
        missing = np.isnan(values)
        if np.count_nonzero(missing):
            values = values.copy()
            values.view(self.bits)[missing] = NANS[self.name]
        return values

    def flush(self, values: Array) -> Array:
        """Denormals as zeros of the same sign."""
        tiny = (np.abs(values) < self.dtype.type(self.least)) & (values != 0)
        if not np.count_nonzero(tiny):
            return values
        return np.where(tiny, np.copysign(self.dtype.type(0), values), values).astype(self.dtype)
