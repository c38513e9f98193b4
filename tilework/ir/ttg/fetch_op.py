"""`ttg.fetch`: memory that somebody else will load soon."""

from xdsl.irdl import operand_def, opt_operand_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from tilework.ir.constraints import BOOL_LIKE, PTR_LIKE, TensorSize
from tilework.ir.declare import Op
from tilework.ir.tt.memory_ops import loaded_type, verify_mask
from tilework.ir.ttg.async_copy_ops import copied_mask_type

LINE = 128  # bytes that are fetched at a time


class FetchOp(Op):
    """Ask for what pointers point at; it comes into the cache of all multiprocessors, and nobody waits for it.

    ``ttg.fetch %p mask %m : tensor<4096x!tt.ptr<bf16>, #blocked>``
    """

    name = "ttg.fetch"
    src = operand_def(PTR_LIKE)
    mask = opt_operand_def(BOOL_LIKE)
    form = "$src(? mask $mask) {} : type($src)"
    infer = {"mask": (copied_mask_type, "src")}
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())  # that it writes keeps it

    def verify_(self) -> None:
        verify_mask(self, self.mask, loaded_type(self.src.type))
