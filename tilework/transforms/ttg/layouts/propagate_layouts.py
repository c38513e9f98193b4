"""Propagate good layouts to users, so that conversions disappear.

    %v = tt.load %p : #a                          %v = tt.load %p : #a
    %w = ttg.convert_layout %v : #a -> #b   ==>   %x = arith.addf %v, %v : #a
    %x = arith.addf %w, %w : #b                   %y = ttg.convert_layout %x : #a -> #b
    tt.store %q, %x : #b                          tt.store %q, %y : #b

First the candidates are collected. Anchors (expensive loads, dots, atomics) have their preferred layout. From them
layouts flow to the users of a value, through loops and branches and through conversions, as `candidates`: each value
gets a list of possible layouts. Then one is chosen for each, and the types change in place; where a value is still
needed in its old layout, a conversion follows its definition. Useless conversions are left to `clean_converts`.

Cost: one visit per use and candidate, and one walk.
"""

from collections import deque
from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from tilework.analysis.value_flows import targets_of
from tilework.ir import scf, tt, ttg, ttng
from tilework.ir.create import set_type
from tilework.ir.encodings import with_encoding
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import behind, owner_of
from tilework.ir.rewrite import put
from tilework.ir.types import is_tensor
from tilework.layouts.encodings import Distributed
from tilework.transforms.ttg.layouts.layout_rules import (
    FORWARD,
    MEMORY,
    SAME_LAYOUT,
    absorbs,
    backward,
    encoding,
    forward,
    is_anchor,
    laid_out_operands,
)

Layouts = dict[Distributed, None]  # a set that remembers the order
CONTROL = tuple(kind.name for kind in (scf.ForOp, scf.WhileOp, scf.IfOp, scf.YieldOp, scf.ConditionOp))


def propagate_layouts(function: Operation) -> None:
    """Choose a layout for every tensor of `function` that depends on an anchor, and change the types."""
    Rewriter(choose(candidates(function))).run(function)


# Facts


def candidates(function: Operation) -> dict[SSAValue, Layouts]:
    """Return the candidate layouts of each value, in the order in which they were found."""
    found: dict[SSAValue, Layouts] = {}
    for value in anchored_values(function):
        if (layout := encoding(value)) is not None:
            found[value] = {layout: None}
    pending = list(found)
    while pending:
        value = pending.pop()
        layouts = tuple(found[value])
        for use in value.uses:
            user = use.operation
            for target in targets(user, use.index):
                if is_tensor(target.type) and add_layouts(found, target, user, layouts):
                    pending.append(target)
    return found


def anchored_values(function: Operation) -> list[SSAValue]:
    entry = function.regions[0].first_block
    assert entry is not None, "a function with a body has an entry block"
    ops = [op for op in ops_in_order(*function.regions) if op.results and is_anchor(op)]
    return [*entry.args, *(result for op in ops for result in op.results)]


def targets(user: Operation, index: int) -> Sequence[SSAValue]:
    """Return the values that should have the layout of operand `index` of `user`, or one derived from it."""
    name = user.name
    if name in SAME_LAYOUT or (name in FORWARD and name != ttng.WarpGroupDotWaitOp.name):
        return user.results
    if name == ttg.ConvertLayoutOp.name:
        return user.results
    if name == ttng.WarpGroupDotWaitOp.name:
        return (user.results[index],)
    if name == tt.GatherOp.name:
        return user.results if index == 1 and "efficient_layout" not in user.properties else ()
    return targets_of(user, index) or () if name in CONTROL else ()


def add_layouts(
    found: dict[SSAValue, Layouts], target: SSAValue, user: Operation, layouts: Sequence[Distributed]
) -> bool:
    """Add `layouts`, propagated through `user`, to the candidates of `target`; return True if there are new ones."""
    own = found.get(target)
    size = 0 if own is None else len(own)
    for layout in layouts:
        moved = forward(user, layout) if user.name in FORWARD else layout
        if moved is not None:
            if own is None:
                own = found[target] = {}
            own[moved] = None
    return own is not None and len(own) > size


def choose(found: dict[SSAValue, Layouts]) -> dict[SSAValue, Distributed]:
    """Choose one layout for each value: the first, unless a later one suits the op better."""
    chosen: dict[SSAValue, Distributed] = {}
    for value, layouts in found.items():
        if len(layouts) > 1:
            accesses_memory = isinstance(value, OpResult) and value.op.name in MEMORY
            suits = "is_for_memory" if accesses_memory else "is_accumulator"
            layouts = [layout for layout in layouts if getattr(layout, suits)] or layouts
        chosen[value] = next(iter(layouts))
    return chosen


# Changes


