"""The language of Triton's development branch (3.8): additions, which are always there, and what changes the meaning of
a program, which `TILEWORK_TRITON_VERSION=3.8.0` selects."""

from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.rows import Refused, arguments, check, kernel
from tests.frontend.run import result
from tests.language.both_ways import call_both, check_both, interpreted
from tilework import knobs
from tilework.errors import CompileTimeAssertionFailure, UnsupportedLanguageConstruct

BOTH = pytest.mark.parametrize("interpret", [False, True])


@BOTH
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int8", "uint8", "float32", "float16"])
@pytest.mark.parametrize(("size", "k"), [(16, 1), (16, 4), (16, 16), (8, 8), (12, 5), (12, 12), (7, 6), (16, 3)])
def test_topk(size: int, k: int, dtype: str, interpret: bool) -> None:
    random = np.random.default_rng(size + k)
    x = random.permutation(np.arange(2 * size))[None, :].reshape(2, size).astype(dtype)
    if dtype.startswith(("int", "float")):
        x = (x - np.array(size, dtype)).astype(dtype)
    largest, smallest = -np.sort(-x.astype(np.float64), 1)[:, :k], np.sort(x.astype(np.float64), 1)[:, :k]
    np.testing.assert_array_equal(call_both(tl.topk, interpret, x, k).astype(np.float64), largest)
    np.testing.assert_array_equal(call_both(tl.topk, interpret, x, k, descending=False).astype(np.float64), smallest)


@BOTH
def test_topk_of_nans_and_zeros(interpret: bool) -> None:
    x = np.array([np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0, -1.0, 2.0], np.float32)
    np.testing.assert_array_equal(call_both(tl.topk, interpret, x, 2), [np.nan, np.inf])
    smallest = call_both(tl.topk, interpret, x, 4, descending=False)
    np.testing.assert_array_equal(smallest, [-np.inf, -1, -0.0, 0.0])
    assert np.signbit(smallest).tolist() == [True, True, True, False]


@BOTH
@pytest.mark.parametrize("k", [0, 9])
def test_topk_refuses_other_sizes(k: int, interpret: bool) -> None:
    with pytest.raises(Exception, match="k must be at least 1"):
        call_both(tl.topk, interpret, np.arange(8), k)


@BOTH
def test_flip_and_members(interpret: bool) -> None:
    x = np.arange(1, 9, dtype=np.float32).reshape(2, 4) / 3
    np.testing.assert_array_equal(call_both(tl.flip, interpret, x, dim=None), x[:, ::-1])
    for name, wanted in {
        "ceil": np.ceil, "floor": np.floor, "exp2": np.exp2, "log2": np.log2, "sqrt_rn": np.sqrt,
    }.items():  # fmt: skip
        np.testing.assert_allclose(call_both(getattr(tl.tensor, name), interpret, x), wanted(x), rtol=1e-6)
    np.testing.assert_allclose(
        call_both(tl.tensor.erf, interpret, np.array([0, 0.5], np.float32)), [0, 0.5204999], rtol=1e-6
    )


@tilework.jit
def dotted(x, y, acc):
    return tl.dot(x, y, acc, out_dtype=None)


@tilework.jit
def dotted_from_zero(x, y):
    return tl.dot(x, y, out_dtype=None)


@BOTH
def test_dot_with_the_type_of_acc(interpret: bool) -> None:
    x = (np.arange(256) % 7).reshape(16, 16).astype(np.float16)
    single, half = call_both(dotted_from_zero, interpret, x, x), call_both(dotted, interpret, x, x, x)
    assert single.dtype == np.float32 and half.dtype == np.float16
    np.testing.assert_array_equal(single, x.astype(np.float32) @ x)
    np.testing.assert_array_equal(half, (x.astype(np.float32) @ x + x).astype(np.float16))


