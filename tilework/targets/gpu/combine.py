"""The function of scalars that a reduction, a scan or a map carries as its region.

    sums = call(low, op.regions[0], [*left, *right])

A region of one block is emitted in place. One with branches (a function that returns early) gets blocks of its own, and the
values that its returns give meet in phis.
"""

from collections.abc import Sequence

from xdsl.ir import Region

from tilework.analysis.combine_regions import single_op
from tilework.targets.gpu.lowering import Lowering
from tilework.targets.llvm.module import Block
from tilework.targets.llvm.op_lowering import REGION_ENDS
from tilework.targets.llvm.values import Value


def call(low: Lowering, region: Region, args: Sequence[Value]) -> list[Value]:
    """What the function returns for these scalars."""
    blocks = list(region.blocks)
    if len(blocks) == 1:
        return low.combine(blocks[0], args)
    b, outer = low.builder, low.branches
    returned: list[tuple[list[Value], Block]] = []
    after = b.function.block("returned")
    with b.scope():
        branches = low.branches = low.branches_of(blocks)
        low.values.update(zip(blocks[0].args, [(arg,) for arg in args], strict=True))
        for block in branches.order():
            branches.enter(block)
            low.lower_block(block)
            last = block.last_op
            if last is not None and last.name in REGION_ENDS:
                returned.append(([low.scalar(operand) for operand in last.operands], b.block))
                b.br(after)
        branches.close()
    low.branches = outer
    b.resume(after)
    ways = [[(value, block) for value in values] for values, block in returned]
    return [b.phi(edges[0][0].type, edges) for edges in zip(*ways, strict=True)]


def fold(low: Lowering, region: Region, parts: Sequence[Sequence[Value]]) -> list[Value]:
    """All parts combined, neighbours first: a tree keeps the order and is not deep."""
    left = [list(part) for part in parts]
    # values of 16 bits are computed in pairs, given several
    is_one_by_one = single_op(region) is None or left[0][0].type.bits == 16
    while len(left) > 1:
        firsts, seconds = left[: len(left) & ~1 : 2], left[1::2]
        if is_one_by_one:
            pairs = [call(low, region, [*first, *second]) for first, second in zip(firsts, seconds, strict=True)]
        else:
            sides = [tuple([value for (value,) in side]) for side in (firsts, seconds)]
            pairs = [[value] for value in low.region(region.blocks[0], sides)[0]]
        left = [*pairs, *left[len(left) & ~1 :]]
    return left[0]
