"""Triton's names for the parts of building a C module."""

from collections.abc import Sequence

from tilework.runtime.devices.build import build, load_module_from_path

__all__ = ["_build", "_library_flag", "_load_module_from_path"]


def _build(
    name: str,
    src: str,
    srcdir: str,
    library_dirs: Sequence[str],
    include_dirs: Sequence[str],
    libraries: Sequence[str],
    ccflags: Sequence[str],
) -> str:
    """Compile the file `src` to an extension module in `srcdir`, and return its path."""
    return build(name, src, srcdir, library_dirs, include_dirs, libraries, ccflags)


def _library_flag(lib: str) -> str:
    """How the linker is told about a library: by its name, or by its file."""
    return f"-l:{lib}" if ".so" in lib else f"-l{lib}"


_load_module_from_path = load_module_from_path
