"""Convert tensors to the layout of a dot operand through a buffer in shared memory.

    %y = ttg.convert_layout %x       %m = ttg.local_alloc %x : (tensor<64x32xf16, #blocked>) -> !ttg.memdesc<...>
                              ==>    %y = ttg.local_load %m : !ttg.memdesc<...> -> tensor<64x32xf16, #dot_op>

Warps hold duplicates of each other's dot operands. A conversion would write these to shared memory; a buffer holds
every element once, in the swizzle from which `ldmatrix` reads without bank conflicts, and it can be shared and hoisted.
Only for conversions through shared memory. Stage: TTGIR to TTGIR. Cost: one walk.
"""

from xdsl.ir import Operation

from tilework.ir import ttg
from tilework.ir.encodings import (
    distributed_of,
    dot_operand_of,
    layout_of,
)
from tilework.ir.rewrite import replace_op
from tilework.ir.types import bit_width, element_type, is_pointer, shape_of
from tilework.layouts.construct import dot_shared
from tilework.layouts.conversion import needs_shared
from tilework.layouts.queries import order_for_memory
from tilework.transforms.passes import op_pass


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
