"""Transposing reads of LDS on gfx950: the layouts that they fit, and dots whose operands are contiguous along M or N,
in the emulator against NumPy.
"""

# pyright: reportMissingParameterType=false

from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.emulator.test_amd_own_kernels import launch
from tilework.layouts.linear import LinearLayout
from tilework.targets.amd.lower.transposed_read import transposed_read


def layout(registers: list[int], lanes: list[int], warps: list[int], size: int) -> LinearLayout:
    levels = {"register": registers, "lane": lanes, "warp": warps}
    return LinearLayout({name: [(one,) for one in bases] for name, bases in levels.items()}, {"offset": size})


def read(memory: np.ndarray, starts: np.ndarray, bits: int) -> np.ndarray:
    """The elements [lane, element] of one read: 8 bytes from the start of each lane, transposed between 16 lanes."""
    count = 64 // bits
    loaded = memory[starts[:, None] + np.arange(count)].reshape(4, count, 16)
    return loaded.transpose(0, 2, 1).reshape(64, count)


def offsets_of(form: LinearLayout) -> np.ndarray:
    """The offsets [register, lane] of one warp."""
    return np.array(form.images("register"))[:, None] ^ np.array(form.images("lane"))


@pytest.mark.parametrize("bits", [8, 16])
def test_a_read_that_fits_gets_what_the_layout_says(bits: int) -> None:
    """Over random layouts, with registers and lanes that hold copies."""
    random, inside, fitting = Random(bits), {8: 3, 16: 2}[bits], 0
    for _ in range(400):
        offsets = [1 << bit for bit in range(12)]
        rest = offsets[inside:]
        random.shuffle(rest)
        rest = [one if random.random() < 0.9 else 0 for one in rest]
        rest = [one ^ (random.choice(offsets[inside:]) if one and random.random() < 0.2 else 0) for one in rest]
        lanes, registers = offsets[:inside] + rest[: 6 - inside], rest[6 - inside :]
        if random.random() < 0.2:
            bit = random.randrange(6)
            lanes[bit], registers[0] = registers[0], lanes[bit]
        moved = layout(registers, lanes, [], 1 << 12)
        form = transposed_read(moved, bits, 1 << 30)
        is_plain = lanes[:inside] == offsets[:inside] and not any(one % (1 << inside) for one in registers)
        if form is None:
            assert not is_plain or sum(map(bool, registers)) < inside
            continue
        fitting += 1
        memory, addresses = np.arange(1 << 12), offsets_of(form.addresses(moved))
        values, selected = offsets_of(moved), sum(1 << bit for bit in form.rows)
        members = [register for register in range(1 << len(registers)) if not register & ~selected]
        for first in range(1 << len(registers)):
            if not first & selected:
                expected = values[[first | member for member in members]].T
                assert np.array_equal(read(memory, addresses[first], bits), expected)
    assert fitting > 100


def test_layouts_that_do_not_fit() -> None:
    """Wider elements, elements along K in a lane already, and other offsets that split the 8 bytes."""
    good = ([64, 128, 256], [1, 2, 4, 8, 16, 32], [512])
    assert transposed_read(layout(*good, 1024), 16, 1 << 30) is not None
    assert transposed_read(layout(*good, 1024), 32, 1 << 30) is None
    assert transposed_read(layout([1, 2, 4], [64, 128, 8, 16, 32, 256], [512], 1024), 16, 1 << 30) is None
    assert transposed_read(layout([66, 128, 256], *good[1:], 1024), 16, 1 << 30) is None
    assert transposed_read(layout([64, 128, 256], good[1], [513], 1024), 16, 1 << 30) is None
    assert transposed_read(layout(*good, 1024), 16, 128) is None  # the second register bit is in another round


@tilework.jit
def product(
    a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STEP: tl.constexpr,
    AM: tl.constexpr, AK: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP)
    kind: tl.constexpr = tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32
    total = tl.zeros((M, N), kind)
    for start in range(0, K, STEP):
        left = tl.load(a + m[:, None] * AM + (start + k[None, :]) * AK)
        right = tl.load(b + (start + k[:, None]) * BK + n[None, :] * BN)
        total = tl.dot(left, right, total, out_dtype=kind)
    tl.store(out + m[:, None] * N + n[None, :], total)


