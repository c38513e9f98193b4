"""Issue all loads of a program that reduces a row at once, so that it waits for memory once, not twice.

    %x = tt.load %p                          %x = tt.load %p
    %m = "tt.reduce"(%x)                     %w = tt.load %q          (with the ops that compute %q)
    %w = tt.load %q               ==>        %m = "tt.reduce"(%x)
    ... %x - %m ... * %w                     ... %x - %m ... * %w

Values loaded early occupy registers, so that fewer blocks share a multiprocessor. It pays while their rows still keep
DRAM busy (docs/cost-model.md): layernorm of 4096 bf16 with 4 warps has six blocks instead of eight and gains 3 %, with
8 warps four instead of six and lost 7 %: 48 KB of rows on a multiprocessor are enough, 40 KB are not. No load moves
over a write, and nothing moves in kernels with loops.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from itertools import takewhile

from xdsl.ir import Operation, SSAValue

from tilework.analysis.cost import is_float_tile, keep_dram_busy, tile_registers
from tilework.ir import arith, tt
from tilework.ir.effects import is_pure, is_speculatable, writes
from tilework.ir.functions import has_body
from tilework.ir.nesting import body_of
from tilework.ir.property_text import is_true
from tilework.ir.rewrite import block_of, move_before
from tilework.ir.scf import LOOPS
from tilework.transforms.passes import function_pass

WAITS = frozenset({tt.ReduceOp, tt.ScanOp})
ALIKE = frozenset({arith.ConstantOp, tt.SplatOp})  # all elements are equal


@function_pass("tritongpu-early-loads")
def early_loads(function: Operation) -> None:
    if not has_body(function) or len(function.regions[0].blocks) != 1:
        return
    block = body_of(function)
    first = next((op for op in block.ops if type(op) in WAITS), None)
    if first is None or any(type(op) in LOOPS for op in block.ops):
        return
    moved = independent_loads(first)
    if any(type(op) is tt.LoadOp for op in moved) and pays(first, moved):
        move_before(first, *moved)


def independent_loads(first: Operation) -> list[Operation]:
    """Return the loads after `first`, up to a write, that do not depend on it, with the ops that compute their
    operands.
    """
    late = set[SSAValue](first.results)
    loads: list[Operation] = []
    behind: dict[Operation, None] = {}
    op = first.next_op
    while op is not None and not writes(op):
        is_load = type(op) is tt.LoadOp and not is_true(op.properties["isVolatile"])
        if (is_load or is_speculatable(op)) and not op.regions and late.isdisjoint(op.operands):
            behind[op] = None
            loads += [op] if is_load else []
        elif is_load or is_pure(op):
            late.update(op.results)
        else:
            break
        op = op.next_op
    needed = set[Operation](loads)
    for op in reversed(behind):
        if op in needed:
            needed.update(operand.owner for operand in op.operands if operand.owner in behind)  # pyright: ignore
    return [op for op in behind if op in needed]


def pays(first: Operation, moved: list[Operation]) -> bool:
    """Return True if the blocks that fit on a multiprocessor still request enough rows."""
    before = list(takewhile(lambda op: op is not first, block_of(first).ops))
    early = {first, *before, *moved}
    held = [
        value.type
        for value in (result for op in before if type(op) not in ALIKE for result in op.results)
        if is_float_tile(value.type) and any(use.operation not in early for use in value.uses)
    ]
    rows = [op.results[0].type for op in before if type(op) is tt.LoadOp]
    taken = sum(map(tile_registers, held + [op.results[0].type for op in moved if type(op) is tt.LoadOp]))
    return keep_dram_busy(first, rows, taken, 0)
