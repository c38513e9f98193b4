"""Elementwise ops on GPUs: conversions of all pairs of types, arithmetic and functions, against NumPy and ml_dtypes."""

import math
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.gpu_text import (
    DTYPES,
    NAMES,
    Array,
    elementwise,
    elementwise_text,
    kernel_ptx,
    launch,
    ptx_of,
    to_module,
)
from tests.targets.gpu_tiles import Tile, blocked, module_text
from tilework.compiler import ASTSource, GPUTarget, lower
from tilework.targets.nvidia.lower.emit import emit_module

ARCHS = (80, 90)
TINY = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0}
FLOATS = ("f8E4M3FN", "f8E5M2", "bf16", "f16", "f32", "f64")
BITS = {"f8E4M3FN": 8, "f8E5M2": 8, "bf16": 16, "f16": 16, "f32": 32, "f64": 64}
EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    np.inf,
    -np.inf,
    448.0,
    464.0,
    465.0,
    480.0,
    57344.0,
    61440.0,
    65504.0,
    65519.0,
    65520.0,
    65536.0,
]


def patterns(name: str, rng: np.random.Generator) -> Array:
    """Numbers of a type: all with 8 bits, otherwise some of every magnitude, and such as lie between two narrower
    ones."""
    dtype = DTYPES[name]
    if BITS[name] == 8:
        return np.arange(256, dtype=np.uint8).view(dtype)
    with np.errstate(all="ignore"):
        generated = rng.normal(size=600) * np.exp2(rng.uniform(-30, 20, 600))
        halfway = [np.arange(-300, 300, 8) * scale for scale in (2.0**-10, 2.0**-17, 2.0**-6, 4.0)]
        return np.concatenate([generated, *halfway, EDGES]).astype(dtype)


def casted(x: Array, target: str) -> Array:
    """Rounded once to the nearest; 8-bit floats saturate."""
    with np.errstate(all="ignore"):
        if target in TINY:
            wide = x.astype(np.float64)
            return round_to(np.clip(wide, -TINY[target], TINY[target]), target)
        return round_to(x.astype(np.float64), target) if NAMES[x.dtype] == "f64" else x.astype(DTYPES[target])


def round_to(wide: Array, target: str) -> Array:
    """An f64 rounded once; ml_dtypes rounds by way of f32, which is made odd here where it is not exact."""
    if target in ("f32", "f16", "f64"):
        return wide.astype(DTYPES[target])
    near = wide.astype(np.float32)
    bits = near.view(np.int32)
    inexact = (near.astype(np.float64) != wide) & np.isfinite(wide) & (bits & 1 == 0)
    step = np.where(np.abs(near.astype(np.float64)) > np.abs(wide), -1, 1)
    return np.where(inexact, bits + step, bits).astype(np.int32).view(np.float32).astype(DTYPES[target])


def same(found: Array, wanted: Array) -> None:
    """Equal bit for bit, apart from what a NaN looks like."""
    with np.errstate(invalid="ignore"):
        a, b = found.astype(np.float64), wanted.astype(np.float64)
    differs = ~((np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b))))
    indices = np.flatnonzero(differs)
    assert not len(indices), (
        f"{len(indices)} differ, the first at {indices[0]}: {found[indices[0]]}, not {wanted[indices[0]]}"
    )


def cast_text(source: str, target: str, rounding: str = "") -> str:
    """The op that the frontend makes."""
    if rounding or source in TINY or target in TINY:
        narrows = BITS[target] < BITS[source]
        mode = f", rounding = {rounding or 'rtne'}" if narrows else ""
        return f"%y = tt.fp_to_fp %x{mode} : T<{source}> -> T<{target}>"
    name = "truncf" if BITS[target] < BITS[source] else "extf"
    return f"%y = arith.{name} %x : T<{source}> to T<{target}>"


@pytest.mark.parametrize("arch", ARCHS)
def test_float_casts(arch: int) -> None:
    rng = np.random.default_rng(0)
    for source in FLOATS:
        x = patterns(source, rng)
        targets = [target for target in FLOATS if BITS[source] != BITS[target]]
        body = "\n".join(cast_text(source, target).replace("%y", f"%{target}") for target in targets)
        for found, target in zip(
            elementwise(body, {"x": x}, {name: DTYPES[name] for name in targets}, arch), targets, strict=True
        ):
            same(found, casted(x, target))
    x = patterns("f16", rng)
    body = "%w = arith.extf %x : T<f16> to T<f32>\n%y = arith.truncf %w : T<f32> to T<bf16>"
    same(elementwise(body, {"x": x}, {"y": DTYPES["bf16"]}, arch)[0], x.astype(DTYPES["bf16"]))


