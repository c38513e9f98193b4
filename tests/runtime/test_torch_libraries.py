"""Kernels as shared libraries, called as torch's C++ code calls them: through `run_from_nativert`, with an array of
arguments."""

import ctypes
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.triton import backends

needs_compiler = pytest.mark.skipif(not any(map(shutil.which, backends.COMPILERS)), reason="there is no C++ compiler")


@tilework.jit
def kernel(x, A: tl.constexpr, out, n, wide, flag, scale, precise, ONE, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    row = tl.program_id(1) * 2 + tl.program_id(2)
    found = tl.load(x + i, mask=i < n) * scale + precise + flag.to(tl.int32) + wide // 1000000000000 + A + ONE
    tl.device_assert(found < 1e6, "too large", mask=i < n)
    tl.store(out + row * n + i, found, mask=i < n)


def library(folder: Path, name: str, data: bytes) -> ctypes.CDLL:
    (folder / name).write_bytes(data)
    return ctypes.CDLL(str(folder / name))


@needs_compiler
@pytest.mark.parametrize("threads", [1, 4])
def test_a_kernel_is_called_with_an_array_of_arguments(tmp_path: Path, threads: int, monkeypatch) -> None:
    n, x = 1000, np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    expected, out = np.zeros((4, n)), np.zeros((4, n))
    arguments = (x, 3, expected, n, 5 * 10**12, True, 2.5, np.float64(0.1), 1, 64)
    compiled = kernel[(16, 2, 2)](*arguments, debug=True)
    facts = {**compiled.metadata._asdict(), "source": compiled.src}
    # as torch 2.13 declares them: int64_t, and float whatever the kernel takes
    class_of_torch = SimpleNamespace(_get_cpp_param_type=lambda self, name, type: f"float {name}")
    module = SimpleNamespace(DeferredCpuTritonCallWrapper=class_of_torch)
    monkeypatch.setitem(backends.sys.modules, "torch._inductor.codegen.cpp_wrapper_cpu", module)
    kernels = library(tmp_path, "kernel.so", backends.kernel_library(compiled.asm["ttcir"], facts))
    launcher = library(tmp_path, "launcher.so", backends.launcher_library(compiled.asm["ttcir"], facts))
    numbers = [
        ctypes.c_int64(n),
        ctypes.c_int64(5 * 10**12),
        ctypes.c_int64(1),
        ctypes.c_float(2.5),
        ctypes.c_float(0.1),
    ]
    entries = [x.ctypes.data, None, out.ctypes.data, *map(ctypes.addressof, numbers), None, None]
    function = ctypes.cast(kernels[compiled.metadata.name], ctypes.c_void_p)
    launcher.run_from_nativert(16, 2, 2, threads, (ctypes.c_void_p * len(entries))(*entries), function)
    np.testing.assert_allclose(out, expected, rtol=1e-6)


@tilework.jit
def shifted(a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    tl.store(b + i + 1, x + 1)
    tl.store(b + N + 1 + i, tl.load(a + i))


@needs_compiler
def test_arguments_may_overlap(tmp_path: Path) -> None:
    """C++ compares no addresses: the library keeps the order of the program."""
    compiled = shifted[(1,)](np.zeros(64, np.int32), np.zeros(64, np.int32), 16)
    assert compiled.metadata.interface["apart"]
    facts = {**compiled.metadata._asdict(), "source": compiled.src}
    kernels = library(tmp_path, "kernel.so", backends.kernel_library(compiled.asm["ttcir"], facts))
    launcher = library(tmp_path, "launcher.so", backends.launcher_library(compiled.asm["ttcir"], facts))
    out, expected = (np.arange(64, dtype=np.int32) * 3 for _ in range(2))
    shifted[(1,)](expected, expected, 16)
    entries = (ctypes.c_void_p * 3)(out.ctypes.data, out.ctypes.data, None)
    launcher.run_from_nativert(1, 1, 1, 1, entries, ctypes.cast(kernels[compiled.metadata.name], ctypes.c_void_p))
    np.testing.assert_array_equal(out, expected)


def test_the_missing_compiler_is_named(monkeypatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for chosen in (None, "my-compiler"):
        monkeypatch.setattr(knobs.build, "cxx", chosen)
        with pytest.raises(RuntimeError, match=rf"C\+\+ compiler: none of {chosen or 'c'}.* is on the PATH.*CXX"):
            backends.kernel_library("", {})
