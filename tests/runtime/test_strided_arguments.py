"""Arrays with strides that their kernel does not know: found by the strides alone, noted by the sanitizer and by
`explain`."""

import warnings
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.errors import SanitizerWarning
from tilework.runtime.devices.strided_arguments import strided_arguments
from tilework.tools.tensor_descriptor import TensorDescriptor

X = np.zeros((8, 16), np.float32)


@tilework.jit
def double(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@tilework.jit
def double_rows(x, out, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    tl.store(out + i * BLOCK + tl.arange(0, BLOCK), tl.load(x + i * stride + tl.arange(0, BLOCK)) * 2)


def found(**arguments: Any) -> list[str]:
    return [one.name for one in strided_arguments(arguments.items())]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"x": X, "n": 128}, []),
        ({"x": X[:, ::2], "out": X, "n": 64}, ["x"]),  # 16 and 2
        ({"x": X[:, ::2], "out": X, "stride": 16}, []),
        ({"x": X[:, ::2], "out": X, "stride": tl.constexpr(16)}, []),
        ({"x": X[:, ::2], "out": X, "strides": (16, 2)}, []),
        ({"x": X[:, :4], "out": X, "n": 32}, ["x"]),
        ({"x": X[:4], "n": 64}, []),  # the first rows have no gaps
        ({"x": X[::-1], "n": 128}, ["x"]),
        ({"x": X.T, "out": X, "n": 128}, ["x"]),
        ({"x": X.T, "out": X.T, "n": 128}, []),  # ordered alike: right for single elements
        ({"x": X.T, "out": X.T[:, ::2], "n": 64}, ["x", "out"]),
        ({"x": np.broadcast_to(X[0], (4, 16)), "n": 64}, ["x"]),
        ({"x": np.broadcast_to(X[0], (4, 16)), "stride": 0}, []),
        ({"x": X[:, :1], "n": np.int64(8)}, ["x"]),
        ({"x": X[:1, :4], "n": 4}, []),  # one row
        ({"x": X[:0, ::2], "n": 0}, []),
        ({"pair": (X[:, ::2], X), "n": 64}, ["pair[0]"]),
        ({"x": TensorDescriptor(X[:, :8], [8, 8], [16, 1], [4, 8]), "out": X, "n": 64}, []),
        ({"x": X.ctypes.data, "n": 64, "factor": 2.5, "none": None, "kernel": double}, []),
    ],
)
def test_what_is_found(arguments: dict[str, Any], names: list[str]) -> None:
    assert found(**arguments) == names


def test_tensors_are_looked_at_alike() -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(8, 16)
    assert found(x=x.t(), out=x, n=128) == ["x"] and found(x=x.t(), out=x, stride=16) == []
    assert found(x=x[:, ::2], out=x, n=64) == ["x"] and found(x=x, n=64) == []
    images = torch.zeros(2, 3, 4, 4).to(memory_format=torch.channels_last)
    assert found(x=images, out=torch.empty_like(images), n=96) == []


@pytest.mark.parametrize("sanitize", [True, "strict", "race"])
def test_the_sanitizer_notes_them(sanitize: Any) -> None:
    x, out = np.ones((4, 16), np.float32), np.zeros((4, 8), np.float32)
    with pytest.warns(SanitizerWarning) as seen:
        double[(1,)](x[:, ::2], out, 32, BLOCK=32, sanitize=sanitize)
    (text,) = [str(one.message) for one in seen]
    line = double.def_line
    assert f"test_strided_arguments.py:{line}:1: note: argument 'x' is not contiguous" in text
    assert "its shape is (4, 8), its strides are (16, 2) elements, and no argument is one of them" in text
    assert "np.ascontiguousarray(x)" in text and (out == 2).all()


def test_the_sanitizer_notes_nothing_where_a_stride_is_passed() -> None:
    x, out = np.ones((4, 16), np.float32), np.zeros((4, 8), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double_rows[(4,)](x[:, :8], out, 16, BLOCK=8, sanitize=True)
        double[(1,)](np.ascontiguousarray(x[:, ::2]), out, 32, BLOCK=32, sanitize=True)
    assert (out == 2).all()


def test_explain_notes_them() -> None:
    x, out = np.ones((4, 16), np.float32), np.zeros((4, 8), np.float32)
    shown = str(double.explain(x[:, ::2], out, 32, BLOCK=32, why="slow"))
    assert f"test_strided_arguments.py:{double.def_line}:1: note: argument 'x' is not contiguous" in shown
    assert "not contiguous" not in str(double.explain(out, out, 32, BLOCK=32, why="slow"))
