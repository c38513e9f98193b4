"""Transpose and reshape dot operands in shared memory, where a view costs nothing.

    %t = tt.trans %x                                       %m = ttg.local_alloc %x
    %y = ttg.convert_layout %t : -> #dot_op         ==>    %n = ttg.memdesc_trans %m
    tt.dot %y, ...                                         %y = ttg.local_load %n : -> #dot_op

    %t = tt.trans %x                                       %n = ttg.local_alloc %x
    %m = ttg.local_alloc %t                         ==>    %m = ttg.memdesc_trans %n
    ttng.warp_group_dot ..., %m

    %t = tt.reshape %x                                     %n = ttg.local_alloc %x
    %m = ttg.local_alloc %t                         ==>    %m = ttg.memdesc_reshape %n

Only transpositions of two dimensions, of operands with one use; a reshape only if its memory still has a layout that
tensor cores and TMA support. The pass canonicalizes the module first and removes unneeded conversions.
Stage: TTGIR to TTGIR. Cost: a canonicalization.
"""

from typing import cast

from xdsl.ir import Operation, SSAValue

from tilework.ir import tt, ttg, ttng
from tilework.ir.encodings import distributed_of, dot_operand_of, encoding_of, layout_of, shared_of
from tilework.ir.rewrite import replace_op
from tilework.ir.types import array_values, bit_width, element_type, is_pointer, shape_of
from tilework.layouts.construct import dot_shared
from tilework.layouts.conversion import needs_shared
from tilework.layouts.encodings import Distributed
from tilework.layouts.infer import infer_memdesc_reshape, infer_memdesc_trans
from tilework.layouts.linear import LayoutError
from tilework.layouts.to_linear import order_for_memory
from tilework.transforms.building.emitter import converted_from
from tilework.transforms.common.canonicalize import canonicalize, first_of
from tilework.transforms.folding import convert_layout as convert_canonicalize
from tilework.transforms.folding.arith import producer
from tilework.transforms.folding.worklist import Driver, Rewrite, rule_table
from tilework.transforms.passes import function_pass, op_pass

SWAP = (1, 0)


@function_pass("tritongpu-optimize-dot-operands")
def optimize_dot_operands(function: Operation) -> None:
    canonicalize(function)
    Driver(RULES).run(function)


def swapped_source(value: SSAValue) -> tuple[Operation, SSAValue] | None:
    """Return the transposition that defines `value` and its operand, before conversions; None if there is none."""
    trans = producer(value, tt.TransOp)
    if trans is None or array_values(trans.properties["order"]) != SWAP:
        return None
    return trans, converted_from(trans.operands[0])


def load_transposed(op: Operation, driver: Driver) -> bool:
    """Load a transposed operand through shared memory, where `ldmatrix` transposes it."""
    result = op.results[0]
    layout = dot_operand_of(result.type)
    use = result.get_user_of_unique_use()
    if layout is None or not isinstance(use, tt.DotOp):
        return False
    if (found := swapped_source(op.operands[0])) is None:
        return False
    trans, source = found
    shape, element = shape_of(source.type), element_type(source.type)
    from_layout = cast(Distributed, encoding_of(source.type))
    shared = dot_shared(
        layout,
        shape,
        order_for_memory(from_layout, shape),
        bit_width(element),
        need_trans=True,
        cga=from_layout.cga_bases,
    )
    alloc = ttg.LocalAllocOp.make(source, ttg.memdesc_type(shape, element, shared), op.location)
    view = ttg.MemDescTransOp.make(alloc.results[0], SWAP, op.location)
    load = ttg.LocalLoadOp.make(view.results[0], result.type, op.location)
    for new in (alloc, view, load):
        driver.insert(trans, new)
    return driver.replace(op, load.results)


def copy_operand(op: Operation, driver: Driver) -> bool:
    """Copy a tensor before it is transposed or reshaped, and take a view of the copy."""
    return bool(op.operands) and (transpose_copy(op, driver) or reshape_copy(op, driver))


