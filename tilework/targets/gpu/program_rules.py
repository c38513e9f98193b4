"""The program that runs: its ids, the grid, calls, barriers."""

from typing import Any

from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.llvm import GpuBarrierOp
from tilework.ir.ttg import LocalBarrierOp
from tilework.targets.gpu.lowering import Lowering, Registers, lowers, number_of
from tilework.targets.llvm.control_rules import call
from tilework.targets.llvm.types import i32
from tilework.targets.llvm.values import Value, constant

TOGETHER = 8  # programs along y that take turns; a power of two


@lowers(tt.GetProgramIdOp)
def lower_program_id(low: Lowering, op: Operation) -> Registers:
    """A cluster runs one program: its blocks are neighbours along x."""
    axis = number_of(op, "axis")
    found = low.gpu.program_id(low.builder, axis, low.facts.num_ctas > 1)
    return (reordered(low, found, axis) if low.facts.longest_first and axis < len("xy") else found,)


def reordered(low: Lowering, found: Value, axis: int) -> Value:
    """Blocks run programs of `TOGETHER` y with x backwards; in a grid too large to count, as they are."""
    b, gpu = low.builder, low.gpu
    x, y = (gpu.program_id(b, place, clusters=False) for place in range(2))
    columns, rows = (gpu.num_programs(b, place, clusters=False) for place in range(2))
    first = b.and_(y, -TOGETHER)
    height = b.intrinsic("umin", i32, b.sub(rows, first), constant(i32, TOGETHER))
    number = b.add(x, b.mul(columns, b.sub(y, first)))
    turn = b.binary("udiv", number, height)
    made = b.add(first, b.sub(number, b.mul(turn, height))) if axis else b.sub(b.sub(columns, 1), turn)
    is_small = b.icmp("ult", columns, (1 << 32) // TOGETHER)
    return gpu.shuffle(b, b.select(is_small, made, found), constant(i32, 0))


@lowers(tt.GetNumProgramsOp)
def lower_num_programs(low: Lowering, op: Operation) -> Registers:
    return (low.gpu.num_programs(low.builder, number_of(op, "axis"), low.facts.num_ctas > 1),)


@lowers(tt.CallOp)
def lower_call(low: Lowering, op: Operation) -> list[Any]:
    """Functions get the starts of their shared memory and of their scratch memory behind their arguments."""
    if low.warps.first:
        raise low.refuse(op, "a function that is not inlined, called in a partition of warps,")
    frame = low.allocation.scratch.get(op)
    shared = low.builder.gep(low.smem, frame.offset if frame is not None else 0)
    scratch = low.builder.gep(low.scratch, low.scratch_offsets.get(op, 0))
    return call(low, op, [shared, scratch], "convergent")


@lowers(GpuBarrierOp, LocalBarrierOp)
def lower_barrier(low: Lowering, op: Operation) -> None:
    low.barrier(all_memory=type(op) is GpuBarrierOp)
