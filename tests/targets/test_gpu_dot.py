"""`tt.dot` in PTX: every element type, transposed operands, batches and small tiles, exact in the emulator.

Operands are small whole numbers, so that every product and sum is exact in every format, in any order.
"""

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.frontend.generator import compile_to_ttir
from tilework.frontend.kernel import any_dot_size
from tilework.layouts.banks import offsets_of
from tilework.layouts.encodings import DotOperand, NvidiaMma, NvmmaShared, SwizzledShared
from tilework.layouts.to_linear import to_linear
from tilework.oracles.emulator.check import CheckFailed
from tilework.oracles.emulator.device import Device
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.lower.emit import emit_module
from tilework.targets.nvidia.lower.matrix_load import matrix_form
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.targets.nvidia.ptx import PtxSettings, to_ptx
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline

Array = np.ndarray[Any, Any]
DTYPES: dict[str, Any] = {
    "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32, "fp64": np.float64, "i8": np.int8,
    "i32": np.int32,
    "fp8e4nv": ml_dtypes.float8_e4m3fn, "fp8e5": ml_dtypes.float8_e5m2,
}  # fmt: skip
ACCUMULATORS = {"fp16": tl.float16, "fp32": tl.float32, "fp64": tl.float64, "i32": tl.int32}


@tilework.jit
def one_dot(
    a_ptr, b_ptr, c_ptr, d_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    A_TRANSPOSED: tl.constexpr, B_TRANSPOSED: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr,
    TO: tl.constexpr,
):  # fmt: skip
    """`d = a @ b + c`; a transposed operand is stored with its last two dimensions exchanged."""
    batch, m, n, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    if A_TRANSPOSED:
        a = tl.trans(tl.load(a_ptr + batch[:, None, None] * M * K + k[None, :, None] * M + m[None, None, :]), 0, 2, 1)
    else:
        a = tl.load(a_ptr + batch[:, None, None] * M * K + m[None, :, None] * K + k[None, None, :])
    if B_TRANSPOSED:
        b = tl.trans(tl.load(b_ptr + batch[:, None, None] * N * K + n[None, :, None] * K + k[None, None, :]), 0, 2, 1)
    else:
        b = tl.load(b_ptr + batch[:, None, None] * N * K + k[None, :, None] * N + n[None, None, :])
    addresses = batch[:, None, None] * M * N + m[None, :, None] * N + n[None, None, :]
    c = tl.load(c_ptr + addresses)
    if TO is not None:
        a, b = a.to(TO), b.to(TO)
    if B == 1:
        a, b, c = tl.reshape(a, (M, K)), tl.reshape(b, (K, N)), tl.reshape(c, (M, N))
        addresses = tl.reshape(addresses, (M, N))
    d = tl.dot(a, b, c, input_precision=PRECISION, out_dtype=ACC)
    tl.store(d_ptr + addresses, d.to(d_ptr.dtype.element_ty))


@tilework.jit
def stored_dot(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TRANSPOSED: tl.constexpr):
    """A product in f16, stored by rows or by columns: both go through shared memory as matrices."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    d = tl.dot(a, b).to(tl.float16)
    addresses = n[None, :] * M + m[:, None] if TRANSPOSED else m[:, None] * N + n[None, :]
    tl.store(c_ptr + addresses, d)


@tilework.jit
def reduced_dot(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """The largest number of each row of a product in f16."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    d = tl.dot(tl.load(a_ptr + m[:, None] * K + k[None, :]), tl.load(b_ptr + k[:, None] * N + n[None, :]))
    tl.store(c_ptr + m, tl.max(d.to(c_ptr.dtype.element_ty), 1))


