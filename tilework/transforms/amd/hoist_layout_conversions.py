"""Operands of dots that a loop does not change get their layout before it: the queries of attention stay in registers.

    scf.for ... { %q1 = ttg.convert_layout %q : #blocked -> #dot_op ...          %q known before the loop

The conversion moves right behind the value. Stage: TTGIR to TTGIR. Cost: one walk.
"""

from xdsl.dialects import scf
from xdsl.ir import Operation, OpResult

from tilework.ir import ttg
from tilework.ir.encodings import operand_index
from tilework.ir.nesting import ops_around
from tilework.ir.rewrite import move_behind
from tilework.transforms.passes import op_pass


@op_pass("tritonamdgpu-hoist-layout-conversions", ttg.ConvertLayoutOp)
def hoist(convert: Operation) -> None:
    if operand_index(convert.results[0].type) is None:
        return
    source = convert.operands[0]
    loop = next((outer for outer in ops_around(convert) if isinstance(outer, scf.ForOp)), None)
    if loop is None or not isinstance(source, OpResult) or loop in ops_around(source.op):
        return
    move_behind(source.op, convert)
