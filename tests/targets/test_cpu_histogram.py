"""`ttc.histogram` against NumPy."""

import numpy as np
import pytest

from tests.targets.cpu_rules import buffer, run


def histogram(source: np.ndarray, bins: int, mask: np.ndarray | None = None) -> np.ndarray:
    """Counts; the memory behind them must not be written."""
    target = np.full(bins + 4, 77, np.int32)
    arrays = {"x": source} | ({"m": mask} if mask is not None else {}) | {"h": target[:bins]}
    types = ", ".join(buffer(array) for array in arrays.values())
    run(f"    ttc.histogram %x{', %m' if mask is not None else ''} into %h : {types}", arrays)
    assert np.all(target[bins:] == 77)
    return target[:bins]


@pytest.mark.parametrize("count", [1, 2, 64, 2048])
@pytest.mark.parametrize("bins", [1, 2, 16, 256])
def test_counts(count: int, bins: int) -> None:
    source = np.random.default_rng(0).integers(0, bins, count).astype(np.int32)
    np.testing.assert_array_equal(histogram(source, bins), np.bincount(source, minlength=bins))


@pytest.mark.parametrize("bins", [4, 512])
def test_masked_elements_and_those_outside_do_not_count(bins: int) -> None:
    random = np.random.default_rng(0)
    source = random.integers(-(2**31), 2**31, 512).astype(np.int32)
    source[::2] = random.integers(-2, bins + 2, 256)
    mask = random.integers(0, 2, 512).astype(bool)
    kept = source[mask]
    expected = np.bincount(kept[(kept >= 0) & (kept < bins)], minlength=bins)
    np.testing.assert_array_equal(histogram(source, bins, mask), expected)


@pytest.mark.parametrize("dtype", [np.int8, np.int64], ids=lambda dtype: np.dtype(dtype).name)
def test_other_integers(dtype: type) -> None:
    source = np.array([0, 1, 1, 3, -1, 100, 3, 3], dtype)
    np.testing.assert_array_equal(histogram(source, 4), [1, 2, 0, 3])
