"""macOS and Windows, as far as Linux can show them: a process that takes itself for one of them.

It has their `sys.platform`, and lacks what they lack: affinities, futexes, /proc, the fcntl module on Windows. Code
still runs on Linux's C library, so nothing here shows that kernels run there; it shows that no branch of ours asks for
what is not there.
"""

import os
from pathlib import Path

from tests.python_programs import run_python

ROOT = Path(__file__).parents[2]
# loaded before: modules of Python, and libraries, that choose their own files by the name of the system
PRELUDE = """
import asyncio, builtins, ctypes.util, io, mmap, multiprocessing.connection, os, subprocess, sys, sysconfig, tempfile
import urllib.request
import llvmlite.binding, numpy

sysconfig.get_config_vars()
sys.platform = {system!r}
for owner, names in (
    (os, ("sched_getaffinity", "sched_setaffinity", "memfd_create", "pidfd_open")),
    (mmap, ("MAP_NORESERVE", "MAP_POPULATE", "MAP_STACK")),
    ({posix}, ("fork", "register_at_fork", "RTLD_NOLOAD", "RTLD_LAZY")),
):
    for name in names:
        owner is None or not hasattr(owner, name) or delattr(owner, name)
if sys.platform == "win32":
    sys.modules["fcntl"] = None

def opened(file, *args, __open=io.open, **kwargs):
    if isinstance(file, (str, os.PathLike)) and os.fspath(file).startswith(("/proc/", "/sys/")):
        raise FileNotFoundError(2, "No such file or directory", file)
    return __open(file, *args, **kwargs)

builtins.open = io.open = opened
"""
PROGRAM = """
import numpy as np
import tilework
import tilework.language as tl
from tilework.tools import cli

@tilework.jit
def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x * factor, mask=i < n)

x = np.arange(100_000, dtype=np.float32)
for kernel in {kernels}:
    out = np.empty_like(x)
    for _ in range(3):
        kernel[(tilework.cdiv(x.size, 1024),)](x, out, x.size, 0.5, BLOCK=1024)
    assert np.array_equal(out, x / 2)
types = {{"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "factor": "fp32"}}
source = tilework.compiler.ASTSource(scale, types, {{"BLOCK": 1024}})
for target in (tilework.compiler.GPUTarget("cuda", 90, 32), tilework.compiler.GPUTarget("hip", "gfx942", 64)):
    assert tilework.compile(source, target=target, options={{}}).asm
cli.main(["doctor"])
"""


def run_as(system: str, folder: Path, kernels: str) -> str:
    (folder / "sitecustomize.py").write_text(PRELUDE.format(system=system, posix="os" if system == "win32" else None))
    script = folder / "program.py"
    script.write_text(PROGRAM.format(kernels=kernels))
    paths = os.pathsep.join((str(folder), str(ROOT)))
    settings = {**os.environ, "PYTHONPATH": paths, "TRITON_CACHE_DIR": str(folder / "cache")}
    done = run_python(str(script), cwd=folder, env=settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_macos(tmp_path: Path) -> None:
    said = run_as("darwin", tmp_path, "(scale, tilework.jit(scale.fn, interpret=True))")
    assert "cuda kernels     no GPU: their driver is used on Linux and Windows, and this is macOS" in said
    assert "hip kernels      no GPU: their driver is used on Linux, and this is macOS" in said
    assert "ok cpu kernels" in said and "ok emulator" in said


def test_windows(tmp_path: Path) -> None:
    """The pool of threads calls Windows' functions, which are not here: only the interpreter runs kernels."""
    said = run_as("win32", tmp_path, "(tilework.jit(scale.fn, interpret=True),)")
    assert "hip kernels      no GPU: their driver is used on Linux, and this is Windows" in said
