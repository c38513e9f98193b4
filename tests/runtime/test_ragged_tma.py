"""Pieces of unequal length through descriptors: on the CPU, in the interpreter, and as TMA copies in the emulator."""

from collections.abc import Callable
from importlib.util import find_spec, module_from_spec
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulated_cuda import emulated_cuda
from tilework import knobs
from tilework.knobs import cuda_tools
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.triton.ragged_tma import atomic_add_ragged, create_ragged_descriptor, load_ragged, store_ragged


def move(source, target, offset, size, to, row, ADDS: tl.constexpr):
    block = load_ragged(source, offset, size, [row, 16])
    if ADDS:
        atomic_add_ragged(target, to, size, [row, 0], block)
    else:
        store_ragged(target, to, size, [row, 0], block)


def move_middle(source, target, offset, size, to, row, DIM: tl.constexpr):
    block = load_ragged(source, offset, size, [1, row, 16], DIM)
    store_ragged(target, to, size, [0, row, 0], block, DIM)


Launch = Callable[..., None]


def on_cpu(fn: Any, source: np.ndarray, target: np.ndarray, describe: Any, *args: Any) -> None:
    tilework.jit(fn)[(1,)](describe(source), describe(target), *args)


def interpreted(fn: Any, source: np.ndarray, target: np.ndarray, describe: Any, *args: Any) -> None:
    tilework.jit(fn, interpret=True)[(1,)](describe(source), describe(target), *args)


def emulated(fn: Any, source: np.ndarray, target: np.ndarray, describe: Any, *args: Any) -> None:
    with pytest.MonkeyPatch.context() as patch, knobs.compilation.scope(), emulated_cuda():
        patch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: the driver gets PTX
        knobs.compilation.always_compile = True
        there = [DeviceArray.of(array) for array in (source, target)]
        kernel = tilework.jit(fn)[(1,)](*map(describe, there), *args)
        assert "cp.async.bulk.tensor.5d" in kernel.asm["ptx"] or "cp.async.bulk.tensor.4d" in kernel.asm["ptx"]
        target[...] = there[1].numpy()


@pytest.mark.parametrize("launch", [on_cpu, interpreted, emulated], ids=lambda launch: launch.__name__)
@pytest.mark.parametrize(
    ("offset", "size", "to", "row", "adds"), [(3, 7, 10, 0, False), (3, 20, 10, 8, False), (5, 20, 2, 16, True)]
)
def test_a_piece_ends_where_it_ends(launch: Launch, offset: int, size: int, to: int, row: int, adds: bool) -> None:
    source = np.random.default_rng(0).integers(1, 100, (40, 48)).astype(np.float16)
    target = np.ones((40, 32), np.float16)
    expected, rows = target.copy(), min(16, size - row)
    piece = source[offset + row : offset + row + rows, 16:32]
    index = (slice(to + row, to + row + rows), slice(0, 16))
    expected[index] = expected[index] + piece if adds else piece
    launch(move, source, target, lambda array: create_ragged_descriptor(array, [16, 16]), offset, size, to, row, adds)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("launch", [on_cpu, interpreted, emulated], ids=lambda launch: launch.__name__)
def test_the_ragged_dimension_in_the_middle(launch: Launch) -> None:
    source = np.random.default_rng(0).integers(1, 100, (4, 40, 48)).astype(np.float32)
    target = np.ones((3, 40, 32), np.float32)
    expected = target.copy()
    expected[0, 5:12, 0:16] = source[1, 3:10, 16:32]
    launch(move_middle, source, target, lambda array: create_ragged_descriptor(array, [1, 16, 16], -2), 3, 7, 5, 0, 1)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize(
    ("shape", "block", "dim", "message"),
    [
        ((8, 16), [4, 16], 1, "last dimension cannot be ragged"),
        ((2, 2, 8, 16), [1, 1, 4, 16], 0, "at most 3 dimensions"),
        ((8, 16), [4, 4, 16], 0, "same length"),
    ],
)
def test_what_cannot_be_ragged(shape: Any, block: Any, dim: int, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        create_ragged_descriptor(np.zeros(shape, np.float16), block, dim)


def test_only_ragged_descriptors() -> None:
    from tilework.tools.tensor_descriptor import TensorDescriptor

    array = np.zeros((32, 32), np.float16)
    describe = lambda array: TensorDescriptor.from_tensor(array, [16, 16])  # noqa: E731
    with pytest.raises(tilework.CompilationError, match="read-write ragged descriptor"):
        on_cpu(move, array, array, describe, 0, 4, 0, 0, False)


NAMES = {
    "3.6.0": ["batch_offset", "batch_size"],
    "3.7.1": ["slice_off", "slice_size"],
    "3.8.0": ["slice_off", "slice_size"],
}


@pytest.mark.parametrize("version", NAMES)
def test_the_parameters_are_called_as_in_the_version(version: str) -> None:
    knobs.language.triton_version = version
    spec = find_spec("tilework.triton.ragged_tma")
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(module := module_from_spec(spec))
    offset, size = NAMES[version]
    assert module.to_ragged_indices.arg_names == [offset, size, "row"]
    assert module.load_ragged.arg_names == ["TMA", offset, size, "coords", "ragged_dim"]
    for function in (module.store_ragged, module.atomic_add_ragged):
        assert function.arg_names == ["TMA", offset, size, "coords", "data", "ragged_dim"]
    load, store = module.load_ragged, module.store_ragged

    @tilework.jit
    def by_old_names(source, target):
        block = load(source, batch_offset=3, batch_size=5, coords=[0, 0])
        store(target, batch_offset=2, batch_size=5, coords=[0, 0], data=block)

    @tilework.jit
    def by_new_names(source, target):
        block = load(source, slice_off=3, slice_size=5, coords=[0, 0])
        store(target, slice_off=2, slice_size=5, coords=[0, 0], data=block)

    x, y = np.arange(256, dtype="f4").reshape(16, 16), np.zeros((16, 16), "f4")
    kernel = by_old_names if version == "3.6.0" else by_new_names
    kernel[(1,)](*(create_ragged_descriptor(array, [8, 16]) for array in (x, y)))
    assert (y[2:7] == x[3:8]).all() and not y[:2].any() and not y[7:].any()
