"""Write a kernel as C files: for GPUs a header and a source with the code and the launching function, for CPUs a header
and an object file.

    python -m tilework.tools.compile add.py -n add -s "*fp32:16, *fp32:16, i32, 1024" -g "(n + 1023) / 1024, 1, 1" \\
        -t cuda:90:32 -w 4                      Triton's `triton.tools.compile`; `tilework compile --aot` does the same

    CUresult add_HASH_SUFFIX(CUstream stream, CUdeviceptr x, CUdeviceptr out, int32_t n);        for GPUs
    TTresult add_HASH_SUFFIX(TTstream stream, TTptr x, TTptr out, int32_t n);                    for CPUs

For GPUs the code is loaded into the current context at the first call, or by `load_add_HASH_SUFFIX`, which ends the
process if that fails; a call returns the driver's error code instead. For AMD GPUs (``-t hip:gfx942:64``) the
identifiers are HIP's. `tilework.tools.link` makes one function of several, which chooses by the arguments.

For CPUs (``-t cpu``) C programs link an object file (`targets/cpu/standalone.py`), and no C compiler is needed to write
it. The stream selects the threads that run the programs of the grid: NULL is the calling thread, one program after the
other; else a `TTthreads` whose function `run` calls back from any number of threads. `tt_pthreads_run` is one that
starts threads and joins them at each launch. `docs/aot.md` has all of it, with examples.
"""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilework.aot.find_kernels import load_kernel
from tilework.aot.signature import (
    POINTER,
    Entry,
    GridError,
    Names,
    parse_expression,
    parse_grid,
    parse_signature,
    passed,
    specialization_of,
    values_of,
)
from tilework.errors import CompilationError, TritonError
from tilework.language.function import JITFunction, ascii_symbol
from tilework.process.triton_version import follows
from tilework.runtime.compile.sources import frontend_options
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.python.specialization import Specialization
from tilework.target import GPUTarget, Target
from tilework.targets.base import find_backend

if TYPE_CHECKING:
    from tilework.targets.cpu.run.interface import Interface
    from tilework.targets.cpu.standalone import Argument, GridCode

PLAIN_SHARED = 49152  # bytes per block that need no opt-in
GPUS = ("cuda", "hip")

HEADER = """#ifndef TT_KERNEL_INCLUDES
#define TT_KERNEL_INCLUDES

#include <cuda.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#endif

// tt-linker-backend: {backend}

void unload_{name}(void);
void load_{name}(void);
// tt-linker: {name}:{full}:{algorithm}
// tt-linker-hints: {name}:{hints}
CUresult {name}(CUstream stream{parameters});
"""

SOURCE = """#include <cuda.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void gpuAssert(CUresult code, const char *file, int line) {{
  if (code != CUDA_SUCCESS) {{
    {text_of_code}
    fprintf(stderr, "Triton Error [CUDA]: %s (%s:%d)\\n", text ? text : "unknown", file, line);
    exit((int)code);
  }}
}}

#define CUDA_CHECK(call) gpuAssert((call), __FILE__, __LINE__)

static unsigned char {name}_cubin[{size}] = {{ {data} }};
static CUmodule {name}_mod = NULL;
static CUfunction {name}_func = NULL;

static CUresult {name}_try_load(void) {{
  CUresult code = cuModuleLoadData(&{name}_mod, {name}_cubin);
  if (code == CUDA_SUCCESS)
    code = cuModuleGetFunction(&{name}_func, {name}_mod, "{symbol}");
{more_shared}  return code;
}}

void unload_{name}(void) {{
  if ({name}_mod != NULL)
    CUDA_CHECK(cuModuleUnload({name}_mod));
  {name}_mod = NULL;
  {name}_func = NULL;
}}

void load_{name}(void) {{
  if ({name}_func == NULL)
    CUDA_CHECK({name}_try_load());
}}

/* {settings} */
CUresult {name}(CUstream stream{parameters}) {{
  CUresult code = {name}_func == NULL ? {name}_try_load() : CUDA_SUCCESS;
  unsigned int gX = {grid[0]};
  unsigned int gY = {grid[1]};
  unsigned int gZ = {grid[2]};
  CUdeviceptr global_scratch = 0;
  CUdeviceptr profile_scratch = 0;
  void *args[] = {{ {arguments} }};
  if (code != CUDA_SUCCESS || gX == 0 || gY == 0 || gZ == 0)
    return code;
  return cuLaunchKernel({name}_func, gX, gY, gZ, {warps} * {warp_size}, 1, 1, {shared}, stream, args, NULL);
}}
"""