@pytest.mark.parametrize("per_thread", [1, 2, 4])
def test_casts_of_few_registers(per_thread: int) -> None:
    """A single register has no neighbour to be converted with."""
    x = np.linspace(-600, 600, 32 * per_thread, dtype=np.float32)
    for source, target in [
        ("f32", "bf16"),
        ("f32", "f8E4M3FN"),
        ("f16", "f8E5M2"),
        ("f8E4M3FN", "f32"),
        ("f8E4M3FN", "f16"),
    ]:
        given = casted(x, source)
        (y,) = elementwise(cast_text(source, target), {"x": given}, {"y": DTYPES[target]}, 90, per_thread)
        same(y, casted(given, target))


def toward_zero(x: Array, target: str) -> Array:
    with np.errstate(all="ignore"):
        near = x.astype(DTYPES[target])
        above = np.abs(near.astype(np.float64)) > np.abs(x.astype(np.float64))
        word = np.dtype(f"u{near.itemsize}")
        return np.where(above, near.view(word) - 1, near.view(word)).astype(word).view(near.dtype)


@pytest.mark.parametrize("arch", ARCHS)
def test_casts_toward_zero(arch: int) -> None:
    x = patterns("f32", np.random.default_rng(1))
    for target in ("f16", "bf16", "f8E5M2"):
        for per_thread in (1, 4):
            text = cast_text("f32", target, "rtz")
            (y,) = elementwise(text, {"x": x}, {"y": DTYPES[target]}, arch, per_thread)
            same(y, toward_zero(x, target))


def test_conversion_instructions() -> None:
    """Pairs are converted together, and 8-bit floats by the processor where it can."""

    def ptx(source: str, target: str, arch: int) -> str:
        return ptx_of(elementwise_text(cast_text(source, target), {"x": source}, {"y": target}, 128, arch, 4), arch)

    assert ptx("f32", "bf16", 80).count("cvt.rn.bf16x2.f32") == 2
    assert ptx("f32", "f8E4M3FN", 90).count("cvt.rn.satfinite.e4m3x2.f32") == 2
    assert ptx("f16", "f8E5M2", 90).count("cvt.rn.satfinite.e5m2x2.f16x2") == 2
    assert ptx("f8E4M3FN", "f16", 90).count("cvt.rn.f16x2.e4m3x2") == 2
    assert "e4m3" not in ptx("f8E4M3FN", "f16", 80)


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_pairs_that_only_change_their_layout_are_converted_by_llvm(kind: str) -> None:
    """LLVM can then combine the conversion with the store to shared memory; elsewhere an intrinsic keeps pairs
    together."""
    source = Tile((32, 64), blocked((1, 4), (2, 16), (4, 1), (1, 0)))
    result = Tile((32, 64), blocked((1, 8), (4, 8), (4, 1), (1, 0)))
    cast = f"%h = arith.truncf %x : {source.type('f32')} to {source.type(kind)}"
    moved = f"{cast}\n%m = ttg.convert_layout %h : {source.type(kind)} -> {result.type(kind)}"

    def llvm(text: str, tile: Tile, value: str) -> str:
        widened = f"{text}\n%y = arith.extf %{value} : {tile.type(kind)} to {tile.type('f32')}"
        inputs, outputs = [("x", source, np.zeros(source.shape, np.float32))], [("y", tile, np.float32)]
        return emit_module(to_module(module_text(widened, inputs, outputs, 4, 80)), 80)

    for text, tile, value in ((moved, result, "m"), (cast, source, "h")):
        found = llvm(text, tile, value)
        assert ("fptrunc <2 x float>" in found) == (value == "m") and ("nvvm.ff2" in found) == (value == "h")