@tilework.jit
def many_dots(
    a_ptr, b_ptr, c_ptr, COUNT, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A_TRANSPOSED: tl.constexpr,
    ACC: tl.constexpr,
):  # fmt: skip
    """A sum of products in a loop: operands are read from shared memory."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), ACC)
    for step in range(COUNT):
        base = a_ptr + step * M * K
        if A_TRANSPOSED:
            a = tl.trans(tl.load(base + k[:, None] * M + m[None, :]))
        else:
            a = tl.load(base + m[:, None] * K + k[None, :])
        b = tl.load(b_ptr + step * N * K + k[:, None] * N + n[None, :])
        total = tl.dot(a.to(b.dtype), b, total, out_dtype=ACC)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@tilework.jit
def computed_dots(
    a_ptr, b_ptr, s_ptr, c_ptr, COUNT, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ASKS: tl.constexpr
):
    """A sum of products whose left factors are computed, with a scale for each row."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    scale = tl.load(s_ptr + m).to(b_ptr.dtype.element_ty)
    total = tl.zeros((M, N), tl.float32)
    for step in tl.range(COUNT, warp_specialize=ASKS):
        a = tl.load(a_ptr + step * M * K + m[:, None] * K + k[None, :])
        b = tl.load(b_ptr + step * N * K + k[:, None] * N + n[None, :])
        total = tl.dot(a.to(b.dtype) * scale[:, None] + 1, b, total)
    tl.store(c_ptr + m[:, None] * N + n[None, :], total)


@tilework.jit
def repeated_dots(x_ptr, h_ptr, out_ptr, COUNT, M: tl.constexpr, K: tl.constexpr, H_TRANSPOSED: tl.constexpr):
    """Products with one matrix, which is loaded before the loop."""
    m, k = tl.arange(0, M)[:, None], tl.arange(0, K)[None, :]
    x = tl.load(x_ptr + m * K + k)
    row, column = tl.arange(0, K)[:, None], tl.arange(0, K)[None, :]
    h = tl.trans(tl.load(h_ptr + row + column * K)) if H_TRANSPOSED else tl.load(h_ptr + row * K + column)
    for _ in range(COUNT):
        x = tl.dot(x, h).to(h.dtype)
    tl.store(out_ptr + m * K + k, x)


@tilework.jit
def computed_pairs(a_ptr, b_ptr, c_ptr, COUNT, ASKS: tl.constexpr):
    """Two such sums: what both are computed from is read first."""
    m, k = tl.arange(0, 64), tl.arange(0, 32)
    first, second = tl.zeros((64, 64), tl.float32), tl.zeros((64, 64), tl.float32)
    for step in tl.range(COUNT, warp_specialize=ASKS):
        at = a_ptr + step * 4096 + m[:, None] * 32 + k[None, :]
        a, other = tl.load(at), tl.load(at + 2048)
        b = tl.load(b_ptr + step * 2048 + k[:, None] * 64 + m[None, :])
        first = tl.dot(a.to(b.dtype), b, first)
        second = tl.dot(other.to(b.dtype), b, second)
    tl.store(c_ptr + m[:, None] * 64 + m[None, :], first - second)


@tilework.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, LENGTH, D: tl.constexpr):
    """The second product of each iteration follows from the first."""
    m, d = tl.arange(0, 64)[:, None], tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + m * D + d)
    peak, total = tl.full((64,), -float("inf"), tl.float32), tl.zeros((64,), tl.float32)
    acc = tl.zeros((64, D), tl.float32)
    for start in range(0, LENGTH, 64):
        scores = tl.dot(q, tl.load(k_ptr + (start + m) * D + d).T)
        high = tl.maximum(peak, tl.max(scores, 1))
        p = tl.exp2(scores - high[:, None])
        shrink = tl.exp2(peak - high)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p.to(tl.float16), tl.load(v_ptr + (start + m) * D + d), acc * shrink[:, None])
        peak = high
    tl.store(o_ptr + m * D + d, acc / total[:, None])


