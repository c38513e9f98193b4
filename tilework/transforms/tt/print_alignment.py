"""Print what `analysis/axis_info.py` knows about every value, one line per result (a test of the analysis).

    @kernel
    tt.make_range => contiguity = [128], divisibility = [1073741824], constancy = [1], constant_value = <none>

The module is not changed.
"""

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.axis_info import axis_info
from tilework.ir import tt
from tilework.transforms.passes import module_pass


@module_pass("test-print-alignment")
def print_alignment(module: ModuleOp) -> None:
    for inner, text in alignment_remarks(module):
        print(f"@{text}" if type(inner) is tt.FuncOp else f"{inner.name} => {text}")


def alignment_remarks(module: Operation) -> Iterator[tuple[Operation, str]]:
    """Each function with its name, then each op with the facts about its results, in program order."""
    facts = axis_info(module)
    for op in module.walk():
        if type(op) is tt.FuncOp:
            yield op, op.properties["sym_name"].data  # pyright: ignore
        for result in op.results:
            yield op, str(facts.of(result))
