"""Elements that no load has defined: which uses are mistakes, and which idioms are not.

Kernels go on after such a use, with a warning; in strict mode it is an error.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.sanitized import every_warning_once, line_of
from tilework import knobs
from tilework.errors import SanitizerError, SanitizerWarning


@pytest.fixture(autouse=True)
def every_warning() -> Iterator[None]:
    with every_warning_once():
        yield


def report(kernel: Any, *args: Any, **settings: Any) -> str:
    """The text of the error of a strict launch; a plain one warns in the same words."""
    with pytest.raises(SanitizerError) as found:
        kernel[(1,)](*args, **settings, sanitize="strict")
    text = str(found.value)
    with pytest.warns(SanitizerWarning) as warned:
        kernel[(1,)](*args, **settings)
    assert text.replace(": error: ", ": warning: ") in [str(one.message) for one in warned]
    return text


def floats(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@tilework.jit(sanitize=True)
def store_under(x, out, n, m, KIND: tl.constexpr):
    i = tl.arange(0, 16)
    v = tl.load(x + i, mask=i < n)
    if KIND == "copy":
        tl.store(out + i, v, mask=i < m)
    elif KIND == "exp":
        tl.store(out + i, tl.exp(v) + 1, mask=(i < n) & (i > 2))
    elif KIND == "where":
        tl.store(out + i, tl.where(i < n, v, 0.0), mask=i < m)
    elif KIND == "other condition":
        tl.store(out + i, tl.where(i < m, v, 0.0))
    elif KIND == "rows":
        tl.store(
            out + i[:, None] + i[None, :] * 0,
            v[:, None] + tl.zeros([16, 2], tl.float32).sum(1)[None, :],
            mask=(i < m)[:, None],
        )
    elif KIND == "cumsum":
        tl.store(out + i, tl.cumsum(v, 0), mask=i < m)
    elif KIND == "backwards":
        tl.store(out + i, tl.cumsum(v, 0, reverse=True), mask=i < m)
    elif KIND == "flip":
        tl.store(out + i, tl.flip(v), mask=i >= 16 - m)
    elif KIND == "sort":
        tl.store(out + i, tl.sort(v), mask=i < m)
    elif KIND == "gather":
        tl.store(out + i, tl.gather(v, 15 - i, 0), mask=i >= 16 - m)
    elif KIND == "sum":
        tl.store(out, tl.sum(v))
    elif KIND == "argmax":
        tl.store(out, tl.argmax(v, 0).to(tl.float32))
    elif KIND == "sum of chosen":
        tl.store(out, tl.sum(tl.where(i < n, v, 0.0)))
    elif KIND == "unused":
        tl.store(out + i, i.to(tl.float32))
    elif KIND == "atomic":
        tl.atomic_add(out + i, v, mask=i < m)
    elif KIND == "condition":
        if tl.sum(v) > 3:
            tl.store(out, 1.0)
    elif KIND == "address":
        tl.store(out + v.to(tl.int32), 1.0, mask=i < m)
    elif KIND == "mask":
        tl.store(out + i, 1.0, mask=(v > 0) & (i < m))
    elif KIND == "call":
        tl.store(out, apart(tl.sum(v)))


@tilework.jit(noinline=True)
def apart(v):
    return v + 1


USES = {
    "copy": "one is stored",
    "exp": None,
    "where": None,
    "other condition": "one is stored",
    "rows": "one is stored",
    "cumsum": None,
    "backwards": "one is stored",
    "flip": None,
    "sort": None,
    "gather": "one is stored",
    "sum": "one is stored",
    "argmax": "one is stored",
    "sum of chosen": None,
    "unused": None,
    "atomic": "one is stored",
    "condition": "one decides a branch",
    "address": "one is part of an address",
    "mask": "one is part of a mask",
    "call": None,
}


@pytest.mark.parametrize("kind", USES)
def test_a_use_of_lanes_that_were_masked_off(kind: str) -> None:
    x, out = floats(16) % 5, np.zeros(64, np.float32)
    store_under[(1,)](x, out, 16, 16, KIND=kind)  # nothing is masked off
    if kind not in ("sum", "argmax", "condition", "backwards"):
        store_under[(1,)](x, out, 5, 5, KIND=kind)
    use = USES[kind]
    m = 16 if kind == "where" else 5 if kind in ("cumsum", "flip", "call", "sort") else 6
    if use is None:
        store_under[(1,)](x, out, 5, m, KIND=kind)
        return
    text = report(store_under, x, out, 5, m, KIND=kind)
    assert (
        f"program (0, 0, 0): a load of argument 'x' masks elements off and gives no `other` for them, and {use}\n"
        in text
    )
    assert text.startswith(f"{__file__}:{line_of('v = tl.load(x + i, mask=i < n)')}:9: error: ")
    assert "note: used in line " in text


@tilework.jit(sanitize=True)
def matmul(a, b, out, m, n, k, PAD: tl.constexpr):
    i, j, s = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, 16)
    inner = s < k
    if PAD:
        left = tl.load(a + i[:, None] * k + s[None, :], mask=(i < m)[:, None] & inner[None, :], other=0.0)
        right = tl.load(b + s[:, None] * n + j[None, :], mask=inner[:, None] & (j < n)[None, :], other=0.0)
    else:
        left = tl.load(a + i[:, None] * k + s[None, :], mask=(i < m)[:, None])
        right = tl.load(b + s[:, None] * n + j[None, :], mask=(j < n)[None, :] & inner[:, None])
    mask = (i < m)[:, None] & (j < n)[None, :]
    tl.store(out + i[:, None] * n + j[None, :], tl.dot(left, right, input_precision="ieee"), mask=mask)


def test_rows_and_columns_of_products() -> None:
    a, b, out = floats(10, 16), floats(16, 12), np.zeros((10, 12), np.float32)
    matmul[(1,)](a, b, out, 10, 12, 16, PAD=False)  # rows and columns beyond the edge are not stored
    np.testing.assert_allclose(out, a @ b)
    short = np.ascontiguousarray(b[:9])
    matmul[(1,)](np.ascontiguousarray(a[:, :9]), short, out, 10, 12, 9, PAD=True)
    wide = np.zeros(16 * 16, np.float32)
    text = report(matmul, wide, short, out, 10, 12, 9, PAD=False)
    assert (
        "and one is stored" in text and "a load of argument 'b'" in text
    )  # all of the rows of 'a' that are stored are there


@tilework.jit(sanitize=True)
def looping(x, out, n, m, rounds, KIND: tl.constexpr):
    i = tl.arange(0, 16)
    total = tl.zeros([16], tl.float32)
    last = tl.zeros([16], tl.float32)
    if KIND == "for":
        for r in range(rounds):
            last = tl.load(x + r * 16 + i, mask=i < n)
            total += last
    else:
        r = 0
        while r < rounds:
            last = tl.load(x + r * 16 + i, mask=i < n)
            total += last
            r += 1
    if rounds > 2:
        total = total * 2
    else:
        total = tl.where(i < 16, total, last)
    tl.store(out + i, total, mask=i < m)


@pytest.mark.parametrize("kind", ["for", "while"])
def test_loops_and_branches_carry_what_is_undefined(kind: str) -> None:
    x, out = floats(64), np.zeros(16, np.float32)
    looping[(1,)](x, out, 7, 7, 4, KIND=kind)
    np.testing.assert_array_equal(out[:7], 2 * x.reshape(4, 16).sum(0)[:7])
    assert "and one is stored" in report(looping, x, out, 7, 8, 4, KIND=kind)
    assert "and one is stored" in report(looping, x, out, 7, 8, 1, KIND=kind)
    looping[(1,)](x, out, 7, 8, 0, KIND=kind)  # nothing was loaded


@tilework.jit(sanitize=True)
def bounded(x, out, n):
    i = tl.arange(0, 16)
    count = tl.max(tl.load(x + i, mask=i < n), 0)
    for r in range(count):
        tl.store(out + r, 1.0)


def test_bounds_of_loops() -> None:
    x, out = np.arange(16, dtype=np.int32), np.zeros(16, np.float32)
    bounded[(1,)](x, out, 16)
    assert "and one bounds a loop" in report(bounded, x, out, 15)


@tilework.jit(sanitize=True)
def integers(x, out, n, KIND: tl.constexpr):
    i = tl.arange(0, 16)
    v = tl.load(x + i, mask=i < n)
    keep = (i < n).to(tl.int32)
    if KIND == "times":
        tl.store(out + i, v * keep)
    elif KIND == "and":
        tl.store(out + i, v & (0 - keep))
    elif KIND == "minus":
        tl.store(out + i, v - keep)


def test_a_product_with_zero_is_defined() -> None:
    x, out = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    for kind in ("times", "and"):
        integers[(1,)](x, out, 9, KIND=kind)
        np.testing.assert_array_equal(out, np.where(np.arange(16) < 9, x, 0))
    assert "and one is stored" in report(integers, x, out, 9, KIND="minus")


@tilework.jit(sanitize=True)
def two_loads(x, y, out, n, m):
    i = tl.arange(0, 16)
    first = tl.load(x + i, mask=i < n)
    second = tl.load(y + i, mask=i < m)
    tl.store(out + i, first * second)


def test_of_two_loads_the_one_is_named_whose_elements_were_undefined() -> None:
    x, y, out = floats(16), floats(16), np.zeros(16, np.float32)
    two_loads[(1,)](x, y, out, 16, 16)
    for counts, name in (((9, 16), "first"), ((16, 9), "second")):
        text = report(two_loads, x, y, out, *counts)
        assert text.startswith(f"{__file__}:{line_of(f'{name} = tl.load')}:")
        assert f"used in line {line_of('tl.store(out + i, first * second)')}: tl.store(out + i, first * second)" in text


@tilework.jit(sanitize=True)
def bordered(x, out, n):
    block = tl.make_block_ptr(x, (n,), (1,), (0,), (16,), (0,))
    tl.store(out + tl.arange(0, 16), tl.load(block, boundary_check=(0,)))


def test_a_boundary_check_without_padding() -> None:
    x, out = floats(16), np.zeros(16, np.float32)
    bordered[(1,)](x, out, 16)
    text = report(bordered, x, out, 9)
    assert (
        "a load of argument 'x' masks elements off" in text
        and "boundary_check=(0,)" in text
        and "padding_option" in text
    )


def test_a_warning_is_shown_once_per_line_and_the_kernel_goes_on() -> None:
    x, out = floats(16), np.full(16, -1, np.float32)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default", SanitizerWarning)
        for _ in range(3):
            store_under[(2,)](x, out, 5, 6, KIND="copy")
    assert [(one.filename, one.lineno) for one in found] == [(__file__, line_of("v = tl.load(x + i, mask=i < n)"))]
    np.testing.assert_array_equal(out[:5], x[:5])
    assert (out[6:] == -1).all()


def test_modes() -> None:
    x, out = floats(16), np.zeros(16, np.float32)
    with pytest.raises(ValueError, match="sanitize is True, False, 'strict' or 'race', not 'hard'"):
        store_under[(1,)](x, out, 5, 6, KIND="copy", sanitize="hard")
    knob = knobs.env_sanitize("TRITON_SANITIZE")
    texts = ("1", "on", "Strict", "race", "0", "", "off")
    assert [knob.transform(text) for text in texts] == [True, True, "strict", "race", False, False, False]
    with pytest.raises(ValueError, match="TRITON_SANITIZE is 0, 1, strict or race, not 'hard'"):
        knob.transform("hard")
