"""TTGIR to LLVM text for an NVIDIA GPU."""

from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tilework.target import Target
from tilework.targets.gpu import codegen
from tilework.targets.nvidia.lower import casts, mbarrier, mma, tensormap_rules, tma_rules, wgmma_rules
from tilework.targets.nvidia.lower.nvidia_gpu import NvidiaGpu

RULE_FILES = (casts, mbarrier, mma, tensormap_rules, tma_rules, wgmma_rules)  # importing these fills the table of rules


def emit_module(
    module: ModuleOp, capability: int, *, fuses: bool = True, lines: bool = True, options: Any = None
) -> str:
    """LLVM text of every function of a module of TTGIR."""
    return codegen.emit_module(module, NvidiaGpu(Target.parse(f"cuda:{capability}"), options), fuses=fuses, lines=lines)
