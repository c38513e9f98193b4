"""Numbers as runtime values: `to_tensor`, `full`, constants."""

from typing import Any

import numpy as np
import pytest

from tests.frontend.semantic.arith_kernel import NUMPY, Kernel
from tilework.language import core as tl
from tilework.language.dtypes import block_type, dtype, float16, float32, int32, pointer_type


@pytest.mark.parametrize(
    ("value", "name"), [(True, "int1"), (5, "int32"), (2**40, "int64"), (2.5, "fp32"), (1e50, "fp64")]
)
def test_a_number_has_its_own_type(value: Any, name: str) -> None:
    k = Kernel()
    for written in (value, tl.constexpr(value)):
        assert k.semantic.to_tensor(written).type == dtype(name)
    assert k.returns(k.semantic.to_tensor(value)).run() == value


def test_a_tensor_stays_as_it_is() -> None:
    k = Kernel(int32)
    assert k.semantic.to_tensor(k.args[0]) is k.args[0]


def test_what_is_no_number() -> None:
    k = Kernel()
    no_number: Any = "text"
    with pytest.raises(TypeError, match="to tensor"):
        k.semantic.to_tensor(no_number)
    assert k.semantic.to_tensor(no_number, check_type=False) is no_number


@pytest.mark.parametrize("name", [name for name in NUMPY if name != "int1"])
def test_full(name: str) -> None:
    k = Kernel()
    k.returns(k.semantic.full([4, 8], 3, dtype(name)))
    result = k.run()
    assert result.shape == (4, 8) and (result.astype(np.float64) == 3).all()


def test_full_of_a_bool() -> None:
    k = Kernel()
    assert k.returns(k.semantic.full([4], 3, dtype("int1"))).run().all()


def test_full_of_zero_fp8_is_a_constant() -> None:
    for name in ("fp8e5", "fp8e4nv", "fp8e4b15"):
        k = Kernel()
        assert k.returns(k.semantic.full([4], 0, dtype(name))).ops == []


def test_full_of_a_tensor() -> None:
    k = Kernel(int32)
    x = k.semantic.full([16], k.args[0], float32)
    assert x.type == block_type(float32, [16])
    assert k.returns(x).ops == ["arith.sitofp", "tt.splat"]


def test_full_without_a_shape_is_a_scalar() -> None:
    assert Kernel().semantic.full([], 1.5, float16).type == float16


def test_full_errors() -> None:
    k = Kernel(block_type(int32, [4]))
    with pytest.raises(ValueError, match="dtype must be specified"):
        k.semantic.full([4], 1, None)
    for number in (1.5, 2.0):
        with pytest.raises(TypeError, match=f"{number} is a float"):
            k.semantic.full([4], number, int32)
    with pytest.raises(AssertionError, match="only accepts size-1 tensor"):
        k.semantic.full([4], k.args[0], int32)
    with pytest.raises(TypeError, match="pointer"):
        k.semantic.full([4], 0, pointer_type(int32))


def test_unavailable_fp8() -> None:
    k = Kernel(supported_fp8_dtypes=("fp8e5",))
    with pytest.raises(ValueError, match=r"fp8e4nv not supported in this architecture.*\('fp8e5',\)"):
        k.semantic.full([4], 0, dtype("fp8e4nv"))


def test_equal_constants_are_one_value() -> None:
    k = Kernel()
    assert k.semantic.full([4], 1, int32).handle is k.semantic.full([4], 1, int32).handle
