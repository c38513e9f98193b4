"""Split a product whose left factor is in registers along K, one piece per instruction.

    %d = warp_group_dot %a, %b, %c             %a0, %a1 = the halves of %a along K
    (K = 32, an instruction takes 16)    ==>   %d0 = warp_group_dot %a0, (memdesc_subslice %b[0, 0]), %c
                                               %d = warp_group_dot %a1, (memdesc_subslice %b[16, 0]), %d0, %true

The registers of a piece are free again when its instruction is done, before those of the whole. %a is cut by a reshape to
M x 2 x ... x 2 x k, a transposition that brings the 2s to the end, and a `tt.split` for each of them: no data moves.

Where %a is read from memory for this product, each piece is read in front of its own: while the ones before it run.
"""

from xdsl.ir import Operation, SSAValue

from tilework.ir import tt, ttg
from tilework.ir.effects import writes
from tilework.ir.encodings import (
    distributed_of,
    tensor_core_of,
    with_encoding,
)
from tilework.ir.module_facts import integer
from tilework.ir.rewrite import constant, erase_op, insert_before, recreate, replace_op
from tilework.ir.types import bit_width, element_type, i1, is_tensor, shape_of, tensor_type
from tilework.layouts.errors import LayoutError
from tilework.layouts.infer import infer_reshape


def split_along_k(dot: Operation) -> list[Operation]:
    """Replace `dot` by its pieces, in order; itself alone where it cannot or need not be cut."""
    left, right, total, *use_total = dot.operands
    mma = tensor_core_of(dot.results[0].type)
    if not is_tensor(left.type) or mma is None:  # its instruction says how K is cut
        return [dot]
    shape, width = shape_of(left.type), mma.instr_shape[-1]
    if len(shape) != 2 or shape[1] <= width or shape[1] % width or len(mma.instr_shape) < 3:
        return [dot]
    if bit_width(left.type) == 8 and integer(dot.properties, "maxNumImpreciseAcc") in range(1, shape[1] + 1):
        return [dot]  # its lowering counts products: pieces would not know of each other
    read = left.owner if isinstance(left.owner, ttg.LocalLoadOp) and left.has_one_use() else None
    read = read if read is not None and is_undisturbed(read, dot) else None
    try:
        lefts = [] if read is not None else pieces_of(dot, left, shape[1] // width, width)
    except LayoutError:
        return [dot]
    starts = range(0, shape[1], width)
    of_right = (width, shape_of(right.type)[1])
    rights = [put(dot, ttg.MemDescSubsliceOp.make(right, (at, 0), of_right, dot.location)) for at in starts]
    always = put(dot, constant(1, i1, dot.location))
    dots: list[Operation] = []
    for at, part in zip(starts, rights, strict=True):
        piece = read_piece(dot, read, at, width) if read is not None else lefts[at // width]
        dots.append(recreate(dot, operands=(piece, part, total, *use_total)))
        total, use_total = put(dot, dots[-1]), [always]
    replace_op(dot, results=(total,))
    if read is not None:
        erase_op(read)
    return dots


def is_undisturbed(read: Operation, dot: Operation) -> bool:
    """Nothing writes memory between the two, which are in one block."""
    between = read.next_op
    while between is not None and between is not dot and not writes(between):
        between = between.next_op
    return between is dot


def read_piece(dot: Operation, read: Operation, start: int, width: int) -> SSAValue:
    """The columns from `start` on of what `read` reads."""
    memory, rows = read.operands[0], shape_of(read.results[0].type)[0]
    part = put(dot, ttg.MemDescSubsliceOp.make(memory, (0, start), (rows, width), read.location))
    whole = read.results[0].type
    type = with_encoding(tensor_type((rows, width), element_type(whole)), distributed_of(whole))
    return put(dot, ttg.LocalLoadOp.make(part, type, read.location, *read.operands[1:]))


def put(before: Operation, op: Operation) -> SSAValue:
    insert_before(before, op)
    return op.results[0]


def pieces_of(dot: Operation, left: SSAValue, count: int, width: int) -> list[SSAValue]:
    """`left` cut along its columns into `count` tensors of `width`. Raises `LayoutError` before anything is built."""
    location = dot.location
    source = distributed_of(left.type)
    assert source is not None, left.type
    rows, columns = shape_of(left.type)
    halvings = count.bit_length() - 1
    folded = (rows, *(2,) * halvings, width)
    encoding = infer_reshape((rows, columns), source, folded)
    ops: list[Operation] = []
    whole = tensor_type(folded, left.type.element_type)  # pyright: ignore[reportAttributeAccessIssue]
    ops.append(tt.ReshapeOp.make(left, with_encoding(whole, encoding), location))
    order = (0, halvings + 1, *range(halvings, 0, -1))
    ops.append(tt.TransOp.make(ops[-1].results[0], order, location))
    parts: list[SSAValue] = [ops[-1].results[0]]
    for _ in range(halvings):
        splits = [tt.SplitOp.make(part, location) for part in parts]
        ops += splits
        parts = [result for split in splits for result in split.results]
    target = with_encoding(tensor_type((rows, width), whole.element_type), source)
    converts = [ttg.ConvertLayoutOp.make(part, target, location) for part in parts]
    insert_before(dot, *ops, *converts)
    return [convert.results[0] for convert in converts]