class Rewriter:
    """Gives values their `chosen` layouts. `old` has the previous layout of a changed value; `converted` maps a value
    that is still computed in its old layout to its conversion to the chosen one.
    """

    def __init__(self, chosen: dict[SSAValue, Distributed]) -> None:
        self.chosen = chosen
        self.old: dict[SSAValue, Distributed | None] = {}
        self.converted: dict[SSAValue, SSAValue] = {}

    def run(self, function: Operation) -> None:
        """Visit each region after the ops around it, so that a yield finds the types of its parent."""
        if not any(self.is_changed(value) for value in self.chosen):
            return
        regions = deque(function.regions)
        while regions:
            for block in regions.popleft().blocks:
                for op in tuple(block.ops):
                    self.visit(op)
                    regions.extend(op.regions)

    def is_changed(self, value: SSAValue) -> bool:
        layout = self.chosen.get(value)
        return layout is not None and layout != encoding(value)

    def visit(self, op: Operation) -> None:
        RULES.get(op.name, Rewriter.visit_other)(self, op)

    def visit_other(self, op: Operation) -> None:
        if any(self.is_changed(result) for result in op.results):
            self.change(op)
        else:
            self.fetch_operands(op, [self.old_layout(operand) for operand in op._operands])

    def change(self, op: Operation) -> None:
        """Give the results of an op new layouts, and its operands matching ones."""
        layout = next(self.chosen[result] for result in op.results if self.is_changed(result))
        needed = None if absorbs(op, layout) else self.operand_layout(op, layout)
        if needed is None:
            self.fetch_operands(op, [self.old_layout(operand) for operand in op._operands])
            for result in op.results:
                if self.is_changed(result):
                    self.converted[result] = convert_after(result, self.chosen[result])
            return
        followers = laid_out_operands(op)
        wanted = [needed if i in followers else self.old_layout(operand) for i, operand in enumerate(op._operands)]
        self.fetch_operands(op, wanted)
        self.set_layouts(op.results)

    def operand_layout(self, op: Operation, layout: Distributed) -> Distributed | None:
        """Return the layout of an operand that propagates to `layout` if there is one, else the one that `layout`
        requires.
        """
        for operand in op._operands:
            own = self.chosen.get(operand)
            if own is not None and forward(op, own) == layout:
                return own
        return backward(op, layout)

    def old_layout(self, value: SSAValue) -> Distributed | None:
        """Return the layout in which unchanged ops use `value`."""
        return self.old[value] if value in self.old else encoding(value)

    def set_layouts(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            if self.is_changed(value):
                self.old[value] = encoding(value)
                set_type(value, with_encoding(value.type, self.chosen[value]))

    def fetch_operands(self, op: Operation, layouts: Sequence[Distributed | None]) -> None:
        """Give `op` its operands in `layouts`."""
        operands = [self.fetch(value, layout) for value, layout in zip(op._operands, layouts, strict=True)]
        if any(new is not old for new, old in zip(operands, op._operands, strict=True)):
            op.operands = operands

    def fetch(self, value: SSAValue, layout: Distributed | None) -> SSAValue:
        """Return `value` in `layout`, converted after its definition if it has another."""
        if layout is None or not is_tensor(value.type):
            return value
        value = self.converted.get(value, value)
        return value if encoding(value) == layout else convert_after(value, layout)

    # Control flow

    def visit_control(self, op: Operation) -> None:
        """Give yielded and initial values the layouts of the values that receive them."""
        self.set_layouts(
            [*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)]
        )
        targets = [targets_of(op, index) for index in range(len(op._operands))]
        self.fetch_operands(op, [encoding(found[0]) if found else None for found in targets])

    # Ops that take any layout

    def visit_convert(self, op: Operation) -> None:
        """Convert to the chosen layout, from the current one of the source."""
        if self.is_changed(op.results[0]):
            self.set_layouts(op.results)
            self.fetch_operands(op, [self.chosen.get(op._operands[0])])
        else:
            self.fetch_operands(op, [self.old_layout(op._operands[0])])

    def visit_assert(self, op: Operation) -> None:
        self.fetch_operands(op, [self.chosen.get(operand) for operand in op._operands])

    def visit_reduce(self, op: Operation) -> None:
        """Let the operands of a reduction to scalars agree; others are handled like any op."""
        if any(is_tensor(result.type) for result in op.results):
            return self.visit_other(op)
        first = next((self.chosen[operand] for operand in op._operands if operand in self.chosen), None)
        self.fetch_operands(op, [first] * len(op._operands))


RULES = {
    **dict.fromkeys(CONTROL, Rewriter.visit_control),
    ttg.ConvertLayoutOp.name: Rewriter.visit_convert,
    tt.AssertOp.name: Rewriter.visit_assert,
    tt.ReduceOp.name: Rewriter.visit_reduce,
}


def convert_after(value: SSAValue, layout: Distributed) -> SSAValue:
    """Convert `value` to `layout`, directly after its definition."""
    owner = owner_of(value)
    assert owner is not None, "a value is in a function"
    return put(behind(value), ttg.ConvertLayoutOp.make(value, with_encoding(value.type, layout), owner.location))
