"""Elementary functions, random numbers and library functions (4.6, 4.10, 4.15)."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilework.language as tl
from tests.differential.devices import FLOATS, INTS, Refused
from tests.differential.harness import Cell, agree, agree_in_one, sample
from tests.differential.settings import few_examples, seeds
from tilework.language.extra import libdevice
from tilework.language.extra.cuda.libdevice import TABLE
from tilework.language.function import jit

WIDE = st.sampled_from(["fp32", "fp64"])


@jit
def elementary(x):
    return tl.exp(x), tl.exp2(x), tl.log(x), tl.log2(x), tl.sin(x), tl.cos(x), tl.erf(x)


@jit
def roots(x):
    return tl.sqrt(x), tl.rsqrt(x), tl.floor(x), tl.ceil(x), x.exp(), x.sqrt(), x.floor(), tl.math.log(x)


@jit
def precise(x, y):
    return tl.sqrt_rn(x), tl.div_rn(x, y)


@jit
def quotient(x, y):
    return tl.fdiv(x, y), tl.fdiv(x, y, ieee_rounding=True), tl.fdiv(x, 3.0)


@jit
def fused(x, y, z):
    return tl.fma(x, y, z)


@few_examples
@given(WIDE, seeds)
def test_elementary(code: str, seed: int) -> None:
    values = np.clip(sample(code, (64,), seed), -1e4, 1e4)
    agree(
        elementary, values, ulps=4, atol=1e-12, gpu=(1e-5, 1e-12)
    )  # GPUs round the exponent before they take the power
    agree(roots, values, ulps=2, emulated=False)
    normal = np.where(np.abs(values) < np.finfo(np.float32).tiny, values.dtype.type(0), values)
    agree(roots, normal, ulps=2, gpu=(1e-5, 0.0))  # GPUs take subnormal numbers for 0 here


@pytest.mark.parametrize("code", ["fp16", "bf16", "i32", "fp8e5"])
@pytest.mark.parametrize("fn", [elementary, roots], ids=lambda fn: fn.__name__)
def test_narrow_types_are_refused(code: str, fn: Any) -> None:
    with pytest.raises(Refused, match="Expected dtype"):
        agree(fn, sample(code, (4,), 1))


@few_examples
@given(seeds)
def test_precise(seed: int) -> None:
    agree(precise, sample("fp32", (64,), seed), sample("fp32", (64,), seed + 1))


@few_examples
@given(st.sampled_from(FLOATS), seeds)
def test_fdiv_and_fma(code: str, seed: int) -> None:
    x, y, z = (sample(code, (64,), seed + n) for n in range(3))
    agree(quotient, x, y, ulps=1)
    agree(fused, x, y, z)


@jit
def absolute(x):
    return tl.abs(x), x.abs()


@few_examples
@given(st.sampled_from([*INTS, *FLOATS, "fp8e5", "fp8e4nv"]), seeds)
def test_abs(code: str, seed: int) -> None:
    agree(absolute, sample(code, (64,), seed))


@jit
def high_half(x, y):
    return tl.umulhi(x, y), tl.umulhi(y, 12345)


@few_examples
@given(st.sampled_from(["i32", "u32", "i64", "u64"]), seeds)
def test_umulhi(code: str, seed: int) -> None:
    x, y = sample(code, (64,), seed), sample(code, (64,), seed + 1)
    width = 8 * x.dtype.itemsize
    high = agree(high_half, x, y)[0]
    wanted = [(int(a) % 2**width * (int(b) % 2**width)) >> width for a, b in zip(x, y, strict=True)]
    assert [int(value) % 2**width for value in high] == wanted


@jit
def library(x):
    return tl.sigmoid(x), tl.softmax(x), x.softmax(0), x.sigmoid()


@jit
def rows(x):
    return tl.softmax(x, 1, keep_dims=True)


@few_examples
@given(WIDE, seeds)
def test_softmax_and_sigmoid(code: str, seed: int) -> None:
    values = sample(code, (32,), seed, special=False)
    agree(library, values, rtol=1e-5)
    agree(rows, values.reshape(4, 8), rtol=1e-5)


@jit
def sums(x, y):
    return tl.add(x, y), tl.sub(x, y), tl.mul(x, 3), tl.add(x, y, sanitize_overflow=False), tl.cdiv(x, 7)


@few_examples
@given(st.sampled_from(["i32", "i64", "i16"]), seeds)
def test_functions_of_operators(code: str, seed: int) -> None:
    agree(sums, sample(code, (16,), seed), sample(code, (16,), seed + 1))


@jit
def swizzled(i, j, M: tl.constexpr, N: tl.constexpr, G: tl.constexpr):
    return tl.swizzle2d(i, j, M, N, G)


def test_swizzle2d() -> None:
    i, j = (np.ascontiguousarray(grid.reshape(-1)).astype(np.int32) for grid in np.indices((8, 4)))
    agree(swizzled, i, j, params=(8, 4, 3))


# -- random numbers ------------------------------------------------------------------------------------------------


@jit
def random_integers(offset, SEED: tl.constexpr):
    return tl.randint4x(SEED, offset)


@jit
def random_floats(offset, SEED: tl.constexpr):
    return tl.rand(SEED, offset), tl.rand4x(SEED, offset)[1], tl.randint(SEED, offset)


@jit
def random_normals(offset, SEED: tl.constexpr):
    return tl.randn(SEED, offset), tl.randn4x(SEED, offset)[3]


@jit
def philox_64(offset, SEED: tl.constexpr):
    return tl.philox(SEED, offset, offset, offset, offset, 7)


@jit
def random_parts(offset, SEED: tl.constexpr):
    word = offset.to(tl.uint32, bitcast=True)
    c0, c1, c2, c3 = tl.philox_impl(word, word, word, word, SEED, 7, 5)
    u0, u1 = tl.uint_to_uniform_float(c0), tl.uint_to_uniform_float(c1)
    n0, n1 = tl.pair_uniform_to_normal(u0, u1)
    return c0, c1, c2, c3, u0, u1, n0, n1


VECTORS = {  # (seed, offset) -> the four words
    (0, 0): "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    (0, 1): "f8e4cca4 5cb200db b1a574eb 097eff67",
    (0, 2): "04faa329 51c732a6 241513ad 459135e4",
    (0, 3): "c990ef29 6a4474a6 9ac9134f 6d413e04",
    (42, 0): "9ceaf053 77f5493b 12bf50ad 5742b3d7",
    (42, 1): "fcdb2127 53ba6cfd 838f5a6e 744e06fb",
    (0xFFFFFFFF, 0): "f60ba7e1 fb0bd7a0 c70cbd2d 7dad399c",
    (0xFCAFEB0BA, 0): "f219fb5b be9182a4 f573a172 3952307c",
    (0xFCAFEB0BA, 1): "eeced75e 021efe62 a9c0c1a0 ce25abd8",
    (0, 2**33): "58fe6cd3 067febbc ab2beaf9 b56f6386",
    (0, 2**33 + 1): "c5723fd1 3e276da2 d6fc5b50 a6660d66",
    (42, 2**33): "9be4a6d3 fb73b237 6fc2a456 955e31d8",
}


@pytest.mark.parametrize(("seed", "is_wide"), sorted({(seed, offset >= 2**31) for seed, offset in VECTORS}))
def test_philox_vectors(seed: int, is_wide: bool) -> None:
    offsets = [offset for at, offset in VECTORS if at == seed and (offset >= 2**31) == is_wide]
    words = agree(random_integers, np.array(offsets, np.int64 if is_wide else np.int32), params=(seed,))
    for number, offset in enumerate(offsets):
        found = " ".join(f"{int(word[number]):08x}" for word in words)
        assert found == VECTORS[seed, offset], (seed, offset)


def test_rand_vectors() -> None:
    uniform = agree(random_floats, np.arange(4, dtype=np.int32), params=(0,))[0]
    assert [f"{bits:08x}" for bits in uniform.view(np.uint32)] == ["3f4c4fd1", "3d63666a", "3d1f5464", "3ed9bc42"]
    uniform = agree(random_floats, np.arange(4, dtype=np.int32), params=(42,))[0]
    assert [f"{bits:08x}" for bits in uniform.view(np.uint32)] == ["3f462a1e", "3cc937b5", "3eb24ff6", "3f0a71f6"]
    normal = agree(random_normals, np.arange(4, dtype=np.int32), params=(0,), rtol=1e-4)[0]
    np.testing.assert_allclose(normal, [0.0465515, -0.3883614, -1.6379520, 0.6315315], rtol=1e-4)


@pytest.mark.parametrize(("code", "seed"), [("i32", 0), ("u32", 58_921), ("i64", 7), ("u64", 2**16)])
def test_random_numbers(code: str, seed: int) -> None:
    offsets = sample(code, (16,), seed)
    agree(random_integers, offsets, params=(seed,))
    agree(random_floats, offsets, params=(seed,))
    agree(random_normals, offsets, params=(seed,), rtol=1e-4, atol=1e-6)
    agree(philox_64, offsets, params=(seed,))
    agree(random_parts, sample("i32", (16,), seed), params=(seed,), rtol=1e-4, atol=1e-6)


# -- libdevice -----------------------------------------------------------------------------------------------------


@jit
def extern1(x, FN: tl.constexpr):
    made = FN(x)
    return made if made.dtype.is_floating() else made.to(tl.int64)  # isnan is an i32 on AMD's GPUs


@jit
def extern2(x, y, FN: tl.constexpr):
    return FN(x, y)


@jit
def extern3(x, y, z, FN: tl.constexpr):
    return FN(x, y, z)


@jit
def extern4(x, y, z, w, FN: tl.constexpr):
    return FN(x, y, z, w)


EXTERN = {1: extern1, 2: extern2, 3: extern3, 4: extern4}
DIRECTED = re.compile(r"(add|sub|mul|div|rcp|sqrt|fma|double2float|u?int2float|u?ll2float|u?ll2double)_r[duz]")
LONG = {"j0", "j1", "jn", "y0", "y1", "yn"}  # they take seconds to compile: tests/targets/test_llvm_math.py has them
COMPARED = sorted(name for name in TABLE if not DIRECTED.fullmatch(name) and name not in LONG)
UNIT = {"asin", "acos", "atanh", "erfinv"}


def libdevice_cell(name: str, types: Any) -> Cell:
    inputs = [sample(element.mangle(), (16,), 3 + n, special=False) for n, element in enumerate(types)]
    if name in UNIT:
        inputs = [np.tanh(x) for x in inputs]
    if name in ("pow", "ldexp", "scalbn", "jn") and inputs[-1].dtype.kind == "i":
        inputs[-1] = inputs[-1] % 7
    gpu = (1e-5, 0.0) if "fast" in name else (0.0, 0.0)
    return Cell(EXTERN[len(inputs)], inputs, (getattr(libdevice, name),), gpu)


@pytest.mark.parametrize("part", range(12))
def test_libdevice(part: int) -> None:
    cells = [libdevice_cell(name, types) for name in COMPARED[part::12] for types in TABLE[name]]
    agree_in_one(cells, ulps=4, rtol=1e-12)


NORMS = {"hypot": 2, "rhypot": 2, "norm3d": 3, "rnorm3d": 3, "norm4d": 4, "rnorm4d": 4}


@pytest.mark.parametrize("name", NORMS)
def test_norms_do_not_overflow_or_vanish_on_the_way(name: str) -> None:
    for kind, sizes in (("f8", [1e200, 1e-200, 1e-310, 3.0, 4e307]), ("f4", [1e30, 1e-30, 1e-40, 3.0, 8e37])):
        x = np.array([*sizes, 0.0, np.inf, 1.0], kind)
        inputs = [x * np.array(1 + n, kind) for n in range(NORMS[name])]
        got = agree(EXTERN[NORMS[name]], *inputs, params=(getattr(libdevice, name),), ulps=2)[0]
        length = np.sqrt(sum((1.0 + n) ** 2 for n in range(NORMS[name])))
        with np.errstate(divide="ignore", over="ignore"):
            wanted = x.astype("f8") * length if name[0] != "r" else 1 / length / x.astype("f8")
            np.testing.assert_allclose(got, wanted.astype(kind), rtol=1e-15 if kind == "f8" else 1e-7)
