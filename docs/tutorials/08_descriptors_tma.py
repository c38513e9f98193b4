"""# Descriptors and TMA

A *tensor descriptor* holds the address, shape and strides of a matrix. A kernel loads blocks through it, without
pointers and masks. On NVIDIA's Hopper GPUs one instruction to a copy engine (TMA) fetches such a block, on
every other target it becomes plain loads. This tutorial runs the same kernel on the CPU, and on an emulated H200 that
counts instructions.

    python 08_descriptors_tma.py
"""

import inspect
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, assert_close, do_bench, perf_report
from tilework.tools.tensor_descriptor import TensorDescriptor

QUICK = "--quick" in sys.argv

# %%
# ## Pointers and masks
#
# The matmul of [the third tutorial](03_matmul.py), with every edge masked: two axes each for `a`, `b` and `c`.


@tilework.jit
def by_pointers(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(
            a_ptr + rm[:, None] * K + rk[None, :],
            mask=(rm[:, None] < M) & (rk[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + rk[:, None] * N + rn[None, :],
            mask=(rk[:, None] < K) & (rn[None, :] < N),
            other=0.0,
        )
        acc = tl.dot(a, b, acc)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(
        c_ptr + rm[:, None] * N + rn[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask
    )


# %%
# ## Descriptors
#
# The same kernel with descriptors that the host makes and passes as arguments. `a.load([m, k])` is the block whose
# first element is at row `m` and column `k`; elements outside the matrix read as zero, and stores to them are
# dropped. Blocks have a size for each axis, the last axis is contiguous, and rows begin at multiples of 16 bytes: the
# copy engine requires this, and tilework checks it on every target, so that a program that runs on one runs on all.
#
# A kernel can also create one from a pointer: `tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BM, BK])`.


@tilework.jit
def by_descriptors(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
    c.store([m, n], acc.to(c.dtype))


def multiply(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, tile: int, described: bool, **options: bool
):
    (m, k), n = a.shape, b.shape[1]
    grid = (tilework.cdiv(m, tile), tilework.cdiv(n, tile))
    blocks = {"BM": tile, "BN": tile, "BK": 32}
    if not described:
        return by_pointers[grid](a, b, c, m, n, k, **blocks, **options)
    shapes = ((a, [tile, 32]), (b, [32, tile]), (c, [tile, tile]))
    return by_descriptors[grid](
        *(TensorDescriptor.from_tensor(one, shape) for one, shape in shapes), k, **blocks
    )


def operands(
    m: int, n: int, k: int, dtype: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return (
        rng.standard_normal((m, k)).astype(dtype),
        rng.standard_normal((k, n)).astype(dtype),
        np.empty((m, n), dtype),
    )


# %%
# ## The emulated GPU
#
# `TILEWORK_DEVICE=emulator` runs a program on an emulated GPU: the real PTX, on ordinary arrays, with every race and
# every bad access reported, and with counters. The device is chosen at the first launch of a process, so the
# functions above and below are written to a file, which another process runs. [The
# guide](../emulator-and-sanitizer.md) shows what it finds.
#
# The third way is the first kernel again. By default the compiler copies large operands that a kernel loads by
# pointers with TMA, where it can prove that the result is the same; these tiles are small, so `auto_tma=True`
# requests it.

WAYS: dict[str, dict[str, bool]] = {
    "by pointers": {"described": False, "auto_tma": False},
    "by descriptors": {"described": True},
    "by pointers, auto_tma": {"described": False, "auto_tma": True},
}


def count_on_the_emulator(size: int) -> None:
    """Launch every way on float16, and print what was counted as JSON."""
    a, b, c = operands(size, size, 128, "f2")
    found = {}
    for name, options in WAYS.items():
        kernel = multiply(a, b, c, tile=64, **options)
        assert_close(c, (a.astype("f4") @ b.astype("f4")), atol=0.05)
        copies = [
            line.strip()
            for line in kernel.asm["ptx"].splitlines()
            if "cp.async" in line and "[" in line
        ]
        found[name] = {
            "instructions": kernel.counters.total.instructions,
            "copy": copies[0],
        }
    print(json.dumps(found))


IMPORTS = """
import json
import numpy as np
import tilework
import tilework.language as tl
from tilework.testing import assert_close
from tilework.tools.tensor_descriptor import TensorDescriptor
"""
functions = (by_pointers.fn, by_descriptors.fn, multiply, operands, count_on_the_emulator)
program = [
    IMPORTS,
    *(inspect.getsource(function) for function in functions),
    f"WAYS = {WAYS!r}",
    f"count_on_the_emulator({64 if QUICK else 128})",
]
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "on_the_emulator.py")
    file.write_text("\n\n".join(program))
    environment = {**os.environ, "TILEWORK_DEVICE": "emulator", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, str(file)], env=environment, stdout=subprocess.PIPE, check=True
    )
counted = json.loads(done.stdout)

# %%
# ## What they count
#
# A warp that copies by pointers computes an address for each of its lanes, and a mask, and copies 16 bytes at a time
# (`cp.async`). With TMA one thread of the block issues the copy of a whole box (`cp.async.bulk.tensor`). What remains
# are the integer and move instructions that multiplying and storing need, and the barriers at which the block waits
# for the engine.

kinds = ["integer", "move", "copy", "memory", "barrier", "tensor"]
print(f"{'instructions of warps':24}" + "".join(f"{kind:>9}" for kind in kinds))
for name, found in counted.items():
    numbers = (found["instructions"].get(kind, 0) for kind in kinds)
    print(f"{name:24}" + "".join(f"{number:9}" for number in numbers))
for name, found in counted.items():
    print(f"{name}: a copy is {found['copy']}")

# %%
# ## How fast is it on the CPU?
#
# Here a block of a descriptor becomes plain loads and stores, with the bounds as their masks.


@perf_report(
    Benchmark(
        x_names=["size"],
        x_vals=[64, 128] if QUICK else [64, 128, 256, 512],
        line_arg="way",
        line_vals=["pointers", "descriptors", "NumPy"],
        line_names=["tilework, pointers", "tilework, descriptors", "NumPy (BLAS)"],
        plot_name="Square matrices, float32, on the CPU",
        xlabel="rows and columns",
        ylabel="GFLOP/s (more is better)",
        x_log=True,
        args={},
    )
)
def gflops(size: int, way: str) -> float:
    a, b, c = operands(size, size, size, "f4")
    calls = {
        "pointers": lambda: multiply(a, b, c, tile=64, described=False),
        "descriptors": lambda: multiply(a, b, c, tile=64, described=True),
        "NumPy": lambda: np.matmul(a, b, out=c),
    }
    calls[way]()
    assert_close(c, a @ b, atol=1e-3)
    ms = do_bench(calls[way], warmup=5, rep=30, return_mode="min")
    return 2 * size**3 / ms / 1e6


gflops.run(print_data=True, save_precision=1)

# %%
# ## Try it
#
# - A matrix whose rows have 100 elements of float16: 200 bytes, which is not a multiple of 16. What does the message
#   say?
# - `TensorDescriptor.from_tensor(a, [64, 32], padding="nan")`: elements outside are NaN, and `c` shows where they are
#   used.
# - `TILEWORK_PERFORMANCE_REMARKS=1 python 08_descriptors_tma.py` says what limits these loops on a GPU.
#
# Next: [from NumPy](09_from_numpy.py).