@pytest.mark.parametrize("arch", ARCHS)
def test_integers_to_floats(arch: int) -> None:
    rng = np.random.default_rng(2)
    for size in (1, 2, 4, 8):
        for kind, op in (("i", "sitofp"), ("u", "uitofp")):
            dtype = np.dtype(f"{kind}{size}")
            limits = np.iinfo(dtype)
            generated = rng.integers(limits.min, limits.max, 80, dtype, endpoint=True)
            small = (rng.integers(0, 1 << 20, 80) >> rng.integers(0, 12, 80)).astype(dtype)
            x = np.concatenate([generated, generated >> (size * 4), small, np.array([limits.min, limits.max], dtype)])
            targets = ("f16", "bf16", "f32", "f64")
            body = "\n".join(f"%{target} = arith.{op} %x : T<i{8 * size}> to T<{target}>" for target in targets)
            for found, target in zip(
                elementwise(body, {"x": x}, {name: DTYPES[name] for name in targets}, arch), targets, strict=True
            ):
                same(found, nearest(x, target))


def nearest(x: Array, target: str) -> Array:
    """An integer rounded once."""
    if target in ("f32", "f64"):
        return x.astype(DTYPES[target])
    digits = 8 if target == "bf16" else 11
    rounded = []
    for number in map(int, x):
        spare = max(0, abs(number).bit_length() - digits)
        half, rest = (1 << spare) >> 1, abs(number) & ((1 << spare) - 1)
        kept = abs(number) >> spare
        kept += rest > half or (rest == half and spare > 0 and kept & 1)
        value = (kept << spare) * (-1 if number < 0 else 1)
        rounded.append(float(value) if target == "bf16" or abs(value) <= 65504 else np.copysign(np.inf, value))
    return np.array(rounded).astype(DTYPES[target])


def truncated(x: Array, dtype: Any) -> Array:
    """Towards zero, within the limits of 16 bits or more; NaN is 0."""
    held = dtype if dtype.itemsize > 1 else np.dtype(f"{dtype.kind}2")
    limits = np.iinfo(held)
    numbers = [
        0 if np.isnan(v) else limits.max if v > limits.max else limits.min if v < limits.min else int(v)
        for v in x.astype(np.float64)
    ]
    return np.array(numbers, held).astype(dtype)


@pytest.mark.parametrize("arch", ARCHS)
def test_floats_to_integers(arch: int) -> None:
    rng = np.random.default_rng(3)
    for source in ("f16", "bf16", "f32", "f64"):
        with np.errstate(all="ignore"):
            x = (rng.normal(size=300) * np.exp2(rng.uniform(-5, 70, 300))).astype(DTYPES[source])
            edges = [0.0, -0.0, 0.99, -0.99, 127.5, 128, 255.5, 32767, 1e30, -1e30, np.inf, -np.inf, np.nan]
            x = np.concatenate([x, np.array(edges).astype(x.dtype)])
        dtypes = {f"{kind}{size}": np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)}
        body = "\n".join(
            f"%{name} = arith.fpto{'s' if dtype.kind == 'i' else 'u'}i %x : T<{source}> to T<{NAMES[dtype]}>"
            for name, dtype in dtypes.items()
        )
        for found, dtype in zip(elementwise(body, {"x": x}, dtypes, arch), dtypes.values(), strict=True):
            np.testing.assert_array_equal(found, truncated(x, dtype))


# Arithmetic


@pytest.mark.parametrize("arch", ARCHS)
def test_narrow_arithmetic_rounds_once(arch: int) -> None:
    rng = np.random.default_rng(4)
    for name in ("f16", "bf16", "f32", "f64"):
        x, z = (rng.normal(size=256).astype(DTYPES[name]) * 3 for _ in range(2))
        body = "\n".join(f"%{op} = arith.{op}f %x, %z : T<{name}>" for op in ("add", "sub", "mul"))
        sums = elementwise(body, {"x": x, "z": z}, dict.fromkeys(("add", "sub", "mul"), x.dtype), arch)
        for found, wanted in zip(sums, (x + z, x - z, x * z), strict=True):
            same(found, wanted)


def test_products_and_sums_may_fuse() -> None:
    body = "%p = arith.mulf %x, %x : T<{0}>\n%y = arith.addf %p, %x : T<{0}>"
    for name in ("f16", "bf16", "f32", "f64"):
        for per_thread, pair in ((1, ""), (2, "x2" if name.endswith("16") else "")):
            text = elementwise_text(body.format(name), {"x": name}, {"y": name}, 32 * per_thread, 90, per_thread)
            assert f"fma.rn.{name}{pair} " in ptx_of(text, 90).replace("\t", " ")
            assert "fma" not in ptx_of(text, 90, fuses=False)


