"""Split a product whose left factor is read from memory into registers along K, one piece per instruction.

What is computed from it element by element (a conversion from i8, a scale for each row) is computed piece by piece too.

    %a = local_load %m                             %a0 = local_load (memdesc_subslice %m[0, 0])
    %d = warp_group_dot %a, %b, %c           ==>   %d0 = warp_group_dot %a0, (memdesc_subslice %b[0, 0]), %c
    (K = 32, an instruction takes 16)              %a1 = local_load (memdesc_subslice %m[0, 16])
                                                   %d = warp_group_dot %a1, (memdesc_subslice %b[16, 0]), %d0, %true

The registers of a piece are free again when its instruction is done, before those of the whole; the next one is read while it runs.
"""

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tilework.ir import tt, ttg, ttng
from tilework.ir.effects import ELEMENTWISE, is_speculatable, writes
from tilework.ir.encodings import (
    tensor_core_of,
)
from tilework.ir.module_facts import integer
from tilework.ir.nesting import ops_behind
from tilework.ir.rewrite import constant, constant_value, erase_op, put, recreate, replace_op
from tilework.ir.types import bit_width, i1, is_tensor, shape_of, with_shape

WAITS = frozenset({ttng.WaitBarrierOp, ttg.AsyncWaitOp})
PRODUCTS = frozenset({ttng.WarpGroupDotOp, ttng.WarpGroupDotWaitOp})


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
    read, *computing = computation(left) or [dot]
    if read is dot or not is_undisturbed(read, dot):
        return [dot]
    starts = range(0, shape[1], width)
    of_right = (width, shape_of(right.type)[1])
    rights = [put(dot, ttg.MemDescSubsliceOp.make(right, (at, 0), of_right, dot.location)) for at in starts]
    always = put(dot, constant(1, i1, dot.location))
    dots: list[Operation] = []
    is_alone = not any(type(between) in PRODUCTS for between in ops_behind(read, dot))
    for at, part in zip(starts, rights, strict=True):
        piece = read_piece(read if is_alone and not at else dot, read, at, width)  # before a wait for the right factor
        for op in computing:
            piece = compute_piece(dot, op, piece)
        dots.append(recreate(dot, operands=(piece, part, total, *use_total)))
        total, use_total = put(dot, dots[-1]), [always]
    replace_op(dot, results=(total,))
    for op in reversed((read, *computing)):
        erase_op(op)
    return dots


def computation(left: SSAValue) -> list[Operation] | None:
    """The load from shared memory that a factor comes from, and the ops that make it of that element by element; None if others do."""
    found: list[Operation] = []
    while left.has_one_use() and isinstance(op := left.owner, Operation):
        found.append(op)
        if type(op) is ttg.LocalLoadOp:
            return found[::-1]
        varying = [operand for operand in op.operands if not is_alike(operand)]
        is_elementwise = type(op) in ELEMENTWISE and is_speculatable(op)
        if len(varying) != 1 or len(op.results) != 1 or not (is_elementwise or is_read_otherwise(op)):
            return None
        left = varying[0]
    return None


def is_read_otherwise(op: Operation) -> bool:
    """A conversion of what was loaded just now, which will be loaded like that."""
    return type(op) is ttg.ConvertLayoutOp and type(op.operands[0].owner) is ttg.LocalLoadOp


def is_alike(value: SSAValue) -> bool:
    """All columns of `value` are the same."""
    op = value.owner
    is_constant = type(op) is arith.ConstantOp and constant_value(value) is not None
    return (
        is_constant
        or type(op) is tt.SplatOp
        or (type(op) is tt.BroadcastOp and shape_of(op.operands[0].type)[-1:] == (1,))
    )


def compute_piece(dot: Operation, op: Operation, piece: SSAValue) -> SSAValue:
    """What `op` makes of a piece of what it is given."""
    operands = [piece_of(dot, operand, shape_of(piece.type)) if is_alike(operand) else piece for operand in op.operands]
    return put(
        dot, recreate(op, operands=operands, result_types=(with_shape(op.results[0].type, shape_of(piece.type)),))
    )


def piece_of(dot: Operation, value: SSAValue, shape: tuple[int, ...]) -> SSAValue:
    type, op = with_shape(value.type, shape), value.owner
    if isinstance(op, arith.ConstantOp):
        return put(dot, constant(constant_value(value), type, op.location))  # pyright: ignore[reportArgumentType]
    assert isinstance(op, Operation)
    return put(dot, recreate(op, result_types=(type,)))


def is_undisturbed(read: Operation, dot: Operation) -> bool:
    """Nothing writes memory between the two, which are in one block; to wait for other memory is no matter."""
    is_behind = read.parent is dot.parent and read.is_before_in_block(dot)
    return is_behind and all(type(between) in WAITS or not writes(between) for between in ops_behind(read, dot))


def read_piece(place: Operation, read: Operation, start: int, width: int) -> SSAValue:
    """The columns from `start` on of what `read` reads, in front of `place`."""
    memory, rows = read.operands[0], shape_of(read.results[0].type)[0]
    part = put(place, ttg.MemDescSubsliceOp.make(memory, (0, start), (rows, width), read.location))
    type = with_shape(read.results[0].type, (rows, width))
    return put(place, ttg.LocalLoadOp.make(part, type, read.location, *read.operands[1:]))
