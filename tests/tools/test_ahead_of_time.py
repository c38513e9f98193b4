"""Kernels compiled to C for GPUs and linked (`tilework compile --aot`), run against a driver library of our own."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.targets.cuda_tools import needs_ptxas
from tilework import knobs
from tilework.aot import c_files as compile_command
from tilework.aot.c_files import CompileArgs, compile_kernel
from tilework.aot.link import HeaderParser, LinkerError, link_headers, main

ROOT = Path(__file__).parent.parent.parent
pytestmark = [needs_ptxas, pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")]

KERNEL = """
import tilework, tilework.language as tl

@tilework.jit
def kernel(C, A, M, N, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(C + i, tl.load(A + i * N, mask=i < M), mask=i < M)

@tilework.jit
def middle(C, BLOCK: tl.constexpr, scale, half, M):
    i = tl.arange(0, BLOCK)
    tl.store(C + i, (tl.load(C + i, mask=i < M) * scale).to(tl.float32), mask=i < M)
    tl.store(C, half.to(tl.float32))

@tilework.jit
def wide(C, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(C + i[:, None] * BLOCK + i[None, :])
    tl.store(C + i[:, None] * BLOCK + i[None, :], tl.dot(x, x).to(tl.float16))
"""
CUDA_H = """
#pragma once
#include <stddef.h>
typedef int CUresult; typedef int CUdevice; typedef unsigned long long CUdeviceptr;
typedef struct CUmod_st *CUmodule; typedef struct CUfunc_st *CUfunction; typedef struct CUstream_st *CUstream;
enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 };
enum { CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97 };
enum { CU_FUNC_CACHE_PREFER_SHARED = 1, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };
CUresult cuGetErrorString(CUresult, const char **);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuModuleUnload(CUmodule);
CUresult cuDeviceGetAttribute(int *, int, CUdevice);
CUresult cuFuncSetCacheConfig(CUfunction, int);
CUresult cuFuncSetAttribute(CUfunction, int, int);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
void **, void **);
"""
DRIVER = """
#include <cuda.h>
#include <string.h>
const unsigned char *code; char symbol[200]; unsigned launch[8]; int dynamic, loads;
unsigned char values[64];
CUresult cuGetErrorString(CUresult c, const char **t) { *t = "error"; return 0; }
int refuses;
CUresult cuModuleLoadData(CUmodule *m, const void *data) { if (refuses) return refuses; code = data;
*m = (CUmodule)&code; loads++; return 0; }
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *n) { strcpy(symbol, n); *f = (CUfunction)&symbol;
return 0; }
CUresult cuModuleUnload(CUmodule m) { loads--; return 0; }
CUresult cuDeviceGetAttribute(int *v, int a, CUdevice d) { *v = 232448; return 0; }
CUresult cuFuncSetCacheConfig(CUfunction f, int c) { return 0; }
CUresult cuFuncSetAttribute(CUfunction f, int a, int v) { dynamic = v; return 0; }
CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
unsigned s, CUstream t, void **a, void **e) {
  unsigned now[8] = { x, y, z, bx, by, bz, s, 0 };
  memcpy(launch, now, sizeof now);
  for (int i = 0; i < 3; i++) memcpy(values + 8 * i, a[i], 4 + 4 * (i < 1));
  return 0;
}
"""
SIGNATURES = {
    "*fp32:16, *fp32:16, i32, i32:1, 128": "kernel_43432d39_0d1d3c",
    "*fp32:16, *fp32:16, i32:16, i32, 128": "kernel_88aa19e5_0d1d2d",
    "*fp32, *fp32, i32, i32, 128": "kernel_3eb672ce_",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels, a header of CUDA, and a driver that notes what it is asked."""
    path = tmp_path_factory.mktemp("aot")
    (path / "kernels.py").write_text(KERNEL)
    (path / "cuda.h").write_text(CUDA_H)
    (path / "driver.c").write_text(DRIVER)
    return path


def compiled(folder: Path, name: str, signature: str, **more: Any) -> tuple[str, list[Path]]:
    settings = {
        "target": "cuda:90:32",
        "num_warps": 4,
        "out_path": folder / more.get("out_name", name),
        "grid": "M/16, 2, 1",
    }
    return compile_kernel(CompileArgs(str(folder / "kernels.py"), name, signature, **settings | more))


