"""gpu: the one op of that dialect that kernels use, a barrier."""

from xdsl.ir import Dialect

from tilework.ir.declare import Op, dialect_ops


class GpuBarrierOp(Op):
    """All threads of the program wait for each other: ``gpu.barrier``."""

    name = "gpu.barrier"
    form = "{}"


GPU = Dialect("gpu", dialect_ops("gpu"), [])
