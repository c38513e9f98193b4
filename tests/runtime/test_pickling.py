"""Kernels on their way to other processes: by name, by state without their Python function, and compiled."""

import copy
import importlib.util
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
from tilework.runtime.workers.sent_kernel import decoded_compilation, encoded_compilation
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


@tilework.autotune([tilework.Config({"BLOCK": 8}), tilework.Config({"BLOCK": 16})], key=["n"])
@tilework.jit
def tuned(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), n)


@tilework.heuristics({"BLOCK": lambda args: 8})
@tilework.jit
def ruled(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), n)


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


def test_wrapped_kernels() -> None:
    """Wrapped kernels are pickled by name, too; copies are other objects."""
    for kernel in (tuned, ruled):
        assert pickle.loads(pickle.dumps(kernel)) is kernel
        for copied in (copy.copy(kernel), copy.deepcopy(kernel)):
            assert type(copied) is type(kernel) and copied is not kernel and copied.__name__ == kernel.__name__
    assert copy.copy(tuned).configs is tuned.configs is not copy.deepcopy(tuned).configs


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
    """Pickle the members as torch does: without the metadata, which it names itself, and without loaded code."""
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


# ---- kernels that came without their Python function, and must be compiled again

INDUCTOR = """
import numpy as np, tilework, tilework.language as tl

class Tuner:
    def __init__(self, fn):
        self.fn = fn

@tilework.jit
def doubled(x):
    return x * FACTOR

FACTOR = tl.constexpr(2)

@Tuner
@tilework.jit
def shifted(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    for k in range(2):
        tl.store(out + i, doubled(tl.load(x + i)))
"""


def from_another_process(folder: Path) -> tuple[CompiledKernel, Path]:
    """Return a compiled kernel without its Python function, as torch's compile workers send it, and its file."""
    file = folder / "generated.py"
    file.write_text(INDUCTOR)
    spec = importlib.util.spec_from_file_location("not_importable.generated", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    fn = module.shifted.fn
    kernel = compile(ASTSource(fn, {"x": "*fp32", "out": "*fp32", "N": "constexpr"}, {"N": 8}))
    assert kernel.metadata.interface["apart"]
    strip(fn)
    return pickle.loads(pickle.dumps(kernel)), file


def launch_overlapping(kernel: CompiledKernel) -> list[float]:
    x = np.arange(9, dtype=np.float32)
    kernel[(1, 1, 1)](x[:8], x[1:], 8)
    return x.tolist()


def test_overlapping_arguments_of_a_kernel_without_its_function(tmp_path: Path) -> None:
    """The launch needs another variant of the kernel, which is compiled from its file."""
    kernel, _ = from_another_process(tmp_path)
    assert kernel.src.fn.fn is None
    assert launch_overlapping(kernel) == [0, 0, 0, 4, 8, 12, 16, 20, 24]


@pytest.mark.parametrize("change", ["gone", "changed"])
def test_a_kernel_whose_file_is_gone(tmp_path: Path, change: str) -> None:
    kernel, file = from_another_process(tmp_path)
    changed = INDUCTOR.replace("constexpr(2)", "constexpr(33)")  # another length: Python keeps what it compiled by that
    file.unlink() if change == "gone" else file.write_text(changed)
    with pytest.raises(RuntimeError, match=r"generated\.shifted was sent without its Python function") as refusal:
        launch_overlapping(kernel)
    assert ("not at the top level of a file" if change == "gone" else "another kernel") in str(refusal.value)


def test_a_kernel_without_its_function_is_sent_by_name(tmp_path: Path) -> None:
    kernel, file = from_another_process(tmp_path)
    message = encoded_compilation(kernel.src, kernel.metadata.target, {}, "key")
    assert message is not None
    assert message["source"]["fn"] == {"named": ["not_importable.generated", str(file), "shifted"]}
    source, _, _ = decoded_compilation(message)
    assert source.fn.cache_key == kernel.src.fn.cache_key
