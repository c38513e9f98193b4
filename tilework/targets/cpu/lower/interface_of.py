"""Compute the `Interface` of a compiled module from its loop nests.

interface_of(module, arena=64)        Interface(name='add', parameters=('ptr', 'ptr', 'i32'), stored=(1,), ...)

The parameters that a kernel writes through, and the alignment that they need:

    tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
      %p = tt.addptr %y, %i ; tt.store %p, ...                 ==>  {1: 1}
    }                         tt.atomic_rmw fadd, ..., %p      ==>  {1: 4}

Pointers are followed from the parameters through arithmetic, loops, branches, buffers and calls. A pointer made from an
integer has no parameter. The launcher refuses read-only arrays for these parameters, and arrays that are not aligned:
loads and stores work anywhere, but the processor may stop at an atomic on part of two words.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from tilework.analysis.provenance import NO_PARAMETER, WRITERS, Provenance, flows, is_address, spread
from tilework.errors import TritonError
from tilework.ir import scf, tt
from tilework.ir.attr_text import AttributeText
from tilework.ir.functions import callee_of, functions_by_name, is_private, symbol_of
from tilework.ir.locations import location_text
from tilework.ir.ttc import APART
from tilework.ir.types import PointerType, array_values, bit_width
from tilework.targets.cpu.lower.nest_access import is_volatile
from tilework.targets.cpu.run.interface import Interface
from tilework.targets.llvm.rules import text_of
from tilework.targets.llvm.scalar_types import pointee_bytes

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
    provenance: Provenance = {}
    for position, argument in enumerate(function.regions[0].blocks[0].args):
        if is_address(argument.type):
            provenance[argument] = frozenset({position})
    ops = [op for op in function.walk() if op is not function]
    spread(provenance, [edge for op in ops for edge in flows(op)])
    stored: Stored = {}
    for op in ops:
        for address, alignment in written_addresses(op, functions, known):
            for position in provenance.get(address, NO_PARAMETER):
                stored[position] = max(stored.get(position, 1), alignment)
    known[name] = stored
    return stored


def written_addresses(
    op: Operation, functions: Mapping[str, Operation], known: dict[str, Stored]
) -> Iterator[tuple[SSAValue, int]]:
    """The addresses that an op writes to, and their alignments."""
    if (position := WRITERS.get(type(op))) is not None:
        yield op.operands[position], bit_width(op.results[0].type) // 8 if type(op) in ATOMICS else 1
    elif type(op) is tt.CallOp:
        callee = callee_of(op)
        for index, alignment in summary(callee, functions, known).items() if callee in functions else ():
            yield op.operands[index], alignment


LOOKS = (tt.AtomicRMWOp, tt.AtomicCASOp, tt.CallOp)
ASSERTS = ("tt.assert", "ttc.assert", "ttc.check")


def interface_of(module: ModuleOp, arena: int) -> Interface:
    """The interface of the public function of a module."""
    function = public_function(module)
    name = symbol_of(function)
    inputs = function.properties["function_type"].inputs  # pyright: ignore[reportAttributeAccessIssue]
    stored = sorted(stored_parameters(module, name).items())
    texts = AttributeText()
    return Interface(
        name,
        tuple("ptr" if isinstance(type, PointerType) else texts.of(type) for type in inputs),
        tuple(position for position, _ in stored),
        arena,
        tuple((message_of(op), location_text(op.location) or "") for op in asserts(module)),
        tuple(alignment for _, alignment in stored),
        tuple(check_facts(op, code) for op, code in fault_codes(module).items() if op.name == "ttc.check"),
        any(may_wait(op) for op in module.walk()),
        apart_parameters(function),
    )


def apart_parameters(function: Operation) -> tuple[tuple[int, int], ...]:
    """The pairs of parameters that must not overlap."""
    flat = array_values(function.attributes[APART]) if APART in function.attributes else ()
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def may_wait(loop: Operation) -> bool:
    """Return True for a `while` that reads what others may change: by a volatile load, an atomic, or a call of a
    function that may have one.
    """
    return type(loop) is scf.WhileOp and any(
        type(op) in LOOKS or (type(op) is tt.LoadOp and is_volatile(op)) for op in loop.walk()
    )


def check_facts(op: Operation, code: int) -> tuple[int, str, int, tuple[int, ...]]:
    """The entry of `Interface.checks` for a `ttc.check`."""
    size = pointee_bytes(op.operands[0].type)
    return code, text_of(op, "verb"), size, array_values(op.properties["arguments"])


def public_function(module: ModuleOp) -> Operation:
    """The kernel among the functions of a module."""
    for op in module.ops:
        if isinstance(op, tt.FuncOp) and not is_private(op):
            return op
    raise TritonError("the module has no public tt.func")


def asserts(module: ModuleOp) -> Iterator[Operation]:
    """The ops that can fail, in the order of their codes."""
    return (op for op in module.walk() if op.name in ASSERTS)


def fault_codes(module: ModuleOp) -> dict[Operation, int]:
    """The code of each op that can fail."""
    return {op: code for code, op in enumerate(asserts(module), 1)}


def message_of(op: Operation) -> str:
    message: Any = op.properties.get("message")
    return message.data if message is not None else ""