def library(folder: Path, sources: list[Path]) -> Any:
    """Compile C sources and the driver with gcc."""
    product = folder / f"{sources[0].stem}.so"
    files = [str(path) for path in (*sources, folder / "driver.c")]
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-Wl,-Bsymbolic",
            "-Wall",
            "-Werror=implicit-function-declaration",
            f"-I{folder}",
            "-o",
            str(product),
            *files,
        ],
        check=True,
    )
    return ctypes.CDLL(str(product))


def seen(lib: Any) -> dict[str, Any]:
    """The calls that the driver recorded."""
    return {
        "launch": list((ctypes.c_uint32 * 7).in_dll(lib, "launch")),
        "symbol": (ctypes.c_char * 200).in_dll(lib, "symbol").value.decode(),
        "values": bytes((ctypes.c_uint8 * 64).in_dll(lib, "values")),
        "dynamic": ctypes.c_int.in_dll(lib, "dynamic").value,
    }


def test_names_and_headers(folder: Path) -> None:
    made = {signature: compiled(folder, "kernel", signature) for signature in SIGNATURES}
    assert [name for name, _ in made.values()] == list(SIGNATURES.values())
    header = made["*fp32:16, *fp32:16, i32, i32:1, 128"][1][0]
    assert header.name == "kernel.43432d39_0d1d3c.h"
    lines = header.read_text().splitlines()
    assert (
        "// tt-linker: kernel_43432d39_0d1d3c:CUdeviceptr C, CUdeviceptr A, int32_t M, int32_t N:128x1_warps4xstages3"
        in lines
    )
    assert "CUresult kernel_43432d39_0d1d3c(CUstream stream, CUdeviceptr C, CUdeviceptr A, int32_t M);" in lines
    assert "void load_kernel_43432d39_0d1d3c(void);" in lines and "void unload_kernel_43432d39_0d1d3c(void);" in lines


def test_the_linked_function_chooses_by_the_arguments(folder: Path) -> None:
    made = [compiled(folder, "kernel", signature)[1] for signature in SIGNATURES]
    other = compiled(folder, "kernel", "*fp32, *fp32, i32, i32, 64")[1]
    without_1 = [paths for paths in made if "3c." not in paths[0].name]
    main([*(str(paths[0]) for paths in (*without_1, other)), "-o", str(folder / "linked")])
    lib = library(folder, [folder / "linked.c", *(paths[1] for paths in (*without_1, other))])
    lib.kernel.argtypes = lib.kernel_default.argtypes = None
    call = lambda c, a, m, n, algo: lib.kernel(None, ctypes.c_uint64(c), ctypes.c_uint64(a), m, n, algo)  # noqa: E731
    assert lib.kernel_get_num_algos() == 2
    assert call(64, 32, 32, 5, 0) == 0
    found = seen(lib)
    assert found["launch"] == [2, 2, 1, 128, 1, 1, 0] and found["symbol"] == "kernel"
    assert found["values"][:8] == (64).to_bytes(8, "little") and int.from_bytes(found["values"][16:20], "little") == 32
    assert ctypes.c_int.in_dll(lib, "loads").value == 1
    assert call(64, 32, 33, 5, 0) == 0 and ctypes.c_int.in_dll(lib, "loads").value == 2, "33 is no multiple of 16"
    assert call(64, 32, 32, 5, 1) == 0 and ctypes.c_int.in_dll(lib, "loads").value == 3
    assert lib.kernel_default(None, ctypes.c_uint64(64), ctypes.c_uint64(32), 0, 5) == 0, "an empty grid"
    lib.unload_kernel()
    assert ctypes.c_int.in_dll(lib, "loads").value == 0


def test_codes_of_the_driver_and_wrong_numbers_are_returned(folder: Path) -> None:
    header, source = compiled(folder, "kernel", "*fp32, *fp32, i32, i32, 64")[1]
    link_headers([header], folder / "code")
    lib = library(folder, [folder / "code.c", source])
    call = lambda algo: lib.kernel(None, ctypes.c_uint64(64), ctypes.c_uint64(32), 32, 5, algo)  # noqa: E731
    refuses = ctypes.c_int.in_dll(lib, "refuses")
    refuses.value = 209
    assert call(0) == 209, "what the driver says of a module that it cannot load"
    refuses.value = 0
    assert [call(0), call(1), call(-1)] == [0, 1, 1]


