"""Builtins that work element by element: arithmetic, selection, conversion, elementary functions."""

from collections.abc import Callable
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


def _arithmetic(name: str, sign: str) -> Callable[..., Any]:
    def function(x: Any, y: Any, sanitize_overflow: Any = True, _semantic: Any = None) -> Any:
        return getattr(_semantic, name)(x, y, _unwrap_if_constexpr(sanitize_overflow))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``x {sign} y``; `sanitize_overflow` False leaves out the check that debug builds make."
    return function


add, sub, mul = _arithmetic("add", "+"), _arithmetic("sub", "-"), _arithmetic("mul", "*")


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


def _elementary(name: str, doc: str) -> Callable[..., Any]:
    def function(x: Any, _semantic: Any = None) -> Any:
        return _semantic.math_op(name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


exp = _elementary("exp", "e to the power of x, for fp32 and fp64.")
exp2 = _elementary("exp2", "2 to the power of x, for fp32 and fp64; the fastest of the exponentials.")
log = _elementary("log", "The natural logarithm, for fp32 and fp64.")
log2 = _elementary("log2", "The logarithm to base 2, for fp32 and fp64.")
sin = _elementary("sin", "The sine of an angle in radians, for fp32 and fp64.")
cos = _elementary("cos", "The cosine of an angle in radians, for fp32 and fp64.")
sqrt = _elementary("sqrt", "The square root, for fp32 (fast) and fp64 (correctly rounded).")
sqrt_rn = _elementary("sqrt_rn", "The square root of fp32 values, correctly rounded.")
rsqrt = _elementary("rsqrt", "One over the square root, for fp32 and fp64.")
erf = _elementary("erf", "The error function, for fp32 and fp64.")
floor = _elementary("floor", "The largest integer not above x, as a float.")
ceil = _elementary("ceil", "The smallest integer not below x, as a float.")
