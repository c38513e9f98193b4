"""Everything around the compiler: launching, devices, caches, autotuning. Start at `jit`.

`driver` is the object that knows the active device, not the module that defines it; everything else is loaded when it
is first used.
"""

from importlib import import_module
from typing import Any

from tilework.runtime.crash import show_stack_on_crash
from tilework.runtime.driver import driver

LAZY = {
    "Autotuner": "autotuner",
    "Config": "autotuner",
    "Heuristics": "autotuner",
    "InterpreterError": "errors",
    "JITFunction": "jit",
    "KernelInterface": "jit",
    "MockTensor": "jit",
    "OutOfResources": "errors",
    "RedisRemoteCacheBackend": "cache",
    "RemoteCacheBackend": "cache",
    "TensorWrapper": "jit",
    "autotune": "autotuner",
    "heuristics": "autotuner",
    "reinterpret": "jit",
}
SUBMODULES = ("_allocation", "autotuner", "build", "cache", "errors", "jit")

__all__ = ["driver"]

show_stack_on_crash()


def __getattr__(name: str) -> Any:
    if name in LAZY:
        return getattr(import_module(f"{__name__}.{LAZY[name]}"), name)
    if name in SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
