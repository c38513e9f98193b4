"""Functions of single devices."""

from tilework.triton.language.extra import cpu

__all__ = ["cpu"]
