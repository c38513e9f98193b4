"""Launching interpreted kernels: grids, arguments, hooks, options, what `@jit` functions offer."""

# Annotations of kernels are types of the language.
# pyright: reportAttributeAccessIssue=false, reportInvalidTypeForm=false, reportUndefinedVariable=false

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.errors import InterpreterError, TritonError
from tilework.language.function import JITFunction, jit
from tilework.oracles.interpreter import InterpretedFunction


def interpreted(fn: Any) -> InterpretedFunction:
    return InterpretedFunction(fn)


@interpreted
def number_programs(out, n):
    """Write the order of the programs."""
    index = (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(2) + tl.program_id(2)
    ticket = tl.atomic_add(out + n, 1)
    tl.store(out + index, ticket)


def test_programs_run_with_the_first_axis_outermost() -> None:
    out = np.zeros(25, np.int32)
    assert number_programs[(2, 3, 4)](out, 24) is None
    assert out[:24].tolist() == list(range(24))


@pytest.mark.parametrize("grid", [(3,), [3], (3, 1, 1), lambda meta: (meta["n"],), (3, 1)])
def test_grids(grid: Any) -> None:
    out = np.zeros(4, np.int32)
    number_programs[grid](out, 3)
    assert out.tolist() == [0, 1, 2, 3]


def test_an_empty_grid_runs_nothing() -> None:
    out = np.zeros(4, np.int32)
    number_programs[(0, 5)](out, n=3)
    assert not out.any()


def test_the_function_looks_like_a_jit_function() -> None:
    assert isinstance(number_programs, JITFunction)
    assert number_programs.__name__ == "number_programs" and number_programs.arg_names == ["out", "n"]
    assert number_programs.__doc__ == "Write the order of the programs."
    assert number_programs.src.startswith("def number_programs(out, n):")
    assert [param.name for param in number_programs.params] == ["out", "n"]
    assert callable(number_programs.rewrite())
    line = number_programs.rewriter.def_file_lineno
    assert "def number_programs" in Path(__file__).read_text().splitlines()[line - 1]


def test_warmup_runs_hooks_and_nothing_else() -> None:
    seen: list[Any] = []
    kernel = interpreted(number_programs.fn)
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append((len(args), kwargs)))
    out = np.zeros(4, np.int32)
    assert kernel.warmup(out, 3, grid=(3,)) is None
    assert kernel.run(out, 3, grid=(3,), warmup=True, num_warps=8) is None
    assert not out.any() and seen == [(2, {}), (2, {"num_warps": 8})]
    kernel.run(out, grid=(3,), n=3)
    assert out[3] == 3 and len(seen) == 3


def test_unknown_and_missing_arguments() -> None:
    out = np.zeros(4, np.int32)
    with pytest.raises(KeyError, match="nothing"):
        number_programs[(1,)](out, 3, nothing=1)
    with pytest.raises(TypeError, match="missing a required argument"):
        number_programs[(1,)](out)
    with pytest.raises(AssertionError, match="device"):
        number_programs[(1,)](out, 3, device=0)
    number_programs[(1,)](out, 3, num_warps=2, num_stages=4, num_ctas=1, debug=True)


def test_a_call_without_a_grid() -> None:
    with pytest.raises(RuntimeError, match="Cannot call"):
        number_programs(np.zeros(1), 1)


@interpreted
def show_types(LOG: tl.constexpr, a, b, c, d, e, f, g, h):
    LOG(a, b, c, d, e, f, g, h)


def types_of(*values: Any) -> list[str]:
    """The kernel's view of its arguments."""
    seen: list[Any] = []

    @tl.core.builtin
    def log(*args: Any, _semantic: Any = None) -> None:
        seen.extend(str(arg.type) if isinstance(arg, tl.tensor) else repr(arg) for arg in args)

    padded = [*values, *[None] * (8 - len(values))]
    show_types[(1,)](log, *padded)
    return seen[: len(values)]


def test_numbers() -> None:
    numbers = 0, 1, -(2**31), 2**31, 2**63, True, 0.5
    assert types_of(*numbers) == ["int32", "1", "int32", "int64", "uint64", "int1", "fp32"]
    assert types_of(None, tl.constexpr(7), number_programs) == ["None", "7", repr(number_programs)]
    with pytest.raises(OverflowError):
        types_of(2**64)
    with pytest.raises(TypeError, match="failed to specialize argument of type: str"):
        types_of("text")


class Point(NamedTuple):
    x: Any
    y: Any


@interpreted
def use_tuple(out, point, nested):
    tl.store(out, point.x * 10 + point.y)
    tl.store(out + 1, nested[0] + nested[1][0])
    x, y = point
    tl.store(nested[1][1], x - y)


