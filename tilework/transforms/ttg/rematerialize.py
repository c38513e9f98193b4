"""Recompute a value in the required layout instead of converting it.

    %r = tt.make_range : #a                             %r = tt.make_range : #b
    %x = arith.addi %r, %n : #a                   ==>   %x = arith.addi %r, %n' : #b
    %y = ttg.convert_layout %x : #a -> #b

`Rematerializer` remembers the values that it recomputed, so that a second conversion of the same value finds them. It
clones the ops of a slice (`backward_slice`), each before its original; carried values of loops and results of
branches are appended, and the old ones become dead without uses. A cost model decides if it pays.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import field
from math import prod

from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.value_flows import dominator_children, reached
from tilework.ir import arith, scf, tt, ttg
from tilework.ir.create import add_result
from tilework.ir.encodings import layout_of, with_encoding
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import OpOrder, end_of
from tilework.ir.rewrite import erase_op, insert_before, recreate, replace_all_uses
from tilework.ir.scf import also_yield
from tilework.ir.types import PointerType, axis_of, bit_width, element_type, is_tensor, shape_of
from tilework.layouts.encodings import Distributed
from tilework.light_dataclass import light_dataclass
from tilework.transforms.ttg.layout_rules import absorbs, backward, can_clone, encoding, is_renaming, laid_out_operands

# The backward slice that must be recomputed to get a value in another layout.
#
#     %0 = tt.make_range : #a
#     %1 = tt.splat %n : #a                       layouts: {%2: #b, %0: #b, %1: #b}
#     %2 = arith.addi %0, %1 : #a                 the slice of %2 for #b stops at the range and the splat,
#     %3 = ttg.convert_layout %2 : #a -> #b       which can have any layout
#
# A slice follows operands backwards: into branches through their yields, around loops through their carried values.
# It stops at ops that absorb a conversion, at values that exist in that layout already, and at ops the caller names. It
# fails at results of loops, at ops without a rule, and where one value would need two layouts. Finding
# a slice changes nothing; `Rebuild` recomputes it.

Stop = Callable[[Operation], bool]
InLayouts = dict[tuple[SSAValue, Distributed], SSAValue]
"""Values that exist in another layout already: the clone or the converted value."""


class Known:
    """Values that exist in another layout, while their ops stay where they are."""

    def __init__(self) -> None:
        self.values: InLayouts = {}
        self.order = OpOrder()

    def find(self, value: SSAValue, layout: Distributed, user: Operation) -> SSAValue | None:
        """Return `value` in `layout`, if that is defined on every path to `user`."""
        existing = self.values.get((value, layout))
        return existing if existing is not None and properly_dominates(existing, user, self.order) else None


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
    value: SSAValue,
    user: Operation,
    layout: Distributed,
    known: Known,
    stop: Stop | None = None,
    must_clone: bool = False,
) -> Slice | None:
    """Return the slice that computes `value`, an operand of `user`, in `layout`; None if there is none, or if
    `must_clone` and an op of it cannot be recomputed.
    """
    found = Slice()
    pending = [(value, user, layout)]

    def push(operand: SSAValue, op: Operation, wanted: Distributed) -> None:
        if is_tensor(operand.type) and encoding(operand) != wanted:
            pending.append((operand, op, wanted))

    while pending:
        value, user, layout = pending.pop()
        if found.layouts.setdefault(value, layout) != layout:
            return None
        if must_clone and isinstance(value, OpResult) and not can_clone(value.op):
            return None
        if (existing := known.find(value, layout, user)) is not None:
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
    if not isinstance(value, OpResult):
        return expand_argument(value, layout, push)
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
    value: SSAValue, layout: Distributed, push: Callable[[SSAValue, Operation, Distributed], None]
) -> bool:
    """Push the initial value and the yielded value of a loop-carried argument."""
    assert isinstance(value, BlockArgument)
    loop = value.block.parent_op()
    if not isinstance(loop, scf.ForOp) or value.index == 0:
        return False
    end = end_of(value.block)
    push(loop._operands[value.index + 2], loop, layout)
    push(end._operands[value.index - 1], end, layout)
    return True


# Dominance


def properly_dominates(value: SSAValue, user: Operation, order: OpOrder) -> bool:
    """Return True if the definition of `value` properly dominates `user`."""
    owner = value.owner
    block = owner.parent if isinstance(owner, Operation) else owner
    if block is None or (around := ancestor_in(user, block)) is None:
        return False
    if around.parent is not block:
        return around.parent is not None and block_dominates(block, around.parent)
    return not isinstance(owner, Operation) or order.is_before(owner, around)


def ancestor_in(op: Operation, block: Block) -> Operation | None:
    """Return `op`, or the op around it, that is in the region of `block`."""
    region = block.parent
    current: Operation | None = op
    while current is not None and current.parent_region() is not region:
        current = current.parent_op()
    return current


def block_dominates(first: Block, second: Block) -> bool:
    """Return True if every path to `second` passes through `first`."""
    region = first.parent
    assert region is not None, "a block is in a region"
    children = dominator_children(region)
    return any(block is second for block in reached(children.get(first, ()), lambda block: children[block]))


# The cost model: is recomputing a slice cheaper than converting its result?
#
# A conversion costs 32 for each byte that it moves through shared memory. Recomputation costs what is computed twice:
# an op all of whose users are the conversion, or such ops, is only moved, at no cost. For the others:
#
#     load                        8 for each byte
#     arith, math                 1 for each byte, 8 if it is a long sequence of instructions (exp, log, a division ...)
#     reduce                      lanes along the axis, and 8 for each warp; sums of floats never, as they would differ
#     constants, views, others    0

CONVERT_BYTE = 32
LOAD_BYTE = 8
SLOW_BYTE = 8
REDUCE_WARP = 8
LEAST_ELEMENTS = 32
LEAST_BITS = 32

SLOW = frozenset(
    {
        arith.DivfOp.name,
        *(
            f"math.{name}"
            for name in (
                *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "sin", "sincos", "sinh"),
                *("tan", "tanh", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "powf", "ipowi", "fpowi"),
                *("sqrt", "rsqrt", "cbrt", "erf", "erfc", "ctpop", "ctlz", "cttz"),
            )
        ),
    }
)
LOADS = frozenset({tt.LoadOp.name, ttg.LocalLoadOp.name})
SUMS = frozenset({arith.AddfOp.name, arith.MulfOp.name})


def pays(convert: Operation, found: Slice, converted: Attribute | None = None) -> bool:
    """Return True if recomputing the slice, and converting a value of the type `converted` for it, costs no more than
    `convert`."""
    limit = conversion_cost(convert._operands[0].type)
    total = 0 if converted is None else conversion_cost(converted)
    for op in staying(convert, found):
        cost = cost_of(op)
        if cost is None:
            return False
        total += cost
    return total <= limit


def conversion_cost(type: Attribute) -> int:
    return CONVERT_BYTE * num_bytes(type, LEAST_ELEMENTS, LEAST_BITS)


def staying(convert: Operation, found: Slice) -> list[Operation]:
    """Return the ops of the slice that are still needed without `convert`."""
    free: dict[Operation, bool] = {}
    ops = found.ops
    for start in ops:
        pending = [start]
        while pending:
            op = pending[-1]
            users = users_within(op, ops, convert)
            unknown = [user for user in users or () if user not in free]
            if unknown:
                pending += unknown
                continue
            free[op] = users is not None and all(free[user] for user in users)
            pending.pop()
    return [op for op in ops if not free[op]]


def users_within(op: Operation, ops: Container[Operation], convert: Operation) -> list[Operation] | None:
    """Return the users of `op` without `convert`, or None as soon as one is not among `ops`: there may be many."""
    users: list[Operation] = []
    for result in op.results:
        for use in result.uses:
            user = use.operation
            if user is convert:
                continue
            if user not in ops:
                return None
            users.append(user)
    return users


def cost_of(op: Operation) -> int | None:
    """Return the cost of recomputing `op`; None if it must not be recomputed."""
    name = op.name
    if name == arith.ConstantOp.name:
        return 0
    if name in LOADS:
        return LOAD_BYTE * num_bytes(op.results[0].type)
    if name == tt.ReduceOp.name:
        return cost_of_reduce(op)
    if name.startswith(("arith.", "math.")):
        return num_bytes(op.results[0].type) * (SLOW_BYTE if name in SLOW else 1)
    return 0


def cost_of_reduce(op: Operation) -> int | None:
    source, axis = op._operands[0].type, axis_of(op)
    if shape_of(source)[axis] > 2 and is_rounded_sum(op):
        return None
    counts = {name: prod(2 for vector in vectors if vector[axis]) for name, vectors in layout_of(source).bases}
    return counts["lane"] + REDUCE_WARP * counts["warp"]


def is_rounded_sum(op: Operation) -> bool:
    """Return True if the result depends on the order in which elements are added or multiplied."""
    return any(inner.name in SUMS for inner in op.regions[0].walk())


def num_bytes(type: Attribute, least_elements: int = 0, least_bits: int = 0) -> int:
    """Return the size of a tensor; that of pointers is 0, because converting them is always worth avoiding."""
    bits = 0 if isinstance(element_type(type), PointerType) else bit_width(type)
    return max(prod(shape_of(type)), least_elements) * max(bits, least_bits) // 8


Yields = dict[tuple[OpResult, int], SSAValue]
"""The value that branch 0 or 1 of the `scf.if` of a result yields in the new layout, where the slice has none."""


def rematerialize(function: Operation) -> bool:
    """Remove conversions of `function` by recomputing their values; return True if one was removed."""
    remat = Rematerializer()
    for convert in conversions(function):
        if target_layout(convert).operand_index is None:
            remat.remove(convert)
    return remat.finish()


def conversions(function: Operation) -> list[Operation]:
    return [op for op in ops_in_order(*function.regions) if op.name == ttg.ConvertLayoutOp.name]


def target_layout(convert: Operation) -> Distributed:
    layout = encoding(convert.results[0])
    assert layout is not None, "a conversion is between layouts"
    return layout


class Rematerializer:
    """Replaces conversions. `known` has the values that exist in another layout, and `replaced` the unused conversions,
    which are kept until the end, since they still show which values are needed in their old layout.
    """

    def __init__(self) -> None:
        self.known = Known()
        self.replaced: list[Operation] = []

    def remove(self, convert: Operation) -> None:
        """Recompute the source of `convert`, if that is possible and cheaper."""
        (source,) = convert._operands
        layout = target_layout(convert)
        if (existing := self.known.find(source, layout, convert)) is not None:
            self.replace(convert, existing)
            return
        found = self.slice_of(source, convert, layout)
        if found is not None and pays(convert, found):
            self.rebuild_for(convert, found)
        else:
            self.keep(convert)

    def slice_of(self, value: SSAValue, user: Operation, layout: Distributed, stop: Stop | None = None) -> Slice | None:
        """Return the slice for an operand of `user`, if all of it may be recomputed."""
        return backward_slice(value, user, layout, self.known, stop, must_clone=True)

    def rebuild_for(
        self,
        convert: Operation,
        found: Slice,
        seeds: dict[SSAValue, SSAValue] | None = None,
        yields: Yields | None = None,
    ) -> None:
        """Recompute `found` and use it instead of `convert`; `seeds` are values of it that exist already."""
        build = Rebuild(found, seeds or {}, yields or {})
        build.run()
        self.known.values.update(build.made)
        (source,) = convert._operands
        self.replace(convert, build.value(source, target_layout(convert)))

    def replace(self, convert: Operation, value: SSAValue) -> None:
        replace_all_uses(convert.results[0], value)
        self.replaced.append(convert)

    def keep(self, convert: Operation) -> None:
        """Reuse conversions that are kept for other uses."""
        self.known.values[convert._operands[0], target_layout(convert)] = convert.results[0]

    def finish(self) -> bool:
        """Erase the conversions that were replaced; return True if there were any."""
        for convert in reversed(self.replaced):
            if convert.results[0].first_use is None:
                erase_op(convert)
        return bool(self.replaced)


class Rebuild:
    """Clones the ops of a slice. `done` maps values to their clones, `made` those that later slices may reuse."""

    def __init__(self, found: Slice, seeds: dict[SSAValue, SSAValue], yields: Yields) -> None:
        self.layouts = found.layouts
        self.yields = yields
        self.made: InLayouts = {}
        self.followers: dict[Operation, list[tuple[int, Distributed]]] = {}
        self.carried: dict[Block, list[BlockArgument]] = {}
        reused = {value: known for value, known in found.reused.items() if value not in found.cloned}
        self.done: dict[SSAValue, SSAValue] = {**reused, **seeds}
        self.wanted = [value for value in found.layouts if value in found.cloned]

    def run(self) -> None:
        """Recompute every value after its sources; add the yields of loops at the end."""
        for value in self.wanted:
            pending = [(value, False)]
            while pending:
                current, is_ready = pending.pop()
                if current in self.done:
                    continue
                if is_ready:
                    self.make(current)
                else:
                    pending.append((current, True))
                    pending += [(source, False) for source in self.sources(current)]
        for block, arguments in self.carried.items():
            end = end_of(block)
            more = [self.value(end._operands[old.index - 1], self.layouts[old]) for old in arguments]
            also_yield(block, more)

    def value(self, value: SSAValue, layout: Distributed) -> SSAValue:
        """Return `value` in `layout`."""
        return value if encoding(value) == layout or not is_tensor(value.type) else self.done[value]

    def record(self, old: SSAValue, new: SSAValue) -> None:
        self.done[old] = new
        self.made[old, self.layouts[old]] = new

    def sources(self, value: SSAValue) -> Sequence[SSAValue]:
        """Return the values of the slice from which `value` is computed."""
        layout = self.layouts[value]
        if not isinstance(value, OpResult):
            assert isinstance(value, BlockArgument)
            loop = value.block.parent_op()
            assert loop is not None
            return [initial_value(loop, argument) for argument in self.arguments(value.block)]
        op = value.op
        if op.name == scf.IfOp.name:
            return [
                source
                for result in self.results(op)
                for side, region in enumerate(op.regions)
                if (result, side) not in self.yields
                and (source := end_of(region.first_block)._operands[result.index]) in self.layouts
            ]
        return [op._operands[i] for i, _ in self.operands(op, layout)]

    def operands(self, op: Operation, layout: Distributed) -> list[tuple[int, Distributed]]:
        """Return the operands of `op` that change with its results, each with its new layout; cached."""
        if (found := self.followers.get(op)) is None:
            found = self.followers[op] = self.find_operands(op, layout)
        return found

    def find_operands(self, op: Operation, layout: Distributed) -> list[tuple[int, Distributed]]:
        if op.name == ttg.ConvertLayoutOp.name and is_renaming(op._operands[0].type, op.results[0].type):
            needed = layout
        elif absorbs(op, layout) or (needed := backward(op, layout)) is None:
            return []
        found = [
            (i, needed)
            for i in laid_out_operands(op)
            if is_tensor(op._operands[i].type) and encoding(op._operands[i]) != needed
        ]
        if op.name == tt.GatherOp.name and (own := self.layouts.get(op._operands[0])) is not None:
            found.append((0, own))  # the source may have any layout: the old one may become dead
        return found

    def arguments(self, block: Block) -> list[BlockArgument]:
        """Return the carried values of a loop that are in the slice."""
        return [argument for argument in block.args if argument in self.layouts and argument not in self.done]

    def results(self, op: Operation) -> list[OpResult]:
        return [result for result in op.results if result in self.layouts and result not in self.done]

    def make(self, value: SSAValue) -> None:
        """Recompute `value` in its new layout, after its sources."""
        if not isinstance(value, OpResult):
            assert isinstance(value, BlockArgument)
            self.extend_loop(value.block)
            return
        op = value.op
        if op.name == scf.IfOp.name:
            self.extend_if(op)
        elif op.name == arith.ConstantOp.name:
            copy = recreate(op)
            type = with_encoding(value.type, self.layouts[value])
            convert = ttg.ConvertLayoutOp.make(copy.results[0], type, op.location)
            insert_before(op, copy, convert)
            self.record(value, convert.results[0])
        else:
            self.clone(op, self.layouts[value])

    def clone(self, op: Operation, layout: Distributed) -> None:
        operands = list(op._operands)
        for i, needed in self.operands(op, layout):
            operands[i] = self.value(operands[i], needed)
        if op.name == ttg.ConvertLayoutOp.name and encoding(operands[0]) == layout:
            self.record(op.results[0], operands[0])
            return
        types = [
            with_encoding(result.type, self.layouts[result]) if result in self.layouts else result.type
            for result in op.results
        ]
        regions = [region.clone() for region in op.regions]
        copy = recreate(op, operands=operands, result_types=types, regions=regions)
        insert_before(op, copy)
        for old, new in zip(op.results, copy.results, strict=True):
            if old in self.layouts:
                self.record(old, new)

    def extend_loop(self, block: Block) -> None:
        """Carry the values of the slice as well; `run` adds their yields."""
        loop = block.parent_op()
        assert loop is not None
        arguments = self.arguments(block)
        self.carried[block] = arguments
        for old in arguments:
            start = self.value(initial_value(loop, old), self.layouts[old])
            loop.operands = (*loop._operands, start)
            self.record(old, block.insert_arg(start.type, len(block.args), old.location))
            self.made[loop.results[old.index - 1], self.layouts[old]] = add_result(loop, start.type)

    def extend_if(self, op: Operation) -> None:
        """Yield the values of the slice as well."""
        for old in self.results(op):
            layout = self.layouts[old]
            for side, region in enumerate(op.regions):
                end = end_of(region.first_block)
                value = self.yields.get((old, side))
                also_yield(region.blocks[0], [value or self.value(end._operands[old.index], layout)])
            self.record(old, add_result(op, with_encoding(old.type, layout)))


def initial_value(loop: Operation, argument: BlockArgument) -> SSAValue:
    """Return the initial value of a loop-carried argument."""
    return loop._operands[argument.index + 2]
