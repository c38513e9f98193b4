"""What an argument is specialised on, kind by kind."""

import json
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.runtime.launch.specialize import mangle_type, parse_attr, specialize
from tilework.triton._C.libtriton.native_specialize import native_specialize_impl


def aligned(dtype: object, offset: int = 0) -> np.ndarray:
    """An array whose address is `offset` bytes past a multiple of 16."""
    raw = np.zeros(256, np.uint8)
    start = -raw.ctypes.data % 16 + offset
    return raw[start : start + 64].view(dtype)


class Pair(NamedTuple):
    a: object
    b: object


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ("constexpr", None)),
        (True, ("u1", None)),
        (False, ("u1", None)),
        (1, ("constexpr", 1)),
        (0, ("i32", "D")),
        (16, ("i32", "D")),
        (17, ("i32", "")),
        (-16, ("i32", "D")),
        (2**31 - 1, ("i32", "")),
        (-(2**31), ("i32", "D")),
        (2**31, ("i64", "D")),
        (2**32 - 1, ("i64", "")),
        (-(2**63), ("i64", "D")),
        (2**63 - 1, ("i64", "")),
        (2**63, ("u64", "D")),
        (2**64 - 1, ("u64", "")),
        (1.0, ("fp32", None)),
        (float("inf"), ("fp32", None)),
        (np.float64(3), ("fp32", None)),
        ((), ((), ())),
        ((1, 16, None), (("constexpr", "i32", "constexpr"), (1, "D", None))),
    ],
)
def test_numbers_and_tuples(value: object, expected: object) -> None:
    assert specialize(value) == expected


@pytest.mark.parametrize(
    ("dtype", "code"),
    [
        ("bool", "u1"), ("int8", "i8"), ("int16", "i16"), ("int32", "i32"), ("int64", "i64"), ("uint8", "u8"),
        ("uint16", "u16"), ("uint32", "u32"), ("uint64", "u64"), ("float16", "fp16"), ("float32", "fp32"),
        ("float64", "fp64"), (ml_dtypes.bfloat16, "bf16"), (ml_dtypes.float8_e5m2, "fp8e5"),
        (ml_dtypes.float8_e4m3fn, "fp8e4nv"), (ml_dtypes.float8_e5m2fnuz, "fp8e5b16"),
        (ml_dtypes.float8_e4m3fnuz, "fp8e4b8"),
    ],
)  # fmt: skip
def test_arrays(dtype: object, code: str) -> None:
    assert specialize(aligned(dtype)) == (f"*{code}", "D")
    assert specialize(aligned(dtype), is_const=True) == (f"*k{code}", "D")
    assert specialize(aligned(dtype, offset=8)) == (f"*{code}", "")


def test_alignment_can_be_left_out() -> None:
    assert specialize(32, align=False) == ("i32", "")
    assert specialize(1, align=False) == ("constexpr", 1)
    assert specialize(aligned("f4"), align=False) == ("*fp32", "")


def test_no_specialisation() -> None:
    assert specialize(1, specialize_value=False) == ("i32", None)
    assert specialize(16, specialize_value=False) == ("i32", None)
    assert specialize(aligned("f4"), specialize_value=False) == ("*fp32", None)


def test_named_tuples_keep_their_class() -> None:
    types, keys = specialize(Pair(1, 3.5))
    assert types == Pair("constexpr", "fp32")
    assert type(types) is Pair
    assert keys == Pair(1, None)


def test_constexpr_and_functions_are_constants() -> None:
    constant = tl.constexpr(5)
    assert specialize(constant) == ("constexpr", constant)

    @tilework.jit
    def helper(x):
        return x

    assert specialize(helper) == ("constexpr", helper.cache_key)


@pytest.mark.parametrize("value", ["text", [1, 2], np.complex64(3), np.datetime64("2000"), object()])
def test_other_objects_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="failed to specialize argument of type"):
        specialize(value)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_integers_beyond_64_bits(value: int) -> None:
    with pytest.raises(OverflowError):
        specialize(value)


def test_subclasses_behave_as_their_base() -> None:
    class Int(int):
        pass

    class Float(float):
        pass

    assert native_specialize_impl(None, Int(16), False, True, True) == ("i32", "D")
    assert native_specialize_impl(None, Float(2), False, True, True) == ("fp32", None)


def test_objects_with_data_ptr() -> None:
    class Tensor:
        dtype = "torch.float16"

        def data_ptr(self) -> int:
            return 32

    assert specialize(Tensor()) == ("*fp16", "D")


def test_dlpack_objects() -> None:
    class Export:
        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def __dlpack__(self, **kwargs: object) -> object:
            return self.array.__dlpack__()

        def __dlpack_device__(self) -> object:
            return self.array.__dlpack_device__()

    assert specialize(Export(aligned("f4"))) == ("*fp32", "D")


def test_cuda_arrays() -> None:
    class Device:
        __cuda_array_interface__ = {"typestr": "<f4", "data": (256, False), "shape": (4,), "version": 3}

    assert specialize(Device()) == ("*fp32", "D")


def test_mangle_type() -> None:
    assert mangle_type(1.5) == "fp32"
    assert mangle_type(1) == "i32"
    assert mangle_type(1, True) == "constexpr"


def test_facts() -> None:
    assert parse_attr("D") == [["tt.divisibility", 16]]
    assert parse_attr("") == []
    assert parse_attr(None) == []


@pytest.mark.parametrize("dtype", ["complex64", "object", "U3"])
def test_arrays_without_an_element_type(dtype: str) -> None:
    with pytest.raises(TypeError, match="kernels have no element type"):
        specialize(np.zeros(2, dtype))


def test_a_constant_inside_nested_tuples_through_a_hook_and_preload(monkeypatch):
    @tilework.jit
    def kernel(out, pair):
        for i in range(2):
            tl.static_assert(pair[1][0] == 2)
            tl.store(out + i, pair[0][0] + pair[1][0])

    told = []
    monkeypatch.setattr(tilework.knobs.runtime, "jit_cache_hook", lambda **details: told.append(details))
    out = np.zeros(2, np.int32)
    argument = ((3,), (tl.constexpr(2),))
    first = kernel.warmup(out, argument, grid=(1,))
    details = told.pop()["compile"]
    assert details["constants"] == {(1, 1, 0): tl.constexpr(2)} and "constexpr[2]" in details["key"]
    assert json.loads(details["specialization_data"])["constant_vals"] == [{"constexpr": 2}]
    kernel.device_caches.clear()
    again = kernel.preload(details["specialization_data"])
    assert again.hash == first.hash and told.pop()["key"] == details["key"]
    assert kernel[(1,)](out, argument) is again and not told
    assert out.tolist() == [5, 5]
