"""`tt.reduce` by the tree of `ir/reproducible.py`: bit by bit of the index, from the lowest to the highest, wherever the bits are.

    4096 elements on 4 warps, four registers side by side, eight times:

    bits 0-1: registers     3 additions in each of the eight groups
    bits 2-6: lanes         5 butterflies in each of them
    bits 7-8: warps         eight totals of each warp meet in scratch memory
    bits 9-11: registers    7 additions

No layout is asked for: the bits are taken in the order of the axis, so the number of warps changes who adds, and not what is added.
"""

from collections.abc import Sequence
from itertools import groupby

from xdsl.ir import Operation

from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.axes import Bit, has_bits, mask_of, subsets
from tilework.targets.gpu.combine import fold, single_op
from tilework.targets.gpu.lowering import Lowering
from tilework.targets.gpu.scan import Scan, Values


def reduced_by_tree(
    low: Lowering, op: Operation, layout: LinearLayout, bits: Sequence[Bit], axis: int
) -> dict[int, Values]:
    """A value of each operand, by register without its bits along the axis."""
    tree = Tree(low, op, layout, bits, axis)
    along = [bit for bit in bits if bit.dim == axis]
    tree.join([list(group) for _, group in groupby(along, lambda bit: bit.level)])
    return tree.totals


class Tree(Scan):
    """A scan of which only the totals are wanted."""

    def in_threads(self, bits: list[int], is_last: bool) -> None:
        own, region = mask_of(bits), self.op.regions[0]
        self.totals = {
            start: fold(self.low, region, [self.totals[start | place] for place in subsets(bits)])
            for start in self.totals
            if not start & own
        }
        self.done["register"] |= own

    def in_warps(self, bits: list[int], is_last: bool) -> None:
        low, b = self.low, self.low.builder
        is_symmetric = single_op(self.op.regions[0]) is not None
        for piece, values in self.totals.items():
            for bit in bits:
                others = [low.shuffle_xor(value, 1 << bit) for value in values]
                if is_symmetric:
                    values = self.call(values, others)
                    continue
                upper = has_bits(low, low.lane, 1 << bit, 1 << bit)
                assert upper is not None
                pairs = list(zip(values, others, strict=True))
                before = [b.select(upper, other, own) for own, other in pairs]
                values = self.call(before, [b.select(upper, own, other) for own, other in pairs])
            self.totals[piece] = values
        self.done["lane"] |= mask_of(bits)

    def across_warps(self, bits: list[int], is_last: bool) -> None:
        pieces, parts = list(self.totals), self.exchange(bits)
        for place, piece in enumerate(pieces):
            warps = [parts[place + len(pieces) * warp] for warp in range(1 << len(bits))]
            self.totals[piece] = fold(self.low, self.op.regions[0], warps)
        self.done["warp"] |= mask_of(bits)
