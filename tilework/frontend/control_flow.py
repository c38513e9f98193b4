"""Branches and loops whose conditions are known only at run time become `scf` regions with merged variables.

    x = 1                                     %x = arith.constant 1
    if n > 2:                                 %x2 = scf.if %c -> (i32) {
        x = x + 1            ==>                scf.yield %x1
                                              } else { scf.yield %x }

Each body is visited once. Which variables a loop carries is read off the syntax (names assigned in the body that exist
before it) plus every aggregate in scope, whose methods may change it; carried values that turn out unchanged are dropped
again. The variable of a `for` is local to its iteration, so it is never carried. A branch that contains a `return`
becomes `cf` blocks instead, which only the function's own region may hold.
"""

import ast
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.ir import Block, Operation, Region

from tilework.frontend.known_values import (
    contains_aggregate,
    describe_type,
    flatten,
    is_same,
    is_storable,
    unflatten,
    unwrap,
)
from tilework.frontend.merge import Branch, assigned_at, merge_branches, visit_branch
from tilework.frontend.scopes import finished_index
from tilework.frontend.statements import visit_body
from tilework.frontend.visitors import visits
from tilework.ir.hints import loop_attributes
from tilework.ir.locations import name_loc
from tilework.ir.scf_ext import make_br, make_cond_br, make_condition, make_for, make_if, make_while, make_yield
from tilework.language import core as tl
from tilework.language.typing.python_names import loop_index_type

if TYPE_CHECKING:
    from tilework.frontend.generator import FunctionGenerator

HINTS = "num_stages loop_unroll_factor disallow_acc_multi_buffer flatten warp_specialize disable_licm".split()

# -- if ------------------------------------------------------------------------------------------------------------


@visits(ast.If)
def visit_if(gen: "FunctionGenerator", node: ast.If) -> None:
    """Compile-time conditions choose a branch now; run-time ones build both."""
    condition = gen.visit(node.test)
    if not isinstance(condition, tl.tensor):
        visit_body(gen, node.body if constant_condition(gen, node, condition) else node.orelse)
        return
    test = runtime_condition(gen, node, condition)
    if gen.at_top_level and contains_return(node):
        visit_if_with_return(gen, node, test)
    else:
        visit_structured_if(gen, node, test)


def constant_condition(gen: "FunctionGenerator", node: ast.If | ast.IfExp, condition: Any) -> bool:
    """The truth of a compile-time condition; only bool, int and None have an unambiguous one."""
    value = unwrap(condition)
    if type(value) not in (bool, int, type(None)):
        raise gen.unsupported(
            node,
            f"`if` conditionals can only accept values of type {{bool, int, NoneType}}, not objects of type"
            f" {type(value).__name__}",
        )
    return bool(value)


def runtime_condition(gen: "FunctionGenerator", node: ast.If | ast.IfExp, condition: Any) -> Any:
    """A scalar int1."""
    if condition.type.is_block():
        if condition.numel.value != 1:
            raise gen.unsupported(
                node, f"the truth value of a block is ambiguous: this condition is {describe_type(condition.type)}"
            )
        warnings.warn(
            "If conditional called with multidimensional Tensor instead of scalar; please use "
            f"`if (condition.item())` instead ({gen.where.file}:{gen.where.first_line + node.lineno - 1})",
            UserWarning,
            stacklevel=2,
        )
        condition = gen.semantic.unsplat(condition)
    return gen.semantic.cast(condition, tl.int1, None) if condition.type != tl.int1 else condition


def contains_return(node: ast.AST) -> bool:
    """A return somewhere inside."""
    return any(isinstance(inner, ast.Return) for inner in ast.walk(node))


def visit_structured_if(gen: "FunctionGenerator", node: ast.If, test: Any) -> None:
    """An `scf.if`; variables bound in its branches become its results."""
    loc = gen.builder.loc
    gen.structured += 1
    then = visit_branch(gen, node.body)
    other = visit_branch(gen, node.orelse)
    gen.structured -= 1
    merged = merge_branches(gen, then, other)
    append(gen, then.last_block, make_yield(merged.then_handles, loc))
    append(gen, other.last_block, make_yield(merged.else_handles, loc))
    has_else = bool(node.orelse) or bool(merged.types)
    op = make_if(test.handle, merged.types, Region(then.block), Region(other.block) if has_else else None, loc)
    gen.builder.insert(op)
    merged.bind(gen, op.results)


