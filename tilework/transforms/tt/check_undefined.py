"""Stop a kernel that uses elements which no load has defined.

    %x = tt.load %p, %m                            %x = tt.load %p, %m
    %s = "tt.reduce"(%x)              ==>          %u = arith.xori %m, true            %x is undefined here
    tt.store %q, %s                                %v = "tt.reduce"(%u) ori            %s is undefined if any of these is
                                                   tt.assert (not %v), "sanitizer: ..."
                                                   %s = ... ; tt.store %q, %s

A load with a mask and without `other` leaves the lanes that are masked off undefined. Every value that may hold such
elements has a *shadow*, a tile of i1 that is true where it is undefined. Undefined elements may be computed with. It is an
error when one is stored in a lane that is on, is part of an address or mask of such a lane, or decides a branch or the
bounds of a loop. An element is defined, although an operand is not, when the operand cannot matter: the side of a select
that is not taken, ``false & x``, ``true | x``, ``0 * x`` of integers. Loading under a mask and storing under it, or under
one that implies it, costs nothing: that is seen while compiling.

Not followed (`undefined_values.py`): what goes through memory, calls, sorting and histograms. Stage: TTIR to TTIR. Cost:
one walk; ops for the shadows.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, cf, scf
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.passes import ModulePass

from tilework.analysis.origins import Origins, module_origins
from tilework.ir import tt
from tilework.ir.arith_ext import SelectOp
from tilework.ir.create import create_op
from tilework.ir.effects import is_elementwise
from tilework.ir.rewrite import attr_value, erase_op, insert_before, recreate, replace_all_uses
from tilework.ir.types import element_type, i1, is_tensor, shape_of, tensor_type, with_element
from tilework.transforms.tt.emitter import Emitter
from tilework.transforms.tt.undefined_values import VIEWS, is_partial_load, partial_values

MESSAGE = "sanitizer: {use} undefined: a load of {what} masks elements off, and gives no `other` for them"


@dataclass(frozen=True)
class CheckUndefinedPass(ModulePass):
    name = "triton-check-undefined"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [inner for inner in op.ops if isinstance(inner, tt.FuncOp) and inner.body.blocks]
        found = [(function, partial) for function in functions if (partial := partial_values(function))]
        if found:
            origins = module_origins(op)
            for function, partial in found:
                shadows = Shadows(partial, origins)
                for block in tuple(function.body.blocks):
                    shadows.visit_block(block)


Loads = tuple[Operation, ...]


@dataclass(frozen=True, eq=False)
class Shadow:
    """Where a value is undefined: where `value` is true or, without one, where any of `masks` is false."""

    loads: Loads  # whose masks it may come from
    masks: tuple[SSAValue, ...] = ()
    value: SSAValue | None = None


class Shadows:
    """The shadows of the values of one function."""

    def __init__(self, partial: set[SSAValue], origins: Origins) -> None:
        self.partial, self.origins = partial, origins
        self.known: dict[SSAValue, Shadow] = {}

    def of(self, value: SSAValue) -> Shadow | None:
        return self.known.get(value)

    def visit_block(self, block: Block) -> None:
        for op in tuple(block.ops):
            self.visit(op)

    def visit(self, op: Operation) -> None:
        kind = type(op)
        if (sink := SINKS.get(kind)) is not None:
            sink(self, op)
        if (control := CONTROL.get(kind)) is not None:
            control(self, op)
        elif any(result in self.partial for result in op.results):
            rule = RULES.get(kind) or (follow_view if kind in VIEWS else follow_elements)
            assert kind in RULES or kind in VIEWS or is_elementwise(op), f"{op.name} is not followed"
            code = Emitter(op.location)
            made = rule(self, code, op)
            assert op.next_op is not None, "a terminator has no results"
            code.insert_before(op.next_op)
            if made is not None:
                self.known.update(dict.fromkeys(op.results, made))

    def tile(self, code: Emitter, value: SSAValue) -> SSAValue:
        """The shadow of `value` as a tile of i1."""
        shadow = self.of(value)
        if shadow is None:
            return code.constant(0, with_element(value.type, i1))
        if shadow.value is not None:
            return shadow.value
        parts = [negated(code, mask) for mask in shadow.masks]
        return any_of(code, parts)

    def joined(self, code: Emitter, values: Sequence[SSAValue], type: Attribute) -> Shadow | None:
        """Undefined where one of `values` is; a scalar among tiles counts for all elements."""
        found = [(value, shadow) for value in values if (shadow := self.of(value)) is not None]
        if not found:
            return None
        loads = joined_loads(shadow for _, shadow in found)
        if all(shadow.value is None and shape_of(value.type) == shape_of(type) for value, shadow in found):
            return Shadow(loads, tuple(dict.fromkeys(mask for _, shadow in found for mask in shadow.masks)))
        parts = []
        for value, _ in found:
            part = self.tile(code, value)
            parts.append(part if is_tensor(part.type) or not is_tensor(type) else code.splat(part, shape_of(type)))
        return Shadow(loads, value=any_of(code, parts))

    # Uses that must not see anything undefined.

    def refuse(self, op: Operation, value: SSAValue, active: SSAValue | None, use: str) -> None:
        """Stop in front of `op` where an element of `value` is undefined, in lanes that are `active`."""
        shadow = self.of(value)
        if shadow is None or (shadow.value is None and active is not None and implies_all(active, shadow.masks)):
            return
        code = Emitter(op.location)
        bad = self.tile(code, value)
        if active is not None:
            active = active if is_tensor(active.type) or not is_tensor(bad.type) else code.splat(active, shape_of(bad.type))
            bad = code.binary(arith.AndIOp, bad, active)
        if is_tensor(bad.type):
            count = 1
            for size in shape_of(bad.type):
                count *= size
            flat = code.append(tt.ReshapeOp.make(bad, tensor_type((count,), i1), op.location))
            bad = folded(code, flat, 0)
        message = MESSAGE.format(use=use, what=self.arguments(shadow.loads))
        code.ops.append(tt.AssertOp.make(negated(code, bad), message, op.location))
        code.insert_before(op)

    def arguments(self, loads: Sequence[Operation]) -> str:
        """What loads read, for the message; the launcher knows the names of arguments."""
        found = [self.origins.get(load.operands[0], frozenset()) for load in loads]
        names = [f"argument #{min(one)}" if len(one) == 1 and min(one) >= 0 else "memory" for one in found]
        return " or ".join(dict.fromkeys(names))


def joined_loads(shadows: Iterable[Shadow]) -> Loads:
    return tuple(dict.fromkeys(load for shadow in shadows for load in shadow.loads))


def negated(code: Emitter, condition: SSAValue) -> SSAValue:
    return code.binary(arith.XOrIOp, condition, code.constant(1, condition.type))


def any_of(code: Emitter, parts: Sequence[SSAValue]) -> SSAValue:
    total = parts[0]
    for part in parts[1:]:
        total = code.binary(arith.OrIOp, total, part)
    return total


def or_region(end: type[Operation], loc: LocationAttr) -> Region:
    """The region of a fold of i1: true if one is."""
    block = Block(arg_types=(i1, i1))
    both = create_op(arith.OrIOp, tuple(block.args), (i1,), loc)
    block.add_ops((both, create_op(end, tuple(both.results), (), loc)))
    return Region(block)


def folded(code: Emitter, shadow: SSAValue, axis: int) -> SSAValue:
    """Whether any element along `axis` is undefined."""
    return code.append(tt.ReduceOp.make([shadow], axis, or_region(tt.ReduceReturnOp, code.loc), code.loc))


def implies_all(condition: SSAValue, masks: Sequence[SSAValue]) -> bool:
    """Where `condition` holds all of `masks` do, as far as conjunctions show it."""
    known, stack = set[SSAValue](), [condition]
    while stack:
        value = stack.pop()
        known.add(value)
        if isinstance(value, OpResult) and type(value.op) is arith.AndIOp:
            stack += value.op.operands
    return all(mask in known or implies_parts(mask, known) for mask in masks)


def implies_parts(mask: SSAValue, known: set[SSAValue]) -> bool:
    """A conjunction whose parts are all known."""
    if isinstance(mask, OpResult) and type(mask.op) is arith.AndIOp:
        return all(part in known or implies_parts(part, known) for part in mask.op.operands)
    return False


# How shadows go through ops.

Follow = Callable[[Shadows, Emitter, Operation], Shadow | None]


def follow_elements(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    return shadows.joined(code, op.operands, op.results[0].type)


def follow_view(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """The same op on shadows. Of a split each half is one result."""
    found = [shadow for operand in op.operands if (shadow := shadows.of(operand)) is not None]
    if not found:
        return None
    loads = joined_loads(found)
    parts = [shadows.tile(code, operand) for operand in op.operands]
    types = [with_element(result.type, i1) for result in op.results]
    new = create_op(type(op), parts, types, op.location, op.properties)
    code.append(new)
    for old, result in zip(op.results[1:], new.results[1:], strict=True):
        shadows.known[old] = Shadow(loads, value=result)
    made = Shadow(loads, value=new.results[0])
    if len(op.results) > 1:
        shadows.known[op.results[0]] = made
        return None
    return made


def follow_load(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    if is_partial_load(op):
        return Shadow((op,), (op.operands[1],))
    _, mask, other = op.operands
    shadow = shadows.of(other)
    if shadow is None:
        return None
    return Shadow(shadow.loads, value=code.binary(arith.AndIOp, shadows.tile(code, other), negated(code, mask)))


def follow_select(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """The side that is taken, and the condition."""
    condition, yes, no = op.operands
    taken = shadows.of(yes)
    if taken is not None and taken.value is None and implies_all(condition, taken.masks):
        taken = None
    if taken is None and shadows.of(no) is None:
        return shadows.joined(code, (condition,), op.results[0].type)
    loads = joined_loads(one for one in (taken, shadows.of(no), shadows.of(condition)) if one is not None)
    first = shadows.tile(code, yes) if taken is not None else code.constant(0, with_element(yes.type, i1))
    sides = code.append(SelectOp.make(condition, first, shadows.tile(code, no), op.location))
    whole = shadows.joined(code, (condition,), op.results[0].type)
    if whole is not None:
        shadows.known[op.results[0]] = whole
        sides = any_of(code, [sides, shadows.tile(code, op.results[0])])
    return Shadow(loads, value=sides)


def follow_absorbing(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """``and``, ``or`` and products of integers: one operand can decide alone."""
    a, b = op.operands
    if shadows.of(a) is not None and shadows.of(b) is not None:
        return follow_elements(shadows, code, op)
    undefined, other = (a, b) if shadows.of(a) is not None else (b, a)
    shadow = shadows.of(undefined)
    is_bool = element_type(a.type) == i1
    if shadow is None or (type(op) is arith.OrIOp and not is_bool):
        return shadow
    if type(op) is arith.OrIOp:
        matters = negated(code, other)
    elif is_bool:
        if shadow.value is None and implies_all(other, shadow.masks):
            return None
        matters = other
    else:
        matters = code.compare("ne", other, code.constant(0, other.type))
    return Shadow(shadow.loads, value=code.binary(arith.AndIOp, shadows.tile(code, undefined), matters))


def loads_below(shadows: Shadows, op: Operation) -> Loads:
    """The loads that the operands of an op may come from."""
    return joined_loads(shadow for operand in op.operands if (shadow := shadows.of(operand)) is not None)


def follow_reduce(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    loads = loads_below(shadows, op)
    if not loads:
        return None
    parts = [shadows.tile(code, operand) for operand in op.operands if shadows.of(operand) is not None]
    return Shadow(loads, value=folded(code, any_of(code, parts), int(attr_value(op.properties["axis"]) or 0)))


def follow_scan(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    loads = loads_below(shadows, op)
    if not loads:
        return None
    parts = [shadows.tile(code, operand) for operand in op.operands if shadows.of(operand) is not None]
    axis, reverse = (int(attr_value(op.properties[name]) or 0) for name in ("axis", "reverse"))
    region = or_region(tt.ScanReturnOp, op.location)
    return Shadow(loads, value=code.append(tt.ScanOp.make([any_of(code, parts)], axis, bool(reverse), region, op.location)))


def follow_dot(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    """Row i of `a` and column j of `b` make element (i, j)."""
    loads = loads_below(shadows, op)
    if not loads:
        return None
    shape = shape_of(op.results[0].type)
    rank = len(shape)
    parts = [shadows.tile(code, op.operands[2])] if shadows.of(op.operands[2]) is not None else []
    for operand, axis in ((op.operands[0], rank - 1), (op.operands[1], rank - 2)):
        if shadows.of(operand) is not None:
            line = folded(code, shadows.tile(code, operand), axis)
            parts.append(code.broadcast(code.expanded(line, (axis,)), shape))
    return Shadow(loads, value=any_of(code, parts))


def follow_gather(shadows: Shadows, code: Emitter, op: Operation) -> Shadow | None:
    source, indices = op.operands
    loads = loads_below(shadows, op)
    if not loads:
        return None
    parts = [shadows.tile(code, indices)] if shadows.of(indices) is not None else []
    if shadows.of(source) is not None:
        type = with_element(op.results[0].type, i1)
        picked = create_op(tt.GatherOp, (shadows.tile(code, source), indices), (type,), op.location, op.properties)
        parts.append(code.append(picked))
    return Shadow(loads, value=any_of(code, parts))


RULES: dict[type[Operation], Follow] = {
    SelectOp: follow_select,
    arith.AndIOp: follow_absorbing,
    arith.MuliOp: follow_absorbing,
    arith.OrIOp: follow_absorbing,
    tt.DotOp: follow_dot,
    tt.GatherOp: follow_gather,
    tt.LoadOp: follow_load,
    tt.ReduceOp: follow_reduce,
    tt.ScanOp: follow_scan,
}


# Uses.


def use_load(shadows: Shadows, op: Operation) -> None:
    mask = op.operands[1] if len(op.operands) > 1 else None
    if mask is not None:
        shadows.refuse(op, mask, None, "the mask is")
    shadows.refuse(op, op.operands[0], mask, "the address is")


def use_store(shadows: Shadows, op: Operation) -> None:
    mask = op.operands[2] if len(op.operands) > 2 else None
    if mask is not None:
        shadows.refuse(op, mask, None, "the mask is")
    shadows.refuse(op, op.operands[0], mask, "the address is")
    shadows.refuse(op, op.operands[1], mask, "what is stored is")


def use_exchange(shadows: Shadows, op: Operation) -> None:
    for value, what in zip(op.operands, ("the address is", "what is compared is", "what is stored is"), strict=True):
        shadows.refuse(op, value, None, what)


def use_condition(shadows: Shadows, op: Operation) -> None:
    shadows.refuse(op, op.operands[0], None, "the condition is")


def use_bounds(shadows: Shadows, op: Operation) -> None:
    for bound in op.operands[:3]:
        shadows.refuse(op, bound, None, "the bound of the loop is")


SINKS: dict[type[Operation], Callable[[Shadows, Operation], None]] = {
    cf.ConditionalBranchOp: use_condition,
    scf.ConditionOp: use_condition,
    scf.ForOp: use_bounds,
    scf.IfOp: use_condition,
    tt.AtomicCASOp: use_exchange,
    tt.AtomicRMWOp: use_store,
    tt.LoadOp: use_load,
    tt.StoreOp: use_store,
}


# Loops and branches carry the shadows of what they carry.


def shadow_tiles(shadows: Shadows, values: Sequence[SSAValue], before: Operation) -> list[SSAValue]:
    code = Emitter(before.location)
    tiles = [shadows.tile(code, value) for value in values]
    code.insert_before(before)
    return tiles


def rebuild(shadows: Shadows, op: Operation, operands: Sequence[SSAValue], carried: Sequence[int], loads: Loads) -> None:
    """`op` with the shadows of the results `carried` as further results."""
    types = [*(result.type for result in op.results), *(with_element(op.results[n].type, i1) for n in carried)]
    new = recreate(op, operands=operands, result_types=types, regions=tuple(op.regions))
    insert_before(op, new)
    for number, old in enumerate(op.results):
        if old in shadows.partial:
            shadows.partial.add(new.results[number])
        replace_all_uses(old, new.results[number])
    for position, number in enumerate(carried):
        shadows.known[new.results[number]] = Shadow(loads, value=new.results[len(op.results) + position])
    erase_op(op)


def add_arguments(shadows: Shadows, block: Block, numbers: Sequence[int], loads: Loads) -> None:
    """Further arguments of a block: the shadows of some of its own."""
    for number in numbers:
        argument = block.args[number]
        added = block.insert_arg(with_element(argument.type, i1), len(block.args), argument.location)
        shadows.known[argument] = Shadow(loads, value=added)


def sources_of(shadows: Shadows, op: Operation) -> Loads:
    """The loads that a loop or branch may carry elements of: the message is about them."""
    inside = [inner for inner in op.walk() if is_partial_load(inner)]
    return tuple(dict.fromkeys((*loads_below(shadows, op), *inside)))


def carry_for(shadows: Shadows, op: Operation) -> None:
    block = op.regions[0].blocks[0]
    carried = [n for n, argument in enumerate(block.args[1:]) if argument in shadows.partial]
    loads = sources_of(shadows, op)
    initial = shadow_tiles(shadows, [op.operands[3 + n] for n in carried], op)
    add_arguments(shadows, block, [n + 1 for n in carried], loads)
    shadows.visit_block(block)
    extend_end(shadows, block, carried, 0)
    if carried:
        rebuild(shadows, op, (*op.operands, *initial), carried, loads)


def extend_end(shadows: Shadows, block: Block, carried: Sequence[int], offset: int) -> None:
    """The terminator of a block also gives the shadows of what it gives."""
    end = block.last_op
    assert end is not None, "a region ends in a terminator"
    if carried:
        end.operands = (*end.operands, *shadow_tiles(shadows, [end.operands[offset + n] for n in carried], end))


def carry_while(shadows: Shadows, op: Operation) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    entering = [n for n, argument in enumerate(before.args) if argument in shadows.partial]
    leaving = [n for n, argument in enumerate(after.args) if argument in shadows.partial]
    loads = sources_of(shadows, op)
    initial = shadow_tiles(shadows, [op.operands[n] for n in entering], op)
    add_arguments(shadows, before, entering, loads)
    shadows.visit_block(before)
    extend_end(shadows, before, leaving, 1)
    add_arguments(shadows, after, leaving, loads)
    shadows.visit_block(after)
    extend_end(shadows, after, entering, 0)
    if entering or leaving:
        rebuild(shadows, op, (*op.operands, *initial), leaving, loads)


def carry_if(shadows: Shadows, op: Operation) -> None:
    carried = [n for n, result in enumerate(op.results) if result in shadows.partial]
    loads = sources_of(shadows, op)
    for region in op.regions:
        for block in region.blocks:
            shadows.visit_block(block)
            extend_end(shadows, block, carried, 0)
    if carried:
        rebuild(shadows, op, tuple(op.operands), carried, loads)


CONTROL: dict[type[Operation], Callable[[Shadows, Operation], None]] = {
    scf.ForOp: carry_for,
    scf.IfOp: carry_if,
    scf.WhileOp: carry_while,
}
