"""Split the work of the consumers in two: each computes half of the rows, or of the columns, of every dot.

    %d = warp_group_dot %a, %b, %acc     128x128         %d = warp_group_dot %a[64:, :], %b, %acc     64x128
    %m = reduce %d, axis 1               128      ==>    %m = reduce %d                               64
    descriptor_store %c[%i, %j], %d                      descriptor_store %c[%i + 64, %j], %d

`find_slices` starts at the dots and follows corresponding dimensions, forwards and backwards: a value that is computed
from half of another is halved too. `apply` then changes types in place. Values that every consumer can recompute
(constants, splats, ranges) are cloned at their uses; stages of rings are viewed through `memdesc_subslice`.
"""

from collections.abc import Callable, Container, Iterator

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from tilework.analysis.value_flows import Pair, control_flows, targets_of
from tilework.ir import arith, scf, tt, ttg, ttng
from tilework.ir.create import set_type
from tilework.ir.effects import is_elementwise
from tilework.ir.encodings import distributed_of, encoding_of, layout_of, with_encoding
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import end_of, owner_of, values_of
from tilework.ir.rewrite import attr_value, insert_after, put, recreate, splat_attr
from tilework.ir.ttg.memory_types import MemDescType, is_memdesc, retyped
from tilework.ir.ttg.shared_memory_ops import transposed_memdesc, verify_offsets
from tilework.ir.types import (
    array_values,
    axis_of,
    i32,
    int_attr,
    is_tensor,
    shape_of,
    tensor_type,
    tensordesc_type,
    with_shape,
)
from tilework.layouts.encodings import Encoding
from tilework.layouts.linear import LayoutError
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.tt.rewrite_tensor_descriptor import block_of

PARTS = 2
LEAST = {0: 64, 1: 128}  # the least rows and columns of a dot for each consumer
Related = Iterator[tuple[SSAValue, int | None]]


class Uncut(Exception):
    """The reason why the work cannot be split along a dimension."""


def find_slices(region: Region, dim: int) -> "Search":
    """Return the values and stores of a consumer that are cut when dots are cut along `dim`. Raises `Uncut`."""
    search = Search(region)
    for op in search.ops:
        if type(op) is ttng.WarpGroupDotOp:
            if shape_of(op.results[0].type)[dim] // PARTS < LEAST[dim]:
                raise Uncut("its dots are too small for two consumers")
            search.want(op.results[0], dim)
    while search.pending:
        value = search.pending.pop()
        for op in dict.fromkeys((*(use.operation for use in value.uses), owner_of(value))):
            if op is not None and op in search.ops:
                search.follow(op, value)
    for value in search.whole:
        if value in search.dims:
            raise Uncut(f"{name_of(value)} is needed as a whole")
    for value, axis in search.dims.items():
        if isinstance(value.type, MemDescType):
            check_memory(value, axis)
    return search


def check_memory(value: SSAValue, dim: int) -> None:
    """Raise `Uncut` if the cut would split the swizzle pattern of memory."""
    whole = value.type
    assert isinstance(whole, MemDescType)
    shape = cut_shape(whole.dims, dim)
    try:
        if isinstance(value, OpResult) and type(value.op) is ttg.MemDescIndexOp:
            verify_offsets(cut_offsets(shape, dim, 1), whole, retyped(whole, shape, keep_alloc=True))
        else:
            layout_of(retyped(whole, shape))
    except (VerifyException, LayoutError):
        raise Uncut("a tile in shared memory is too narrow for two consumers") from None


