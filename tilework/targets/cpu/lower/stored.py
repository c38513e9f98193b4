"""Which parameters of a kernel it writes through, and how they must be aligned.

    tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
      %p = tt.addptr %y, %i ; tt.store %p, ...                 ==>  {1: 1}
    }                         tt.atomic_rmw fadd, ..., %p      ==>  {1: 4}

Pointers are followed from the parameters through arithmetic, loops, branches, buffers and calls. A pointer made from an
integer is nobody's. The launcher refuses read-only arrays for these parameters, and arrays that are not aligned: loads
and stores work anywhere, but the processor may stop at an atomic on part of two words.
"""

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilework.analysis.provenance import NO_PARAMETER, WRITERS, Provenance, flows, is_address, spread
from tilework.ir import tt
from tilework.ir.functions import callee_of, functions_by_name
from tilework.ir.types import bit_width

Stored = dict[int, int]  # position of a parameter to the alignment that it needs, in bytes
ATOMICS = (tt.AtomicRMWOp, tt.AtomicCASOp)


def stored_parameters(module: ModuleOp, name: str) -> Stored:
    """The parameters that function `name` may write through."""
    return summary(name, functions_by_name(module), {})


def summary(name: str, functions: Mapping[str, Operation], known: dict[str, Stored]) -> Stored:
    """`stored_parameters` of one function and, through `known`, of those it calls."""
    if name in known:
        return known[name]
    function = functions[name]
    known[name] = {}
    if not function.regions[0].blocks:
        return {}
    origins: Provenance = {}
    for position, argument in enumerate(function.regions[0].blocks[0].args):
        if is_address(argument.type):
            origins[argument] = frozenset({position})
    ops = [op for op in function.walk() if op is not function]
    spread(origins, [edge for op in ops for edge in flows(op)])
    stored: Stored = {}
    for op in ops:
        for place, alignment in written_places(op, functions, known):
            for position in origins.get(place, NO_PARAMETER):
                stored[position] = max(stored.get(position, 1), alignment)
    known[name] = stored
    return stored


def written_places(
    op: Operation, functions: Mapping[str, Operation], known: dict[str, Stored]
) -> Iterator[tuple[SSAValue, int]]:
    """The addresses that an op writes to, and their alignments."""
    if (position := WRITERS.get(type(op))) is not None:
        yield op.operands[position], bit_width(op.results[0].type) // 8 if type(op) in ATOMICS else 1
    elif type(op) is tt.CallOp:
        callee = callee_of(op)
        for index, alignment in summary(callee, functions, known).items() if callee in functions else ():
            yield op.operands[index], alignment
