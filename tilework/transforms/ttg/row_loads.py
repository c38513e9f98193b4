"""Loads of programs that reduce rows: prefetch the rows of later programs into L2, and issue all loads of a row early.

The prefetch keeps DRAM busy during the reduction:

    %row = tt.get_program_id x               %row = tt.get_program_id x
    %p = ... %row ...                        %p = ... %row ...
    %x = tt.load %p, %m                      %x = tt.load %p, %m
    %s = "tt.reduce"(%x)              ==>    %later = arith.addi %row, 704
                                             ttg.fetch (... %later ...) mask (%m & %later < tt.get_num_programs x)
                                             %s = "tt.reduce"(%x)

A block that has loaded its row requests nothing from DRAM until it ends, and the block that replaces it starts to load
only then. Rows prefetched here are in L2 when a later block loads them. The prefetch distance is the number of rows
that keeps DRAM busy (`analysis/cost.py`): nearer rows have not arrived when they are loaded, farther ones evict
each other from L2 (docs/cost-model.md).

Fires for DRAM-bound programs without loops, and for loads of whole lines, at least eight bytes per thread, at addresses
computed from the program id along x and arguments, of rows that neighbouring programs do not share: the prefetch covers
what that program loads, where its mask holds.
Stage: TTGIR to TTGIR. Cost: one walk.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from math import ceil, prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilework.analysis.axis_info import AxisFacts, axis_info
from tilework.analysis.cost import DRAM, busy_bytes, is_float_tile, keep_dram_busy, loop_cost, tile_registers
from tilework.analysis.value_flows import reached
from tilework.ir import arith, tt, ttg
from tilework.ir.attr_text import is_true
from tilework.ir.effects import is_pure, is_speculatable, writes
from tilework.ir.encodings import encoding_of
from tilework.ir.enums import ProgramDim
from tilework.ir.functions import functions, has_body, ops_in_order
from tilework.ir.module_facts import find_target
from tilework.ir.nesting import body_of
from tilework.ir.rewrite import block_of, defining_op, insert_after, move_before, recreate
from tilework.ir.scf import LOOPS
from tilework.ir.ttg.shared_memory_ops import LINE
from tilework.ir.types import bit_width, element_type, i1, i32, int_property, is_tensor, shape_of, with_element
from tilework.layouts.to_linear import order
from tilework.transforms.building.emitter import Emitter, mask_of
from tilework.transforms.passes import function_pass, module_pass

WAITS = frozenset({tt.ReduceOp, tt.ScanOp})
QUOTIENTS = frozenset({arith.DivSIOp, arith.DivUIOp, arith.ShRSIOp, arith.ShRUIOp})
REMAINDERS = frozenset({arith.RemSIOp, arith.RemUIOp, arith.AndIOp})
LEAST = 8  # bytes of a load: each thread prefetches its own, so narrower loads would cost more than they save


@module_pass("tritongpu-prefetch-rows")
def prefetch_rows(module: ModuleOp) -> None:
    for function in functions(module):
        if not has_body(function) or len(function.regions[0].blocks) != 1:
            continue
        ops = list(body_of(function).ops)
        before = list(takewhile(lambda op: type(op) not in WAITS, ops))
        if len(before) == len(ops) or any(type(op) in LOOPS for op in ops_in_order(*function.regions)):
            continue
        rows: dict[Operation, list[Operation]] = {
            op: made for op in before if type(op) is tt.LoadOp and (made := moving(op))
        }
        if rows and is_limited_by_dram(function):
            facts = axis_info(module)
            rows = {op: made for op, made in rows.items() if reads_lines(op, facts) and is_own_row(op, made)}
            if rows:
                fetch(rows, rows_ahead(rows))


def is_limited_by_dram(function: Operation) -> bool:
    cost = loop_cost(function)
    return cost is not None and cost.limit == DRAM


def reads_lines(load: Operation, facts: AxisFacts) -> bool:
    pointers = load.operands[0]
    if not is_tensor(pointers.type) or is_true(load.properties["isVolatile"]):
        return False
    encoding, element = encoding_of(pointers.type), element_type(load.results[0].type)
    assert encoding is not None
    dims, bytes_ = order(encoding, shape_of(pointers.type)), bit_width(element) // 8
    if not dims or facts.alignment(pointers, dims) * bytes_ < LEAST:
        return False
    return facts.of(pointers).contiguity[dims[0]] * bytes_ >= LINE


def makers(op: Operation) -> list[Operation]:
    """Return the ops that compute the operands."""
    return [made for operand in op.operands if (made := defining_op(operand)) is not None]


def moving(load: Operation) -> list[Operation]:
    """Return the ops, in order, by which pointers and mask depend on the program id along x; none if they cannot be
    computed ahead.
    """
    made = set(reached(makers(load), makers))
    if not all(is_speculatable(op) and not op.regions for op in made):
        return []
    found: dict[Operation, None] = {}
    for op in takewhile(lambda op: op is not load, block_of(load).ops):
        if op in made and (is_program_id(op) or any(operand.owner in found for operand in op.operands)):
            found[op] = None
    return list(found) if load.operands[0].owner in found else []


def is_own_row(load: Operation, made: Collection[Operation]) -> bool:
    """Return False if neighbouring programs load the same row, which is in L2 then: its index is a quotient of the
    program id (or a remainder) without the remainder (or the quotient) of the same division.
    """
    pointer = defining_op(load.operands[0])
    used = set(made).intersection(reached([pointer] if pointer is not None else [], makers))
    divided = {op.operands[0] for op in used if type(op) in QUOTIENTS}
    rest = {op.operands[0] for op in used if type(op) in REMAINDERS}
    return divided == rest


def is_program_id(op: Operation) -> bool:
    """Return True for ``tt.get_program_id x``."""
    return type(op) is tt.GetProgramIdOp and int_property(op, "axis") == ProgramDim.X


def rows_ahead(rows: Collection[Operation]) -> int:
    rates = find_target(next(iter(rows))).rates
    assert rates is not None, "what has a cost has rates"
    each = sum(prod(shape_of(row.results[0].type)) * bit_width(row.results[0].type) // 8 for row in rows)
    return ceil(rates.multiprocessors * busy_bytes(rates) / each)


def fetch(rows: Mapping[Operation, Sequence[Operation]], distance: int) -> None:
    """Prefetch the loads of the program `distance` further on, at pointers that these ops compute."""
    last = next(reversed(list(rows)))
    code = Emitter(last.location)
    count = code.append(tt.GetNumProgramsOp.make(ProgramDim.X, code.loc))
    later: dict[SSAValue, SSAValue] = {}
    inside: SSAValue | None = None
    for op in dict.fromkeys(op for made in rows.values() for op in made):
        if is_program_id(op):
            later_value = code.binary(arith.AddiOp, op.results[0], code.constant(distance, i32))
            inside = code.compare("ult", later_value, count)  # unsigned: an id that has wrapped is out of range
        else:
            later_value = code.append(recreate(op, operands=[later.get(operand, operand) for operand in op.operands]))
        later[op.results[0]] = later_value
    assert inside is not None, "rows depend on the program id"
    for row in rows:
        tile, mask = row.operands[0], mask_of(row)
        where = code.append(tt.SplatOp.make(inside, with_element(tile.type, i1), code.loc))  # pyright: ignore
        if mask is not None:
            where = code.binary(arith.AndIOp, where, later.get(mask, mask))
        code.ops.append(ttg.FetchOp.make(later[tile], where, code.loc))
    insert_after(last, *code.ops)


# Issue all loads of a program that reduces a row at once, so that it waits for memory once, not twice.
#
#     %x = tt.load %p                          %x = tt.load %p
#     %m = "tt.reduce"(%x)                     %w = tt.load %q          (with the ops that compute %q)
#     %w = tt.load %q               ==>        %m = "tt.reduce"(%x)
#     ... %x - %m ... * %w                     ... %x - %m ... * %w
#
# Values loaded early occupy registers, so that fewer blocks share a multiprocessor. It pays while their rows still keep
# DRAM busy (docs/cost-model.md): layernorm of 4096 bf16 with 4 warps has six blocks instead of eight and gains 3 %,
# with 8 warps four instead of six and lost 7 %: 48 KB of rows on a multiprocessor are enough, 40 KB are not. No load
# moves over a write, and nothing moves in kernels with loops.
# Stage: TTGIR to TTGIR. Cost: one walk.

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
    """Return True if the blocks that fit on a multiprocessor still request enough rows.

    The result of a scan is a tile that is live together with the values loaded early.
    """
    before = list(takewhile(lambda op: op is not first, block_of(first).ops))
    early = {first, *before, *moved}
    held = [
        value.type
        for value in (result for op in before if type(op) not in ALIKE for result in op.results)
        if is_float_tile(value.type) and any(use.operation not in early for use in value.uses)
    ]
    rows = [op.results[0].type for op in before if type(op) is tt.LoadOp]
    taken = sum(map(tile_registers, held + [op.results[0].type for op in moved if type(op) is tt.LoadOp]))
    waits = [op for op in block_of(first).ops if type(op) in WAITS]
    taken += max(sum(tile_registers(made.type) for made in op.results) for op in waits)
    return keep_dram_busy(first, rows, taken, 0)
