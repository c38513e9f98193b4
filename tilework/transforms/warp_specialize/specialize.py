"""Warp specialization: producer warps execute the loads of a function, consumer warps the rest.

    tt.func @kernel(...) {                        tt.func @kernel(...) {
      scf.for ... {                                 buffers, barriers
        load a, b; warp_group_dot                   ttg.warp_specialize(...)
      } {tt.warp_specialize}              ==>       default { scf.for ... { copies of a, b } }
      store                                         partition0 { scf.for ... { upper halves of warp_group_dot }; store }
    }                                               partition1 { scf.for ... { lower halves of warp_group_dot }; store }

Each region starts as a copy of the whole function. Of the ops with side effects the producer keeps only its loads,
which become copies; a consumer reads shared memory instead of loading; dead code is removed. Two consumers of four
warps split the dots by rows or columns. There is one consumer, with all warps of the kernel and as the default region,
where dots are too small for two, and where it has two warp groups with their own rows: these do not wait for each other
either, and there is half as much code to compile. Loops are not pipelined again: the ring buffer is the pipeline.
Stage: TTGIR to TTGIR. Cost: AxisInfo and three copies of a function that requests it; one walk for others.
"""

import re
from collections.abc import Sequence
from dataclasses import field
from math import prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, Region, SSAValue

from tilework.analysis.axis_info import axis_info
from tilework.analysis.cost import hot_loops
from tilework.analysis.provenance import NO_PARAMETER, UNKNOWN, WRITERS, pointer_provenance
from tilework.ir import scf, tt, ttg, ttng, ub
from tilework.ir.effects import RECURSIVE, TERMINATORS, writes
from tilework.ir.functions import functions, has_body, is_private, ops_in_order
from tilework.ir.module_facts import NUM_WARPS, find_target, num_ctas, num_warps, threads_per_warp
from tilework.ir.nesting import body_of, values_of
from tilework.ir.rewrite import erase_op, insert_before, replace_all_uses
from tilework.ir.tt.function_ops import function_type
from tilework.ir.types import i32, i32_array, int_attr, is_tensor, shape_of, tile_bits
from tilework.light_dataclass import light_dataclass
from tilework.target import Feature
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.common.canonicalize import canonicalize
from tilework.transforms.common.dce import cut_dead_loop_arguments, live_values
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark, warning
from tilework.transforms.ttg.allocate_resources import MAX_REGISTERS
from tilework.transforms.ttg.pipeline.loops import LOADS, NUM_STAGES, body_ops, group_dots, loops_in, set_integer
from tilework.transforms.ttg.pipeline.wgmma import launch, may_run_on
from tilework.transforms.warp_specialize.channels import (
    WARP_SPECIALIZE,
    Refusal,
    Ring,
    find_rings,
    fit_stages,
    is_short,
    reason_not_to_split,
)
from tilework.transforms.warp_specialize.multi_buffering import (
    Memory,
    Program,
    Reading,
    consume,
    free,
    make_memory,
    produce,
    release,
)
from tilework.transforms.warp_specialize.overlap import overlap, ping_pong_pays
from tilework.transforms.warp_specialize.slicing import LEAST, PARTS, Search, Uncut, apply, find_slices, run_on

GROUP = 4  # warps of a warp group
THREADS = re.compile(r"%n?(tid|warpid)\b|\b(bar|barrier)\.(?!warp)")  # assembly with these needs all warps
ALONE = frozenset({tt.CallOp, ttg.BarrierOp, ttg.WarpSpecializeOp})


# Registers of a thread. A block of a producer and two consumers, each of four warps, has 504 for a thread of each.
PRODUCER = 40
OVERLAPPING_PRODUCER = 24  # beside consumers that hold the scores of two iterations
ALL = 504
OTHERS = 24  # of a producer, besides addresses
CONSUMER_OTHERS = 32  # of a consumer, besides tiles of dots
SMALL = 64  # of accumulators up to which a second block is resident
HALF_SHARE = 128  # of each of 256 threads, half of those of a multiprocessor


OFF = {"never": "it is switched off", "unfit": "its partitions do not fit into shared memory"}


