"""The backward slice that must be recomputed to get a value in another layout.

    %0 = tt.make_range : #a
    %1 = tt.splat %n : #a                       layouts: {%2: #b, %0: #b, %1: #b}
    %2 = arith.addi %0, %1 : #a                 the slice of %2 for #b stops at the range and the splat,
    %3 = ttg.convert_layout %2 : #a -> #b       which can have any layout

A slice follows operands backwards: into branches through their yields, around loops through their carried values.
It stops at ops that absorb a conversion, at values that exist in that layout already, and at ops the caller names. It
fails at results of loops, at ops without a rule, and where one value would need two layouts. Nothing is changed here:
rebuilding a slice is `rematerialize.py`.
"""

from collections.abc import Callable
from dataclasses import field

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.dominance import dominator_children
from tilework.analysis.value_flows import reached
from tilework.ir import scf, tt, ttg
from tilework.ir.nesting import end_of
from tilework.ir.types import is_tensor
from tilework.layouts.encodings import Distributed
from tilework.light_dataclass import light_dataclass
from tilework.transforms.ttg.layouts.layout_rules import (
    absorbs,
    backward,
    can_clone,
    encoding,
    is_renaming,
    laid_out_operands,
)

Stop = Callable[[Operation], bool]
Known = dict[tuple[SSAValue, Distributed], SSAValue]
"""Values that exist in another layout already: the clone or the converted value."""


@light_dataclass(frozen=False)
class Slice:
    """The values to recompute, each with its new layout, in the order in which they were reached.

    `reused` values are known already; `stopped` ones are left to the caller. All others are cloned.
    """

    layouts: dict[SSAValue, Distributed] = field(default_factory=dict)
    reused: dict[SSAValue, SSAValue] = field(default_factory=dict)
    cloned: set[SSAValue] = field(default_factory=set)
    stopped: list[OpResult] = field(default_factory=list)

    @property
    def ops(self) -> dict[Operation, None]:
        """The ops that define its values."""
        return {value.op: None for value in self.layouts if isinstance(value, OpResult)}

    @property
    def can_clone(self) -> bool:
        """True if every op may be recomputed."""
        return all(map(can_clone, self.ops))

    def agrees(self, other: "Slice") -> bool:
        """Return True if no value has different layouts in the two slices."""
        return all(self.layouts.get(value, layout) == layout for value, layout in other.layouts.items())

    def merge(self, other: "Slice") -> None:
        """Add the values of `other`."""
        self.layouts.update(other.layouts)
        self.reused.update(other.reused)
        self.cloned |= other.cloned
        self.stopped += other.stopped


def backward_slice(
    value: SSAValue, user: Operation, layout: Distributed, known: Known, stop: Stop | None = None
) -> Slice | None:
    """Return the slice that computes `value`, an operand of `user`, in `layout`; None if there is none."""
    found = Slice()
    pending = [(value, user, layout)]

    def push(operand: SSAValue, op: Operation, wanted: Distributed) -> None:
        if is_tensor(operand.type) and encoding(operand) != wanted:
            pending.append((operand, op, wanted))

    while pending:
        value, user, layout = pending.pop()
        if found.layouts.setdefault(value, layout) != layout:
            return None
        existing = known.get((value, layout))
        if existing is not None and properly_dominates(existing, user):
            found.reused[value] = existing
            continue
        if value in found.cloned:
            continue
        found.cloned.add(value)
        if not expand(value, layout, found, push, stop):
            return None
    return found


def expand(
    value: SSAValue,
    layout: Distributed,
    found: Slice,
    push: Callable[[SSAValue, Operation, Distributed], None],
    stop: Stop | None,
) -> bool:
    """Push the values that `value` is computed from; return False if it cannot have `layout`."""
    if isinstance(value, BlockArgument):
        return expand_argument(value, layout, push)
    assert isinstance(value, OpResult)
    op = value.op
    name = op.name
    if name == scf.ForOp.name or name == scf.WhileOp.name:
        return False
    if name == scf.IfOp.name:
        if stop is not None and stop(op):
            found.stopped.append(value)
        else:
            for region in op.regions:
                end = end_of(region.first_block)
                push(end._operands[value.index], end, layout)
        return True
    for other in op.results:
        if is_tensor(other.type) and found.layouts.setdefault(other, layout) != layout:
            return False
    if name == ttg.ConvertLayoutOp.name and is_renaming(op._operands[0].type, value.type):
        push(op._operands[0], op, layout)
        return True
    if absorbs(op, layout):
        return True
    if stop is not None and stop(op):
        found.stopped.append(value)
        return True
    needed = None if name == tt.CatOp.name else backward(op, layout)
    if needed is None:
        return False
    for index in laid_out_operands(op):
        push(op._operands[index], op, needed)
    return True


def expand_argument(
    value: BlockArgument, layout: Distributed, push: Callable[[SSAValue, Operation, Distributed], None]
) -> bool:
    """Push the initial value and the yielded value of a loop-carried argument."""
    loop = value.block.parent_op()
    if not isinstance(loop, scf.ForOp) or value.index == 0:
        return False
    end = end_of(value.block)
    push(loop._operands[value.index + 2], loop, layout)
    push(end._operands[value.index - 1], end, layout)
    return True


# Dominance


def properly_dominates(value: SSAValue, user: Operation) -> bool:
    """Return True if the definition of `value` properly dominates `user`."""
    owner = value.owner
    block = owner.parent if isinstance(owner, Operation) else owner
    if block is None or (around := ancestor_in(user, block)) is None:
        return False
    if around.parent is not block:
        return around.parent is not None and block_dominates(block, around.parent)
    return not isinstance(owner, Operation) or is_before(owner, around)


def ancestor_in(op: Operation, block: Block) -> Operation | None:
    """Return `op`, or the op around it, that is in the region of `block`."""
    region = block.parent
    current: Operation | None = op
    while current is not None and current.parent_region() is not region:
        current = current.parent_op()
    return current


def is_before(first: Operation, second: Operation) -> bool:
    """Return True if `first` precedes `second` in their block; searches from both ends, since most are close."""
    forward, back = first.next_op, second.prev_op
    while forward is not None and back is not None:
        if forward is second or back is first:
            return True
        forward, back = forward.next_op, back.prev_op
    return False


def block_dominates(first: Block, second: Block) -> bool:
    """Return True if every path to `second` passes through `first`."""
    region = first.parent
    assert region is not None, "a block is in a region"
    children = dominator_children(region)
    return any(block is second for block in reached(children.get(first, ()), lambda block: children[block]))
