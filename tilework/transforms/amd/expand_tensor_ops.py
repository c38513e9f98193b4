"""Expand ops of `amdg` on whole tensors to ops of all GPUs, where Triton has instructions of one GPU.

    %y = amdg.scaled_upcast_fp8 %x scale %s                     %v = tt.fp_to_fp %x ; %f = %s as a power of two
                                                         ==>    %y = arith.mulf %v, %f, NaN where %s is 255
    %y = amdg.upcast_mxfp %x, %s fp_type = e2m1                 the same, with %s repeated 32 times along K
    %y = amdg.local_load_packed_tranposed %m                    ttg.local_load, halves of bytes exchanged along K
    %t = amdg.async_copy_local_to_global %m, %p                 ttg.local_load, tt.store: complete before any wait

Products are those of f32, rounded once.
Stage: TTGIR to TTGIR. Cost: one walk, and the ops for each.
"""

from collections.abc import Callable
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilework.ir import amdg, arith, tt, ttg
from tilework.ir.attr_text import is_true
from tilework.ir.encodings import dot_operand_of, encoding_of, with_encoding
from tilework.ir.enums import CacheModifier, EvictionPolicy, ScaleDotElemType
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import num_ctas, num_warps, threads_per_warp
from tilework.ir.rewrite import erase_op, insert_before, replace_op
from tilework.ir.types import bf16, element_type, f32, i8, int_property, shape_of, tensor_type
from tilework.layouts.construct import default_blocked
from tilework.layouts.encodings import Distributed
from tilework.transforms.building.scaled_dot import NAN_SCALE, Expansion
from tilework.transforms.passes import Pass

LOW, HIGH, HALF = 0x0F, -0x10, 4  # the halves of a byte


class AmdExpandTensorOpsPass(Pass):
    name = "tritonamdgpu-expand-tensor-ops"

    def run(self, module: ModuleOp) -> None:
        for op in ops_in_order(*module.regions):
            if (rule := RULES.get(type(op))) is not None:
                rule(op)


def finish(op: Operation, code: Expansion, found: SSAValue) -> None:
    """Replace `op` by a value in its layout and type of elements."""
    result = op.results[0].type
    found = code.laid_out(code.as_float(found, element_type(result)), cast(Distributed, encoding_of(result)))
    replace_op(op, *code.code.ops, results=(found,))


def expand_scaled(op: Operation) -> None:
    """Multiply elements by scales of the same shape."""
    value, scale = op.operands
    expansion = Expansion(op, bf16)
    code, layout = expansion.code, cast(Distributed, encoding_of(op.results[0].type))
    if type(op) is amdg.ScaledUpcastFp4Op:
        value = expansion.unpacked(value, int_property(op, "axis"))
    value = expansion.laid_out(expansion.as_float(value, f32), layout)
    scale = expansion.laid_out(scale, layout)
    product = code.binary(arith.MulfOp, value, expansion.factor(scale, f32))
    if element_type(scale.type) == i8:
        is_nan = code.compare("eq", scale, NAN_SCALE)
        product = code.select(is_nan, code.constant(float("nan"), product.type), product)
    finish(op, expansion, product)


def expand_mxfp(op: Operation) -> None:
    """Multiply a dot operand by scales, each of which is for 32 elements along K."""
    value, scale = op.operands
    operand, format = dot_operand_of(value.type), ScaleDotElemType(int_property(op, "fp_type"))
    assert operand is not None
    expansion = Expansion(op, bf16, is_true(op.properties["fastMath"]))
    value = expansion.element_of(value, format)
    if format is ScaleDotElemType.E2M1:
        value = expansion.unpacked(value, operand.k_dim)
    value = expansion.laid_out(expansion.as_float(value, f32), cast(Distributed, encoding_of(op.results[0].type)))
    finish(op, expansion, expansion.scaled(value, scale, operand.op_idx))


def machine(op: Operation) -> tuple[int, int, int]:
    return num_warps(op), threads_per_warp(op), num_ctas(op)


def expand_packed(op: Operation) -> None:
    """Bytes hold neighbours across K in memory, and neighbours along K in the result."""
    result, expansion = op.results[0].type, Expansion(op, bf16)
    operand, code = dot_operand_of(result), expansion.code
    assert operand is not None
    rows, columns = shape_of(result)
    is_left = operand.op_idx == 0
    shape = (rows // 2, columns * 2) if is_left else (rows * 2, columns // 2)
    layout = default_blocked(shape, None, None, *machine(op))
    memory, *token = op.operands
    type = with_encoding(tensor_type(shape, i8), layout)
    stored = code.append(ttg.LocalLoadOp.make(memory, type, op.location, *token))
    lines, along = (rows, columns) if is_left else (columns, rows)
    stored = stored if is_left else expansion.transposed(stored)  # [half of the lines, twice K]
    pairs = expansion.reshaped(stored, (lines // 2, along, 2))
    in_thread = default_blocked((lines // 2, along, 2), (1, 1, 2), (2, 1, 0), *machine(op))
    split = tt.SplitOp.make(expansion.laid_out(pairs, in_thread), op.location)
    code.append(split)
    first, second = split.results
    even = code.binary(arith.OrIOp, code.binary(arith.AndIOp, first, LOW), code.binary(arith.ShLIOp, second, HALF))
    odd = code.binary(arith.OrIOp, code.binary(arith.ShRUIOp, first, HALF), code.binary(arith.AndIOp, second, HIGH))
    both = code.append(tt.JoinOp.make(even, odd, op.location))
    apart = code.append(tt.TransOp.make(both, (0, 2, 1), op.location))
    found = expansion.reshaped(apart, (lines, along))
    found = found if is_left else expansion.transposed(found)
    found = expansion.laid_out(found, cast(Distributed, encoding_of(result)))
    replace_op(op, *code.ops, results=(found,))


def expand_copy(op: Operation) -> None:
    """Store at once; what waits for the copy has nothing to wait for."""
    assert isinstance(op, amdg.AsyncCopyLocalToGlobalOp)
    memory = op.src.type
    assert isinstance(memory, ttg.MemDescType)
    layout = cast(Distributed, encoding_of(op.dst.type))
    type = with_encoding(tensor_type(memory.dims, memory.element_type), layout)
    load = ttg.LocalLoadOp.make(op.src, type, op.location)
    cache, evict = CacheModifier(int_property(op, "cache")), EvictionPolicy(int_property(op, "evict"))
    store = tt.StoreOp.make(op.dst, load.results[0], op.mask, op.location, cache=cache, evict=evict)
    for use in tuple(op.token.uses):
        user = use.operation
        user.operands = [operand for operand in user.operands if operand is not op.token]
    insert_before(op, load, store)
    erase_op(op)


RULES: dict[type[Operation], Callable[[Operation], None]] = {
    amdg.ScaledUpcastFp4Op: expand_scaled,
    amdg.ScaledUpcastFp8Op: expand_scaled,
    amdg.UpcastMxfpOp: expand_mxfp,
    amdg.LocalLoadPackedTransposedOp: expand_packed,
    amdg.AsyncCopyLocalToGlobalOp: expand_copy,
}
