"""`tt.reduce` by the tree of `ir/module_facts.py`: bit by bit of the index, from the lowest to the highest, wherever the bits are.

    4096 elements on 4 warps, four registers side by side, eight times:

    bits 0-1: registers     3 combinations in each of the eight groups
    bits 2-4: lanes         each trades half of its groups for the other lane's part of the rest: 4, 2, 1 shuffles, and one group is left
    bits 5-6: lanes         2 butterflies
    bits 7-8: warps         the eight groups of each warp meet in scratch memory
    bits 9-11: lanes        where the groups are now: 3 butterflies

No layout is asked for: the bits are taken in the order of the axis, so the number of warps changes who adds, and not what is added.
"""

from collections.abc import Sequence
from itertools import groupby

from xdsl.ir import Operation

from tilework.analysis.combine_regions import single_op
from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.axes import Bit, lane_is, mask_of, numbers, subsets
from tilework.targets.gpu.combine import fold
from tilework.targets.gpu.lowering import Lowering
from tilework.targets.gpu.scan import Scan, Values


def reduced_by_tree(
    low: Lowering, op: Operation, layout: LinearLayout, bits: Sequence[Bit], axis: int
) -> dict[int, Values]:
    """A value of each operand, by register without its bits along the axis."""
    tree = Tree(low, op, layout, bits, axis)
    steps = {"register": tree.in_threads, "lane": tree.in_warps, "warp": tree.across_warps}
    while left := sorted(filter(tree.is_open, tree.bits), key=lambda bit: bit.place):
        held = [bit for bit in left if bit.level == "register"]
        if left[0].level == "lane" and held:
            tree.trade(left[0], held[0])
        else:
            level, group = next(groupby(left, lambda bit: bit.level))
            steps[level](numbers(group, level), False)
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

    def trade(self, lane: Bit, held: Bit) -> None:
        """Combine along the bit `lane`, of which half of the lanes keep the pieces with the bit `held` and the others those without.

        From then on the lanes stand for the pieces: the bit is one of the index that comes later."""
        low, b, bit = self.low, self.low.builder, 1 << held.number
        upper = lane_is(low, 1 << lane.number, 1 << lane.number)
        for piece in [piece for piece in self.totals if not piece & bit]:
            first, second = self.totals[piece], self.totals.pop(piece | bit)
            given = b.select_all(upper, first, second)
            others = [low.shuffle_xor(value, 1 << lane.number) for value in given]
            before, after = b.select_all(upper, others, first), b.select_all(upper, second, others)
            self.totals[piece] = self.call(before, after)
        self.bits = [bit for bit in self.bits if bit not in (lane, held)] + [
            held._replace(level="lane", number=lane.number)
        ]
        self.traded.append(lane.number)

    def in_warps(self, bits: list[int], is_last: bool) -> None:
        low, b = self.low, self.low.builder
        is_symmetric = single_op(self.op.regions[0]) is not None
        for piece, values in self.totals.items():
            for bit in bits:
                others = [low.shuffle_xor(value, 1 << bit) for value in values]
                if is_symmetric:
                    values = self.call(values, others)
                    continue
                upper = lane_is(low, 1 << bit, 1 << bit)
                before, after = b.select_all(upper, others, values), b.select_all(upper, values, others)
                values = self.call(before, after)
            self.totals[piece] = values
        self.done["lane"] |= mask_of(bits)

    def across_warps(self, bits: list[int], is_last: bool) -> None:
        pieces, parts = list(self.totals), self.exchange(bits)
        for place, piece in enumerate(pieces):
            warps = [parts[place + len(pieces) * warp] for warp in range(1 << len(bits))]
            self.totals[piece] = fold(self.low, self.op.regions[0], warps)
        self.done["warp"] |= mask_of(bits)
