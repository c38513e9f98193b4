"""Kernels whose source a program writes, as kernel libraries do: a template gets globals, a signature and a text.

A ragged product of matrices is specialised with epilogues this way, and fed by a top-k that also writes a bit matrix.
"""

import copy
import inspect
import pickle
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulated_cuda import emulated_cuda
from tests.runtime.emulated_hip import emulated_hip
from tilework.errors import CompilationError
from tilework.knobs import cuda_tools
from tilework.oracles.interpreter import InterpretedFunction
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.hip_driver import DeviceArray as HipArray

pytestmark = pytest.mark.usefixtures("fresh_cache")

BLOCK = tl.constexpr(16)


def define(text: str, replaced: Any = None, kind: type = tilework.JITFunction, **symbols: Any) -> Any:
    """Return the kernel that a text defines; `replaced` moves it to another line or changes its code object."""

    def template() -> None:
        pass

    scope = {**globals(), **symbols}
    text = textwrap.dedent(text)
    exec(compile(text, "<generated>", "exec"), scope)
    written = scope[text[4:].split("(")[0]]
    code = template.__code__.replace(**replaced) if isinstance(replaced, dict) else template.__code__
    function = types.FunctionType(code, scope)
    function.__name__, function.__module__ = written.__name__, __name__
    function.__signature__ = inspect.signature(written)  # pyright: ignore[reportFunctionMemberAccess]
    kernel = kind(function)
    kernel._unsafe_update_src(text)
    if isinstance(replaced, int):
        kernel.starting_line_number = replaced
    return kernel


PRODUCT = """
def product_NAME(x, w, out, starts, order, K: tl.constexpr, N: tl.constexpr, stride, PARAMETERS):
    expert, tile = tl.program_id(0), tl.program_id(1)
    first, end = tl.load(starts + expert), tl.load(starts + expert + 1)
    rows = first + tile * BLOCK + tl.arange(0, BLOCK)
    if first + tile * BLOCK < end:
        inside = rows < end
        k, n = tl.arange(0, K), tl.arange(0, N)
        token = tl.load(order + rows, mask=inside, other=0)
        a = tl.load(x + token[:, None] * K + k[None, :], mask=inside[:, None], other=0.0)
        b = tl.load(w + expert * K * N + k[:, None] * N + n[None, :])
        y = EPILOGUE
        column = tl.arange(0, y.shape[1])
        tl.store(out + rows[:, None] * stride + column[None, :], y, mask=inside[:, None])
"""


