"""Compile a kernel ahead of time, to C: `python -m triton.tools.compile [options] FILE`.

    python -m triton.tools.compile add.py -n add -s "*fp32:16, *fp32:16, i32, 1024" -g "(n + 1023) / 1024, 1, 1" -t cuda:90:32 -w 4
    gcc -c add.*.c -o add.o

writes a header and a source with one function, `CUresult add_HASH_SUFFIX(CUstream stream, CUdeviceptr x, CUdeviceptr out, int32_t
n)`, that loads the cubin (which is part of the source) at its first call and launches it. `triton.tools.link` makes one function
of several, which chooses by the arguments. For AMD GPUs (``-t hip:gfx942:64``) the files are a header and a ``.cpp``, in which the words are
HIP's.

An entry of the signature is a type (``*fp32``, ``i32``), with ``:16`` for a multiple of 16 or ``:1`` for the number 1, or a
number: the value of a compile-time parameter. No GPU is needed if the target is named.
"""

import argparse
import hashlib
import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilework.compiler import ASTSource, compile
from tilework.language.function import JITFunction
from tilework.runtime.devices.active_driver import driver
from tilework.targets.base import GPUTarget

__all__ = ["CompileArgs", "compile_kernel", "desc", "main"]

desc = """
Compile a kernel ahead of time: a C source with its cubin and a function that launches it, and the header of that.

The signature has one entry for each parameter of the kernel, separated by commas: a type (*fp32, i32, fp64), with :16 for a
multiple of 16 and :1 for the number 1, or the value of a compile-time parameter. The grid is three C expressions, which may use
the names of the parameters.
"""
PLAIN_SHARED = 49152  # a block has more only when it is asked for
C_TYPES = {
    "i1": "int8_t",
    "u1": "uint8_t",
    "fp16": "uint16_t",
    "bf16": "uint16_t",
    "fp32": "float",
    "f32": "float",
    "fp64": "double",
}
C_TYPES |= {f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}_t" for sign in "iu" for bits in (8, 16, 32, 64)}


@dataclass
class CompileArgs:
    """What the command line says."""

    path: str = ""
    kernel_name: str = ""
    signature: str = ""
    grid: str = ""
    target: str | None = None
    num_warps: int = 1
    num_stages: int = 3
    out_name: str | None = None
    out_path: Path | None = None


@dataclass(frozen=True)
class Entry:
    """One parameter: its entry in the signature, and what that means."""

    name: str
    text: str
    type: str
    value: int | float | None = None
    hint: int | None = None

    @property
    def is_constant(self) -> bool:
        return self.value is not None

    @property
    def c_type(self) -> str:
        if self.type.startswith("*"):
            return "CUdeviceptr"
        if self.type not in C_TYPES:
            raise ValueError(f"{self.name}: {self.text!r} is not a type that a C function can take")
        return C_TYPES[self.type]


