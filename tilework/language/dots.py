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

    (M, K) times (K, N); leading axes are a batch. The result is fp32 for floats of 32 bits and fewer (or `out_dtype`, which may be
    ``tl.float16`` for fp16 and fp8), fp64 for fp64, int32 for int8.

    `input_precision` says how fp32 is multiplied: "ieee" with all bits; "tf32" with 10 bits of the fractions; "tf32x3", "bf16x3" and
    "bf16x6" with several products of fewer bits. The default is "tf32" on NVIDIA GPUs and on AMD's that have it, "ieee" elsewhere;
    the CPU multiplies fp32 with all bits whatever is asked. `allow_tf32` is its older name (True is "tf32", False "ieee").
    `max_num_imprecise_acc` says after how many products of fp8 a partial sum is added in full precision, on Hopper.

    NVIDIA GPUs take a K of at least 16 (32 for types of 8 bits), other targets any sizes; matrix units are used from blocks of
    about 16 by 16 on.

    Example:
        @tilework.jit
        def matmul(a, b, c, N: tl.constexpr):
            i = tl.arange(0, N)
            at = i[:, None] * N + i[None, :]
            tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision="ieee"))

        a, b = np.arange(256, dtype=np.float32).reshape(16, 16), np.eye(16, dtype=np.float32) * 2
        c = np.empty_like(a)
        matmul[(1,)](a, b, c, N=16)
        assert_close(c, a @ b)
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

    Formats are "e2m1" (two fp4 in a uint8), "e4m3", "e5m2", "bf16" and "fp16". Scales are exponents (127 is 1.0, 128 is 2.0) in uint8 or int8 of
    shape (M, K / 32) and (N, K / 32), or None. Two fp4 of a byte are neighbours along K; with `lhs_k_pack` (or `rhs_k_pack`) False,
    along M (or N). `fast_math` leaves out what is needed where a scale is NaN.

    AMD's MI350 multiplies fp8 and fp4 with their scales; elsewhere operands are scaled to bf16 or fp16 and multiplied as `dot`
    does. `tilework.tools.mxfp` makes operands and scales from floats.

    Example:
        @tilework.jit
        def kernel(a, b, a_scale, out):
            i, k = tl.arange(0, 16), tl.arange(0, 32)
            left = tl.load(a + i[:, None] * 32 + k[None, :]).to(tl.bfloat16)
            right = tl.load(b + k[:, None] * 16 + i[None, :]).to(tl.bfloat16)
            scale = tl.load(a_scale + i[:, None] + tl.arange(0, 1)[None, :])
            product = tl.dot_scaled(left, scale, "bf16", right, None, "bf16")
            tl.store(out + i[:, None] * 16 + i[None, :], product)

        a, b = np.ones((16, 32), np.float32), np.ones((32, 16), np.float32)
        exponents, out = np.full((16, 1), 128, np.uint8), np.empty((16, 16), np.float32)
        kernel[(1,)](a, b, exponents, out)
        assert_close(out, 2 * (a @ b))  # 128: every group of `a` times 2
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
