"""AMD GPUs: compiler and driver."""

from tilework.triton.serving.submodules import on_demand

__all__ = ["compiler", "driver"]

__getattr__, __dir__ = on_demand(__name__, *__all__)
