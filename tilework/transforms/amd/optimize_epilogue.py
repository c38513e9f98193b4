"""Store dot results in their own layout: convert the pointers and the mask, not the values.

    %v = ttg.convert_layout %acc : #mma -> #blocked          %q = ttg.convert_layout %p : #blocked -> #mma
    tt.store %p, %v : #blocked                               tt.store %q, %acc : #mma

This also works through a chain of unary elementwise ops, each used once, which is then computed in the layout of the
dot. On CDNA4 lanes first exchange half of their 16-bit results, by one instruction for two registers, so that each
lane stores 16 bytes.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from xdsl.ir import Operation, OpResult

from tilework.ir import tt, ttg
from tilework.ir.effects import is_elementwise
from tilework.ir.encodings import distributed_of, is_accumulator, with_encoding
from tilework.ir.rewrite import put, recreate, replace_op
from tilework.ir.types import bit_width, shape_of
from tilework.layouts.amd import wide_rows
from tilework.transforms.building.emitter import laid_out
from tilework.transforms.passes import op_pass


@op_pass("tritonamdgpu-optimize-epilogue", tt.StoreOp)
def store_as_computed(store: Operation) -> None:
    chain: list[Operation] = []
    value = store.operands[1]
    while True:
        if not isinstance(value, OpResult) or len(tuple(value.uses)) != 1:
            return
        op = value.op
        if type(op) is ttg.ConvertLayoutOp:
            break
        if not is_elementwise(op) or len(op.operands) != 1 or len(op.results) != 1:
            return
        chain.append(op)
        value = op.operands[0]
    source = value.op.operands[0]
    layout = distributed_of(source.type)
    if layout is None or not is_accumulator(source.type):
        return
    for op in reversed(chain):
        source = put(op, recreate(op, operands=(source,), result_types=(with_encoding(op.results[0].type, layout),)))
    pointers, _, *mask = store.operands
    wider = wide_rows(layout, shape_of(source.type), bit_width(source.type))
    where = laid_out(store, pointers, wider or layout)
    source = source if wider is None else laid_out(store, source, wider)
    others = [laid_out(store, operand, wider or layout) for operand in mask]
    replace_op(store, recreate(store, operands=(where, source, *others)))
