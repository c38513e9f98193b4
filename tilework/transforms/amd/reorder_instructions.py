"""Start loads early, and shorten the live ranges of registers and LDS.

    1  a conversion sinks below the `ttg.local_dealloc`s before its first use: the two share memory
    2  a transposition is hoisted to its source
    3  a load before a pipelined loop is hoisted to its pointers, with the ops that compute its mask
    4  a conversion to a dot operand moves into the loop that alone uses it
    5  in a loop with one large dot, the load of its second operand sinks to just before the dot: fewer registers

No load moves over a write to global memory, or out of a region.
Stage: TTGIR to TTGIR. Cost: one walk; for each load that moves the ops it passes.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult

from tilework.errors import PassError
from tilework.ir import amdg, scf, tt, ttg
from tilework.ir.effects import is_pure, writes
from tilework.ir.encodings import operand_index
from tilework.ir.enums import SchedHint
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import find_target
from tilework.ir.nesting import body_of, ops_around, ops_behind, start_of
from tilework.ir.rewrite import defining_op, insert_before, move_before, move_behind
from tilework.ir.scf import loop_around
from tilework.ir.types import shape_of
from tilework.transforms.amd.accelerate_matmul import is_chain_head
from tilework.transforms.amd.stream_pipeline import PART
from tilework.transforms.folding import convert_layout
from tilework.transforms.folding.worklist import Driver
from tilework.transforms.passes import Pass, function_pass, module_pass, op_pass
from tilework.transforms.ttg.pipeline.loops import DOTS, body_ops, used_values
from tilework.transforms.ttg.reorder_instructions import TRANSPOSITIONS, sink_below_deallocs, sink_into_loops, users

DESCRIPTOR_ACCESSES = (
    tt.DescriptorLoadOp,
    tt.DescriptorStoreOp,
    tt.DescriptorReduceOp,
    tt.DescriptorGatherOp,
    tt.DescriptorScatterOp,
)

# Hoist the layout conversion of loop-invariant dot operands: the queries of attention remain in registers.
#
#     scf.for ... { %q1 = ttg.convert_layout %q : #blocked -> #dot_op ...          %q known before the loop
#
# The conversion moves directly after the definition of the value.
# Stage: TTGIR to TTGIR. Cost: one walk.


@op_pass("tritonamdgpu-hoist-layout-conversions", ttg.ConvertLayoutOp)
def hoist(convert: Operation) -> None:
    if operand_index(convert.results[0].type) is None:
        return
    source = convert.operands[0]
    loop = loop_around(convert, (scf.ForOp,))
    if loop is None or not isinstance(source, OpResult) or loop in ops_around(source.op):
        return
    move_behind(source.op, convert)


# Sink conversions below the `ttg.local_dealloc`s before their first use: the two share LDS.
#
#     %y = ttg.convert_layout %x           ttg.local_dealloc %m
#     ttg.local_dealloc %m          ==>    %y = ttg.convert_layout %x
#     use %y                               use %y
#
# Stage: TTGIR to TTGIR. Cost: one walk; for each conversion the ops of its block behind it.


@op_pass("tritonamdgpu-sink-layout-conversions", ttg.ConvertLayoutOp)
def sink(convert: Operation) -> None:
    sink_below_deallocs(convert)


# Hoist pure ops between two branches on one condition, so that `canonicalize` merges the branches.
#
#     %a = scf.if %c {..}                  %u = arith.muli %x, %y
#     %u = arith.muli %x, %y        ==>    %a = scf.if %c {..}
#     %b = scf.if %c {..}                  %b = scf.if %c {..}
#
# Only where all ops between the two can move: otherwise the branches stay apart.
# Stage: TTGIR to TTGIR. Cost: one walk; for each branch the ops before it.


@function_pass("tritonamdgpu-prepare-if-combining")
def prepare_if_combining(function: Operation) -> None:
    for op in reversed(ops_in_order(*function.regions)):  # so that a third branch follows the other two
        if type(op) is scf.IfOp:
            join_previous(op)


def join_previous(branch: Operation) -> None:
    """Hoist the ops between `branch` and a branch before it on the same condition."""
    between: list[Operation] = []
    needed = set[Operation]()
    earlier = branch.prev_op
    while earlier is not None and type(earlier) is not scf.IfOp:
        if not is_pure(earlier):
            return
        between.append(earlier)
        needed.update(value.op for value in used_values(earlier) if isinstance(value, OpResult))
        earlier = earlier.prev_op
    if earlier is not None and earlier not in needed and earlier.operands[0] is branch.operands[0]:
        move_before(earlier, *reversed(between))


# Refuse ops on descriptors: they are those of a tensor data mover, for which there is no code. `make_ttir` turns all
# descriptors into pointers.
# Stage: TTGIR to TTGIR. Cost: one walk.


@op_pass("tritonamdgpu-convert-tensor-ops", *DESCRIPTOR_ACCESSES)
def refuse_tensor_ops(op: Operation) -> None:
    raise PassError(
        f"{op.name} needs the tensor data mover of {find_target(op)}, which tilework does not use\n"
        "help: run triton-rewrite-tensor-descriptor-to-pointer on the TTIR",
        op.location,
    )


# Remove conversions that the conversions around a dot have made unnecessary.
# Stage: TTGIR to TTGIR. Cost: one walk.


@function_pass("tritonamdgpu-optimize-dot-operands")
def optimize_dot_operands(function: Operation) -> None:
    Driver(convert_layout.RULES).run(function)


# Insert a hint for LLVM's scheduler into attention loops (`schedule_hint="attention"`): one dot is the left operand of
# another.
#
#     scf.for ... { amdg.instruction_sched_hint {variant = #amdg.SchedHintVariant<attention>} ...
#
# Stage: TTGIR to TTGIR. Cost: one walk.


class InsertInstructionSchedHintsPass(Pass):
    name = "triton-amdgpu-insert-instruction-sched-hints"
    variant: str = "none"

    def run(self, module: ModuleOp) -> None:
        if self.variant != SchedHint.ATTENTION.keyword:
            return
        for op in tuple(module.walk()):
            if type(op) is scf.ForOp and any(type(one) is tt.DotOp and is_chain_head(one) for one in body_of(op).ops):
                insert_before(start_of(body_of(op)), amdg.InstructionSchedHintOp.make(SchedHint.ATTENTION, op.location))


TO_LDS = frozenset({ttg.LocalAllocOp, ttg.LocalStoreOp, ttg.LocalDeallocOp})
LARGE = (128, 128, 64)  # rows, columns and K of a dot whose operands leave no registers for early loads


@module_pass("tritonamdgpu-reorder-instructions")
def reorder_instructions(module: ModuleOp) -> None:
    ops = list(module.walk())
    sink_into_loops(ops, None)
    for op in ops:
        kind = type(op)
        if kind is ttg.ConvertLayoutOp:
            sink_below_deallocs(op)
        elif kind in TRANSPOSITIONS and (source := defining_op(op.operands[0])) is not None:
            move_behind(source, op)
        elif is_prologue_load(op):
            raise_load(op)
        elif kind is scf.ForOp:
            delay_second_load(op)


# Hoist the loads before a pipelined loop to their pointers, with the ops that compute their masks.
#
#     %p = tt.addptr %a, %o                %p = tt.addptr %a, %o
#     %b = arith.addf %x, %x        ==>    %l = tt.load %p {amd.pipeliner_part = "prologue"}
#     %l = tt.load %p {..}                 %b = arith.addf %x, %x
#
# No load moves over a loop or a write to global memory, which may be the one that it reads.
# Stage: TTGIR to TTGIR. Cost: one walk; for each load the ops it passes.


@op_pass("tritonamdgpu-move-up-prologue-loads", tt.LoadOp)
def move_up_prologue_loads(load: Operation) -> None:
    if is_prologue_load(load):
        raise_load(load)


def is_prologue_load(op: Operation) -> bool:
    return type(op) is tt.LoadOp and PART in op.attributes


def raise_load(load: Operation) -> None:
    """Hoist a load to its pointers, or to the start of the block."""
    pointers = defining_op(load.operands[0])
    needed, slice_ = {value.owner for value in load.operands}, [load]
    earlier = load.prev_op
    while earlier is not None and earlier is not pointers:
        if earlier in needed:
            if not is_pure(earlier) or earlier.regions:
                break
            slice_.append(earlier)
            needed |= {value.owner for value in used_values(earlier)}
        elif earlier.regions or (writes(earlier) and type(earlier) not in TO_LDS):
            break
        earlier = earlier.prev_op
    if earlier is not None:
        move_behind(earlier, *reversed(slice_))
        return
    assert load.parent is not None, "a load is in a block"
    move_before(next(op for op in load.parent.ops if op not in slice_), *reversed(slice_))


def delay_second_load(loop: Operation) -> None:
    """Sink the load of the second operand (step 5)."""
    ops = body_ops(loop)
    dots, loads = ([op for op in ops if type(op) in kinds] for kinds in (DOTS, (tt.LoadOp,)))
    if len(dots) != 1 or len(loads) != 2 or any(len(shape_of(load.results[0].type)) != 2 for load in loads):
        return
    (dot,) = dots
    (rows, depth), columns = shape_of(dot.operands[0].type), shape_of(dot.results[0].type)[1]
    if any(size < least for size, least in zip((rows, columns, depth), LARGE, strict=True)):
        return
    passed = list(ops_behind(loads[1], dot))
    if passed and passed[-1].next_op is dot and not any(map(writes, passed)):
        if not any(user in passed for user in users(loads[1].results[0])):
            move_before(dot, loads[1])