def test_headers_of_cuda(folder: Path) -> None:
    """The generated sources compile without a warning against the headers of a toolkit."""
    toolkits = [Path(shutil.which("nvcc") or "/").resolve().parent.parent, *Path("/usr/local").glob("cuda*")]
    include = next((path / "include" for path in toolkits if (path / "include/cuda.h").is_file()), None)
    if include is None:
        pytest.skip("no cuda.h")
    header, source = compiled(folder, "middle", "*fp32:16, 64, fp32, fp16, i32:16", grid="M, BLOCK, 1")[1]
    link_headers([header], folder / "real")
    command = [
        "gcc",
        "-fsyntax-only",
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Wno-strict-prototypes",
        "-Werror",
        f"-I{include}",
    ]
    for path in (source, folder / "real.c", header):
        subprocess.run([*command, "-x", "c", str(path)], check=True)


def test_no_variant_fits(folder: Path) -> None:
    header, source = compiled(folder, "kernel", "*fp32:16, *fp32:16, i32, i32:1, 128")[1]
    main([str(header), "--out", str(folder / "one")])
    lib = library(folder, [folder / "one.c", source])
    fits = lambda c, n: lib.kernel_default(None, ctypes.c_uint64(c), ctypes.c_uint64(32), 16, n)  # noqa: E731
    assert [fits(64, 1), fits(64, 2), fits(65, 1)] == [0, 1, 1]


def test_constants_between_and_floats(folder: Path) -> None:
    """Hints belong to parameters by name, also after a constant; floats have their own size."""
    name, (header, source) = compiled(folder, "middle", "*fp32:16, 64, fp32, fp16, i32:16", grid="1, 1, 1")
    text = header.read_text()
    assert f"CUresult {name}(CUstream stream, CUdeviceptr C, float scale, uint16_t half, int32_t M);" in text
    main([str(header), "-o", str(folder / "mid")])
    lib = library(folder, [folder / "mid.c", source])
    lib.middle_default.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_float, ctypes.c_uint16, ctypes.c_int]
    assert lib.middle_default(None, 64, 1.5, 0x3C00, 17) == 1 and lib.middle_default(None, 64, 1.5, 0x3C00, 16) == 0
    values = seen(lib)["values"]
    assert values[8:12] == bytes(ctypes.c_float(1.5)) and values[16:18] == b"\x00\x3c"


def test_much_shared_memory_is_requested(folder: Path) -> None:
    name, (_, source) = compiled(folder, "wide", "*fp16:16, 256", grid="1, 1, 1", num_warps=8)
    lib = library(folder, [source])
    assert getattr(lib, name)(None, ctypes.c_uint64(64)) == 0
    found = seen(lib)
    assert found["launch"][6] > 49152 and found["dynamic"] == 232448 and found["launch"][3] == 256


def test_errors(folder: Path) -> None:
    with pytest.raises(AssertionError, match="Only 1 and 16 are valid hints, got 8"):
        compiled(folder, "kernel", "*fp32:8, *fp32, i32, i32, 128")
    with pytest.raises(ValueError, match="4096 warps are more threads than the 1024"):
        compiled(folder, "kernel", "*fp32, *fp32, i32, i32, 128", num_warps=4096)
    with pytest.raises(AssertionError, match="three parts"):
        compiled(folder, "kernel", "*fp32, *fp32, i32, i32, 128", grid="1, 1")
    with pytest.raises(ValueError, match="has the parameters C, A, M, N, BLOCK; the signature has 2 entries"):
        compiled(folder, "kernel", "*fp32, 128")
    parser = HeaderParser()
    for line, message in [
        ("// tt-linker: kernel:int x:1_warps1xstages3", "kernel is not a valid kernel name"),
        ("// tt-linker: kernel_ab_0:!:1_warps1xstages3", "is not a valid argument signature"),
        ("// tt-linker: kernel_ab_1:int x:1_warps1xstages3", "Has invalid extra suffix: 1"),
    ]:
        with pytest.raises(LinkerError, match=message):
            parser.extract_linker_meta(line)
    parser.extract_linker_meta("// tt-linker: k_ab_0d:int x:1_w")
    assert parser.kernels["k_1_w"][0].sizes == [16] and parser.kernels["k_1_w"][0].num_specs == 1
    with pytest.raises(LinkerError, match="Mismatched signature for kernel k"):
        parser.extract_linker_meta("// tt-linker: k_cd_0:float x:1_w")


