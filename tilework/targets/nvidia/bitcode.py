"""Bitcode libraries: NVIDIA's libdevice, and what the user names in `extern_libs`.

    define ptx_kernel void @k(...) { ... %y = call float @__nv_expf(float %x) ... }
    declare float @__nv_expf(float)

A library is read only when the text declares a function that it may hold. Libdevice has 400 functions that a kernel
does not need, and reading and optimising all of them takes ten times as long as the kernel: a function is cut out of it
once, with what it calls, and its text is kept. Other libraries are linked whole and stripped afterwards.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.errors import StageError
from tilework.targets.llvm.apart import apart
from tilework.targets.llvm.binding import llvm
from tilework.targets.llvm.compile import closing, data_layout

PREFIX = "__nv_"
BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
FLUSHING = '!llvm.module.flags = !{!0}\n!0 = !{i32 4, !"nvvm-reflect-ftz", i32 1}\n'


def missing(module: Any) -> list[str]:
    """The functions that a module calls and does not have; LLVM's own are no functions."""
    return [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]


def link_libraries(
    module: Any, context: Any, machine: Any, libraries: Sequence[tuple[str, str]], flushes: bool
) -> bool:
    """Link what the module needs of the libraries; whether there was anything."""
    linked = False
    for name, path in libraries:
        if name != "libdevice" and (wanted := set(missing(module))):
            with read_library(name, path, context) as library:
                if any(f.name in wanted for f in library.functions if not f.is_declaration):
                    link(module, library)
                    linked = True
    if wanted := [name for name in missing(module) if name.startswith(PREFIX)]:
        path = dict(libraries).get("libdevice") or knobs.nvidia.find_libdevice()
        if path is None:
            raise StageError(
                f"{wanted[0]} is a function of NVIDIA's libdevice, and there is no libdevice.10.bc on this machine:"
                " install nvidia-nvvm or a CUDA toolkit, or set TRITON_LIBDEVICE_PATH to the file"
            )
        for name in wanted:
            with llvm.parse_assembly(cut_out(path, stamp(path), name, machine, flushes), context) as function:
                link(module, function)
        linked = True
    if linked:
        strip(module, machine)
    return linked


def read_library(name: str, path: str, context: Any) -> Any:
    """A library as a module: bitcode or LLVM text."""
    try:
        data = Path(path).read_bytes()
        return llvm.parse_bitcode(data, context) if data[:4] in BITCODE else llvm.parse_assembly(data.decode(), context)
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        raise StageError(f"the library {name!r} ({path}) cannot be read: {error}") from None


def link(module: Any, library: Any) -> None:
    """Add a library to a module, for the module alone: what comes with it is internal."""
    library.triple, library.data_layout = module.triple, module.data_layout
    names = [f.name for f in library.functions if not f.is_declaration and not is_defined(module, f.name)]
    try:
        module.link_in(library)
    except RuntimeError as error:
        raise StageError(f"a library does not fit the kernel: {error}") from None
    for name in names:
        module.get_function(name).linkage = "internal"


def is_defined(module: Any, name: str) -> bool:
    """Whether the module itself has a function."""
    return any(f.name == name and not f.is_declaration for f in module.functions)


@contextmanager
def pass_manager(machine: Any, level: int) -> Iterator[tuple[Any, Any]]:
    with (
        llvm.create_pipeline_tuning_options(speed_level=level) as tuning,
        llvm.create_pass_builder(machine, tuning) as passes,
        closing(llvm.create_new_module_pass_manager()) as manager,
    ):
        yield passes, manager


def strip(module: Any, machine: Any) -> None:
    """Inline what asks for it, and drop what nobody calls."""
    with pass_manager(machine, 1) as (passes, manager):
        manager.add_always_inliner_pass()
        manager.add_global_dead_code_eliminate_pass()
        manager.run(module, passes)


def stamp(path: str) -> tuple[int, int]:
    """What changes when a file does."""
    try:
        status = Path(path).stat()
    except OSError as error:
        raise StageError(
            f"libdevice ({path}) cannot be read: {error}; TRITON_LIBDEVICE_PATH names another file"
        ) from None
    return status.st_mtime_ns, status.st_size


@cache
@apart
def cut_out(path: str, changed: tuple[int, int], name: str, machine: Any, flushes: bool) -> str:
    """One function of libdevice with what it calls, optimised, as LLVM text.

    Its variants are chosen here: with `flushes` those that treat denormal numbers as zero.
    """
    with llvm.create_context() as context, read_library("libdevice", path, context) as library:
        library.triple, library.data_layout = machine.triple, data_layout(machine)
        if not is_defined(library, name):
            raise StageError(f"libdevice ({path}) has no function {name}")
        if flushes:
            with llvm.parse_assembly(FLUSHING, context) as flags:
                library.link_in(flags)
        for function in library.functions:
            if not function.is_declaration:
                function.linkage = "external" if function.name == name else "internal"
        with pass_manager(machine, 2) as (passes, manager):
            manager.add_global_dead_code_eliminate_pass()
            manager.run(library, passes)
            with closing(passes.getModulePassManager()) as pipeline:
                pipeline.run(library, passes)
        return str(library)
