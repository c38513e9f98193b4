"""Kernels compiled ahead of time, called by a C program on a real GPU.

    python -m tests.device.check_aot

Needs an NVIDIA GPU, its driver, and `nvcc` or another C compiler; where there is no `cuda.h`, one with what is called
here is written. Each check prints a line with PASS or FAIL; the exit code is the number of failures.
"""

import ctypes
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tilework.runtime.devices.active_driver import driver
from tilework.tools import cli

HERE = Path(__file__).parent
KERNELS = """
import tilework
import tilework.language as tl


@tilework.jit
def scale(x, out, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


@tilework.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        inner = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner[None, :])
        total = tl.dot(left, tl.load(b + inner[:, None] * N + columns[None, :]), total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)
"""


def compile_kernels(folder: Path, target: str) -> None:
    """The C files of both kernels."""
    (folder / "kernels.py").write_text(KERNELS)
    scale = ["-g", "(n + BLOCK - 1) / BLOCK, 1, 1", "-w", "4"]
    for block in (1024, 512):
        scale += ["-s", f"*fp32:16, *fp32:16, i32, fp32, {block}", "-s", f"*fp32, *fp32, i32, fp32, {block}"]
    matmul = ["-g", "M / BM, N / BN, 1", "-w", "8", "-ns", "4"]
    sizes = "i32:16, i32:16, i32:16, 128, 128, 64"
    matmul += ["-s", f"*fp16:16, *fp16:16, *fp32:16, {sizes}", "-s", "*fp16, *fp16, *fp32, i32, i32, i32, 128, 128, 64"]
    for name, options in (("scale", scale), ("matmul", matmul)):
        command = [
            "compile",
            "--aot",
            f"{folder / 'kernels.py'}:{name}",
            "-t",
            target,
            "-o",
            str(folder / name),
            *options,
        ]
        assert cli.main(command) == 0, command


CUDA_H = """
#include <stddef.h>
typedef int CUresult, CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext; typedef struct CUmod_st *CUmodule; typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97 };
enum { CU_FUNC_CACHE_PREFER_SHARED = 1, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };
#define cuMemAlloc cuMemAlloc_v2
#define cuMemFree cuMemFree_v2
#define cuMemcpyHtoD cuMemcpyHtoD_v2
#define cuMemcpyDtoH cuMemcpyDtoH_v2
CUresult cuInit(unsigned), cuDeviceGet(CUdevice *, int), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice),
cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize(void), cuMemAlloc(CUdeviceptr *, size_t), cuMemFree(CUdeviceptr), cuMemcpyHtoD(CUdeviceptr,
const void *, size_t);
CUresult cuMemcpyDtoH(void *, CUdeviceptr, size_t), cuGetErrorString(CUresult, const char **),
cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *), cuModuleUnload(CUmodule),
cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuFuncSetCacheConfig(CUfunction, int), cuFuncSetAttribute(CUfunction, int, int);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
void **, void **);
"""


def build(folder: Path, library: str) -> Path:
    """The program, linked with the driver's library."""
    program = folder / "main"
    sources = [str(HERE / "aot_main.c"), *(str(path) for path in sorted(folder.glob("*.c")))]
    toolkits = [Path(shutil.which("nvcc") or "/").resolve().parent.parent, *sorted(Path("/usr/local").glob("cuda*"))]
    include = next((path / "include" for path in toolkits if (path / "include/cuda.h").is_file()), None)
    if include is None:
        (folder / "cuda.h").write_text(f"#pragma once\n{CUDA_H}")
    includes = [f"-I{folder}", *([f"-I{include}"] if include else [])]
    compiler = shutil.which("nvcc") or shutil.which("gcc") or "cc"
    linked = ["-Xlinker", library] if compiler.endswith("nvcc") else [library]
    subprocess.run([compiler, *includes, *sources, "-o", str(program), *linked], check=True)
    return program


def driver_library() -> str:
    """The file of libcuda that this process uses."""
    ctypes.CDLL("libcuda.so.1")
    maps = Path("/proc/self/maps").read_text().splitlines()
    return next(line.split()[-1] for line in maps if "libcuda.so" in line)


def main() -> int:
    target = driver.active.get_current_target()
    assert target.backend == "cuda", f"needs an NVIDIA GPU, the active device is {target}"
    with tempfile.TemporaryDirectory() as name:
        compile_kernels(Path(name), f"cuda:{target.arch}:{target.warp_size}")
        return subprocess.run([str(build(Path(name), driver_library()))]).returncode


if __name__ == "__main__":
    sys.exit(main())
