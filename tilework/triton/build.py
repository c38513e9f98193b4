"""Extension modules in C, compiled on request.

    module = compile_module_from_src(C_SOURCE, "fast_hash")      # a Python extension module
    module.hash(b"...")

Tilework itself needs no compiler; this is for programs that bring their own launchers. The result is kept in the cache,
named by its source, the flags and the kind of machine; a cached file that does not load is built again.
"""

import functools
import hashlib
import importlib.machinery
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from types import ModuleType

from tilework import knobs
from tilework.runtime.kernel_cache.managers import get_cache_manager

__all__ = ["_build", "_library_flag", "_load_module_from_path", "compile_module_from_src", "platform_key"]

SUFFIX = importlib.machinery.EXTENSION_SUFFIXES[0]
COMPILERS = ("cc", "gcc", "clang")


@functools.cache
def platform_key() -> str:
    """Return the platform that a compiled module is valid for."""
    return "-".join((platform.machine(), platform.system(), *platform.architecture(), sys.version, SUFFIX))


def find_compiler() -> str:
    """The C compiler: the knob `build.cc` (CC), else the first one on the PATH."""
    found = knobs.build.cc or next(filter(None, map(shutil.which, COMPILERS)), None)
    if found is None:
        raise RuntimeError(
            f"Failed to find a C compiler: none of {', '.join(COMPILERS)} is on the PATH. Install one, or name it with"
            " the environment variable CC (knobs.build.cc)."
        )
    return found


def _build(
    name: str,
    src: str,
    srcdir: str,
    library_dirs: Sequence[str] = (),
    include_dirs: Sequence[str] = (),
    libraries: Sequence[str] = (),
    ccflags: Sequence[str] = (),
) -> str:
    """Compile the file `src` to an extension module in `srcdir`, and return its path."""
    if knobs.build.impl is not None:
        return knobs.build.impl(name, src, srcdir, list(library_dirs), list(include_dirs), list(libraries))
    built = os.path.join(srcdir, f"{name}{SUFFIX}")
    includes = [*include_dirs, *sorted(knobs.build.backend_dirs), srcdir, sysconfig.get_paths()["include"]]
    command = [find_compiler(), src, "-O3", "-shared", "-fPIC", "-Wno-psabi", "-o", built]
    command += [_library_flag(lib) for lib in libraries]
    command += [f"-L{folder}" for folder in library_dirs] + [f"-I{folder}" for folder in includes] + list(ccflags)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed with exit code {done.returncode}:\n{done.stderr}")
    return built


def _library_flag(lib: str) -> str:
    """Return the linker flag of a library, by its name or by its file."""
    return f"-l:{lib}" if ".so" in lib else f"-l{lib}"


def _load_module_from_path(name: str, path: str) -> ModuleType:
    """The extension module in a file."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"Failed to load newly compiled {name} from {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_module_from_src(
    src: str,
    name: str,
    library_dirs: list[str] | None = None,
    include_dirs: list[str] | None = None,
    libraries: list[str] | None = None,
    ccflags: list[str] | None = None,
) -> ModuleType:
    """The extension module `name` with the C source `src`, from the cache or compiled now."""
    flags = (library_dirs or [], include_dirs or [], libraries or [], ccflags or [])
    key = hashlib.sha256(repr((src, name, flags, platform_key())).encode()).hexdigest()
    manager = get_cache_manager(key)
    file = f"{name}{SUFFIX}"
    cached = manager.get_file(file)
    if cached is not None:
        try:
            return _load_module_from_path(name, cached)
        except (RuntimeError, ImportError) as error:
            print(f"tilework: {cached} does not load and is built again: {error}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, f"{name}.c")
        with open(source, "w") as stream:
            stream.write(src)
        built = _build(name, source, folder, *flags)
        with open(built, "rb") as binary:
            data = binary.read()
        path = manager.put(data, file, binary=True)
        # without a usable cache the built file only exists here; a loaded file may be deleted
        return _load_module_from_path(name, path if path and os.path.exists(path) else built)
