"""TTGIR to LLVM text for an AMD GPU."""

from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tilework.target import Target
from tilework.targets.amd.lower.amd_gpu import AmdGpu
from tilework.targets.gpu import codegen
from tilework.targets.llvm.rules import load_rules

MORE_RULES = {  # files, and how the names of the ops begin that they have rules of
    "tilework.targets.amd.lower.buffer_rules": "amdg.buffer_",
    "tilework.targets.amd.lower.float_casts": "arith.extf arith.truncf tt.fp_to_fp",
    "tilework.targets.amd.lower.clock_rules": "tt.elementwise_inline_asm",
    "tilework.targets.amd.lower.lds_copy_rules": "amdg.buffer_load_to_local amdg.async_wait ttg.async_wait",
    "tilework.targets.amd.lower.matrix_rules": "tt.dot amdg.in_thread_transpose",
    "tilework.targets.amd.lower.scheduling_rules": "rocdl. amdg.instruction_sched_hint amdg.cond_barrier",
}


def emit_module(
    module: ModuleOp, target: Target, *, fuses: bool = True, lines: bool = True, options: Any = None
) -> str:
    """LLVM text of every function of a module of TTGIR."""
    load_rules(MORE_RULES, module)
    return codegen.emit_module(module, AmdGpu(target, options), fuses=fuses, lines=lines)
