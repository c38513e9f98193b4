"""Which parameters of the kernel each pointer may come from.

    tt.func public @k(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
      %p = tt.addptr %y, %i                                    {1}
      %q = arith.select %c, %x, %p                             {0, 1}
      %r = tt.int_to_ptr %n                                    {UNKNOWN}
      tt.call @f(%p)                                           the parameter of @f: {1}
    }

Origins flow along edges, from operands to results, through loops, branches, buffers and calls, until nothing is new. A
pointer that was an integer, or was loaded, has lost its origin. Works on TTIR, TTGIR and TTCIR.
"""

from collections.abc import Iterator, Mapping

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.value_flows import Pair, control_flows
from tilework.ir import tt, ttg, ttng
from tilework.ir.functions import callee_of, functions_by_name, has_body, is_private, modules, ops_in_order
from tilework.ir.nesting import owner_of
from tilework.ir.ttc import BufferType
from tilework.ir.types import PointerType, TensorDescType, element_type

Origins = dict[SSAValue, frozenset[int]]
NOBODY: frozenset[int] = frozenset()
UNKNOWN = -1
WRITERS: dict[type[Operation], int] = {  # op to the operand that says where
    tt.StoreOp: 0,
    tt.AtomicRMWOp: 0,
    tt.AtomicCASOp: 0,
    tt.DescriptorStoreOp: 0,
    tt.DescriptorReduceOp: 0,
    tt.DescriptorScatterOp: 0,
}

ADDRESSES = (PointerType, TensorDescType)


def is_address(type: Attribute) -> bool:
    """A pointer, a descriptor, or a tile or buffer of pointers."""
    element = type.element if type.__class__ is BufferType else element_type(type)  # pyright: ignore[reportAttributeAccessIssue]
    return element.__class__ in ADDRESSES


def spread(origins: Origins, edges: list[Pair]) -> None:
    """Let origins flow along `edges` until nothing is new; edges are in program order, so that two rounds do for most."""
    changed = True
    while changed:
        changed = False
        for source, target in edges:
            new, old = origins.get(source, NOBODY), origins.get(target, NOBODY)
            if not new <= old:
                origins[target] = old | new
                changed = True


def flows(op: Operation) -> Iterator[Pair]:
    """(source, target) of every address that goes from one value to another."""
    if not any(is_address(operand.type) for operand in op.operands):
        return
    kind = type(op)
    if (passed := control_flows(op)) is None:
        if kind is ttng.TensormapCreateOp:
            passed = [(op.operands[1], op.operands[0]), *map_flows(op.operands[0], op.operands[1])]
        elif kind is tt.LoadOp or kind in WRITERS:  # a pointer that was loaded is nobody's either
            passed = []
        else:
            targets = [*op.results, *(operand for operand in op.operands if isinstance(operand.type, BufferType))]
            passed = [(source, target) for source in op.operands for target in targets if source is not target]
    for source, target in passed:
        if is_address(source.type) and is_address(target.type):
            yield source, target


def map_flows(slot: SSAValue, base: SSAValue) -> Iterator[Pair]:
    """To the memory that a slot for a tensor map is part of: another op may take the slot from there."""
    owner = slot.owner
    while isinstance(owner, tt.AddPtrOp):
        yield base, owner.operands[0]
        owner = owner.operands[0].owner


def module_origins(module: ModuleOp) -> Origins:
    """The origins of every pointer of a module: positions of parameters of its public functions, or UNKNOWN."""
    origins, edges = sources_and_edges(module)
    spread(origins, edges)
    return origins


def parameter_of(value: SSAValue) -> SSAValue | None:
    """The parameter of a function that a pointer comes from, if that is plain to see: by offsets, into loops and partitions."""
    while (owner := owner_of(value)) is not None and type(owner) is not tt.FuncOp:
        place = value.index  # pyright: ignore[reportAttributeAccessIssue]
        if isinstance(value, OpResult) and (type(owner) in PLAIN or type(owner) is scf.ForOp):
            value = owner.operands[0] if type(owner) in PLAIN else owner.operands[3 + place]
        elif isinstance(value, BlockArgument) and type(owner) is scf.ForOp and place:
            value = owner.operands[2 + place]
        elif isinstance(value, BlockArgument) and type(owner) is ttg.WarpSpecializePartitionsOp:
            outer = owner.parent_op()
            assert isinstance(outer, ttg.WarpSpecializeOp)
            value = outer.operands[place]
        else:
            return None
    return value if owner is not None else None


PLAIN = frozenset({tt.AddPtrOp, tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.BitcastOp, tt.TransOp, tt.ReshapeOp, ttg.ConvertLayoutOp})  # fmt: skip


def memory_origins(module: ModuleOp) -> Origins:
    """The same, and pointers that were loaded come from the table that they were loaded from: ``-2 - parameter``."""
    origins, edges = sources_and_edges(module)
    tables = {result: table for result in origins if (table := table_of(result)) is not None}
    for result in tables:
        del origins[result]
    spread(origins, edges)
    for result, table in tables.items():
        found = origins.get(table, frozenset({UNKNOWN}))
        origins[result] = frozenset(-2 - place if place >= 0 else UNKNOWN for place in found)
    spread(origins, edges)
    return origins


def table_of(value: SSAValue) -> SSAValue | None:
    """The pointer that `value`, a pointer, was loaded through, perhaps as an integer."""
    op = value.owner
    if isinstance(op, tt.IntToPtrOp):
        op = op.operands[0].owner
    return op.operands[0] if isinstance(op, tt.LoadOp) else None


def sources_and_edges(root: ModuleOp) -> tuple[Origins, list[Pair]]:
    """The pointers whose origin is plain, and how all others get theirs."""
    origins: Origins = {}
    edges: list[Pair] = []
    tables = [functions_by_name(module) for module in modules(root)]
    for functions, function in ((table, function) for table in tables for function in table.values()):
        if not has_body(function):
            continue
        if not is_private(function):
            for position, argument in enumerate(function.regions[0].blocks[0].args):
                if is_address(argument.type):
                    origins[argument] = frozenset({position})
        for op in ops_in_order(*function.regions):
            edges += flows(op)
            if type(op) is tt.CallOp:
                edges += call_flows(op, functions)
            if type(op) is ttg.GlobalScratchAllocOp:  # what it holds, a tensor map, says where the descriptor leads
                continue
            if not op.regions and (type(op) in FORGETFUL or not any(is_address(value.type) for value in op.operands)):
                origins.update({result: frozenset({UNKNOWN}) for result in op.results if is_address(result.type)})
    return origins, edges


FORGETFUL = (tt.LoadOp, tt.AtomicRMWOp, tt.AtomicCASOp)


def call_flows(op: Operation, functions: Mapping[str, Operation]) -> Iterator[Pair]:
    """From the arguments of a call to the parameters of the function, and back from what it returns or writes."""
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