@pytest.mark.parametrize("arch", ARCHS)
def test_extrema_and_comparisons(arch: int) -> None:
    values = np.array([0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 3.0, -0.25])
    x, z = (grid.ravel() for grid in np.meshgrid(values, values))
    for name in ("f16", "bf16", "f32", "f64"):
        a, b = x.astype(DTYPES[name]), z.astype(DTYPES[name])
        ops = {"maximumf": np.maximum, "minimumf": np.minimum, "maxnumf": np.fmax, "minnumf": np.fmin}
        body = "\n".join(f"%{op} = arith.{op} %x, %z : T<{name}>" for op in ops)
        for found, op in zip(
            elementwise(body, {"x": a, "z": b}, dict.fromkeys(ops, a.dtype), arch), ops.values(), strict=True
        ):
            same(np.where(found == 0, 0, found), np.where(op(x, z) == 0, 0, op(x, z)).astype(a.dtype))
        tests = {"oeq": x == z, "one": (x < z) | (x > z), "olt": x < z, "ole": x <= z, "une": x != z, "uge": ~(x < z)}
        tests["uno"] = np.isnan(x) | np.isnan(z)
        body = "\n".join(f"%{test} = arith.cmpf {test}, %x, %z : T<{name}>" for test in tests)
        for found, wanted in zip(
            elementwise(body, {"x": a, "z": b}, dict.fromkeys(tests, np.bool_), arch), tests.values(), strict=True
        ):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("name", ["f16", "f32"])
def test_symmetric_limits_are_a_limit_of_the_magnitude(name: str, arch: int) -> None:
    """Also for zeros and infinities; NaN becomes the lower limit, or stays."""
    dtype, odd = DTYPES[name], [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.5, -1.5]
    x = np.array([*odd, *np.random.default_rng(5).normal(size=120)], dtype)
    limit = np.resize(np.array([0.5, 1.5, 3.0, np.inf], dtype), 128)
    body = f"%zero = arith.constant dense<0.0> : T<{name}>\n%low = arith.constant dense<-1.5> : T<{name}>\n"
    body += f"%high = arith.constant dense<1.5> : T<{name}>\n%minus = arith.subf %zero, %y : T<{name}>\n"
    for mode, result in (("none", "n"), ("all", "a")):
        body += f"%{result}c = tt.clampf %x, %low, %high, propagateNan = {mode} : T<{name}>\n"
        body += f"%{result}v = tt.clampf %x, %minus, %y, propagateNan = {mode} : T<{name}>\n"
    results = ("nc", "nv", "ac", "av")
    ptx = ptx_of(elementwise_text(body, {"x": name, "y": name}, dict.fromkeys(results, name), 32, arch, 1), arch)
    for form in ("min.xorsign.abs", "min.NaN.xorsign.abs"):
        assert ptx.count(f"{form}.{name}") == (2 if arch == 90 else 0)
    found = elementwise(body, {"x": x, "y": limit}, dict.fromkeys(results, dtype), arch)
    for one, highest in zip(found, (1.5, limit) * 2, strict=True):
        keeps = one is found[2] or one is found[3]
        wanted = np.clip(x, -highest, highest) if keeps else np.fmin(np.fmax(x, -highest), highest)
        same(one, np.asarray(wanted, dtype))


@pytest.mark.parametrize("mode", ["none", "all"])
def test_symmetric_limits_of_scalars(mode: str) -> None:
    body = "%s = tt.load %p : !tt.ptr<f32>\n%h = arith.constant 1.5 : f32\n%l = arith.constant -1.5 : f32\n"
    body += f"%c = tt.clampf %s, %l, %h, propagateNan = {mode} : f32\ntt.store %p, %c : !tt.ptr<f32>\ntt.return"
    facts = '"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32'
    for arch in (80, 90):
        head = f'module attributes {{{facts}, ttg.target = "cuda:{arch}"}} {{\ntt.func public @k(%p: !tt.ptr<f32>) {{\n'
        ptx = ptx_of(f"{head}{body}\n}}\n}}", arch)
        assert ("xorsign.abs.f32" in ptx) == (arch == 90)


