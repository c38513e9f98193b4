"""TTGIR to LLVM text for an AMD GPU."""

from typing import Any

from xdsl.dialects.builtin import ModuleOp

from tilework.target import Target
from tilework.targets.amd.lower import (
    buffer_rules,
    clock_rules,
    float_casts,
    lds_copy_rules,
    matrix_rules,
    scheduling_rules,
)
from tilework.targets.amd.lower.amd_gpu import AmdGpu
from tilework.targets.gpu import codegen

RULE_FILES = (
    buffer_rules,
    float_casts,
    clock_rules,
    lds_copy_rules,
    matrix_rules,
    scheduling_rules,
)  # importing these fills the table of rules


def emit_module(
    module: ModuleOp, target: Target, *, fuses: bool = True, lines: bool = True, options: Any = None
) -> str:
    """LLVM text of every function of a module of TTGIR."""
    return codegen.emit_module(module, AmdGpu(target, options), fuses=fuses, lines=lines)
