"""C for kernels that are compiled ahead of time: headers, and for GPUs the source with the code and the launching
function.

    CUresult add_HASH_SUFFIX(CUstream stream, CUdeviceptr x, CUdeviceptr out, int32_t n);        for GPUs
    TTresult add_HASH_SUFFIX(TTstream stream, TTptr x, TTptr out, int32_t n);                    for CPUs

For GPUs the code is loaded into the current context at the first call, or by `load_add_HASH_SUFFIX`, which ends the
process if that fails; a call returns the driver's error code instead. For AMD GPUs the identifiers are HIP's.

For CPUs C programs link an object file (`targets/cpu/standalone.py`). The stream selects the threads that run the
programs of the grid: NULL is the calling thread, one program after the other; else a `TTthreads` whose function `run`
calls back from any number of threads. `tt_pthreads_run` is one that starts threads and joins them at each launch.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilework.aot.signature import POINTER, Entry, GridError, Names, parse_expression, passed, values_of

if TYPE_CHECKING:
    from tilework.targets.cpu.run.interface import Interface
    from tilework.targets.cpu.standalone import Argument, GridCode

PLAIN_SHARED = 49152  # a block has more only when it is asked for
EXTENSIONS = {"cuda": ".c", "hip": ".cpp"}

HEADER = """#ifndef TT_KERNEL_INCLUDES
#define TT_KERNEL_INCLUDES

#include <cuda.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#endif

void unload_{name}(void);
void load_{name}(void);
// tt-linker: {name}:{full}:{algorithm}
// tt-linker-hints: {name}:{hints}
// tt-linker-target: {target}
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
HIP_WORDS = {"cuda.h": "hip/hip_runtime.h", "CUresult": "hipError_t", "CUstream": "hipStream_t"}
WORDS: dict[str, dict[str, str]] = {
    "cuda": {},
    "hip": {
        **HIP_WORDS,
        "CUDA_SUCCESS": "hipSuccess",
        "CUDA_CHECK": "HIP_CHECK",
        "[CUDA]: %s (%s": "[HIP]: %s (%s",
        "CUdeviceptr": "hipDeviceptr_t",
        "CUmodule": "hipModule_t",
        "CUfunction": "hipFunction_t",
        "cuModule": "hipModule",
        "cuLaunchKernel": "hipModuleLaunchKernel",
        "_cubin": "_hsaco",
        "#ifndef TT_KERNEL_INCLUDES\n#define TT_KERNEL_INCLUDES\n": "#pragma once",
        "\n#endif\n": "",
    },
}


def c_texts(compiled: Any, entries: Sequence[Entry], names: Names, grid: Sequence[str]) -> tuple[str, str]:
    """Header and source of a compiled kernel."""
    metadata, backend = compiled.metadata, compiled.metadata.target.backend
    binary, arguments = compiled.asm[metadata.binary_ext], passed(entries)
    needs_more = backend == "cuda" and metadata.shared > PLAIN_SHARED
    facts = {
        **names.words(entries),
        "target": backend,
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
    for word, other in WORDS[backend].items():
        header, source = header.replace(word, other), source.replace(word, other)
        facts |= {key: facts[key].replace(word, other) for key in ("parameters", "full")}
    return header.format(**facts), source.format(**facts)


CPU_INCLUDES = """#ifndef TT_CPU_INCLUDES
#define TT_CPU_INCLUDES

#include <stddef.h>
#include <stdint.h>

typedef void *TTptr;
typedef int32_t TTresult; /* {codes}; a number above 0 is an assert that failed: NAME_error_string says which */
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
// tt-linker: {name}:{full}:{algorithm}
// tt-linker-hints: {name}:{hints}
// tt-linker-target: cpu
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
    words = {key: word.replace(POINTER, "TTptr") for key, word in names.words(entries).items()}
    shown = ", ".join(settings).replace("*/", "* /")
    return CPU_HEADER.format(includes=includes(), settings=shown, arch=arch or "host", **words)


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
