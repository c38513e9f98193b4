"""Let dots without tensor cores read their operands from shared memory, a few elements of K at a time.

    %m = ttg.local_alloc %x                                %m = ttg.local_alloc %x : ... #shared_linear
    %a = ttg.local_load %m : ... -> #dot_op<0, #blocked>   ==>
    %d = tt.dot %a, %b, %c                                 %d = ttg.local_dot %m, %n, %c

With a blocked accumulator each thread holds its rows of A and its columns of B for all of K: too many registers for
large tiles. `ttg.local_dot` reads memory instead, in a loop over K. It reads later than the load did, so no op in
between may write shared memory, or signal others to do so; the contents of a `ttg.local_alloc` with a source never
change. Operands in registers are stored to new memory. Memory that only this dot reads gets a layout without bank
conflicts for writes and reads; an operand in a buffer of the pipeliner with many conflicts is copied to such memory.

With `narrow`, 16-bit operands are stored as they are and converted to f32 by each thread that reads them: half of the
memory, and more work. Fires where a thread would hold more than `MOST_HELD` registers of the operands.
Stage: TTGIR, before it is lowered to LLVM text. Cost: one walk.
"""

from collections.abc import Iterable
from functools import partial
from itertools import takewhile
from operator import is_not

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.analysis.alias import VIEWS
from tilework.analysis.allocation import allocations
from tilework.ir import amdg, arith, scf, tt, ttg
from tilework.ir.create import clone_op, create_op
from tilework.ir.effects import is_pure, is_value_alloc
from tilework.ir.encodings import dot_operand_of, encoding_attr, is_accumulator, layout_of
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import find_num_warps, num_ctas, threads_per_warp
from tilework.ir.nesting import ops_behind
from tilework.ir.rewrite import defining_op, erase_op, insert_after, insert_before, replace_op
from tilework.ir.types import bit_width, element_type, f32, shape_of, tensor_type
from tilework.layouts.banks import bank_conflicts
from tilework.layouts.construct import default_blocked
from tilework.layouts.conversion import VECTOR_BITS, shared_plan
from tilework.layouts.encodings import SharedLinear
from tilework.layouts.linear import LinearLayout
from tilework.target import Target
from tilework.transforms.passes import Pass

MOST_HELD = 128  # 32-bit registers of both operands per thread
MANY_CONFLICTS = 3  # from which a copy costs less
# Ops that neither write shared memory nor signal others to write it.
HARMLESS = frozenset({
    tt.LoadOp, ttg.LocalLoadOp, ttg.LocalDotOp, ttg.AsyncWaitOp, ttg.BarrierOp,
    amdg.AsyncWaitOp, amdg.BufferLoadOp,
})  # fmt: skip


class DotsFromMemoryPass(Pass):
    name = "tritongpu-dots-from-memory"
    narrow: bool = False

    def run(self, module: ModuleOp) -> None:
        for dot in large_dots(module):
            rewrite(dot, self.narrow)


def with_dots_from_memory(module: ModuleOp, target: Target) -> ModuleOp:
    """Return the module, or a copy whose large dots read memory: as f32 if it fits, else as 16 bits."""
    if not large_dots(module):
        return module
    for narrow in (False, True):
        DotsFromMemoryPass(narrow).run(made := clone_op(module, {}))
        if max(found.size for found in allocations(made, target)) <= target.limits.shared_bytes:
            return made
    return module


def large_dots(module: ModuleOp) -> list[Operation]:
    """Return the dots whose operands do not fit into registers."""
    return [op for op in ops_in_order(*module.regions) if type(op) is tt.DotOp and is_large(op)]


