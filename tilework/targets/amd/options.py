"""Options of kernels for AMD GPUs, beside those of all targets."""

import warnings
from dataclasses import dataclass

from tilework.targets.options import CompileOptions

KPACK_WORDS = (
    "kpack is deprecated starting from {arch} and will be removed in later releases. So for now kpack = {kpack} will be"
    " overwritten to 1 to make transitioning easier."
)
ALLOWED = {"waves_per_eu": range(33), "matrix_instr_nonkdim": (0, 4, 16, 32), "kpack": (1, 2)}


@dataclass(frozen=True)
class HipOptions(CompileOptions):
    """As launches name them; `num_stages` 2 is one buffer in LDS, with registers as the second."""

    num_stages: int = 2
    waves_per_eu: int = 0  # waves that a SIMD should hold at once; 0 asks for nothing
    matrix_instr_nonkdim: int = 0  # rows and columns of matrix instructions, 16 or 32; 0: by the shape
    kpack: int = 1  # 2: operands twice as wide along K
    allow_flush_denorm: bool = False
    schedule_hint: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, allowed in ALLOWED.items():
            if (value := getattr(self, name)) not in allowed:
                words = f"0 to {allowed[-1]}" if isinstance(allowed, range) else ", ".join(map(str, allowed))
                raise ValueError(f"{name} = {value!r} on {self.arch}: it may be {words}")
        if self.kpack != 1 and self.arch == "gfx950":
            warnings.warn(KPACK_WORDS.format(arch=self.arch, kpack=self.kpack), stacklevel=2)
            object.__setattr__(self, "kpack", 1)