def main() -> None:
    parser = argparse.ArgumentParser(description=desc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", help="the Python file with the kernel")
    parser.add_argument("--kernel-name", "-n", type=str, required=True, help="the name of the kernel")
    parser.add_argument(
        "--target", "-t", type=str, help="backend:arch:warp size, as cuda:90:32; default: the current device"
    )
    parser.add_argument("--num-warps", "-w", type=int, default=1, help="warps of a program")
    parser.add_argument("--num-stages", "-ns", type=int, default=3, help="stages of pipelined loops")
    parser.add_argument("--out-name", "-on", type=str, help="how the C functions begin; default: the kernel's name")
    parser.add_argument("--out-path", "-o", type=Path, help="how the files begin; default: the name, here")
    parser.add_argument("--signature", "-s", type=str, required=True, help="the types of the parameters")
    parser.add_argument("--grid", "-g", type=str, required=True, help="the launch grid")
    compile_kernel(CompileArgs(**vars(parser.parse_args())))


def compile_kernel(args: CompileArgs) -> tuple[str, list[Path]]:
    """Compile, and write header and source; the name of the C function, and the files."""
    kernel = load_kernel(args.path, args.kernel_name)
    grid = [part.strip() for part in args.grid.split(",")]
    assert len(grid) == 3, f"the grid has three parts, got {args.grid!r}"
    target = parse_target(args.target)
    entries = parse_signature(kernel, args.signature)
    out_name = args.out_name or args.kernel_name
    out_path = Path(args.out_path) if args.out_path else Path(out_name)
    meta = f"warps{args.num_warps}xstages{args.num_stages}"
    digest = hashlib.sha256(" ".join([*(entry.text for entry in entries), meta]).encode()).hexdigest()[:8]
    suffix = f"{digest}_" + "".join(f"{index}{hint_letter(entry)}" for index, entry in enumerate(entries))
    settings = {"num_warps": args.num_warps, "num_stages": args.num_stages}
    compiled = compile(source_of(kernel, entries), target, settings)
    refuse_scratch(compiled.metadata)
    header, source = c_texts(compiled, entries, f"{out_name}_{suffix}", meta, grid, settings)
    written = []
    for extension, text in ((".h", header), (".c" if target.backend == "cuda" else ".cpp", source)):
        path = out_path.with_suffix(f".{suffix}{extension}")
        path.write_text(text)
        written.append(path)
    return f"{out_name}_{suffix}", written


def load_kernel(path: str, name: str) -> JITFunction:
    """The kernel in a file, which is executed as a module; a tuned kernel counts as the kernel inside."""
    file = Path(path)
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None, f"{path} is no Python file"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name)
    while not isinstance(found, JITFunction) and hasattr(found, "fn"):
        found = found.fn
    if not isinstance(found, JITFunction):
        raise TypeError(f"{name} of {path} is no kernel, but {type(found).__name__}")
    return found


def parse_target(text: str | None) -> GPUTarget:
    """``cuda:90:32``; the current device if it is not named."""
    if text is None:
        target = driver.active.get_current_target()
    else:
        backend, arch, size = text.split(":")
        target = GPUTarget(backend, int(arch) if arch.isdecimal() else arch, int(size))
    if target.backend not in WORDS:
        raise ValueError(
            f"C sources are made for GPUs ({', '.join(WORDS)}), not for {target.backend}: name a target, for example cuda:90:32"
        )
    return target


def parse_signature(kernel: JITFunction, text: str) -> list[Entry]:
    """An entry for each parameter; see the module docstring."""
    texts = [part.strip() for part in text.split(",")]
    if len(texts) != len(kernel.arg_names):
        raise ValueError(
            f"{kernel.__name__} has the parameters {', '.join(kernel.arg_names)}; the signature has {len(texts)} entries"
        )
    return [parse_entry(name, part) for name, part in zip(kernel.arg_names, texts, strict=True)]


def parse_entry(name: str, text: str) -> Entry:
    if (value := number(text)) is not None:
        return Entry(name, text, "constexpr", value)
    type, _, rest = text.partition(":")
    hint = number(rest)
    if hint is not None:
        assert hint in (1, 16), f"Only 1 and 16 are valid hints, got {hint}"
    return Entry(name, text, type.strip(), 1 if hint == 1 else None, int(hint) if hint is not None else None)


def number(text: str) -> int | float | None:
    """An integer or float literal."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def hint_letter(entry: Entry) -> str:
    return {1: "c", 16: "d"}.get(entry.hint or 0, "")


def source_of(kernel: JITFunction, entries: Sequence[Entry]) -> ASTSource:
    """The kernel with the types and facts of a signature."""
    signature = {entry.name: "constexpr" if entry.is_constant else entry.type for entry in entries}
    constants = {entry.name: entry.value for entry in entries if entry.is_constant}
    multiples = [(index,) for index, entry in enumerate(entries) if entry.hint == 16]
    return ASTSource(kernel, signature, constants, {path: [["tt.divisibility", 16]] for path in multiples})


def refuse_scratch(metadata: Any) -> None:
    """Kernels that need memory of their own are not for C programs."""
    for kind in ("global", "profile"):
        if getattr(metadata, f"{kind}_scratch_size") > 0:
            raise RuntimeError(f"AOT compiling kernels with {kind} scratch requirements is not yet implemented")


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

void unload_{name}(void) {{
  CUDA_CHECK(cuModuleUnload({name}_mod));
  {name}_mod = NULL;
  {name}_func = NULL;
}}

void load_{name}(void) {{
  CUDA_CHECK(cuModuleLoadData(&{name}_mod, {name}_cubin));
  CUDA_CHECK(cuModuleGetFunction(&{name}_func, {name}_mod, "{symbol}"));
{more_shared}}}

/* {settings} */
CUresult {name}(CUstream stream{parameters}) {{
  if ({name}_func == NULL)
    load_{name}();
  unsigned int gX = {grid[0]};
  unsigned int gY = {grid[1]};
  unsigned int gZ = {grid[2]};
  CUdeviceptr global_scratch = 0;
  CUdeviceptr profile_scratch = 0;
  void *args[] = {{ {arguments} }};
  if (gX * gY * gZ > 0)
    return cuLaunchKernel({name}_func, gX, gY, gZ, {warps} * {warp_size}, 1, 1, {shared}, stream, args, NULL);
  return CUDA_SUCCESS;
}}
"""


