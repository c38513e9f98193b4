"""Host tensor descriptors: every rule, on NumPy and torch bases, and in kernels."""

# pyright: reportMissingParameterType=false

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import AMPERE, HOPPER
from tilework import knobs
from tilework.compiler import ASTSource, lower
from tilework.targets.base import GPUTarget
from tilework.tools.tensor_descriptor import TensorDescriptor

pytestmark = pytest.mark.usefixtures("fresh_cache")


def aligned(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """An array at an address that is a multiple of 64."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


def test_from_tensor_takes_sizes_and_strides_in_elements() -> None:
    desc = TensorDescriptor.from_tensor(aligned((4, 8, 16), np.float16), [1, 2, 16])
    assert (list(desc.shape), list(desc.strides)) == ([4, 8, 16], [128, 16, 1])
    assert (list(desc.block_shape), desc.padding) == ([1, 2, 16], "zero")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"strides": [8]}, "rank mismatch"),
        ({"block_shape": [4]}, "rank mismatch"),
        ({"shape": [], "strides": [], "block_shape": []}, "rank must not be zero"),
        ({"shape": [1] * 6, "strides": [4] * 5 + [1], "block_shape": [1] * 6}, "^rank cannot be more than 5, got 6$"),
        ({"base": aligned((65,))[1:]}, "base must be 16-byte aligned"),
        ({"base": 64}, "an array or a tensor"),
        ({"block_shape": [0, 4]}, "Shape element 0 must be positive"),
        ({"block_shape": [1024, 2048]}, "maximum tensor numel"),
        ({"block_shape": [2.0, 4]}, "Shape element 0"),
        ({"strides": [6, 1]}, "strides must be 16-byte aligned.* 24 bytes"),
        ({"strides": [-8, 1]}, "at least 0 and less than 2.40 bytes, stride 0 is -32 bytes"),
        ({"strides": [1 << 38, 1]}, "less than 2.40 bytes, stride 0 is 1099511627776 bytes"),
        ({"shape": [1 << 31, 8]}, "fit in int32"),
        ({"strides": [8, 2]}, "Last dimension must be contiguous"),
        ({"shape": [0, 8]}, r"^shape must be positive, got \[0, 8\]$"),
        ({"padding": "one"}, "Illegal value for padding.* zero, nan"),
        (
            {"padding": "nan", "base": aligned((8, 8), np.int32)},
            "Padding option `nan` is only supported for floating point tensors",
        ),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"base": aligned((8, 8)), "shape": [8, 8], "strides": [8, 1], "block_shape": [4, 4]}
    TensorDescriptor(**good)
    with pytest.raises(AssertionError, match=message):
        TensorDescriptor(**good | changes)


def test_an_illegal_block_shape_is_a_value_error_too() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        TensorDescriptor.from_tensor(aligned((8, 8)), [-1, 4])
    TensorDescriptor.from_tensor(aligned((8, 8)), [5, 4])
    knobs.language.strict_triton = True
    with pytest.raises(ValueError, match="Shape element 0 must be a power of 2"):
        TensorDescriptor.from_tensor(aligned((8, 8)), [5, 4])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_nan_padding_of_every_floating_type(dtype: Any) -> None:
    assert TensorDescriptor.from_tensor(aligned((16, 16), dtype), [16, 16], padding="nan").padding == "nan"


def test_rank_five_and_one() -> None:
    TensorDescriptor.from_tensor(aligned((2, 2, 2, 2, 16)), [1, 1, 1, 1, 16])
    TensorDescriptor.from_tensor(aligned((64,)), [16])


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    desc = TensorDescriptor.from_tensor(torch.zeros((8, 16), dtype=torch.bfloat16), [4, 8], padding="nan")
    assert (list(desc.shape), list(desc.strides)) == ([8, 16], [16, 1])
    with pytest.raises(AssertionError, match="contiguous"):
        TensorDescriptor.from_tensor(torch.zeros((16, 16)).T, [4, 8])
    with pytest.raises(AssertionError, match="floating point"):
        TensorDescriptor.from_tensor(torch.zeros((16, 16), dtype=torch.int8), [4, 16], padding="nan")


def test_shape_and_strides_in_the_kernel() -> None:
    from tilework.tools.tensor_descriptor import TensorDescriptor

    @tilework.jit
    def sizes(descriptor, out):
        tl.static_assert(descriptor.shape[0].dtype == tl.int32)
        tl.static_assert(descriptor.strides[0].dtype == tl.int64)
        tl.store(out, descriptor.shape[0])
        tl.store(out + 1, descriptor.shape[1])
        tl.store(out + 2, descriptor.strides[0])
        tl.store(out + 3, descriptor.strides[1])

    base, out = np.zeros((6, 32), "f4"), np.zeros(4, "i8")
    sizes[(1,)](TensorDescriptor.from_tensor(base, [2, 16]), out)
    assert out.tolist() == [6, 32, 32, 1]


@tilework.jit
def copy_block(source, target):
    target.store([0, 0], source.load([0, 0]))


@pytest.mark.parametrize("target", [AMPERE, HOPPER], ids=["without TMA", "with TMA"])
def test_descriptors_compile_with_and_without_tma(target: GPUTarget) -> None:
    types = dict.fromkeys(("source", "target"), "tensordesc<fp16[16, 64]>")
    text = lower(ASTSource(copy_block, types), target, ["ttgir"])["ttgir"]
    assert ("ttng.async_tma_copy" in text) is (target is HOPPER)
    assert ("tt.load" in text) is (target is AMPERE)


def test_descriptors_run_here() -> None:
    base, out = np.arange(1024, dtype="f2").reshape(16, 64), np.zeros((16, 64), "f2")
    copy_block[(1,)](TensorDescriptor.from_tensor(base, [16, 64]), TensorDescriptor.from_tensor(out, [16, 64]))
    assert (out == base).all()
