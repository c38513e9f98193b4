"""Kernels as shared libraries, which the C++ code of torch's `cpp_wrapper` and AOTInductor loads.

    kernel.asm["so"]             exports the kernel, under its name
    kernel.asm["launcher.so"]    exports run_from_nativert(gx, gy, gz, threads, args, kernel)

`args` has an entry for each parameter in the kernel's signature: the address of a tensor's memory, the address of a
scalar, NULL for a constant. Both libraries are compiled from C++ when torch requests them; the kernel itself is the
object file that C programs link (`targets/cpu/standalone.py`). A kernel that fails throws `std::runtime_error`.
"""

import functools
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tilework import knobs
from tilework.runtime.devices.conditional_launch import unconditional

COMPILERS = ("c++", "g++", "clang++")
FLAGS = ("-std=c++17", "-O2", "-shared", "-fPIC")
LAUNCHER = """#include <cstdint>

typedef void Kernel(uint32_t, uint32_t, uint32_t, int, void **);

extern "C" void run_from_nativert(uint32_t x, uint32_t y, uint32_t z, int threads, void **args, void *kernel) {
  ((Kernel *)kernel)(x, y, z, threads, args);
}
"""
KERNEL = """#define TT_PTHREADS
{includes}
#include <stdexcept>

extern "C" {{
TTresult {entry}(TTstream threads, {parameters});
const char *{entry}_error_string(TTresult code);

void {name}(uint32_t x, uint32_t y, uint32_t z, int threads, void **args) {{
  TTthreads started = {{threads, 0, tt_pthreads_run}};
  TTresult code = {entry}(threads > 1 ? &started : nullptr, {arguments});
  if (code != TT_SUCCESS)
    throw std::runtime_error({entry}_error_string(code));
}}
}}
"""
C_TYPES = {"ptr": "void *", "f32": "float", "f64": "double", "i1": "int8_t"}
C_TYPES |= {f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)}
AXES = ("x", "y", "z")


def kernel_library(ttcir: bytes | str, metadata: Mapping[str, Any]) -> bytes:
    """The shared library of a kernel, from its loop nests; arrays of C++ have no sizes, so that any two may overlap."""
    # lazily: few programs use it
    from tilework.aot.c_files import grid_code, includes
    from tilework.compiler import compile
    from tilework.ir.parser import parse_module
    from tilework.targets.cpu.standalone import Argument, standalone_object

    compiler = cxx_compiler()
    if without := unconditional(SimpleNamespace(**metadata)):
        plain = compile(metadata["source"], metadata["target"], {**metadata["requested_options"], **without})
        return kernel_library(plain.asm["ttcir"], {**plain.metadata._asdict(), "source": plain.src})
    name, kinds = metadata["name"], metadata["interface"]["parameters"]
    passed = [index for index, type in enumerate(metadata["source"].signature.values()) if type != "constexpr"]
    if len(passed) != len(kinds) or not C_TYPES.keys() >= set(kinds):
        raise RuntimeError(
            f"{name}: torch passes tensors, integers and floats to kernels in C++, and this kernel takes others too"
        )
    types = [C_TYPES[kind] for kind in kinds]
    args = [Argument(f"a{index}", type) for index, type in enumerate(types)]
    args += [Argument(axis, "uint32_t", is_of_kernel=False) for axis in AXES]
    text = ttcir if isinstance(ttcir, str) else ttcir.decode()
    entry, module = f"{name}_on_threads", parse_module(text, "kernel.ttcir")
    fuses = metadata["enable_fp_fusion"]
    data, _ = standalone_object(module, entry, args, grid_code(AXES, args), "", 1, fuses)
    read = [argument(f"args[{at}]", type) for at, type in zip(passed, types, strict=True)]
    source = KERNEL.format(
        includes=includes(), entry=entry, name=name, parameters=", ".join(arg.c_type for arg in args),
        arguments=", ".join([*read, *AXES]),
    )  # fmt: skip
    return shared_library(compiler, source, data)


def argument(entry: str, type: str) -> str:
    """A C++ expression for an argument, from its entry in `args`. torch passes integers as int64_t, and floats as it
    declares them in its own code, whatever the kernel takes."""
    if type == "void *":
        return entry
    given = "int64_t" if "int" in type else float_type()
    return f"({type})*({given} *){entry}"


def float_type() -> str:
    """The type of torch's variables for floats: `float` in 2.13, also for kernels that take a double."""
    module = sys.modules.get("torch._inductor.codegen.cpp_wrapper_cpu")
    wrapper: Any = getattr(module, "DeferredCpuTritonCallWrapper", None)
    return "double" if wrapper is None else wrapper._get_cpp_param_type(None, "", float).strip()


def launcher_library(ttcir: bytes | str, metadata: Mapping[str, Any]) -> bytes:
    """The shared library that calls a kernel: the same for all."""
    return common_launcher(cxx_compiler())


@functools.cache
def common_launcher(compiler: str) -> bytes:
    return shared_library(compiler, LAUNCHER)


def cxx_compiler() -> str:
    """The C++ compiler: the knob `build.cxx` (CXX), else the first one on the PATH."""
    candidates = (knobs.build.cxx,) if knobs.build.cxx else COMPILERS
    if (found := next(filter(None, map(shutil.which, candidates)), None)) is None:
        raise RuntimeError(
            f"Failed to find a C++ compiler: none of {', '.join(candidates)} is on the PATH. torch's cpp_wrapper and"
            " AOTInductor"
            " call kernels from C++, so these two need one: install it, or name it with the environment variable CXX."
        )
    return found


def shared_library(compiler: str, source: str, object_code: bytes = b"") -> bytes:
    """Compile C++, and link it with an object file."""
    with tempfile.TemporaryDirectory() as folder:
        file, made = Path(folder, "source.cpp"), Path(folder, "made.so")
        file.write_text(source)
        inputs = [str(file)]
        if object_code:
            inputs.append(str(Path(folder, "kernel.o")))
            Path(inputs[-1]).write_bytes(object_code)
        command = [compiler, *FLAGS, *inputs, "-o", str(made), "-lm", "-lpthread"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed with exit code {done.returncode}:\n{done.stderr}")
        return made.read_bytes()
