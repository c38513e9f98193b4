"""Prefetch the first slice of dot operands from shared memory one iteration ahead.

    scf.for ... iter_args(%a, %b : memory)            a0, b0 = first 16 of K of %a, %b         before the loop
      %x = ttg.local_load %a                          scf.for ... iter_args(%a, %b, %x0, %y0)
      %y = ttg.local_load %b                   ==>      %x1 = load %a[0, 16] ; %y1 = load %b[16, 0]
      %d = tt.dot %x, %y, %acc                          %d0 = tt.dot %x0, %y0, %acc
      yield next %a, next %b                            x0', y0' = first 16 of the next %a, %b
                                                        %d1 = tt.dot %x1, %y1, %d0
                                                        yield next %a, next %b, x0', y0'

While the tensor cores work on one slice of K, the next is loaded from shared memory to registers. A slice has 8 *
kWidth elements along K, the K of one `mma`. Fires in loops with a single `tt.dot` for `mma.sync` (version 2) whose
operands are loaded from memory that the loop carries, perhaps through casts, and where no op before the loads writes
memory or waits: the memory of the next iteration is ready at the end of this one.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from collections.abc import Sequence

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.ir import scf, tt, ttg, ttng
from tilework.ir.effects import is_elementwise, is_pure
from tilework.ir.encodings import dot_operand_of
from tilework.ir.nesting import end_of
from tilework.ir.rewrite import erase_op, insert_before, move_before, put, recreate, replace_all_uses
from tilework.ir.scf import also_carry, also_yield
from tilework.ir.types import Shape, shape_of, with_shape
from tilework.layouts.encodings import DotOperand, NvidiaMma
from tilework.light_dataclass import light_dataclass
from tilework.transforms.passes import op_pass

# Ops that may fill the memory that an iteration reads, or wait until it is filled.
FILLS = frozenset(
    {
        tt.CallOp,
        ttg.AsyncCopyGlobalToLocalOp,
        ttg.AsyncWaitOp,
        ttg.BarrierOp,
        ttg.LocalStoreOp,
        ttng.AsyncTMACopyGlobalToLocalOp,
        ttng.AsyncTMAGatherOp,
        ttng.WaitBarrierOp,
    }
)


@light_dataclass
class Operand:
    """An operand of the dot in shared memory: the ops from its load on, and the carried index of the memory."""

    chain: tuple[Operation, ...]
    carried: int  # the index among the iteration arguments
    axis: int  # K

    @property
    def load(self) -> Operation:
        return self.chain[0]


@op_pass("tritongpu-prefetch", scf.ForOp)
def prefetch(loop: Operation) -> None:
    """Rewrite `loop` if it has the form above."""
    body = loop.regions[0].blocks[0]
    dots = [op for op in body.ops if type(op) is tt.DotOp]
    if len(dots) != 1:
        return
    dot = dots[0]
    operands = [trace(value, body) for value in dot.operands[:2]]
    a, b = operands
    if a is None or b is None or is_filled_before(body, (a.load, b.load)):
        return
    width, depth = slice_width(dot), shape_of(dot.operands[0].type)[-1]
    if width is None or width > depth:
        return
    inits = [slice_of(loop, operand, loop.operands[3 + operand.carried], 0, width) for operand in (a, b)]
    firsts = also_carry(loop, inits)
    last = multiply(dot, (a, b), firsts, body, width, depth)
    terminator = end_of(body)
    following = [slice_of(terminator, operand, terminator.operands[operand.carried], 0, width) for operand in (a, b)]
    replace_all_uses(dot.results[0], last.results[0])
    erase_op(dot)
    for op in (*reversed(a.chain), *reversed(b.chain)):
        if all(result.first_use is None for result in op.results):
            erase_op(op)
    also_yield(body, following)
    sink(last)


def trace(value: SSAValue, body: Block) -> Operand | None:
    """Trace a dot operand through casts to memory that the loop carries."""
    encoding = dot_operand_of(value.type)
    if encoding is None or not is_ampere(encoding):
        return None
    chain: list[Operation] = []
    while isinstance(value, OpResult) and value.op.parent is body:
        chain.append(value.op)
        if type(value.op) is ttg.LocalLoadOp:
            break
        if not is_elementwise(value.op) or not is_pure(value.op) or len(value.op.operands) != 1:
            return None
        value = value.op.operands[0]
    if not chain or type(chain[-1]) is not ttg.LocalLoadOp or len(chain[-1].operands) != 1:
        return None
    memory = chain[-1].operands[0]
    if not isinstance(memory, BlockArgument) or memory.block is not body or memory.index == 0:
        return None
    kind = memory.type
    if not isinstance(kind, ttg.MemDescType) or kind.alloc_dims != kind.dims:
        return None
    return Operand(tuple(reversed(chain)), memory.index - 1, encoding.k_dim)


def is_ampere(encoding: DotOperand) -> bool:
    """Return True for operands of `mma.sync`, which are both in registers."""
    return isinstance(encoding.parent, NvidiaMma) and encoding.parent.is_ampere


def is_filled_before(body: Block, loads: Sequence[Operation]) -> bool:
    """Return True if an op that may fill memory precedes one of `loads` in the iteration."""
    left = set(loads)
    for op in body.ops:
        left.discard(op)
        if any(type(inner) in FILLS for inner in op.walk()):
            return True
        if not left:
            return False
    return False


def slice_width(dot: Operation) -> int | None:
    """Return the elements of K in one slice."""
    encoding = dot_operand_of(dot.operands[0].type)
    return None if encoding is None else 8 * encoding.k_width or None


def slice_of(anchor: Operation, operand: Operand, memory: SSAValue, start: int, width: int) -> SSAValue:
    """Load `width` elements of K from `start` on, with the casts of the operand, before `anchor`."""
    kind = memory.type
    assert isinstance(kind, ttg.MemDescType)
    shape: Shape = tuple(width if dim == operand.axis else size for dim, size in enumerate(kind.dims))
    offsets = [start if dim == operand.axis else 0 for dim in range(len(shape))]
    value = put(anchor, ttg.MemDescSubsliceOp.make(memory, offsets, shape, operand.load.location))
    for op in operand.chain:
        part = with_shape(op.results[0].type, shape)
        value = put(anchor, recreate(op, operands=(value,), result_types=(part,)))
    return value


def multiply(
    dot: Operation, operands: tuple[Operand, Operand], firsts: Sequence[SSAValue], body: Block, width: int, depth: int
) -> Operation:
    """Emit the dots of all slices, each slice loaded before the preceding dot; return the last one."""
    previous = recreate(dot, operands=(*firsts, dot.operands[2]))
    insert_before(dot, previous)
    for start in range(width, depth, width):
        parts = [slice_of(previous, one, body.args[1 + one.carried], start, width) for one in operands]
        following = recreate(dot, operands=(*parts, previous.results[0]))
        insert_before(dot, following)
        previous = following
    return previous


def sink(dot: Operation) -> None:
    """Move the last dot down to its first use, a region or the end."""
    result = dot.results[0]
    users = {use.operation for use in result.uses}
    following = dot.next_op
    while following is not None and following.next_op is not None and not following.regions and following not in users:
        following = following.next_op
    if following is not None and following.prev_op is not dot:
        move_before(following, dot)
