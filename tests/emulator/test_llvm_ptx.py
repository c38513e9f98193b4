"""PTX as LLVM 22 prints it, executed: arithmetic, control flow, memory, atomics, calls, inline assembly and line
information."""

from typing import Any

import numpy as np
import pytest

from tests.emulator.llvm import BF16, each_of

RANDOM = np.random.default_rng(6)
N = np.arange(64, dtype=np.int32)


def integers(dtype: Any, count: int = 64) -> Any:
    info = np.iinfo(dtype)
    corners = np.array([0, 1, info.max, info.min, info.min + 1, info.max - 1, 2, 3], dtype)
    return np.concatenate([corners, RANDOM.integers(info.min, info.max, count - len(corners), dtype, endpoint=True)])


def floats(dtype: Any, count: int = 64) -> Any:
    return RANDOM.normal(0, 10, count).astype(dtype)


def check(cases: dict[str, Any], *inputs: Any, out: Any, declare: str = "") -> None:
    """Texts, and what they compute."""
    for (text, expected), got in zip(cases.items(), each_of(cases, *inputs, out=out, declare=declare), strict=True):
        np.testing.assert_array_equal(got, expected, text)


# integers


ARITHMETIC = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize("bits", (8, 16, 32, 64))
def test_integer_arithmetic(bits: int) -> None:
    dtype = np.dtype(f"i{bits // 8}")
    a, b = integers(dtype), integers(dtype)[::-1].copy()
    check({f"%d = {name} i{bits} %a, %b": function(a, b) for name, function in ARITHMETIC.items()}, a, b, out=dtype)


