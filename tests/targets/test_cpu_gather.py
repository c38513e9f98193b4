"""`ttc.gather` against NumPy, along every axis; wild indices stay inside the buffer."""

from typing import Any

import numpy as np
import pytest

from tests.targets.cpu_rules import buffer, run

Gathers = list[tuple[np.ndarray, np.ndarray, int]]  # source, index, axis


def gather(cases: Gathers) -> list[np.ndarray]:
    """Return the gathered values of each case; all cases are one kernel."""
    body, arrays, targets = "", {}, []
    for number, (source, index, axis) in enumerate(cases):
        targets.append(np.zeros(index.shape, source.dtype))
        types = ", ".join(buffer(array) for array in (source, index, targets[-1]))
        names = [f"{letter}{number}" for letter in "sit"]
        arrays |= dict(zip(names, (source, index, targets[-1]), strict=True))
        body += f"    ttc.gather %{names[0]}, %{names[1]} into %{names[2]} {{axis = {axis} : i32}} : {types}\n"
    run(body, arrays)
    return targets


SHAPES = [
    ((8,), (32,), 0),
    ((128, 64), (256, 64), 0),
    ((4, 4), (4, 8), 1),
    ((2, 8, 4), (2, 16, 4), 1),
    ((6, 5), (3, 5), 0),
    ((1,), (1,), 0),
]


@pytest.mark.parametrize("index_type", [np.int32, np.int64, np.int8], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.float64], ids=lambda dtype: np.dtype(dtype).name)
def test_gather(index_type: Any, dtype: Any) -> None:
    random = np.random.default_rng(0)
    cases: Gathers = []
    for source, index, axis in SHAPES:
        values = random.integers(0, 100, source).astype(dtype)
        cases.append((values, random.integers(0, source[axis], index).astype(index_type), axis))
    for (values, indices, axis), found in zip(cases, gather(cases), strict=True):
        wanted = np.take_along_axis(values, indices.astype(np.int64), axis)
        np.testing.assert_array_equal(found, wanted, f"{values.shape} by {indices.shape} along {axis}")


@pytest.mark.parametrize("size", [8, 6])
def test_an_index_outside_is_taken_modulo_the_size(size: int) -> None:
    values = np.arange(size, dtype=np.float32)
    indices = np.array([-1, size, 2**31 - 1, -(2**31)], np.int32)
    np.testing.assert_array_equal(gather([(values, indices, 0)])[0], values[indices.astype(np.int64) % size])
