"""Specialization of an argument, kind by kind."""

import json
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import entries, fill
from tilework.runtime.launch.python.specialize import is_small, mangle_type, parse_attr, specialize, specialize_small
from tilework.targets.base import GPUTarget
from tilework.tools.tensor_descriptor import TensorDescriptor
from tilework.triton.runtime import native_specialize_impl, plain_keys

pytestmark = pytest.mark.usefixtures("fresh_cache")


def aligned(dtype: Any, offset: int = 0) -> np.ndarray:
    """Return an array whose address is `offset` bytes past a multiple of 16."""
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
    assert tuple(keys) == (1, None)


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


def test_a_constant_inside_nested_tuples_through_a_hook_and_preload() -> None:
    @tilework.jit
    def kernel(out, pair):
        for i in range(2):
            tl.static_assert(pair[1][0] == 2)
            tl.store(out + i, pair[0][0] + pair[1][0])

    reported = []
    tilework.knobs.runtime.jit_cache_hook = lambda **details: reported.append(details)
    out = np.zeros(2, np.int32)
    argument = ((3,), (tl.constexpr(2),))
    first = kernel.warmup(out, argument, grid=(1,))
    details = reported.pop()["compile"]
    assert details["constants"] == {(1, 1, 0): tl.constexpr(2)} and "constexpr[2]" in details["key"]
    assert json.loads(details["specialization_data"])["constant_vals"] == [{"constexpr": 2}]
    kernel.device_caches.clear()
    again = kernel.preload(details["specialization_data"])
    assert again.hash == first.hash and reported.pop()["key"] == details["key"]
    assert kernel[(1,)](out, argument) is again and not reported
    assert out.tolist() == [5, 5]


@tilework.constexpr_function
def twice(x):
    return 2 * x


VALUES = [None, True, 1, 0, 16, 17, 2**31, 2**63, 1.5, np.float64(2), (1, 16, Pair(None, 3)), (), tl.constexpr(3)]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize(("specialize_value", "align"), [(True, True), (True, False), (False, True)])
def test_the_function_that_tests_call(value: Any, specialize_value: bool, align: bool) -> None:
    found = native_specialize_impl(None, value, False, specialize_value, align)
    type, key = specialize(value, False, specialize_value, align)
    assert found == (type, plain_keys(key))  # keys of launches also know the class of a tuple
    assert mangle_type(value, specialize_value) == native_specialize_impl(None, value, False, specialize_value, True)[0]


def test_elements_of_tuples_are_always_specialised() -> None:
    data = np.zeros(16, "f4")
    types = ("constexpr", "i32", "*fp32")
    assert specialize((1, 16, data), True, False, False)[0] == types
    assert specialize((1, 16), False, False, True) == (("constexpr", "i32"), (1, "D"))
    kernel = tilework.jit(do_not_specialize=["pair"])(pair_sum)
    out = np.zeros(1, "i4")
    for pair in ((1, 16), (1, 17), (2, 17)):
        kernel[(1,)](out, pair)
        assert out[0] == sum(pair)
    assert entries(kernel) == 3


def pair_sum(p, pair):
    tl.store(p, pair[0] + pair[1])


def test_functions_are_constants_by_their_hash() -> None:
    assert specialize(fill) == ("constexpr", fill.cache_key)
    assert specialize(twice) == ("constexpr", twice.cache_key)
    assert specialize(twice, False, False, True) == ("constexpr", twice.cache_key)


def test_descriptors() -> None:
    base = np.zeros((8, 64), "f2")
    assert specialize(TensorDescriptor.from_tensor(base, [4, 16])) == ("tensordesc<fp16[4, 16]>", None)


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, 10**30])
def test_integers_that_no_type_holds(value: int) -> None:
    with pytest.raises(OverflowError):
        native_specialize_impl(None, value, False, True, True)
    with pytest.raises(OverflowError):
        fill[(1,)](np.zeros(4, "f4"), 1.0, value)


@pytest.mark.parametrize("value", ["text", [1], {}, np.complex64(3), object()], ids=lambda value: type(value).__name__)
def test_what_has_no_type(value: Any) -> None:
    name = type(value).__name__
    with pytest.raises(TypeError, match=rf"failed to specialize argument of type.*{name}"):
        fill[(1,)](np.zeros(4, "f4"), 1.0, value)