MORE_SHARED = """  CUdevice device = 0;
  int limit = 0;
  if (code == CUDA_SUCCESS)
    code = cuDeviceGetAttribute(&limit, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
  if (code == CUDA_SUCCESS && limit > {plain})
    code = cuFuncSetCacheConfig({name}_func, CU_FUNC_CACHE_PREFER_SHARED);
  if (code == CUDA_SUCCESS && limit > {plain})
    code = cuFuncSetAttribute({name}_func, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, limit);
"""
ERROR_TEXTS = {
    "cuda": "const char *text = NULL;\n    cuGetErrorString(code, &text);",
    "hip": "const char *text = hipGetErrorString(code);",
}
HIP_INCLUDES = """#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__
#endif
#include <hip/hip_runtime.h>"""
API_NAMES: dict[str, dict[str, str]] = {
    "cuda": {},
    "hip": {
        "#include <cuda.h>": HIP_INCLUDES,
        "CUresult": "hipError_t",
        "CUstream": "hipStream_t",
        "CUDA_SUCCESS": "hipSuccess",
        "CUDA_CHECK": "HIP_CHECK",
        "[CUDA]: %s (%s": "[HIP]: %s (%s",
        "CUdeviceptr": "hipDeviceptr_t",
        "CUmodule": "hipModule_t",
        "CUfunction": "hipFunction_t",
        "cuModule": "hipModule",
        "cuLaunchKernel": "hipModuleLaunchKernel",
        "_cubin": "_hsaco",
    },
}


def c_texts(compiled: Any, entries: Sequence[Entry], names: Names, grid: Sequence[str]) -> tuple[str, str]:
    """Header and source of a compiled kernel."""
    metadata, backend = compiled.metadata, compiled.metadata.target.backend
    binary, arguments = compiled.asm[metadata.binary_ext], passed(entries)
    needs_more = backend == "cuda" and metadata.shared > PLAIN_SHARED
    facts = {
        **names.header_fields(entries),
        "backend": backend,
        "size": len(binary),
        "data": ", ".join(f"0x{byte:02x}" for byte in binary),
        "symbol": metadata.name,
        "shared": metadata.shared,
        "text_of_code": ERROR_TEXTS[backend],
        "more_shared": MORE_SHARED.format(plain=PLAIN_SHARED, name=names.function) if needs_more else "",
        "grid": grid,
        "arguments": ", ".join(
            f"&{each}" for each in [*(entry.c_name for entry in arguments), "global_scratch", "profile_scratch"]
        ),
        "warps": metadata.num_warps,
        "warp_size": metadata.target.warp_size,
        "settings": [*(f"{entry.name}={entry.value}" for entry in values_of(entries)), *names.settings],
    }
    header, source = HEADER, SOURCE
    for cuda, other in API_NAMES[backend].items():
        header, source = header.replace(cuda, other), source.replace(cuda, other)
        facts |= {key: facts[key].replace(cuda, other) for key in ("parameters", "full")}
    return header.format(**facts), source.format(**facts)


CPU_INCLUDES = """#ifndef TT_CPU_INCLUDES
#define TT_CPU_INCLUDES

#include <stddef.h>
#include <stdint.h>

typedef void *TTptr;
typedef int32_t TTresult; /* {codes}; a code above 0 is an assert that failed: NAME_error_string says which */
enum {{ {values} }};

/* The threads that run the programs of a launch. `run` calls `work(launch)` any number of times, in any threads, at
   most once at a time in each, and returns when all those calls have returned. `threads` is their number, for the
   size of portions. */
typedef struct TTthreads {{
  int32_t threads;
  int32_t reserved;
  void (*run)(struct TTthreads *self, void (*work)(void *launch), void *launch);
}} TTthreads;
typedef TTthreads *TTstream; /* NULL: the calling thread runs all programs, one after the other */

#endif

#if defined(TT_PTHREADS) && !defined(TT_PTHREADS_RUN)
#define TT_PTHREADS_RUN

#include <pthread.h>

struct tt_pthreads_call {{
  void (*work)(void *launch);
  void *launch;
}};

static void *tt_pthreads_main(void *data) {{
  struct tt_pthreads_call *call = (struct tt_pthreads_call *)data;
  call->work(call->launch);
  return NULL;
}}

/* Starts threads - 1 threads (256 at most), works too, and joins them: TTthreads four = {{4, 0, tt_pthreads_run}}; */
static inline void tt_pthreads_run(TTthreads *self, void (*work)(void *launch), void *launch) {{
  struct tt_pthreads_call call = {{work, launch}};
  pthread_t others[256];
  int32_t wanted = self->threads - 1 < 256 ? self->threads - 1 : 256, started = 0;
  while (started < wanted && pthread_create(&others[started], NULL, tt_pthreads_main, &call) == 0)
    started++;
  work(launch);
  while (started > 0)
    pthread_join(others[--started], NULL);
}}

#endif
"""
CPU_HEADER = """{includes}
#ifdef __cplusplus
extern "C" {{
#endif

/* {settings}, for the CPU {arch} */
void unload_{name}(void);
void load_{name}(void);
const char *{name}_error_string(TTresult code);
// tt-linker-backend: cpu
// tt-linker: {name}:{full}:{algorithm}
// tt-linker-hints: {name}:{hints}
TTresult {name}(TTstream stream{parameters});

#ifdef __cplusplus
}}
#endif
"""