# suffix of a kernel with so many parameters: hints where the header names its backend, and where it does not
SUFFIXES: dict[tuple[str, int], tuple[dict[int, int] | str, dict[int, int] | str]] = {
    ("", 4): ({}, {}),
    ("0d2c", 4): ({0: 16, 2: 1}, {0: 16, 2: 1}),
    ("0d1d3c", 4): ({0: 16, 1: 16, 3: 1}, {0: 16, 1: 16, 3: 1}),
    ("0d1d23c", 4): ({0: 16, 1: 16, 3: 1}, {0: 16, 1: 16, 3: 1}),
    ("0123", 4): ({}, {}),
    ("01d", 4): ({1: 16}, {1: 16}),
    ("0d1d23c4", 4): ({0: 16, 1: 16, 3: 1}, {0: 16, 1: 16, 3: 1}),  # a constant behind, as 3.6 listed it
    ("0d12c", 13): ({0: 16, 12: 1}, {0: 16, 2: 1}),
    ("1d10d", 12): ({1: 16, 10: 16}, {1: 16, 10: 16}),
    ("11c", 12): ({11: 1}, {11: 1}),
    ("0x", 4): ("x", "x"),
    ("4d", 4): ("4d", "4d"),
    ("10d", 4): ("0d", "0d"),
    ("2c0d", 4): ("0d", "0d"),
    ("0d0d", 4): ("0d", "0d"),
    ("d", 4): ("d", "d"),
}


@pytest.mark.parametrize("backend", ["cuda", "hip", None])
@pytest.mark.parametrize(("suffix", "count"), SUFFIXES)
def test_hints_in_the_names_of_kernels(suffix: str, count: int, backend: str | None) -> None:
    """As Triton 3.7.1 reads them, but for parameter 12, which it takes for 1 and 2."""
    parameters = ", ".join(f"int32_t a{index}" for index in range(count))
    header = f"// tt-linker: k_ab12cd34_{suffix}:{parameters}:w\n"
    header = header if backend is None else f"// tt-linker-backend: {backend}\n{header}"
    wanted, parser = SUFFIXES[suffix, count][backend is None], HeaderParser()
    if isinstance(wanted, str):
        with pytest.raises(LinkerError, match=f"Has invalid extra suffix: {wanted}$"):
            parser.extract_linker_meta(header)
        with (
            knobs.language.scope() as language,
            pytest.raises(LinkerError, match="is not a valid kernel suffix"),
        ):
            language.triton_version = "3.6.0"
            parser.extract_linker_meta(header)
        return
    parser.extract_linker_meta(header)
    (meta,) = parser.kernels["k_w"]
    assert meta.sizes == [wanted.get(index) for index in range(count)] and meta.num_specs == len(wanted)
    assert (meta.orig_kernel_name, meta.sig_hash, meta.triton_suffix) == ("k", "ab12cd34", suffix)


def test_headers_of_two_backends() -> None:
    parser = HeaderParser()
    line = "// tt-linker: k_ab_0d:int x:1_w\n"
    parser.extract_linker_meta(line)  # one that does not name its backend is CUDA's
    with pytest.raises(LinkerError, match=r"^differing backend cuda vs\. hip"):
        parser.extract_linker_meta(f"// tt-linker-backend: hip\n{line}")
    with pytest.raises(LinkerError, match=r"there is no backend metal: headers are for cuda, hip or cpu"):
        HeaderParser().extract_linker_meta(f"// tt-linker-backend: metal\n{line}")


def test_names_of_3_6(folder: Path) -> None:
    """They list every parameter, and sources for HIP are C++."""
    with knobs.language.scope() as language:
        language.triton_version = "3.6.0"
        name, (header, _) = compiled(folder, "kernel", "*fp32:16, *fp32:16, i32, i32:1, 128", out_name="k36")
        assert name == "k36_43432d39_0d1d23c4" and header.name == "k36.43432d39_0d1d23c4.h"
        _, (_, source) = compiled(folder, "kernel", "*fp32, *fp32, i32, i32, 128", target="hip:gfx942:64")
        assert source.suffix == ".cpp"


