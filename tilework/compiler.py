"""Compile a kernel, or an IR file, for a target.

    >>> source = ASTSource(add, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})
    >>> kernel = compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 8})
    >>> print(kernel.asm["ttir"])

`lower` gives the text of chosen stages and leaves caches alone; `compile` keeps everything in the disk cache.
"""

from typing import TYPE_CHECKING, Any

from tilework.errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from tilework.runtime.compile.cached import compile
from tilework.runtime.compile.compiled import CompiledKernel, LazyDict
from tilework.runtime.compile.sources import ASTSource, IRSource
from tilework.runtime.kernel_cache.key import get_cache_key
from tilework.targets.base import GPUTarget
from tilework.targets.base import find_backend as make_backend

if TYPE_CHECKING:
    from tilework.runtime.compile.stages import lower

__all__ = [
    "ASTSource",
    "CompilationError",
    "CompileTimeAssertionFailure",
    "CompiledKernel",
    "GPUTarget",
    "IRSource",
    "LazyDict",
    "UnsupportedLanguageConstruct",
    "compile",
    "get_cache_key",
    "lower",
    "make_backend",
]


def __getattr__(name: str) -> Any:
    """`lower` is loaded when it is first used: what the cache has needs no stages."""
    if name != "lower":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tilework.runtime.compile import stages  # lazily, see above

    globals()[name] = stages.lower
    return stages.lower
