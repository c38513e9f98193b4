"""Rows whose addresses may wrap around in 32 bits: ``%p + (%start + %j * %n)``, where the kernel is given `%n`.

if start + 63 * n fits into 32 bits:           once per row
    for e in 0, 32:  load p + start + n * e    each lane is 4 * n bytes behind the one before
else:
    for e in 0, 32:  ...                       each lane has its own 32 bits, and its own address
"""

from collections.abc import Callable
from functools import reduce

from tilework.targets.cpu.lower.lanes import Linear
from tilework.targets.cpu.lower.open_nest import OpenNest
from tilework.targets.llvm.types import i1
from tilework.targets.llvm.values import constant


def walk_ways(nest: OpenNest, is_row: bool, walk: Callable[[], None]) -> None:
    """`walk` the loop of a nest: twice if it is a row with such addresses."""
    b, kinds, mode = nest.b, nest.kinds, nest.mode
    sums = {value: kind for value, kind in kinds.items() if isinstance(kind, Linear) and kind.sum is not None}
    if not sums or not is_row:
        walk()
        return
    wraps = reduce(b.or_, (line.wraps for line in sums.values()))
    plain = kinds | {value: line._replace(sum=None) for value, line in sums.items()}
    for way, condition in ((plain, b.xor(wraps, constant(i1, 1))), (kinds, wraps)):
        with b.if_(condition):
            nest.kinds, nest.is_rare = dict(way), way is kinds
            walk()
    nest.kinds, nest.mode, nest.is_rare = kinds, mode, False