HIP_H = """
#pragma once
#include <stddef.h>
typedef int hipError_t; typedef void *hipDeviceptr_t;
typedef struct m_ *hipModule_t; typedef struct f_ *hipFunction_t; typedef struct s_ *hipStream_t;
enum { hipSuccess = 0, hipErrorInvalidValue = 1 };
#ifndef __HIP_PLATFORM_AMD__
#error "as the headers of HIP do for a plain C compiler"
#endif
__attribute__((weak)) unsigned launch[8]; __attribute__((weak)) unsigned char values[64];
static inline const char *hipGetErrorString(hipError_t e) { return "error"; }
static inline hipError_t hipModuleLoadData(hipModule_t *m, const void *data) { *m = (hipModule_t)data;
return ((const char *)data)[1] != 'E'; }
static inline hipError_t hipModuleGetFunction(hipFunction_t *f, hipModule_t m, const char *n) { *f = (hipFunction_t)m;
return n == NULL; }
static inline hipError_t hipModuleUnload(hipModule_t m) { return 0; }
static inline hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned x, unsigned y, unsigned z, unsigned bx,
unsigned by, unsigned bz, unsigned s, hipStream_t t, void **a, void **e) {
  unsigned now[8] = { x, y, z, bx, by, bz, s, 0 };
  __builtin_memcpy(launch, now, sizeof now);
  for (int i = 0; i < 3; i++) __builtin_memcpy(values + 8 * i, a[i], 4 + 4 * (i < 2));
  return 0;
}
"""


def test_amd_gpus(folder: Path) -> None:
    name, (header, source) = compiled(folder, "kernel", "*fp32:16, *fp32:16, i32, i32:1, 128", target="hip:gfx942:64")
    lines = header.read_text().splitlines()
    assert "// tt-linker-backend: hip" in lines and source.suffix == ".c" and f"{name}_hsaco[" in source.read_text()
    assert f"hipError_t {name}(hipStream_t stream, hipDeviceptr_t C, hipDeviceptr_t A, int32_t M);" in lines
    (folder / "hip").mkdir()
    (folder / "hip" / "hip_runtime.h").write_text(HIP_H)
    product = folder / "amd.so"
    linked = link_headers([header], folder / "amd")
    assert [path.name for path in linked] == ["amd.h", "amd.c"]
    names = [f"-include{linked[0]}", f"-include{header}", f"-I{folder}", "-o", str(product), str(source)]
    subprocess.run(["gcc", "-std=c11", "-shared", "-fPIC", "-Wall", "-Werror", *names, str(linked[1])], check=True)
    lib = ctypes.CDLL(str(product))
    assert lib[name](None, ctypes.c_uint64(3), ctypes.c_uint64(5), 64) == 0
    launch, values = (
        (kind).in_dll(lib, one) for one, kind in (("launch", ctypes.c_uint32 * 7), ("values", ctypes.c_uint64 * 3))
    )
    assert list(launch) == [4, 2, 1, 256, 1, 1, 0] and list(values) == [3, 5, 64]
    chosen = lib.kernel_default
    fits = lambda c, n: chosen(None, ctypes.c_uint64(c), ctypes.c_uint64(32), 16, n)  # noqa: E731
    assert [fits(64, 1), fits(65, 1), fits(64, 2)] == [0, 1, 1]


def test_as_commands(folder: Path) -> None:
    """`python -m triton.tools.compile` and `... link` under `as_triton`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(folder / "cache")}
    python = [sys.executable, "-m", "tilework.as_triton", "-m"]
    command = [
        "triton.tools.compile",
        "kernels.py",
        "-n",
        "kernel",
        "-s",
        "*fp32, *fp32, i32, i32, 128",
        "-g",
        "M, 1, 1",
    ]
    command += ["-t", "cuda:80:32", "--num-warps", "2", "-on", "mine", "-o", "out"]
    subprocess.run([*python, *command], cwd=folder, env=environment, check=True, timeout=300)
    (header,) = folder.glob("out.*.h")
    assert "// tt-linker: mine_" in header.read_text() and "// tt-linker-backend: cuda\n" in header.read_text()
    subprocess.run(
        [*python, "triton.tools.link", header.name, "-o", "all"], cwd=folder, env=environment, check=True, timeout=300
    )
    assert "TT_ResultTy mine_default(TT_StreamTy stream" in (folder / "all.h").read_text()


@pytest.mark.parametrize(
    ("error", "seen"),
    [(ValueError("no type"), SystemExit), (AttributeError("x"), AttributeError), (TypeError("x"), TypeError)],
)
def test_mistakes_of_the_call_are_words_and_defects_are_seen(
    monkeypatch: pytest.MonkeyPatch, error: Exception, seen: type[BaseException]
) -> None:
    def failing(args: CompileArgs) -> None:
        raise error

    monkeypatch.setattr(compile_command, "compile_kernel", failing)
    with pytest.raises(seen):
        compile_command.main(["kernels.py", "-n", "add", "-s", "*fp32", "-g", "1,1,1"])
