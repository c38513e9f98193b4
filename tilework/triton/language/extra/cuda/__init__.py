"""Functions for NVIDIA GPUs; `tilework.language.extra.cuda` has them all in one module."""

from tilework.language.extra import cuda as utils
from tilework.triton.language.extra.cuda import gdc

__all__ = ["gdc", "utils"]