def test_named_address_spaces() -> None:
    assert (
        tl.pointer_type(tl.int8, "global")
        == tl.pointer_type(tl.int8, address_space="global")
        == tl.pointer_type(tl.int8)
    )
    assert tl.pointer_type(tl.int8, address_space="global", const=True) == tl.pointer_type(tl.int8, 1, True)
    assert tl.pointer_type(tl.int8, "shared").address_space == 3


PYTHON = {
    "filters": ("t = [i for i in (1, 2, 3, 4) if i > 2]\ntl.static_assert(len(t) == 2)\ntl.store(out, t[0] * t[1])",
                [12]),
    "a bare annotation": ("y: tl.tensor\ny = n + 1\ntl.store(out, y)", [4]),
    "a bare constexpr": ("y: tl.constexpr\ny = n + 1\ntl.store(out, y)", [4]),
    "too few values": ("a, b, c = (1, 2)", Refused(ValueError, "cannot unpack 2 values into 3 names")),
    "a nested function": ("def f():\n    pass", Refused(UnsupportedLanguageConstruct, "nested function definition")),
}  # fmt: skip


@pytest.mark.parametrize("row", PYTHON)
def test_python(tmp_path: Path, row: str) -> None:
    body, expected = PYTHON[row]
    if isinstance(expected, Refused):
        check(tmp_path, body, expected)
    else:
        assert result(kernel(tmp_path, body), np.arange(64, dtype=np.float32), 1.5, 3, size=8, C=4)[:1] == expected


# ---- aggregates


@tl.core.aggregate
class Point:
    x: tl.tensor
    y: tl.tensor
    scale: tl.constexpr = 2  # pyright: ignore[reportAssignmentType]

    @tilework.jit
    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y, self.scale)

    @tilework.jit
    def __mul__(self, factor):
        return tl.aggregate_replace(self, x=self.x * factor, y=self.y * factor)

    @tilework.jit
    def norm(self):
        return (self.x * self.x + self.y * self.y) * self.scale


@tl.core.aggregate
class Raised(Point):
    z: tl.tensor

    @tilework.jit
    def height(self):
        return self.z + self.norm()


@tilework.jit
def points(out, n):
    p = Point(n, n + 1)
    q = (p + Point(y=n, x=n, scale=5)) * 10
    tl.static_assert(q.scale == 2)
    for _ in range(n):
        q = q + p
    tl.store(out, q.x)
    tl.store(out + 1, q.y)
    tl.store(out + 2, p.norm())
    tl.store(out + 3, tl.aggregate_replace(p, scale=3, y=p.x).norm())
    tl.store(out + 4, Raised(n, n, 1, n + 2).height())


@BOTH
def test_aggregates_with_defaults_bases_and_operators(interpret: bool) -> None:
    out = np.zeros(5, np.int32)
    tilework.jit(points.fn, interpret=interpret)[(1,)](out, 3)
    assert out.tolist() == [69, 82, 50, 54, 23]


WRONG = {
    "Point(n)": "did not set the field 'y'",
    "Point(n, n, 1, 2)": "has 3 fields, got 4 values",
    "Point(n, n, x=n)": "got multiple values for field 'x'",
    "Point(n, n, w=n)": "has no field 'w'",
    "tl.aggregate_replace(Point(n, n), w=n)": "has no field 'w'",
    "tl.aggregate_replace(n, x=n)": "aggregate_replace takes an aggregate",
}


@pytest.mark.parametrize("call", WRONG)
def test_wrong_aggregates(tmp_path: Path, call: str) -> None:
    header = f"from {__name__} import Point"
    with pytest.raises(Exception, match=WRONG[call]):
        result(kernel(tmp_path, f"y = {call}", header), np.zeros(1, np.float32), 1.5, 3, C=4)


def test_the_old_name_of_aggregate() -> None:
    assert tl.core._aggregate is tl.core.aggregate


# ---- waiting


