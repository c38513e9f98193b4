"""What the frontend must know about the target and the user's settings, as one frozen value.

    >>> FrontendOptions(arch=80, supported_fp8_dtypes=("fp8e5",)).target.arch
    80

What a target implies (its fp8 formats, dot precisions ...) is decided by its backend; `compiler.frontend_options` copies it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from tilework.numerics.formats import DOT_PRECISIONS, FP8_TYPES

MinDotSize = Callable[[Any, Any], tuple[int, int, int]]


def any_dot_size(lhs: Any, rhs: Any) -> tuple[int, int, int]:
    """A target without tensor cores takes any size."""
    return (1, 1, 1)


@dataclass(frozen=True)
class FrontendOptions:
    """One value per decision that depends on the target or on a knob."""

    backend_name: str = "cuda"
    arch: int | str | None = None  # 90, "gfx942", "host"
    features: frozenset[str] = frozenset()  # of the target, by name
    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    debug: bool = False
    sanitize: bool | str = False
    sanitize_overflow: bool = True
    reproducible: bool = False
    supported_fp8_dtypes: tuple[str, ...] = FP8_TYPES
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "tf32"
    allowed_dot_input_precisions: tuple[str, ...] = DOT_PRECISIONS
    max_num_imprecise_acc_default: int = 0
    min_dot_size: MinDotSize = any_dot_size
    f32_default: str | None = None
    warp_size: int = 32
    allow_non_constexpr_globals: bool = False
    front_end_debugging: bool = False
    beyond_triton: str = "allow"  # or "warn", or "error": Python that Triton does not have

    @property
    def target(self) -> SimpleNamespace:
        """What `tl.target_info.current_target()` returns in the kernel."""
        return SimpleNamespace(backend=self.backend_name, arch=self.arch, warp_size=self.warp_size)
