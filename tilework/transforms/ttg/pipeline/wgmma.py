"""Step 3 of the pipeliner: make warp-group dots asynchronous.

    %d = ttng.warp_group_dot %a, %b, %acc                %d = ttng.warp_group_dot %a, %b, %acc {isAsync = true}
    scf.yield %d                                 ==>     %w:3 = ttng.warp_group_dot_wait %d, %a, %b {pendings = 1}
                                                         scf.yield %w#0

With `pendings = 1` the dot of the preceding iteration is complete, and this one still runs while the next copies start.
That is correct if no op reads the accumulator or overwrites the operands until the wait:

1. the memory of the operands is not written in the same iteration: it is one of several buffers, or from outside; where
   the next copy overwrites the buffer, all dots complete before it;
2. the result is only carried to the next iteration (f32 or i32), or read in an `scf.if`, which then waits;
3. there it is only an accumulator again, or read after a wait for all dots.

A dot for which this does not hold is waited for at once (`pendings = 0`), with all preceding ones. The operands of a
wait are the accumulators and the memory that the dots read, which is in use until then.
"""

from collections.abc import Iterable, Sequence

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.alias import VIEWS, slots_of
from tilework.analysis.cost import occupancy, registers
from tilework.ir import arith, scf, tt, ttg, ttng
from tilework.ir.effects import ELEMENTWISE, is_speculatable, writes
from tilework.ir.encodings import is_accumulator, layout_of, tensor_core_of
from tilework.ir.module_facts import MAX_REGISTERS, find_target, integer, num_warps, threads_per_warp
from tilework.ir.nesting import body_of, ops_behind
from tilework.ir.rewrite import (
    block_of,
    constant,
    constant_value,
    erase_op,
    insert_after,
    insert_before,
    put,
    recreate,
    replace_op,
    replace_uses,
)
from tilework.ir.ttg.memory_types import is_memdesc
from tilework.ir.types import (
    bit_width,
    element_type,
    f32,
    i1,
    i32,
    int_attr,
    int_property,
    is_tensor,
    shape_of,
    with_shape,
)
from tilework.transforms.ttg.pipeline.load_plans import address_registers
from tilework.transforms.ttg.pipeline.loops import body_ops, enclosing_op, loops_in, num_stages, used_values, yield_of

# Split a dot whose left operand is loaded from shared memory into registers along K, one piece per instruction.
#
# Elementwise ops on the operand (a conversion from i8, a scale for each row) are computed piece by piece too.
#
#     %a = local_load %m                             %a0 = local_load (memdesc_subslice %m[0, 0])
#     %d = warp_group_dot %a, %b, %c           ==>   %d0 = warp_group_dot %a0, (memdesc_subslice %b[0, 0]), %c
#     (K = 32, an instruction takes 16)              %a1 = local_load (memdesc_subslice %m[0, 16])
#                                                    %d = warp_group_dot %a1, (memdesc_subslice %b[16, 0]), %d0, %true
#
# The registers of a piece are free when its instruction is complete, before those of the whole; the next one is loaded
# while it runs.

WAITS = frozenset({ttng.WaitBarrierOp, ttg.AsyncWaitOp})
WGMMA_OPS = frozenset({ttng.WarpGroupDotOp, ttng.WarpGroupDotWaitOp})


def split_along_k(dot: Operation) -> list[Operation]:
    """Replace `dot` by its pieces, and return them in order; itself alone where it cannot or need not be split."""
    left, right, total, *use_total = dot.operands
    mma = tensor_core_of(dot.results[0].type)
    if not is_tensor(left.type) or mma is None:
        return [dot]
    shape, width = shape_of(left.type), mma.instr_shape[-1]
    if len(shape) != 2 or shape[1] <= width or shape[1] % width or len(mma.instr_shape) < 3:
        return [dot]
    if bit_width(left.type) == 8 and integer(dot.properties, "maxNumImpreciseAcc") in range(1, shape[1] + 1):
        return [dot]  # its lowering counts the elements of K of the whole dot
    read, *computing = computation(left) or [dot]
    if read is dot or not is_undisturbed(read, dot):
        return [dot]
    starts = range(0, shape[1], width)
    of_right = (width, shape_of(right.type)[1])
    rights = [put(dot, ttg.MemDescSubsliceOp.make(right, (at, 0), of_right, dot.location)) for at in starts]
    always = put(dot, constant(1, i1, dot.location))
    dots: list[Operation] = []
    is_alone = not any(type(between) in WGMMA_OPS for between in ops_behind(read, dot))
    for at, part in zip(starts, rights, strict=True):
        piece = read_piece(read if is_alone and not at else dot, read, at, width)  # before a wait for the right operand
        for op in computing:
            piece = compute_piece(dot, op, piece)
        dots.append(recreate(dot, operands=(piece, part, total, *use_total)))
        total, use_total = put(dot, dots[-1]), [always]
    replace_op(dot, results=(total,))
    for op in reversed((read, *computing)):
        erase_op(op)
    return dots