def includes() -> str:
    """The common begin of all headers for CPUs."""
    from tilework.targets.cpu.standalone import CODES  # lazily: loads LLVM

    values = ", ".join(f"TT_{name} = {code}" for name, code in CODES.items())
    return CPU_INCLUDES.format(codes=", ".join(f"TT_{name}" for name in CODES), values=values)


def header_text(entries: Sequence[Entry], names: Names, arch: str, interface: "Interface") -> str:
    """The header of a compiled kernel."""
    settings = [*(f"{entry.name}={entry.value}" for entry in values_of(entries)), *names.settings]
    fields = {key: text.replace(POINTER, "TTptr") for key, text in names.header_fields(entries).items()}
    shown = ", ".join(settings).replace("*/", "* /")
    return CPU_HEADER.format(includes=includes(), settings=shown, arch=arch or "host", **fields)


def arguments_of(entries: Sequence[Entry]) -> "list[Argument]":
    from tilework.targets.cpu.standalone import Argument  # lazily: loads LLVM

    return [Argument(entry.c_name, entry.c_type.replace(POINTER, "void *")) for entry in passed(entries)]


def grid_code(parts: Sequence[str], args: "Sequence[Argument]") -> "GridCode":
    """Return a function that emits the arithmetic of a grid; a name that is no integer argument is an error now."""
    from tilework.targets.cpu.run.machine_code import num  # lazily: loads LLVM

    expressions = [parse_expression(part) for part in parts]
    integers = {arg.name for arg in args if arg.is_integer}
    for expression in expressions:
        if unknown := sorted(expression.names() - integers):
            known = ", ".join(sorted(integers)) or "none"
            raise GridError(
                f"grid {expression.text!r}: {unknown[0]} is no integer argument of the kernel; it has {known}"
            )
    return lambda b, values: [expression.emit(b, values, num) for expression in expressions]


# ---- the command

desc = """
Compile a kernel ahead of time: for GPUs a C source with its cubin and a function that launches it, and the header of
that; for CPUs an object file with that function, and its header.

The signature has one entry for each parameter of the kernel, separated by commas: a type (*fp32, i32, fp64), with :16
for a multiple of 16 and :1 for the value 1, or the value of a compile-time parameter. The grid is three C expressions,
which may use the names of the parameters.
"""
BACKENDS = (*GPUS, "cpu")


@dataclass
class CompileArgs:
    """The options of the command line."""

    path: str = ""
    kernel_name: str = ""
    signature: str = ""
    grid: str = ""
    target: str | None = None
    num_warps: int = 1
    num_stages: int = 3
    out_name: str | None = None
    out_path: Path | None = None


