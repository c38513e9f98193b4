"""Compile a kernel ahead of time, to C: `python -m tilework.tools.compile [options] FILE`, Triton's
`triton.tools.compile`.

    python -m tilework.tools.compile add.py -n add -s "*fp32:16, *fp32:16, i32, 1024" -g "(n + 1023) / 1024, 1, 1" -t
    cuda:90:32 -w 4 gcc -c add.*.c -o add.o

writes a header and a source with one function, `CUresult add_HASH_SUFFIX(CUstream stream, CUdeviceptr x, CUdeviceptr
out, int32_t n)`, that loads the cubin (which is part of the source) at its first call and launches it.
`tilework.tools.link` makes one function of several, which chooses by the arguments. For AMD GPUs (``-t hip:gfx942:64``)
the files are a header and a ``.cpp``, in which the words are HIP's; for CPUs (``-t cpu``) a header and an object file,
for which no C compiler is needed.

`docs/aot.md` has all of it, with examples.
"""

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilework.aot.c_sources import EXTENSIONS, arguments_of, c_texts, grid_code, header_text
from tilework.aot.find_kernels import executed, kernel_in
from tilework.aot.signature import Entry, Names, parse_grid, parse_signature, passed, source_of
from tilework.compiler import compile
from tilework.errors import CompilationError, TritonError
from tilework.language.function import JITFunction, ascii_symbol
from tilework.runtime.compile.sources import frontend_options
from tilework.runtime.devices.active_driver import driver
from tilework.target import Target
from tilework.targets.base import GPUTarget, find_backend

desc = """
Compile a kernel ahead of time: for GPUs a C source with its cubin and a function that launches it, and the header of
that; for CPUs an object file with that function, and its header.

The signature has one entry for each parameter of the kernel, separated by commas: a type (*fp32, i32, fp64), with :16
for a multiple of 16 and :1 for the value 1, or the value of a compile-time parameter. The grid is three C expressions,
which may use the names of the parameters.
"""
BACKENDS = (*EXTENSIONS, "cpu")


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
    """The command; what is wrong is said on stderr, and the exit code is 1."""
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
    parser.add_argument("--num-warps", "-w", type=int, default=1, help="warps of a program")
    parser.add_argument("--num-stages", "-ns", type=int, default=3, help="stages of pipelined loops")
    parser.add_argument("--out-name", "-on", type=str, help="how the C functions begin; default: the kernel's name")
    parser.add_argument("--out-path", "-o", type=Path, help="how the files begin; default: the name, here")
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
    """Compile, and write header and source (or object); the name of the C function, and the files."""
    return write_kernel(load_kernel(args.path, args.kernel_name), args)


def load_kernel(path: str, name: str) -> JITFunction:
    """The kernel in a file, which is executed as a module; a tuned kernel counts as the kernel inside."""
    sys.path.insert(0, str(Path(path).parent))
    return kernel_in(executed(path, Path(path).stem), name)


def write_kernel(
    kernel: JITFunction, args: CompileArgs, settings: dict[str, Any] | None = None
) -> tuple[str, list[Path]]:
    """The same for a kernel that is loaded; `settings` are further options of the compiler."""
    target = parse_target(args.target)
    entries = parse_signature(kernel, args.signature)
    name = args.out_name or ascii_symbol(args.kernel_name or kernel.__name__)
    if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"{name!r} is no name for a function in C: give another one with --out-name")
    names = Names.of(name, entries, args.num_warps, args.num_stages)
    # a parameter whose name C has taken has another one there, and constants have values
    words = {entry.name: entry.c_name for entry in passed(entries) if entry.c_name != entry.name}
    words |= {entry.name: entry.value for entry in entries if entry.is_constant}
    grid = parse_grid(args.grid, words)
    options = {"num_warps": args.num_warps, "num_stages": args.num_stages, **(settings or {})}
    made = (cpu_files if target.backend == "cpu" else gpu_files)(kernel, entries, names, grid, target, options)
    base = Path(args.out_path) if args.out_path else Path(names.base)
    written = []
    for extension, content in made.items():
        path = names.file(base, extension)
        path.write_bytes(content)
        written.append(path)
    return names.function, written


def parse_target(text: str | None) -> GPUTarget:
    """``cuda:90:32``, ``hip:gfx942:64``, ``cpu``, ``cpu:x86-64-v3``; the current device if it is not named."""
    backend, *rest = (text or "").split(":")
    if text is None:
        target = driver.active.get_current_target()
    elif len(rest) == 2 and rest[1].isdecimal():
        target = GPUTarget(backend, int(rest[0]) if rest[0].isdecimal() else rest[0], int(rest[1]))
    else:
        target = GPUTarget.parse(text)
    if target.backend not in BACKENDS:
        raise ValueError(f"kernels are compiled ahead of time for {', '.join(BACKENDS)}, not for {target.backend}")
    return target


def gpu_files(
    kernel: JITFunction, entries: list[Entry], names: Names, grid: list[str], target: GPUTarget, options: dict[str, Any]
) -> dict[str, bytes]:
    """Header and source, by extension."""
    for entry in entries:
        assert entry.is_constant or entry.c_type
    most = Target.of(target).limits.threads
    if options["num_warps"] * target.warp_size > most:
        raise ValueError(f"{options['num_warps']} warps are more threads than the {most} that a block may have")
    compiled = compile(source_of(kernel, entries), target, options)
    refuse_hidden(compiled.metadata)
    header, source = c_texts(compiled, entries, names, grid)
    return {".h": header.encode(), EXTENSIONS[target.backend]: source.encode()}


def refuse_hidden(metadata: Any) -> None:
    """Kernels that need memory of their own, or a launcher of ours, are not for C programs."""
    for kind in ("global", "profile"):
        if getattr(metadata, f"{kind}_scratch_size") > 0:
            raise RuntimeError(f"AOT compiling kernels with {kind} scratch requirements is not yet implemented")
    if getattr(metadata, "takes_turns", False):
        raise RuntimeError("AOT compiling kernels with ordered atomics for a GPU is not implemented")
    if getattr(metadata, "rectangles", None):
        raise RuntimeError("AOT compiling kernels whose loads became copies by TMA is not implemented")


def cpu_files(
    kernel: JITFunction, entries: list[Entry], names: Names, grid: list[str], target: GPUTarget, options: dict[str, Any]
) -> dict[str, bytes]:
    """Header and object file, by extension. C arrays have no sizes, so that any two arguments may overlap."""
    from tilework.targets.cpu.standalone import standalone_object  # lazily: loads LLVM

    args = arguments_of(entries)
    backend = find_backend(GPUTarget("cpu", "host", 1))
    parsed = backend.parse_options({"may_alias": True, **options})
    stages = backend.stages(parsed)
    module = source_of(kernel, entries).product(frontend_options(backend.target, parsed))
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
