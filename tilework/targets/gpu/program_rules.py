"""The program that runs: its ids, the grid, barriers, and facts that are only for the passes before."""

from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.gpu import GpuBarrierOp
from tilework.ir.llvm import AssumeOp
from tilework.ir.ttg import LocalBarrierOp
from tilework.targets.gpu.lowering import Lowering, Registers, lowers, number_of


@lowers(tt.GetProgramIdOp)
def lower_program_id(low: Lowering, op: Operation) -> Registers:
    """A cluster runs one program: its blocks are neighbours along x."""
    return (low.gpu.program_id(low.builder, number_of(op, "axis"), low.facts.num_ctas > 1),)


@lowers(tt.GetNumProgramsOp)
def lower_num_programs(low: Lowering, op: Operation) -> Registers:
    return (low.gpu.num_programs(low.builder, number_of(op, "axis"), low.facts.num_ctas > 1),)


@lowers(GpuBarrierOp, LocalBarrierOp)
def lower_barrier(low: Lowering, op: Operation) -> None:
    low.barrier()


@lowers(AssumeOp)
def lower_assume(low: Lowering, op: Operation) -> None:
    """What is assumed was used by the passes before."""