def main(arguments: list[str] | None = None) -> None:
    """Run the command. Errors are printed to stderr, and the exit code is 1."""
    parser = argparse.ArgumentParser(
        prog="compile.py", description=desc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", help="the Python file with the kernel")
    parser.add_argument("--kernel-name", "-n", type=str, required=True, help="the name of the kernel")
    parser.add_argument(
        "--target",
        "-t",
        type=str,
        help="backend:arch:warp size, as cuda:90:32, hip:gfx942:64, cpu; default: the current device",
    )
    parser.add_argument("--num-warps", "-w", type=int, default=1, help="the number of warps of a program")
    parser.add_argument("--num-stages", "-ns", type=int, default=3, help="the number of stages of pipelined loops")
    parser.add_argument("--out-name", "-on", type=str, help="the prefix of the C functions; default: the kernel's name")
    parser.add_argument(
        "--out-path", "-o", type=Path, help="the prefix of the files; default: the name, in the current folder"
    )
    parser.add_argument("--signature", "-s", type=str, required=True, help="the types of the parameters")
    parser.add_argument("--grid", "-g", type=str, required=True, help="the launch grid")
    args = CompileArgs(**vars(parser.parse_args(arguments)))
    try:
        compile_kernel(args)
    except CompilationError as error:
        raise SystemExit(error.diagnostic().render()) from None
    except (AssertionError, ImportError, OSError, ValueError, TritonError) as error:  # of the call; others are defects
        raise SystemExit(f"compile.py: error: {error}") from None


def compile_kernel(args: CompileArgs) -> tuple[str, list[Path]]:
    """Compile a kernel, and write header and source (or object). Return the name of the C function, and the files."""
    return write_kernel(load_kernel(Path(args.path), args.kernel_name), args)


def write_kernel(
    kernel: JITFunction, args: CompileArgs, settings: dict[str, Any] | None = None
) -> tuple[str, list[Path]]:
    """The same for a kernel that is loaded; `settings` are further options of the compiler."""
    target = driver.active.get_current_target() if args.target is None else GPUTarget.parse(args.target)
    if target.backend not in BACKENDS:
        raise ValueError(f"kernels are compiled ahead of time for {', '.join(BACKENDS)}, not for {target.backend}")
    most = Target.of(target).limits.threads
    if target.backend != "cpu" and args.num_warps * target.warp_size > most:
        raise ValueError(f"{args.num_warps} warps are more threads than the {most} that a block may have")
    entries = parse_signature(kernel, args.signature)
    name = args.out_name or ascii_symbol(args.kernel_name or kernel.__name__)
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"{name!r} is no name for a function in C: give another one with --out-name")
    names = Names.of(name, entries, args.num_warps, args.num_stages)
    # a parameter whose name C has taken has another one there, and constants have values
    values = {entry.name: entry.c_name for entry in passed(entries) if entry.c_name != entry.name}
    values |= {entry.name: entry.value for entry in entries if entry.is_constant}
    grid = parse_grid(args.grid, values)
    options = {"num_warps": args.num_warps, "num_stages": args.num_stages, **(settings or {})}
    write = cpu_files if target.backend == "cpu" else gpu_files
    made = write(specialization_of(kernel, entries, options), target, entries, names, grid)
    base = Path(args.out_path) if args.out_path else Path(names.base)
    written = []
    for extension, content in made.items():
        path = names.file(base, extension)
        path.write_bytes(content)
        written.append(path)
    return names.function, written


def gpu_files(
    specialization: Specialization, target: GPUTarget, entries: list[Entry], names: Names, grid: list[str]
) -> dict[str, bytes]:
    """Header and source, by extension."""
    assert all(entry.c_type for entry in passed(entries))  # an error before anything is compiled
    compiled = specialization.compile_for(target)
    refuse_hidden(compiled.metadata)
    header, source = c_texts(compiled, entries, names, grid)
    return {".h": header.encode(), source_extension(target.backend): source.encode()}


def source_extension(backend: str) -> str:
    """Return the extension of sources for a backend: Triton 3.6 writes C++ for HIP."""
    return ".cpp" if backend == "hip" and not follows("aot-files") else ".c"


def refuse_hidden(metadata: Any) -> None:
    """Refuse kernels that need scratch memory or tilework's launcher, which C programs do not have."""
    for kind in ("global", "profile"):
        if getattr(metadata, f"{kind}_scratch_size") > 0:
            raise RuntimeError(f"AOT compiling kernels with {kind} scratch requirements is not yet implemented")
    if getattr(metadata, "orders_programs", False):
        raise RuntimeError("AOT compiling kernels with ordered atomics for a GPU is not implemented")
    if getattr(metadata, "rectangles", None):
        raise RuntimeError("AOT compiling kernels whose loads became copies by TMA is not implemented")


def cpu_files(
    specialization: Specialization, target: GPUTarget, entries: list[Entry], names: Names, grid: list[str]
) -> dict[str, bytes]:
    """Header and object file, by extension. C arrays have no sizes, so that any two arguments may overlap."""
    from tilework.targets.cpu.standalone import standalone_object  # lazily: loads LLVM

    args = arguments_of(entries)
    backend = find_backend(GPUTarget("cpu", "host", 1))
    parsed = backend.parse_options({"may_alias": True, **specialization.options})
    stages = backend.stages(parsed)
    module = specialization.source().stage_input(frontend_options(backend.target, parsed))
    for stage in ("ttir", "ttcir"):
        module = stages[stage](module)
    arch = "" if target.arch in ("", "host") else str(target.arch)
    first_code = 1 + (int(names.digest, 16) % (1 << 22) << 8)  # codes of many kernels in one program differ
    data, interface = standalone_object(
        module, names.function, args, grid_code(grid, args), arch, first_code, parsed.enable_fp_fusion
    )
    return {".h": header_text(entries, names, arch, interface).encode(), ".o": data}


if __name__ == "__main__":
    main()