@tilework.jit
def relay(flags, out, N: tl.constexpr):
    i = tl.program_id(0)
    flags.atomic_poll(i, sem="acquire")
    tl.store(out + i, tl.load(out + i - 1, mask=i > 0, other=0) + i)
    tl.debug_barrier()
    tl.atomic_xchg(flags, i + 1, sem="release")
    all = flags + 1 + tl.arange(0, N)
    tl.atomic_poll(all, 7)


@BOTH
def test_atomic_poll(interpret: bool) -> None:
    """Each program waits for the one before it."""
    flags, out = np.array([0, 7, 7, 7, 7], np.int32), np.zeros(8, np.int32)
    tilework.jit(relay.fn, interpret=interpret)[(8,)](flags, out, N=4)
    assert out.tolist() == np.cumsum(np.arange(8)).tolist() and flags.tolist() == [8, 7, 7, 7, 7]


def test_atomic_poll_has_no_timeout(tmp_path: Path) -> None:
    check(tmp_path, "tl.atomic_poll(out, 1, timeout_ns=5)", Refused(CompileTimeAssertionFailure, "no timeout"))


# ---- expectations


@tilework.jit
def masked_weights(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.expect_zero(tl.exp(tl.load(x + i)), i < 2))


@BOTH
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_expect_zero(dtype: type, interpret: bool) -> None:
    """Only debug builds look."""
    fn = tilework.jit(masked_weights.fn, interpret=interpret)
    x, out = np.array([-2000, -np.inf, 0, 0], dtype), np.ones(4, dtype)
    fn[(1,)](x, out, N=4, debug=True)
    assert out.tolist() == [0, 0, 1, 1]
    x[1] = 0
    fn[(1,)](x, out, N=4, debug=False)
    assert out.tolist() == [0, 1, 1, 1]
    with pytest.raises(Exception, match="expect_zero: an element is not zero"):
        fn[(1,)](x, out, N=4, debug=True)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        ("tl.expect_zero(x, n)", ValueError, "Mask must have boolean scalar type"),
        ("tl.expect_zero(p, n > 1)", ValueError, "expect_zero takes numbers"),
    ],
)
def test_wrong_expectations(tmp_path: Path, call: str, kind: type[Exception], words: str) -> None:
    check(tmp_path, f"y = {call}", Refused(kind, words))
    with pytest.raises(Exception, match=words):
        interpreted(kernel(tmp_path, f"y = {call}"))


# ---- what waits behind the switch


def test_block_pointers_are_removed(tmp_path: Path) -> None:
    with knobs.language.scope() as language:
        language.triton_version = "3.8.0"
        body = "tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0))"
        check(tmp_path, body, Refused(TypeError, "Triton 3.8 has no tl.make_block_ptr"))


def test_cat_keeps_the_order_of_reordered_blocks(tmp_path: Path) -> None:
    body = "x = tl.arange(0, 4)\ntl.store(out + tl.arange(0, 8), tl.cat(x, x + 4, can_reorder=True))"
    with knobs.language.scope() as language:
        check(tmp_path, body, "tt.cat")
        language.triton_version = "3.8.0"
        check_both(tmp_path, body, [*range(8)])
        check(tmp_path, body, "tt.join")


@tilework.jit
def triple(x):
    return x, 1, 2


def test_unpacking_too_many_values(tmp_path: Path) -> None:
    """Triton 3.7 drops them."""
    body = "a, b = triple(n)\ntl.store(out, a + b)"
    header = f"from {__name__} import triple"
    with pytest.warns(UserWarning, match="3 values for 2 names") as seen:
        check_both(tmp_path, body, [4], header)
    assert {Path(one.filename).parent for one in seen} == {tmp_path}
    with knobs.language.scope() as language:
        language.triton_version = "3.8.0"
        check(tmp_path, body, Refused(ValueError, "cannot unpack 3 values into 2 names"), header)
        with pytest.raises(Exception, match="cannot unpack 3 values into 2 names"):
            interpreted(kernel(tmp_path, body, header))


