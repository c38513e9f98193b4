"""Encodings as they were written before, by other names or with other fields.

#triton_gpu.shared<{vec = 8, ..., hasLeadingOffset = true}>      #ttg.nvmma_shared
#triton_gpu.mma<{version = 2, warpsPerCTA = [4, 1]}>             #ttg.nvidia_mma
CTAsPerCGA = [2, 1], CTASplitNum = [2, 1], CTAOrder = [1, 0]     CGALayout = [[1, 0]]
"""

from collections.abc import Callable
from typing import Any

from tilework.layouts.construct import cga_from

Fields = dict[str, Any]
OLD_NAMES = ("mma", "shared")


def modernize_mma(fields: Fields) -> str:
    if version := fields.pop("version", None):
        fields["versionMajor"] = version
    fields.setdefault("versionMinor", 0)
    fields.setdefault("instrShape", (16, 8))
    return "nvidia_mma"


def modernize_dot_operand(fields: Fields) -> str:
    fields.pop("isMMAv1Row", None)
    return "dot_op"


def modernize_shared(fields: Fields) -> str:
    """Swizzled by the compiler, or by the hardware with ``hasLeadingOffset = true``."""
    if not fields.pop("hasLeadingOffset", False):
        return "swizzled_shared"
    order, vec, max_phase = fields.pop("order"), fields.pop("vec"), fields.pop("maxPhase")
    fields.pop("perPhase")
    fields["swizzlingByteWidth"] = 16 * max_phase if max_phase > 1 else 0
    fields["elementBitWidth"] = 128 // vec
    fields["transposed"] = order[0] == 0
    fields["rank"] = len(order)
    return "nvmma_shared"


def modernize_nvmma(fields: Fields) -> str:
    fields.setdefault("transposed", False)
    fields.setdefault("elementBitWidth", 0)
    if "CTAsPerCGA" in fields:
        fields.setdefault("rank", len(fields["CTAsPerCGA"]))
    return "nvmma_shared"


RULES: dict[str, Callable[[Fields], str]] = {
    "dot_op": modernize_dot_operand,
    "mma": modernize_mma,
    "nvidia_mma": modernize_mma,
    "nvmma_shared": modernize_nvmma,
    "shared": modernize_shared,
}


def modernize(name: str, fields: Fields) -> str:
    """The name that the encoding has today; `fields` become those of today."""
    name = RULES[name](fields) if name in RULES else name
    counts, splits, order = (fields.pop(old, None) for old in ("CTAsPerCGA", "CTASplitNum", "CTAOrder"))
    if counts is not None and splits is not None and "CGALayout" not in fields:
        fields["CGALayout"] = cga_from(counts, splits, order or tuple(reversed(range(len(counts)))))
    return name
