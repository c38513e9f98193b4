"""Remove unnecessary layout conversions, and make the others cheap.

    %r = tt.make_range : #a
    %o = ttg.convert_layout %r : #a -> #slice                   %o = tt.make_range : #slice
    %e = tt.expand_dims %o : #slice -> #c               ==>     %e = tt.expand_dims %o : #slice -> #d
    %d = ttg.convert_layout %e : #c -> #d                       tt.store %e : #d
    tt.store %d : #d

Earlier passes give each op its preferred layout and convert between them. This pass optimizes the whole function:

    propagate_layouts      users of a load or a dot take over its layout
    rematerialize          cheap values are recomputed in the layout of their use (`rematerialize.py`)
    hoist_converts         the remaining conversions move to where less data is converted
    cut_dead_loop_arguments   the old loop-carried values are removed (`common/dce.py`)

Between the steps `clean_converts` drops the conversions that became trivial.
Stage: TTGIR to TTGIR. Cost: rounds of rematerialisation to a fixed point, usually two or three; each is a walk
and the slices of the conversions.
"""

from collections import deque
from collections.abc import Sequence

from xdsl.ir import Operation, OpResult, SSAValue

from tilework.analysis.value_flows import targets_of
from tilework.ir import arith, scf, tt, ttg, ttng
from tilework.ir.create import set_type
from tilework.ir.encodings import layout_of, with_encoding
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import behind, end_of, ops_behind, owner_of
from tilework.ir.rewrite import insert_before, put, recreate
from tilework.ir.types import bit_width, is_tensor
from tilework.layouts.encodings import Distributed
from tilework.transforms.common.dce import cut_dead_loop_arguments
from tilework.transforms.folding import structured as folding_scf
from tilework.transforms.folding.convert_layout import CLEAN_FOLDS, CLEAN_REWRITES, clean_converts
from tilework.transforms.folding.structured import simplify_blocks
from tilework.transforms.folding.worklist import MAX_ROUNDS, Driver, rule_table
from tilework.transforms.passes import function_pass
from tilework.transforms.ttg.layout_rules import (
    DOTS,
    FORWARD,
    MEMORY,
    SAME_LAYOUT,
    absorbs,
    backward,
    encoding,
    forward,
    is_anchor,
    laid_out_operands,
    moves_no_data,
)
from tilework.transforms.ttg.rematerialize import (
    Rematerializer,
    Slice,
    Yields,
    backward_slice,
    conversions,
    pays,
    rematerialize,
    target_layout,
)


@function_pass("tritongpu-remove-layout-conversions")
def remove_layout_conversions(function: Operation) -> None:
    """Remove the conversions of one function; without any, only fold and remove dead code."""
    if conversions(function):
        propagate_layouts(function)
        clean_converts(function)
        while rematerialize(function):
            clean_converts(function)
        hoist_converts(function)
    cut_dead_loop_arguments(function)
    for _ in range(MAX_ROUNDS):  # a branch that becomes empty is removed, with ops that only it used
        if not Driver(FINAL_RULES, bottom_up=True).run(function, simplify_blocks) or not has_branches(function):
            break


def has_branches(function: Operation) -> bool:
    """Return True if there is an `scf.if` in `function`."""
    return any(op.name == scf.IfOp.name for op in ops_in_order(*function.regions))


FINAL_RULES = rule_table(
    CLEAN_FOLDS,
    {**CLEAN_REWRITES, **{kind: folding_scf.REWRITES[kind] for kind in (scf.ForOp, scf.IfOp, scf.YieldOp)}},
)


