"""Everything around the compiler: launching, devices, caches, autotuning. Start at `launch/python/jit.py`.

`driver` is the object that knows the active device; the other public names are loaded when they are first used.
"""

from importlib import import_module
from typing import Any

from tilework.runtime.devices.active_driver import driver
from tilework.runtime.uncaught import show_stack_on_crash

NAMES = {
    "Autotuner": "tilework.runtime.tuning.autotuner",
    "Config": "tilework.runtime.tuning.autotuner",
    "Heuristics": "tilework.runtime.tuning.autotuner",
    "InterpreterError": "tilework.errors",
    "JITFunction": "tilework.runtime.launch.python.jit",
    "KernelInterface": "tilework.runtime.launch.python.kernel_interface",
    "MockTensor": "tilework.runtime.launch.python.wrappers",
    "OutOfResources": "tilework.errors",
    "RedisRemoteCacheBackend": "tilework.runtime.kernel_cache.managers",
    "RemoteCacheBackend": "tilework.runtime.kernel_cache.managers",
    "TensorWrapper": "tilework.runtime.launch.python.wrappers",
    "autotune": "tilework.runtime.tuning.autotuner",
    "heuristics": "tilework.runtime.tuning.autotuner",
    "reinterpret": "tilework.runtime.launch.python.wrappers",
}
MODULES = {
    "autotuner": "tilework.runtime.tuning.autotuner",
    "cache": "tilework.runtime.kernel_cache.managers",
    "errors": "tilework.errors",
    "jit": "tilework.runtime.launch.python.jit",
}

__all__ = ["driver", *NAMES]

show_stack_on_crash()


def __getattr__(name: str) -> Any:
    if name in NAMES:
        return getattr(import_module(NAMES[name]), name)
    if name in MODULES:
        return import_module(MODULES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Also what is not loaded yet."""
    return sorted({*globals(), *NAMES, *MODULES})
