"""Where a consumer gives a stage back to the producer: behind the wait that ends the last product reading it.

    %d = warp_group_dot %a[i], %b[i], %acc {isAsync}              product k
    warp_group_dot_wait %d {pendings = 1}                         product k - 1 is over
    arrive_barrier %empty[i - 1], 4, %not_first                   what it read may be overwritten

Products end in the order in which they were started. A wait for all but n of them is behind the end of a product if at
least n others were started in between, in this iteration or, with the index of the iteration before, in the next; then the
last stage is given back behind the loop.

What comes behind the last stage of all may have the memory of the buffers. The producer fills as many stages as are waited for, so it
is done with them when their only consumer is, and that one frees them:

    scf.for ... { ... }
    warp_group_dot_wait ... {pendings = 0}
    local_dealloc %buffers                                        conversions of the result may lie there
"""

from collections.abc import Iterable, Iterator

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from tilework.analysis.alias import aliases
from tilework.ir import ttg, ttng
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import enclosing_op, ops_behind, start_of
from tilework.ir.property_text import is_true
from tilework.ir.rewrite import insert_after
from tilework.ir.types import i32, number_of
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.ttg.pipeline.wgmma import wait_for
from tilework.transforms.warp_specialize.channels import readers_of
from tilework.transforms.warp_specialize.rings import Reading, stage_of

ENDS_OF_USE = frozenset({ttng.WarpGroupDotOp, ttng.WarpGroupDotWaitOp, ttng.WaitBarrierOp})
Place = tuple[bool, Operation]  # in the next iteration, behind an op


def release(reading: Reading) -> None:
    """Give the stage of `reading` back where all that read it are done."""
    if reading.memory.empty is None:
        return
    block = reading.block
    readers = {enclosing_op(op, block) for view in reading.views for op in readers_of(view)}
    places = [end_of_reading(op, block, reading.ring.stages > 1) for op in readers if op is not None]
    if not places:  # what is loaded and not read
        places = [(False, start_of(block))]
    order = {op: position for position, op in enumerate(block.ops)}
    is_late, behind = max(places, key=lambda place: (place[0], order[place[1]]))
    if is_late:
        release_late(reading, behind)
    else:
        arrive(reading, reading.index, behind)


def end_of_reading(op: Operation, block: Block, may_be_late: bool) -> Place:
    """Behind which op of `block` what `op` reads is read."""
    if not (type(op) is ttng.WarpGroupDotOp and is_true(op.properties["isAsync"])):
        following = op.next_op  # a loop may leave products behind, which are waited for at once
        return False, following if following is not None and type(following) is ttng.WarpGroupDotWaitOp else op
    started = 0
    for is_late, current in places_behind(op, block, may_be_late):
        if type(current) is ttng.WarpGroupDotOp:
            started += 1
        elif type(current) is ttng.WarpGroupDotWaitOp and number_of(current, "pendings") <= started:
            return is_late, current
    return False, wait_for(op.results, 0, behind=op)


def places_behind(op: Operation, block: Block, also_next: bool) -> Iterator[Place]:
    """The ops of `block` behind `op`, and those of the next iteration."""
    yield from ((False, following) for following in ops_behind(op))
    if also_next and type(block.parent_op()) is scf.ForOp:
        yield from ((True, current) for current in block.ops)


def arrive(reading: Reading, index: SSAValue, behind: Operation, condition: SSAValue | None = None) -> None:
    """Arrive at "empty" of a stage, `behind` an op."""
    assert reading.memory.empty is not None
    code = Emitter(behind.location)
    arrive_here(code, reading, index, condition)
    insert_after(behind, *code.ops)


def arrive_here(code: Emitter, reading: Reading, index: SSAValue, condition: SSAValue | None) -> None:
    memory = reading.memory
    assert memory.empty is not None
    barrier = stage_of(code, memory.empty, index)
    code.ops.append(ttng.ArriveBarrierOp.make(barrier, memory.warps, condition, code.loc))


def release_late(reading: Reading, behind: Operation) -> None:
    """Give back the stage of the iteration before, and the last one behind the loop."""
    loop = reading.block.parent_op()
    assert type(loop) is scf.ForOp
    lower, upper = loop.operands[:2]
    code = Emitter(behind.location)
    is_next = code.compare("ne", reading.block.args[0], lower)
    arrive_here(code, reading, before(code, reading, reading.index), is_next)
    insert_after(behind, *code.ops)
    index = reading.index
    assert index.owner is reading.block
    left = loop.results[index.index - 1]  # pyright: ignore[reportAttributeAccessIssue]
    code = Emitter(loop.location)
    has_run = code.compare("slt", lower, upper)
    arrive_here(code, reading, before(code, reading, left), has_run)
    last: Operation = loop
    while last.next_op is not None and type(last.next_op) is ttng.WarpGroupDotWaitOp:
        last = last.next_op
    insert_after(last, *code.ops)


def before(code: Emitter, reading: Reading, index: SSAValue) -> SSAValue:
    """The stage before `index`."""
    zero, one = code.constant(0, i32), code.constant(1, i32)
    last = code.constant(reading.ring.stages - 1, i32)
    return code.select(code.compare("eq", index, zero), last, code.binary(arith.SubiOp, index, one))


def free(buffers: Iterable[SSAValue], consumer: ttg.WarpSpecializeOp) -> None:
    """End the life of `buffers` where the default region, their only consumer, has read them and waits for no more."""
    block, known = consumer.default_region.block, aliases(consumer)
    for buffer in buffers:
        named = {value for value, of in known.items() if buffer in of} | {buffer}
        using = [op for op in block.ops if any(is_using(inner, named) for inner in (op, *ops_in_order(*op.regions)))]
        insert_after(using[-1], ttg.LocalDeallocOp.make(buffer, using[-1].location))


def is_using(op: Operation, memory: set[SSAValue]) -> bool:
    return type(op) in ENDS_OF_USE or any(value in memory for value in op.operands)
