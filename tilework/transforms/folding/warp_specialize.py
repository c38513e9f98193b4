"""What `canonicalize` knows about `ttg.warp_specialize`: captures and results that nobody needs.

    ttg.warp_specialize(%p, %n, %p)                                  ttg.warp_specialize(%p)
    default { ttg.warp_yield %x : i32 }                       ==>    default { ttg.warp_yield }
    partition0(%a: .., %b: i32, %c: ..) { store %a, store %c }       partition0(%a: ..) { store %a, store %a }

A capture that no partition uses goes, one that is captured twice is captured once, and so do results without uses.
"""

from collections.abc import Sequence

from xdsl.ir import Operation, Region

from tilework.ir import ttg
from tilework.ir.rewrite import recreate, replace_all_uses
from tilework.transforms.folding.structured import keep_arguments
from tilework.transforms.folding.worklist import Driver, Rewrite


def rewrite_warp_specialize(op: Operation, driver: Driver) -> bool:
    """Drop what is not needed. True if anything was."""
    assert isinstance(op, ttg.WarpSpecializeOp), op.name
    partitions = op.partitions
    merged = merge_captures(op, partitions)
    kept = [index for index in range(len(op.operands)) if is_captured(index, partitions)]
    wanted = [index for index, result in enumerate(op.results) if result.first_use is not None]
    if len(kept) == len(op.operands) and len(wanted) == len(op.results):
        return merged
    for region in partitions:
        keep_arguments(region.blocks[0], kept)
    for block in op.regions[0].blocks:
        if (last := block.last_op) is not None and type(last) is ttg.WarpYieldOp and len(wanted) < len(op.results):
            driver.set_operands(last, [last.operands[index] for index in wanted])
    operands = [op.operands[index] for index in kept]
    types = [op.results[index].type for index in wanted]
    new = recreate(op, operands=operands, result_types=types, regions=tuple(op.regions))
    driver.insert(op, new)
    for index, result in zip(wanted, new.results, strict=True):
        driver.replace_value(op.results[index], result)
    return driver.erase(op)


def merge_captures(op: Operation, partitions: Sequence[Region]) -> bool:
    """Use the first of several captures of one value. True if a use changed."""
    first: dict[object, int] = {}
    changed = False
    for index, value in enumerate(op.operands):
        earlier = first.setdefault(value, index)
        if earlier == index:
            continue
        for region in partitions:
            args = region.blocks[0].args
            changed |= args[index].first_use is not None
            replace_all_uses(args[index], args[earlier])
    return changed


def is_captured(index: int, partitions: Sequence[Region]) -> bool:
    """Some partition uses capture `index`."""
    return any(region.blocks[0].args[index].first_use is not None for region in partitions)


REWRITES: dict[type[Operation], Rewrite] = {ttg.WarpSpecializeOp: rewrite_warp_specialize}