def computation(left: SSAValue) -> list[Operation] | None:
    """Return the load from shared memory of an operand, and the elementwise ops that compute the operand from it; None
    if there are other ops.
    """
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
    """Return True for a conversion of a loaded value, which can be loaded in the new layout instead."""
    return type(op) is ttg.ConvertLayoutOp and type(op.operands[0].owner) is ttg.LocalLoadOp


def is_alike(value: SSAValue) -> bool:
    """Return True if all columns of `value` are equal."""
    op = value.owner
    is_constant = type(op) is arith.ConstantOp and constant_value(value) is not None
    return (
        is_constant
        or type(op) is tt.SplatOp
        or (type(op) is tt.BroadcastOp and shape_of(op.operands[0].type)[-1:] == (1,))
    )


def compute_piece(dot: Operation, op: Operation, piece: SSAValue) -> SSAValue:
    """Recompute `op` for a piece of its operand."""
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
    """Return True if `read` and `dot` are in one block, and no op between them writes memory, except waits."""
    is_earlier = read.parent is dot.parent and read.is_before_in_block(dot)
    return is_earlier and all(type(between) in WAITS or not writes(between) for between in ops_behind(read, dot))


def read_piece(anchor: Operation, read: Operation, start: int, width: int) -> SSAValue:
    """Load the columns from `start` on of what `read` reads, before `anchor`."""
    memory, rows = read.operands[0], shape_of(read.results[0].type)[0]
    part = put(anchor, ttg.MemDescSubsliceOp.make(memory, (0, start), (rows, width), read.location))
    type = with_shape(read.results[0].type, (rows, width))
    return put(anchor, ttg.LocalLoadOp.make(part, type, read.location, *read.operands[1:]))


Dot = ttng.WarpGroupDotOp
Wait = ttng.WarpGroupDotWaitOp
SUM = 2  # the index of the accumulator operand
BLOCKS = 2  # on a multiprocessor: one runs while the other waits
COPY_BITS = 128  # that a thread copies at a time
OTHERS = 24  # registers besides accumulators and operands: row maxima, addresses
RUN_ON = (f32, i32)  # not f16: two of them share a register, and are unpacked after the dot
COPIES = (ttg.AsyncCopyGlobalToLocalOp, ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMAGatherOp)
ORDERING: frozenset[type[Operation]] = frozenset(
    {Dot, Wait, ttg.AsyncWaitOp, ttng.WaitBarrierOp, ttng.FenceAsyncSharedOp}
)
WHOLE_VIEWS = VIEWS - {ttg.MemDescIndexOp}  # views of a whole allocation


def launch_dots(root: Operation, default_stages: int, two_blocks: bool = False) -> None:
    """Make the dots directly in loops under `root` asynchronous; with `two_blocks`, such that two blocks fit on a
    multiprocessor where possible.
    """
    for loop in loops_in(root):
        if num_stages(loop, default_stages) >= 1:
            dots = [op for op in body_ops(loop) if type(op) is Dot]
            if dots:
                launch(loop, dots, two_blocks and fits_two_blocks(root, loop, dots))


def launch(loop: Operation, dots: Sequence[Operation], at_once: bool = False) -> None:
    """Make the dots `dots` of `loop` asynchronous, and wait where that is required, or `at_once`."""
    running: dict[Operation, int] = {}  # dots that run on, with the index of their carried result
    for dot in dots:
        dot.properties["isAsync"] = int_attr(1, i1)
        ends_here = at_once or overwriting_copy(loop, [dot], until=dots[-1]) is not None
        position = None if ends_here else carried_position(loop, dot)
        if position is not None:
            running[dot] = position
        elif not wait_late(dot):
            wait_for(dot.results, 0, behind=dot)
    if not running:
        return
    if (wait := first_full_wait(loop)) is None:
        wait_in_loop(loop, [piece for dot in running for piece in split_along_k(dot)])
    else:
        for dot in running:
            if must_free_registers(dot, loop) or is_overwritten_next(loop, [dot], wait):
                wait_for(dot.results, 0, behind=dot)
            elif (copy := overwriting_copy(loop, [dot])) is not None:
                wait_for(dot.results, 0, before=copy)
    wait_behind(loop, list(running.values()))


