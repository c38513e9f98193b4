"""tilework: the Triton kernel language and its compiler, in Python.

    import tilework
    import tilework.language as tl

    @tilework.jit
    def double(x_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

    double[(tilework.cdiv(n, 1024),)](x, n, BLOCK=1024)

Importing this loads neither xDSL nor LLVM nor a GPU driver; they load at the first compile.
"""

from importlib import import_module
from typing import Any

from tilework import errors, knobs, language
from tilework.errors import CompilationError, InterpreterError, OutOfResources, TritonError
from tilework.language.core import must_use_result
from tilework.language.function import constexpr_function
from tilework.language.grid import cdiv, next_power_of_2
from tilework.runtime.launch.python.jit import JITFunction, jit
from tilework.runtime.launch.python.kernel_interface import KernelInterface
from tilework.runtime.launch.python.wrappers import MockTensor, TensorWrapper, reinterpret
from tilework.runtime.uncaught import show_diagnostics
from tilework.runtime.workers.async_compile import AsyncCompileMode, FutureKernel
from tilework.version import __version__ as __version__

LAZY = {
    "ASTSource": "tilework.compiler",
    "Autotuner": "tilework.runtime.tuning.autotuner",
    "Config": "tilework.runtime.tuning.autotuner",
    "Heuristics": "tilework.runtime.tuning.autotuner",
    "Search": "tilework.runtime.tuning.search",
    "Space": "tilework.runtime.tuning.autotuner",
    "autotune": "tilework.runtime.tuning.autotuner",
    "compile": "tilework.compiler",
    "heuristics": "tilework.runtime.tuning.autotuner",
    "load": "tilework.runtime.bundle.serving",
    "set_allocator": "tilework.runtime.devices.launcher",
}
SUBMODULES = ("as_triton", "compiler", "process.metrics", "process.plugins", "runtime", "targets", "testing", "tools")
MODULES = {name.rpartition(".")[2]: f"tilework.{name}" for name in SUBMODULES}

__all__ = [
    "AsyncCompileMode",
    "CompilationError",
    "FutureKernel",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "TensorWrapper",
    "TritonError",
    "cdiv",
    "constexpr_function",
    "errors",
    "jit",
    "knobs",
    "language",
    "must_use_result",
    "next_power_of_2",
    "reinterpret",
    *LAZY,
    *MODULES,
]

show_diagnostics()


def __getattr__(name: str) -> Any:
    """Names that are costly to load are loaded when they are first used."""
    if name not in LAZY and name not in MODULES:
        raise AttributeError(f"module 'tilework' has no attribute {name!r}")
    try:
        value = getattr(import_module(LAZY[name]), name) if name in LAZY else import_module(MODULES[name])
    except ImportError:
        from tilework.runtime.compile.compiler_presence import require_compiler  # lazily: where parts are missing

        require_compiler()
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return all names, also those that are loaded when they are first used."""
    return sorted({*globals(), *__all__})
