"""What sessions hang into launches."""

from tilework.inspect.profiler.hooks.hook import Hook, HookManager
from tilework.inspect.profiler.hooks.instrumentation import InstrumentationHook
from tilework.inspect.profiler.hooks.launch import LaunchHook

__all__ = ["Hook", "HookManager", "InstrumentationHook", "LaunchHook"]
