"""C for kernels on GPUs: a header, and a source with the code of the kernel and the function that launches it.

    CUresult add_HASH_SUFFIX(CUstream stream, CUdeviceptr x, CUdeviceptr out, int32_t n);

The code is loaded into the current context at the first call, or by `load_add_HASH_SUFFIX`, which ends the process if that fails;
a call gives the driver's code instead. For AMD GPUs the words are HIP's.
"""

from collections.abc import Sequence
from typing import Any

from tilework.aot.signature import Entry, Names, passed, values_of

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