# Propagate good layouts to users, so that conversions disappear.
#
#     %v = tt.load %p : #a                          %v = tt.load %p : #a
#     %w = ttg.convert_layout %v : #a -> #b   ==>   %x = arith.addf %v, %v : #a
#     %x = arith.addf %w, %w : #b                   %y = ttg.convert_layout %x : #a -> #b
#     tt.store %q, %x : #b                          tt.store %q, %y : #b
#
# First the candidates are collected. Anchors (expensive loads, dots, atomics) have their preferred layout. From them
# layouts flow to the users of a value, through loops and branches and through conversions, as `candidates`: each value
# gets a list of possible layouts. Then one is chosen for each, and the types change in place; where a value is still
# needed in its old layout, a conversion follows its definition. Useless conversions are left to `clean_converts`.
#
# Cost: one visit per use and candidate, and one walk.

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


# Hoist the remaining conversions to where they move less data, or where they can be pipelined.
#
#     over an extension       %x = arith.extf %v : f16 #a to f32 #a        %w = convert_layout %v : f16 #a -> #b
#                             %y = convert_layout %x : f32 #a -> #b   ==>  %y = arith.extf %w : f16 #b to f32 #b
#
#     into a branch           %x = scf.if %c { yield %v } else { yield %zero }       one branch converts, the other
#                             %y = convert_layout %x                                 computes in the new layout
#
#     to the loads            %x = arith.addf %v, %u ; dot(convert_layout %x)        dot operands are converted
#                                                                                    where they are loaded
#
# Each hoist is a slice that ends at the new conversion; ops after it are recomputed in the new layout.

WIDENING = frozenset(
    {arith.ExtSIOp.name, arith.ExtUIOp.name, arith.ExtFOp.name, tt.BroadcastOp.name, tt.ExpandDimsOp.name}
)
LOADS = frozenset({tt.LoadOp.name, tt.DescriptorLoadOp.name})


def hoist_converts(function: Operation) -> None:
    """Move the conversions of `function` over extensions, into branches, and to the loads before dots."""
    for hoist in (hoist_over_extension, hoist_into_branches, hoist_to_loads):
        remat = Rematerializer()
        for convert in conversions(function):
            if not hoist(convert, remat):
                remat.keep(convert)
        remat.finish()


# Over extensions and broadcasts


def hoist_over_extension(convert: Operation, remat: Rematerializer) -> bool:
    """Convert the smaller operand of the only widening op in between; return True if this was possible."""
    layout = target_layout(convert)
    if layout.operand_index is not None:
        return False
    found = remat.slice_of(convert._operands[0], convert, layout, is_widening)
    if found is None:
        return False
    blocker: OpResult | None = None
    for value in found.stopped:
        narrow = backward(value.op, found.layouts[value])
        if narrow is None:
            return False
        rest = remat.slice_of(value.op._operands[0], value.op, narrow)
        if rest is not None and found.agrees(rest):
            found.merge(rest)
        elif blocker is None:
            blocker = value
        else:
            return False
    if blocker is None or (narrow := backward(blocker.op, found.layouts[blocker])) is None:
        return False
    op = blocker.op
    source = op._operands[0]
    if not pays(convert, found, source.type):
        return False
    smaller = ttg.ConvertLayoutOp.make(source, with_encoding(source.type, narrow), convert.location)
    types = (with_encoding(blocker.type, found.layouts[blocker]),)
    wider = recreate(op, operands=smaller.results, result_types=types)
    insert_before(op, smaller, wider)
    remat.rebuild_for(convert, found, {blocker: wider.results[0]})
    return True


def is_widening(op: Operation) -> bool:
    """Return True if the result has more bits than the operand."""
    if op.name == tt.FpToFpOp.name:
        return bit_width(op._operands[0].type) < bit_width(op.results[0].type)
    return op.name in WIDENING


# Into branches


