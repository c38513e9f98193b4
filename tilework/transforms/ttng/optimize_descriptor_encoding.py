"""Give every tensor descriptor the layout that its blocks have in shared memory.

    %x = tt.descriptor_load %d[%i, %j] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #blocked>
    %m = ttg.local_alloc %x : ... -> !ttg.memdesc<64x64xf16, #shared, #smem>

Here %d becomes ``!tt.tensordesc<tensor<64x64xf16, #shared>>``: TMA writes the block as the dot reads it, and
the copy into registers and back disappears later. Values that must have one type (carried by a loop, returned by both
branches, passed to a function) are decided together. Without a preference, with conflicting preferences, and across
functions, the layout is the widest swizzle that the block allows.
Stage: TTGIR to TTGIR, for targets with TMA. Cost: one walk.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.utils.disjoint_set import DisjointSet

from tilework.analysis.value_flows import joined_values
from tilework.ir import cf, tt, ttg, ttng
from tilework.ir.arith import SelectOp
from tilework.ir.create import set_type
from tilework.ir.encodings import descriptor_with_encoding, encoding_of
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import end_of, values_of
from tilework.ir.tt.function_ops import function_type, function_type_of
from tilework.ir.types import TensorDescType, bit_width, is_descriptor, shape_of
from tilework.layouts.construct import nvmma_shared
from tilework.layouts.encodings import Bases, NvmmaShared
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.tma import LOADS, STORES
from tilework.transforms.passes import names_pass


@names_pass("triton-nvidia-optimize-descriptor-encoding")
def encode(functions: dict[str, tt.FuncOp]) -> None:
    """Choose the encodings of all descriptors in the functions of a module."""
    values = [value for function in functions.values() for value in descriptors(function)]
    if not values:
        return
    groups = group(functions, values)
    for value in values:
        set_type(value, descriptor_with_encoding(value.type, groups.of(value).encoding(value.type)))
    for function in functions.values():
        update_signature(function)


def descriptors(op: Operation) -> list[SSAValue]:
    """Return every descriptor under `op`."""
    return [value for inner in op.walk() for value in values_of(inner) if is_descriptor(value.type)]


@light_dataclass(frozen=False)
class Group:
    """Descriptors that must have one type, with their preferred encodings."""

    preferences: list[NvmmaShared] = field(default_factory=list)
    uses: list[tuple[tuple[int, ...], Bases]] = field(default_factory=list)  # shapes in registers, and their blocks
    is_forced: bool = False  # not all users are known, or preferences do not count

    def join(self, other: "Group") -> None:
        self.preferences += other.preferences
        self.uses += other.uses
        self.is_forced |= other.is_forced

    def encoding(self, type: Attribute) -> NvmmaShared:
        """Return the layout of the block of a descriptor of `type`."""
        assert isinstance(type, TensorDescType)
        rank = len(shape_of(type.block))
        if self.preferences and not self.is_forced and len(set(self.preferences)) == 1:
            return of_rank(self.preferences[0], rank)
        shape, cga = self.uses[0] if self.uses else (shape_of(type.block), ())
        for other, _ in self.uses:
            shape = tuple(map(min, shape, other)) if len(shape) == len(other) else shape
        order = tuple(reversed(range(len(shape))))
        return of_rank(nvmma_shared(shape, order, bit_width(type.block), cga), rank)


def of_rank(encoding: NvmmaShared, rank: int) -> NvmmaShared:
    """Return `encoding` for a block with more leading dimensions of size 1."""
    if encoding.rank == rank:
        return encoding
    cga = tuple((0,) * (rank - encoding.rank) + basis[-rank:] for basis in encoding.cga)
    return replace(encoding, rank=rank, cga=cga)


class Groups:
    """A union-find of descriptors."""

    def __init__(self, values: Sequence[SSAValue]) -> None:
        self.sets = DisjointSet(values)
        self.groups: dict[SSAValue, Group] = {value: Group() for value in values}

    def of(self, value: SSAValue) -> Group:
        return self.groups[self.sets.find(value)]

    def tie(self, first: Sequence[SSAValue], *others: Sequence[SSAValue]) -> None:
        """Tie values at the same index of the lists: they have the same type."""
        for other in others:
            for one, two in zip(first, other, strict=True):
                if is_descriptor(one.type) and (left := self.sets.find(one)) is not (right := self.sets.find(two)):
                    self.sets.union_left(left, right)
                    self.groups[left].join(self.groups.pop(right))

    def force(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            if is_descriptor(value.type):
                self.of(value).is_forced = True


def group(functions: dict[str, tt.FuncOp], values: Sequence[SSAValue]) -> Groups:
    """Collect the users of each descriptor, and which descriptors belong together."""
    groups = Groups(values)
    for op in (op for function in functions.values() for op in ops_in_order(*function.regions)):
        if isinstance(op, LOADS):
            loaded = op.results[0]
            note_use(groups.of(op.operands[0]), loaded.type)
            if (preference := preferred(loaded)) is not None:
                groups.of(op.operands[0]).preferences.append(preference)
        elif isinstance(op, STORES):
            note_use(groups.of(op.operands[0]), op.src.type)
        elif isinstance(op, ttng.ReinterpretTensorDescOp):
            groups.force(op.results)
        elif isinstance(op, tt.CallOp):
            tie_call(groups, op, functions)
        elif op.regions or type(op) in (cf.BranchOp, cf.ConditionalBranchOp, SelectOp):
            tie_flow(groups, op)
    for function in functions.values():
        visibility = function.properties.get("sym_visibility")
        if getattr(visibility, "data", "public") == "private" and function.body.blocks:
            groups.force(function.body.blocks[0].args)
    return groups


def note_use(group: Group, tensor: Attribute) -> None:
    layout = encoding_of(tensor)
    group.uses.append((shape_of(tensor), () if layout is None else layout.cga_bases))


def preferred(loaded: SSAValue) -> NvmmaShared | None:
    """Return the layout of the shared memory that a loaded block is copied to, if TMA can write it."""
    for use in loaded.uses:
        op = use.operation
        if isinstance(op, ttg.LocalAllocOp):
            layout = encoding_of(op.results[0].type)
        elif isinstance(op, ttg.LocalStoreOp):
            layout = encoding_of(op.operands[1].type)
        else:
            continue
        if isinstance(layout, NvmmaShared) and not layout.transposed:  # TMA writes rows with its own swizzle
            return layout
    return None


def tie_call(groups: Groups, op: tt.CallOp, functions: dict[str, tt.FuncOp]) -> None:
    """Force the encodings of arguments and results, since a function is compiled once for all callers."""
    groups.force((*op.operands, *op.results))
    callee = op.properties["callee"]
    assert isinstance(callee, SymbolRefAttr)
    function = functions.get(callee.root_reference.data)
    if function is None or not function.body.blocks:
        return
    groups.tie(op.operands, function.body.blocks[0].args)
    groups.force(function.body.blocks[0].args)
    for block in function.body.blocks:
        if isinstance(end := block.last_op, tt.ReturnOp):
            groups.tie(op.results, end.operands)


def tie_flow(groups: Groups, op: Operation) -> None:
    """Tie values that meet on different control-flow paths through `op`."""
    if isinstance(op, SelectOp):
        groups.tie(op.results, op.operands[1:2], op.operands[2:3])
    elif isinstance(op, ttg.WarpSpecializeOp):
        groups.tie(op.results, end_of(op.default_region.blocks[0]).operands)
        for partition in partitions(op):
            groups.tie(op.operands, partition.blocks[0].args)
    for first, *others in joined_values(op) or ():
        groups.tie((first,), *((other,) for other in others))


def partitions(op: ttg.WarpSpecializeOp) -> Iterator[Region]:
    for block in op.partition_holder.blocks:
        for holder in block.ops:
            if isinstance(holder, ttg.WarpSpecializePartitionsOp):
                yield from (region for region in holder.regions if region.blocks)


def update_signature(function: tt.FuncOp) -> None:
    """Update the signature of `function` from its body."""
    if not function.body.blocks:
        return
    outputs = list(function_type_of(function).outputs)
    for block in function.body.blocks:
        if isinstance(end := block.last_op, tt.ReturnOp):
            outputs = [value.type for value in end.operands]
    inputs = [argument.type for argument in function.body.blocks[0].args]
    function.properties["function_type"] = function_type(tuple(inputs), tuple(outputs))