@pytest.mark.parametrize("bits", (8, 16, 32, 64))
def test_integer_division_and_shifts(bits: int) -> None:
    for kind in "iu":
        dtype = np.dtype(f"{kind}{bits // 8}")
        a, b = integers(dtype), integers(dtype)[::-1].copy()
        b[b == 0] = 7
        b[~b == 0] = 5
        sign = "s" if kind == "i" else "u"
        exact = [(abs(int(x)) // abs(int(y))) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)]
        rest = [int(x) - q * int(y) for x, y, q in zip(a, b, exact, strict=True)]
        sevenths = [(abs(int(x)) // 7) * (1 if x >= 0 else -1) for x in a]
        count = (RANDOM.integers(0, bits, 64)).astype(dtype)
        right = "ashr" if kind == "i" else "lshr"
        cases = {
            f"%d = {sign}div i{bits} %a, %b": np.array(exact, dtype),
            f"%d = {sign}rem i{bits} %a, %b": np.array(rest, dtype),
            f"%d = {sign}div i{bits} %a, 7": np.array(sevenths, dtype),
            f"%d = {right} i{bits} %a, %c": a >> count,
            f"%d = shl i{bits} %a, %c": a << count,
        }
        check(cases, a, b, count, out=dtype)


COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("bits", (8, 16, 32, 64))
@pytest.mark.parametrize("predicates", ("eq ne slt sle sgt sge", "ult ule ugt uge"))
def test_comparisons_and_booleans(predicates: str, bits: int) -> None:
    dtype = np.dtype(f"{'u' if predicates.startswith('u') else 'i'}{bits // 8}")
    a = integers(dtype)
    b = np.where(RANDOM.random(64) < 0.3, a, RANDOM.permutation(a))
    cases = {}
    for predicate in predicates.split():
        text = (
            f"%p = icmp {predicate} i{bits} %a, %b\n%q = icmp ne i{bits} %a, 3\n%r = xor i1 %p, true\n"
            "%s = and i1 %p, %q\n%t = select i1 %s, i1 true, i1 %r\n%d = zext i1 %t to i8"
        )
        p = COMPARISONS[predicate[-2:]](a, b)
        cases[text] = (p & (a != 3)) | ~p
    check(cases, a, b, out=bool)


def test_128_bits() -> None:
    a, b = integers(np.int64), integers(np.int64)[::-1].copy()
    wide = "%x = sext i64 %a to i128\n%y = zext i64 %b to i128\n%z = shl i128 %y, 40\n%w = xor i128 %x, %z\n"
    values = [int(x) ^ (int(y) & (1 << 64) - 1) << 40 for x, y in zip(a, b, strict=True)]
    second = [int(y) for y in b]

    def signed(value: int) -> int:
        value &= (1 << 128) - 1
        return value - (1 << 128) if value >> 127 else value

    cases = {}
    for name, function in (
        ("add", lambda x, y: x + y),
        ("sub", lambda x, y: x - y),
        ("mul", lambda x, y: x * y),
        ("or", lambda x, y: x | y),
    ):
        for part in (0, 64):
            text = wide + (
                f"%v = sext i64 %b to i128\n%m = {name} i128 %w, %v\n%h = lshr i128 %m, {part}\n"
                "%d = trunc i128 %h to i64"
            )
            expected = [signed(function(x, y)) >> part & (1 << 64) - 1 for x, y in zip(values, second, strict=True)]
            cases[text] = np.array(expected, np.uint64)
    shift = "%n = and i64 %b, 127\n%c = zext i64 %n to i128\n"
    for name in ("shl", "lshr", "ashr"):
        text = (
            wide
            + shift
            + (
                f"%m = {name} i128 %w, %c\n%h = lshr i128 %m, 64\n%l = trunc i128 %m to i64\n"
                "%u = trunc i128 %h to i64\n%d = xor i64 %l, %u"
            )
        )
        expected = []
        for x, y in zip(values, second, strict=True):
            n, x = y & 127, signed(x)
            whole = x << n if name == "shl" else x >> n if name == "ashr" else (x & (1 << 128) - 1) >> n
            expected.append((whole ^ whole >> 64) & (1 << 64) - 1)
        cases[text] = np.array(expected, np.uint64)
    check(cases, a, b, out=np.uint64)


def test_conversions_between_integers() -> None:
    for a, b in ((8, 32), (16, 64), (32, 64), (8, 16), (1, 32)):
        wide = integers(np.dtype(f"i{b // 8}"))
        cut = wide & ((1 << a) - 1)
        signed = np.where(cut >> (a - 1), cut - (1 << a), cut) if a < 64 else cut
        text = f"%x = trunc i{b} %a to i{a}\n%d = "
        cases = {f"zext i{a} %x to i{b}": cut, f"sext i{a} %x to i{b}": signed.astype(wide.dtype)}
        check({text + last: expected for last, expected in cases.items()}, wide, out=wide.dtype)


def test_bits() -> None:
    for bits in (16, 32, 64):
        dtype = np.dtype(f"u{bits // 8}")
        a, b = integers(dtype), integers(dtype)[::-1].copy()
        texts = [format(int(x), f"0{bits}b") for x in a]
        type = f"i{bits}"
        cases = {
            f"%d = call {type} @llvm.ctpop.{type}({type} %a)": [text.count("1") for text in texts],
            f"%d = call {type} @llvm.ctlz.{type}({type} %a, i1 false)": [len(text) - len(text.lstrip("0"))
                                                                         for text in texts],
            f"%d = call {type} @llvm.cttz.{type}({type} %a, i1 false)": [len(text) - len(text.rstrip("0"))
                                                                         for text in texts],
            f"%d = call {type} @llvm.bitreverse.{type}({type} %a)": [int(text[::-1], 2) for text in texts],
            f"%d = call {type} @llvm.bswap.{type}({type} %a)": [int.from_bytes(int(x).to_bytes(bits // 8, "little"),
                                                                               "big") for x in a],
            f"%d = call {type} @llvm.fshl.{type}({type} %a, {type} %b, {type} 5)":
                [(int(x) << 5 | int(y) >> (bits - 5)) & (1 << bits) - 1 for x, y in zip(a, b, strict=True)],
            f"%d = call {type} @llvm.fshr.{type}({type} %a, {type} %b, {type} %b)":
                [((int(x) << bits | int(y)) >> (int(y) % bits)) & (1 << bits) - 1 for x, y in zip(a, b, strict=True)],
        }  # fmt: skip
        declare = "\n".join(
            [f"declare {type} @llvm.{name}.{type}({type})" for name in ("ctpop", "bitreverse", "bswap")]
            + [f"declare {type} @llvm.{name}.{type}({type}, i1)" for name in ("ctlz", "cttz")]
            + [f"declare {type} @llvm.{name}.{type}({type}, {type}, {type})" for name in ("fshl", "fshr")]
        )
        arrays = {text: np.array(expected, dtype) for text, expected in cases.items()}
        check(arrays, a, b, out=dtype, declare=declare)


def test_minimum_maximum_absolute_and_overflow() -> None:
    for bits in (16, 32, 64):
        dtype, type = np.dtype(f"i{bits // 8}"), f"i{bits}"
        a, b = integers(dtype), integers(dtype)[::-1].copy()
        unsigned = np.dtype(f"u{bits // 8}")
        declare = "\n".join(
            f"declare {type} @llvm.{name}.{type}({type}, {type})"
            for name in ("smin", "smax", "umin", "umax", "sadd.sat", "uadd.sat", "usub.sat")
        )
        declare += (
            f"\ndeclare {type} @llvm.abs.{type}({type}, i1)\n"
            f"declare {{{type}, i1}} @llvm.uadd.with.overflow.{type}({type}, {type})"
        )
        declare += f"\ndeclare {{{type}, i1}} @llvm.smul.with.overflow.{type}({type}, {type})"
        ua, ub = a.view(unsigned), b.view(unsigned)
        sums = [int(x) + int(y) for x, y in zip(a, b, strict=True)]
        unsigned_sums = [int(x) + int(y) for x, y in zip(ua, ub, strict=True)]
        differences = [int(x) - int(y) for x, y in zip(ua, ub, strict=True)]
        products = [int(x) * int(y) for x, y in zip(a, b, strict=True)]
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        cases = {
            "smin": np.minimum(a, b), "smax": np.maximum(a, b),
            "umin": np.minimum(ua, ub).view(dtype), "umax": np.maximum(ua, ub).view(dtype),
            "sadd.sat": np.array([np.clip(x, low, high) for x in sums], dtype),
            "uadd.sat": np.array([min(x, (1 << bits) - 1) for x in unsigned_sums], unsigned).view(dtype),
            "usub.sat": np.array([max(x, 0) for x in differences], unsigned).view(dtype),
        }  # fmt: skip
        texts = {f"%d = call {type} @llvm.{name}.{type}({type} %a, {type} %b)": cases[name] for name in cases}
        texts[f"%d = call {type} @llvm.abs.{type}({type} %a, i1 false)"] = np.abs(a)
        check(texts, a, b, out=dtype, declare=declare)
        text = (
            f"%s = call {{{type}, i1}} @llvm.NAME.with.overflow.{type}({type} %a, {type} %b)\n"
            f"%o = extractvalue {{{type}, i1}} %s, 1\n%d = zext i1 %o to i8"
        )
        over = {"uadd": [x >= 1 << bits for x in unsigned_sums], "smul": [not low <= x <= high for x in products]}
        check({text.replace("NAME", name): over[name] for name in over}, a, b, out=bool, declare=declare)


# floats


@pytest.mark.parametrize("dtype", (np.float16, BF16, np.float32, np.float64))
def test_float_arithmetic(dtype: Any) -> None:
    dtype = np.dtype(dtype)
    type = {"float16": "half", "bfloat16": "bfloat", "float32": "float", "float64": "double"}[dtype.name]
    a, b, c = floats(dtype), floats(dtype), floats(dtype)
    arithmetic = {"fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide}
    cases = {f"%d = {name} {type} %a, %b": function(a, b) for name, function in arithmetic.items()}
    cases[f"%d = fneg {type} %a"] = -a
    kind = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}[dtype.name]
    declare = f"declare {type} @llvm.fma.{kind}({type}, {type}, {type})\n"
    unary = {"fabs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "sqrt": np.sqrt}
    declare += "\n".join(f"declare {type} @llvm.{name}.{kind}({type})" for name in unary) + "\n"
    binary = {
        "minnum": np.fmin,
        "maxnum": np.fmax,
        "minimum": np.minimum,
        "maximum": np.maximum,
        "copysign": np.copysign,
    }
    declare += "\n".join(f"declare {type} @llvm.{name}.{kind}({type}, {type})" for name in binary)
    if dtype.itemsize < 8:
        exact = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(dtype)
        cases[f"%d = call {type} @llvm.fma.{kind}({type} %a, {type} %b, {type} %c)"] = exact
    for name, function in unary.items():
        value = "%e" if name == "sqrt" else "%a"
        cases[f"%d = call {type} @llvm.{name}.{kind}({type} {value})"] = function(np.abs(a) if name == "sqrt" else a)
    check(cases, a, b, c, np.abs(a), out=dtype, declare=declare)
    special = a.copy()
    special[::5] = np.nan
    absent = np.isnan(special)
    texts = [f"%d = call {type} @llvm.{name}.{kind}({type} %a, {type} %b)" for name in binary]
    found = each_of(texts, special, b, out=dtype, declare=declare)
    for (name, function), got in zip(binary.items(), found, strict=True):
        missing = b[absent] if name.endswith("num") else special[absent]
        np.testing.assert_array_equal(got[~absent], function(a[~absent], b[~absent]), name)
        assert (np.isnan(got[absent]) == np.isnan(missing)).all() and (np.abs(got[absent]) == np.abs(missing))[
            ~np.isnan(missing)
        ].all(), name
