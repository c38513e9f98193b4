"""Let two waves of a SIMD take turns: one loads while the other multiplies.

    %a = ttg.local_load        rocdl.s.setprio 1            the matrix unit goes on with the other wave
    %p = tt.load               rocdl.sched.barrier 0        the scheduler keeps what is above there
    %b = ttg.local_load        rocdl.s.setprio 0
    %q = tt.load               rocdl.sched.barrier 1
    rocdl.s.setprio 1          tt.dot %a, %b                rocdl.s.setprio 0

Fires in pipelined loops of four warps with one product of middle size on the matrix unit, whose operands are the only loads. It changes no value.
Stage: TTGIR to TTGIR. Cost: one walk of each body.
"""

from xdsl.dialects import scf
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from tilework.ir import amdg, tt, ttg
from tilework.ir.effects import is_elementwise, writes
from tilework.ir.encodings import encoding_of
from tilework.ir.module_facts import num_warps
from tilework.ir.rewrite import insert_after, insert_before
from tilework.ir.types import bit_width, shape_of
from tilework.layouts.families import Accumulator
from tilework.transforms.passes import Pass
from tilework.transforms.ttg.pipeline.loops import DOTS, body_ops
from tilework.transforms.ttg.reorder_instructions import move_before

ONE_CLUSTER = range(1 << 18, (1 << 24) + 1)  # rows * columns * depth * bits


class AmdBlockPingpongPass(Pass):
    name = "tritonamdgpu-block-pingpong"

    def run(self, module: ModuleOp) -> None:
        for op in tuple(module.walk()):
            if type(op) is scf.ForOp and num_warps(op) == 4:
                take_turns(op)


def take_turns(loop: Operation) -> None:
    """The form of one cluster."""
    ops = body_ops(loop)
    dots, loads, reads = ([op for op in ops if type(op) in kinds] for kinds in (DOTS, (tt.LoadOp,), (ttg.LocalLoadOp,)))
    if len(dots) != 1 or len(loads) != 2 or len(reads) != 2:
        return
    (dot,) = dots
    if not isinstance(encoding_of(dot.results[0].type), Accumulator) or size_of(dot) not in ONE_CLUSTER:
        return
    if reads != [source_of(operand) for operand in dot.operands[:2]]:
        return
    positions = {op: position for position, op in enumerate(ops)}
    first, second = loads
    made = [positions[owner] for read in reads for value in read.operands if (owner := value.owner) in positions]
    above = ops[min(positions[op] for op in (*loads, *reads)) : positions[dot]]
    if max(made, default=-1) > positions[first] or second not in above or any(map(writes, above)):
        return
    location = dot.location
    for read in reads:
        move_before(read, first)
    first.detach()
    insert_after(reads[0], prio(1, location), first, hold(0, location))
    insert_after(reads[1], prio(0, location))
    insert_before(dot, hold(1, location), prio(1, location))
    insert_after(dot, prio(0, location))


def size_of(dot: Operation) -> int:
    (rows, depth), columns = shape_of(dot.operands[0].type)[-2:], shape_of(dot.results[0].type)[-1]
    return rows * columns * depth * bit_width(dot.operands[0].type)


def source_of(value: SSAValue) -> Operation | None:
    """The op that `value` comes from, through casts."""
    while isinstance(value, OpResult) and is_elementwise(value.op) and len(value.op.operands) == 1:
        value = value.op.operands[0]
    return value.op if isinstance(value, OpResult) else None


def prio(level: int, location: LocationAttr) -> Operation:
    return amdg.SetPrioOp.make(level, location)


def hold(mask: int, location: LocationAttr) -> Operation:
    return amdg.SchedBarrierOp.make(mask, location)