@tilework.jit
def swiglu(y, alpha):
    gate, linear = tl.split(tl.reshape(y, (y.shape[0], y.shape[1] // 2, 2)))
    return gate / (1 + tl.exp(-alpha * gate)) * (linear + 1)


def product(epilogue: str, *parameters: str, **settings: Any) -> Any:
    name = "plain" if not parameters else "swiglu"
    text = PRODUCT.replace("NAME", name).replace("EPILOGUE", epilogue).replace("PARAMETERS", ", ".join(parameters))
    return define(text.strip() + "\n", **settings)


DOT = 'tl.dot(a, b, input_precision="ieee")'


def launched(kernel: Any, of: Any, read: Any, *more: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the kernel's results for ragged groups of rows, and for float64."""
    random = np.random.default_rng(0)
    sizes = [5, 0, 17, 2]
    starts = np.cumsum([0, *sizes]).astype(np.int32)
    order = random.permutation(starts[-1]).astype(np.int32)
    x, w = (random.standard_normal(shape).astype(np.float32) for shape in ((starts[-1], 32), (4, 32, 16)))
    parts = [x[order[a:b]].astype(float) @ m for a, b, m in zip(starts[:-1], starts[1:], w, strict=True)]
    wanted = np.concatenate(parts)
    if more:
        gate, linear = wanted[:, ::2], wanted[:, 1::2]
        wanted = gate / (1 + np.exp(-more[0] * gate)) * (linear + 1)
    out = of(np.zeros(wanted.shape, np.float32))
    arrays = [of(array) for array in (x, w)], [of(array) for array in (starts, order)]
    kernel[4, 2](*arrays[0], out, *arrays[1], 32, 16, wanted.shape[1], *more)
    return read(out), wanted


@pytest.fixture(params=["native", "interpreter", "cuda", "hip"])
def device(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[type, Any, Any]]:
    """(the class of kernels, what makes an array of the device, what reads one)."""
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: the driver gets PTX
    if request.param in ("cuda", "hip"):
        with emulated_cuda() if request.param == "cuda" else emulated_hip():
            yield tilework.JITFunction, (DeviceArray if request.param == "cuda" else HipArray).of, lambda a: a.numpy()
        return
    yield InterpretedFunction if request.param == "interpreter" else tilework.JITFunction, np.copy, np.asarray


def test_ragged_products_with_epilogues(device: Any) -> None:
    kind, of, read = device
    np.testing.assert_allclose(*launched(product(DOT, kind=kind), of, read), rtol=1e-4, atol=1e-5)
    epilogue = product(f"act({DOT}, alpha)", "alpha", kind=kind, act=swiglu)
    np.testing.assert_allclose(*launched(epilogue, of, read, 1.25), rtol=1e-4, atol=1e-5)


MOVED = {
    "as it is": None,
    "another function": 3,
    "no function": 9,
    "end of the file": 10**6,
    "a template elsewhere": {"co_firstlineno": 9},
    "another file": {"co_filename": np.__file__},
}


@pytest.mark.parametrize("replaced", MOVED.values(), ids=MOVED)
def test_wherever_the_text_is_said_to_be(replaced: Any) -> None:
    for kind in (tilework.JITFunction, InterpretedFunction):
        kernel = product(DOT, replaced=replaced, kind=kind)
        if isinstance(replaced, int):
            assert kernel.starting_line_number == replaced and kernel.def_line >= replaced
        for _ in range(2):
            np.testing.assert_allclose(*launched(kernel, np.copy, np.asarray), rtol=1e-4, atol=1e-5)
        again = copy.copy(kernel)
        np.testing.assert_allclose(*launched(again, np.copy, np.asarray), rtol=1e-4, atol=1e-5)


def test_keys_follow_the_text_and_its_line() -> None:
    kernel = product(DOT)
    keys = {kernel.cache_key}
    kernel.starting_line_number += 7
    keys.add(kernel.cache_key)
    assert kernel.where.first_line == kernel.def_line
    kernel._unsafe_update_src(kernel.src.replace("rows[:, None]", "1 * rows[:, None]"))
    keys.add(kernel.cache_key)
    assert len(keys) == 3
    text = kernel.warmup(*[np.zeros(4, np.float32)] * 3, *[np.zeros(4, np.int32)] * 2, 32, 16, 16, grid=(1,)).asm[
        "ttir"
    ]
    assert f'"{__file__}":{kernel.def_line + 1}' in text
    key, function, scope = kernel.cache_key, kernel.fn, kernel.__globals__
    kernel.fn = kernel.__globals__ = None  # as torch sends kernels
    made = pickle.loads(pickle.dumps(kernel))
    kernel.fn, kernel.__globals__ = function, scope
    assert (made.src, made.def_line, made.cache_key) == (kernel.src, kernel.def_line, key)


def test_mistakes_are_shown_in_the_new_text() -> None:
    kernel = define("def broken(x):\n    y = tl.load(x)\n    tl.store(x, y + unknown_name)\n", 3)
    with pytest.raises(CompilationError) as caught:
        kernel[(1,)](np.zeros(1))
    assert "tl.store(x, y + unknown_name)" in str(caught.value) and "unknown_name is not defined" in str(caught.value)
    kernel._unsafe_update_src("x = 1\n")
    with pytest.raises(ValueError, match="must be one `def`"):
        kernel[(1,)](np.zeros(1))


@tilework.jit
def top_k(x, values, indices, bits, N: tl.constexpr, K: tl.constexpr):
    """Store the K largest of a row in the order of their columns, and their columns as a bit matrix."""
    row, n, k = tl.program_id(0), tl.arange(0, N), tl.arange(0, K)
    raw = tl.load(x + row * N + n).to(tl.uint32, bitcast=True)
    key = tl.where(raw >> 31 != 0, ~raw, raw | 0x80000000)
    packed = tl.topk(key.to(tl.uint64) << 16 | (N - 1 - n).to(tl.uint64), K)
    column = tl.sort((N - 1 - (packed & 0xFFFF)).to(tl.int32))
    tl.store(indices + row * K + k, column)
    tl.store(values + row * K + k, tl.load(x + row * N + column))
    word = tl.arange(0, N // 32)
    chosen = tl.where(column[:, None] // 32 == word[None, :], 1 << (column[:, None] % 32), 0)
    tl.store(bits + row * (N // 32) + word, tl.reduce_or(chosen, 0))


def test_top_k_with_a_bit_matrix(device: Any) -> None:
    kind, of, read = device
    rows, N, K = 5, 64, 4
    x = np.random.default_rng(1).standard_normal((rows, N)).astype(np.float32)
    wanted = np.sort(np.argsort(-x, axis=1)[:, :K], axis=1)
    kernel = kind(top_k.fn)
    values, indices, bits = (of(np.zeros((rows, c), t)) for c, t in ((K, "f4"), (K, "i4"), (N // 32, "i4")))
    given = of(x)
    kernel[(rows,)](given, values, indices, bits, N, K)
    assert (read(indices) == wanted).all() and (read(values) == np.take_along_axis(x, wanted, 1)).all()
    mask = np.zeros((rows, N), bool)
    np.put_along_axis(mask, wanted, True, 1)
    assert (read(bits).view("u4") == np.packbits(mask, axis=1, bitorder="little").view("<u4")).all()
