"""The program that runs: its ids, the grid, barriers, and facts that are only for the passes before."""

from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.gpu import GpuBarrierOp
from tilework.ir.llvm import AssumeOp
from tilework.targets.gpu.lowering import Lowering, Registers, lowers

AXES = "xyz"


def axis_of(op: Operation) -> int:
    return op.properties["axis"].value.data  # pyright: ignore[reportAttributeAccessIssue]


@lowers(tt.GetProgramIdOp)
def lower_program_id(low: Lowering, op: Operation) -> Registers:
    """A cluster runs one program: its blocks are neighbours along x."""
    axis = axis_of(op)
    clusters = low.facts.num_ctas > 1
    return (low.special(f"{'clusterid' if clusters else 'ctaid'}.{AXES[axis]}"),)


@lowers(tt.GetNumProgramsOp)
def lower_num_programs(low: Lowering, op: Operation) -> Registers:
    axis = axis_of(op)
    clusters = low.facts.num_ctas > 1
    return (low.special(f"{'nclusterid' if clusters else 'nctaid'}.{AXES[axis]}"),)


@lowers(GpuBarrierOp)
def lower_barrier(low: Lowering, op: Operation) -> None:
    low.barrier()


@lowers(AssumeOp)
def lower_assume(low: Lowering, op: Operation) -> None:
    """What is assumed was used by the passes before."""