class Search:
    """The cuts found so far: values with their dimension, and stores by descriptor."""

    def __init__(self, region: Region) -> None:
        self.ops = dict.fromkeys(ops_in_order(region))
        self.dims: dict[SSAValue, int] = {}
        self.stores: dict[Operation, int] = {}
        self.whole: list[SSAValue] = []
        self.pending: list[SSAValue] = []

    def want(self, value: SSAValue, dim: int | None) -> None:
        """Require `value` cut along `dim`, or whole if `dim` is None."""
        if dim is None:
            self.whole.append(value)
        elif (
            owner_of(value) in self.ops
            and (shape := shape_of(value.type))
            and shape[dim] > 1
            and not can_be_remade(value)
        ):
            if self.dims.setdefault(value, dim) != dim:
                raise Uncut(f"{name_of(value)} would be cut both ways")
            if value not in self.pending:
                self.pending.append(value)

    def follow(self, op: Operation, value: SSAValue) -> None:
        """Derive the cuts of the other values of `op` from that of `value`."""
        dim = self.dims[value]
        if (flows := all_flows(op)) is not None:
            for pair in flows:
                if value in pair:
                    for other in pair:
                        self.want_once(other, dim)
            return
        if type(op) in STORES:
            self.follow_store(op, dim)
            return
        rule = RULES.get(type(op)) or (same_everywhere if is_elementwise(op) else None)
        if rule is None:
            raise Uncut(f"{op.name} cannot be cut")
        for other, wanted in rule(op, value, dim):
            if wanted is None or other is not value:
                self.want_once(other, wanted)

    def want_once(self, value: SSAValue, dim: int | None) -> None:
        if dim is None or self.dims.get(value) != dim:
            self.want(value, dim)

    def follow_store(self, op: Operation, dim: int) -> None:
        """Cut all stores by one descriptor alike, because the block type of the descriptor changes."""
        desc, value = op.operands[:2]
        if isinstance(desc, OpResult) and type(desc.op) is not tt.MakeTensorDescOp:
            raise Uncut("the descriptor of a store is unknown")
        if any(type(use.operation) not in STORES for use in desc.uses):
            raise Uncut("a descriptor is used for more than stores")
        if shape_of(value.type) != shape_of(block_of(desc.type)):
            raise Uncut("a store leaves out dimensions of its descriptor")
        for use in desc.uses:
            store = use.operation
            if store in self.ops and self.stores.setdefault(store, dim) != dim:
                raise Uncut("stores by one descriptor would be cut both ways")
            self.want_once(store.operands[1], dim)


def all_flows(op: Operation) -> list[Pair] | None:
    """Return the pairs of values that flow into, around, and out of `op`; None if it is not control flow."""
    if type(op) is scf.WhileOp:
        raise Uncut("a `while` loop cannot be cut")
    if (flows := control_flows(op)) is None:
        return None
    ends = [end_of(block) for region in op.regions for block in region.blocks]
    return [*flows, *(pair for end in ends for pair in control_flows(end) or ())]


def name_of(value: SSAValue) -> str:
    owner = owner_of(value)
    return "a value" if owner is None else f"the result of {owner.name}"


def can_be_remade(value: SSAValue) -> bool:
    """Return True if each consumer can recompute its part of `value`: a constant, splat or range."""
    op = value.owner
    if isinstance(op, arith.ConstantOp):
        return attr_value(op.properties["value"]) is not None
    return isinstance(op, tt.SplatOp | tt.MakeRangeOp)


def same_everywhere(op: Operation, value: SSAValue, dim: int) -> Related:
    """Relate the values of an elementwise op: all are cut alike."""
    for other in (*op.operands, *op.results):
        if is_tensor(other.type) or is_memdesc(other.type):
            yield other, dim


def follow_dot(op: Operation, value: SSAValue, dim: int) -> Related:
    """Relate the rows of the result to those of A, and its columns to those of B."""
    left, right, total = op.operands[:3]
    if value in (left, right):
        if (value is left) != (dim == 0):
            raise Uncut("a dot would be cut along K")
    yield op.results[0], dim
    yield total, dim
    yield left, 0 if dim == 0 else None
    yield right, 1 if dim == 1 else None


def follow_expand(op: Operation, value: SSAValue, dim: int) -> Related:
    axis = axis_of(op)
    inner = dim if value is op.operands[0] else dim - (dim > axis)
    yield op.operands[0], inner
    yield op.results[0], inner + (inner >= axis)