def hoist_into_branches(convert: Operation, remat: Rematerializer) -> bool:
    """Convert in the branches that need it, if one does not; return True if this was possible."""
    layout = target_layout(convert)
    if layout.operand_index is not None:
        return False
    found = remat.slice_of(convert._operands[0], convert, layout, lambda op: op.name == scf.IfOp.name)
    if found is None or not found.stopped:
        return False
    outside: list[OpResult] = []
    inside: list[tuple[OpResult, int]] = []
    for value in tuple(found.stopped):
        missing = slice_branches(value, found, remat)
        if len(missing) == 2 or (missing and not isinstance(value.op.parent_op(), scf.ForOp)):
            outside.append(value)
        else:
            inside += [(value, side) for side in missing]
    if len(outside) == len(found.stopped):
        return False
    seeds: dict[SSAValue, SSAValue] = {value: converted_behind(value, found, convert) for value in outside}
    yields: Yields = {}
    for value, side in inside:
        end = end_of(value.op.regions[side].first_block)
        yields[value, side] = put(end, converted(end._operands[value.index], found.layouts[value], convert))
    remat.rebuild_for(convert, found, seeds, yields)
    return True


def slice_branches(value: OpResult, found: Slice, remat: Rematerializer) -> list[int]:
    """Add the values that the branches recompute for `value` to `found`; return the branches that cannot."""
    sides: list[Slice | None] = []
    for region in value.op.regions:
        end = end_of(region.first_block)
        side = remat.slice_of(end._operands[value.index], end, found.layouts[value])
        sides.append(side if side is not None and found.agrees(side) else None)
    first, second = sides
    if first is not None and second is not None and not first.agrees(second):
        second = None
    missing = [index for index, side in enumerate((first, second)) if side is None]
    if not missing or (len(missing) == 1 and isinstance(value.op.parent_op(), scf.ForOp)):
        for side in (first, second):
            if side is not None:
                found.merge(side)
    return missing


def converted_behind(value: SSAValue, found: Slice, convert: Operation) -> SSAValue:
    """Convert a value of the slice to its new layout, directly after its definition."""
    return put(behind(value), converted(value, found.layouts[value], convert))


def converted(value: SSAValue, layout: Distributed, convert: Operation) -> ttg.ConvertLayoutOp:
    """Return a conversion like `convert` of another value."""
    return ttg.ConvertLayoutOp.make(value, with_encoding(value.type, layout), convert.location)


# To the loads before a dot


def hoist_to_loads(convert: Operation, remat: Rematerializer) -> bool:
    """Convert dot operands directly after their loads, so that the conversion can be pipelined; return True if this was
    possible.
    """
    if not feeds_dot(convert):
        return False
    layout = target_layout(convert)
    found = backward_slice(convert._operands[0], convert, layout, remat.known, lambda op: not moves_no_data(op))
    if found is None or not starts_from_loads(found, is_spread(convert)):
        return False
    loads = [value for value in found.layouts if is_load(value)]
    if len(loads) == len(found.layouts):
        return False
    remat.rebuild_for(convert, found, {value: converted_behind(value, found, convert) for value in loads})
    return True


def feeds_dot(convert: Operation) -> bool:
    """Return True if a tensor-core dot on registers follows in the same block."""
    for op in ops_behind(convert):
        if op.name in DOTS:
            first = encoding(op._operands[0])
            if first is not None and first.operand_index is not None and first.root.is_accumulator:
                return True
    return False


def is_load(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and value.op.name in LOADS


def is_spread(convert: Operation) -> bool:
    """Return True if warps hold no duplicates of each other's elements after `convert`, so that arithmetic in that
    layout is done once.
    """
    return all(layout_of(convert.results[0].type).by_in["warp"])


def starts_from_loads(found: Slice, from_ranges: bool) -> bool:
    """Return True if the slice starts from loads and constants, or with `from_ranges` also from ranges and scalars:
    then recomputing it moves no data.
    """
    starts = LOADS | {arith.ConstantOp.name} | ({tt.MakeRangeOp.name, tt.SplatOp.name} if from_ranges else set[str]())
    return all(
        isinstance(value, OpResult) and (value.op.name in starts or moves_no_data(value.op))
        for value in (*found.layouts, *found.reused.values())
    )
