"""Compile a function of blocks to TTIR and run it on the evaluator, so that tests can say it in NumPy.

@jit
def total(x):
    return tl.sum(x, 0)

assert apply(total, np.arange(8.0, dtype=np.float32), "fp32") == 28
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework.language as tl
from tilework import CompilationError, jit
from tilework.frontend.generator import compile_to_ttir
from tilework.oracles.evaluator import evaluate
from tilework.runtime.compile.sources import frontend_options
from tilework.targets.base import GPUTarget

OPTIONS = frontend_options(GPUTarget("cuda", 90, 32), {})

NUMPY = {
    **{"u1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8},
    **{"u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "fp16": np.float16, "bf16": ml_dtypes.bfloat16},
    **{"fp32": np.float32, "fp64": np.float64},
}
CODE = {np.dtype(numpy): code for code, numpy in NUMPY.items()}


@jit
def apply_kernel(
    x: Any, out: Any, FN: tl.constexpr, SHAPE: tl.constexpr, NUMEL: tl.constexpr, OUT: tl.constexpr, DTYPE: tl.constexpr
) -> None:
    values = tl.reshape(tl.load(x + tl.arange(0, NUMEL)), SHAPE)
    result = FN(values)
    tl.static_assert(result.dtype == DTYPE, "another dtype was expected")
    tl.store(out + tl.arange(0, OUT), tl.reshape(result, [OUT]))


def apply(fn: Any, x: np.ndarray[Any, Any], dtype: str, shape: tuple[int, ...] = ()) -> np.ndarray[Any, Any]:
    """``fn(x)``, whose result must have the dtype of that signature code; `shape` is the result's."""
    out = np.zeros(shape, NUMPY[dtype])
    constants = {
        **{"FN": fn, "SHAPE": x.shape, "NUMEL": x.size, "OUT": out.size},
        "DTYPE": tl.str_to_ty(dtype),
    }
    signature = {"x": f"*{CODE[x.dtype]}", "out": f"*{dtype}"}
    module = compile_to_ttir(apply_kernel, signature, constants, {}, OPTIONS)
    evaluate(module, "apply_kernel", [np.ascontiguousarray(x), out])
    return out


def run(fn: Any, signature: dict[str, str], constants: dict[str, Any], args: list[Any]) -> None:
    """Run one program of a kernel."""
    evaluate(compile_to_ttir(fn, signature, constants, {}, OPTIONS), fn.__name__, args)


def bits(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bit patterns, so that NaN equals NaN and 0 differs from -0."""
    return x.view(np.dtype(f"u{x.dtype.itemsize}"))


def sample(dtype: str, shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    """Varied values with repetitions; small floats, the whole range of integers."""
    random = np.random.default_rng(seed)
    numpy = np.dtype(NUMPY[dtype])
    if numpy.kind in "iu":
        limits = np.iinfo(numpy)
        return random.integers(limits.min, limits.max, shape, numpy, endpoint=True)
    if numpy.kind == "b":
        return random.integers(0, 2, shape).astype(numpy)
    return (random.integers(-40, 40, shape) / 8).astype(numpy)


@contextmanager
def refused(text: str) -> Iterator[None]:
    """The block must fail to compile, with `text` in the message of the innermost function."""
    with pytest.raises(CompilationError) as caught:
        yield
    error: BaseException | None = caught.value
    messages: list[str] = []
    while error is not None:
        messages.append(str(error))
        error = error.__cause__
    assert text in messages[-1], messages