def is_large(dot: Operation) -> bool:
    a, b = (operand.type for operand in dot.operands[:2])
    operand = dot_operand_of(a)
    if operand is None or is_accumulator(dot.results[0].type) or num_ctas(dot) > 1:
        return False
    return sum(layout_of(type).in_size("register") * max(1, bit_width(type) // 32) for type in (a, b)) > MOST_HELD


def rewrite(dot: Operation, narrow: bool) -> None:
    a, b, c = dot.operands
    memory = [memory_of(side, dot, side.type, narrow) for side in (a, b)]
    replace_op(dot, create_op(ttg.LocalDotOp, (*memory, c), (c.type,), dot.location))
    for side in (a, b):
        erase_unused(side)


def memory_of(value: SSAValue, dot: Operation, reader: Attribute, narrow: bool) -> SSAValue:
    """Return shared memory that holds `value` at `dot`, or the narrower source of `value` if it was widened."""
    made = defining_op(value)
    if isinstance(made, ttg.LocalLoadOp) and can_wait(made, dot):
        alloc = defining_op(made.src)
        if alloc is None or not is_filled(alloc):
            return made.src if narrow else without_many_conflicts(made, reader)
        source = alloc.operands[0]
        if narrow and (given := widened_from(source)) is not None:
            return memory_of(given, dot, reader, narrow)
        is_own = made.src.has_one_use() and value.has_one_use()
        return filled(source, reader, alloc) if is_own else made.src
    if (given := widened_from(value)) is not None:
        return memory_of(given, dot, reader, narrow)
    if made is not None:
        return filled(made.operands[0] if type(made) is ttg.ConvertLayoutOp else value, reader, made, behind=True)
    return filled(value, reader, dot)


def widened_from(value: SSAValue) -> SSAValue | None:
    """Return the 16-bit source of an f32 operand, which has the same values; None if there is none."""
    made = defining_op(value)
    if not isinstance(made, arith.ExtFOp) or element_type(value.type) is not f32:
        return None
    return made.operands[0] if bit_width(made.operands[0].type) == 16 else None


def is_filled(alloc: Operation) -> bool:
    """Return True for memory that is initialised by its allocation and never changes."""
    return type(alloc) is ttg.LocalAllocOp and is_value_alloc(alloc)


def can_wait(load: ttg.LocalLoadOp, dot: Operation) -> bool:
    """Return True if the memory does not change between `load` and `dot`."""
    memory = load.src
    while (made := defining_op(memory)) is not None and type(made) in VIEWS:
        memory = made.operands[0]
    if made is not None and is_filled(made):
        return True
    at = dot
    while (block := at.parent) is not None and block is not load.parent:
        # the last iterations of a pipelined loop multiply under a condition
        outer = block.parent_op()
        if not isinstance(outer, scf.IfOp) or not are_harmless(takewhile(partial(is_not, at), block.ops)):
            return False
        at = outer
    return load.is_before_in_block(at) and are_harmless(ops_behind(load, at))


def are_harmless(ops: Iterable[Operation]) -> bool:
    return all(is_pure(op) or type(op) in HARMLESS for op in ops)


def filled(source: SSAValue, reader: Attribute, anchor: Operation, behind: bool = False) -> SSAValue:
    """Allocate memory that holds `source`, before or after an op, for reads in the layout of `reader`."""
    encoding = without_conflicts(layout_of(source.type), layout_of(reader), bit_width(source.type))
    type = ttg.memdesc_type(shape_of(source.type), element_type(source.type), encoding)
    alloc = ttg.LocalAllocOp.make(source, type, anchor.location)
    (insert_after if behind else insert_before)(anchor, alloc)
    return alloc.results[0]


def without_many_conflicts(load: ttg.LocalLoadOp, reader: Attribute) -> SSAValue:
    """Return the memory that `load` reads, or a copy in another layout if reading it has many bank conflicts."""
    memory, given, held = load.src, load.results[0].type, layout_of(load.src.type)
    if bank_conflicts(layout_of(reader), held, bit_width(given)) < MANY_CONFLICTS:
        return memory
    shape = shape_of(reader)
    fastest = next(dim for dim, step in enumerate(dict(held.bases)["offset"][0]) if step)
    order = (fastest, *(dim for dim in reversed(range(len(shape))) if dim != fastest))
    vector = min(shape[fastest], VECTOR_BITS // bit_width(given))
    width = tuple(vector if dim == fastest else 1 for dim in range(len(shape)))
    rows = default_blocked(shape, width, order, find_num_warps(load) or 1, threads_per_warp(load))
    copy = ttg.LocalLoadOp.make(
        memory, tensor_type(shape, element_type(given), encoding_attr(rows)), load.location, load.token
    )
    insert_before(load, copy)
    return filled(copy.results[0], reader, load)


def without_conflicts(written: LinearLayout, read: LinearLayout, bits: int) -> SharedLinear:
    plan = shared_plan(written, read, bits, loads_matrices=False, stores_matrices=False)
    columns = (("offset", plan.layout.by_in["offset"]), ("block", ()))
    return SharedLinear(LinearLayout.packed(columns, written.outs))


def erase_unused(value: SSAValue) -> None:
    """Remove loads, conversions and memory that only the dot used."""
    made = defining_op(value)
    if made is None or made.results[0].first_use is not None:
        return
    if is_pure(made) or isinstance(made, ttg.LocalLoadOp):
        operands = tuple(made.operands)
        erase_op(made)
        for operand in operands:
            erase_unused(operand)
