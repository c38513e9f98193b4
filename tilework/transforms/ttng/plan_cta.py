"""Distribute a function's tensors over the CTAs of a cluster consistently (`num-ctas` > 1).

    %d = tt.dot %a, %b, %c : 256x128        2 blocks: each computes 128 rows

    %a : 256x64   CGALayout = [[1, 0]]      each block has its rows of A
    %b : 64x128   CGALayout = [[0, 0]]      and all of B
    %d : 256x128  CGALayout = [[1, 0]]

Values that must have one layout, because an op other than a conversion connects them, are a *group*; groups meet at
`ttg.convert_layout`. Groups with a dot are decided first (`dot_tiling`), then, where there is none, groups with a
reduction (`reduction_tiling`: its axis is never divided) or with the first store. From there the decision spreads over
conversions, so that no element moves to another block; each blocked encoding is then rebuilt for the part of a block.
Later passes remove conversions. A group with an unknown op keeps its layout.

With one block nothing changes.
Stage: TTGIR. Cost: two walks.
"""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from math import prod

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Operation, SSAValue

from tilework.analysis.value_flows import joined_values
from tilework.ir import arith, tt, ttg, ub
from tilework.ir.create import set_type
from tilework.ir.effects import is_elementwise
from tilework.ir.encodings import distributed_of, spread_of, with_encoding
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import num_ctas, num_warps, threads_per_warp
from tilework.ir.types import axis_of, shape_of
from tilework.layouts.construct import cga_from, clamp, default_blocked
from tilework.layouts.encodings import Bases, Blocked, Distributed
from tilework.light_dataclass import light_dataclass
from tilework.transforms.passes import function_pass
from tilework.transforms.ttg.convert_triton_to_tritongpu import retyped

ACCESSES = frozenset({tt.LoadOp, tt.StoreOp, tt.AtomicRMWOp, tt.AtomicCASOp})
STORES = (tt.StoreOp, tt.AtomicRMWOp, tt.AtomicCASOp, tt.DescriptorStoreOp, tt.DescriptorReduceOp)
CONNECTING = ACCESSES | {tt.BroadcastOp, tt.ExpandDimsOp, tt.ReduceOp, tt.ScanOp, tt.DotOp}
ALONG_AXIS = (tt.ReduceOp, tt.ScanOp)
# Each of their tensors may have any layout.
INDEPENDENT = frozenset(
    {
        arith.ConstantOp,
        ub.PoisonOp,
        tt.SplatOp,
        tt.MakeRangeOp,
        tt.PrintOp,
        tt.AssertOp,
        tt.DescriptorLoadOp,
        tt.DescriptorStoreOp,
        tt.DescriptorReduceOp,
        ttg.ConvertLayoutOp,
        ttg.LocalAllocOp,
        ttg.LocalLoadOp,
        ttg.LocalStoreOp,
    }
)


@function_pass("triton-nvidia-gpu-plan-cta")
def plan_cta(function: Operation) -> None:
    if (ctas := num_ctas(function)) > 1:
        Plan(ops_in_order(*function.regions), ctas).run()


@light_dataclass(frozen=False, eq=False)
class Group:
    """Values that have one layout, up to slices and dot operands of it: `root`."""

    root: Blocked | None
    values: list[SSAValue]
    undivided: set[int] = field(default_factory=set)  # dimensions of the root that are not divided
    is_fixed: bool = False
    cga: Bases | None = None  # the decision


class Plan:
    """The groups of a function, and the decisions about them."""

    def __init__(self, ops: Sequence[Operation], ctas: int) -> None:
        self.ops, self.ctas = ops, ctas
        self.groups: dict[SSAValue, Group] = {}

    def run(self) -> None:
        for op in self.ops:
            self.connect(op)
        dots = [op for op in self.ops if type(op) is tt.DotOp]
        self.decide(dots, dot_tiling)
        self.decide([op for op in self.ops if type(op) is tt.ReduceOp], reduction_tiling)
        if not any(group.cga is not None for group in self.groups.values()):
            self.decide([op for op in self.ops if isinstance(op, STORES) and stored(op) is not None][:1], own_tiling)
        for group in dict.fromkeys(self.groups.values()):
            if group.cga is not None:
                retile(group, group.cga, self.ops[0])

    # Groups

    def group(self, value: SSAValue) -> Group | None:
        """Return the group of a tensor with a layout; None for any other value."""
        encoding = distributed_of(value.type) if isinstance(value.type, TensorType) else None
        if encoding is None:
            return None
        if (found := self.groups.get(value)) is None:
            root = root_of(encoding)
            found = self.groups[value] = Group(root, [value], is_fixed=root is None)
        return found

    def join(self, values: Sequence[SSAValue]) -> None:
        """Join all of `values` that have a layout into one group; it is fixed if their roots differ."""
        groups = dict.fromkeys(group for value in values if (group := self.group(value)) is not None)
        if not groups:
            return
        first, *others = groups
        for other in others:
            first.is_fixed |= other.is_fixed or other.root != first.root
            first.undivided |= other.undivided
            first.values += other.values
            for value in other.values:
                self.groups[value] = first

    def connect(self, op: Operation) -> None:
        """Join the values that must have one layout for `op`."""
        kind = type(op)
        if (shared := joined_values(op)) is not None:
            for values in shared:
                self.join(values)
            return
        if kind in INDEPENDENT:
            return
        values = [*op.operands, *op.results]
        if kind in CONNECTING or is_elementwise(op):
            self.join(values)
            if kind in ALONG_AXIS and (group := self.group(op.operands[0])) is not None:
                group.undivided.add(layout(op.operands[0]).root_dim(axis_of(op)))
            return
        values += [arg for region in op.regions for block in region.blocks for arg in block.args]
        for value in values:
            if (group := self.group(value)) is not None:
                group.is_fixed = True

    # Decisions

    def decide(self, ops: Sequence[Operation], tiling: Callable[[Operation, int], Bases | None]) -> None:
        """Give the group of each op its tiling, unless it has one, and spread it."""
        for op in ops:
            group = next(filter(None, map(self.group, (*op.operands, *op.results))), None)
            if group is not None and group.cga is None and not group.is_fixed:
                if (cga := tiling(op, self.ctas)) is not None:
                    group.cga = without(cga, group.undivided)
                    self.spread()

    def spread(self) -> None:
        """Let undecided groups follow the decided ones over conversions, nearest first."""
        converts = [op for op in self.ops if type(op) is ttg.ConvertLayoutOp]
        changed = True
        while changed:
            changed = False
            for op in reversed(converts):
                for here, there in ((op.results[0], op.operands[0]), (op.operands[0], op.results[0])):
                    known, other = self.group(here), self.group(there)
                    if known is None or other is None or known.cga is None or other.cga is not None or other.is_fixed:
                        continue
                    assert known.root is not None
                    bases = layout(here).with_root(replace(known.root, cga=known.cga)).cga_bases
                    other.cga = without(lifted(bases, layout(there)), other.undivided)
                    changed = True