def test_conversions_are_those_of_the_architecture_in_any_order() -> None:
    """Nothing of a compilation is kept for the next one, which may be for another architecture."""
    body = "%y = tt.fp_to_fp %x, rounding = rtne : T<f32> -> T<f8E4M3FN>\n%z = tt.fp_to_fp %y : T<f8E4M3FN> -> T<f16>"
    texts = [
        ptx_of(elementwise_text(body, {"x": "f32"}, {"y": "f8E4M3FN", "z": "f16"}, 4, arch, 1), arch)
        for arch in (90, 80, 90, 80)
    ]
    assert texts[:2] == texts[2:]
    for text, has_instructions in zip(texts, (True, False), strict=False):
        for instruction in ("cvt.rn.satfinite.e4m3x2.f32", "cvt.rn.f16x2.e4m3x2"):
            assert (instruction in text) == has_instructions


@pytest.mark.parametrize("arch", ARCHS)
def test_fma_clamp_and_abs(arch: int) -> None:
    rng = np.random.default_rng(5)
    for name in ("f16", "bf16", "f32"):
        x, y, z = (rng.normal(size=128).astype(DTYPES[name]) for _ in range(3))
        body = f"%r = math.fma %x, %y, %z : T<{name}>\n%a = math.absf %x : T<{name}>\n"
        body += f"%c = tt.clampf %x, %y, %z, propagateNan = none : T<{name}>"
        fused, size, clamped = elementwise(body, {"x": x, "y": y, "z": z}, dict.fromkeys("rac", x.dtype), arch)
        exact = np.array(
            [float(np.longdouble(a) * np.longdouble(b) + np.longdouble(c)) for a, b, c in zip(x, y, z, strict=True)]
        )
        same(fused, round_to(exact, name))
        same(size, np.abs(x))
        same(clamped, np.fmin(np.fmax(x, y), z))
    codes = np.arange(256, dtype=np.uint8)
    for name in TINY:
        (found,) = elementwise(
            f"%y = math.absf %x : T<{name}>", {"x": codes.view(DTYPES[name])}, {"y": DTYPES[name]}, arch
        )
        np.testing.assert_array_equal(found.view(np.uint8), codes & 0x7F)


@pytest.mark.parametrize("arch", ARCHS)
def test_integer_division(arch: int) -> None:
    rng = np.random.default_rng(6)
    for size in (1, 2, 4, 8):
        for kind in "iu":
            dtype = np.dtype(f"{kind}{size}")
            limits = np.iinfo(dtype)
            x = rng.integers(limits.min, limits.max, 256, dtype, endpoint=True)
            z = rng.integers(1, limits.max, 256, dtype, endpoint=True) >> rng.integers(0, size * 8 - 2, 256).astype(
                dtype
            )
            z = np.where(z == 0, 1, z).astype(dtype)
            z = np.where(rng.random(256) < 0.5, -z, z).astype(dtype) if kind == "i" else z
            letter = "s" if kind == "i" else "u"
            body = "\n".join(f"%{op} = arith.{op}{letter}i %x, %z : T<i{8 * size}>" for op in ("div", "rem"))
            quotient, rest = elementwise(body, {"x": x, "z": z}, {"div": dtype, "rem": dtype}, arch)
            exact = [abs(int(a)) // abs(int(b)) * (-1 if (a < 0) != (b < 0) else 1) for a, b in zip(x, z, strict=True)]
            np.testing.assert_array_equal(quotient, np.array(exact, dtype))
            left = [int(a) - q * int(b) for a, b, q in zip(x, z, exact, strict=True)]
            np.testing.assert_array_equal(rest, np.array(left, dtype))


def test_shifts_push_every_bit_out() -> None:
    rng = np.random.default_rng(8)
    for size in (1, 2, 4, 8):
        dtype = np.dtype(f"i{size}")
        x = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, 128, dtype)
        n = (np.arange(128) % (8 * size + 3)).astype(dtype)
        body = "\n".join(f"%{op} = arith.{op} %x, %n : T<i{8 * size}>" for op in ("shli", "shrui", "shrsi"))
        left, logical, signed = elementwise(body, {"x": x, "n": n}, dict.fromkeys(("shli", "shrui", "shrsi"), dtype))
        unsigned = [int(value) % (1 << 8 * size) for value in x]
        pairs = list(zip(unsigned, map(int, n), strict=True))
        word = np.dtype(f"u{size}")
        np.testing.assert_array_equal(left.view(word), np.array([(v << s) % (1 << 8 * size) for v, s in pairs], word))
        np.testing.assert_array_equal(logical.view(word), np.array([v >> s for v, s in pairs], word))
        np.testing.assert_array_equal(signed, np.array([int(v) >> int(s) for v, s in zip(x, n, strict=True)], dtype))


