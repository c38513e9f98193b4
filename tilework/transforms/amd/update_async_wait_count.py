"""Waits for groups of copies become waits for instructions, which is what the GPU counts.

    %w = ttg.async_wait %g {num = 2 : i32}       ==>     %w = amdg.async_wait %g {num_inst = 8 : i32}      4 in each group

Groups that may be under way are counted with the fewest instructions that any group of the kernel has: never too many.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.ir import amdg, ttg
from tilework.ir.encodings import layout_of
from tilework.ir.rewrite import defining_op, replace_op
from tilework.layouts.banks import offsets_of
from tilework.layouts.wave_copy import wave_copy
from tilework.transforms.passes import module_pass


@module_pass("tritonamdgpu-update-async-wait-count")
def update_async_wait_count(module: ModuleOp) -> None:
    ops = list(module.walk())
    groups = [instructions(op) for op in ops if type(op) is ttg.AsyncCommitGroupOp]
    for op in ops:
        if type(op) is ttg.AsyncWaitOp:
            allowed = op.properties["num"].value.data * min(groups, default=0)  # pyright: ignore
            replace_op(op, amdg.AsyncWaitOp.make(tuple(op.operands), allowed, op.location))


def instructions(commit: Operation) -> int:
    """Those that a group has at least: what is copied by loads and stores has none."""
    total = 0
    for copy in (defining_op(token) for token in commit.operands):
        if copy is not None and type(copy) is amdg.BufferLoadToLocalOp:
            places = layout_of(copy.operands[2].type)
            width = copy.properties["contiguity"].value.data  # pyright: ignore
            if wave_copy(offsets_of(places, layout_of(copy.operands[0].type)), width) is not None:
                total += (1 << len(places.by_in["register"])) // width
    return total
