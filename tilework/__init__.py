"""tilework: the Triton kernel language and its compiler, in Python.

    import tilework
    import tilework.language as tl

    @tilework.jit
    def double(x_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(x_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

Importing this loads neither xDSL nor LLVM nor a GPU driver; they load at the first compile.
"""

from tilework import language
from tilework.errors import CompilationError, OutOfResources, TritonError
from tilework.language.core import must_use_result
from tilework.language.function import JITFunction, constexpr_function, jit
from tilework.language.host import cdiv, next_power_of_2

__version__ = "0.1.0"

__all__ = [
    "CompilationError",
    "JITFunction",
    "OutOfResources",
    "TritonError",
    "cdiv",
    "constexpr_function",
    "jit",
    "language",
    "must_use_result",
    "next_power_of_2",
]
