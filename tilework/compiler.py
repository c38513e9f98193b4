"""Compile a kernel, or an IR file, for a target.

    >>> source = ASTSource(add, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})
    >>> kernel = compile(source, GPUTarget("cuda", 90, 32), {"num_warps": 8})
    >>> print(kernel.asm["ttir"])

`lower` gives the text of chosen stages and leaves caches alone; `compile` keeps everything in the disk cache.
"""

from tilework.errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from tilework.runtime.compile.cached import compile
from tilework.runtime.compile.compiled import CompiledKernel, LazyDict
from tilework.runtime.compile.sources import ASTSource, IRSource
from tilework.runtime.compile.stages import lower
from tilework.runtime.kernel_cache.key import get_cache_key
from tilework.targets.base import GPUTarget
from tilework.targets.base import find_backend as make_backend

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