@pytest.mark.parametrize("arch", ARCHS)
def test_quotients_and_roots(arch: int) -> None:
    rng = np.random.default_rng(7)
    x, z = (np.abs(rng.normal(size=256)).astype(np.float32) + np.float32(0.01) for _ in range(2))
    body = """%fast = arith.divf %x, %z : T<f32>
    %exact = tt.precise_divf %x, %z : T<f32>
    %root = tt.precise_sqrt %x : T<f32>
    %near = math.sqrt %x : T<f32>
    %inverse = math.rsqrt %x : T<f32>"""
    outs: dict[str, Any] = dict.fromkeys(("fast", "exact", "root", "near", "inverse"), np.float32)
    fast, exact, root, near, inverse = elementwise(body, {"x": x, "z": z}, outs, arch)
    same(exact, x / z)
    same(root, np.sqrt(x))
    for found, wanted in ((fast, x / z), (near, np.sqrt(x)), (inverse, 1 / np.sqrt(x))):
        np.testing.assert_allclose(found, wanted, rtol=3e-7)
    text = elementwise_text(body, {"x": "f32", "z": "f32"}, dict.fromkeys(outs, "f32"), 256, arch, 4)
    ptx = ptx_of(text, arch)
    for wanted in ("div.full.f32", "div.rn.f32", "sqrt.rn.f32", "sqrt.approx.ftz.f32", "rsqrt.approx.ftz.f32"):
        assert wanted in ptx


FUNCTIONS = "exp exp2 log log2 sin cos erf sqrt rsqrt floor ceil tanh".split()


def exactly(function: str, x: float) -> float:
    """A function in f64."""
    if function == "rsqrt":
        return 1 / math.sqrt(x)
    if function in ("exp", "exp2"):
        return float(np.exp2(x) if function == "exp2" else np.exp(x))
    return getattr(math, function)(x)


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_functions(name: str) -> None:
    x = np.concatenate([np.linspace(0.01, 10, 60), [1.0, 100.5, 3e5, 88.0]]).astype(DTYPES[name])
    body = "\n".join(f"%{function} = math.{function} %x : T<{name}>" for function in FUNCTIONS)
    rtol, atol = (1e-5, 1e-7) if name == "f32" else (1e-14, 1e-15)
    for function, found in zip(
        FUNCTIONS, elementwise(body, {"x": x}, dict.fromkeys(FUNCTIONS, x.dtype), 80), strict=True
    ):
        with np.errstate(over="ignore"):
            wanted = np.array([exactly(function, value) for value in x.tolist()]).astype(x.dtype)
        np.testing.assert_allclose(found, wanted, rtol, atol, err_msg=function)


def test_fast_functions_follow_the_option() -> None:
    text = elementwise_text("%y = math.exp2 %x : T<f32>", {"x": "f32"}, {"y": "f32"}, 32, 90, 1)

    class Options:
        enable_reflect_ftz = False

    assert "ex2.approx.ftz.f32" in ptx_of(text, 90)
    assert "ex2.approx.f32" in ptx_of(text, 90, Options())