class WarpSpecializationPass(Pass):
    name = "nvgpu-warp-specialization"
    num_stages: int = 3
    dump_intermediate_steps: bool = False
    when: str = "requested"  # or one of `OFF`, or "pays": also loops for which the cost model favours it

    def run(self, module: ModuleOp) -> None:
        for function in functions(module):
            if not has_body(function):
                continue
            requests = [op for op in ops_in_order(*function.regions) if op.attributes.pop(WARP_SPECIALIZE, None)]
            if not requests and (self.when != "pays" or not group_dots(function)):
                continue
            try:
                if (why := OFF.get(self.when)) is not None:
                    raise Refusal(function, why)
                if not requests and (why := reason_not_to_split(function, self.num_stages)) is not None:
                    raise Refusal(function, f"it would not pay: {why}")
                specialize(module, function, self.num_stages, bool(requests))
            except Refusal as refusal:
                anchor = requests[0] if requests and refusal.op is function else refusal.op
                report = warning if requests else remark
                report(anchor, f"the loop is not warp specialized: {refusal.reason}; all warps run the whole of it")


def specialize(module: ModuleOp, function: Operation, num_stages: int, is_requested: bool) -> None:
    """Split `function`. Raises `Refusal` before any change; if no loop requests partitions, also where they would not
    pay.
    """
    check(function)
    rings = find_rings(function, num_stages, axis_info(module))
    if not any(ring.is_reused for ring in rings):
        raise Refusal(function, "no load in a loop feeds a warp-group dot")
    fit_stages(function, rings, find_target(function).limits.shared_bytes)
    plan = plan_consumers(function, rings)
    programs = list(plan.consumers)
    try:
        if not is_requested:
            check_registers(function, plan)
        if not is_requested and len(plan.consumers) < PARTS and not has_two_groups(function):
            raise Refusal(function, "it would not pay: there is no work for two consumers")
        programs.append(producer := Program.copy(function))
        make_producer(function, producer, rings, plan.memories)
        check_memory(module, function, producer)
        if num_warps(function) != GROUP:
            narrow_producer(function, producer)
    except Refusal:
        discard(programs)
        raise
    build(module, function, plan, producer)


def discard(programs: Sequence[Program]) -> None:
    """Drop unused copies of a function, with their uses of its arguments."""
    for program in programs:
        program.region.drop_all_references()


def check(function: Operation) -> None:
    """Raise `Refusal` for a function that cannot be split."""
    ops = ops_in_order(*function.regions)
    if is_private(function):
        raise Refusal(function, "it is not a kernel, but a function that kernels call")
    if not group_dots(function):
        raise Refusal(function, "it has no warp-group dot")
    if Feature.TMA not in find_target(function).features or Feature.WGMMA not in find_target(function).features:
        raise Refusal(function, "the target has no warp-group dots")
    if num_warps(function) not in (GROUP, 2 * GROUP):
        raise Refusal(function, f"it needs 4 or 8 warps, not {num_warps(function)}")
    if num_ctas(function) != 1:
        raise Refusal(function, "it runs in clusters of blocks")
    if len(function.regions[0].blocks) != 1:
        raise Refusal(function, "the kernel returns early")
    for op in ops:
        if type(op) in ALONE:
            raise Refusal(op, f"{op.name} needs all warps")
        if isinstance(op, tt.ElementwiseInlineAsmOp) and THREADS.search(op.asm_string.data):
            raise Refusal(op, "its assembly reads thread ids or has barriers")


def check_memory(module: ModuleOp, function: Operation, producer: Program) -> None:
    """Raise `Refusal` if the producer, which runs ahead, might load before a store of a consumer."""
    provenance, ops = pointer_provenance(module), ops_in_order(*function.regions)
    stored = {
        base
        for op in ops
        if type(op) in WRITERS
        for base in provenance.get(op.operands[WRITERS[type(op)]], NO_PARAMETER)
    } - {UNKNOWN}
    for op in ops:
        if type(op) in LOADS and op in producer.loads and provenance.get(op.operands[0], NO_PARAMETER) & stored:
            raise Refusal(op, "the kernel also stores to the memory that it loads from")


@light_dataclass(frozen=False)
class Plan:
    """The consumers, and the memory between them and the producer; `cuts` are applied later."""

    consumers: list[Program]
    readings: list[list[Reading]]
    memories: list[Memory]
    setup: Emitter
    producer_registers: int
    cuts: list[Search] = field(default_factory=list)


def plan_consumers(function: Operation, rings: list[Ring]) -> Plan:
    """Return two consumers of four warps if the work can be split, or one with the warps of the kernel."""
    for dim in () if has_two_groups(function) else range(len(LEAST)):
        plan = make_consumers(function, rings, PARTS)
        try:
            for part, program in enumerate(plan.consumers):
                plan.cuts.append(found := find_slices(program.region, dim))
                drop_common_effects(found, part)
                run_on(program.region, GROUP, PARTS if dim else 1)
            return plan
        except Uncut:
            discard(plan.consumers)
    return make_consumers(function, rings, 1)


