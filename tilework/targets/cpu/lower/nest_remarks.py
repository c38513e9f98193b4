"""Say where the code of a nest does less at a time than vectors could; nothing is said unless somebody looks
(`targets/recording.py`).

    add.py:6:9: remark: this load is done one element at a time: its addresses are 8 bytes apart, and an element has 4
    add.py:9:5: remark: this is computed one element at a time: tt.atomic_rmw has no vector form

What is said is what `nests.py` and `nest_access.py` do: contiguous accesses are vectors, uniform ones scalars, all
others take the lanes one by one.
"""

from math import prod

from xdsl.ir import Operation

from tilework.ir import tt
from tilework.targets.cpu.lower.grouped import GroupedNest
from tilework.targets.cpu.lower.lanes import RUNTIME, Stride
from tilework.targets.cpu.lower.nest_access import access_stride
from tilework.targets.cpu.lower.nests import Nest
from tilework.transforms.remarks import remark

FEW = 16  # elements of a tile that is not worth a word
NOUNS: dict[type[Operation], str] = {tt.LoadOp: "load", tt.StoreOp: "store"}


def remark_nest(nest: Nest) -> None:
    """Report the ops of a nest that do not use whole vectors."""
    if prod(nest.shape) < FEW or isinstance(nest, GroupedNest):
        return
    if nest.lanes == 1:
        return remark_single(nest)
    if nest.lanes < (wanted := nest.wanted_lanes()):
        size = nest.shape[nest.dim]
        worth = [op for op in nest.ops if type(op) in NOUNS]
        if worth:
            text = f"vectors have {nest.lanes} elements here, and {wanted} would fit: the tile has {size} along dimension {nest.dim}"
            remark(worth[0], text)
    known = nest.whole if nest.has_pieces else nest.strides
    for op in nest.ops:
        if type(op) in NOUNS and (found := access_stride(op, known, nest.dim)) is not None:
            stride, size = found
            if stride not in (0, size, -size):
                remark(op, f"this {NOUNS[type(op)]} is done one element at a time: {reason(stride, size)}")


def remark_single(nest: Nest) -> None:
    """The op because of which a nest has no vectors."""
    singles = [op for op in nest.ops if nest.is_single(op)]
    for op in singles[:1]:
        remark(op, f"this is computed one element at a time: {op.name} has no vector form")
    if not singles and (folds := [fold for fold in nest.folds if not nest.low.is_elementwise(fold.combine)]):
        remark(folds[0].op, "this reduction takes one element at a time: what it combines them with has no vector form")


def reason(stride: Stride, size: int) -> str:
    if stride == RUNTIME:
        return "how far its addresses are apart is known only at run time"
    if stride is None:
        return "its addresses follow no line that the compiler can see"
    return f"its addresses are {stride} bytes apart, and an element has {size}"
