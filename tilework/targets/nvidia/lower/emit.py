"""TTGIR to LLVM text for an NVIDIA GPU."""

from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tilework.ir import ttg
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import MAX_REGISTERS
from tilework.ir.types import i32, int_attr
from tilework.target import Target
from tilework.targets.gpu import codegen
from tilework.targets.llvm.rules import load_rules
from tilework.targets.nvidia.lower.nvidia_gpu import NvidiaGpu
from tilework.transforms.ttg.allocate_warp_groups import allocate_warp_groups

MORE_RULES = {  # files, and how the names of the ops begin that they have rules of
    "tilework.targets.nvidia.lower.casts": "arith.extf arith.truncf tt.fp_to_fp arith.sitofp arith.uitofp arith.fpto",
    "tilework.targets.nvidia.lower.mbarrier": "ttng.",
    "tilework.targets.nvidia.lower.mma": "tt.dot",
    "tilework.targets.nvidia.lower.rescale_rules": "arith.mulf",
    "tilework.targets.nvidia.lower.tensormap_rules": "ttng.tensormap_ ttng.reinterpret_tensor_descriptor",
    "tilework.targets.nvidia.lower.tma_rules": "ttng.async_tma_",
    "tilework.targets.nvidia.lower.wgmma_rules": "ttng.warp_group_dot",
}


def emit_module(
    module: ModuleOp, capability: int, *, fuses: bool = True, lines: bool = True, options: Any = None
) -> str:
    """LLVM text of every function of a module of TTGIR; partitions get their warps first."""
    if (most := getattr(options, "maxnreg", None)) is not None:
        module.attributes[MAX_REGISTERS] = int_attr(most, i32)
    if any(isinstance(op, ttg.WarpSpecializeOp) for op in ops_in_order(*module.regions)):
        allocate_warp_groups(module)
    load_rules(MORE_RULES, module)
    return codegen.emit_module(module, NvidiaGpu(Target.parse(f"cuda:{capability}"), options), fuses=fuses, lines=lines)