# Layouts


def layout(value: SSAValue) -> Distributed:
    """Return the encoding of a tensor with a layout."""
    return spread_of(value.type)


def root_of(encoding: Distributed) -> Blocked | None:
    """Return the blocked layout that `encoding` is, or is a slice or a dot operand of."""
    return encoding.root if isinstance(encoding.root, Blocked) else None  # other layouts were chosen for their blocks


def lifted(bases: Bases, encoding: Distributed) -> Bases:
    """Return the bases of the root of `encoding` that divide a tensor like `bases`."""
    dims = [encoding.root_dim(dim) for dim in range(encoding.rank)]
    return tuple(
        tuple(basis[dims.index(dim)] if dim in dims else 0 for dim in range(encoding.root.rank)) for basis in bases
    )


def without(bases: Bases, dims: set[int]) -> Bases:
    """Return bases in which blocks hold duplicates instead of dividing one of `dims`."""
    return tuple(tuple(0 if dim in dims else value for dim, value in enumerate(basis)) for basis in bases)


# Tilings


def dot_tiling(dot: Operation, ctas: int) -> Bases | None:
    """Divide rows into pieces of 128 (or 64), then columns, if these remain 64 wide; batches are not divided."""
    shape = shape_of(dot.results[0].type)
    rows, columns = shape[-2:]
    for piece in (128, 64):
        by_row = clamp(rows // piece, 1, ctas)
        by_column = ctas // by_row
        if columns // by_column >= 64:
            break
    split = (*(1 for _ in shape[:-2]), by_row, by_column)
    return cga_from(split, split, tuple(reversed(range(len(shape)))))


def reduction_tiling(reduce: Operation, ctas: int) -> Bases | None:
    """Divide the other dimensions by as many blocks as fit; the remaining blocks hold duplicates."""
    source = reduce.operands[0]
    encoding, shape, axis = root_of(layout(source)), shape_of(source.type), axis_of(reduce)
    if encoding is None or encoding != layout(source):  # not a slice, and with blocks that can be chosen
        return None
    dims = list(encoding.order)
    position = dims.index(axis)
    dims[position], dims[-1] = dims[-1], dims[position]
    split, left = [1] * len(shape), ctas
    for dim in dims[:-1]:
        split[dim] = clamp(left, 1, shape[dim])
        left //= split[dim]
    grid = list(split)
    grid[axis] *= left
    return cga_from(grid, split, encoding.order)


def own_tiling(store: Operation, ctas: int) -> Bases | None:
    """Keep the tiling of the stored value."""
    value = stored(store)
    root = None if value is None else root_of(layout(value))
    return None if root is None else root.cga


def stored(store: Operation) -> SSAValue | None:
    """Return the first tensor operand of a store; None for a scalar store."""
    return next((value for value in store.operands if isinstance(value.type, TensorType)), None)


# Rewriting


def retile(group: Group, cga: Bases, op: Operation) -> None:
    """Give the values of `group` layouts with the blocks of `cga`, rebuilt for the part of a block."""
    root = group.root
    assert root is not None, "a group that is decided has a root"
    shapes = [shape_of(value.type) for value in group.values if layout(value) is layout(value).root]
    new = replace(root, cga=cga)
    if shapes:
        shape = max(shapes, key=prod)
        new = default_blocked(shape, root.size_per_thread, root.order, num_warps(op), threads_per_warp(op), cga=cga)
    for value in group.values:
        set_type(value, with_encoding(value.type, layout(value).with_root(new)))
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(
            dense := owner.properties["value"], DenseIntOrFPElementsAttr
        ):
            owner.properties["value"] = retyped(dense, value.type)
