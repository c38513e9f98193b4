"""`ttc.scan` against a plain loop: every way of scanning, both directions, in place, several values at once."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.targets.cpu_rules import ELEMENTS, buffer, run

Both = dict[bool, list[np.ndarray]]


def scan(
    region: str, sources: list[np.ndarray], axis: int, in_place: bool = False, ways: Sequence[bool] = (False, True)
) -> Both:
    """Apply `region` to the sources forwards (False) and in reverse (True), in one kernel. It is the body of the
    combination of %a0, %a1 ... with %b0, %b1 ...; the results are the targets."""
    arguments = ", ".join(f"%{side}{n}: {ELEMENTS[s.dtype]}" for side in "ab" for n, s in enumerate(sources))
    arrays: dict[str, np.ndarray] = {}
    text, found = "", Both()
    for reverse in ways:
        given = {f"x{n}_{int(reverse)}": source.copy() for n, source in enumerate(sources)}
        made = given if in_place else {f"y{n}_{int(reverse)}": np.zeros_like(s) for n, s in enumerate(sources)}
        arrays |= given | made
        names = [", ".join(f"%{name}" for name in side) for side in (given, made)]
        text += (
            f"    ttc.scan {names[0]} into {names[1]} {{axis = {axis} : i32, reverse = {str(reverse).lower()}}} {{\n"
            f"    ^bb0({arguments}):\n{region}\n    }} : {', '.join(buffer(source) for source in sources)}\n"
        )
        found[reverse] = list(made.values())
    run(text, arrays)
    return found


def sum_region(dtype: Any) -> str:
    element = ELEMENTS[np.dtype(dtype)]
    op = "arith.addi" if element.startswith("i") else "arith.addf"
    return f"      %s = {op} %a0, %b0 : {element}\n      ttc.yield %s : {element}"


MAXIMUM_WITH_INDEX = """
      %bigger = arith.cmpf oge, %a0, %b0 : f32
      %value = arith.select %bigger, %a0, %b0 : f32
      %index = arith.select %bigger, %a1, %b1 : i32
      ttc.yield %value, %index : f32, i32"""
LINEAR = """
      %p = arith.muli %a0, %b0 : i32
      %m = arith.muli %a1, %b0 : i32
      %q = arith.addi %m, %b1 : i32
      ttc.yield %p, %q : i32, i32"""
WITH_BRANCH = """
      %keep = arith.cmpi sgt, %a0, %b0 : i32
      %r = scf.if %keep -> (i32) {
        scf.yield %a0 : i32
      } else {
        scf.yield %b0 : i32
      }
      ttc.yield %r : i32"""

SHAPES = [
    ((64,), 0),
    ((1,), 0),
    ((4,), 0),
    ((2048,), 0),
    ((6,), 0),
    ((40,), 0),
    ((2, 32), 1),
    ((16, 32), 1),
    ((7, 8), 1),
    ((16, 1), 1),
    ((32, 16), 0),
    ((8, 3), 0),
    ((4, 8, 64), 1),
    ((2, 4, 2), 0),
    ((2, 4, 8), 2),
]


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.int8], ids=lambda dtype: np.dtype(dtype).name)
def test_running_sums(shape: tuple[int, ...], axis: int, dtype: Any) -> None:
    source = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)
    assert_sums(scan(sum_region(dtype), [source], axis), source, axis)


def assert_sums(found: Both, source: np.ndarray, axis: int) -> None:
    for reverse, (result,) in found.items():
        ordered = np.flip(source, axis) if reverse else source
        expected = np.cumsum(ordered, axis, dtype=source.dtype)
        wanted = np.flip(expected, axis) if reverse else expected
        np.testing.assert_array_equal(result, wanted, "in reverse" if reverse else "forwards")


@pytest.mark.parametrize(
    "dtype", [np.float64, np.int64, np.int16, np.float16, ml_dtypes.bfloat16], ids=lambda dtype: np.dtype(dtype).name
)
@pytest.mark.parametrize(("shape", "axis"), [((64,), 0), ((16, 64), 1), ((16, 64), 0)], ids=str)
def test_sums_of_other_types(dtype: Any, shape: tuple[int, ...], axis: int) -> None:
    source = np.random.default_rng(0).integers(-1, 2, shape).astype(np.float32).astype(dtype)
    (result,) = scan(sum_region(dtype), [source], axis, ways=[False])[False]
    np.testing.assert_array_equal(result.astype(np.float64), np.cumsum(source.astype(np.float64), axis))


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_the_largest_so_far_and_its_place(shape: tuple[int, ...], axis: int) -> None:
    values = np.random.default_rng(0).integers(0, 20, shape).astype(np.float32)
    indices = np.broadcast_to(
        np.arange(shape[axis], dtype=np.int32).reshape([-1 if a == axis else 1 for a in range(len(shape))]), shape
    )
    found = scan(MAXIMUM_WITH_INDEX, [values, np.ascontiguousarray(indices)], axis)
    for reverse, (largest, where) in found.items():
        ordered = np.flip(values, axis) if reverse else values
        expected = np.maximum.accumulate(ordered, axis)
        way = "in reverse" if reverse else "forwards"
        np.testing.assert_array_equal(largest, np.flip(expected, axis) if reverse else expected, way)
        np.testing.assert_array_equal(np.take_along_axis(values, where.astype(np.int64), axis), largest, way)


@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_the_earlier_one_is_on_the_left(shape: tuple[int, ...], axis: int) -> None:
    """Composing x -> p x + q: associative, but not commutative."""
    random = np.random.default_rng(1)
    factors, terms = (random.integers(-9, 10, shape).astype(np.int32) for _ in range(2))
    for reverse, (products, sums) in scan(LINEAR, [factors, terms], axis).items():
        f, t = (np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0) for x in (factors, terms))
        p, q = f.copy(), t.copy()
        with np.errstate(over="ignore"):
            for position in range(1, len(f)):
                p[position] = p[position - 1] * f[position]
                q[position] = q[position - 1] * f[position] + t[position]
        for result, expected in ((products, p), (sums, q)):
            expected = np.moveaxis(expected, 0, axis)
            wanted = np.flip(expected, axis) if reverse else expected
            np.testing.assert_array_equal(result, wanted, "in reverse" if reverse else "forwards")


@pytest.mark.parametrize(("shape", "axis"), [((64,), 0), ((8, 16), 1), ((8, 16), 0)], ids=str)
def test_a_combination_with_control_flow(shape: tuple[int, ...], axis: int) -> None:
    source = np.random.default_rng(0).integers(0, 99, shape).astype(np.int32)
    (result,) = scan(WITH_BRANCH, [source], axis, ways=[False])[False]
    np.testing.assert_array_equal(result, np.maximum.accumulate(source, axis))


@pytest.mark.parametrize(("shape", "axis"), [((64,), 0), ((16, 32), 1), ((16, 32), 0), ((6,), 0)], ids=str)
def test_in_place(shape: tuple[int, ...], axis: int) -> None:
    source = np.random.default_rng(0).integers(0, 99, shape).astype(np.int32)
    assert_sums(scan(sum_region(np.int32), [source], axis, in_place=True), source, axis)


def test_booleans() -> None:
    source = np.array([False, False, True, False] * 16)
    region = "      %o = arith.ori %a0, %b0 : i1\n      ttc.yield %o : i1"
    (result,) = scan(region, [source], 0, ways=[False])[False]
    np.testing.assert_array_equal(result, np.logical_or.accumulate(source))
