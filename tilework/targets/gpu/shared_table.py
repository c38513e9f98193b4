"""A table in shared memory that all threads of a block fill and read: neighbouring lanes have neighbouring places."""

from collections.abc import Iterator

from xdsl.ir import Attribute

from tilework.layouts.linear import LinearLayout, log2
from tilework.targets.gpu.axes import memory_layout
from tilework.targets.gpu.indices import coordinates
from tilework.targets.gpu.lowering import Lowering
from tilework.targets.gpu.shared_access import Move
from tilework.targets.llvm.values import Value


class Table:
    """So many places (a power of two) from an address on; `like` is any layout of the block's threads."""

    def __init__(self, low: Lowering, base: Value, places: int, like: LinearLayout, element: Attribute) -> None:
        bits = log2(places)
        lanes, warps = (len(like.by_in[level]) for level in ("lane", "warp"))
        by_lane = {bit: bit for bit in range(min(lanes, bits))}
        by_warp = {bit: bit + lanes for bit in range(min(warps, max(0, bits - lanes)))}
        self.low, self.layout = low, memory_layout(like, range(lanes + warps, bits), by_lane, by_warp)
        self.move = Move(low, base, self.layout, element)
        self.mine = low.is_first_copy(self.layout)  # whether this thread has places of its own

    def fill(self, value: Value) -> None:
        """The same value everywhere."""
        self.move.store_if(self.mine, (value,) * self.layout.in_size("register"))

    def read(self) -> Iterator[tuple[Value, Value]]:
        """The number and the value of each place that this thread has."""
        places = coordinates(self.low, self.layout.rename_outs(["dim0"]))
        for (place,), value in zip(places, self.move.load(), strict=True):
            yield place, value