def fits_two_blocks(root: Operation, loop: Operation, dots: Sequence[Operation]) -> bool:
    """Return True if two blocks fit if `dots` complete in their iteration; then set the register limit for the
    assembler.
    """
    share = half_share(loop, dots, may_spill=True)
    held = None if share is None else occupancy(loop, share)
    if held is None or held.blocks < BLOCKS:
        return False
    root.attributes[MAX_REGISTERS] = int_attr(share, i32)
    return True


def half_share(loop: Operation, dots: Sequence[Operation], may_spill: bool) -> int | None:
    """Return half the registers of a multiprocessor, per thread, if they suffice for `dots` only when these complete in
    their iteration: then the left operand of one may reuse the registers of the other's accumulator, and another block
    runs while this one waits. That is worth more than the spills of a few addresses, but not those of loaded tiles.
    """
    sums = sum(registers(dot.results[0].type) for dot in dots)
    made = [dot.operands[0].type for dot in dots if must_free_registers(dot, loop, of_sums=True)]
    factors = sum(registers(type) * bit_width(type) // 32 for type in made)
    share = find_target(loop).limits.registers // (BLOCKS * num_warps(loop) * threads_per_warp(loop))
    addresses = address_registers_in(loop)
    tiles = [op.results[0].type for op in body_ops(loop) if type(op) is tt.LoadOp and is_tensor(op.results[0].type)]
    loaded = max((registers(type) * bit_width(type) // 32 for type in tiles), default=0)
    least = sums + OTHERS + (loaded if may_spill else addresses)
    return share if made and least <= share < sums + factors + OTHERS + addresses else None


def address_registers_in(loop: Operation) -> int:
    """Return the registers of a thread for the addresses of the tiles that all warps load or copy in `loop`."""
    threads, needed = num_warps(loop) * threads_per_warp(loop), 0
    for op in body_ops(loop):
        if type(op) is tt.LoadOp and len(shape_of(op.results[0].type)) > 1:
            needed += address_registers(op.operands[0], threads, COPY_BITS // bit_width(op.results[0].type))
        elif type(op) is ttg.AsyncCopyGlobalToLocalOp:
            needed += address_registers(op.operands[0], threads, int_property(op, "contiguity"))
    return needed


def wait_late(dot: Operation) -> bool:
    """Wait for `dot` where its result is read, if other dots precede that, and no op writes memory until then; return
    False otherwise.
    """
    reader, other_dots = dot.next_op, 0
    while reader is not None and not any(value in dot.results for value in used_values(reader)):
        if type(reader) not in ORDERING and writes(reader):
            return False
        other_dots += type(reader) is Dot
        reader = reader.next_op
    if reader is None or not other_dots:
        return False
    wait_for(dot.results, other_dots, before=reader)
    return True


def carried_position(loop: Operation, dot: Operation) -> int | None:
    """Return the index of the carried value that is the result of `dot`, if it may run on into the next iteration."""
    if not all(is_stable(value, loop, set()) for value in dot.operands[:SUM] if is_memdesc(value.type)):
        return None
    if element_type(dot.results[0].type) not in RUN_ON:
        return None
    positions: list[int] = []
    if not follow_result(dot.results[0], loop, positions) or len(positions) != 1:
        return None
    argument = body_of(loop).args[1 + positions[0]]
    if not is_only_summed(argument):
        wait = first_full_wait(loop)
        if wait is None or not all(is_behind(use.operation, wait, loop) for use in argument.uses):
            return None
        thread_through(wait, argument)
    return positions[0]


def may_run_on(loop: Operation, dot: Operation) -> bool:
    """Return True if `dot` may still run in the next iteration, as far as known before loads have buffers."""
    positions: list[int] = []
    if (
        type(dot) is not Dot
        or element_type(dot.results[0].type) not in RUN_ON
        or not follow_result(dot.results[0], loop, positions)
    ):
        return False
    is_alone = sum(type(op) is Dot for op in body_ops(loop)) == 1
    return not is_alone or all(is_only_summed(body_of(loop).args[1 + position]) for position in positions)


def is_stable(memory: SSAValue, loop: Operation, seen: set[SSAValue]) -> bool:
    """Return True if `memory` is not written while the dot runs: it is from outside the loop, or one of several
    buffers.
    """
    while isinstance(memory, OpResult) and type(memory.op) in WHOLE_VIEWS:
        memory = memory.op.operands[0]
    if memory in seen:
        return True
    body = body_of(loop)
    if isinstance(memory, BlockArgument) and memory.block is body:
        carried = yield_of(loop).operands[memory.index - 1]
        return is_stable(carried, loop, seen | {memory})
    if isinstance(memory, OpResult) and enclosing_op(memory.op, body) is not None:
        return type(memory.op) is ttg.MemDescIndexOp
    return True


def overwriting_copy(loop: Operation, dots: Sequence[Operation], until: Operation | None = None) -> Operation | None:
    """Return the first copy after the last of `dots`, in the same iteration, that may overwrite operands of one."""
    for copy in copies_of(loop):
        if dots[-1].is_before_in_block(copy) and (until is None or copy.is_before_in_block(until)):
            if any(is_overwritten(dot, copy) for dot in dots):
                return copy
    return None


def is_overwritten_next(loop: Operation, dots: Sequence[Operation], wait: Operation) -> bool:
    """Return True if a copy before `wait` in the next iteration may overwrite operands that `dots` read in this one."""
    early = [copy for copy in copies_of(loop) if copy.is_before_in_block(wait)]
    return any(is_overwritten(dot, copy, iterations=1) for dot in dots for copy in early)


def copies_of(loop: Operation) -> list[Operation]:
    return [op for op in body_ops(loop) if type(op) in COPIES]


def is_overwritten(dot: Operation, copy: Operation, iterations: int = 0) -> bool:
    """Return True if `copy`, so many iterations later, may overwrite memory that `dot` reads."""
    return any(
        ring is other and (mine is None or theirs is None or not mine.is_apart(theirs, iterations))
        for ring, mine in slots_of(dot)
        for other, theirs in slots_of(copy)
    )


def is_no_op(op: Operation) -> bool:
    """Return True if `op` does not move any register."""
    if type(op) is ttg.ConvertLayoutOp:
        return layout_of(op.operands[0].type) == layout_of(op.results[0].type)
    return type(op) is tt.ReshapeOp or type(op) is tt.TransOp


def follow_result(value: SSAValue, loop: Operation, positions: list[int]) -> bool:
    """Collect the indices at which the loop carries `value`; return False if it is read in the loop outside of
    branches.
    """
    body = body_of(loop)
    for use in value.uses:
        user = use.operation
        parent = user.parent_op()
        if user is yield_of(loop):
            positions.append(use.index)
        elif type(user) is scf.YieldOp and parent is not None and type(parent) is scf.IfOp:
            if not follow_result(parent.results[use.index], loop, positions):
                return False
        elif user.parent is body:
            if not is_no_op(user) or not follow_result(user.results[0], loop, positions):
                return False
        elif (outer := enclosing_op(user, body)) is None or type(outer) is not scf.IfOp:
            return False
    return True


def is_only_summed(value: SSAValue) -> bool:
    """Return True if `value` is only used as the accumulator of dots."""
    for use in value.uses:
        user = use.operation
        if type(user) is Dot and use.index == SUM:
            continue
        if not is_no_op(user) or not is_only_summed(user.results[0]):
            return False
    return True


def first_full_wait(loop: Operation) -> Operation | None:
    """Return the first wait of the body for all dots."""
    for op in body_ops(loop):
        if type(op) is Wait and int_property(op, "pendings") == 0:
            return op
    return None


def is_behind(op: Operation, wait: Operation, loop: Operation) -> bool:
    """Return True if `op` runs after `wait` in an iteration."""
    here = enclosing_op(op, body_of(loop))
    return here is not None and wait.is_before_in_block(here)


def wait_in_loop(loop: Operation, dots: Sequence[Operation]) -> None:
    """Wait for the dots of the preceding iteration, after the start of all dots of this one."""
    results = [dot.results[0] for dot in dots]
    fresh = [must_free_registers(dot, loop) for dot in dots]
    copy, is_early = overwriting_copy(loop, dots), is_overwritten_next(loop, dots, dots[-1])
    ends_here = is_early or any(fresh)
    one_by_one = copy is None and not is_early and all(fresh) and all(is_read_for(dot) for dot in dots)
    for dot in dots:
        if one_by_one:
            wait_for(dot.results, len(dots) - 1, behind=dot)
        if not one_by_one or len(dots) > 1:
            for block in branches_that_read(dot, loop):
                wait_for(dot.results, 0, inside=block)
    if copy is not None and not ends_here:
        wait_for(results, 0, before=copy)
    elif not one_by_one:
        wait_for(results, 0 if ends_here else len(dots), behind=dots[-1])


def is_read_for(dot: Operation) -> bool:
    """Return True if the left operand is loaded and computed directly before `dot`, after the wait for the preceding
    user of its registers.
    """
    read, op = next(iter(computation(dot.operands[0]) or ()), None), dot.prev_op
    while op is not None and op is not read and type(op) not in WGMMA_OPS:
        op = op.prev_op
    return op is not None and op is read


def must_free_registers(dot: Operation, loop: Operation, of_sums: bool = False) -> bool:
    """Return True if the left operand is in registers that the loop computes anew, for this iteration or the next;
    `of_sums`: from accumulators of other dots.
    """
    left = dot.operands[0]
    if not is_tensor(left.type):
        return False
    if not isinstance(left, OpResult) or enclosing_op(left.op, body_of(loop)) is None:
        return left.owner is body_of(loop) and not of_sums  # carried
    source = left.op.operands[0] if type(left.op) is ttg.ConvertLayoutOp else None
    return (source is not None and is_accumulator(source.type)) == of_sums


def branches_that_read(dot: Operation, loop: Operation) -> list[Block]:
    """Return the outermost blocks of branches in which the result of `dot` is read, not only yielded."""
    body = body_of(loop)
    found: dict[Block, None] = {}
    for use in dot.results[0].uses:
        user = use.operation
        block = user.parent
        if block is None or block is body or enclosing_op(user, body) is None:
            continue
        if not (type(user) is scf.YieldOp and type(block.parent_op()) is scf.IfOp):
            found[block] = None
    return [block for block in found if not any(is_within(block, other) for other in found if other is not block)]


def is_within(block: Block, other: Block) -> bool:
    """Return True if `block` is nested in `other`."""
    op = block.parent_op()
    return op is not None and enclosing_op(op, other) is not None


def wait_for(
    values: Iterable[SSAValue],
    pendings: int,
    *,
    behind: Operation | None = None,
    inside: Block | None = None,
    before: Operation | None = None,
) -> Operation:
    """Insert a wait for `values` after or before an op, or at the start of a block; later ops read its results."""
    values = list(values)
    operands = list(dict.fromkeys([*values, *(memory for value in values for memory in memory_read_for(value))]))
    location = behind.location if behind is not None else values[0].owner.location  # pyright: ignore
    wait = Wait.make(operands, pendings, location)
    if behind is not None:
        insert_after(behind, wait)
    else:
        start = before if inside is None else inside.first_op
        assert start is not None
        insert_before(start, wait)
    for value, done in zip(values, wait.results, strict=False):
        use_instead(value, done, wait)
    return wait


def memory_read_for(value: SSAValue) -> list[SSAValue]:
    """Return the memory read by the dots that `value` accumulates, back to the last wait."""
    found: list[SSAValue] = []
    while isinstance(value, OpResult):
        if type(value.op) is Dot:
            found = [operand for operand in value.op.operands[:SUM] if is_memdesc(operand.type)] + found
            value = value.op.operands[SUM]
        elif is_no_op(value.op):
            value = value.op.operands[0]
        else:
            break
    return found


def use_instead(value: SSAValue, done: SSAValue, wait: Operation) -> None:
    """Replace uses of `value` after `wait`, in its block and inside it, by `done`."""
    block, later = block_of(wait), set(ops_behind(wait))
    replace_uses(value, done, lambda user: enclosing_op(user, block) in later)


def thread_through(wait: Operation, value: SSAValue) -> None:
    """Pass `value` through `wait`, for its uses after it."""
    if value in wait.operands:
        done = wait.results[list(wait.operands).index(value)]
        use_instead(value, done, wait)
        return
    pendings = int_property(wait, "pendings")
    new = Wait.make((*wait.operands, value), pendings, wait.location)
    insert_before(wait, new)
    replace_op(wait, results=new.results[:-1])
    use_instead(value, new.results[-1], new)


def wait_behind(loop: Operation, positions: Sequence[int]) -> None:
    """Wait for dots that still run when the loop ends."""
    results = [loop.results[position] for position in dict.fromkeys(positions)]
    wait = Wait.make(results, 0, loop.location)
    insert_after(loop, wait)
    for result, done in zip(results, wait.results, strict=True):
        use_instead(result, done, wait)
