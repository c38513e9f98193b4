"""Show what the analyses of shared memory find (tests of the analyses).

test-print-alias         %b -> %a                                   the buffers of every memory descriptor
test-print-allocation    ttg.local_alloc => offset = 0, size = 512  the place of every buffer, then of each function
test-print-membar        inserts a ttg.local_barrier wherever one is needed
"""

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp

from tilework.analysis.alias import aliases
from tilework.analysis.allocation import allocations
from tilework.analysis.membar import barriers
from tilework.ir import tt, ttg
from tilework.ir.functions import functions, symbol_of
from tilework.ir.module_facts import find_target
from tilework.ir.printer import ValueNames
from tilework.ir.rewrite import insert_after, insert_before
from tilework.transforms.passes import module_pass


@module_pass("test-print-alias")
def print_alias(module: ModuleOp) -> None:
    for line in alias_lines(module):
        print(line)


def alias_lines(module: ModuleOp) -> Iterator[str]:
    """The functions, and for each value of them the buffers it may name."""
    for function in functions(module):
        if type(function) is not tt.FuncOp:
            continue
        yield f"@{symbol_of(function)}"
        known, names = aliases(function), ValueNames(function).of
        position = {value: place for place, value in enumerate(names)}
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
        insert_before(inner, ttg.LocalBarrierOp.make(inner.location))
    for inner in found.after:
        insert_after(inner, ttg.LocalBarrierOp.make(inner.location))
