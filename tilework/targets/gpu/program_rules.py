"""The program that runs: its ids, the grid, calls, barriers."""

from typing import Any

from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.gpu import GpuBarrierOp
from tilework.ir.ttg import LocalBarrierOp
from tilework.targets.gpu.lowering import Lowering, Registers, lowers, number_of
from tilework.targets.llvm.control_rules import call


@lowers(tt.GetProgramIdOp)
def lower_program_id(low: Lowering, op: Operation) -> Registers:
    """A cluster runs one program: its blocks are neighbours along x."""
    return (low.gpu.program_id(low.builder, number_of(op, "axis"), low.facts.num_ctas > 1),)


@lowers(tt.GetNumProgramsOp)
def lower_num_programs(low: Lowering, op: Operation) -> Registers:
    return (low.gpu.num_programs(low.builder, number_of(op, "axis"), low.facts.num_ctas > 1),)


@lowers(tt.CallOp)
def lower_call(low: Lowering, op: Operation) -> list[Any]:
    """Functions get the starts of their shared memory and of their scratch memory behind their arguments."""
    assert low.allocation is not None
    if low.warps.first:
        raise low.refuse(op, "a function that is not inlined, called in a partition of warps,")
    frame = low.allocation.scratch.get(op)
    shared = low.builder.gep(low.smem, frame.offset if frame is not None else 0)
    scratch = low.builder.gep(low.scratch, low.scratch_offsets.get(op, 0))
    return call(low, op, [shared, scratch], "convergent")


@lowers(GpuBarrierOp, LocalBarrierOp)
def lower_barrier(low: Lowering, op: Operation) -> None:
    low.barrier()
