"""How a load can be copied to shared memory: in which layout, and whether at all.

Global memory is read in the layout of the load; the buffer should be in the layout that its users want to read:

    tt.load -> ttg.local_alloc (#shared)           #shared: the copy can go there directly
    tt.load -> ttg.convert_layout (dot_op)         swizzled so that `ldmatrix` has no bank conflicts
    anything else                                  rows as they are

``cp.async`` copies 4, 8 or 16 bytes: what a thread holds side by side must lie side by side in memory and in the buffer.
"""

from xdsl.ir import Operation, SSAValue

from tilework.analysis.axis_info import AxisFacts
from tilework.ir import tt, ttg
from tilework.ir.encodings import (
    distributed_of,
    dot_operand_of,
    shared_of,
    spread_of,
)
from tilework.ir.tt.descriptor_ops import block_type
from tilework.ir.types import bit_width, is_tensor, shape_of
from tilework.layouts.construct import dot_shared
from tilework.layouts.encodings import (
    Distributed,
    DotOperand,
    NvidiaMma,
    Shared,
    SwizzledShared,
)
from tilework.layouts.errors import LayoutError
from tilework.layouts.linear import LinearLayout
from tilework.layouts.queries import contig_per_thread, order, order_for_memory, thread_order
from tilework.layouts.to_linear import to_linear

MIN_COPY_BITS = 32


class Clash(Exception):
    """The users of a load want different layouts."""


def copy_width(load: Operation, facts: AxisFacts) -> int:
    """How many elements next to each other a thread reads at once: of the pointers, and of the mask."""
    pointers = load.operands[0]
    encoding = distributed_of(pointers.type)
    if encoding is None:
        return 1
    shape = shape_of(pointers.type)
    axes = order(encoding, shape)
    width = facts.contiguity(pointers, axes, contig_per_thread(encoding, shape))
    mask = getattr(load, "mask", None)
    return width if mask is None else min(width, facts.mask_alignment(mask, axes))


def copy_bytes(value: SSAValue, encoding: Shared) -> int:
    """The bytes that a thread's registers have in one piece in the buffer."""
    shape = shape_of(value.type)
    registers = distributed_of(value.type)
    if registers is None or encoding.intervals:
        return 0
    try:
        conversion = to_linear(registers, shape).invert_and_compose(to_linear(encoding, shape))
    except LayoutError:
        return 0
    return conversion.num_consecutive_in_out * bit_width(value.type) // 8


def alloc_users(load: Operation) -> list[Operation]:
    """The `ttg.local_alloc` ops that copy the loaded tensor to memory."""
    return [use.operation for use in load.results[0].uses if type(use.operation) is ttg.LocalAllocOp]


def shared_encoding(load: Operation) -> Shared | None:
    """The layout of the buffers of `load`. Raises `Clash` if its users do not agree; None for a scalar."""
    result = load.results[0]
    if type(load) is not tt.LoadOp:
        return descriptor_encoding(load)
    if not is_tensor(result.type) or distributed_of(result.type) is None:
        return None
    allocs = {shared_of(alloc.results[0].type) for alloc in alloc_users(load)}
    if len(allocs) > 1:
        raise Clash("its users want different layouts in shared memory")
    if allocs:
        (encoding,) = allocs
        return encoding
    return dot_encoding(result) or plain_encoding(result)


def descriptor_encoding(load: Operation) -> Shared | None:
    """What the descriptor says about the blocks it copies; the tile may lack their leading dimensions of size 1."""
    encoding = shared_of(block_type(load.operands[0].type))
    missing = 0 if encoding is None else encoding.rank - len(shape_of(load.results[0].type))
    return encoding.without_leading(missing) if encoding is not None and missing > 0 else encoding


def plain_encoding(value: SSAValue) -> SwizzledShared:
    """Rows as they are."""
    encoding = spread_of(value.type)
    return SwizzledShared(1, 1, 1, order(encoding, shape_of(value.type)), encoding.cga_bases)


def dot_encoding(value: SSAValue) -> SwizzledShared | None:
    """The layout that all users of `value` want, if all of them make it an operand of a product. May raise `Clash`."""
    found: SwizzledShared | None = None
    for use in value.uses:
        wanted = wanted_by(use.operation, value)
        if wanted is None:
            return None
        if found is not None and found != wanted:
            raise Clash("its users want different layouts in shared memory")
        found = wanted
    return found


def wanted_by(user: Operation, value: SSAValue) -> SwizzledShared | None:
    """The layout in which `user`, a conversion to the operand of a product, reads without bank conflicts."""
    if type(user) is not ttg.ConvertLayoutOp and type(user) is not ttg.LocalLoadOp:
        return None
    shape, bits = shape_of(value.type), bit_width(value.type)
    source, target = distributed_of(value.type), distributed_of(user.results[0].type)
    if source is None or target is None or len(shape) < 2:
        return None
    cga = source.cga_bases
    if (operand := dot_operand_of(user.results[0].type)) is not None:
        return dot_shared(operand, shape, order_for_memory(source, shape), bits, cga=cga)
    dot = micro_tile(target, shape)
    return None if dot is None else dot_shared(dot, shape, thread_order(target, shape), bits, cga=cga)


def micro_tile(encoding: Distributed, shape: tuple[int, ...]) -> DotOperand | None:
    """The operand that `encoding` looks like: its lanes are 8 x 4, each with some neighbours along K."""
    rank = len(shape)
    lanes = thread_order(encoding, shape)
    rows_first = (rank - 1, rank - 2, *range(rank - 3, -1, -1))
    columns_first = (rank - 2, rank - 1, *range(rank - 3, -1, -1))
    if lanes == rows_first:
        index = 0
    elif lanes == columns_first:
        index = 1
    else:
        return None
    width = contig_per_thread(encoding, shape)[lanes[0]]
    fast, slow = f"dim{lanes[0]}", f"dim{lanes[1]}"
    tile = (
        LinearLayout.identity(width, "register", fast)
        * LinearLayout.identity(4, "lane", fast)
        * LinearLayout.identity(8, "lane", slow)
    )
    if to_linear(encoding, shape).divide_left(tile) is None:
        return None
    return DotOperand(index, NvidiaMma(2, 0, (1,) * rank, (16, 8)), width)


def is_profitable(load: Operation, facts: AxisFacts) -> str | None:
    """Why copying `load` ahead of time would not pay, or None if it does."""
    if type(load) is not tt.LoadOp:
        return None
    result = load.results[0]
    if copy_width(load, facts) * bit_width(result.type) < MIN_COPY_BITS:
        return "its elements lie too far apart: less than 4 bytes are read at once"
    try:
        encoding = shared_encoding(load)
    except Clash as clash:
        return str(clash)
    if encoding is not None and alloc_users(load) and copy_bytes(result, encoding) * 8 < MIN_COPY_BITS:
        return "less than 4 bytes go to one place in shared memory"
    return None
