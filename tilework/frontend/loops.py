"""Loops whose bounds or conditions are known only at run time become `scf.for` and `scf.while`.

Each body is visited once. Which variables a loop carries is read off the syntax (names assigned in the body that exist
before it) plus every aggregate in scope, whose methods may change it; carried values that do not change are
dropped again. The variable of a `for` is carried only if it may be read after the loop (`loop_variables.py`). A `for`
that may be left early becomes an `scf.while` that also counts (`control_flow.py`).
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

from xdsl.ir import Block, Region

from tilework.frontend import FunctionGenerator, visits
from tilework.frontend.control_flow import (
    BREAK,
    CONTINUE,
    RETURN,
    Stops,
    append,
    assigned_at,
    constant_condition,
    end_location,
    go_on,
    may_leave,
    none_of,
    visit_body,
    visit_else,
)
from tilework.frontend.loop_variables import lasting_loops
from tilework.frontend.returns import note_dead_rounds
from tilework.frontend.scopes import (
    contains_aggregate,
    describe_type,
    flatten,
    is_same,
    is_storable,
    unflatten_all,
    unwrap,
)
from tilework.ir import scf
from tilework.ir.locations import name_loc, unknown
from tilework.ir.rewrite import constant_value
from tilework.ir.scf import (
    COUNTED,
    SKIPS,
    UNIT,
    loop_attributes,
    make_condition,
    make_for,
    make_if,
    make_while,
    make_yield,
)
from tilework.language import core as tl
from tilework.language.advice import dtype_meant, loop_refusal
from tilework.language.typing import triton_messages
from tilework.language.typing.promotion import constant_dtype
from tilework.language.typing.python_names import assigned_name, loop_index_type

HINTS = "num_stages loop_unroll_factor disallow_acc_multi_buffer flatten warp_specialize disable_licm".split()


class Carried:
    """The loop-carried variables; the induction variable `index` is one of them if it `lasts`: it is read later."""

    def __init__(
        self, gen: FunctionGenerator, body: Sequence[ast.stmt], index: str | None = None, lasts: bool = False
    ) -> None:
        self.body = body
        assigned = assigned_names(body, lasting_loops(gen.scope.tree))
        if lasts and index is not None:
            assigned, index = assigned | {index}, None
        locals = {name: value for name, value in gen.scope.locals.items() if name != index}
        self.names = [
            name
            for name, value in locals.items()
            if (name in assigned and is_storable(value)) or contains_aggregate(value)
        ]
        self.fixed = {name: value for name, value in locals.items() if name in assigned and not is_storable(value)}
        self.types = [locals[name].type for name in self.names]
        self.initial = [flatten(locals[name]) for name in self.names]

    @property
    def handles(self) -> list[Any]:
        """The IR handles of all initial values."""
        return [handle for handles in self.initial for handle in handles]

    @property
    def leaf_names(self) -> list[str]:
        """The variable that each handle belongs to."""
        return [name for name, handles in zip(self.names, self.initial, strict=True) for _ in handles]

    def add_arguments(self, gen: FunctionGenerator, block: Block) -> None:
        """One block argument per handle."""
        for handle, name in zip(self.handles, self.leaf_names, strict=True):
            gen.starts[block.insert_arg(handle.type, len(block.args), name_loc(name, unknown))] = handle

    def bind(self, gen: FunctionGenerator, handles: Sequence[Any]) -> None:
        """Bind the variables to `handles`."""
        gen.scope.locals.update(zip(self.names, unflatten_all(self.types, handles), strict=True))

    def bind_results(self, gen: FunctionGenerator, kept: Sequence[int], results: Sequence[Any]) -> None:
        """After the loop: bind carried variables to its results, the others to their initial values."""
        handles = list(self.handles)
        for position, result in zip(kept, results, strict=True):
            handles[position] = result
        self.bind(gen, handles)

    def drop_others(self, gen: FunctionGenerator, kept: Sequence[int], block: Block, offset: int) -> None:
        """Replace each argument of `block` that the body yields unchanged by its initial value."""
        initial = self.handles
        for position in reversed(range(len(initial))):
            if position not in kept:
                argument = block.args[offset + position]
                argument.replace_all_uses_with(initial[position])
                gen.semantic.move_hints(argument, initial[position])
                block.erase_arg(argument)

    def location(self, kept: Sequence[int], loc: Any) -> Any:
        """Return the location of the loop, under the names of its results."""
        names = self.leaf_names
        return reduce(lambda loc, position: name_loc(names[position], loc), kept, loc)

    def yields(self, gen: FunctionGenerator) -> list[Any]:
        """The values at the end of the body, after checking that no type has changed."""
        for name, value in self.fixed.items():
            if not is_same(gen.scope.locals.get(name), value):
                kind = "None" if unwrap(value) is None else f"the constexpr {unwrap(value)!r}"
                raise TypeError(
                    f"`{name}` is {kind} before the loop and cannot be re-assigned in it"
                    f"{assigned_at(gen, self.body, name)}"
                    f"\nhelp: make it a run-time value first, for example `{name} = tl.full((), ..., dtype)`"
                )
        handles: list[Any] = []
        for name, type in zip(self.names, self.types, strict=True):
            value = gen.scope.locals[name]
            new = getattr(value, "type", None)
            if not is_storable(value) or new != type:
                raise TypeError(
                    f"Loop-carried variable {name} has initial type {describe_type(type)} but is re-assigned to"
                    f" {describe_type(new)} in loop! Please make sure that the type stays consistent."
                    f"{assigned_at(gen, self.body, name)}"
                    f"\nhelp: {about_start(name, type, new)}"
                )
            handles += flatten(value)
        return handles


def assigned_names(body: Sequence[ast.stmt], lasting: frozenset[int]) -> frozenset[str]:
    """Every name that is assigned somewhere in `body`, remembered on its first statement; of the variables of loops,
    those that are `lasting`."""
    cached = getattr(body[0], "_assigned", None)
    if cached is None:
        nodes = [inner for statement in body for inner in ast.walk(statement)]
        indices = {id(inner.target) for inner in nodes if isinstance(inner, ast.For) and id(inner) not in lasting}
        assigned = (assigned_name(inner) for inner in nodes if id(inner) not in indices)
        cached = frozenset(name for name in assigned if name is not None)
        body[0]._assigned = cached  # pyright: ignore[reportAttributeAccessIssue]
    return cached


def about_start(name: str, type: Any, new: Any) -> str:
    """Return advice on the initial value of a variable to which a loop gives another type."""
    if isinstance(new, tl.block_type) and not isinstance(type, tl.block_type) and not new.scalar.is_ptr():
        sizes = ", ".join(map(str, new.shape))
        return f"start with a tile: `{name} = tl.zeros([{sizes}], tl.{dtype_meant(new.scalar.name)})`"
    return f"start with the type it has at the end, or cast: `{name}.to(...)`"


@visits(ast.For)
def visit_for(gen: FunctionGenerator, node: ast.For) -> None:
    """`range` and `tl.range` become `scf.for`; `tl.static_range` is unrolled."""
    if node.orelse:
        gen.beyond_triton(node, triton_messages.FOR_ELSE)
    if not isinstance(node.target, ast.Name):
        raise gen.unsupported(node, triton_messages.LOOP_TARGET)
    iterator = gen.visit(node.iter)
    if isinstance(node.iter, ast.Call) and (read := [*node.iter.args, *node.iter.keywords]):
        gen.builder.loc = gen.location(read[-1])
    if isinstance(iterator, tl.static_range):
        unroll(gen, node, iterator)
    elif isinstance(iterator, tl.range):
        loop(gen, node, iterator)
    else:
        raise RuntimeError(loop_refusal(iterator, ast.unparse(node.target), ast.unparse(node.iter)))


def unroll(gen: FunctionGenerator, node: ast.For, iterator: Any) -> None:
    """Compile one copy of the body for each value."""
    assert isinstance(node.target, ast.Name)
    name = node.target.id
    inside = any(own_exits(node.body))
    gen.structured += inside  # `return` is a flag as `break` is

    def copies(values: Sequence[int]) -> None:
        for position, value in enumerate(values):
            gen.scope.locals[name] = tl.constexpr(value)
            visit_body(gen, node.body)
            ends = gen.terminated and CONTINUE not in gen.scope.locals
            if ends and position + 1 < len(values):
                note_dead_rounds(gen, node)
            gen.scope.locals.pop(CONTINUE, None)
            if ends:
                return
            gen.terminated = False
            if may_leave(gen):
                rest = values[position + 1 :]
                return go_on(gen, partial(copies, rest) if rest else None)

    copies(range(unwrap(iterator.start), unwrap(iterator.end), unwrap(iterator.step)))
    gen.structured -= inside
    if inside:
        gen.terminated = isinstance(gen.scope.locals.get(RETURN), tl.constexpr)
    if not gen.terminated:
        broken = gen.scope.locals.pop(BREAK, None) if inside else None
        visit_else(gen, node.orelse, {} if broken is None else {BREAK: broken})


def own_exits(statements: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """Every `break` and `continue` that belongs to the loop with this body."""
    for node in statements:
        if isinstance(node, ast.Break | ast.Continue):
            yield node
        inner = node.orelse if isinstance(node, ast.For | ast.While) else ast.iter_child_nodes(node)
        yield from own_exits(list(inner))


def loop(gen: FunctionGenerator, node: ast.For, iterator: Any) -> None:
    """An `scf.for`."""
    assert isinstance(node.target, ast.Name)
    name, loc = node.target.id, gen.builder.loc
    step = unwrap(iterator.step)
    if type(step) is int and step == 0:
        raise ValueError("the step of a loop must not be 0")
    reverse = isinstance(step, int) and step < 0
    bounds = [iterator.start, iterator.end, tl.constexpr(-step) if reverse else iterator.step]
    (lower, upper, stride), index_type = loop_bounds(gen, bounds)
    first, last = (upper, lower) if reverse else (lower, upper)
    lasts = id(node) in lasting_loops(gen.scope.tree)
    if lasts:
        gen.scope.locals[name] = value_before(gen, name, lower, index_type)
    carried = Carried(gen, node.body, name, lasts)
    block = Block()
    block.insert_arg(first.handle.type, 0, loc if reverse else name_loc(name, loc))
    carried.add_arguments(gen, block)
    outer = dict(gen.scope.locals)

    def body() -> None:
        index = tl.tensor(block.args[0], first.type)
        if reverse:
            offset = gen.semantic.sub(lower, index, False)
            gen.builder.loc = name_loc(name, loc)
            index = gen.semantic.add(offset, upper, False)
            gen.builder.loc = loc
        gen.scope.locals[name] = gen.semantic.cast(index, index_type, None)
        visit_body(gen, node.body)

    yields, stops, end = visit_region(gen, carried, block, block.args[1:], body)
    kept = [position for position, value in enumerate(yields) if value is not block.args[1 + position]]
    results = [yields[position] for position in kept]
    if stops:
        with gen.builder.saved():
            gen.builder.set_to_end(block)
            following = following_index(gen, tl.tensor(block.args[0], first.type), stride, last).handle
        results = [following, *results, *stops.handles]
    append(gen, block, make_yield(results, end))
    carried.drop_others(gen, kept, block, 1)
    initial = [carried.handles[position] for position in kept]
    attributes = loop_attributes(range_hints(iterator)) | gen.semantic.loop_hints(block)
    if stops.skips:
        attributes[SKIPS] = UNIT
    loop_loc = carried.location(kept, loc)
    if stops:
        op = counting_while(gen, [first.handle, *initial], last, stops, block, loop_loc)
        results, attributes = op.results[1:], attributes | {COUNTED: UNIT}
    else:
        op = make_for(first.handle, last.handle, stride.handle, initial, Region(block), loop_loc)
        results = op.results
    op.attributes.update(sorted(attributes.items()))
    gen.builder.insert(op)
    gen.scope.locals = outer
    carried.bind_results(gen, kept, results[: len(kept)])
    visit_else(gen, node.orelse, stops.given(results[len(kept) :]))


def value_before(gen: FunctionGenerator, name: str, start: Any, type: Any) -> Any:
    """Return what the variable of a loop is after no iteration: its value from before, or the start of the loop."""
    if (old := gen.scope.locals.get(name)) is None:
        return gen.semantic.cast(start, type, None)
    value = unwrap(old)
    if isinstance(value, int):
        fits = type.get_int_min_value() <= value <= type.get_int_max_value()
    elif isinstance(value, tl.tensor) and value.type.is_int():
        is_wider = type.primitive_bitwidth > value.type.primitive_bitwidth
        fits = is_wider and (type.is_int_signed() or value.type.is_int_unsigned())
    else:
        fits = False
    return gen.semantic.cast(gen.semantic.to_tensor(old), type, None) if fits else old


def following_index(gen: FunctionGenerator, index: Any, stride: Any, end: Any) -> Any:
    """``index + stride``, or `end` where it is not below that: the sum may not fit into the type."""
    semantic = gen.semantic
    following = semantic.add(index, stride, False)
    if constant_value(stride.handle) == 1:
        return following
    left = semantic.sub(end, index, False)
    unsigned = tl.uint64 if index.dtype is tl.int64 else tl.uint32
    is_below = semantic.less_than(semantic.cast(stride, unsigned, None), semantic.cast(left, unsigned, None))
    return semantic.where(is_below, following, end)


def counting_while(
    gen: FunctionGenerator, initial: list[Any], end: Any, stops: Stops, body: Block, loc: Any
) -> scf.WhileOp:
    """The loop whose `body` takes what it counts and what is carried, until it counted to `end` or one of `stops` is
    set."""
    given = [*initial, *stops.initial(gen)]
    before = Block()
    for handle in given:
        before.insert_arg(handle.type, len(before.args), loc)
    for handle in given[len(initial) :]:
        body.insert_arg(handle.type, len(body.args), loc)
    with gen.builder.saved():
        gen.builder.set_to_end(before)
        goes_on = gen.semantic.less_than(tl.tensor(before.args[0], end.type), end)
        no_exit = none_of(gen, stops.given(before.args[len(initial) :]))
        gen.builder.insert(make_condition(gen.semantic.and_(goes_on, no_exit).handle, before.args, loc))
    return make_while(given, [handle.type for handle in given], Region(before), Region(body), loc)


def visit_region(
    gen: FunctionGenerator, carried: Carried, block: Block, arguments: Sequence[Any], body: Callable[[], None]
) -> tuple[list[Any], Stops, Any]:
    """Visit code of a loop in `block`, starting from the carried `arguments`; the carried values at its end, how it
    ends the loop, and where that is."""
    with gen.builder.saved():
        gen.builder.set_to_end(block)
        gen.structured += 1
        carried.bind(gen, arguments)
        body()
        gen.structured -= 1
        stops = Stops(gen)
        end = gen.builder.loc
    return carried.yields(gen), stops, end


def loop_bounds(gen: FunctionGenerator, bounds: Sequence[Any]) -> tuple[list[Any], Any]:
    """Start, end and step in the type the loop counts in, and the type of its variable."""
    values = [bound_value(gen, bound) for bound in bounds]
    index_type = loop_index_type([value.type for value in values])
    # scf.for compares signed, so unsigned 32-bit bounds count in 64 bits
    counter = tl.int64 if index_type in (tl.uint32, tl.uint64) else index_type
    return [gen.semantic.cast(value, counter, None) for value in values], index_type


def bound_value(gen: FunctionGenerator, bound: Any) -> Any:
    """A bound as a scalar."""
    value = unwrap(bound)
    if type(value) is int:
        return gen.semantic.constant(value, constant_dtype(value), folds_later=True)
    return gen.semantic.to_tensor(bound)


def range_hints(iterator: Any) -> dict[str, Any]:
    """The options of a `tl.range` that were given."""
    values = {name: unwrap(getattr(iterator, name)) for name in HINTS}
    return {name: value for name, value in values.items() if value is not None and value is not False}


@visits(ast.While)
def visit_while(gen: FunctionGenerator, node: ast.While) -> None:
    """An `scf.while`: the condition in one region, the body in the other."""
    if node.orelse:
        gen.beyond_triton(node, triton_messages.WHILE_ELSE)
    loc = gen.builder.loc
    carried = Carried(gen, node.body)
    outer = dict(gen.scope.locals)
    before, after = Block(), Block()
    carried.add_arguments(gen, before)
    carried.add_arguments(gen, after)
    tests: list[tuple[Any, dict[str, Any]]] = []
    passed, _, _ = visit_region(gen, carried, before, before.args, lambda: tests.append(while_condition(gen, node)))
    ((test, hints),) = tests
    if not isinstance(test, tl.tensor) and not test:
        gen.scope.locals = outer
        visit_body(gen, node.orelse)
        return
    yields, stops, end = visit_region(gen, carried, after, after.args, lambda: visit_body(gen, node.body))
    if not isinstance(test, tl.tensor) and not stops:
        raise TypeError("this loop never ends: its condition is always true\nhelp: leave it with `break` or `return`")
    kept = [
        position
        for position, value in enumerate(yields)
        if value is not after.args[position] or passed[position] is not before.args[position]
    ]
    initial = [carried.handles[position] for position in kept]
    handed = [passed[position] for position in kept]
    append(gen, after, make_yield([yields[position] for position in kept] + stops.handles, end))
    if stops:
        extra = stops.initial(gen)
        for block in (before, after):
            for handle in extra:
                block.insert_arg(handle.type, len(block.args), loc)
        initial += extra
        flags = before.args[len(before.args) - len(extra) :]
        test, handed = unless_stopped(gen, before, test, dict(zip(kept, handed, strict=True)), stops.given(flags))
        handed += flags
    append(gen, before, make_condition(test.handle, handed, end_location(before, loc)))
    carried.drop_others(gen, kept, before, 0)
    carried.drop_others(gen, kept, after, 0)
    types = [handle.type for handle in initial]
    op = make_while(initial, types, Region(before), Region(after), carried.location(kept, loc))
    op.attributes.update(loop_attributes(hints))
    gen.builder.insert(op)
    gen.scope.locals = outer
    carried.bind_results(gen, kept, op.results[: len(kept)])
    visit_else(gen, node.orelse, stops.given(op.results[len(kept) :]))


def unless_stopped(
    gen: FunctionGenerator, before: Block, test: Any, handed: dict[int, Any], flags: Mapping[str, Any]
) -> tuple[Any, list[Any]]:
    """Return the condition of a loop and its values: the user's condition is not evaluated once a flag is set.

    `before` holds the code of the condition, `handed` are the carried values after it, by the argument they come from.
    """
    with gen.builder.saved():
        gen.builder.set_to_end(before)
        if not isinstance(test, tl.tensor):
            return none_of(gen, flags), list(handed.values())
        if all(op.name.startswith("arith.") and not re.search("div|rem", op.name) for op in before.ops):
            return gen.semantic.and_(test, none_of(gen, flags)), list(handed.values())
        evaluated, skipped, loc = Block(), Block(), gen.builder.loc
        for op in list(before.ops):
            op.detach()
            evaluated.add_op(op)
        changed = {position: value for position, value in handed.items() if value is not before.args[position]}
        no_exit, no = none_of(gen, flags), gen.semantic.constant(False, tl.int1)
        append(gen, evaluated, make_yield([test.handle, *changed.values()], loc))
        append(gen, skipped, make_yield([no.handle, *(before.args[position] for position in changed)], loc))
        types = [test.handle.type, *(value.type for value in changed.values())]
        op = gen.builder.insert(make_if(no_exit.handle, types, Region(evaluated), Region(skipped), loc))
        given = handed | dict(zip(changed, op.results[1:], strict=True))
        return tl.tensor(op.results[0], tl.int1), list(given.values())


def while_condition(gen: FunctionGenerator, node: ast.While) -> tuple[Any, dict[str, Any]]:
    """The test as a scalar int1, or as a bool where it is known, and the options of `tl.condition`."""
    test = gen.visit(node.test)
    hints: dict[str, Any] = {}
    if isinstance(test, tl.condition):
        if unwrap(test.disable_licm):
            hints["disable_licm"] = True
        test = test.condition
    if not isinstance(test, tl.tensor):
        gen.beyond_triton(node.test, triton_messages.KNOWN_CONDITION.format(unwrap(test)))
        return constant_condition(gen, node, test), hints
    if test.type.is_block():
        raise gen.unsupported(
            node.test,
            f"the condition of a while loop must be a scalar, this one is {describe_type(test.type)}"
            "\nhelp: reduce it first: `while tl.max(mask, 0):`, and mask the lanes that are done with tl.where",
        )
    return (gen.semantic.cast(test, tl.int1, None) if test.type != tl.int1 else test), hints
