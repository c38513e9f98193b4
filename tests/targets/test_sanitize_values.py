"""Arithmetic and indices that go wrong: divisions, shifts, overflow, gather, histogram; and guards that make them
right."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.sanitized import line_of, report
from tilework import knobs
from tilework.errors import SanitizerError

HERE = Path(__file__)
LOWEST = -(2**31)


def column(*start: int, dtype: Any = np.int32) -> Any:
    """Sixteen numbers: those given, then ones."""
    return np.array([*start, *[1] * (16 - len(start))], dtype)


@tilework.jit(sanitize=True)
def binary(x, y, out, n, KIND: tl.constexpr):
    i = tl.arange(0, 16)
    a, b = tl.load(x + i), tl.load(y + i)
    if KIND == "//":
        r = a // b
    elif KIND == "%":
        r = a % b
    elif KIND == "<<":
        r = a << b
    elif KIND == ">>":
        r = a >> b
    elif KIND == "+":
        r = a + b
    elif KIND == "-":
        r = a - b
    elif KIND == "*":
        r = a * b
    elif KIND == "quiet":
        r = tl.add(a, b, sanitize_overflow=False)
    elif KIND == "guarded":
        r = tl.where(b != 0, a // b, 0)
    elif KIND == "back":
        r = (a * 1103515245 + b) & 0xFFFF
    elif KIND == "branch":
        r = a
        if tl.sum(a // b) > 3:
            tl.store(out, 5)
    tl.store(out + i, r, mask=i < n)


def run(kind: str, x: Any, y: Any, n: int = 16, **settings: Any) -> Any:
    out = np.zeros(16, x.dtype)
    binary[(1,)](x, y, out, n, KIND=kind, **settings)
    return out


WRONG = [
    ("//", column(7), column(0), "division by zero, and the result is stored"),
    ("%", column(7), column(0), "division by zero, and the result is stored"),
    ("//", column(7, dtype=np.uint8), column(0, dtype=np.uint8), "division by zero, and the result is stored"),
    ("//", column(LOWEST), column(-1), "int32 overflow detected for operation div (the smallest integer by -1)"),
    ("//", column(-128, dtype=np.int8), column(-1, dtype=np.int8), "int8 overflow detected for operation div"),
    ("//", column(-(2**63), dtype=np.int64), column(-1, dtype=np.int64), "int64 overflow detected for operation div"),
    ("<<", column(1), column(32), "an int32 is shifted by 32 bits or more, and the result is stored"),
    (">>", column(1), column(-1), "an int32 is shifted by 32 bits or more, and the result is stored"),
    (">>", column(1, dtype=np.uint16), column(16, dtype=np.uint16), "an int16 is shifted by 16 bits or more"),
    ("+", column(2**31 - 1), column(1), "int32 overflow detected for operation add, and the result is stored"),
    ("-", column(LOWEST), column(1), "int32 overflow detected for operation sub, and the result is stored"),
    ("*", column(2**16), column(2**15), "int32 overflow detected for operation mul, and the result is stored"),
    ("*", column(100, dtype=np.int8), column(2, dtype=np.int8), "int8 overflow detected for operation mul"),
    ("branch", column(7), column(0), "division by zero, and the result decides a branch"),
]
RIGHT = [
    ("//", column(LOWEST, 7), column(1, -1)),
    ("%", column(LOWEST), column(-1)),
    ("<<", column(1), column(31)),
    (">>", column(-5), column(31)),
    ("+", column(2**31 - 1), column(0)),
    ("+", column(2**32 - 1, dtype=np.uint32), column(1, dtype=np.uint32)),  # unsigned numbers wrap around on purpose
    ("+", column(2**63 - 1, dtype=np.int64), column(1, dtype=np.int64)),  # as Triton: up to 32 bits
    ("quiet", column(2**31 - 1), column(1)),
    ("guarded", column(7, 8), column(0, 2)),
    ("back", column(2**30), column(2**31 - 1)),
]


@pytest.mark.parametrize(("kind", "x", "y", "text"), WRONG, ids=[f"{case[0]}-{case[1].dtype}" for case in WRONG])
def test_a_wrong_number_is_reported_at_its_line(kind: str, x: Any, y: Any, text: str) -> None:
    found = report(lambda: run(kind, x, y))
    assert f"program (0, 0, 0): {text}" in found
    line = line_of(f"r = a {kind} b" if kind != "branch" else "if tl.sum(a // b) > 3")
    assert found.startswith(f"{HERE}:{line}:")
    x[0], y[0] = 1, 1
    run(kind, x, y)


@pytest.mark.parametrize(("kind", "x", "y"), RIGHT, ids=[f"{case[0]}-{case[1].dtype}" for case in RIGHT])
def test_what_is_right_is_left_alone(kind: str, x: Any, y: Any) -> None:
    run(kind, x, y)


@pytest.mark.parametrize("kind", ["//", "<<", "+"])
def test_a_lane_that_is_not_stored_does_not_count(kind: str) -> None:
    x, y = column(), column()
    x[9:], y[9:] = 2**31 - 1, {"//": 0, "<<": 99, "+": 1}[kind]
    run(kind, x, y, 9)
    report(lambda: run(kind, x, y, 10))


def test_overflow_can_be_left_out() -> None:
    x, y = column(2**31 - 1), column(1)
    assert run("+", x, y, sanitize_overflow=False)[0] == LOWEST
    with knobs.runtime.scope():
        knobs.runtime.sanitize_overflow = False
        assert run("+", x, y)[0] == LOWEST
    report(lambda: run("+", x, y))


@tilework.jit(sanitize=True)
def counted(x, out, rounds):
    total = 1
    for _ in range(rounds):
        total = total * 3 + tl.load(x)
    tl.store(out, total)


def test_overflow_that_a_loop_carries() -> None:
    out = np.zeros(1, np.int32)
    counted[(1,)](np.ones(1, np.int32), out, 5)
    text = report(lambda: counted[(1,)](np.ones(1, np.int32), out, 40))
    assert "int32 overflow detected for operation" in text and "total = total * 3 + tl.load(x)" in text
    assert "used in line" in text and "tl.store(out, total)" in text
    assert "help: to wrap around on purpose, use tl." in text


@tilework.jit(sanitize=True)
def grouped(x, out, groups, n):
    pid = tl.program_id(0)
    row = pid // groups
    i = tl.arange(0, 16)
    p = x + row * 16 + i
    for _ in range(n):
        tl.store(out + row * 16 + i, tl.load(p))
        p += 16


def test_a_program_number_divided_by_zero() -> None:
    x, out = np.zeros(64, np.float32), np.zeros(64, np.float32)
    grouped[(2,)](x, out, 2, 2)
    text = report(lambda: grouped[(2,)](x, out, 0, 2))
    assert "division by zero, and the result is part of an address" in text
    assert text.startswith(f"{HERE}:{line_of('row = pid // groups')}:")
    grouped[(2,)](x, out, 0, 0)  # the row is not used


@tilework.jit(sanitize=True)
def picked(x, index, out, n, AXIS: tl.constexpr):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 16)[None, :]
    at = i * 16 + j
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), AXIS), mask=i < n)


@pytest.mark.parametrize(("axis", "size"), [(0, 8), (1, 16)])
@pytest.mark.parametrize("bad", [-1, None, 2**31 - 1])
def test_gather(axis: int, size: int, bad: int | None) -> None:
    x, out = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    index = (np.arange(128, dtype=np.int32) * 7) % size
    picked[(1,)](x, index, out, 8, AXIS=axis)
    expected = np.take_along_axis(x.reshape(8, 16), index.reshape(8, 16).astype(np.int64), axis)
    np.testing.assert_array_equal(out.reshape(8, 16), expected)
    index[100] = size if bad is None else bad
    picked[(1,)](x, index, out, 6, AXIS=axis)  # row 6 is not stored
    text = report(lambda: picked[(1,)](x, index, out, 7, AXIS=axis))
    assert (
        f"the index of a tl.gather is outside of axis {axis}, which has {size} elements, and the result is stored"
        in text
    )
    assert text.startswith(f"{HERE}:{line_of('tl.gather(tl.load(x + at)')}:")


@tilework.jit(sanitize=True)
def counting(x, out, n, BINS: tl.constexpr, MASK: tl.constexpr):
    i = tl.arange(0, 32)
    numbers = tl.load(x + i)
    counts = tl.histogram(numbers, BINS, mask=i < n) if MASK else tl.histogram(numbers, BINS)
    tl.store(out + tl.arange(0, BINS), counts)


@pytest.mark.parametrize("bad", [-1, 16, 2**31 - 1])
def test_histogram(bad: int) -> None:
    x, out = np.arange(32, dtype=np.int32) % 16, np.zeros(16, np.int32)
    counting[(1,)](x, out, 32, BINS=16, MASK=False)
    assert (out == 2).all()
    x[20] = bad
    text = report(lambda: counting[(1,)](x, out, 32, BINS=16, MASK=False))
    assert "program (0, 0, 0): tl.histogram counts a value that is outside of its 16 bins" in text
    assert text.startswith(f"{HERE}:{line_of('counts = tl.histogram(')}:")
    counting[(1,)](x, out, 20, BINS=16, MASK=True)
    report(lambda: counting[(1,)](x, out, 21, BINS=16, MASK=True))
    counting[(1,)](x, out, 32, BINS=16, MASK=False, sanitize=False)  # left out, as on GPUs
    assert out.sum() == 31


def test_debug_builds_check_overflow_as_triton_does() -> None:
    x, y = column(2**31 - 1), column(1)
    with pytest.raises(RuntimeError, match="int32 overflow detected for operation add") as found:
        run("+", x, y, debug=True, sanitize=False)
    assert not isinstance(found.value, SanitizerError)
    with knobs.runtime.scope():
        knobs.runtime.sanitize_overflow = False
        run("+", x, y, debug=True, sanitize=False)
