"""Blocks of a cluster, which run together and see each other's shared memory.

The machine runs all threads of a cluster at once, those of the first block first. Its shared memory is one space, in which
each block has a window; a block's own addresses lie in its window, as on a GPU, and `mapa` moves an address to another one:

    >>> hex(in_block(0x410, 1)), hex(in_block(0x40410, 0))
    ('0x40410', '0x410')

A matrix descriptor has as many bits of an address as a window.
"""

from typing import Any

import numpy as np

from tilework.oracles.emulator.arenas import Array, Bytes, MemoryFault
from tilework.oracles.emulator.ports import Port, Watcher

BLOCK_BITS = 18
BLOCK_BYTES = 1 << BLOCK_BITS
WINDOWS = 0xFFFF_FFFF & -BLOCK_BYTES  # the bits of an address that tell the block


def in_block(address: Any, rank: Any) -> Any:
    """The address that is in block number `rank` what `address` is in its own; of either one number or an array."""
    return address & ~np.uint64(WINDOWS) | np.uint64(rank) << np.uint64(BLOCK_BITS)


class ClusterPort(Port):
    """The shared memory of all blocks, of `each` bytes."""

    def __init__(self, blocks: int, each: int, watcher: Watcher | None = None) -> None:
        size = (blocks - 1) * BLOCK_BYTES + each
        super().__init__("shared", Bytes.zeros(size), size, watcher)
        self.each = each

    def check_bounds(self, addresses: Array, size: int, threads: Array) -> None:
        super().check_bounds(addresses, size, threads)
        inside = addresses & np.uint64(BLOCK_BYTES - 1)
        if np.count_nonzero(wrong := inside + np.uint64(size) > self.each):
            what = f"{size} bytes at shared address %#x are outside of its {self.each} bytes"
            raise MemoryFault.first(wrong, inside, threads, what)

    def checked_places(self, addresses: Array, size: int, align: int, threads: Array) -> Array:
        self.check(addresses, size, align, threads)
        return addresses