def has_two_groups(root: Operation) -> bool:
    """Return True if a kernel has two warp groups, each with its own rows in all dots under `root`."""
    rows = [shape_of(dot.results[0].type)[0] for dot in group_dots(root)]
    return num_warps(root) == PARTS * GROUP and all(count >= PARTS * LEAST[0] for count in rows)


def make_consumers(function: Operation, rings: list[Ring], count: int) -> Plan:
    setup = Emitter(function.location)
    threads = GROUP * threads_per_warp(function)
    warps = num_warps(function) if count == 1 else GROUP
    own = {ring: make_memory(setup, ring, threads, count, warps) for ring in rings if ring.like is None}
    memories = [own[ring.like or ring] for ring in rings]
    programs = [Program.copy(function) for _ in range(count)]
    readings = [[consume(program, *pair) for pair in zip(rings, memories, strict=True)] for program in programs]
    return Plan(programs, readings, memories, setup, producer_registers(rings))


def check_registers(function: Operation, plan: Plan) -> None:
    """Raise `Refusal` if the addresses of the producer take registers that two groups of consumer warps need."""
    needed, warps = plan.producer_registers, max(len(plan.consumers) * GROUP, num_warps(function))
    left = (ALL - needed) * GROUP // warps
    if needed > OVERLAPPING_PRODUCER and warps > GROUP and consumer_registers(function, warps) > left:
        raise Refusal(function, f"it would not pay: addresses take {needed} registers of each producer thread")


def producer_registers(rings: Sequence[Ring]) -> int:
    """Return the registers of a thread that copies the tiles of the loop with most addresses."""
    blocks = {ring.block for ring in rings if ring.is_reused}
    return OTHERS + max(
        sum(channel.addresses for ring in rings if ring.block is block for channel in ring.channels) for block in blocks
    )


