"""Triton's runtime: its names, and its modules by the places that they have here."""

from importlib import import_module
from typing import Any

from tilework.as_triton import exists, place_of
from tilework.runtime.devices.active_driver import driver

NAMES = {
    "Autotuner": "tilework.runtime.tuning.autotuner",
    "Config": "tilework.runtime.tuning.autotuner",
    "Heuristics": "tilework.runtime.tuning.autotuner",
    "InterpreterError": "tilework.errors",
    "JITFunction": "tilework.runtime.launch.jit",
    "KernelInterface": "tilework.runtime.launch.jit",
    "MockTensor": "tilework.runtime.launch.wrappers",
    "OutOfResources": "tilework.errors",
    "RedisRemoteCacheBackend": "tilework.runtime.kernel_cache.remote",
    "RemoteCacheBackend": "tilework.runtime.kernel_cache.remote",
    "TensorWrapper": "tilework.runtime.launch.wrappers",
    "autotune": "tilework.runtime.tuning.autotuner",
    "driver": "tilework.runtime.devices.active_driver",
    "heuristics": "tilework.runtime.tuning.autotuner",
    "reinterpret": "tilework.runtime.launch.wrappers",
}

__all__ = ["driver"]


def __getattr__(name: str) -> Any:
    if name in NAMES:
        return getattr(import_module(NAMES[name]), name)
    if not name.startswith("__") and exists(place := place_of(f"triton.runtime.{name}")):
        return import_module(place)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES})
