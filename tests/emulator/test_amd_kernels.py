"""Triton's LLVM text of kernels for AMD GPUs (`amd_llir.tar.xz`: after O3, locations removed) on the emulator, compared
with NumPy.

Dots of formats that are mixed (fp8 and bf8) on gfx942 are not among them: Triton 3.6 exchanges the operands and not
their formats.
"""

import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tilework.ir.module_facts import target
from tilework.ir.parser import parse_module
from tilework.numerics.rounding import BF16, F16, F32, F64, FLOATS, narrow, saturate
from tilework.oracles.emulator.findings import CheckFailed
from tilework.oracles.emulator.llvm.run_llvm import run
from tilework.oracles.emulator.llvm.translate_ir import Unsupported
from tilework.targets.amd.lower.emit import emit_module

CDNA, RDNA = "gfx942", "gfx1100"
BOTH = (CDNA, RDNA)
TEXTS = Path(__file__).parent / "amd_llir.tar.xz"
TTGIR = Path(__file__).parent.parent / "ir" / "reference" / "amd"
LDS = 65536


@cache
def texts() -> dict[str, str]:
    with tarfile.open(TEXTS) as archive:
        return {member.name: archive.extractfile(member).read().decode() for member in archive}  # type: ignore[union-attr]


def text_of(arch: str, name: str) -> str:
    return texts()[f"{arch}/{name}.llir"]


