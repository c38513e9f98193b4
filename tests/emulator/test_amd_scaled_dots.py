"""Dots with scales for AMD GPUs: on gfx950's instructions, which the emulator executes, and multiplied before
elsewhere."""

# pyright: reportMissingParameterType=false

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.emulator.test_amd_own_kernels import launch


@tilework.jit
def scaled(a, sa, b, sb, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, A: tl.constexpr, B: tl.constexpr):
    KA: tl.constexpr = K // 2 if A == "e2m1" else K
    KB: tl.constexpr = K // 2 if B == "e2m1" else K
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    x = tl.load(a + m[:, None] * KA + tl.arange(0, KA)[None, :])
    y = tl.load(b + tl.arange(0, KB)[:, None] * N + n[None, :])
    u = tl.load(sa + m[:, None] * (K // 32) + k[None, :])
    v = tl.load(sb + n[:, None] * (K // 32) + k[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot_scaled(x, u, A, y, v if B != "e4m3" else None, B))


HALVES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
TYPES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}


def operand(random: np.random.Generator, format: str, rows: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers along the last axis, as bytes and as f32."""
    if format != "e2m1":
        bytes = random.integers(-4, 5, (rows, depth)).astype(TYPES[format])
        return bytes, bytes.astype(np.float32)
    codes = random.integers(0, 16, (rows, depth)).astype(np.uint8)
    return codes[:, ::2] | codes[:, 1::2] << 4, HALVES[codes & 7] * np.where(codes & 8, -1, 1).astype(np.float32)


@pytest.mark.parametrize(
    ("arch", "shape", "formats", "form"),
    [
        ("gfx950", (64, 32, 128), ("e5m2", "e5m2"), "[32, 32, 64]"),
        ("gfx950", (16, 64, 128), ("e2m1", "e5m2"), "[16, 16, 128]"),
        ("gfx950", (32, 32, 128), ("e2m1", "e4m3"), "[32, 32, 64]"),  # the right one without scales
        ("gfx942", (16, 16, 32), ("e2m1", "e5m2"), "[16, 16, 16]"),
    ],
)
def test_scaled_dots(arch: str, shape: tuple[int, int, int], formats: tuple[str, str], form: str) -> None:
    random = np.random.default_rng(0)
    m, n, k = shape
    (a, x), (b, y) = operand(random, formats[0], m, k), operand(random, formats[1], n, k)
    u, v = (random.integers(122, 133, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
    out = np.zeros((m, n), np.float32)
    text = launch(scaled, arch, [a, u, b.T.copy(), v, out], M=m, N=n, K=k, A=formats[0], B=formats[1])
    left, right = (np.exp2(scales.astype(np.float32) - 127).repeat(32, 1) for scales in (u, v))
    right = right if formats[1] != "e4m3" else 1.0
    assert np.allclose(out, (x * left) @ (y * right).T, rtol=1e-6, atol=1e-3)
    assert f"instrShape = {form}" in text and ("tt.dot_scaled" in text) == (arch == "gfx950")


@tilework.jit
def dot(a, b, out, N: tl.constexpr, K: tl.constexpr):
    n, k = tl.arange(0, N), tl.arange(0, K)
    x, y = tl.load(a + n[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :])
    tl.store(out + n[:, None] * N + n[None, :], tl.dot(x, y))


def test_plain_dots_on_scaled_instructions() -> None:
    """Without scales, twice as deep as the plain ones."""
    random = np.random.default_rng(0)
    a, b = (
        random.integers(-4, 5, size).astype(type)
        for size, type in zip(((32, 64), (64, 32)), TYPES.values(), strict=True)
    )
    out = np.zeros((32, 32), np.float32)
    text = launch(dot, "gfx950", [a, b, out], N=32, K=64)
    assert np.array_equal(out, a.astype(np.float32) @ b.astype(np.float32)) and "instrShape = [32, 32, 64]" in text