def visit_if_with_return(gen: "FunctionGenerator", node: ast.If, test: Any) -> None:
    """Blocks and branches; what follows the `if` goes on in the block where the live branches meet."""
    loc = gen.builder.loc
    before = gen.builder.block
    assert before is not None
    then = visit_branch(gen, node.body)
    other = visit_branch(gen, node.orelse)
    append(gen, before, make_cond_br(test.handle, then.block, [], other.block, [], loc))
    live = [branch for branch in (then, other) if not branch.terminated]
    if not live:
        gen.terminated = True
    elif len(live) == 1:
        live[0].resume(gen)
    else:
        merged = merge_branches(gen, then, other)
        end = Block()
        for type, name in zip(merged.types, merged.leaf_names, strict=True):
            end.insert_arg(type, len(end.args), name_loc(name, loc))
        gen.body.add_block(end)
        append(gen, then.last_block, make_br(end, merged.then_handles, loc))
        append(gen, other.last_block, make_br(end, merged.else_handles, loc))
        gen.builder.set_to_end(end)
        merged.bind(gen, end.args)


@visits(ast.IfExp)
def visit_ternary(gen: "FunctionGenerator", node: ast.IfExp) -> Any:
    """``a if c else b``: the taken side at compile time, else an `scf.if` with one value."""
    condition = gen.visit(node.test)
    if not isinstance(condition, tl.tensor):
        return gen.visit(node.body if constant_condition(gen, node, condition) else node.orelse)
    test = runtime_condition(gen, node, condition)
    loc = gen.builder.loc
    sides: list[tuple[Branch, Any]] = []
    gen.structured += 1
    for part in (node.body, node.orelse):
        branch = Branch.open(gen)
        value = gen.visit(part)
        if unwrap(value) is None:
            value = None
        elif not isinstance(value, tl.tuple):
            value = gen.semantic.to_tensor(value)
        branch.close(gen)
        sides.append((branch, value))
    gen.structured -= 1
    (then, left), (other, right) = sides
    if isinstance(left, tl.tuple) or isinstance(right, tl.tuple):
        raise gen.unsupported(node, "a ternary expression with a run-time condition cannot choose between tuples")
    types = [None if side is None else side.type for side in (left, right)]
    if types[0] != types[1]:
        shown = [describe_type(type) if type is not None else "nothing" for type in types]
        raise TypeError(
            f"Ternary expression with dynamic condition has inconsistent types {shown[0]} and {shown[1]}"
            "\nhelp: cast both sides to the same type, or use tl.where"
        )
    merged = merge_branches(gen, then, other)  # a method called on one side may have changed an aggregate
    values = [flatten(side) if side is not None else [] for side in (left, right)]
    results = values[0] + merged.then_handles
    append(gen, then.last_block, make_yield(results, loc))
    append(gen, other.last_block, make_yield(values[1] + merged.else_handles, loc))
    regions = Region(then.block), Region(other.block)
    op = gen.builder.insert(make_if(test.handle, [handle.type for handle in results], *regions, loc))
    count = len(values[0])
    merged.bind(gen, op.results[count:])
    return unflatten(types[0], op.results[:count]) if left is not None else None


# -- loops ---------------------------------------------------------------------------------------------------------


