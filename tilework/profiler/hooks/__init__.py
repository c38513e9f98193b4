"""What sessions hang into launches."""

from tilework.profiler.hooks.hook import Hook, HookManager
from tilework.profiler.hooks.instrumentation import InstrumentationHook
from tilework.profiler.hooks.launch import LaunchHook

__all__ = ["Hook", "HookManager", "InstrumentationHook", "LaunchHook"]
