"""gpu: the one op of that dialect that kernels use, a barrier."""

from xdsl.ir import Dialect
from xdsl.irdl import traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilework.ir.declare import Op, dialect_ops, op_definition


@op_definition
class GpuBarrierOp(Op):
    """All threads of the program wait for each other: ``gpu.barrier``."""

    name = "gpu.barrier"
    form = "{}"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


GPU = Dialect("gpu", dialect_ops("gpu"), [])