def test_tuples() -> None:
    out, other = np.zeros(2, np.int32), np.zeros(1, np.int32)
    use_tuple[(1,)](out, Point(3, 1), (5, (7, other)))
    assert out.tolist() == [31, 12] and other[0] == 2
    use_tuple[(1,)](out, Point(np.int32(3), np.int8(4)), (np.uint16(5), (np.int64(7), other)))
    assert out.tolist() == [34, 12] and other[0] == -1


def fill(out, /, value, n=2, *, N: tl.constexpr = 4, scale):  # pyright: ignore[reportArgumentType]
    i = tl.arange(0, N)
    tl.store(out + i, value * scale, mask=i < n)


@pytest.mark.parametrize("make", [interpreted, tilework.jit])
def test_parameters_by_position_and_by_keyword(make: Any) -> None:
    kernel, out = make(fill), np.zeros(8, np.int32)
    kernel[(1,)](out, 3, scale=2)
    assert out.tolist() == [6, 6, 0, 0, 0, 0, 0, 0]
    kernel[(1,)](out, value=5, scale=np.int32(1), N=8, n=7)
    assert out.tolist() == [5] * 7 + [0]


@interpreted
def annotated(out, a: tl.int64, b: "fp16", c: int, d: tl.uint8, p: "*i8"):  # noqa: F722, F821
    tl.static_assert(a.dtype == tl.int64 and b.dtype == tl.float16 and c.dtype == tl.int32 and d.dtype == tl.uint8)
    tl.store(out, a + c + d)
    tl.store(out + 1, b * 1000)
    tl.store(p, -1)


def test_annotations_force_types() -> None:
    out, raw = np.zeros(2, np.float64), np.zeros(1, np.uint8)
    annotated[(1,)](out, 1, 0.1, 1, 258, raw)
    assert out.tolist() == [4.0, float(np.float16(0.1) * np.float16(1000))] and raw[0] == 255


@interpreted
def double(x, n, BLOCK: tl.constexpr = 16):  # pyright: ignore[reportArgumentType]
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint64, np.float16, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]
)
def test_arrays(dtype: Any) -> None:
    x = np.arange(10).astype(dtype)
    wanted = (2 * x.astype(np.float64)).astype(dtype)
    double[(1,)](x, 10)
    assert x.astype(np.float64).tolist() == wanted.astype(np.float64).tolist()


def test_views_and_aliases() -> None:
    base = np.arange(32, dtype=np.int32)
    double[(1,)](base[16:], 10)
    assert base[16:26].tolist() == [2 * i for i in range(16, 26)] and base[26] == 26


class Tensor:
    """The least that a tensor of another library offers."""

    def __init__(self, array: Any, device: str = "cpu") -> None:
        self.array, self.device = array, device
        self.dtype, self.shape = f"somewhere.{array.dtype}", array.shape

    def data_ptr(self) -> int:
        return self.array.ctypes.data


class Capsule:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_foreign_arrays() -> None:
    x = np.arange(10, dtype=np.float32)
    double[(1,)](Tensor(x), 10)
    double[(1,)](Capsule(x), 10)
    assert x.tolist() == [4.0 * i for i in range(10)]
    with pytest.raises(ValueError, match=r"argument 'x' is on cuda:0"):
        double[(1,)](Tensor(x, "cuda:0"), 10)
    with pytest.raises(ValueError, match=r"argument 'x' is GPU memory"):
        double[(1,)](SimpleNamespace(__cuda_array_interface__={}), 10)
    with pytest.raises(InterpreterError, match=r"element 10 of argument 'x', which has 10 elements"):
        double[(1,)](Tensor(x), 12)


def test_descriptors() -> None:
    base = np.arange(64, dtype=np.float32).reshape(4, 16)
    out = np.zeros((4, 16), np.float32)
    host = SimpleNamespace(base=base, shape=base.shape, strides=(16, 1), block_shape=[2, 8], padding="nan")
    target = SimpleNamespace(base=out, shape=out.shape, strides=(16, 1), block_shape=[2, 8], padding="zero")
    copy_block[(1,)](host, target)
    assert out[:2, :8].tolist() == base[2:, 8:].tolist() and np.isnan(out[3, 8:]).all()


@interpreted
def copy_block(source, target):
    target.store([0, 0], source.load([2, 8]))
    target.store([2, 8], source.load([3, source.shape[1]]))


def test_errors_are_interpreter_errors_with_a_cause() -> None:
    with pytest.raises(InterpreterError) as caught:
        wrong[(1,)](np.zeros(4, np.int32))
    assert isinstance(caught.value, TritonError)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert str(caught.value) == repr(caught.value.__cause__)


@interpreted
def wrong(x):
    n: tl.constexpr = 0  # pyright: ignore[reportAssignmentType]
    tl.store(x, 1 // n)


def test_plain_jit_functions_run_inside_interpreted_ones() -> None:
    x = np.array([5], np.int32)
    caller[(1,)](x)
    assert x[0] == 16


@jit
def helper(a):
    return a * 3


@interpreted
def caller(x):
    tl.store(x, helper(tl.load(x)) + 1)
