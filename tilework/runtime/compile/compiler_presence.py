"""Check that the compiler is installed: the distribution `tilework-runtime` (`packages/runtime`) is without it.

    require_compiler()        # before any of it is imported; the error names what is missing and how to install it

Without it a program can launch the kernels of a bundle (docs/serving.md).
"""

import sys
from functools import cache
from importlib.util import find_spec

from tilework.errors import CompilerMissing

PARTS = ("tilework.frontend", "xdsl", "llvmlite", "ml_dtypes")  # one module of each package that the compiler needs
INSTALL = "pip install . in a checkout of tilework (after pip uninstall tilework-runtime, where that is installed)"


@cache
def missing_parts() -> tuple[str, ...]:
    """Return the parts of the compiler that are not installed."""
    return tuple(part for part in PARTS if not is_there(part))


def is_there(part: str) -> bool:
    try:
        return find_spec(part) is not None
    except (ImportError, ValueError):  # an import hook refuses it, or `sys.modules` has another object
        return False


def has_compiler() -> bool:
    """Return True if the compiler is installed."""
    return not missing_parts()


def is_compiler_loaded() -> bool:
    """Return True if this process has imported the compiler, which takes longer than to compile a kernel."""
    return "tilework.frontend.generator" in sys.modules


def require_compiler() -> None:
    """Raise `CompilerMissing` where nothing can be compiled."""
    if missing := missing_parts():
        names = ", ".join("the compiler" if part.startswith("tilework.") else part for part in missing)
        raise CompilerMissing(
            f"compiling needs {names}, which {'is' if len(missing) == 1 else 'are'} not installed here: {INSTALL}."
            " Without the compiler only the kernels of a bundle can be launched:"
            " tilework.load(...) or TILEWORK_BUNDLE=file"
        )