def transpose_copy(op: Operation, driver: Driver) -> bool:
    use = op.results[0].get_user_of_unique_use()
    memory = op.results[0].type
    assert isinstance(memory, ttg.MemDescType)
    layout = shared_of(memory)
    if not isinstance(use, ttng.WarpGroupDotOp) or layout is None or not layout.is_matrix_tile:
        return False
    if (found := swapped_source(op.operands[0])) is None:
        return False
    _, source = found
    shape = shape_of(source.type)
    before = infer_memdesc_trans(layout, SWAP, memory.dims)
    type = ttg.memdesc_type(shape, memory.element_type, before, mutable=memory.is_mutable)
    alloc = ttg.LocalAllocOp.make(source, type, op.location)
    return driver.replace_with(op, alloc, ttg.MemDescTransOp.make(alloc.results[0], SWAP, op.location))


def reshape_copy(op: Operation, driver: Driver) -> bool:
    reshape = producer(op.operands[0], tt.ReshapeOp)
    memory = op.results[0].type
    assert isinstance(memory, ttg.MemDescType)
    layout = shared_of(memory)
    if reshape is None or layout is None or not layout.is_matrix_tile:
        return False
    source = reshape.operands[0]
    shape = shape_of(source.type)
    try:
        before = infer_memdesc_reshape(memory.dims, layout, shape)
        if not before.is_matrix_tile or infer_memdesc_reshape(shape, before, memory.dims) != layout:
            return False
    except LayoutError:
        return False
    type = ttg.memdesc_type(shape, memory.element_type, before, mutable=memory.is_mutable)
    alloc = ttg.LocalAllocOp.make(source, type, op.location)
    return driver.replace_with(op, alloc, ttg.MemDescReshapeOp.make(alloc.results[0], memory.dims, op.location))


REWRITES: dict[type[Operation], Rewrite] = {**convert_canonicalize.REWRITES}
REWRITES[ttg.ConvertLayoutOp] = first_of(load_transposed, convert_canonicalize.rewrite_convert)
REWRITES[ttg.LocalAllocOp] = first_of(copy_operand, convert_canonicalize.drop_convert)
RULES = rule_table(convert_canonicalize.FOLDS, REWRITES)


# Convert tensors to the layout of a dot operand through a buffer in shared memory.
#
#     %y = ttg.convert_layout %x       %m = ttg.local_alloc %x : (tensor<64x32xf16, #blocked>) -> !ttg.memdesc<...>
#                               ==>    %y = ttg.local_load %m : !ttg.memdesc<...> -> tensor<64x32xf16, #dot_op>
#
# Warps hold duplicates of each other's dot operands. A conversion would write these to shared memory; a buffer holds
# every element once, in the swizzle from which `ldmatrix` reads without bank conflicts, and it can be shared and
# hoisted. Only for conversions through shared memory.
# Stage: TTGIR to TTGIR. Cost: one walk.


@op_pass("tritongpu-reduce-data-duplication", ttg.ConvertLayoutOp)
def through_buffer(convert: Operation) -> None:
    """Replace a conversion to a dot operand that needs shared memory."""
    source, result = convert.operands[0], convert.results[0]
    target, given = dot_operand_of(result.type), distributed_of(source.type)
    if target is None or given is None:
        return
    if is_pointer(element_type(source.type)) or not needs_shared(layout_of(source.type), layout_of(result.type)):
        return
    shape = shape_of(source.type)
    order = order_for_memory(given, shape)
    encoding = dot_shared(target, shape, order, bit_width(source.type), cga=given.cga_bases)
    memory = ttg.memdesc_type(shape, element_type(source.type), encoding)
    alloc = ttg.LocalAllocOp.make(source, memory, convert.location)
    replace_op(convert, alloc, ttg.LocalLoadOp.make(alloc.results[0], result.type, convert.location))
