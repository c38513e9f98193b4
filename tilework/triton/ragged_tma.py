"""Blocks of a tensor that is a concatenation of pieces of unequal length, through TMA: elements beyond the end of a
piece read as zero and are not written.

    T = torch.cat([first, second, third])                   # 5, 12 and 3 rows
    descriptor = create_ragged_descriptor(T, [16, 64])

    x = load_ragged(descriptor, 5, 12, [0, 0])               # in a kernel: the second piece, rows 12 to 15 are zeros

The copy engine compares coordinates with the extents of a tensor, which are the same for all pieces. So the descriptor
has two more dimensions in front, whose strides cancel: with s the distance of two rows,

    2^30 (2^34 - s) + (offset + size) s + (2^30 - size + row) s  =  2^64 + (offset + row) s

is the address of a row modulo 2^64, and the third coordinate is beyond the extent 2^30 exactly when row >= size.
"""

# pyright: reportArgumentType=false, reportAssignmentType=false

from collections.abc import Sequence
from typing import Any

from tilework.language import core as tl
from tilework.process.triton_version import follows
from tilework.runtime.launch.python.jit import jit
from tilework.tools.tensor_descriptor import TensorDescriptor, strides_of

# Kernel code follows the rules of kernels, not of Python.


ROWS = tl.constexpr(1 << 30)  # more than any tensor has
EXTENT = 0x7FFF0000  # of the dimensions in front: no coordinate reaches it
WRAP = 1 << 34


def create_ragged_descriptor(T: Any, block_shape: Sequence[int], ragged_dim: int = 0) -> TensorDescriptor:
    """The descriptor of a tensor (rank 2 or 3) whose pieces are concatenated along `ragged_dim`."""
    shape, strides, block = list(T.shape), list(strides_of(T)), list(block_shape)
    rank = len(shape)
    ragged_dim = ragged_dim + rank if ragged_dim < 0 else ragged_dim
    assert 0 <= ragged_dim < rank - 1, "last dimension cannot be ragged"
    assert rank <= 3, "read-write ragged descriptors must have at most 3 dimensions"
    assert len(block) == rank, "block shape must have same length as tensor shape"
    rows = ROWS.value
    assert shape[ragged_dim] <= rows, "number of rows may not exceed 2**30"
    step = strides[ragged_dim]
    shape[ragged_dim] = rows
    return TensorDescriptor(T, [EXTENT, EXTENT, *shape], [WRAP - step, step, *strides], [1, 1, *block])


@jit
def to_ragged_indices(slice_off: Any, slice_size: Any, row: Any) -> Any:
    """The two coordinates in front and the ragged one, of a row of the piece that begins at `slice_off`."""
    return ROWS, slice_off + slice_size, ROWS - slice_size + row


@jit
def load_ragged(TMA: Any, slice_off: Any, slice_size: Any, coords: Any, ragged_dim: tl.constexpr = 0) -> Any:
    """The block at `coords`, relative to the piece of `slice_size` rows that begins at `slice_off`."""
    tl.static_assert(len(TMA.shape) == len(coords) + 2, "TMA must be a read-write ragged descriptor")
    first, second, row = to_ragged_indices(slice_off, slice_size, coords[ragged_dim])
    block = TMA.load([first, second] + coords[:ragged_dim] + [row] + coords[ragged_dim + 1 :])
    return tl.reshape(block, block.shape[2:])


@jit
def store_ragged(
    TMA: Any, slice_off: Any, slice_size: Any, coords: Any, data: Any, ragged_dim: tl.constexpr = 0
) -> None:
    """Write a block at `coords`; rows beyond the end of the piece are left out."""
    first, second, row = to_ragged_indices(slice_off, slice_size, coords[ragged_dim])
    block = tl.reshape(data, [1, 1] + data.shape)
    TMA.store([first, second] + coords[:ragged_dim] + [row] + coords[ragged_dim + 1 :], block)


@jit
def atomic_add_ragged(
    TMA: Any, slice_off: Any, slice_size: Any, coords: Any, data: Any, ragged_dim: tl.constexpr = 0
) -> None:
    """Add a block at `coords`; rows beyond the end of the piece are left out."""
    first, second, row = to_ragged_indices(slice_off, slice_size, coords[ragged_dim])
    block = tl.reshape(data, [1, 1] + data.shape)
    TMA.atomic_add([first, second] + coords[:ragged_dim] + [row] + coords[ragged_dim + 1 :], block)


if not follows("ragged-parameters"):  # older versions of Triton have other names for the parameters
    _indices, _load, _store, _atomic_add = to_ragged_indices, load_ragged, store_ragged, atomic_add_ragged

    @jit
    def to_ragged_indices(batch_offset: Any, batch_size: Any, row: Any) -> Any:
        """The same function with the older names of its parameters."""
        return _indices(batch_offset, batch_size, row)

    @jit
    def load_ragged(TMA: Any, batch_offset: Any, batch_size: Any, coords: Any, ragged_dim: tl.constexpr = 0) -> Any:
        """The same function with the older names of its parameters."""
        return _load(TMA, batch_offset, batch_size, coords, ragged_dim)

    @jit
    def store_ragged(
        TMA: Any, batch_offset: Any, batch_size: Any, coords: Any, data: Any, ragged_dim: tl.constexpr = 0
    ) -> None:
        """The same function with the older names of its parameters."""
        _store(TMA, batch_offset, batch_size, coords, data, ragged_dim)

    @jit
    def atomic_add_ragged(
        TMA: Any, batch_offset: Any, batch_size: Any, coords: Any, data: Any, ragged_dim: tl.constexpr = 0
    ) -> None:
        """The same function with the older names of its parameters."""
        _atomic_add(TMA, batch_offset, batch_size, coords, data, ragged_dim)
