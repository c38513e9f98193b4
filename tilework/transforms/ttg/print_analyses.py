"""Print the results of analyses of shared memory and alignment (tests of the analyses).

test-print-alias         %b -> %a                                   the buffers of every memory descriptor
test-print-allocation    ttg.local_alloc => offset = 0, size = 512  the offset of every buffer, then of each function
test-print-membar        inserts a ttg.local_barrier wherever one is needed
"""

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.alias import aliases
from tilework.analysis.allocation import allocations
from tilework.analysis.axis_info import axis_info
from tilework.analysis.membar import barriers
from tilework.ir import tt, ttg
from tilework.ir.functions import functions, symbol_of
from tilework.ir.module_facts import find_target
from tilework.ir.printer import ValueNames
from tilework.ir.rewrite import insert_after, insert_before
from tilework.transforms.passes import module_pass

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
        insert_before(inner, ttg.LocalBarrierOp.make(inner.location))
    for inner in found.after:
        insert_after(inner, ttg.LocalBarrierOp.make(inner.location))
