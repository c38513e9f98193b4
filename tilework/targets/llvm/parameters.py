"""What a launch can hand to a kernel: numbers, pointers, tensor descriptors. A tensor is made inside, by loads."""

from xdsl.dialects.builtin import TensorType

from tilework.errors import PassError
from tilework.ir import tt
from tilework.ir.functions import symbol_of
from tilework.ir.ttc import BufferType


def check_parameters(op: tt.FuncOp, device: str) -> None:
    """Refuse a kernel with a parameter that is a tensor (or the buffer that became of one), at its line."""
    for position, arg in enumerate(op.regions[0].blocks[0].args):
        if isinstance(arg.type, TensorType | BufferType):
            shown = f"%{arg.name_hint}" if arg.name_hint else f"number {position}"
            raise PassError(
                f"a kernel argument that is a tensor cannot be compiled for {device}: argument {shown} of @{symbol_of(op)}"
                "\nhelp: pass a pointer, and load the tensor in the kernel",
                op.location,
            )
