"""Where Triton keeps its native code."""

from tilework.triton.serving.submodules import on_demand

__all__ = ["libtriton"]

__getattr__, __dir__ = on_demand(__name__, *__all__)
