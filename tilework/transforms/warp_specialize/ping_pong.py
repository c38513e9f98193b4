"""Two consumers with work between their products start these in turn: while one has the tensor cores, the other works.

    first consumer     wait for its turn;  s = q @ k;  acc += p @ v;  give the turn away;  softmax ...
    second consumer    softmax ...     wait for its turn;  s = q @ k;  acc += p @ v;  give the turn away

A turn is a barrier for each consumer at which the warps of the other one arrive. The first consumer waits for the phase
before the first, which is over from the start. Both run their loops equally often, as the work was cut, not the loops.
"""

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation

from tilework.ir import ttng
from tilework.ir.functions import entry_around
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import insert_after
from tilework.ir.types import i32
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.ttg.pipeline.loops import body_ops
from tilework.transforms.warp_specialize.rings import carry_turn, make_barriers, stage_of


def take_turns(op: Operation, loops: Sequence[Operation], warps: int) -> None:
    """Let `loops`, one of each consumer of `op`, start their products in turn."""
    code = Emitter(op.location)
    turns = make_barriers(code, len(loops), warps)
    code.insert_before(op)
    for consumer, loop in enumerate(loops):
        body = body_of(loop)
        dots = [inner for inner in body_ops(loop) if type(inner) is ttng.WarpGroupDotOp]
        _, phase = carry_turn(frozenset({body}), 1, entry_around(loop), loop.location)[0][body]
        code = Emitter(dots[0].location)
        if consumer == 0:
            phase = code.binary(arith.XOrIOp, phase, code.constant(1, i32))
        own = stage_of(code, turns, code.constant(consumer, i32))
        code.ops.append(ttng.WaitBarrierOp.make(own, phase, None, (), code.loc))
        code.insert_before(dots[0])
        following = stage_of(code, turns, code.constant((consumer + 1) % len(loops), i32))
        code.ops.append(ttng.ArriveBarrierOp.make(following, warps, None, code.loc))
        insert_after(dots[-1], *code.ops)