def test_neighbours_that_are_known_to_be_equal_are_computed_once() -> None:
    """A size that is a multiple of 16 ends no run of 16 elements, and a quotient by 16 is one number for each."""
    body = """%m = tt.splat %n : i32 -> T<i32>
    %c = arith.constant dense<16> : T<i32>
    %inside = arith.cmpi slt, %places, %m : T<i32>
    %tens = arith.divsi %places, %c : T<i32>
    %y = arith.select %inside, %tens, %x : T<i1>, T<i32>"""
    text = elementwise_text(body, {"x": "i32"}, {"y": "i32"}, 512, 90, 8, 1)
    text = text.replace(") {\n", ", %n: i32 {tt.divisibility = 16 : i32}) {\n", 1)
    ptx = ptx_of(text, 90)
    assert ptx.count("setp.") == 2  # of 16 registers
    x, y = np.arange(1000, 1512, dtype=np.int32), np.zeros(512, np.int32)
    launch(ptx, "kernel", [x, y, 304], 1)
    np.testing.assert_array_equal(y, np.where(np.arange(512) < 304, np.arange(512) // 16, x))


@tilework.jit
def rows_of_batches(out_ptr, length, scale):
    program = tl.program_id(0).to(tl.int64)
    tl.store(out_ptr + 2 * program, program // length)
    tl.store(out_ptr + 2 * program + 1, (program * scale) % length)
    tl.store(out_ptr + 2 * 40 + program, program % length)


@pytest.mark.parametrize("length", [1, 7, 40, -1, -3, 2**31 - 1, -(2**31)])
def test_64_bit_division_of_a_program_id_takes_32_bits(length: int) -> None:
    text = kernel_ptx(rows_of_batches, {"out_ptr": "*i64", "length": "i32", "scale": "i64"}, {}, 90, 1)
    assert len(re.findall(r"\b(?:div|rem)\.s64", text)) == 1  # that of the product
    out = np.zeros(120, np.int64)
    launch(text, "rows_of_batches", [out, length, 10**12], 1, 40)
    program = np.arange(40)
    quotient = np.trunc(program / length).astype(np.int64)
    np.testing.assert_array_equal(out[:80:2], quotient)
    np.testing.assert_array_equal(out[80:], program - quotient * length)
    np.testing.assert_array_equal(out[1:80:2], np.sign(program) * ((program * 10**12) % abs(length)))


@tilework.jit
def repeated_rows(x_ptr, out_ptr, width, rows, columns, N: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    row, column = at // width, at % width
    x = tl.load(x_ptr + row % rows * columns + column % columns)
    tl.store(out_ptr + row * width + column, x)


@pytest.mark.parametrize(("is_aligned", "width", "rows", "columns"), [(True, 48, 3, 16), (False, 35, 4, 7)])
def test_remainders_of_neighbours_are_neighbours(is_aligned: bool, width: int, rows: int, columns: int) -> None:
    """If divisors are multiples of 16, four elements are loaded at once, by the address of the first. The remainder of
    a remainder takes 32 bits."""
    attrs: Any = {(index,): [["tt.divisibility", 16]] for index in ((0, 1, 2, 4) if is_aligned else (0, 1))}
    types = {"x_ptr": "*i32", "out_ptr": "*i32", "width": "i32", "rows": "i32", "columns": "i32", "N": "constexpr"}
    source = ASTSource(repeated_rows, types, {"N": 128}, attrs)
    text = lower(source, GPUTarget("cuda", 90, 32), ["ptx"], num_warps=1)["ptx"]
    assert isinstance(text, str)
    assert is_aligned == bool(re.search(r"ld\.global\.v4", text))
    assert text.count("rem.s32") == (1 if is_aligned else 4)
    x = np.arange(rows * columns, dtype=np.int32)
    count = width * 2 * rows * 128
    out = np.zeros(count, np.int32)
    launch(text, "repeated_rows", [x, out, width, rows, columns], 1, count // 128)
    row, column = np.divmod(np.arange(count), width)
    np.testing.assert_array_equal(out, x[row % rows * columns + column % columns])


@tilework.jit
def difference_of_products(a_ptr, b_ptr, c_ptr, d_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b, c, d = tl.load(a_ptr + at), tl.load(b_ptr + at), tl.load(c_ptr + at), tl.load(d_ptr + at)
    tl.store(out_ptr + at, a * b - c * d)


@pytest.mark.parametrize("size", [32, 256])
def test_a_product_of_bfloats_minus_a_product_negates_no_factor(size: int) -> None:
    names = ("a_ptr", "b_ptr", "c_ptr", "d_ptr", "out_ptr")
    text = kernel_ptx(difference_of_products, dict.fromkeys(names, "*bf16"), {"N": size}, 90, 1)
    assert (
        "neg.bf16 " in text and "neg.bf16x2" not in text and len(re.findall(r"fma\.rn\.bf16", text)) == -(-size // 64)
    )
    values = np.random.default_rng(size).standard_normal((4, size)).astype(ml_dtypes.bfloat16)
    out = np.zeros(size, ml_dtypes.bfloat16)
    launch(text, "difference_of_products", [*values, out], 1)
    a, b, c, d = values.astype(float)
    assert (abs(out.astype(float) - (a * b - c * d)) <= 2.0**-8 * (abs(a * b) + 2 * abs(c * d))).all()


@tilework.jit
def diagonal_blocks(out_ptr, N: tl.constexpr, NAME: tl.constexpr, IS_WIDE: tl.constexpr, SHIFT: tl.constexpr):
    program = tl.program_id(0).to(tl.int64) if IS_WIDE else tl.program_id(0)
    at = program * N + tl.arange(0, N)
    row, column = at[:, None] + SHIFT, at[None, :]
    if NAME == "ge":
        mask = row >= column
    elif NAME == "lt":
        mask = row < column
    elif NAME == "eq":
        mask = row == column
    else:
        mask = row != column
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + program * N * N + places, mask.to(tl.int8))


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize(
    ("name", "shift"), [("ge", 0), ("ge", 1), ("lt", 0), ("lt", -1), ("eq", 0), ("ne", 0), ("eq", 5)]
)
def test_masks_of_diagonal_blocks(name: str, shift: int, is_wide: bool) -> None:
    """Without a shift the program id takes no part, and most of the mask is known."""
    constants = {"N": 32, "NAME": name, "IS_WIDE": is_wide, "SHIFT": shift}
    text = kernel_ptx(diagonal_blocks, {"out_ptr": "*i8"}, constants, 90, 1)
    assert shift or not is_wide or not re.search(r"setp\.\w+\.[sb]64", text)
    out = np.full((3, 32, 32), 9, np.int8)
    launch(text, "diagonal_blocks", [out], 1, 3)
    row, column = np.arange(32)[:, None] + shift, np.arange(32)
    expected = {"ge": row >= column, "lt": row < column, "eq": row == column, "ne": row != column}[name]
    np.testing.assert_array_equal(out, np.broadcast_to(expected, out.shape))


@tilework.jit
def masks_of_wide_indices(out_ptr, mask_ptr, start, limit, FACTOR: tl.constexpr, FIRST: tl.constexpr, N: tl.constexpr):
    base = (start.to(tl.int64) * FACTOR).to(tl.int32)
    at = base.to(tl.int64) + tl.arange(FIRST, FIRST + N).to(tl.int64)
    mask = (at >= 0).to(tl.int8) + (at < limit).to(tl.int8) * 2 + (at > 1000).to(tl.int8) * 4
    mask += (at != -(2**40)).to(tl.int8) * 8 + (at <= 2**33).to(tl.int8) * 16 + (at == -2048).to(tl.int8) * 32
    tl.store(out_ptr + tl.arange(0, N), at)
    tl.store(mask_ptr + tl.arange(0, N), mask)


@pytest.mark.parametrize("first", [0, 256])
@pytest.mark.parametrize("factor", [512, 256, 3 * 1024, 64])
def test_wide_indices_are_summed_before_their_extension(factor: int, first: int) -> None:
    """If the sum of a multiple of 2**k and less than 2**k cannot wrap, it and its comparisons take 32 bits."""
    constants = {"FACTOR": factor, "FIRST": first, "N": 256}
    types = {"out_ptr": "*i64", "mask_ptr": "*i8", "start": "i32", "limit": "i32"}
    text = kernel_ptx(masks_of_wide_indices, types, constants, 90, 1, overflows=True)
    is_short = (factor & -factor) >= first + 256
    assert is_short == (len(re.findall(r"setp\.\w+\.[sub]64", text)) <= 2 * 8)  # those with 2**33 and 2**40
    ends = [2**31 // factor - 1, 2**31 // factor, -(2**31) // factor, 2**31 - 1, -(2**31)]
    for start in [0, 1, 2, 3, 4, -1, -2, -8, *ends]:
        for limit in (0, 700, -300, 2**31 - 1, -(2**31)):
            out, mask = np.zeros(256, np.int64), np.zeros(256, np.int8)
            launch(text, "masks_of_wide_indices", [out, mask, start, limit], 1)
            at = int(np.array(start * factor).astype(np.int32)) + np.arange(first, first + 256)
            np.testing.assert_array_equal(out, at)
            bits = [at >= 0, at < limit, at > 1000, at != -(2**40), at <= 2**33, at == -2048]
            np.testing.assert_array_equal(mask, sum(bit.astype(np.int8) << index for index, bit in enumerate(bits)))
