"""Builtins that work element by element: arithmetic, selection, conversion, elementary functions."""

from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

from tilework.language.compile_time import SUPPLIED, _unwrap_if_constexpr, constexpr
from tilework.language.dtypes import dtype
from tilework.language.values import Value, tensor

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic


class PropagateNan(IntEnum):
    """The treatment of NaN by `minimum`, `maximum` and `clamp`: NONE returns the operand that is a number, ALL NaN.

    Example:
        x, y = np.array([np.nan, 1.0], np.float32), np.array([2.0, 2.0], np.float32)
        assert_close(call(tl.maximum, x, y, tl.PropagateNan.NONE), [2, 2])
        assert_close(call(tl.maximum, x, y, tl.PropagateNan.ALL), [np.nan, 2])
    """

    NONE = 0
    ALL = 0xFFFF


def to_tensor(x: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """A number as a runtime scalar: 5 becomes an int32, 2**40 an int64, 0.5 an fp32; a tensor is returned unchanged.

    Example:
        assert call(tl.to_tensor, 5).dtype == np.int32
        assert call(tl.to_tensor, 2**40).dtype == np.int64
    """
    return _semantic.to_tensor(x)


class _Arithmetic(Protocol):
    def __call__(
        self, x: Value, y: Value, sanitize_overflow: bool | constexpr = True, _semantic: "Semantic" = SUPPLIED
    ) -> tensor: ...


def _arithmetic(name: str, doc: str) -> _Arithmetic:
    def function(
        x: Value, y: Value, sanitize_overflow: bool | constexpr = True, _semantic: "Semantic" = SUPPLIED
    ) -> tensor:
        return getattr(_semantic, name)(x, y, _unwrap_if_constexpr(sanitize_overflow))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


add = _arithmetic(
    "add",
    """Return ``x + y``. `sanitize_overflow=False` omits the overflow check of debug builds: the sum wraps around.

    Example:
        x = np.array([2**31 - 1, 5], np.int32)
        assert call(tl.add, x, 1, sanitize_overflow=False).tolist() == [-(2**31), 6]
    """,
)
sub = _arithmetic(
    "sub",
    """Return ``x - y``. `sanitize_overflow=False` omits the overflow check of debug builds: the result wraps around.

    Example:
        assert call(tl.sub, np.array([5, 6]), 2).tolist() == [3, 4]
    """,
)
mul = _arithmetic(
    "mul",
    """Return ``x * y``. `sanitize_overflow=False` omits the overflow check of debug builds: the result wraps around.

    Example:
        x = np.array([2**31, 5], np.uint32)
        assert call(tl.mul, x, x, sanitize_overflow=False).tolist() == [0, 25]
    """,
)


def cast(
    input: Value,
    dtype: dtype | constexpr,
    fp_downcast_rounding: str | constexpr | None = None,
    bitcast: bool | constexpr = False,
    _semantic: "Semantic" = SUPPLIED,
) -> tensor:
    """Convert to another dtype: ``tl.cast(x, tl.float16)``, also spelled ``x.to(tl.float16)``.

    Floats become integers by dropping the fraction. `fp_downcast_rounding` is "rtne" (to nearest even, the default) or
    "rtz" (towards zero); it applies to casts to a narrower float and has no effect where nothing is converted.
    `bitcast` keeps the bits and only changes the type, which must have the same width. Values that do not fit the
    integer type, and NaN, give an integer that depends on the target.

    Example:
        x = np.array([1.7, -1.7], np.float32)
        assert call(tl.cast, x, tl.int32).tolist() == [1, -1]
        assert call(tl.cast, x, tl.int32, bitcast=True).tolist() == x.view(np.int32).tolist()
        third = np.array([1 / 3], np.float32)
        assert call(tl.cast, third, tl.float16, fp_downcast_rounding="rtz")[0] <= third[0]
    """
    value = _semantic.to_tensor(input)
    if _unwrap_if_constexpr(bitcast):
        return _semantic.bitcast(value, _unwrap_if_constexpr(dtype))
    return _semantic.cast(value, _unwrap_if_constexpr(dtype), _unwrap_if_constexpr(fp_downcast_rounding))


def where(condition: Value, x: Value, y: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """`x` where the condition is true, else `y`; both are evaluated: ``tl.where(mask, x, float("-inf"))``.

    The three arguments are broadcast to each other. `where` does not protect a memory access: mask the `load` or
    `store` itself.

    Example:
        x = np.array([-1.0, 2.0, -3.0, 4.0])
        assert_close(call(tl.where, x > 0, x, 0.0), [0, 2, 0, 4])
    """
    return _semantic.where(_semantic.to_tensor(condition), x, y)


def minimum(
    x: Value, y: Value, propagate_nan: PropagateNan | constexpr = PropagateNan.NONE, _semantic: "Semantic" = SUPPLIED
) -> tensor:
    """The smaller of two values, element by element. If one of them is NaN, the result is the other, or with
    ``PropagateNan.ALL`` it is NaN.

    Example:
        assert call(tl.minimum, np.array([1, 5]), np.array([3, 2])).tolist() == [1, 2]
    """
    return _semantic.minimum(x, y, _unwrap_if_constexpr(propagate_nan))


def maximum(
    x: Value, y: Value, propagate_nan: PropagateNan | constexpr = PropagateNan.NONE, _semantic: "Semantic" = SUPPLIED
) -> tensor:
    """The larger of two values, element by element: ``tl.maximum(x, 0.0)``. NaN is treated as in `minimum`.

    Example:
        x = np.array([-1.0, 2.0], np.float32)
        assert_close(call(tl.maximum, x, 0.0), [0, 2])
    """
    return _semantic.maximum(x, y, _unwrap_if_constexpr(propagate_nan))


def clamp(
    x: Value,
    min: Value,
    max: Value,
    propagate_nan: PropagateNan | constexpr = PropagateNan.NONE,
    _semantic: "Semantic" = SUPPLIED,
) -> tensor:
    """Limit `x` to [min, max]; floats only: ``tl.clamp(x, -1.0, 1.0)``.

    NaN becomes `min` unless `propagate_nan` is ``PropagateNan.ALL``. For integers, write ``tl.minimum(tl.maximum(x,
    low), high)``.

    Example:
        x = np.array([-2.0, 0.5, 2.0, 1.0], np.float32)
        assert call(tl.clamp, x, -1.0, 1.0).tolist() == [-1, 0.5, 1, 1]
    """
    return _semantic.clamp(x, min, max, _unwrap_if_constexpr(propagate_nan))


def abs(x: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """The absolute value of integers or floats.

    The smallest integer of a type, which has no positive counterpart, is returned unchanged.

    Example:
        assert call(tl.abs, np.array([-3, 4])).tolist() == [3, 4]
    """
    return _semantic.abs(_semantic.to_tensor(x))


def fdiv(x: Value, y: Value, ieee_rounding: bool | constexpr = False, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """The quotient of two floats of the same dtype, computed by the fast division of the device.

    On a GPU, its last bits may be wrong, unlike those of `div_rn`; on the CPU it is correctly rounded. `ieee_rounding`
    is accepted and has no effect.

    Example:
        x = np.array([1.0, 2.0], np.float32)
        assert_close(call(tl.fdiv, x, np.array([4.0, 3.0], np.float32)), [1 / 4, 2 / 3], atol=1e-6)
    """
    return _semantic.fdiv(x, y, _unwrap_if_constexpr(ieee_rounding))


def div_rn(x: Value, y: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """The quotient of two fp32 values, correctly rounded on every target.

    Example:
        x, y = np.array([1.0, 2.0], np.float32), np.array([3.0, 7.0], np.float32)
        assert (call(tl.div_rn, x, y) == x / y).all()
    """
    return _semantic.div_rn(x, y)


def fma(x: Value, y: Value, z: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """``x * y + z`` with a single rounding.

    For floats of 16 bits and more, in their common type. The compiler fuses ``x * y + z`` only if the option
    `enable_fp_fusion` allows it; `fma` is always fused.

    Example:
        x = np.array([1 + 2**-12], np.float32)
        assert call(tl.fma, x, x, -1.0)[0] == np.float64(x[0]) ** 2 - 1  # the square is not rounded
    """
    return _semantic.fma(x, y, z)


def umulhi(x: Value, y: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """The high half of the unsigned product: for 32-bit integers, ``(x * y) >> 32`` without overflow.

    For integers of 32 or 64 bits; both must have the same type.

    Example:
        x = np.array([2**31, 5], np.uint32)
        assert call(tl.umulhi, x, np.array([6, 6], np.uint32)).tolist() == [3, 0]
    """
    return _semantic.umulhi(x, y)


class _Elementary(Protocol):
    def __call__(self, x: Value, _semantic: "Semantic" = SUPPLIED) -> tensor: ...


def _elementary(name: str, doc: str) -> _Elementary:
    def function(x: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
        return _semantic.math_op(name, x)

    def method(self: tensor, _semantic: "Semantic" = SUPPLIED) -> tensor:
        return _semantic.math_method(name, self)

    for either in (function, method):
        either.__name__ = either.__qualname__ = name
        either.__doc__ = doc
    function.method = method  # pyright: ignore[reportFunctionMemberAccess]
    return function


exp = _elementary(
    "exp",
    """e to the power of x, for fp32 and fp64; convert narrower floats first, ``tl.exp(x.to(tl.float32))``.

    Example:
        x = np.array([0.0, 1.0, -1.0, 2.0], np.float32)
        assert_close(call(tl.exp, x), np.exp(x), atol=1e-6)
    """,
)
exp2 = _elementary(
    "exp2",
    """2 to the power of x, for fp32 and fp64; the fastest exponential function.

    Attention kernels multiply their scores by ``log2(e)`` once and then use `exp2` instead of `exp`.

    Example:
        assert_close(call(tl.exp2, np.array([-1.0, 10.0])), [0.5, 1024])
    """,
)
log = _elementary(
    "log",
    """The natural logarithm, for fp32 and fp64; NaN for negative numbers, minus infinity for 0.

    Example:
        x = np.array([1.0, 10.0], np.float32)
        assert_close(call(tl.log, x), np.log(x), atol=1e-6)
    """,
)
log2 = _elementary(
    "log2",
    """The logarithm to base 2, for fp32 and fp64.

    Example:
        assert_close(call(tl.log2, np.array([0.5, 1024.0])), [-1, 10])
    """,
)
sin = _elementary(
    "sin",
    """The sine of an angle in radians, for fp32 and fp64.

    Example:
        x = np.array([0.0, 1.0, 100.0, -2.0], np.float32)
        assert_close(call(tl.sin, x), np.sin(x), atol=1e-6)
    """,
)
cos = _elementary(
    "cos",
    """The cosine of an angle in radians, for fp32 and fp64.

    Example:
        x = np.array([0.0, 1.0, 100.0, -2.0], np.float32)
        assert_close(call(tl.cos, x), np.cos(x), atol=1e-6)
    """,
)
sqrt = _elementary(
    "sqrt",
    """The square root, for fp32 (fast: on GPUs, the last bit may be wrong, see `sqrt_rn`) and fp64 (correctly rounded).

    Example:
        assert_close(call(tl.sqrt, np.array([4.0, 2.0], np.float32)), [2, 2**0.5], atol=1e-6)
    """,
)
sqrt_rn = _elementary(
    "sqrt_rn",
    """The square root of fp32 values, correctly rounded on every target.

    Example:
        x = np.array([2.0, 3.0], np.float32)
        assert (call(tl.sqrt_rn, x) == np.sqrt(x)).all()
    """,
)
rsqrt = _elementary(
    "rsqrt",
    """One over the square root, for fp32 and fp64; the usual end of a normalisation, ``x * tl.rsqrt(variance + eps)``.

    Example:
        assert_close(call(tl.rsqrt, np.array([4.0, 0.25], np.float32)), [0.5, 2], atol=1e-6)
    """,
)
erf = _elementary(
    "erf",
    """The error function, for fp32 and fp64: ``0.5 * x * (1 + tl.erf(x * 0.70710678))`` is GELU.

    Example:
        assert_close(call(tl.erf, np.array([0.0, 1.0])), [0, 0.8427007929497149], atol=1e-12)
    """,
)
floor = _elementary(
    "floor",
    """The largest integer not above x, as a float; for fp32 and fp64.

    Example:
        assert_close(call(tl.floor, np.array([1.5, -1.5])), [1, -2])
    """,
)
ceil = _elementary(
    "ceil",
    """The smallest integer not below x, as a float; for fp32 and fp64.

    Example:
        assert_close(call(tl.ceil, np.array([1.5, -1.5])), [2, -1])
    """,
)