def consumer_registers(function: Operation, warps: int) -> int:
    """Return the registers of each thread of `warps` consumer warps for the loop whose dots need most: accumulators,
    left operands, and of two dots the result that is not carried once more: work on it overlaps the next dots.
    """
    threads = warps * threads_per_warp(function)
    most = 0
    for loop in hot_loops(function):
        dots = [op for op in body_ops(loop) if type(op) is ttng.WarpGroupDotOp]
        again = [dot for dot in dots if not may_run_on(loop, dot)] if len(dots) == 2 else []
        sums = sum(prod(shape_of(dot.results[0].type)) for dot in (*dots, *again))
        lefts = sum(tile_bits(kind) // 32 for dot in dots if is_tensor(kind := dot.operands[0].type))
        most = max(most, (sums + lefts) // threads)
    return most + CONSUMER_OTHERS


def drop_common_effects(found: Search, part: int) -> None:
    """Leave side effects that both consumers would have alike to the first one."""
    for op in list(found.ops):
        is_cut = op in found.stores or any(value in found.dims for value in (*op.operands, *op.results))
        if is_cut or not has_effect(op):
            continue
        if any(result.first_use is not None for result in op.results):
            raise Uncut(f"{op.name} must run once, and all consumers need its result")
        if part:
            del found.ops[op]
            erase_op(op)


def has_effect(op: Operation) -> bool:
    """Return True if `op` itself, not an op inside it, writes outside of the program's registers and buffers."""
    kind = type(op)
    if kind in RECURSIVE or kind in TERMINATORS or kind is ttg.LocalAllocOp or kind is ttng.WaitBarrierOp:
        return False
    return writes(op)


def make_producer(function: Operation, program: Program, rings: list[Ring], memories: list[Memory]) -> None:
    """Reduce `program` to its loads. Raises `Refusal` if they depend on values that consumers compute."""
    loads = {program.clones[channel.load] for ring in rings for channel in ring.channels}
    lost: list[SSAValue] = []
    for op in reversed(ops_in_order(program.region)):
        if op not in loads and (has_effect(op) or type(op) is ttng.WarpGroupDotOp):
            lost += poison_results(op)
            erase_op(op)
    for ring, memory in zip(rings, memories, strict=True):
        produce(program, ring, memory)
    for load in loads:
        lost += poison_results(load)
        erase_op(load)
    live = live_values(ops_in_order(program.region))
    if any(value in live for value in lost):
        raise Refusal(function, "its loads depend on its dots or stores")
    program.loads = {op for op, copy in program.clones.items() if copy in loads or any(r in live for r in copy.results)}


def poison_results(op: Operation) -> list[SSAValue]:
    """Replace the results of `op`, which must have no live uses, by poison."""
    found: list[SSAValue] = []
    for result in op.results:
        if result.first_use is not None:
            insert_before(op, placeholder := ub.PoisonOp.create(result_types=(result.type,), location=op.location))
            replace_all_uses(result, placeholder.results[0])
            found.append(placeholder.results[0])
    return found


def narrow_producer(function: Operation, producer: Program) -> None:
    try:
        ops = ops_in_order(producer.region)
        needed = live_values(ops)
        for loop in (op for op in ops if isinstance(op, scf.ForOp)):  # argument and result have one type
            for pair in zip(loop.regions[0].block.args[1:], loop.results, strict=True):
                needed |= set(pair) if not needed.isdisjoint(pair) else set()
        run_on(producer.region, GROUP, 1, needed)
    except Uncut as reason:
        raise Refusal(function, str(reason)) from None


def build(module: ModuleOp, function: Operation, plan: Plan, producer: Program) -> None:
    """Replace the body of the function by the regions."""
    block = body_of(function)
    end = block.last_op
    assert end is not None
    for op in reversed(list(block.ops)):
        if op is not end:
            for result in op.results:
                assert result.first_use is None, op.name
            erase_op(op)
    plan.setup.insert_before(end)
    for part, found in enumerate(plan.cuts):
        apply(found, part)
    consumers = [program.region for program in plan.consumers]
    default, partitions = (producer.region, consumers) if len(consumers) > 1 else (consumers[0], [producer.region])
    if len(consumers) > 1:
        module.attributes[NUM_WARPS] = int_attr(GROUP, i32)
    elif num_warps(function) == GROUP and sum(map(accumulators, ops_in_order(default))) <= SMALL:
        module.attributes.setdefault(MAX_REGISTERS, int_attr(HALF_SHARE, i32))
    replace_end(default, ttg.WarpYieldOp.make((), end.location))
    for region in partitions:
        replace_end(region, ttg.WarpReturnOp.make(end.location))
    op = ttg.WarpSpecializeOp.make((), (), [GROUP] * len(partitions), default, partitions, end.location)
    insert_before(end, op)
    needed = max(OVERLAPPING_PRODUCER if start_dots(op, plan) else PRODUCER, plan.producer_registers)
    registers = (ALL - needed) // len(consumers) if len(consumers) > 1 else needed
    op.properties["requestedRegisters"] = i32_array(*[registers] * len(partitions))
    capture(op)
    if len(consumers) == 1:
        free({buffer: None for memory in plan.memories for buffer in memory.buffers}, op)
    function.properties["function_type"] = function_type(tuple(argument.type for argument in block.args), ())
    cut_dead_loop_arguments(function)
    canonicalize(function)


def accumulators(op: Operation) -> int:
    """Return the registers of a thread that hold the result of a dot of four warps."""
    return prod(shape_of(op.results[0].type)) // (GROUP * 32) if type(op) is ttng.WarpGroupDotOp else 0


def capture(op: ttg.WarpSpecializeOp) -> None:
    """Pass values that partitions use from outside to all of them; `canonicalize` drops unused ones."""
    captures = {value: None for region in op.partitions for value in used_from_outside(region)}
    op.operands = tuple(captures)
    for region in op.partitions:
        block = region.blocks[0]
        own = {value: block.insert_arg(value.type, len(block.args)) for value in captures}
        for inner in ops_in_order(region):
            if any(value in own for value in inner.operands):
                inner.operands = [own.get(value, value) for value in inner.operands]


def used_from_outside(region: Region) -> list[SSAValue]:
    ops = ops_in_order(region)
    inside = {value for op in ops for value in values_of(op)}
    return [value for op in ops for value in op.operands if value not in inside]


def replace_end(region: Region, end: Operation) -> None:
    block = region.blocks[0]
    assert block.last_op is not None
    erase_op(block.last_op)
    block.add_op(end)


def start_dots(op: ttg.WarpSpecializeOp, plan: Plan) -> bool:
    """Make the dots of loops asynchronous, and release stages after them. Return True if work overlaps them."""
    readings = [reading for program in plan.readings for reading in program]
    overlapping = False
    for loop in loops_in(op):
        if not is_short(loop):
            new, done = overlap(loop, readings, has_two_groups(op) and ping_pong_pays(loop))
            if new is not None:
                readings = [reading for reading in readings if reading not in done]
                overlapping = True
                continue
        if dots := [inner for inner in body_ops(loop) if type(inner) is ttng.WarpGroupDotOp]:
            launch(loop, dots)
        if not any(type(inner) is scf.ForOp for inner in body_ops(loop)):
            set_integer(loop, NUM_STAGES, 0)
    for reading in readings:
        release(reading)
    return overlapping
