"""Split a product whose left factor is read from memory into registers along K, one piece per instruction.

    %a = local_load %m                             %a0 = local_load (memdesc_subslice %m[0, 0])
    %d = warp_group_dot %a, %b, %c           ==>   %d0 = warp_group_dot %a0, (memdesc_subslice %b[0, 0]), %c
    (K = 32, an instruction takes 16)              %a1 = local_load (memdesc_subslice %m[0, 16])
                                                   %d = warp_group_dot %a1, (memdesc_subslice %b[16, 0]), %d0, %true

The registers of a piece are free again when its instruction is done, before those of the whole; the next one is read while it runs.
"""

from xdsl.ir import Operation, SSAValue

from tilework.ir import ttg, ttng
from tilework.ir.effects import writes
from tilework.ir.encodings import (
    distributed_of,
    tensor_core_of,
    with_encoding,
)
from tilework.ir.module_facts import integer
from tilework.ir.rewrite import constant, erase_op, insert_before, recreate, replace_op
from tilework.ir.types import bit_width, element_type, i1, is_tensor, shape_of, tensor_type


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
    read = left.owner
    if not isinstance(read, ttg.LocalLoadOp) or not left.has_one_use() or not is_undisturbed(read, dot):
        return [dot]
    starts = range(0, shape[1], width)
    of_right = (width, shape_of(right.type)[1])
    rights = [put(dot, ttg.MemDescSubsliceOp.make(right, (at, 0), of_right, dot.location)) for at in starts]
    always = put(dot, constant(1, i1, dot.location))
    dots: list[Operation] = []
    for at, part in zip(starts, rights, strict=True):
        dots.append(recreate(dot, operands=(read_piece(dot, read, at, width), part, total, *use_total)))
        total, use_total = put(dot, dots[-1]), [always]
    replace_op(dot, results=(total,))
    erase_op(read)
    return dots


def is_undisturbed(read: Operation, dot: Operation) -> bool:
    """Nothing writes memory between the two, which are in one block; to wait for other memory is no matter."""
    between = read.next_op
    while between is not None and between is not dot and (type(between) is ttng.WaitBarrierOp or not writes(between)):
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
