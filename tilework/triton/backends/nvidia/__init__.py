"""NVIDIA GPUs under the name Triton gives them; the backend itself is `tilework.targets.nvidia`."""

from tilework.triton.serving.submodules import on_demand

__all__ = ["compiler", "driver"]

__getattr__, __dir__ = on_demand(__name__, *__all__)