FILTER = "t = [i for i in (1, 2, 3) if i > 1]\ntl.store(out, t[0])"


def test_filters_that_triton_ignores(tmp_path: Path) -> None:
    fn = kernel(tmp_path, FILTER)
    with knobs.language.scope() as language:
        language.strict_triton = True
        for interpret in (False, True):
            with pytest.raises(Exception, match="the filter of a comprehension, its `if`, is ignored"):
                tilework.jit(fn.fn, interpret=interpret)[(1,)](np.zeros(8, np.int32), *arguments(), C=4)
        language.triton_version = "3.8.0"
        check_both(tmp_path, FILTER, [2])


POSITIONAL = {
    "load": "tl.store(out, tl.load(p, n > 1, 1.0, (), '', '.ca').to(tl.int32) + 1)",
    "store": "tl.store(out, 1, n > 1, (), '.wb')",
}


@pytest.mark.parametrize("name", POSITIONAL)
def test_parameters_of_memory_are_keyword_only(tmp_path: Path, name: str) -> None:
    check_both(tmp_path, POSITIONAL[name], [1])
    with knobs.language.scope() as language:
        language.triton_version = "3.8.0"
        words = f"{name}() takes 3 positional arguments in Triton 3.8"
        check(tmp_path, POSITIONAL[name], Refused(TypeError, words))
        with pytest.raises(Exception, match=rf"{name}\(\) takes 3 positional arguments"):
            interpreted(kernel(tmp_path, POSITIONAL[name]))
        check_both(tmp_path, "tl.store(out, tl.load(p + n, n > 1, 1.0, cache_modifier='.ca').to(tl.int32))", [3])


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64"])
def test_histogram_of_32_bits(tmp_path: Path, dtype: str) -> None:
    body = f"i = tl.arange(0, 4)\ntl.store(out + i, tl.histogram((i // 2).to(tl.{dtype}), 4))"
    check_both(tmp_path, body, [2, 2, 0, 0])
    with knobs.language.scope() as language:
        language.triton_version = "3.8.0"
        words = f"histogram only supports 32-bit integers in Triton 3.8, got {dtype}"
        check(tmp_path, body, Refused(ValueError, words))
        with pytest.raises(Exception, match=words):
            interpreted(kernel(tmp_path, body))
        check_both(tmp_path, body.replace(dtype, "uint32"), [2, 2, 0, 0])


DIVISIONS = {  # of 3 by 7 in fp8e5: rounded, and as fp32
    "x / y": (3 / 7, 0.4375), "x % y": (3.0, 3.0), "x / 7.0": (3 / 7, 0.4375), "3.0 / y": (3 / 7, 0.4375),
    "y % x": (1.0, 1.0), "y / y": (1.0, 1.0), "7 / x": (7 / 3, 2.5),
}  # fmt: skip


@BOTH
@pytest.mark.parametrize("call", DIVISIONS)
def test_division_of_fp8(tmp_path: Path, call: str, interpret: bool) -> None:
    body = """
        x = tl.full((4,), 3.0, tl.float32).to(tl.float8e5)
        y = tl.full((4,), 7.0, tl.float32).to(tl.float8e5)
        z = {}
        tl.static_assert(z.dtype == tl.{})
        tl.store(out + tl.arange(0, 4), z.to(tl.float32).to(tl.int32, bitcast=True))
    """
    for version, dtype, wanted in zip(("3.7.1", "3.8.0"), ("float8e5", "float32"), DIVISIONS[call][::-1], strict=True):
        with knobs.language.scope() as language:
            language.triton_version = version
            fn, out = kernel(tmp_path, body.format(call, dtype)), np.zeros(8, np.int32)
            tilework.jit(fn.fn, interpret=interpret)[(1,)](out, *arguments(), C=4)
        np.testing.assert_allclose(out.view(np.float32)[:4], wanted, rtol=1e-6)