@tilework.jit
def scaled_dot(
    a_ptr, s_ptr, b_ptr, d_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A: tl.constexpr, B: tl.constexpr,
    PACK: tl.constexpr,
):  # fmt: skip
    m, n, k, group = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K), tl.arange(0, K // 32)
    packed = tl.arange(0, K // PACK)
    a = tl.load(a_ptr + m[:, None] * (K // PACK) + packed[None, :])
    s = tl.load(s_ptr + m[:, None] * (K // 32) + group[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    d = tl.dot_scaled(a, s, A, b, None, B)
    tl.store(d_ptr + m[:, None] * N + n[None, :], d)


@cache
def ptx_of(kernel: Any, arch: int, warps: int, types: tuple[str, ...], constexprs: tuple[Any, ...]) -> str:
    """PTX of a kernel whose first parameters have these types, and the others these values."""
    names = kernel.arg_names
    signature = dict(zip(names, (*types, *["constexpr"] * len(constexprs)), strict=True))
    values = dict(zip(names[len(types) :], constexprs, strict=True))
    aligned = {(address,): [["tt.divisibility", 16]] for address, type in enumerate(types) if type.startswith("*")}
    options = replace(frontend_options(GPUTarget("cuda", arch, 32), {}), min_dot_size=any_dot_size)
    module = compile_to_ttir(kernel, signature, values, aligned, options)
    passes = [one for item in ttgir_pipeline(Target.parse(f"cuda:{arch}"), warps, 3, 1) for one in parse_pipeline(item)]
    run_pipeline(module, [*ttir_pipeline(Target.parse(f"cuda:{arch}")), *passes])
    return to_ptx(emit_module(module, arch), PtxSettings("sm_90a" if arch == 90 else f"sm_{arch}", 88))


def launch(text: str, name: str, warps: int, *arguments: Any) -> None:
    """Run one program; arrays hold afterwards what it wrote."""
    device = Device(check=True, together=True)
    addresses = [device.upload(value) if isinstance(value, np.ndarray) else value for value in arguments]
    device.launch(
        device.load(text).function(name), (1,), 32 * warps, [*addresses, 0, 0], ptx_text.metadata(text).get("shared", 0)
    )
    device.synchronize()
    for address, value in zip(addresses, arguments, strict=True):
        if isinstance(value, np.ndarray):
            value[...] = device.download(address, value)


def numbers(rng: np.random.Generator, dtype: str, *shape: int) -> Array:
    return rng.integers(-3, 4, shape).astype(DTYPES[dtype])


@dataclass(frozen=True)
class Dot:
    """One product, and the instruction it should become (nothing: multiply-adds)."""

    dtype: str
    acc: str
    shape: tuple[int, int, int, int] = (1, 32, 32, 32)
    arch: int = 80
    mma: str = ""
    a_transposed: bool = False
    b_transposed: bool = False
    precision: str = "tf32"
    warps: int = 4
    b_dtype: str = ""
    to: Any = None

    def __str__(self) -> str:
        sides = "".join("t" if transposed else "n" for transposed in (self.a_transposed, self.b_transposed))
        types = "-".join(filter(None, (self.dtype, self.b_dtype, str(self.to or ""), self.acc, self.precision)))
        return f"{types}-{'x'.join(map(str, self.shape))}-{sides}-sm{self.arch}-w{self.warps}"

    def check(self) -> str:
        """The PTX, which computes what NumPy does."""
        batch, m, n, k = self.shape
        rng = np.random.default_rng(5)
        a, b = numbers(rng, self.dtype, batch, m, k), numbers(rng, self.b_dtype or self.dtype, batch, k, n)
        c = numbers(rng, self.acc, batch, m, n)
        types = [self.dtype, self.b_dtype or self.dtype, self.acc, self.acc]
        text = ptx_of(
            one_dot, self.arch, self.warps, tuple(f"*{type}" for type in types),
            (*self.shape, self.a_transposed, self.b_transposed, ACCUMULATORS[self.acc], self.precision, self.to),
        )  # fmt: skip
        d = np.zeros_like(c)
        sides = [np.ascontiguousarray(side.swapaxes(1, 2)) if transposed else side
                 for side, transposed in ((a, self.a_transposed), (b, self.b_transposed))]  # fmt: skip
        launch(text, "one_dot", self.warps, *sides, c, d)
        np.testing.assert_array_equal(d.astype("f8"), np.matmul(a.astype("f8"), b.astype("f8")) + c.astype("f8"))
        assert (f"mma.sync.aligned.{self.mma}" in text) if self.mma else ("mma" not in text)
        return text


TYPES = [
    Dot("fp16", "fp32", mma="m16n8k16.row.col.f32.f16.f16.f32"),
    Dot("fp16", "fp16", mma="m16n8k16.row.col.f16.f16.f16.f16"),
    Dot("bf16", "fp32", mma="m16n8k16.row.col.f32.bf16.bf16.f32"),
    Dot("fp32", "fp32", shape=(1, 32, 16, 32), mma="m16n8k8.row.col.f32.tf32.tf32.f32"),
    Dot("fp32", "fp32", shape=(1, 16, 32, 16), precision="ieee"),
    Dot("fp32", "fp32", precision="tf32x3", shape=(1, 16, 16, 16), mma="m16n8k8.row.col.f32.tf32.tf32.f32"),
    Dot("fp32", "fp32", precision="bf16x6", shape=(1, 16, 16, 16), mma="m16n8k16.row.col.f32.bf16.bf16.f32"),
    Dot("i8", "i32", mma="m16n8k32.row.col.satfinite.s32.s8.s8.s32"),
    Dot("fp8e5", "fp32", mma="m16n8k16.row.col.f32.f16.f16.f32"),
    Dot("fp8e5", "fp32", arch=89, mma="m16n8k32.row.col.f32.e5m2.e5m2.f32"),
    Dot("fp8e4nv", "fp32", arch=89, b_dtype="fp8e5", mma="m16n8k32.row.col.f32.e4m3.e5m2.f32"),
    Dot("fp8e4nv", "fp16", arch=89, mma="m16n8k32.row.col.f16.e4m3.e4m3.f16"),
    Dot("fp64", "fp64", shape=(1, 32, 16, 16), mma="m8n8k4.row.col.f64.f64.f64.f64"),
    Dot("fp64", "fp64", shape=(1, 32, 16, 32), arch=90, mma="m16n8k16.row.col.f64.f64.f64.f64"),
    Dot("fp64", "fp64", arch=86, shape=(1, 16, 16, 16)),
    Dot("i8", "fp32", to=tl.float16, mma="m16n8k16.row.col.f32.f16.f16.f32"),  # four neighbours along K in a thread
]
SMALL = [
    Dot("fp16", "fp32", shape=(1, 16, 16, 16), arch=90, mma="m16n8k16"),
    Dot("bf16", "fp32", shape=(1, 16, 64, 16), arch=90, mma="m16n8k16", b_transposed=True),
    Dot("fp8e4nv", "fp32", shape=(1, 16, 32, 32), arch=90, mma="m16n8k16.row.col.f32.f16.f16.f32"),
    Dot("fp32", "fp32", shape=(1, 16, 32, 16), arch=90, mma="m16n8k8"),
    Dot("fp16", "fp32", shape=(1, 8, 32, 16), mma="m16n8k16"),
    Dot("fp16", "fp32", shape=(1, 1, 16, 16), mma="m16n8k16"),
    Dot("fp16", "fp32", shape=(1, 16, 4, 32), mma="m16n8k16"),
    Dot("i8", "fp32", shape=(1, 16, 16, 16), to=tl.float16, mma="m16n8k16"),
    Dot("fp16", "fp32", shape=(1, 32, 32, 16), warps=1, mma="m16n8k16"),
    Dot("fp16", "fp32", shape=(1, 32, 64, 32), warps=8, mma="m16n8k16"),
]
SHALLOW = [  # K is less than what the lanes of a warp have room for: the language refuses it, the layouts do not
    Dot("fp16", "fp32", shape=(1, 16, 16, 8), mma="m16n8k8"),
    Dot("fp16", "fp32", shape=(1, 16, 16, 4), mma="m16n8k8"),
    Dot("fp16", "fp16", shape=(1, 16, 16, 1), mma="m16n8k8"),
    Dot("fp32", "fp32", shape=(1, 16, 16, 2), mma="m16n8k4"),
    Dot("i8", "i32", shape=(1, 16, 16, 8), mma="m16n8k16"),
    Dot("fp64", "fp64", shape=(1, 16, 16, 2), mma="m8n8k4"),
    Dot("fp64", "fp64", shape=(1, 16, 16, 8), arch=90, mma="m16n8k8"),
]
WITHOUT_CORES = [
    Dot("fp16", "fp32", shape=(1, 16, 16, 16), arch=75),
    Dot("fp16", "fp16", shape=(2, 16, 8, 16), arch=75),
    Dot("i8", "i32", shape=(1, 16, 16, 32), arch=75),
    Dot("fp32", "fp32", shape=(1, 1, 1, 16), precision="ieee"),
]
FROM_MEMORY = [
    Dot("fp32", "fp32", shape=(1, 32, 64, 64), precision="ieee", b_transposed=True),
    Dot("fp16", "fp16", shape=(2, 16, 32, 128), arch=75, a_transposed=True),
    Dot("i8", "i32", shape=(1, 32, 32, 128), arch=75, warps=1),
]
BATCHES = [
    Dot("fp16", "fp32", shape=(4, 16, 32, 16), mma="m16n8k16"),
    Dot("fp16", "fp32", shape=(2, 32, 16, 32), arch=90, mma="m16n8k16", b_transposed=True),
    Dot("fp32", "fp32", shape=(2, 16, 16, 16), precision="ieee"),
    Dot("i8", "i32", shape=(8, 16, 16, 32), mma="m16n8k32"),
]
TRANSPOSED = [
    replace(dot, a_transposed=a, b_transposed=b)
    for dot in (TYPES[0], TYPES[7], TYPES[4])
    for a, b in ((True, False), (False, True), (True, True))
]


@pytest.mark.parametrize("dot", [*TYPES, *SMALL, *SHALLOW, *WITHOUT_CORES, *BATCHES, *TRANSPOSED], ids=str)
def test_a_product_is_exact(dot: Dot) -> None:
    dot.check()


@pytest.mark.parametrize("dot", FROM_MEMORY, ids=str)
def test_large_products_without_tensor_cores_are_a_loop_over_k(dot: Dot) -> None:
    products = dot.shape[0] * dot.shape[1] * dot.shape[2] * dot.shape[3] // (32 * dot.warps)
    assert len(re.findall(r"fma\.rn\.f32|mad\.lo\.s32", dot.check())) < products // 2


def sum_of_products(dtype: str, arch: int, shape: tuple[int, int, int], count: int, a_transposed: bool) -> str:
    """The PTX of a loop that adds `count` products, which are those of NumPy."""
    m, n, k = shape
    rng = np.random.default_rng(6)
    a, b = numbers(rng, dtype, count, *((k, m) if a_transposed else (m, k))), numbers(rng, dtype, count, k, n)
    acc = "i32" if dtype == "i8" else "fp32"
    c = np.zeros((m, n), DTYPES[acc])
    types = (f"*{dtype}", f"*{dtype}", f"*{acc}", "i32")
    text = ptx_of(many_dots, arch, 4, types, (m, n, k, a_transposed, ACCUMULATORS[acc]))
    launch(text, "many_dots", 4, a, b, c, count)
    wide = a.astype("f8")
    np.testing.assert_array_equal(c, np.matmul(wide.swapaxes(1, 2) if a_transposed else wide, b.astype("f8")).sum(0))
    return text


@pytest.mark.parametrize(("dtype", "k", "asks"), [("i8", 64, False), ("i8", 32, True), ("fp8e5", 32, False)])
def test_registers_of_a_left_factor_are_filled_when_the_product_before_is_done(dtype: str, k: int, asks: bool) -> None:
    """They are computed piece by piece, while the products of the pieces before run on."""
    rng = np.random.default_rng(7)
    a, b, s = numbers(rng, dtype, 4, 64, k), numbers(rng, "fp16", 4, k, 64), numbers(rng, "i8", 64)
    c = np.zeros((64, 64), np.float32)
    text = ptx_of(computed_dots, 90, 4, (f"*{dtype}", "*fp16", "*i8", "*fp32", "i32"), (64, 64, k, asks))
    assert text.count(f"wgmma.wait_group.sync.aligned {k // 16 - 1};") == text.count("wgmma.mma_async") == k // 16
    launch(text, "computed_dots", ptx_text.metadata(text).get("num_warps", 4), a, b, s, c, 4)
    left = a.astype("f8") * s.astype("f8")[:, None] + 1
    np.testing.assert_array_equal(c, np.matmul(left, b.astype("f8")).sum(0))
    if dtype == "fp8e5":
        with pytest.raises(CheckFailed, match="missing proxy fence: wgmma reads shared"):
            launch(text.replace("fence.proxy.async.shared::cta;", ""), "computed_dots", 4, a, b, s, c, 1)


@pytest.mark.parametrize(("arch", "shuffles"), [(80, 0), (90, 1)])
def test_the_number_of_a_warp_is_uniform_where_groups_of_warps_multiply(arch: int, shuffles: int) -> None:
    """Once, at the start: ptxas keeps what is computed from it in uniform registers."""
    text = ptx_of(many_dots, arch, 8, ("*fp16", "*fp16", "*fp32", "i32"), (128, 64, 32, False, ACCUMULATORS["fp32"]))
    before, _, _ = text.partition("$L__BB")
    assert before.count("shfl.sync.idx") == text.count("shfl.sync.idx") == shuffles


@pytest.mark.parametrize("asks", [False, True])
def test_no_factor_is_read_before_another_product(asks: bool) -> None:
    """Its registers would have to be free in the meantime: products would end in their iteration."""
    text = ptx_of(computed_pairs, 90, 4, ("*i8", "*fp16", "*fp32", "i32"), (asks,))
    assert text.count("wgmma.wait_group.sync.aligned 3;") == text.count("wgmma.mma_async") == 4


@pytest.mark.parametrize(("dtype", "a_transposed"), [("fp8e4nv", False), ("i8", True), ("fp32", False)])
def test_wgmma_takes_operands_that_do_not_lie_along_k(dtype: str, a_transposed: bool) -> None:
    """The right one becomes the left one of the transposed product; the left one, if both lie across, comes from
    registers."""
    text = sum_of_products(dtype, 90, (64, 64, 32), 3, a_transposed)
    assert "wgmma.mma_async" in text and not re.findall(r"ld\.shared\.[bu]8|mma\.sync", text)
    assert ("ldmatrix.sync.aligned.m8n8.x4.trans" in text) == (dtype != "fp32")
    assert a_transposed or "st.shared" not in text[text.index("wgmma") : text.rindex("wgmma.mma_async")]


@pytest.mark.parametrize("dtype", ["fp8e4nv", "fp32"])
def test_factors_that_both_lie_across_have_few_bank_conflicts(dtype: str) -> None:
    """The right one is read as the left one is, and written along K: thirty turns of shared memory for one, if its rows
    were written so."""
    rng = np.random.default_rng(9)
    a, b, c = numbers(rng, dtype, 2, 32, 64), numbers(rng, dtype, 2, 32, 64), np.zeros((64, 64), np.float32)
    text = ptx_of(many_dots, 90, 4, (f"*{dtype}", f"*{dtype}", "*fp32", "i32"), (64, 64, 32, True, tl.float32))
    device = Device(check=True, counters=True)
    addresses = [device.upload(value) for value in (a, b, c)]
    device.launch(
        device.load(text).function("many_dots"), (1,), 128, [*addresses, 2, 0, 0], ptx_text.metadata(text)["shared"]
    )
    device.synchronize()
    wide = a.astype("f8").swapaxes(1, 2) @ b.astype("f8")
    np.testing.assert_array_equal(device.download(addresses[2], c), wide.sum(0))
    assert device.counters is not None and device.counters.total.conflicts * 4 < device.counters.total.wavefronts


@pytest.mark.parametrize(("dtype", "transposed"), [("fp8e4nv", False), ("fp32", False), ("fp32", True)])
@pytest.mark.parametrize("count", [0, 3])
def test_a_right_factor_from_outside_a_loop_is_copied_once(dtype: str, transposed: bool, count: int) -> None:
    """It is not contiguous along K: the copy along K is made in front of the loop."""
    rng = np.random.default_rng(10)
    x, out = numbers(rng, dtype, 64, 64), np.zeros((64, 64), DTYPES[dtype])
    h = (np.eye(64)[rng.permutation(64)] * rng.choice([-1, 1], 64)).astype(DTYPES[dtype])
    text = ptx_of(repeated_dots, 90, 4, (*[f"*{dtype}"] * 3, "i32"), (64, 64, transposed))
    before, loop = text[: text.rindex("wgmma.wait_group")].split("$L__BB0_1:")
    assert "stmatrix" in before and "stmatrix" not in loop
    launch(text, "repeated_dots", 4, x, h, out, count)
    np.testing.assert_array_equal(out, x.astype("f8") @ np.linalg.matrix_power(h.astype("f8"), count))


def test_a_product_of_what_is_computed_from_another_one() -> None:
    length, depth = 192, 64
    rng = np.random.default_rng(8)
    q, k, v = (numbers(rng, "fp16", rows, depth) / 16 for rows in (64, length, length))
    o = np.zeros((64, depth), np.float32)
    text = ptx_of(attention, 90, 4, ("*fp16", "*fp16", "*fp16", "*fp32", "i32"), (depth,))
    launch(text, "attention", 4, q, k, v, o, length)
    p = np.exp2(q.astype("f8") @ k.astype("f8").T)
    np.testing.assert_allclose(o, p @ v.astype("f8") / p.sum(1, keepdims=True), atol=1e-3)


@pytest.mark.parametrize(
    ("dtype", "arch", "a_transposed"),
    [("fp16", 80, False), ("bf16", 80, True), ("bf16", 90, False), ("fp16", 90, True)],
)
def test_operands_in_shared_memory_are_loaded_as_matrices(dtype: str, arch: int, a_transposed: bool) -> None:
    text = sum_of_products(dtype, arch, (32, 32, 32), 3, a_transposed)
    forms = re.findall(r"ldmatrix\.sync\.aligned\.m8n8\.x4(\.trans)?", text)
    assert forms.count(".trans") and (a_transposed or forms.count("")), forms
    assert not re.findall(r"ld\.shared\.[bu]16", text)


@pytest.mark.parametrize(("arch", "transposed"), [(80, False), (90, False), (90, True)])
def test_a_product_changes_its_layout_as_matrices(arch: int, transposed: bool) -> None:
    m, n, k = 32, 64, 16
    rng = np.random.default_rng(7)
    a, b = numbers(rng, "fp16", m, k), numbers(rng, "fp16", k, n)
    c = np.zeros((n, m) if transposed else (m, n), np.float16)
    text = ptx_of(stored_dot, arch, 4, ("*fp16",) * 3, (m, n, k, transposed))
    launch(text, "stored_dot", 4, a, b, c)
    np.testing.assert_array_equal(c.T if transposed else c, a.astype("f8") @ b.astype("f8"))
    assert ("stmatrix" in text) == (arch == 90)


@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
def test_a_product_is_converted_two_numbers_at_a_time(dtype: str) -> None:
    """Of two single conversions ptxas makes one, in front of the wait for the product: on a GPU the numbers were
    wrong."""
    rng = np.random.default_rng(7)
    a, b, c = numbers(rng, "fp16", 64, 16), numbers(rng, "fp16", 16, 64), np.zeros(64, DTYPES[dtype])
    text = ptx_of(reduced_dot, 90, 4, ("*fp16", "*fp16", f"*{dtype}"), (64, 64, 16))
    launch(text, "reduced_dot", 4, a, b, c)
    np.testing.assert_array_equal(c.astype("f8"), (a.astype("f8") @ b.astype("f8")).max(1))
    kind = "bf16" if dtype == "bf16" else "f16"
    assert f"cvt.rn.{kind}x2.f32" in text and f"cvt.rn.{kind}.f32" not in text


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("wide", ["bf16", "fp16"])
def test_a_scaled_product_of_4_bit_numbers_is_exact(arch: int, wide: str) -> None:
    m, n, k = 32, 32, 64
    rng = np.random.default_rng(8)
    a = rng.integers(0, 256, (m, k // 2)).astype(np.uint8)
    scale = rng.integers(126, 129, (m, k // 32)).astype(np.uint8)
    b, d = numbers(rng, wide, k, n), np.zeros((m, n), np.float32)
    types = ("*u8", "*u8", f"*{wide}", "*fp32")
    text = ptx_of(scaled_dot, arch, 4, types, (m, n, k, "e2m1", wide, 2))
    launch(text, "scaled_dot", 4, a, scale, b, d)
    left = np.stack((E2M1[a & 15], E2M1[a >> 4]), -1).reshape(m, k) * np.repeat(
        2.0 ** (scale.astype("f8") - 127), 32, 1
    )
    np.testing.assert_array_equal(d, left @ b.astype("f8"))


MMA = NvidiaMma(2, 0, (2, 2), (16, 8))


@pytest.mark.parametrize(
    ("operand", "shape", "shared", "bits", "expected"),
    [
        (DotOperand(0, MMA, 2), (32, 32), SwizzledShared(8, 2, 4, (1, 0)), 16, (False, 4)),
        (DotOperand(1, MMA, 2), (32, 64), SwizzledShared(8, 1, 8, (1, 0)), 16, (True, 4)),
        (DotOperand(1, MMA, 2), (16, 16), SwizzledShared(8, 1, 2, (1, 0)), 16, (True, 2)),
        (DotOperand(0, MMA, 2), (64, 64), NvmmaShared(128, False, 16), 16, (False, 4)),
        (DotOperand(0, MMA, 4), (32, 64), SwizzledShared(16, 2, 4, (1, 0)), 8, (False, 4)),
        (DotOperand(0, MMA, 1), (32, 32), SwizzledShared(4, 1, 8, (1, 0)), 32, (False, 4)),
        (DotOperand(1, MMA, 4), (32, 64), SwizzledShared(16, 1, 4, (1, 0)), 8, None),  # columns of bytes
        (DotOperand(0, MMA, 2), (32, 32), SwizzledShared(4, 1, 8, (1, 0)), 16, None),  # rows of 8 bytes
        (DotOperand(1, MMA, 2), (16, 4), SwizzledShared(1, 1, 1, (1, 0)), 16, None),  # copies in lanes
    ],
)
def test_layouts_decide_about_matrices(operand: Any, shape: Any, shared: Any, bits: int, expected: Any) -> None:
    form = matrix_form(offsets_of(to_linear(operand, shape), to_linear(shared, shape)), bits, 1 << 30)
    assert (form and (form.is_transposed, 1 << len(form.matrices))) == expected
