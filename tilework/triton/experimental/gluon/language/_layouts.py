"""Tensors in shared memory.

`NVMMASharedLayout` is the one that tensor cores and TMA read on NVIDIA GPUs from Hopper on: rows of
`swizzle_byte_width` bytes whose 16-byte pieces are permuted, so that the rows of a column are in different banks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

SWIZZLES = (0, 32, 64, 128)
BITWIDTHS = (8, 16, 32, 64)


@dataclass(frozen=True)
class NVMMASharedLayout:
    """A matrix as the tensor cores read it. `cga_layout` says how the blocks of a cluster share it."""

    swizzle_byte_width: int
    element_bitwidth: int
    rank: int = 2
    transposed: bool = False
    fp4_padded: bool = False
    cga_layout: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        swizzle, bits = self.swizzle_byte_width, self.element_bitwidth
        assert swizzle in SWIZZLES, f"swizzle_byte_width must be one of {SWIZZLES}, got {swizzle}"
        assert bits in BITWIDTHS, f"element_bitwidth must be one of {BITWIDTHS}, got {bits}"
        object.__setattr__(self, "cga_layout", tuple(tuple(basis) for basis in self.cga_layout))
