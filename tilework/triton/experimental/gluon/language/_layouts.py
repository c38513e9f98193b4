"""Tensors in shared memory.

`NVMMASharedLayout` is the one that tensor cores and TMA read on NVIDIA GPUs from Hopper on: rows of
`swizzle_byte_width` bytes whose 16-byte pieces are permuted, so that the rows of a column are in different banks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

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

    @staticmethod
    def get_default_for(
        block_shape: Sequence[int],
        dtype: Any,
        transposed: bool = False,
        fp4_padded: bool = False,
        cga_layout: Sequence[Sequence[int]] | None = None,
    ) -> "NVMMASharedLayout":
        """Return the layout with the widest swizzle that rows of a block, as one CTA of the cluster has them, allow."""
        bases = [list(basis) for basis in cga_layout or ()]
        shares = [2 * max((basis[axis] for basis in bases), default=0) or 1 for axis in range(len(block_shape))]
        divided = zip(block_shape, shares, strict=True)
        assert all(size % share == 0 for size, share in divided), (
            f"Shape {list(block_shape)} is not divisible by CGA layout {bases}"
        )
        shape = [size // share for size, share in zip(block_shape, shares, strict=True)]
        if transposed:
            shape = [*shape[1:], shape[0]]
        bits = dtype.primitive_bitwidth
        row = shape[-1] * (2 if fp4_padded else 1) * bits // 8
        is_small = len(shape) < 2 or prod(shape[:-1]) < 8
        swizzle = 0 if is_small else next((width for width in SWIZZLES[:0:-1] if row % width == 0), 0)
        return NVMMASharedLayout(swizzle, bits, len(block_shape), transposed, fp4_padded, bases)
