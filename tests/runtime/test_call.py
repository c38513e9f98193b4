"""`tilework.testing.call`: a function of the language on arrays; its documented example runs with the reference."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.testing import call


@pytest.fixture(params=[False, True], ids=["compiled", "interpreted"], autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    with knobs.runtime.scope():
        knobs.runtime.interpret = request.param
        yield


def test_results_have_the_types_and_shapes_of_the_function() -> None:
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    values, offsets = call(tl.max, x, 1, return_indices=True)
    assert (values.dtype, values.tolist(), offsets.dtype, offsets.tolist()) == ("float32", [3, 7], "int32", [3, 3])
    assert call(tl.trans, x).tolist() == x.T.tolist()
    total = call(tl.sum, x)
    assert (total.dtype, total.shape, total) == ("float32", (), 28)
    assert call(tl.cast, x, tl.int1).dtype == bool
    rounded = call(tl.cast, np.array([1.00390625, 2], np.float32), tl.bfloat16)
    assert (rounded.dtype, rounded.tolist()) == ("float32", [1, 2])


def test_arrays_numbers_and_constants_are_what_the_kernel_gets() -> None:
    @tilework.jit
    def scaled(pair: Any, factor: Any, shift: Any) -> Any:
        tl.static_assert(shift == 1)
        return (pair[0] + pair[1]) * factor + shift

    x = np.arange(8)[::2]  # not contiguous
    assert call(scaled, (x, x), np.int64(3), shift=1).tolist() == [1, 13, 25, 37]
    assert call(tl.zeros_like, np.float64(0.1)).dtype == np.float64


def test_nothing_returned_is_none(capfd: pytest.CaptureFixture[str]) -> None:
    assert call(tl.static_assert, True) is None
    assert call(tl.device_print, "x", np.int32(5)) is None
    assert "x" in capfd.readouterr().out


def test_what_cannot_be_an_array_is_said() -> None:
    @tilework.jit
    def nested(x: Any) -> Any:
        return x, (x, x)

    with pytest.raises(ValueError, match=r"this array has none: its shape is \(0,\)"):
        call(tl.exp, np.zeros(0, np.float32))
    with pytest.raises(Exception, match="cannot become an array"):
        call(nested, np.zeros(4, np.float32))
    if not knobs.runtime.interpret:
        with pytest.raises(
            tilework.CompilationError, match="can only be called inside a kernel: did you forget the @jit"
        ):
            call(lambda x: x + x, np.zeros(4, np.float32))