@tilework.jit
def inner(x):
    return x + 1


def test_divisibility_is_an_attribute_of_the_argument() -> None:
    base = np.zeros(65, "f4")
    aligned = base if base.ctypes.data % 16 == 0 else base[(16 - base.ctypes.data % 16) // 4 :]
    source = fill.warmup(aligned, 1.5, 32, grid=(1,)).asm["source"]
    assert source.count("tt.divisibility = 16") == 2
    source = fill.warmup(aligned[1:], 1.5, 33, grid=(1,)).asm["source"]
    assert "tt.divisibility" not in source


def test_constants_that_are_functions_and_classes() -> None:
    @tilework.jit
    def apply(p, f: tl.constexpr, T: tl.constexpr):
        tl.store(p, f(tl.load(p)).to(T))

    out = np.zeros(1, "f4")
    apply[(1,)](out, inner, tl.float32)
    assert out[0] == 1


def test_targets_are_values() -> None:
    assert fill.create_binder()[2] == GPUTarget("cpu", "host", 1)


def test_small_arrays() -> None:
    """All elements of a small array are at or after its pointer, and less than 2 GiB from it."""
    whole = np.zeros((4, 16), np.float32)
    assert specialize_small(whole)[1] == specialize(whole)[1] + "S" and is_small(whole.reshape(-1)[:5])
    assert not is_small(whole[1:]) and not is_small(whole[::-1]) and is_small(tilework.reinterpret(whole, tl.int32))
    assert not is_small(np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (2**31,), (0,)))
    types, keys = specialize_small((whole, 3, whole[1:]))
    assert types == ("*fp32", "i32", "*fp32") and [key.strip("D") for key in keys] == ["S", "", ""]
    assert parse_attr("DS") == [["tt.divisibility", 16], ["tt.pointer_range", 32]]


class Storage:
    """The storage of a tensor."""

    def __init__(self, array: Any) -> None:
        self.data_ptr = lambda: array.ctypes.data
        self.size = self.nbytes = lambda: array.nbytes


class Window:
    """A library's wrapper of a tensor: it begins at any element, with any strides, and has no `storage_offset`."""

    def __init__(self, array: Any, first: int) -> None:
        self.array, self.first, self.dtype, self.shape = array, first, array.dtype, array.shape

    def data_ptr(self) -> int:
        return self.array.ctypes.data + self.first * self.array.itemsize

    def untyped_storage(self) -> Storage:
        return Storage(self.array)

    def element_size(self) -> int:
        return self.array.itemsize

    def stride(self) -> tuple[int, ...]:
        return (1 if self.first == 0 else -1,)


class WindowOfBase(Window):
    """A `Window` with its array in `base`, like tilework's own wrappers."""

    untyped_storage: Any = property()  # which it does not have

    @property
    def base(self) -> Any:
        return self.array


class TypedPointer:
    """The minimal object that a kernel accepts as an array; it is its own storage."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype = array, array.dtype

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def untyped_storage(self) -> "TypedPointer":
        return self


@tilework.jit
def read_back(x, out, STEP: tl.constexpr):
    at = tl.arange(0, 16)
    tl.store(out + at, tl.load(x + at * STEP))


def test_a_wrapper_that_begins_elsewhere_is_not_small() -> None:
    """A small array may use AMD's buffer instructions, whose loads are zero at negative offsets."""
    x = np.arange(16, dtype=np.float32)
    assert is_small(Window(x, 0)) and not is_small(Window(x, 15)) and not is_small(TypedPointer(x))
    assert is_small(WindowOfBase(x, 0)) and not is_small(WindowOfBase(x, 15))


@pytest.mark.parametrize("device", ["native", "evaluator"])
def test_wrappers_are_read_from_where_they_begin(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_DEVICE", device)
    x, out = np.arange(20, dtype=np.float32), np.zeros(16, np.float32)
    read_back[(1,)](WindowOfBase(x, 3), out, 1)
    assert out.tolist() == x[3:19].tolist()
    read_back[(1,)](Window(x, 19), out, -1)
    assert out.tolist() == x[:3:-1].tolist()