def operands(name: str, m: int, n: int, k: int) -> list[np.ndarray]:
    random, dtype = np.random.default_rng(m + n + k), np.dtype(getattr(ml_dtypes, name, name))
    return [random.integers(-4, 5, shape).astype(dtype) for shape in ((m, k), (k, n))]


CASES: list[tuple[str, tuple[int, int, int, int], str, dict[str, Any]]] = [
    ("float16", (64, 64, 64, 32), "nn", {}),
    ("float16", (128, 64, 128, 64), "tn", {"num_stages": 3}),
    ("bfloat16", (16, 64, 64, 32), "tt", {}),
    ("bfloat16", (32, 16, 64, 64), "nn", {"num_warps": 1}),
    ("float16", (64, 128, 96, 16), "tn", {"num_warps": 8, "num_stages": 4}),
    ("int8", (64, 64, 128, 64), "nn", {}),
    ("int8", (32, 32, 128, 128), "tn", {"num_warps": 2}),
    ("float8_e4m3fn", (64, 64, 128, 64), "nn", {}),
    ("float8_e5m2", (128, 32, 128, 128), "tt", {"num_warps": 8}),
    ("float8_e4m3fn", (16, 16, 256, 128), "tn", {"num_warps": 1, "num_stages": 1}),
]


@pytest.mark.parametrize(("name", "sizes", "order", "options"), CASES)
@pytest.mark.parametrize("is_copied", [False, True])
def test_products(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    sizes: tuple[int, int, int, int],
    order: str,
    options: dict[str, Any],
    is_copied: bool,
) -> None:
    """`order`: whether A and B are transposed in memory; LDS is filled by stores, or by copies from global memory."""
    monkeypatch.setenv("TRITON_HIP_USE_ASYNC_COPY", str(int(is_copied)))
    m, n, k, step = sizes
    a, b = operands(name, m, n, k)
    out = np.zeros((m, n), np.int32 if name == "int8" else np.float32)
    given = [np.asfortranarray(one) if letter == "t" else one for one, letter in zip((a, b), order, strict=True)]
    strides = {"AM": 1, "AK": m} if order[0] == "t" else {"AM": k, "AK": 1}
    strides |= {"BK": 1, "BN": k} if order[1] == "t" else {"BK": n, "BN": 1}
    shape = {"M": m, "N": n, "K": k, "STEP": step}
    flat = [one.ravel("K") for one in given]
    how: dict[str, Any] = {"stage": "llir", "whole": False, **options, **shape, **strides}
    text = launch(product, "gfx950", [*flat, out], **how)
    assert np.array_equal(out, (a.astype(np.float64) @ b.astype(np.float64)).astype(out.dtype))
    assert "ds.read.tr" in text


@tilework.jit
def two_products(q, k, v, out, S: tl.constexpr, D: tl.constexpr):
    i, d = tl.arange(0, S), tl.arange(0, D)
    at = i[:, None] * D + d[None, :]
    scores = tl.dot(tl.load(q + at), tl.trans(tl.load(k + at)))
    tl.store(out + at, tl.dot(scores.to(tl.float16), tl.load(v + at)))


@pytest.mark.parametrize("size", [(64, 64), (32, 128)])
def test_second_product_of_attention(size: tuple[int, int]) -> None:
    """K is contiguous along its inner dimension and V is not."""
    q, k, v = np.random.default_rng(0).integers(-2, 3, (3, *size)).astype(np.float16)
    out = np.zeros(size, np.float32)
    text = launch(two_products, "gfx950", [q, k, v, out], stage="llir", whole=False, S=size[0], D=size[1])
    scores = (q.astype(np.float32) @ k.astype(np.float32).T).astype(np.float16)
    assert np.array_equal(out, scores.astype(np.float32) @ v.astype(np.float32))
    assert "ds.read.tr16" in text


def test_reads_of_a_matmul() -> None:
    """As many as Triton 3.6 has in one iteration: 16 with a transposition and 8 without."""
    a, b = operands("float16", 128, 128, 64)
    out = np.zeros((128, 128), np.float32)
    strides: dict[str, Any] = {"AM": 64, "AK": 1, "BK": 128, "BN": 1}
    text = launch(product, "gfx950", [a, b, out], stage="amdgcn", M=128, N=128, K=64, STEP=64, **strides)
    assert text.count("ds_read_b64_tr_b16") == 16 and text.count("ds_read_b128") == 8 and "ds_read_u16" not in text