class Carried:
    """The variables that a loop hands from one iteration to the next; its own variable `index` is none of them."""

    def __init__(self, gen: "FunctionGenerator", body: Sequence[ast.stmt], index: str | None = None) -> None:
        self.body = body
        assigned = assigned_names(body)
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
        """All initial values, flat."""
        return [handle for handles in self.initial for handle in handles]

    @property
    def leaf_names(self) -> list[str]:
        """The variable that each handle belongs to."""
        return [name for name, handles in zip(self.names, self.initial, strict=True) for _ in handles]

    def add_arguments(self, block: Block, loc: Any) -> None:
        """One block argument per handle."""
        for handle, name in zip(self.handles, self.leaf_names, strict=True):
            block.insert_arg(handle.type, len(block.args), name_loc(name, loc))

    def bind(self, gen: "FunctionGenerator", handles: Sequence[Any]) -> None:
        """Let the variables be `handles` from here on."""
        cursor = 0
        for name, type, old in zip(self.names, self.types, self.initial, strict=True):
            gen.scope.locals[name] = unflatten(type, handles[cursor : cursor + len(old)])
            cursor += len(old)

    def bind_results(self, gen: "FunctionGenerator", kept: Sequence[int], results: Sequence[Any]) -> None:
        """After the loop: what it carried are its results, the rest is what it was."""
        handles = list(self.handles)
        for position, result in zip(kept, results, strict=True):
            handles[position] = result
        self.bind(gen, handles)

    def drop_others(self, gen: "FunctionGenerator", kept: Sequence[int], block: Block, offset: int) -> None:
        """A value that comes back unchanged is no loop variable: remove its argument of `block`, and use the value."""
        initial = self.handles
        for position in reversed(range(len(initial))):
            if position not in kept:
                argument = block.args[offset + position]
                argument.replace_all_uses_with(initial[position])
                gen.semantic.move_hints(argument, initial[position])
                block.erase_arg(argument)

    def location(self, kept: Sequence[int], loc: Any) -> Any:
        """The place of the loop, under the name of its last result."""
        return name_loc(self.leaf_names[kept[-1]], loc) if kept else loc

    def yields(self, gen: "FunctionGenerator") -> list[Any]:
        """The values at the end of the body, after checking that every type stayed what it was."""
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
                    f"{assigned_at(gen, self.body, name)}\nhelp: start with the type it has at the end, or cast: `{name}.to(...)`"
                )
            handles += flatten(value)
        return handles


