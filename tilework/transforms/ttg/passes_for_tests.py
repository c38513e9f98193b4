"""Passes for tests: print the results of analyses of shared memory and alignment, and peel loops.

test-print-alias         %b -> %a                                   the buffers of every memory descriptor
test-print-allocation    ttg.local_alloc => offset = 0, size = 512  the offset of every buffer, then of each function
test-print-membar        inserts a `ttg.barrier local` wherever one is needed
"""

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.analysis.alias import aliases
from tilework.analysis.allocation import allocations
from tilework.analysis.axis_info import axis_info
from tilework.analysis.membar import barriers
from tilework.ir import arith, tt, ttg
from tilework.ir.enums import AddrSpace
from tilework.ir.functions import functions, symbol_of
from tilework.ir.module_facts import find_target
from tilework.ir.nesting import body_of
from tilework.ir.printer import ValueNames
from tilework.ir.rewrite import insert_after, insert_before, replace_uses
from tilework.ir.scf import make_if, make_yield
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import module_pass
from tilework.transforms.ttg.pipeline.expand import copy_op
from tilework.transforms.ttg.pipeline.loops import body_ops, is_inside, loops_in, yield_of

# Print the facts of `analysis/axis_info.py` about every value, one line per result (a test of the analysis).
#
#     @kernel
#     tt.make_range => contiguity = [128], divisibility = [1073741824], constancy = [1], constant_value = <none>
#
# The module is not changed.


@module_pass("test-print-alignment")
def print_alignment(module: ModuleOp) -> None:
    for inner, text in alignment_remarks(module):
        print(f"@{text}" if type(inner) is tt.FuncOp else f"{inner.name} => {text}")


def alignment_remarks(module: Operation) -> Iterator[tuple[Operation, str]]:
    """Yield each function with its name, then each op with the facts about its results, in program order."""
    facts = axis_info(module)
    for op in module.walk():
        if type(op) is tt.FuncOp:
            yield op, op.properties["sym_name"].data  # pyright: ignore
        for result in op.results:
            yield op, str(facts.of(result))


@module_pass("test-print-alias")
def print_alias(module: ModuleOp) -> None:
    for line in alias_lines(module):
        print(line)


def alias_lines(module: ModuleOp) -> Iterator[str]:
    """Yield the functions, and for each memory descriptor the buffers that it may refer to."""
    for function in functions(module):
        if type(function) is not tt.FuncOp:
            continue
        yield f"@{symbol_of(function)}"
        known, names = aliases(function), ValueNames(function).of
        position = {value: index for index, value in enumerate(names)}
        for value in sorted(known, key=lambda value: position[value]):
            yield f"{names[value]} -> {','.join(names[buffer] for buffer in known[value])}"


@module_pass("test-print-allocation")
def print_allocation(module: ModuleOp) -> None:
    for allocation in allocations(module, find_target(module)):
        print(f"@{symbol_of(allocation.function)}")
        for buffer in allocation.buffers:
            print(f"{buffer.owner.name} => offset = {buffer.offset}, size = {buffer.size}")
        print(f"size = {allocation.size}")


@module_pass("test-print-membar")
def print_membar(module: ModuleOp) -> None:
    found = barriers(module, find_target(module))
    for inner in found.before:
        insert_before(inner, ttg.BarrierOp.make(AddrSpace.LOCAL, inner.location))
    for inner in found.after:
        insert_after(inner, ttg.BarrierOp.make(AddrSpace.LOCAL, inner.location))


# Peel the last iteration of a loop.
#
#     scf.for %i = %lb to %ub step %s {          %r = scf.for %i = %lb to %ub - %s step %s { body(%i) }
#       body(%i)                                 %last = %lb + ((%ub - %lb - 1) / %s) * %s
#     }                                   ==>    scf.if %lb < %ub { body(%last) } else { yield %r }
#
# Ops that the last iteration does not need can then be removed from it. The pass peels loops with
# `__test_peel_epilogue`.
# Stage: any. Cost: a copy of the body.

MARK = "__test_peel_epilogue"


@module_pass("triton-test-loop-peeling")
def loop_peeling(module: ModuleOp) -> None:
    for loop in loops_in(module):
        if loop.attributes.pop(MARK, None) is not None:
            peel_last(loop)


def peel_last(loop: Operation) -> Operation:
    """Let `loop` end one iteration early, and run the last one after it, in the `scf.if` that is returned."""
    lower, upper, step = loop.operands[:3]
    before = Emitter(loop.location)
    end = before.binary(arith.SubiOp, upper, step)
    before.insert_before(loop)
    code = Emitter(loop.location)
    span = code.binary(arith.SubiOp, upper, lower)
    span = code.binary(arith.SubiOp, span, code.constant(1, lower.type))
    steps = code.binary(arith.DivSIOp, span, step)
    last = code.binary(arith.AddiOp, code.binary(arith.MuliOp, steps, step), lower)
    exists = code.compare("slt", lower, upper)
    otherwise = Region(Block([make_yield(loop.results, loop.location)])) if loop.results else None
    types = [result.type for result in loop.results]
    peeled = make_if(exists, types, Region(last_iteration(loop, last)), otherwise, loop.location)
    for result, new in zip(loop.results, peeled.results, strict=True):
        replace_uses(result, new, lambda user: not is_inside(user, peeled))
    insert_after(loop, *code.ops, peeled)
    loop.operands[1] = end
    return peeled


def last_iteration(loop: Operation, counter: SSAValue) -> Block:
    """Return a copy of the body for `counter`, on the results of the loop."""
    body = body_of(loop)
    mapping: dict[SSAValue, SSAValue] = {}
    mapping.update(zip(body.args, (counter, *loop.results), strict=True))
    block = Block([copy_op(op, mapping) for op in body_ops(loop)])
    values = [mapping.get(value, value) for value in yield_of(loop).operands]
    block.add_op(make_yield(values, loop.location))
    return block
