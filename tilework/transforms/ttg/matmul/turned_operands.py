"""Dots of 8-bit and 32-bit operands that do not lie along K, which is all that `wgmma` reads of them in shared memory.

    d = dot(a, b, c)     a: M x K, rows along K     b: K x N, rows along N

The *left* factor may come from registers instead, and reading it there may transpose it (`ldmatrix.trans`, or words one by
one). So the dot is turned around where it is the right one that lies across:

    dT = dot(bT, aT, cT)              aT stays where it is, K contiguous; bT: registers
    %m = ttg.local_alloc %b           #swizzled, rows as they were loaded: the pipeliner copies there in the background
    %t = ttg.memdesc_trans %m         N x K
    %r = ttg.local_load %t            #dot_op<0>

Rows of the product may come in any order, so they are *dealt*, and those of the result gathered again, where that suits the
reading. `ldmatrix.trans` moves pairs of bytes: a thread gets rows 2r and 2r + 1 where the instruction has r and r + 8. Words of 32
bits are read one by one: rows 0-3 and 16-19 of four values of K are in different banks of what TMA writes, rows 0-7 are not.
Transpositions and deals of the sum are no code: its registers stay where they are.

Shared memory sees each byte of such an operand twice (written, read) besides what the instruction itself reads. Where the left factor is
needed as it is, because it lies across too or is computed (the probabilities of attention), the right one is read in the same way and written
once more, along K. A thread that has neighbours of a row would write them to as many rows, all to the same banks: of tiles of 128x256x128 in fp8 that was ten
times as much as all the rest.
"""

from math import prod

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt, ttg
from tilework.ir.encodings import spread_of, with_encoding
from tilework.ir.rewrite import insert_after, put, recreate, replace_op
from tilework.ir.types import array_values, bit_width, element_type, shape_of, tensor_type
from tilework.layouts.construct import nvmma_shared
from tilework.layouts.encodings import DotOperand, NvidiaMma, Shared, SwizzledShared
from tilework.layouts.infer import infer_reshape
from tilework.layouts.queries import order_for_memory
from tilework.transforms.ttg.matmul.mma_choice import GROUP_ROWS, Dot, converted_from, feeds_a_dot

SWAP = (1, 0)
WARP_ROWS = 16  # that a warp has of a left factor at once
EXCHANGE = (0, 2, 1, 3, 4)
LOADS = (tt.LoadOp, tt.DescriptorLoadOp)
DEALS = {8: (8, 2, 1), 32: (2, 4, 4)}  # by the bits of an element: rows x, y, z come in the order y, x, z


def loaded(operand: SSAValue) -> tuple[SSAValue, bool] | None:
    """What is loaded for `operand`, and whether it is transposed on the way; None if it is computed."""
    value, is_swapped = converted_from(operand), False
    while isinstance(owner := value.owner, tt.TransOp) and array_values(owner.properties["order"]) == SWAP:
        value, is_swapped = converted_from(owner.operands[0]), not is_swapped
    return (value, is_swapped) if isinstance(owner, LOADS) else None


def lies_across(operand: SSAValue, k_dim: int) -> bool:
    """`operand` is loaded, has elements that `wgmma` cannot transpose, and rows that are not along K."""
    if bit_width(operand.type) not in (8, 32) or (found := loaded(operand)) is None:
        return False
    value, is_swapped = found
    return order_for_memory(spread_of(value.type), shape_of(value.type))[0] != (1 - k_dim if is_swapped else k_dim)


def is_turned(dot: Dot) -> bool:
    """The dot should be turned around: its right factor lies across, the left one does not, and 64 divides N."""
    a, b, _ = dot.op.operands
    return (
        lies_across(b, 0)
        and loaded(a) is not None
        and not lies_across(a, 1)
        and dot.tile[1] % GROUP_ROWS == 0
        and not feeds_a_dot(dot.op)
    )


def reads_left(dot: Dot) -> bool:
    """The left factor should come from registers because it lies across."""
    return lies_across(dot.op.operands[0], 1) and not feeds_a_dot(dot.op)


def turn(op: Operation) -> Operation:
    """The dot of the transposed factors the other way round, in the place of `op`."""
    a, b, c = (tt.TransOp.make(converted_from(value), SWAP, op.location) for value in op.operands)
    operands = (b.results[0], a.results[0], c.results[0])
    new = recreate(op, operands=operands, result_types=(c.results[0].type,))
    replace_op(op, a, b, c, new, tt.TransOp.make(new.results[0], SWAP, op.location))
    return new