MORE_SHARED = """  CUdevice device = 0;
  int limit = 0;
  CUDA_CHECK(cuDeviceGetAttribute(&limit, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
  if (limit > {plain}) {{
    CUDA_CHECK(cuFuncSetCacheConfig({name}_func, CU_FUNC_CACHE_PREFER_SHARED));
    CUDA_CHECK(cuFuncSetAttribute({name}_func, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, limit));
  }}
"""
ERROR_TEXTS = {
    "cuda": "const char *text = NULL;\n    cuGetErrorString(code, &text);",
    "hip": "const char *text = hipGetErrorString(code);",
}
WORDS: dict[str, dict[str, str]] = {
    "cuda": {},
    "hip": {
        "cuda.h": "hip/hip_runtime.h",
        "CUresult": "hipError_t",
        "CUDA_SUCCESS": "hipSuccess",
        "CUDA_CHECK": "HIP_CHECK",
        "[CUDA]: %s (%s": "[HIP]: %s (%s",
        "CUstream": "hipStream_t",
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


def c_texts(
    compiled: Any, entries: Sequence[Entry], name: str, meta: str, grid: Sequence[str], settings: dict[str, int]
) -> tuple[str, str]:
    """Header and source of a compiled kernel."""
    metadata, backend = compiled.metadata, compiled.metadata.target.backend
    binary = compiled.asm[metadata.binary_ext]
    needs_more = backend == "cuda" and metadata.shared > PLAIN_SHARED
    passed = [entry for entry in entries if not entry.is_constant]
    linked = [entry for entry in entries if not entry.is_constant or entry.hint == 1]
    values = [entry for entry in entries if entry.is_constant and entry.hint is None]
    constants = [*(str(entry.value) for entry in values), *("1" for entry in entries if entry.hint == 1)]
    parameters = "".join(f", {entry.c_type} {entry.name}" for entry in passed)
    facts = {
        "name": name,
        "parameters": parameters,
        "full": ", ".join(f"{entry.c_type} {entry.name}" for entry in linked),
        "algorithm": f"{'x'.join(constants)}_{meta}",
        "hints": ",".join(str(entry.hint or 0) for entry in linked),
        "size": len(binary),
        "data": ", ".join(f"0x{byte:02x}" for byte in binary),
        "symbol": metadata.name,
        "shared": metadata.shared,
        "text_of_code": ERROR_TEXTS[backend],
        "more_shared": MORE_SHARED.format(plain=PLAIN_SHARED, name=name) if needs_more else "",
        "grid": grid,
        "arguments": ", ".join(
            f"&{each}" for each in [*(entry.name for entry in passed), "global_scratch", "profile_scratch"]
        ),
        "warps": metadata.num_warps,
        "warp_size": metadata.target.warp_size,
        "settings": [
            *(f"{entry.name}={entry.value}" for entry in values),
            *(f"{key}={value}" for key, value in settings.items()),
        ],
    }
    header, source = HEADER, SOURCE
    for word, other in WORDS[backend].items():
        header, source = header.replace(word, other), source.replace(word, other)
        facts |= {key: facts[key].replace(word, other) for key in ("parameters", "full")}
    return header.format(**facts), source.format(**facts)


if __name__ == "__main__":
    main()
