"""Expressions: literals, operators, attributes, subscripts, f-strings, comprehensions."""

# The kernels are odd on purpose.
# ruff: noqa: B009, RUF021, RUF061, SIM222
# pyright: reportAttributeAccessIssue=false

import math

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import error, message_of, result, text, ttir
from tilework.errors import UnsupportedLanguageConstruct

CONSTANTS = tl.constexpr({"a": 3, "b": [4, 5]})


@tilework.jit
def literals(out):
    tl.store(out, 0x10 + 1_000)
    tl.store(out + 1, True)
    tl.store(out + 2, len(b"abc") + len("äöü"))
    tl.store(out + 3, None is None)
    tl.store(out + 4, ~7 & 0xFF)
    tl.store(out + 5, 7 // -2 + (-7) % 3)
    tl.store(out + 6, 2**10 >> 3 << 1 | 1 ^ 3)
    tl.store(out + 7, (not 0) + (+3) - -2)
    tl.store(out + 8, int(7 / 2) + int(3.9))
    tl.store(out + 9, CONSTANTS["a"] + CONSTANTS["b"][1])
    tl.store(out + 10, 3 in (1, 2, 3))
    tl.store(out + 11, 3 not in CONSTANTS["b"])
    tl.store(out + 12, "abc".upper() == "ABC")


def test_constants_follow_python() -> None:
    assert result(literals, size=13) == [
        0x10 + 1_000, 1, 6, 1, ~7 & 0xFF, 7 // -2 + (-7) % 3, 2**10 >> 3 << 1 | 1 ^ 3, 6, 6, 8, 1, 1, 1,
    ]  # fmt: skip


@tilework.jit
def numbers(out):
    tl.store(out, float("inf"))
    tl.store(out + 1, -float("inf"))
    tl.store(out + 2, float("nan"))
    tl.store(out + 3, -0.0)
    tl.store(out + 4, 1e-40)
    x = -0.0
    tl.store(out + 5, x)
    y = 1e300
    tl.store(out + 6, y)


def test_special_floats() -> None:
    values = result(numbers, size=7, dtype=np.float64)
    assert values[:2] == [math.inf, -math.inf] and math.isnan(values[2])
    assert [math.copysign(1, value) for value in (values[3], values[5])] == [-1, -1]
    assert values[4] == 1e-40 and values[6] == 1e300


@tilework.jit
def big_numbers(out):
    a = 2**31
    b = 2**40
    c = 2**63
    tl.static_assert(a.dtype == tl.uint32)
    tl.static_assert(b.dtype == tl.int64)
    tl.static_assert(c.dtype == tl.uint64)
    tl.store(out, a)
    tl.store(out + 1, b)
    tl.store(out + 2, 2**100 % 7)


def test_big_integers() -> None:
    assert result(big_numbers, size=3, dtype=np.int64) == [2**31, 2**40, 2**100 % 7]


@tilework.jit
def weak(h, u):
    x = tl.load(h)
    tl.static_assert((x * 1.5).dtype == tl.float16)
    a = 1.5
    tl.static_assert((x * a).dtype == tl.float32)
    y = tl.load(u)
    tl.static_assert((y + 200).dtype == tl.uint8)
    n = 2
    tl.static_assert((y + n).dtype == tl.int32)
    K: tl.constexpr = 2  # pyright: ignore[reportAssignmentType]
    tl.static_assert((y + K).dtype == tl.uint8)
    tl.static_assert(literal(y, 2).dtype == tl.uint8)
    tl.static_assert((y + returned()).dtype == tl.uint8)
    tl.static_assert(default(y).dtype == tl.uint8)
    tl.static_assert(reassigned(y).dtype == tl.int32)
    for i in tl.static_range(1):
        tl.static_assert((y + i).dtype == tl.uint8)


@tilework.jit
def literal(y, n):
    return y + n


@tilework.jit
def default(y, n=3):
    return y + n


@tilework.jit
def reassigned(y, n=3):
    n = n + 1
    return y + n


@tilework.jit
def returned():
    return 2


def test_when_numbers_are_weak() -> None:
    ttir(weak, np.zeros(1, np.float16), np.zeros(1, np.uint8))


# -- and, or, not ------------------------------------------------------------------------------------------------------


@tilework.jit
def short_circuit(out, n, FLAG: tl.constexpr, X: tl.constexpr):
    tl.store(out, FLAG and n > 3)
    tl.store(out + 1, FLAG or n > 3)
    if X is not None and X.bit_length() > 2:
        tl.store(out + 2, 1)
    if X is None or hasattr(X, "bit_length"):
        tl.store(out + 3, 1)
    tl.store(out + 4, n > 1 and FLAG and n > 5 or n == 0)
    tl.store(out + 5, not (n > 3))
    tl.store(out + 6, (0 or 5) + (3 and 4) + (not None))


def test_constants_short_circuit() -> None:
    assert result(short_circuit, 4, size=7, FLAG=True, X=8) == [1, 1, 1, 1, 0, 0, 10]
    assert result(short_circuit, 0, size=7, FLAG=False, X=None) == [0, 0, -1, 1, 1, 1, 10]


@tilework.jit
def block_logic(out, n):
    o = tl.arange(0, 4)
    tl.store(out + o, (o > 0) and (o < n))


def test_and_of_blocks_warns() -> None:
    with pytest.warns(UserWarning, match="use `&`"):
        assert result(block_logic, 3, size=4) == [0, 1, 1, 0]


# -- subscripts and attributes -----------------------------------------------------------------------------------------


@tilework.jit
def subscripts(out, n):
    x = tl.arange(0, 8)
    tl.static_assert(x[:, None].shape == [8, 1])
    tl.static_assert(x[None, :].shape == (1, 8))
    tl.static_assert(x[None, :, None].shape == [1, 8, 1])
    tl.static_assert(x[::None, None].shape == [8, 1])
    tl.static_assert(x[:].shape == [8])
    tl.static_assert(n[None].shape == [1])
    tl.static_assert(n[None, None].shape == [1, 1])
    tl.static_assert(out[None, :].shape == [1])
    y = x[:, None] * 8 + x[None, :]
    tl.static_assert(y.shape[1:] == [8])
    tl.static_assert(y.shape[0] == 8)
    tl.static_assert(y.numel == 64)
    tl.static_assert(len(y.shape + [2]) == 3)
    tl.static_assert(y.T.shape == [8, 8])
    tl.static_assert(y.dtype.is_int() and y.dtype.primitive_bitwidth == 32)
    tl.static_assert(out.dtype.element_ty == tl.int32 or False)
    tl.store(out + y, y.T)


def test_subscripts() -> None:
    assert result(subscripts, 1, size=64) == np.arange(64).reshape(8, 8).T.ravel().tolist()


# -- f-strings, comprehensions -----------------------------------------------------------------------------------------


@tilework.jit
def f_strings(out, N: tl.constexpr):
    text: tl.constexpr = f"n={N:04d} {'x'!r} {N / 3:.2f} {N!s}"  # pyright: ignore[reportAssignmentType]
    tl.static_assert(text == "n=0012 'x' 4.00 12")
    tl.store(out, len(text))  # pyright: ignore[reportArgumentType]


def test_f_strings_honour_their_format() -> None:
    assert result(f_strings, N=12) == [18]


@tilework.jit
def comprehension(out, n):
    x = 5
    t = [x * n for x in (1, 2, 3, 4) if x != 3 if x > 1]
    tl.store(out, len(t))
    tl.store(out + 1, t[0] + t[1] + x)


def test_comprehensions_filter_and_do_not_leak() -> None:
    assert result(comprehension, 10, size=2) == [2, 65]


# -- min, max, isinstance ----------------------------------------------------------------------------------------------


@tilework.jit
def extrema(out, n):
    tl.store(out, min(n, 3))
    tl.store(out + 1, max(n, 3, n * 2))
    tl.store(out + 2, min(4, 2, 3))
    tl.store(out + 3, max((4, 9, 3)))
    tl.store(out + 4, tl.sum(tl.arange(0, min(8, 4))))


def test_min_and_max() -> None:
    assert result(extrema, 7, size=5) == [3, 14, 2, 9, 6]


@tilework.jit
def block_extremum(out, n):
    o = tl.arange(0, 4)
    tl.store(out + o, max(o, n))


def test_max_of_blocks_is_deprecated() -> None:
    with pytest.warns(UserWarning, match="builtin max on non-scalar"):
        assert result(block_extremum, 2, size=4) == [2, 2, 2, 3]


@tilework.jit
def introspection(out, n, X: tl.constexpr):
    tl.static_assert(isinstance(n, tl.tensor))
    tl.static_assert(isinstance(X, int))
    tl.static_assert(isinstance(X, tl.constexpr))
    tl.static_assert(isinstance(X, (float, int)))
    tl.static_assert(not isinstance(n, int))
    tl.static_assert(hasattr(n, "dtype") and not hasattr(X, "dtype"))
    tl.static_assert(getattr(X, "missing", 3) == 3)
    tl.store(out, getattr(tl, "maximum")(n, X))
    tl.store(out + 1, getattr(n, "to")(tl.int64))


def test_introspection() -> None:
    assert result(introspection, 1, size=2, X=4) == [4, 1]


# -- depth -------------------------------------------------------------------------------------------------------------


def kernel_from(tmp_path, body: str):
    """A kernel `k(out, n)` with the given body, from a file of its own."""
    import importlib.util

    path = tmp_path / "made.py"
    path.write_text(f"import tilework\nimport tilework.language as tl\n\n\n@tilework.jit\ndef k(out, n):\n    {body}\n")
    spec = importlib.util.spec_from_file_location("made", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.k


@pytest.mark.parametrize(("value", "wanted"), [(" + ".join(["n"] * 300), 600), (" + ".join(["n"] * 2000), 4000),
                                               ("-" * 1000 + "n", 2)], ids=["300", "2000", "signs"])  # fmt: skip
def test_deep_expressions_work(tmp_path, value: str, wanted: int) -> None:
    assert result(kernel_from(tmp_path, f"tl.store(out, {value})"), 2) == [wanted]


# -- refused -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x = {'a': 1}", "Dict"),
        ("x = {1, 2}", "Set"),
        ("x = (i for i in (1, 2))", "GeneratorExp"),
        ("x = lambda: 1", "Lambda"),
        ("x = (y := n)", "NamedExpr"),
        ("x = [i for i in range(4)]", "comprehension"),
        ("x = [i + j for i in (1, 2) for j in (3, 4)]", "nested comprehension"),
        ("x = [i for i in (1, 2) if n > i]", "filter"),
        ("x: tl.constexpr = f'{n}'", "f-string"),
        ("x = 0 < n < 3", "multiple comparison"),
        ("x = n ** 2", "compile-time operands"),
        ("x = n @ n", "tl.dot"),
        ("x = n and n", "bitcast"),
        ("x = not n", "bool"),
        ("x = -(1, 2)", "-"),
        ("x = tl.arange(0, 4)[0]", "unsupported tensor index"),
        ("x = tl.arange(0, 4)[1:]", "unsupported tensor index"),
        ("x = tl.arange(0, 4)[...]", "unsupported tensor index"),
        ("x = tl.arange(0, 4)[tl.arange(0, 4)]", "unsupported tensor index"),
        ("x = tl.arange(0, 4).T", "2-D"),
        ("x = n.nothing", "nothing"),
        ("x = tl.nothing", "nothing"),
        ("x = int(n)", "compile-time value"),
        ("x = float(n)", "compile-time value"),
        ("x = min(float('nan'), 1.0)", "ambiguous"),
        ("x = max(-0.0, 1.0)", "ambiguous"),
        ("x = max(n)", "at least 2 values"),
        ("x = min(n, 3, key=4)", "key"),
        ("x = sum((1, 2))", "is not defined"),
        ("x = 1 / 0", "division by zero"),
        ("x = 2 ** 100", "2"),
        ("x = +n", "+"),
        ("x = n in (1, 2)", "compile-time operands"),
        ("x = n + None", "NoneType"),
        ("x = n + 'a'", "a"),
        ("x = n + tl.float32", "fp32"),
        ("x = n + (1, 2)", "add"),
        ("x = len(n)", "len"),
        ("x = len(3)", "len"),
        ("x = isinstance(n)", "isinstance"),
        ("x = getattr(n, 3)", "attribute name"),
        ("x = hasattr(n)", "hasattr"),
        ("x = tl", "module"),
        ("x = n(3)", "call"),
        ("x = 'abc'", "abc"),
        ("x = ...", "Ellipsis"),
        ("x = 3j", "3j"),
        ("x = n[0]", "unsupported tensor index"),
        ("tl.static_print(undefined)", "undefined"),
        ("x = tl.float32(3)", "x.to(tl.float32)"),
        ("x = tl.tensor(n, tl.int32)", "tensor"),
        ("x = print", "print"),
        ("x = *n, 1", "tuple"),
        ("tl.store(*n)", "tuple"),
        ("await n", "Await"),
        ("x = (yield n)", "Yield"),
    ],
)  # fmt: skip
def test_refused(tmp_path, body: str, message: str) -> None:
    if body == "await n":
        pytest.raises(SyntaxError, compile, f"def f(n):\n    {body}", "f", "exec")
        return
    problem = error(
        kernel_from(tmp_path, f"{body}\n    tl.store(out, x)" if body.startswith("x") else body), np.zeros(1), 3
    )
    assert message in message_of(problem)


def test_unsupported_nodes_have_their_own_class(tmp_path) -> None:
    assert isinstance(error(kernel_from(tmp_path, "x = lambda: 1"), np.zeros(1), 3), UnsupportedLanguageConstruct)


def test_unicode_in_the_source(tmp_path) -> None:
    kernel = kernel_from(tmp_path, 'größe = n * 2  # ü\n    tl.static_assert("é" == "é")\n    tl.store(out, größe)')
    assert result(kernel, 4) == [8]
    assert "arith.muli" in text(kernel, np.zeros(1), 4)
