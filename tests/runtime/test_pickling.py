"""Kernels on their way to other processes: by name, by state without their Python function, and compiled."""

import multiprocessing
import pickle
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.compiler import ASTSource, CompiledKernel, compile
from tilework.targets.base import GPUTarget

CUDA = GPUTarget("cuda", 90, 32)
SCALE = tl.constexpr(3)


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Any:
    with knobs.cache.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield


@tilework.jit
def scaled(x, out, n, BLOCK: tl.constexpr = 8):  # pyright: ignore[reportArgumentType]
    """Doc."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * SCALE, mask=i < n)


class Constant:
    def __init__(self, value: str) -> None:
        self.value = value

    def __call__(self, _: Any) -> str:
        return self.value


MEMBERS = ("fn", "__globals__", "used_global_vals", "repr", "_hash_lock")


def strip(function: Any) -> list[Any]:
    """Do what torch does before it pickles a kernel, with public and private attributes."""
    old = [getattr(function, name) for name in MEMBERS]
    for name, value in zip(MEMBERS, (None, None, None, Constant(function.repr(function)), None), strict=True):
        setattr(function, name, value)
    return old


def restore(function: Any, old: list[Any]) -> None:
    for name, value in zip(MEMBERS, old, strict=True):
        setattr(function, name, value)


def test_by_name() -> None:
    assert pickle.loads(pickle.dumps(scaled)) is scaled


def test_without_its_python_function() -> None:
    key, symbol = scaled.cache_key, scaled.repr(scaled)
    old = strip(scaled)
    try:
        data = pickle.dumps(scaled)
    finally:
        restore(scaled, old)
    made = pickle.loads(data)
    assert made is not scaled and made.fn is None and made.__globals__ is None
    assert made.repr(made) == symbol and made.cache_key == key
    assert made.src == scaled.src and made.def_line == scaled.def_line and made.where == scaled.where
    assert made.arg_names == scaled.arg_names and made.constexprs == scaled.constexprs == [3]
    assert made.__name__ == "scaled" and made.__doc__ == "Doc." and str(made.signature) == str(scaled.signature)
    assert [param.annotation for param in made.params] == [param.annotation for param in scaled.params]
    assert b"def restore" not in data  # nor any other line of the file
    assert strip(made)[:3] == [None, None, None]  # torch pickles what came from a worker once more, for its cache
    assert pickle.loads(pickle.dumps(made)).src == scaled.src
    made._hash_lock = threading.RLock()
    restore(made, [scaled.fn, scaled.__globals__, scaled.used_global_vals, scaled.repr, threading.RLock()])
    check_launch(made)


def test_restored_functions_are_as_before() -> None:
    key = scaled.cache_key
    restore(scaled, strip(scaled))
    assert scaled.cache_key == key and [name for name, _ in scaled.used_global_vals] == ["SCALE"]
    check_launch(scaled)
    scaled._unsafe_update_src(scaled.src)
    check_launch(scaled)


def check_launch(kernel: Any) -> None:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    kernel[(1,)](x, out, 8)
    np.testing.assert_array_equal(out, x * 3)


def launch_in_worker(kernel: CompiledKernel) -> list[float]:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    kernel[(1, 1, 1)](x, out, 8, 8)
    return out.tolist()


def test_compiled_kernels() -> None:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    kernel = scaled[(1,)](x, out, 8)
    made = pickle.loads(pickle.dumps(kernel))
    assert (
        made.module is None and made.function is None and made.metadata == kernel.metadata and made.hash == kernel.hash
    )
    assert dict(made.asm) == dict(kernel.asm) and made.src.fn is scaled
    assert launch_in_worker(made) == (x * 3).tolist()
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(launch_in_worker, kernel).result(60) == (x * 3).tolist()


def test_the_members_of_compiled_kernels() -> None:
    """As torch takes them: everything but the metadata, which it names itself, and what a device has loaded."""
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    for kernel in (
        scaled[(1,)](x, out, 8),
        compile(ASTSource(scaled, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 8}), CUDA),
    ):
        state = {
            **kernel.__dict__,
            "metadata": kernel.metadata._asdict(),
            "module": None,
            "function": None,
            "run": None,
        }
        old = strip(scaled)
        try:
            data = pickle.dumps(state)
        finally:
            restore(scaled, old)
        made = CompiledKernel.__new__(CompiledKernel)
        found = pickle.loads(data)
        made.__dict__.update({**found, "metadata": type(kernel.metadata)(**found["metadata"])})
        assert made.src.fn.fn is None and made.src.fn.arg_names == scaled.arg_names
        if kernel.metadata.target.backend == "cpu":
            assert launch_in_worker(made) == (x * 3).tolist()
        else:
            assert made.asm["ptx"] == kernel.asm["ptx"]