def assigned_names(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Every name that is assigned somewhere in `body` (loop variables are not), remembered on its first statement."""
    cached = getattr(body[0], "_assigned", None)
    if cached is None:
        nodes = [inner for statement in body for inner in ast.walk(statement)]
        indices = {id(inner.target) for inner in nodes if isinstance(inner, ast.For)}
        cached = frozenset(
            inner.id
            for inner in nodes
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and id(inner) not in indices
        )
        body[0]._assigned = cached  # pyright: ignore[reportAttributeAccessIssue]
    return cached


@visits(ast.For)
def visit_for(gen: "FunctionGenerator", node: ast.For) -> None:
    """`range` and `tl.range` become `scf.for`; `tl.static_range` is unrolled."""
    if node.orelse:
        raise gen.unsupported(node, "`for ... else` is not supported")
    if not isinstance(node.target, ast.Name):
        raise gen.unsupported(node, "the target of a for loop must be one name")
    iterator = gen.visit(node.iter)
    if isinstance(iterator, tl.static_range):
        unroll(gen, node, iterator)
    elif isinstance(iterator, tl.range):
        loop(gen, node, iterator)
    else:
        raise RuntimeError("Only `range` and `static_range` iterators are currently supported")


def unroll(gen: "FunctionGenerator", node: ast.For, iterator: Any) -> None:
    """One copy of the body per value."""
    assert isinstance(node.target, ast.Name)
    for value in range(unwrap(iterator.start), unwrap(iterator.end), unwrap(iterator.step)):
        if gen.terminated:
            return
        gen.scope.locals[node.target.id] = tl.constexpr(value)
        visit_body(gen, node.body)


def loop(gen: "FunctionGenerator", node: ast.For, iterator: Any) -> None:
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
    carried = Carried(gen, node.body, name)
    block = Block()
    block.insert_arg(first.handle.type, 0, loc if reverse else name_loc(name, loc))
    carried.add_arguments(block, loc)
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

    yields = visit_region(gen, carried, block, block.args[1:], body)
    kept = [position for position, value in enumerate(yields) if value is not block.args[1 + position]]
    append(gen, block, make_yield([yields[position] for position in kept], loc))
    carried.drop_others(gen, kept, block, 1)
    attributes = loop_attributes(range_hints(iterator)) | gen.semantic.loop_hints(block)
    op = make_for(
        first.handle,
        last.handle,
        stride.handle,
        [carried.handles[position] for position in kept],
        Region(block),
        carried.location(kept, loc),
        dict(sorted(attributes.items())),
    )
    gen.builder.insert(op)
    gen.scope.locals = outer
    gen.scope.locals[finished_index(name)] = gen.semantic.cast(lower, index_type, None)
    carried.bind_results(gen, kept, op.results)


def visit_region(
    gen: "FunctionGenerator", carried: Carried, block: Block, arguments: Sequence[Any], body: Callable[[], None]
) -> list[Any]:
    """Visit code of a loop in `block`, starting from the carried `arguments`; returns the carried values at its end."""
    with gen.builder.saved():
        gen.builder.set_to_end(block)
        gen.structured += 1
        carried.bind(gen, arguments)
        body()
        gen.structured -= 1
    return carried.yields(gen)


def append(gen: "FunctionGenerator", block: Block, op: Operation) -> None:
    """Put `op` at the end of `block`."""
    with gen.builder.saved():
        gen.builder.set_to_end(block)
        gen.builder.insert(op)


def loop_bounds(gen: "FunctionGenerator", bounds: Sequence[Any]) -> tuple[list[Any], Any]:
    """Start, end and step in the type the loop counts in, and the type of its variable."""
    values = [gen.semantic.to_tensor(bound) for bound in bounds]
    index_type = loop_index_type([value.type for value in values])
    # scf.for compares signed, so unsigned 32-bit bounds count in 64 bits
    counter = tl.int64 if index_type in (tl.uint32, tl.uint64) else index_type
    return [gen.semantic.cast(value, counter, None) for value in values], index_type


def range_hints(iterator: Any) -> dict[str, Any]:
    """The options of a `tl.range` that were given."""
    values = {name: unwrap(getattr(iterator, name)) for name in HINTS}
    return {name: value for name, value in values.items() if value is not None and value is not False}


@visits(ast.While)
def visit_while(gen: "FunctionGenerator", node: ast.While) -> None:
    """An `scf.while`: the condition in one region, the body in the other."""
    if node.orelse:
        raise gen.unsupported(node, "`while ... else` is not supported")
    loc = gen.builder.loc
    carried = Carried(gen, node.body)
    outer = dict(gen.scope.locals)
    before, after = Block(), Block()
    carried.add_arguments(before, loc)
    carried.add_arguments(after, loc)
    tests: list[tuple[Any, dict[str, Any]]] = []
    passed = visit_region(gen, carried, before, before.args, lambda: tests.append(while_condition(gen, node)))
    ((test, hints),) = tests
    yields = visit_region(gen, carried, after, after.args, lambda: visit_body(gen, node.body))
    kept = [
        position
        for position, value in enumerate(yields)
        if value is not after.args[position] or passed[position] is not before.args[position]
    ]
    append(gen, before, make_condition(test.handle, [passed[position] for position in kept], loc))
    append(gen, after, make_yield([yields[position] for position in kept], loc))
    carried.drop_others(gen, kept, before, 0)
    carried.drop_others(gen, kept, after, 0)
    initial = [carried.handles[position] for position in kept]
    types = [handle.type for handle in initial]
    op = make_while(initial, types, Region(before), Region(after), carried.location(kept, loc))
    op.attributes.update(loop_attributes(hints))
    gen.builder.insert(op)
    gen.scope.locals = outer
    carried.bind_results(gen, kept, op.results)


def while_condition(gen: "FunctionGenerator", node: ast.While) -> tuple[Any, dict[str, Any]]:
    """The test as a scalar int1, and the options of `tl.condition`."""
    test = gen.visit(node.test)
    hints: dict[str, Any] = {}
    if isinstance(test, tl.condition):
        if unwrap(test.disable_licm):
            hints["disable_licm"] = True
        test = test.condition
    if not isinstance(test, tl.tensor):
        raise TypeError(
            f"the condition of a while loop must be a run-time value, this one is {unwrap(test)!r}"
            "\nhelp: write the condition here (there is no `break`), or use tl.static_range for a loop known at compile time"
        )
    if test.type.is_block():
        raise gen.unsupported(
            node.test,
            f"the condition of a while loop must be a scalar, this one is {describe_type(test.type)}"
            "\nhelp: reduce it first: `while tl.max(mask, 0):`, and mask the lanes that are done with tl.where",
        )
    return (gen.semantic.cast(test, tl.int1, None) if test.type != tl.int1 else test), hints
