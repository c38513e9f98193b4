"""Comparisons: predicates by type, strong numbers, NaN."""

import operator
from typing import Any

import numpy as np
import pytest

from tests.frontend.semantic.arith_kernel import Kernel
from tests.frontend.semantic.test_arith import FLOATS, INTS, build, samples
from tilework.language.dtypes import dtype, float16, float32, float64, int1, int32, pointer_type, uint8, uint32

COMPARISONS: dict[str, Any] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less_than": operator.lt,
    "less_equal": operator.le,
    "greater_than": operator.gt,
    "greater_equal": operator.ge,
}


@pytest.mark.parametrize("method", COMPARISONS)
@pytest.mark.parametrize("name", [*INTS, "int1", *FLOATS])
def test_comparison(method: str, name: str) -> None:
    k = build(method, dtype(name), dtype(name))
    assert k.results[0].dtype == int1
    assert k.ops == ["arith.cmpf" if name in FLOATS else "arith.cmpi"]
    x, y = samples(name), np.roll(samples(name), 3)
    y[:4] = x[:4]
    np.testing.assert_array_equal(k.run(x, y), COMPARISONS[method](x, y))


@pytest.mark.parametrize("method", COMPARISONS)
def test_nan_compares_unequal_to_everything(method: str) -> None:
    x = np.full(16, np.nan, np.float32)
    assert (build(method, float32, float32).run(x, x) == (method == "not_equal")).all()


def test_numbers_have_their_own_type() -> None:
    assert build("less_than", uint8, 300).ops == ["arith.extui", "arith.cmpi"]
    assert build("less_than", float16, 0.5).ops == ["arith.extf", "arith.cmpf"]
    assert not build("greater_than", uint32, -1).run(np.arange(16, dtype=np.uint32)).any()
    tenth = np.full(16, np.float32(0.1)).astype(np.float64)
    assert build("equal", float64, 0.1).run(tenth).all()
    assert build("greater_than", 3, int32).run(np.arange(16, dtype=np.int32)).sum() == 3


def test_fp8_is_compared_in_fp16() -> None:
    assert build("less_than", dtype("fp8e5"), dtype("fp8e5")).ops == ["tt.fp_to_fp", "tt.fp_to_fp", "arith.cmpf"]


def test_pointers_do_not_compare() -> None:
    pointer = pointer_type(float32)
    k = Kernel(pointer, pointer)
    with pytest.raises(TypeError, match=r"invalid operands of type pointer<fp32> and pointer<fp32>"):
        k.semantic.equal(*k.args)