def draw(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


def near(found: Any, expected: Any, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(found.astype(np.float32), expected, rtol=tolerance, atol=tolerance)


def softmax_of(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def add(text: str, arch: str) -> None:
    x, y = draw(2, 1500)
    z = np.zeros_like(x)
    run(text, [x, y, z, 1500], 2, arch=arch)
    near(z, x + y, 0)


def softmax(text: str, arch: str) -> None:
    x = draw(1, 3072)
    out = np.zeros_like(x)
    run(text, [out, x, 3072, 3072, 3000], lds_bytes=64, arch=arch)
    near(out[:, :3000], softmax_of(x[:, :3000]))
    assert not out[:, 3000:].any()


def layernorm(text: str, arch: str) -> None:
    x, w, b = draw(3, 6000, dtype=BF16)
    y = np.zeros_like(x)
    run(text, [x, y, w, b, 6000, 5984, 1e-5], lds_bytes=64, arch=arch)
    v, w, b = (one[:5984].astype(np.float32) for one in (x, w, b))
    near(y[:5984], (v - v.mean()) / np.sqrt(v.var() + 1e-5) * w + b, 2e-2)


def cumsum(text: str, arch: str) -> None:
    x = draw(1984)
    y = np.zeros_like(x)
    run(text, [x, y, 1984, 1984], lds_bytes=64, arch=arch)
    near(y, np.cumsum(x), 1e-3)


def sort(text: str, arch: str) -> None:
    x = draw(64)
    y = np.zeros_like(x)
    run(text, [x, y, 64], lds_bytes=1024, arch=arch)
    near(y, np.sort(x), 0)


def transpose(text: str, arch: str) -> None:
    x = draw(64, 96)
    y = np.zeros((96, 64), np.float32)
    run(text, [x, y, 64, 96], (1, 2), lds_bytes=LDS, arch=arch)
    near(y, x.T, 0)


def histogram(text: str, arch: str) -> None:
    x = np.random.default_rng(7).integers(0, 50, 900).astype(np.int32)
    counts = np.zeros(50, np.int32)
    run(text, [x, counts, 900], lds_bytes=8192, arch=arch)
    near(counts, np.bincount(x, minlength=50), 0)


def matmul_f16_small(text: str, arch: str) -> None:
    a, b = draw(56, 160, dtype=np.float16), draw(160, 48, dtype=np.float16)
    c = np.zeros((56, 48), np.float16)
    run(text, [a, b, c, 56, 48, 160, 160, 48, 48], lds_bytes=LDS, arch=arch)
    near(c, a.astype(np.float32) @ b.astype(np.float32), 2e-2)


def attention(text: str, arch: str) -> None:
    q, k, v = draw(3, 128, 64, dtype=np.float16)
    out = np.zeros_like(q)
    run(text, [q, k, v, out, 0.125 / np.log(2), 128 * 64, 64, 128], lds_bytes=LDS, arch=arch)
    q, k, v = (one.astype(np.float32) for one in (q, k, v))
    near(out, softmax_of(q @ k.T / 8) @ v, 2e-2)


def num_programs(text: str, arch: str) -> None:
    out = np.zeros(5, np.int32)
    run(text, [out], (2, 3, 1), 128, arch=arch)
    assert out.tolist() == [2, 3, 1, 2, 0]


def atomic_result(text: str, arch: str) -> None:
    x, table = np.arange(64, dtype=np.int32)[::-1] // 2, np.zeros(32, np.int32)
    old = np.full(64, -1, np.int32)
    run(text, [x.copy(), table, old], 1, 128, LDS, arch)
    assert table.tolist() == [2 * i for i in range(32)]
    near(old, np.where(np.arange(64) % 2, x, 0), 0)


def atomic_scalar(text: str, arch: str) -> None:
    cell, out = np.zeros(1, np.int32), np.full(2, -1, np.int32)
    run(text, [cell, out], 1, 128, 16, arch)
    assert (cell.tolist(), out.tolist()) == ([1], [0, 1])


def atomic_f16(text: str, arch: str) -> None:
    x, y = draw(2, 64, dtype=np.float16)
    total = y.copy()
    run(text, [x, total], 1, 128, arch=arch)
    near(total, x + y, 1e-3)


def sum(text: str, arch: str) -> None:
    x, total = draw(256), np.zeros(1, np.float32)
    run(text, [x, total], 1, 256 if arch == CDNA else 128, 64, arch)
    near(total, x.sum(keepdims=True), 1e-4)


def cumsum_one_wave(text: str, arch: str) -> None:
    x = draw(64)
    y = np.zeros_like(x)
    run(text, [x, y], 1, 64 if arch == CDNA else 32, arch=arch)
    near(y, np.cumsum(x), 1e-4)


def dot_one_wave(text: str, arch: str) -> None:
    a, b = draw(32, 16, dtype=np.float16), draw(16, 32, dtype=np.float16)
    c = np.zeros((32, 32), np.float32)
    run(text, [a, b, c], 1, 64 if arch == CDNA else 32, LDS, arch)
    near(c, a.astype(np.float32) @ b.astype(np.float32))


def histogram_op(text: str, arch: str) -> None:
    x = np.random.default_rng(7).integers(0, 64, 512).astype(np.int32)
    counts = np.zeros(64, np.int32)
    run(text, [x, counts], 1, 256 if arch == CDNA else 128, LDS, arch)
    near(counts, np.bincount(x, minlength=64), 0)


def gather(text: str, arch: str) -> None:
    x, at = draw(64), np.random.default_rng(7).permutation(64).astype(np.int32)
    y = np.zeros_like(x)
    run(text, [x, at, y], 1, 128, LDS, arch)
    near(y, x[at], 0)


def math_f32(text: str, arch: str) -> None:
    x = np.abs(draw(64)) + 0.5
    y = np.zeros((17, 64), np.float32)
    run(text, [x, y], 1, 256, arch=arch)
    expected = [np.exp, np.exp2, np.log, np.log2, np.sqrt, lambda v: 1 / np.sqrt(v), np.sin, np.cos]
    for row, function in zip(y, expected, strict=False):
        near(row, function(x), 1e-5)


def atomics(text: str, arch: str) -> None:
    x, number = draw(256), np.arange(256, dtype=np.int32)
    floats, words = np.repeat(np.array([-100, 0], F32), 8), np.zeros(520, np.int32)
    run(text, [x, floats, words], arch=arch)
    near(floats, np.concatenate([x.reshape(-1, 8).max(0), x.reshape(-1, 8).sum(0)]), 1e-4)
    assert words[:6].tolist() == [-3, -2, -1, 0, 0, -1]
    near(words[8:], np.tile(number, 2), 0)


def misc(text: str, arch: str) -> None:
    """cumsum, sort, max, flip, random numbers; argmax, umulhi, divisions, xor."""
    x, words = draw(512), np.random.default_rng(7).integers(-(2**31), 2**31, 512).astype(np.int32)
    floats, numbers = np.zeros((5, 512), np.float32), np.zeros((5, 512), np.int32)
    run(text, [x, words, floats, numbers], lds_bytes=LDS, arch=arch)
    near(floats[0], np.cumsum(x), 1e-3)
    near(floats[1:4], [np.sort(x), 0 * x + x.max(), x[::-1]], 0)
    high = (words.view(np.uint32).astype(np.uint64) * 1640531527 >> 32).astype(np.int32)
    quotient = np.trunc(words / 7).astype(np.int32)
    expected = [0 * words + x.argmax(), high, quotient, np.fmod(words, 13), 0 * words + np.bitwise_xor.reduce(words)]
    assert numbers.tolist() == np.stack(expected).tolist()


def async_matmul(text: str, arch: str) -> None:
    """Copies go from global memory to LDS directly."""
    a, b = draw(2, 128, 128, dtype=np.float16)
    c = np.zeros_like(a)
    run(text, [a, b, c, 128, 128, 128, 128, 128, 128], lds_bytes=68016, arch=arch)
    near(c, a.astype(np.float32) @ b.astype(np.float32), 2e-2)


Kernel = Callable[[str, str], None]
BY_BOTH: tuple[Kernel, ...] = (
    softmax, layernorm, cumsum, sort, transpose, histogram, matmul_f16_small, num_programs, atomic_result,
    atomic_scalar, atomic_f16,
    sum, cumsum_one_wave, dot_one_wave, histogram_op, gather,
)  # fmt: skip
CASES = [(kernel, arch) for kernel in BY_BOTH for arch in BOTH]
CASES += [(add, CDNA), (attention, CDNA), (math_f32, CDNA), (matmul_f16_small, "gfx1201")]
CASES += [(misc, CDNA), (misc, RDNA), (atomics, RDNA), (async_matmul, "gfx950")]


@pytest.mark.parametrize(("kernel", "arch"), CASES, ids=lambda one: one if isinstance(one, str) else one.__name__)
def test_kernel_of_triton(kernel: Kernel, arch: str) -> None:
    kernel(text_of(arch, kernel.__name__), arch)


@pytest.mark.parametrize("kernel", [add, histogram, matmul_f16_small, attention], ids=lambda one: one.__name__)
def test_ttgir_of_triton(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our code of Triton's TTGIR, with its buffers, pipelined loops and matrix instructions."""
    module = parse_module((TTGIR / f"{kernel.__name__}.{CDNA}.ttgir").read_text())
    text, plain = emit_module(module, target(module)), run
    with_scratch = lambda text, args, *how, **more: plain(text, [*args, None, None], *how, **more)
    monkeypatch.setattr(f"{__name__}.run", with_scratch)
    assert "raw.ptr.buffer" in text
    kernel(text, CDNA)


OF_DOTS = {**FLOATS, "f16": F16, "bf16": BF16, "f32": F32, "tf32": F32, "f64": F64, "i8": np.dtype(np.int8)}
DOTS = {
    CDNA: "bf16 tf32 f64 i8 fp8e4b8_fp8e4b8 64x4 4x64 16x16_f32", "gfx90a": "i8",
    "gfx950": "f16 fp8e4nv_fp8e5 16x16_i8", RDNA: "bf16 i8",
    "gfx1201": "fp8e4nv_fp8e4nv",
}  # fmt: skip
SHAPES = {"tf32": (32, 32, 32), "f64": (32, 32, 16), "i8": (64, 64, 64), "64x4": (64, 4, 64), "4x64": (4, 64, 64)}


@pytest.mark.parametrize(("arch", "name"), [(arch, name) for arch, names in DOTS.items() for name in names.split()])
def test_dot(arch: str, name: str) -> None:
    """mfma and wmma of each format and shape."""
    types = [OF_DOTS[word] for word in name.split("_") if word in OF_DOTS] or [F16]
    m, n, k = SHAPES.get(name, (64, 64, 64 if "fp8" in name else 32))
    if name.startswith("16x16"):
        m, n, k = 32, 32, 64 if "i8" in name else 32
    a, b = (20 * draw(m, k)).astype(types[0]), draw(k, n).astype(types[-1])
    if "i8" in name:
        b = (20 * draw(k, n)).astype(np.int8)
    c = np.zeros((m, n), np.int32 if "i8" in name else F64 if name == "f64" else F32)
    run(text_of(arch, f"dot_{name}"), [a, b, c], lds_bytes=LDS, arch=arch)
    near(c, a.astype(F64) @ b.astype(F64), 0.5 if name == "tf32" else 1e-3)


@pytest.mark.parametrize(
    ("arch", "source", "target"), [(CDNA, "fp32", "fp8e4b8"), (CDNA, "fp8e5b16", "fp32"), ("gfx950", "fp32", "fp8e4nv")]
)
def test_fp8_of_the_hardware(arch: str, source: str, target: str) -> None:
    codes = np.arange(1024).astype(np.uint8)
    values = codes.view(FLOATS[source]) if "fp8" in source else draw(1024) * np.exp(10 * draw(2, 1024)[1])
    found = np.zeros(1024, FLOATS[target])
    run(text_of(arch, f"cast_{source}_{target}"), [values, found], arch=arch)
    expected = narrow(saturate(values, FLOATS[target]) if "fp8" in target else values, FLOATS[target])
    np.testing.assert_array_equal(found.astype(F32), expected.astype(F32))


def without(text: str, what: str, number: int = 0) -> str:
    """The text without a line, the last but `number` of those that contain `what`."""
    lines = text.split("\n")
    found = [at for at, line in enumerate(lines) if what in line and not line.startswith("declare")]
    del lines[found[-1 - number]]
    return "\n".join(lines)


BARRIER, WAIT, RELEASE = "call void @llvm.amdgcn.s.barrier", "@llvm.amdgcn.s.waitcnt", 'syncscope("workgroup") release'
PLANTED: list[tuple[Kernel, str, str, str]] = [
    (transpose, CDNA, BARRIER, "race"),
    (softmax, RDNA, BARRIER, "race"),
    (matmul_f16_small, CDNA, BARRIER, "race"),
    (matmul_f16_small, CDNA, WAIT, "barrier without its wait"),
    (softmax, RDNA, RELEASE, "barrier without its wait"),
    (async_matmul, "gfx950", "s.waitcnt(i32 -49168)", "used before its wait"),
]


@pytest.mark.parametrize(("kernel", "arch", "line", "kind"), PLANTED)
def test_missing_line_is_found(kernel: Kernel, arch: str, line: str, kind: str) -> None:
    with pytest.raises(CheckFailed) as caught:
        kernel(without(text_of(arch, kernel.__name__), line), arch)
    assert caught.value.findings[0].kind == kind


def test_wrong_mask_is_found() -> None:
    text = text_of(CDNA, "add").replace("i32 -2147483648", "i32 6000")
    with pytest.raises(
        CheckFailed, match=r"bad access: thread \(119, 0, 0\) of workgroup \(1, 0, 0\).*\n  at LLVM line"
    ):
        add(text, CDNA)
    with pytest.raises(Unsupported, match="bounds that are checked in another way"):
        add(text_of(CDNA, "add").replace("i32 159744", "i32 822243328"), CDNA)
    text = text_of(CDNA, "add").replace("i64 2147483646", "i64 5000")
    with pytest.raises(AssertionError, match="Mismatched elements: 250 / 1500"):
        add(text, CDNA)


@pytest.mark.parametrize(
    ("kernel", "old", "new"),
    [(softmax, "i32 280, i32 15", "i32 281, i32 15"), (gather, "%14 = shl i32 %12, 2", "%14 = shl i32 %12, 3")],
)
def test_wrong_lane_is_found(kernel: Kernel, old: str, new: str) -> None:
    text = text_of(CDNA, kernel.__name__)
    assert old in text
    with pytest.raises(AssertionError, match="Mismatched elements"):
        kernel(text.replace(old, new), CDNA)
