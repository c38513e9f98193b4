"""Builtins that work element by element: arithmetic, selection, conversion, elementary functions."""

from enum import IntEnum
from typing import Any

from tilework.language.compile_time import _unwrap_if_constexpr


class PropagateNan(IntEnum):
    """What `minimum`, `maximum` and `clamp` do with NaN: NONE prefers the number, ALL gives NaN."""

    NONE = 0
    ALL = 0xFFFF


def to_tensor(x: Any, _semantic: Any = None) -> Any:
    """A number as a runtime scalar: 5 becomes an int32, 2**40 an int64, 0.5 an fp32; a tensor stays as it is."""
    return _semantic.to_tensor(x)


def add(x: Any, y: Any, sanitize_overflow: Any = True, _semantic: Any = None) -> Any:
    """``x + y``; `sanitize_overflow` False leaves out the check that debug builds make."""
    return _semantic.add(x, y, _unwrap_if_constexpr(sanitize_overflow))


def sub(x: Any, y: Any, sanitize_overflow: Any = True, _semantic: Any = None) -> Any:
    """``x - y``; `sanitize_overflow` False leaves out the check that debug builds make."""
    return _semantic.sub(x, y, _unwrap_if_constexpr(sanitize_overflow))


def mul(x: Any, y: Any, sanitize_overflow: Any = True, _semantic: Any = None) -> Any:
    """``x * y``; `sanitize_overflow` False leaves out the check that debug builds make."""
    return _semantic.mul(x, y, _unwrap_if_constexpr(sanitize_overflow))


def cast(input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False, _semantic: Any = None) -> Any:
    """Convert to another dtype: ``tl.cast(x, tl.float16)``, also spelled ``x.to(tl.float16)``.

    Floats become integers by dropping the fraction. `fp_downcast_rounding` is "rtne" (to nearest even, default) or
    "rtz" (towards zero); it belongs to casts to a narrower float, and means nothing where nothing is converted. `bitcast` keeps the bits and changes only the type.
    """
    input, dtype = _semantic.to_tensor(input), _unwrap_if_constexpr(dtype)
    if _unwrap_if_constexpr(bitcast):
        return _semantic.bitcast(input, dtype)
    return _semantic.cast(input, dtype, _unwrap_if_constexpr(fp_downcast_rounding))


def where(condition: Any, x: Any, y: Any, _semantic: Any = None) -> Any:
    """`x` where the condition is true, else `y`; both are evaluated: ``tl.where(mask, x, float("-inf"))``."""
    return _semantic.where(_semantic.to_tensor(condition), x, y)


def minimum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE, _semantic: Any = None) -> Any:
    """The smaller of two values, element by element. With ``PropagateNan.ALL``, NaN if either is NaN."""
    return _semantic.minimum(x, y, _unwrap_if_constexpr(propagate_nan))


def maximum(x: Any, y: Any, propagate_nan: Any = PropagateNan.NONE, _semantic: Any = None) -> Any:
    """The larger of two values, element by element: ``tl.maximum(x, 0.0)``. See `minimum` about NaN."""
    return _semantic.maximum(x, y, _unwrap_if_constexpr(propagate_nan))


def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = PropagateNan.NONE, _semantic: Any = None) -> Any:
    """`x` limited to [min, max], floats only: ``tl.clamp(x, -1.0, 1.0)``."""
    return _semantic.clamp(x, min, max, _unwrap_if_constexpr(propagate_nan))


def abs(x: Any, _semantic: Any = None) -> Any:
    """The absolute value of integers or floats."""
    return _semantic.abs(_semantic.to_tensor(x))


def fdiv(x: Any, y: Any, ieee_rounding: Any = False, _semantic: Any = None) -> Any:
    """The quotient of two floats of one dtype, by the fast division of the device."""
    return _semantic.fdiv(x, y, _unwrap_if_constexpr(ieee_rounding))


def div_rn(x: Any, y: Any, _semantic: Any = None) -> Any:
    """The quotient of two fp32 values, correctly rounded."""
    return _semantic.div_rn(x, y)


def fma(x: Any, y: Any, z: Any, _semantic: Any = None) -> Any:
    """``x * y + z`` with a single rounding."""
    return _semantic.fma(x, y, z)


def umulhi(x: Any, y: Any, _semantic: Any = None) -> Any:
    """The high half of the unsigned product: for 32-bit integers, ``(x * y) >> 32`` without overflow."""
    return _semantic.umulhi(x, y)


def exp(x: Any, _semantic: Any = None) -> Any:
    """e to the power of x, for fp32 and fp64."""
    return _semantic.math_op("exp", x)


def exp2(x: Any, _semantic: Any = None) -> Any:
    """2 to the power of x, for fp32 and fp64; the fastest of the exponentials."""
    return _semantic.math_op("exp2", x)


def log(x: Any, _semantic: Any = None) -> Any:
    """The natural logarithm, for fp32 and fp64."""
    return _semantic.math_op("log", x)


def log2(x: Any, _semantic: Any = None) -> Any:
    """The logarithm to base 2, for fp32 and fp64."""
    return _semantic.math_op("log2", x)


def sin(x: Any, _semantic: Any = None) -> Any:
    """The sine of an angle in radians, for fp32 and fp64."""
    return _semantic.math_op("sin", x)


def cos(x: Any, _semantic: Any = None) -> Any:
    """The cosine of an angle in radians, for fp32 and fp64."""
    return _semantic.math_op("cos", x)


def sqrt(x: Any, _semantic: Any = None) -> Any:
    """The square root, for fp32 (fast) and fp64 (correctly rounded)."""
    return _semantic.math_op("sqrt", x)


def sqrt_rn(x: Any, _semantic: Any = None) -> Any:
    """The square root of fp32 values, correctly rounded."""
    return _semantic.math_op("sqrt_rn", x)


def rsqrt(x: Any, _semantic: Any = None) -> Any:
    """One over the square root, for fp32 and fp64."""
    return _semantic.math_op("rsqrt", x)


def erf(x: Any, _semantic: Any = None) -> Any:
    """The error function, for fp32 and fp64."""
    return _semantic.math_op("erf", x)


def floor(x: Any, _semantic: Any = None) -> Any:
    """The largest integer not above x, as a float."""
    return _semantic.math_op("floor", x)


def ceil(x: Any, _semantic: Any = None) -> Any:
    """The smallest integer not below x, as a float."""
    return _semantic.math_op("ceil", x)
