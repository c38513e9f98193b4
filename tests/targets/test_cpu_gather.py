"""`ttc.gather` against NumPy, along every axis; wild indices stay inside the buffer."""

from typing import Any

import numpy as np
import pytest

from tests.targets.cpu_rules import buffer, run


def gather(source: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    target = np.zeros(index.shape, source.dtype)
    types = ", ".join(buffer(array) for array in (source, index, target))
    run(f"    ttc.gather %s, %i into %t {{axis = {axis} : i32}} : {types}", {"s": source, "i": index, "t": target})
    return target


@pytest.mark.parametrize(
    ("source", "index", "axis"),
    [
        ((8,), (32,), 0),
        ((128, 64), (256, 64), 0),
        ((4, 4), (4, 8), 1),
        ((2, 8, 4), (2, 16, 4), 1),
        ((6, 5), (3, 5), 0),
        ((1,), (1,), 0),
    ],
    ids=str,
)
@pytest.mark.parametrize("index_type", [np.int32, np.int64, np.int8], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.float64], ids=lambda dtype: np.dtype(dtype).name)
def test_gather(source: tuple[int, ...], index: tuple[int, ...], axis: int, index_type: Any, dtype: Any) -> None:
    random = np.random.default_rng(0)
    values = random.integers(0, 100, source).astype(dtype)
    places = random.integers(0, source[axis], index).astype(index_type)
    np.testing.assert_array_equal(
        gather(values, places, axis), np.take_along_axis(values, places.astype(np.int64), axis)
    )


@pytest.mark.parametrize("size", [8, 6])
def test_an_index_outside_is_taken_modulo_the_size(size: int) -> None:
    values = np.arange(size, dtype=np.float32)
    places = np.array([-1, size, 2**31 - 1, -(2**31)], np.int32)
    np.testing.assert_array_equal(gather(values, places, 0), values[places.astype(np.int64) % size])
