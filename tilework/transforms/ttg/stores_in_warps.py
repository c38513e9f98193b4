"""Warps store the rows that they have computed, and need not wait for each other.

    %y = ttg.convert_layout %x : #mma -> #blocked<{sizePerThread = [1, 8], ...}>      through shared memory, two barriers
    tt.store %p, %y
==>
    %y = ttg.convert_layout %x : #mma -> #blocked<{sizePerThread = [16, 8], ...}>     only lanes of a warp exchange
    tt.store %q, %y

A thread takes more rows, as many as a warp has of the product. What a warp stores at once is as contiguous as before. Where blocks
stay for several programs that lets one warp group multiply while the other stores (docs/cost-model.md).
"""

from xdsl.ir import Attribute, Operation

from tilework.ir import tt, ttg
from tilework.ir.encodings import layout_of, spread_of, with_encoding
from tilework.ir.functions import ops_in_order
from tilework.ir.rewrite import defining_op
from tilework.ir.types import shape_of
from tilework.layouts.construct import default_blocked
from tilework.layouts.conversion import conversion
from tilework.layouts.encodings import Blocked
from tilework.layouts.queries import contig_per_thread, machine_of, order
from tilework.transforms.ttg.coalesce import access_in

IN_WARPS = ("warp", "shuffle")


def store_own_rows(function: Operation) -> None:
    """Lay out the stores of what was computed in another layout, where warps can keep their rows."""
    for op in ops_in_order(*function.regions):
        if type(op) is tt.StoreOp and type(source := defining_op(op.operands[1])) is ttg.ConvertLayoutOp:
            encoding = own_rows(source.operands[0].type, op.operands[1].type)
            if encoding is not None:
                access_in(op, encoding)


def own_rows(computed: Attribute, stored: Attribute) -> Blocked | None:
    """The layout of a store with more rows for a thread, if with them each warp has all that it stores."""
    encoding, before, shape = spread_of(stored), layout_of(computed), shape_of(stored)
    if len(shape) < 2 or conversion(before, layout_of(stored)).kind != "shared":
        return None
    dims, held = order(encoding, shape), list(contig_per_thread(encoding, shape))
    warps, lanes, _ = machine_of(encoding)
    held[dims[-1]] = 1
    while held[dims[-1]] * 2 <= shape[dims[-1]]:
        held[dims[-1]] *= 2
        taller = default_blocked(shape, tuple(held), dims, warps, lanes, cga=encoding.cga_bases)
        if conversion(before, layout_of(with_encoding(stored, taller))).kind in IN_WARPS:
            return taller
    return None