def follow_reduce(op: Operation, value: SSAValue, dim: int) -> Related:
    axis = axis_of(op)
    inner = dim if value in op.operands else dim + (dim >= axis)
    if inner == axis:
        raise Uncut("a reduction goes along the dimension that is cut")
    yield from ((operand, inner) for operand in op.operands)
    yield from ((result, inner - (inner > axis)) for result in op.results if is_tensor(result.type))


def follow_scan(op: Operation, value: SSAValue, dim: int) -> Related:
    if axis_of(op) == dim:
        raise Uncut("a scan goes along the dimension that is cut")
    yield from same_everywhere(op, value, dim)


def follow_trans(op: Operation, value: SSAValue, dim: int) -> Related:
    order = array_values(op.properties["order"])
    inner = dim if value is op.operands[0] else order[dim]
    yield op.operands[0], inner
    yield op.results[0], order.index(inner)


Rule = Callable[[Operation, SSAValue, int], Related]
STORES = frozenset({tt.DescriptorStoreOp, tt.DescriptorReduceOp})
RULES: dict[type[Operation], Rule] = {
    ttng.WarpGroupDotOp: follow_dot,
    tt.ExpandDimsOp: follow_expand,
    tt.ReduceOp: follow_reduce,
    tt.ScanOp: follow_scan,
    tt.TransOp: follow_trans,
    ttg.MemDescTransOp: follow_trans,
    **dict.fromkeys(
        (
            tt.BroadcastOp,
            tt.LoadOp,
            tt.StoreOp,
            tt.AtomicRMWOp,
            tt.AtomicCASOp,
            tt.AssertOp,
            ttg.ConvertLayoutOp,
            ttg.LocalAllocOp,
            ttg.LocalLoadOp,
        ),
        same_everywhere,
    ),
    # the views of a stage are cut, not the buffer
    ttg.MemDescIndexOp: lambda op, value, dim: iter(()),
}


def apply(found: Search, part: int) -> None:
    """Reduce a program to its `part` of the work."""
    dims = found.dims
    for op in found.ops:
        cut_operands(op, found, part)
    for value, dim in dims.items():
        if isinstance(value, OpResult) and type(value.op) is ttg.MemDescIndexOp:
            cut_view(value.op, dim, part)
        else:
            set_type(value, cut_type(value.type, dim))
    for store, dim in found.stores.items():
        cut_store(store, dim, part)
    for op in found.ops:
        if type(op) is ttg.MemDescTransOp and op.results[0] in dims:
            order = array_values(op.properties["order"])
            set_type(op.results[0], transposed_memdesc(op.operands[0].type, order))  # pyright: ignore


def cut_type(type: Attribute, dim: int) -> Attribute:
    """Return the type of half a tensor, or of the memory of one."""
    shape = cut_shape(shape_of(type), dim)
    if isinstance(type, MemDescType):
        return retyped(type, shape)
    return with_shape(type, shape)


