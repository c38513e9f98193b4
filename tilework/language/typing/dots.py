"""The rules of `dot`, and of `dot_scaled` for operands with one scale per group of elements.

`a` is (M, K), `b` is (K, N); leading dimensions are a batch. Without `acc` the accumulator starts at zero.
"""

from tilework.language.dtypes import (
    bfloat16,
    dtype,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int8,
    int32,
    uint8,
    uint16,
)
from tilework.language.typing.carrier import Pair, Shape
from tilework.language.typing.shapes import block, shape_of
from tilework.language.typing.windows import Windows
from tilework.language.values import tensor
from tilework.process.triton_version import follows

SAME_DTYPE = frozenset({"int8", "uint8", "fp16", "bf16", "fp32", "fp64"})
RESULT = {"int8": int32, "fp32": float32, "bf16": float32, "fp64": float64}  # others follow out_dtype
FP4 = "e2m1"
PACKED = "only mxfp4 inputs can be packed along a dimension different than K"
FORMATS = {  # format: (element type, the integer type that may carry it)
    FP4: (uint8, uint8),
    "e4m3": (float8e4nv, uint8),
    "e5m2": (float8e5, uint8),
    "bf16": (bfloat16, uint16),
    "fp16": (float16, uint16),
}


class Dots(Windows):
    """`dot` and `dot_scaled`."""

    def dot(
        self,
        lhs: tensor,
        rhs: tensor,
        acc: tensor | None,
        input_precision: str | None,
        allow_tf32: bool | None,
        max_num_imprecise_acc: int | None,
        out_dtype: dtype | None,
    ) -> tensor:
        """``lhs @ rhs + acc``."""
        assert isinstance(lhs, tensor) and isinstance(rhs, tensor), f"dot takes two blocks, got {lhs!r} and {rhs!r}"
        check_operand_dtypes(lhs.dtype, rhs.dtype)
        wanted = out_dtype or (acc.dtype if isinstance(acc, tensor) else float32)
        lhs, rhs = self._without_fp8e4b15(lhs, rhs)
        precision = self._dot_precision(input_precision, allow_tf32)
        shape = dot_shape(lhs, rhs)
        self._check_min_dot_size(lhs, rhs)
        type = block(result_dtype(lhs.dtype, wanted), shape)
        total = self._accumulator(acc, type, wanted)
        limit = self._imprecise_limit(lhs.dtype, max_num_imprecise_acc, shape_of(lhs)[-1])
        return self.matmul(lhs, rhs, total, type, precision, limit)

    def _without_fp8e4b15(self, lhs: tensor, rhs: tensor) -> Pair:
        """Both operands as fp16 if one is fp8e4b15, which no tensor core multiplies."""
        if not (lhs.dtype.is_fp8e4b15() or rhs.dtype.is_fp8e4b15()):
            return lhs, rhs
        if "fp8e4b15" in self.options.deprecated_fp8_dot_operand_dtypes:
            self.warn(
                "the use of fp8e4b15 is deprecated on Hopper and later architectures and can cause significant slow "
                "down. It will be removed in a future release",
                UserWarning,
            )
        return self.cast(lhs, float16), self.cast(rhs, float16)

    def _dot_precision(self, name: str | None, allow_tf32: bool | None) -> str:
        assert name is None or allow_tf32 is None, "Only one of input_precision and allow_tf32 can be specified"
        allowed = tuple(self.options.allowed_dot_input_precisions)
        if name is None:  # allow_tf32 allows what not every GPU has
            requested = None if allow_tf32 is None else "tf32" if allow_tf32 and "tf32" in allowed else "ieee"
            name = self.options.f32_default or requested or self.options.default_dot_input_precision
        assert str(name).lower() in allowed, f"input_precision must be one of {allowed}. Got {name}{self.on_target}"
        return "ieee" if self.options.reproducible else str(name).lower()

    def _check_min_dot_size(self, lhs: tensor, rhs: tensor) -> None:
        left, right = shape_of(lhs), shape_of(rhs)
        m, n, k = self.options.min_dot_size(lhs.type, rhs.type)
        if left[-2] < m or left[-1] < k or right[-1] < n:
            sizes = f"M = {left[-2]}, N = {right[-1]} and K = {left[-1]}{self.on_target}"
            refusal = f"Input shapes should have M >= {m}, N >= {n} and K >= {k}: got {sizes}"
            self.beyond_triton(AssertionError(refusal))

    def _imprecise_limit(self, element: dtype, limit: int | None, k: int) -> int:
        if limit is None:
            return self.options.max_num_imprecise_acc_default if element.is_fp8() else 0
        if element.is_fp8() and limit > k:
            raise ValueError(f"max_num_imprecise_acc ({limit}) must be <= K ({k})")
        return limit

    def _accumulator(self, acc: tensor | None, type: dtype, out_dtype: dtype) -> tensor | None:
        """`acc`, which has the shape and type of the result, or None."""
        total = self.optional_tensor(acc)
        if total is None:
            return None
        shape, result = type.sizes, type.scalar
        assert shape_of(total) == shape, (
            f"accumulator shape is incompatible: the result is {list(shape)}, acc {list(shape_of(total))}"
        )
        assert total.dtype == out_dtype and total.dtype == result, (
            f"acc is {total.dtype}, but the product is {result} and out_dtype is {out_dtype}: pass out_dtype={result} "
            f"and an acc of {result}"
        )
        return total

    def dot_scaled(
        self,
        lhs: tensor,
        lhs_scale: tensor | None,
        lhs_format: str,
        rhs: tensor,
        rhs_scale: tensor | None,
        rhs_format: str,
        acc: tensor | None,
        fast_math: bool,
        lhs_k_pack: bool,
        rhs_k_pack: bool,
        out_dtype: dtype,
    ) -> tensor:
        """``(lhs * scales) @ (rhs * scales) + acc``; each scale covers 32 (or 16) consecutive elements along K."""
        lhs, rhs = self._in_format(lhs, lhs_format, "lhs"), self._in_format(rhs, rhs_format, "rhs")
        left, right = shape_of(lhs), shape_of(rhs)
        assert len(left) == len(right) and len(left) in (2, 3) and left[:-2] == right[:-2], (
            f"Both inputs must be either 2D or 3D; (lhs: {list(left)} vs rhs: {list(right)}), with equal batches"
        )
        assert lhs_k_pack or lhs_format == FP4, f"{PACKED}: lhs is {lhs_format}"
        assert rhs_k_pack or rhs_format == FP4, f"{PACKED}: rhs is {rhs_format}"
        m, left_k = unpacked(left[-2], left[-1], lhs_format, lhs_k_pack)
        n, right_k = unpacked(right[-1], right[-2], rhs_format, rhs_k_pack)
        assert left_k == right_k, (
            f"Reduction dimension should pack the same number of elements; (lhs: {list(left)} {lhs_format} has "
            f"{left_k}, rhs: {list(right)} {rhs_format} has {right_k})"
        )
        batch = left[:-2]
        left_scale = self._scale(lhs_scale, (*batch, m), left_k, "lhs_scale")
        right_scale = self._scale(rhs_scale, (*batch, n), right_k, "rhs_scale")
        assert out_dtype == float32, f"Only float32 is supported for out_dtype at the moment, got {out_dtype}"
        type = block(float32, (*batch, m, n))
        return self.scaled_matmul(
            (lhs, left_scale, lhs_format, bool(lhs_k_pack)),
            (rhs, right_scale, rhs_format, bool(rhs_k_pack)),
            self._accumulator(acc, type, float32),
            type,
            bool(fast_math),
        )

    def _in_format(self, operand: tensor, format: str, name: str) -> tensor:
        """`operand` as elements of `format`: integers that carry the bits are reinterpreted."""
        if format not in FORMATS:
            raise ValueError(f"Invalid float format: {format}. The formats of {name} are {', '.join(FORMATS)}")
        element, carrier = FORMATS[format]
        have = operand.dtype
        assert have in (element, carrier), (
            f"Unexpected dtype for {format}. Got {have}: {name} takes {element} or {carrier}"
        )
        return operand if have == element else self.bitcast(operand, element)

    def _scale(self, scale: tensor | None, rows: Shape, k: int, name: str) -> tensor | None:
        factors = self.optional_tensor(scale)
        if factors is None:
            return None
        if factors.dtype == int8:
            factors = self.bitcast(factors, uint8)
        have = factors.dtype
        assert have in (uint8, float8e4nv), f"{name} must hold uint8 or int8 (e8m0) or fp8e4nv elements, got {have}"
        group = scale_group(have)
        assert k % group == 0, (
            f"{name} has one scale for {group} neighbours along K, which is {k}: no multiple of {group}"
        )
        wanted, given = (*rows, k // group), shape_of(factors)
        if given != wanted:
            *_, m, groups = wanted
            shown = f"[..., {m}, {groups}]" if given[-2:] != wanted[-2:] and follows("scale-shapes") else list(wanted)
            raise AssertionError(f"{name} must be a tensor of shape {shown}. Got {[str(size) for size in given]}")
        return factors


def scale_group(scale: dtype) -> int:
    """Return the number of neighbours along K that share one scale of this type."""
    return 16 if scale.is_fp8e4nv() else 32


def check_operand_dtypes(lhs: dtype, rhs: dtype) -> None:
    """Both operands int8, both of one float type, or both fp8."""
    if lhs.is_fp8() and rhs.is_fp8():
        return
    for side, element in (("lhs", lhs), ("rhs", rhs)):
        assert element.is_fp8() or element.name in SAME_DTYPE, f"Unsupported {side} dtype {element}"
    assert lhs == rhs, f"Both operands must be same dtype. Got {lhs} and {rhs}"
    assert not lhs.is_uint8(), "only int8 supported! Cast the uint8 operands of dot to int8"


def dot_shape(lhs: tensor, rhs: tensor) -> Shape:
    """The shape of the result; operands that do not fit are refused."""
    left, right = shape_of(lhs), shape_of(rhs)
    assert len(left) == len(right) and len(left) >= 2, (
        f"input and other must have equal ranks >= 2, got {list(left)} and {list(right)}"
    )
    assert left[:-2] == right[:-2], f"input and other must have equal batch shapes, got {list(left)} and {list(right)}"
    assert left[-1] == right[-2], (
        f"input and other must have equal reduction dimensions: {list(left)} has {left[-1]} columns, "
        f"{list(right)} has {right[-2]} rows"
    )
    return (*left[:-1], right[-1])


def result_dtype(element: dtype, out_dtype: dtype) -> dtype:
    """The element type of a dot of two blocks of `element`."""
    if out_dtype.is_bf16():
        raise ValueError(
            "out_dtype=bfloat16 is unsupported. Please use out_dtype=float32/float16 and cast with `.to(tl.bfloat16)`"
        )
    if (result := RESULT.get(element.name)) is not None:
        return result
    assert out_dtype in (float16, float32), f"out_dtype of a dot of {element} must be fp16 or fp32, got {out_dtype}"
    return out_dtype


def unpacked(other: int, k: int, format: str, k_pack: bool) -> tuple[int, int]:
    """(M or N, K) counted in elements: a byte of e2m1 holds two, along K or along the other dimension."""
    if format != FP4:
        return other, k
    return (other, 2 * k) if k_pack else (2 * other, k)
