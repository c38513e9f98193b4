"""Builtins for matrix products."""

from typing import Any

from tilework.language.compile_time import _unwrap_if_constexpr
from tilework.language.dtypes import float32
from tilework.language.shapes import _none_or


def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = float32,
    _semantic: Any = None,
) -> Any:
    """The matrix product of two blocks, added to `acc` if it is given: ``acc = tl.dot(a, b, acc)``.

    (M, K) times (K, N); leading axes are a batch. `input_precision` says how fp32 is multiplied: "tf32" (default),
    "tf32x3", "bf16x3", "bf16x6" or "ieee".
    """
    return _semantic.dot(
        input,
        other,
        _none_or(acc),
        _unwrap_if_constexpr(input_precision),
        _unwrap_if_constexpr(allow_tf32),
        _unwrap_if_constexpr(max_num_imprecise_acc),
        _unwrap_if_constexpr(out_dtype),
    )


def dot_scaled(
    lhs: Any,
    lhs_scale: Any,
    lhs_format: Any,
    rhs: Any,
    rhs_scale: Any,
    rhs_format: Any,
    acc: Any = None,
    fast_math: Any = False,
    lhs_k_pack: Any = True,
    rhs_k_pack: Any = True,
    out_dtype: Any = float32,
    _semantic: Any = None,
) -> Any:
    """The product of two blocks in a microscaling format: each group of 32 elements along K has its own scale.

        acc = tl.dot_scaled(a, a_scale, "e4m3", b, b_scale, "e2m1", acc)

    Formats are "e2m1" (two fp4 in a uint8), "e4m3", "e5m2", "bf16" and "fp16". Scales are uint8 exponents of shape
    (M, K / 32) and (N, K / 32), or None.
    """
    return _semantic.dot_scaled(
        lhs,
        _none_or(lhs_scale),
        _unwrap_if_constexpr(lhs_format),
        rhs,
        _none_or(rhs_scale),
        _unwrap_if_constexpr(rhs_format),
        _none_or(acc),
        _unwrap_if_constexpr(fast_math),
        _unwrap_if_constexpr(lhs_k_pack),
        _unwrap_if_constexpr(rhs_k_pack),
        _unwrap_if_constexpr(out_dtype),
    )