def cut_shape(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return tuple(size // PARTS if axis == dim else size for axis, size in enumerate(shape))


def cut_offsets(shape: tuple[int, ...], dim: int, part: int) -> list[int]:
    return [part * size if axis == dim else 0 for axis, size in enumerate(shape)]


def cut_operands(op: Operation, found: Search, part: int) -> None:
    """Replace the operands of `op` that can be recomputed by their parts, if it computes or stores a part."""
    for index, operand in enumerate(op.operands):
        if not can_be_remade(operand) or not shape_of(operand.type):
            continue
        if (dim := found.stores.get(op, wanted_dim(op, index, operand, found.dims))) is not None:
            assert isinstance(operand, OpResult)
            op.operands[index] = remade(operand.op, dim, part, op)


def wanted_dim(op: Operation, index: int, operand: SSAValue, dims: dict[SSAValue, int]) -> int | None:
    """Return the dimension along which `op` needs its operand cut, derived from another value of it that is."""
    shape = shape_of(operand.type)
    if (targets := targets_of(op, index)) is not None:
        found = next((dims[target] for target in targets if target in dims), None)
    else:
        known = next((value for value in (*op.operands, *op.results) if value in dims), None)
        if known is None:
            return None
        rule = RULES.get(type(op), same_everywhere)
        found = next((dim for value, dim in rule(op, known, dims[known]) if value is operand), None)
    return found if found is not None and shape[found] > 1 else None


def remade(op: Operation, dim: int, part: int, user: Operation) -> SSAValue:
    """Recompute a part of the result of `op` before `user`."""
    type = cut_type(op.results[0].type, dim)
    properties = dict(op.properties)
    if isinstance(op, arith.ConstantOp):
        value = properties["value"]
        assert isinstance(value, DenseIntOrFPElementsAttr)
        element = attr_value(value)
        assert element is not None
        properties["value"] = splat_attr(element, type)
    elif isinstance(op, tt.MakeRangeOp):
        size = shape_of(type)[0]
        start = op.start.value.data + part * size
        properties |= {"start": int_attr(start, i32), "end": int_attr(start + size, i32)}
    return put(user, recreate(op, result_types=(type,), properties=properties))


def cut_view(op: Operation, dim: int, part: int) -> None:
    """Replace a stage by a view of a part of it."""
    view = op.results[0]
    shape = cut_shape(shape_of(view.type), dim)
    piece = ttg.MemDescSubsliceOp.make(view, cut_offsets(shape, dim, part), shape, op.location)
    view.replace_all_uses_with(piece.results[0])
    piece.operands[0] = view
    insert_after(op, piece)


def cut_store(op: Operation, dim: int, part: int) -> None:
    """Store a part, by a descriptor with blocks of its size."""
    desc, value, *indices = op.operands
    block, shape = block_of(desc.type), shape_of(value.type)
    if shape != shape_of(block):  # unless the cut of the other consumer has done so
        whole = tensor_type(shape, block.element_type)  # pyright: ignore[reportAttributeAccessIssue]
        set_type(desc, tensordesc_type(with_encoding(whole, encoding_of(block))))
    code = Emitter(op.location)
    op.operands[2 + dim] = code.binary(arith.AddiOp, indices[dim], code.constant(part * shape[dim], i32))
    code.insert_before(op)


# Change the layouts of a program for eight warps that four warps will run:
#
#     #blocked<{..., warpsPerCTA = [8, 1]}>                             ==>  [4, 1]
#     #mma<{warpsPerCTA = [8, 1], instrShape = [16, 256, 16]}>          ==>  [4, 1]
#
# Every layout is mapped to one for half of the warps, consistently, so that matching layouts still match. The
# instruction of a dot whose columns were cut is not wider than the remaining columns.


def run_on(region: Region, warps: int, parts: int, needed: Container[SSAValue] | None = None) -> None:
    """Give the tensors in `region` layouts for `warps` warps; the columns of dots will be cut into `parts`.

    Only `needed` tensors, if given: the others are dropped.
    """
    ops = ops_in_order(region)
    columns: dict[Encoding, int] = {}
    for result in (op.results[0].type for op in ops if type(op) is ttng.WarpGroupDotOp):
        encoding = encoding_of(result)
        assert encoding is not None, result
        columns[encoding] = min(shape_of(result)[1] // parts, columns.get(encoding, 256))
    known: dict[Attribute, Attribute] = {}

    def visit(value: SSAValue) -> None:
        if needed is not None and value not in needed:
            return
        if is_tensor(value.type) and (encoding := distributed_of(value.type)) is not None:
            if value.type not in known:
                root = encoding.root
                fewer = root.on_warps(warps, columns.get(root, 256))
                if fewer is None:
                    raise Uncut(f"the layout of a tensor has no form for {warps} warps")
                known[value.type] = with_encoding(value.type, encoding.with_root(fewer))
            set_type(value, known[value.type])

    for op in ops:
        for value in values_of(op):
            visit(value)
        if needed is not None and not any(result in needed for result in op.results):
            continue
        if isinstance(op, arith.ConstantOp) and isinstance(dense := op.properties["value"], DenseIntOrFPElementsAttr):
            element = attr_value(dense)
            if element is None:
                raise Uncut("a constant tensor has different elements")
            op.properties["value"] = splat_attr(element, op.results[0].type)
