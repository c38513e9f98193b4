"""Everything around the compiler: launching, devices, caches, autotuning. Start at `jit`.

`driver` is the object that knows the active device, not the module that defines it; everything else is loaded when it
is first used.
"""

from importlib import import_module
from typing import Any

from tilework.runtime.devices.active_driver import driver
from tilework.runtime.failures.crash import show_stack_on_crash

LAZY = {
    "Autotuner": "tuning.autotuner",
    "Config": "tuning.autotuner",
    "Heuristics": "tuning.autotuner",
    "InterpreterError": "errors",
    "JITFunction": "launch.jit",
    "KernelInterface": "launch.jit",
    "MockTensor": "launch.jit",
    "OutOfResources": "errors",
    "RedisRemoteCacheBackend": "kernel_cache.managers",
    "RemoteCacheBackend": "kernel_cache.managers",
    "TensorWrapper": "launch.jit",
    "autotune": "tuning.autotuner",
    "heuristics": "tuning.autotuner",
    "reinterpret": "launch.jit",
}
PLACES = {
    "_allocation": "devices.allocators",
    "_async_compile": "workers.async_compile",
    "autotuner": "tuning.autotuner",
    "build": "devices.build",
    "cache": "kernel_cache.managers",
    "errors": "errors",
    "jit": "launch.jit",
}

__all__ = ["driver"]

show_stack_on_crash()


def __getattr__(name: str) -> Any:
    if name in LAZY:
        return getattr(import_module(f"{__name__}.{LAZY[name]}"), name)
    if name in PLACES:
        return import_module(f"{__name__}.{PLACES[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
