"""Which parameters of a kernel it writes through, and how they must be aligned.

    tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
      %p = tt.addptr %y, %i ; tt.store %p, ...                 ==>  {1: 1}
    }                         tt.atomic_rmw fadd, ..., %p      ==>  {1: 4}

Pointers are followed from the parameters through arithmetic, loops, branches, buffers and calls. A pointer made from an
integer is nobody's. The launcher refuses read-only arrays for these parameters, and arrays that are not aligned: loads
and stores work anywhere, but the processor may stop at an atomic on part of two words.
"""

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt
from tilework.ir.ttc import BufferType
from tilework.ir.types import PointerType, TensorDescType, bit_width, element_type

Origins = dict[SSAValue, frozenset[int]]
Stored = dict[int, int]  # position of a parameter to the alignment that it needs, in bytes
NOBODY: frozenset[int] = frozenset()
WRITERS: dict[type[Operation], int] = {  # op to the operand that says where
    tt.StoreOp: 0,
    tt.AtomicRMWOp: 0,
    tt.AtomicCASOp: 0,
    tt.DescriptorStoreOp: 0,
    tt.DescriptorReduceOp: 0,
    tt.DescriptorScatterOp: 0,
}
ATOMICS = (tt.AtomicRMWOp, tt.AtomicCASOp)


def stored_parameters(module: ModuleOp, name: str) -> Stored:
    """The parameters that function `name` may write through."""
    functions: dict[str, Operation] = {
        op.properties["sym_name"].data: op for op in module.ops if type(op) is tt.FuncOp  # pyright: ignore
    }
    return summary(name, functions, {})


def summary(name: str, functions: dict[str, Operation], known: dict[str, Stored]) -> Stored:
    """`stored_parameters` of one function and, through `known`, of those it calls."""
    if name in known:
        return known[name]
    function = functions[name]
    known[name] = {}
    if not function.regions[0].blocks:
        return {}
    origins: Origins = {}
    for position, argument in enumerate(function.regions[0].blocks[0].args):
        if is_address(argument.type):
            origins[argument] = frozenset({position})
    ops = [op for op in function.walk() if op is not function]
    spread(origins, [edge for op in ops for edge in flows(op)])
    stored: Stored = {}
    for op in ops:
        for place, alignment in written_places(op, functions, known):
            for position in origins.get(place, NOBODY):
                stored[position] = max(stored.get(position, 1), alignment)
    known[name] = stored
    return stored


def is_address(type: Attribute) -> bool:
    """A pointer, a descriptor, or a tile or buffer of pointers."""
    element = type.element if isinstance(type, BufferType) else element_type(type)
    return isinstance(element, PointerType | TensorDescType)


def written_places(
    op: Operation, functions: dict[str, Operation], known: dict[str, Stored]
) -> Iterator[tuple[SSAValue, int]]:
    """The addresses that an op writes to, and their alignments."""
    if (position := WRITERS.get(type(op))) is not None:
        yield op.operands[position], bit_width(op.results[0].type) // 8 if type(op) in ATOMICS else 1
    elif type(op) is tt.CallOp:
        callee = op.properties["callee"].root_reference.data  # pyright: ignore[reportAttributeAccessIssue]
        for index, alignment in summary(callee, functions, known).items() if callee in functions else ():
            yield op.operands[index], alignment


def spread(origins: Origins, edges: list[tuple[SSAValue, SSAValue]]) -> None:
    """Let origins flow along `edges` until nothing is new; edges are in program order, so that two rounds do for most."""
    changed = True
    while changed:
        changed = False
        for source, target in edges:
            new, old = origins.get(source, NOBODY), origins.get(target, NOBODY)
            if not new <= old:
                origins[target] = old | new
                changed = True


def flows(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """(source, target) of every address that goes from one value to another."""
    pairs: Iterable[tuple[SSAValue, SSAValue]]
    if not any(is_address(operand.type) for operand in op.operands):
        return
    kind = type(op)
    if kind is scf.ForOp:
        inner = op.regions[0].blocks[0].args[1:]
        pairs = [*zip(op.operands[3:], inner, strict=True), *zip(op.operands[3:], op.results, strict=True)]
    elif kind is scf.WhileOp:
        pairs = zip(op.operands, op.regions[0].blocks[0].args, strict=True)
    elif kind is scf.YieldOp:
        pairs = yield_flows(op)
    elif kind is scf.ConditionOp:
        loop = parent_of(op)
        after = loop.regions[1].blocks[0].args
        pairs = [*zip(op.operands[1:], after, strict=True), *zip(op.operands[1:], loop.results, strict=True)]
    elif kind is cf.BranchOp:
        pairs = zip(op.operands, op.successors[0].args, strict=True)
    elif kind is cf.ConditionalBranchOp:
        count = len(op.successors[0].args)
        pairs = [
            *zip(op.operands[1 : 1 + count], op.successors[0].args, strict=True),
            *zip(op.operands[1 + count :], op.successors[1].args, strict=True),
        ]
    elif kind is scf.IfOp or kind is tt.LoadOp or kind in WRITERS:  # a pointer that was loaded is nobody's either
        pairs = ()
    else:
        targets = [*op.results, *(operand for operand in op.operands if isinstance(operand.type, BufferType))]
        pairs = [(source, target) for source in op.operands for target in targets if source is not target]
    for source, target in pairs:
        if is_address(source.type) and is_address(target.type):
            yield source, target


def yield_flows(op: Operation) -> list[tuple[SSAValue, SSAValue]]:
    """From a yield to the results of the op around it and, for loops, to the next iteration."""
    parent = parent_of(op)
    targets: list[Sequence[SSAValue]] = [parent.regions[0].blocks[0].args] if type(parent) is scf.WhileOp else [parent.results]
    if type(parent) is scf.ForOp:
        targets.append(parent.regions[0].blocks[0].args[1:])
    return [pair for values in targets for pair in zip(op.operands, values, strict=True)]


def parent_of(op: Operation) -> Operation:
    parent = op.parent_op()
    assert parent is not None, f"{op.name} stands in an op with regions"
    return parent
