"""gpu: the one op of that dialect that kernels use, a barrier."""

from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilework.ir.tt.forms import BareForm


@irdl_op_definition
class GpuBarrierOp(BareForm):
    """All threads of the program wait for each other: ``gpu.barrier``."""

    name = "gpu.barrier"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


GPU = Dialect("gpu", [GpuBarrierOp], [])