def left_fragments(op: Operation, mma: NvidiaMma) -> SSAValue:
    """The left factor of `op` in registers, by way of shared memory, with its rows dealt."""
    operand = op.operands[0]
    return fragments(op, as_loaded(op, operand), operand.type, mma)


def as_loaded(op: Operation, operand: SSAValue) -> SSAValue:
    """The memory of a factor, with its rows as they were loaded."""
    found = loaded(operand)
    assert found is not None, operand
    value, is_swapped = found
    memory = ttg.memdesc_type(shape_of(value.type), element_type(operand.type), natural(value))
    alloc = ttg.LocalAllocOp.make(value, memory, op.location)
    load = value.owner
    assert isinstance(load, LOADS), load
    insert_after(load, alloc)
    view = alloc.results[0]
    return put(op, ttg.MemDescTransOp.make(view, SWAP, op.location)) if is_swapped else view


def fragments(op: Operation, view: SSAValue, type: Attribute, mma: NvidiaMma) -> SSAValue:
    """A tile of `type`, rows x K, read as a left factor, with its rows dealt."""
    rows, depth = shape_of(type)
    deal, layout = DEALS[bit_width(type)], DotOperand(0, mma, 32 // bit_width(type))
    view = put(op, ttg.MemDescReshapeOp.make(view, (rows // prod(deal), *deal, depth), op.location))
    view = put(op, ttg.MemDescTransOp.make(view, EXCHANGE, op.location))
    view = put(op, ttg.MemDescReshapeOp.make(view, (rows, depth), op.location))
    return put(op, ttg.LocalLoadOp.make(view, with_encoding(type, layout), op.location))


def is_copied_turned(dot: Dot, mma: NvidiaMma) -> bool:
    """The right factor lies across, and there is a column for each row that all warps of a block have of a left one."""
    columns = dot.tile[1]
    return (
        lies_across(dot.op.operands[1], 0) and columns % (WARP_ROWS * mma.warps_per_cta[0]) == 0 and not mma.cga_bases
    )


def turned_copy(op: Operation, mma: NvidiaMma) -> SSAValue:
    """The right factor of `op` in memory, along K: read from its rows as a left factor, and written so, both without bank conflicts."""
    operand = op.operands[1]
    depth, columns = shape_of(operand.type)
    view = put(op, ttg.MemDescTransOp.make(as_loaded(op, operand), SWAP, op.location))
    across = with_encoding(tensor_type((columns, depth), element_type(operand.type)), None)
    read = dealt(op, fragments(op, view, across, mma), back=True)
    turned = put(op, tt.TransOp.make(read, SWAP, op.location))
    shared = nvmma_shared((depth, columns), (0, 1), bit_width(operand.type))
    memory = ttg.memdesc_type((depth, columns), element_type(operand.type), shared)
    return put(op, ttg.LocalAllocOp.make(turned, memory, op.location))


def natural(value: SSAValue) -> Shared:
    """Rows as they were loaded, swizzled so that reading the fragments has no bank conflicts, or as TMA writes them."""
    held = spread_of(value.type)
    shape, bits = shape_of(value.type), bit_width(value.type)
    order = order_for_memory(held, shape)
    if bits == 32 or type(value.owner) is tt.DescriptorLoadOp:
        return nvmma_shared(shape, order, bits, held.cga_bases)
    # A matrix of `ldmatrix` has the rows k of bits 2, 3 and either 0 or 1: in groups of 16 bytes of their own.
    wide = shape[order[0]] >= 128
    return SwizzledShared(16, *((2, 8) if wide else (4, 4)), order, held.cga_bases)


def dealt(op: Operation, value: SSAValue, back: bool = False) -> SSAValue:
    """The rows of `value`, a sum of `op`, in the order of the left factor, or in their own again."""
    rows, columns = shape_of(value.type)
    x, y, z = DEALS[bit_width(op.operands[0].type)]
    value = reshaped(op, value, (rows // (x * y * z), *((y, x) if back else (x, y)), z, columns))
    value = put(op, tt.TransOp.make(value, EXCHANGE, op.location))
    return reshaped(op, value, (rows, columns))


def reshaped(op: Operation, value: SSAValue, shape: tuple[int, ...]) -> SSAValue:
    type = tensor_type(shape, element_type(value.type))
    encoding = infer_reshape(shape_of(value.type), spread_of(value.type), shape)
    return put(op, tt.ReshapeOp.make(value, with_encoding(type, encoding), op.location))
