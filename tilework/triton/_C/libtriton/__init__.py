"""What Triton's native module is asked for by its tests, as far as it means something here.

`ir` is our dialects, `llvm` the binding to LLVM, `nvidia` the CUDA backend; they are loaded when they are used.
"""

from importlib import import_module
from typing import Any

from tilework.knobs import cache_invalidating_env_vars as get_cache_invalidating_env_vars
from tilework.runtime.specialize import native_specialize_impl

__all__ = ["get_cache_invalidating_env_vars", "native_specialize_impl"]

LAZY = {"ir": "tilework.ir", "llvm": "llvmlite.binding", "nvidia": "tilework.backends.cuda"}


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(LAZY[name])
