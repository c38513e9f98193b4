"""The program that runs: its ids, the grid, and ops that mean nothing to one thread."""

from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.gpu import GpuBarrierOp
from tilework.ir.types import axis_of
from tilework.targets.cpu.lower.lowering import Lowering, lowers
from tilework.targets.llvm.values import Value


@lowers(tt.GetProgramIdOp, elementwise=True)
def lower_program_id(low: Lowering, op: Operation) -> Value:
    return low.program[axis_of(op)]


@lowers(tt.GetNumProgramsOp, elementwise=True)
def lower_num_programs(low: Lowering, op: Operation) -> Value:
    return low.grid[axis_of(op)]


@lowers(GpuBarrierOp)
def lower_barrier(low: Lowering, op: Operation) -> None:
    """One thread runs a program, so there is nobody to wait for; but other programs see what is before it first."""
    low.builder.fence("seq_cst")
