"""Programs that call libraries of Triton kernels at the sizes of language models, for `benchmarks.real_kernels record`.

Each program is a function of a `Recorder`, which makes its tensors; the libraries are imported where they are used, so
that one that is not installed costs its own programs only.
"""

from benchmarks.real_programs import fla, flag_gems, inductor, liger, serving, training
from benchmarks.real_programs.registry import PROGRAMS

__all__ = ["PROGRAMS", "fla", "flag_gems", "inductor", "liger", "serving", "training"]
