"""TTGIR to LLVM text for an NVIDIA GPU."""

from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tilework.ir import ttg
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import MAX_REGISTERS
from tilework.ir.types import i32, int_attr
from tilework.target import Target
from tilework.targets.gpu import codegen
from tilework.targets.nvidia.lower import casts, mbarrier, mma, rescale_rules, tensormap_rules, tma_rules, wgmma_rules
from tilework.targets.nvidia.lower.nvidia_gpu import NvidiaGpu
from tilework.transforms.ttg.allocate_warp_groups import allocate_warp_groups

RULE_FILES = (
    casts,
    mbarrier,
    mma,
    rescale_rules,
    tensormap_rules,
    tma_rules,
    wgmma_rules,
)  # importing these fills the table of rules


def emit_module(
    module: ModuleOp, capability: int, *, fuses: bool = True, lines: bool = True, options: Any = None
) -> str:
    """LLVM text of every function of a module of TTGIR; partitions get their warps first."""
    if (most := getattr(options, "maxnreg", None)) is not None:
        module.attributes[MAX_REGISTERS] = int_attr(most, i32)
    if any(isinstance(op, ttg.WarpSpecializeOp) for op in ops_in_order(*module.regions)):
        allocate_warp_groups(module)
    return codegen.emit_module(module, NvidiaGpu(Target.parse(f"cuda:{capability}"), options), fuses=fuses, lines=lines)
