"""Check that the compiler is installed: a separate distribution (`packages/compiler`), which launches do not need.

    require_compiler()        # before any of it is imported; the error names what is missing and how to install it

With `tilework` alone a program can launch the kernels of a bundle (docs/serving.md).
"""

import os
import sys
from functools import cache
from importlib.util import find_spec

from tilework.errors import CompilerMissing
from tilework.version import __version__

PARTS = ("tilework.frontend", "xdsl", "llvmlite", "ml_dtypes")  # one module of each package that the compiler needs
INSTALL = f"pip install 'tilework[compiler]=={__version__}'"
CHECKOUT = "in a checkout: pip install . ./packages/compiler"
# beside the package where the compiler was installed from its wheel: the version that it was built with
VERSION_FILE = os.path.join(os.path.dirname(__file__), *[os.pardir] * 2, "compiler_version.txt")


@cache
def missing_parts() -> tuple[str, ...]:
    """Return the parts of the compiler that are not installed."""
    return tuple(part for part in PARTS if not is_there(part))


def is_there(part: str) -> bool:
    try:
        return find_spec(part) is not None
    except (ImportError, ValueError):  # an import hook refuses it, or `sys.modules` has another object
        return False


@cache
def compiler_version() -> str | None:
    """The version of an installed compiler, if it is another one than this."""
    try:
        with open(VERSION_FILE, encoding="utf-8") as file:
            found = file.read().strip()
    except OSError:  # a checkout: one version
        return None
    return found if found != __version__ else None


def has_compiler() -> bool:
    """Return True if the compiler is installed, in this version."""
    return not missing_parts() and compiler_version() is None


def is_compiler_loaded() -> bool:
    """Return True if this process has imported the compiler, which takes longer than to compile a kernel."""
    return "tilework.frontend.generator" in sys.modules


def require_compiler() -> None:
    """Raise `CompilerMissing` where nothing can be compiled."""
    if missing := missing_parts():
        packages = ", ".join("tilework-compiler" if part.startswith("tilework.") else part for part in missing)
        raise CompilerMissing(
            f"compiling needs {packages}, which {'is' if len(missing) == 1 else 'are'} not installed here:"
            f" {INSTALL} ({CHECKOUT})."
            " Without the compiler only the kernels of a bundle can be launched:"
            " tilework.load(...) or TILEWORK_BUNDLE=file"
        )
    if (other := compiler_version()) is not None:
        raise CompilerMissing(
            f"tilework-compiler {other} does not belong to tilework {__version__}: {INSTALL} installs the one that does"
        )
