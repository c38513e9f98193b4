"""Lay out the scratch memory that each program has in global memory.

    %0 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32}      offset 0
    tt.call @helper()                                                              offset 128: the memory of @helper
    module attributes {ttg.global_scratch_memory_size = 256 : i32, ...}

Everything gets bytes of its own, one after the other; an op in a loop uses the same ones in every iteration. Offsets
(`ttg.global_scratch_memory_offset`) are relative to the function; sizes and alignments are on functions and module.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from tilework.analysis.allocation import aligned, callee_name
from tilework.ir import tt, ttg
from tilework.ir.types import i32, int_attr

OFFSET = "ttg.global_scratch_memory_offset"
SIZE = "ttg.global_scratch_memory_size"
ALIGNMENT = "ttg.global_scratch_memory_alignment"


@dataclass(frozen=True)
class Frame:
    """The bytes that a function needs, and what their start must be a multiple of."""

    size: int
    alignment: int


@dataclass(frozen=True)
class GlobalScratchMemoryAllocationPass(ModulePass):
    name = "tritongpu-global-scratch-memory-allocation"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions: dict[str, Operation] = {
            inner.properties["sym_name"].data: inner  # pyright: ignore[reportAttributeAccessIssue]
            for inner in op.ops
            if type(inner) is tt.FuncOp
        }
        frames: dict[str, Frame] = {}
        for name in functions:
            lay_out(name, functions, frames)
        kernels = [frames[name] for name, function in functions.items() if is_public(function)]
        whole = Frame(
            max((frame.size for frame in kernels), default=0), max((frame.alignment for frame in kernels), default=1)
        )
        record(op, whole)


def is_public(function: Operation) -> bool:
    visibility = function.properties.get("sym_visibility")
    return getattr(visibility, "data", "public") == "public"


def lay_out(name: str, functions: dict[str, Operation], frames: dict[str, Frame]) -> Frame:
    """Give the ops and calls of a function their offsets, callees first."""
    if name in frames or name not in functions:
        return frames.get(name, Frame(0, 1))
    frames[name] = Frame(0, 1)  # a function that calls itself has no memory there
    end, alignment = 0, 1
    for op in functions[name].walk():
        if type(op) is ttg.GlobalScratchAllocOp:
            needed = Frame(number(op, "nbytes"), number(op, "alignment"))
        elif type(op) is tt.CallOp:
            needed = lay_out(callee_name(op), functions, frames)
        else:
            continue
        if needed.size:
            offset = aligned(end, needed.alignment)
            op.attributes[OFFSET] = int_attr(offset, i32)
            end, alignment = offset + needed.size, max(alignment, needed.alignment)
    frames[name] = Frame(aligned(end, alignment), alignment)
    record(functions[name], frames[name])
    return frames[name]


def number(op: Operation, name: str) -> int:
    return op.properties[name].value.data  # pyright: ignore[reportAttributeAccessIssue]


def record(op: Operation, frame: Frame) -> None:
    op.attributes[SIZE] = int_attr(frame.size, i32)
    op.attributes[ALIGNMENT] = int_attr(frame.alignment, i32)
