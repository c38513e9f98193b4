"""Pointer provenance: the parameters of the kernel from which each pointer may be derived.

    tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
      %p = tt.addptr %y, %i                                    {1}
      %q = arith.select %c, %x, %p                             {0, 1}
      %r = tt.int_to_ptr %n                                    {UNKNOWN}
      tt.call @f(%p)                                           the parameter of @f: {1}
    }

Provenance flows along edges, from operands to results, through loops, branches, buffers and calls, to a fixpoint. A
pointer that was an integer, or was loaded, has lost its provenance. Works on TTIR, TTGIR and TTCIR.
"""

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.value_flows import Pair, control_flows
from tilework.ir import scf, tt, ttg
from tilework.ir.functions import callee_of, functions_by_name, has_body, is_private, modules, ops_in_order
from tilework.ir.nesting import owner_of
from tilework.ir.ttc import BufferType
from tilework.ir.types import PointerType, TensorDescType, element_type

Provenance = dict[SSAValue, frozenset[int]]
NO_PARAMETER: frozenset[int] = frozenset()
UNKNOWN = -1
WRITERS: dict[type[Operation], int] = {  # op to its address operand
    tt.StoreOp: 0,
    tt.AtomicRMWOp: 0,
    tt.AtomicCASOp: 0,
    tt.DescriptorStoreOp: 0,
    tt.DescriptorReduceOp: 0,
    tt.DescriptorScatterOp: 0,
}

ADDRESSES = (PointerType, TensorDescType)


def is_address(type: Attribute) -> bool:
    """Return True for a pointer, a descriptor, or a tile or buffer of pointers."""
    element = type.element if isinstance(type, BufferType) else element_type(type)
    return element.__class__ in ADDRESSES


def spread(provenance: Provenance, edges: list[Pair]) -> None:
    """Propagate provenance along `edges` to a fixpoint; edges are in program order, so that two rounds usually
    suffice."""
    changed = True
    while changed:
        changed = False
        for source, target in edges:
            new, old = provenance.get(source, NO_PARAMETER), provenance.get(target, NO_PARAMETER)
            if not new <= old:
                provenance[target] = old | new
                changed = True


def flows(op: Operation) -> Iterator[Pair]:
    """Yield (source, target) of every address that flows from one value to another."""
    if not any(is_address(operand.type) for operand in op.operands):
        return
    kind = type(op)
    if (passed := control_flows(op)) is None:
        if op.name == "ttng.tensormap_create":  # by name: most compilations do not import `ttng`
            passed = [(op.operands[1], op.operands[0]), *map_flows(op.operands[0], op.operands[1])]
        elif kind is tt.LoadOp or kind in WRITERS:  # a loaded pointer has no provenance either
            passed = []
        else:
            targets = [*op.results, *(operand for operand in op.operands if isinstance(operand.type, BufferType))]
            passed = [(source, target) for source in op.operands for target in targets if source is not target]
    for source, target in passed:
        if is_address(source.type) and is_address(target.type):
            yield source, target


def map_flows(slot: SSAValue, base: SSAValue) -> Iterator[Pair]:
    """Yield the flows to the memory that a slot for a tensor map is part of: another op may load the slot from
    there."""
    owner = slot.owner
    while isinstance(owner, tt.AddPtrOp):
        yield base, owner.operands[0]
        owner = owner.operands[0].owner


def pointer_provenance(module: ModuleOp) -> Provenance:
    """Return the provenance of every pointer of a module: indices of parameters of its public functions, or UNKNOWN."""
    provenance, edges = sources_and_edges(module)
    spread(provenance, edges)
    return provenance


def parameter_of(value: SSAValue) -> SSAValue | None:
    """Return the parameter of a function from which a pointer is derived directly: by offsets, into loops and
    partitions."""
    while (owner := owner_of(value)) is not None and type(owner) is not tt.FuncOp:
        index = value.index  # pyright: ignore[reportAttributeAccessIssue]
        if isinstance(value, OpResult) and (type(owner) in PLAIN or type(owner) is scf.ForOp):
            value = owner.operands[0] if type(owner) in PLAIN else owner.operands[3 + index]
        elif isinstance(value, BlockArgument) and type(owner) is scf.ForOp and index:
            value = owner.operands[2 + index]
        elif isinstance(value, BlockArgument) and type(owner) is ttg.WarpSpecializePartitionsOp:
            outer = owner.parent_op()
            assert isinstance(outer, ttg.WarpSpecializeOp)
            value = outer.operands[index]
        else:
            return None
    return value if owner is not None else None


PLAIN = frozenset({
    tt.AddPtrOp, tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.BitcastOp, tt.TransOp, tt.ReshapeOp,
    ttg.ConvertLayoutOp,
})  # fmt: skip


def memory_provenance(module: ModuleOp) -> Provenance:
    """Like `pointer_provenance`, but loaded pointers come from the table that they were loaded from: ``-2 -
    parameter``."""
    provenance, edges = sources_and_edges(module)
    tables = {result: table for result in provenance if (table := table_of(result)) is not None}
    for result in tables:
        del provenance[result]
    spread(provenance, edges)
    for result, table in tables.items():
        found = provenance.get(table, frozenset({UNKNOWN}))
        provenance[result] = frozenset(-2 - parameter if parameter >= 0 else UNKNOWN for parameter in found)
    spread(provenance, edges)
    return provenance


def table_of(value: SSAValue) -> SSAValue | None:
    """Return the pointer through which `value`, a pointer, was loaded, perhaps as an integer."""
    op = value.owner
    if isinstance(op, tt.IntToPtrOp):
        op = op.operands[0].owner
    return op.operands[0] if isinstance(op, tt.LoadOp) else None


def sources_and_edges(root: ModuleOp) -> tuple[Provenance, list[Pair]]:
    """Return the pointers whose provenance is given, and the edges along which it flows."""
    provenance: Provenance = {}
    edges: list[Pair] = []
    tables = [functions_by_name(module) for module in modules(root)]
    for functions, function in ((table, function) for table in tables for function in table.values()):
        if not has_body(function):
            continue
        if not is_private(function):
            for position, argument in enumerate(function.regions[0].blocks[0].args):
                if is_address(argument.type):
                    provenance[argument] = frozenset({position})
        for op in ops_in_order(*function.regions):
            edges += flows(op)
            if type(op) is tt.CallOp:
                edges += call_flows(op, functions)
            # the tensor map it holds determines the provenance of the descriptor
            if type(op) is ttg.GlobalScratchAllocOp:
                continue
            if not op.regions and (type(op) in FORGETFUL or not any(is_address(value.type) for value in op.operands)):
                provenance.update({result: frozenset({UNKNOWN}) for result in op.results if is_address(result.type)})
    return provenance, edges


FORGETFUL = (tt.LoadOp, tt.AtomicRMWOp, tt.AtomicCASOp)


def call_flows(op: Operation, functions: Mapping[str, Operation]) -> Iterator[Pair]:
    """Yield flows from the arguments of a call to the parameters of the function, and back from its results and
    writes."""
    callee = functions.get(callee_of(op))
    if callee is None or not has_body(callee):
        return
    for argument, parameter in zip(op.operands, callee.regions[0].blocks[0].args, strict=True):
        yield argument, parameter
        if isinstance(parameter.type, BufferType):
            yield parameter, argument
    for inner in ops_in_order(*callee.regions):
        if type(inner) is tt.ReturnOp:
            yield from zip(inner.operands, op.results, strict=True)
