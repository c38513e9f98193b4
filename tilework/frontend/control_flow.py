"""Branches, `match` statements and the exits of blocks.

An `if` with a condition that is known only at run time becomes an `scf.if` with merged variables:

    x = 1                                     %x = arith.constant 1
    if n > 2:                                 %x2 = scf.if %c -> (i32) {
        x = x + 1            ==>                scf.yield %x1
                                              } else { scf.yield %x }

A branch that contains a `return` becomes `cf` blocks instead, which are allowed only in the function's own region.

`match` takes values that are known at compile time: the matching case is compiled, the others are not visited.

    match MODE:
        case "sum" | "mean":
            ...
        case (rows, columns) if rows > columns:
            ...
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

from xdsl.ir import Block, Operation, Region

from tilework.frontend import FunctionGenerator, visits
from tilework.frontend.expressions import truth
from tilework.frontend.returns import note_dead, record
from tilework.frontend.scopes import (
    NUMBERS,
    Ambiguous,
    aggregates_in,
    as_constexpr,
    assigned_lines,
    describe,
    describe_type,
    flatten,
    is_same,
    is_storable,
    make_tuple,
    unflatten,
    unflatten_all,
    unwrap,
)
from tilework.frontend.semantic.building import ir_types
from tilework.ir.cf import make_br, make_cond_br
from tilework.ir.locations import name_loc, unknown
from tilework.ir.scf import make_if, make_yield
from tilework.ir.ub import poison
from tilework.language import core as tl
from tilework.language.typing import triton_messages
from tilework.light_dataclass import light_dataclass

# ---- Branches: the merge of two, and the exits of a block (`break`, `continue`, an early `return`).
#
# A variable that neither branch rebinds keeps its value. One that a branch rebinds must have one type in both, and
# becomes a result of the branch. One that only one branch defines is not visible afterwards.
#
#     for i in range(n):                  scf.while (%i, %x, %left) { condition(%i < %n and not %left) } do {
#         if x > 9:                           %c = %x > 9
#             break              ==>          %x1 = scf.if not %c { %x + i } else { %x }
#         x += i                              yield %i + 1, %x1, %c
#                                         }
#
# An exit sets a flag, a local whose name is no identifier; the rest of its block is compiled under `not flag`. A flag
# is a `constexpr` True where the block always exits, an i1 value elsewhere. A loop whose body sets neither the flag of
# `break` nor that of `return` is compiled as a loop without exits.


@light_dataclass(frozen=False)
class Branch:
    """One side of a branch: where its code is, and the variables at its end."""

    block: Block
    before: dict[str, Any]
    fields: list[tuple[Any, dict[str, Any]]]
    outer_block: Any
    last_block: Block = field(init=False)
    locals: dict[str, Any] = field(init=False)
    terminated: bool = False
    statements: Sequence[ast.stmt] = ()

    @classmethod
    def open(cls, gen: FunctionGenerator) -> "Branch":
        """Start inserting into a new block; inside the function's own region it joins that region."""
        block = Block()
        if gen.at_top_level:
            gen.body.add_block(block)
        branch = cls(block, dict(gen.scope.locals), snapshot(gen), gen.builder.block)
        gen.builder.set_to_end(block)
        return branch

    def close(self, gen: FunctionGenerator) -> None:
        """Record the variables, and restore scope, aggregates and insertion point."""
        assert gen.builder.block is not None
        self.last_block = gen.builder.block
        self.terminated = gen.terminated
        self.locals = gen.scope.locals
        changed = {id(instance) for instance, fields in self.fields if has_changed(instance, fields)}
        if changed:
            for name, value in self.locals.items():
                if any(id(instance) in changed for instance in aggregates_in(value)):
                    self.locals[name] = unflatten(value.type, flatten(value))
        for instance, fields in self.fields:
            vars(instance).update(fields)
        gen.terminated = False
        gen.scope.locals = dict(self.before)
        gen.builder.block = self.outer_block

    def resume(self, gen: FunctionGenerator) -> None:
        """Continue after this branch; the other one has returned."""
        gen.scope.locals = self.locals
        gen.builder.set_to_end(self.last_block)


def snapshot(gen: FunctionGenerator) -> list[tuple[Any, dict[str, Any]]]:
    """The fields of every aggregate in scope: methods may mutate them."""
    return [
        (instance, dict(vars(instance))) for value in gen.scope.locals.values() for instance in aggregates_in(value)
    ]


def has_changed(instance: Any, fields: dict[str, Any]) -> bool:
    """Return True if a field has been rebound since `fields` was taken."""
    return any(value is not fields[name] for name, value in vars(instance).items())


def append(gen: FunctionGenerator, block: Block, op: Operation) -> None:
    with gen.builder.saved():
        gen.builder.set_to_end(block)
        gen.builder.insert(op)


def end_location(block: Block, loc: Any) -> Any:
    """Return the location of the last op in `block`, which is that of its end; `loc` if there is none."""
    return loc if block.last_op is None else block.last_op.location


@light_dataclass(frozen=False)
class Merged:
    """The variables that two branches disagree on."""

    names: list[str] = field(default_factory=list)
    value_types: list[Any] = field(default_factory=list)
    then_handles: list[Any] = field(default_factory=list)
    else_handles: list[Any] = field(default_factory=list)
    leaf_names: list[str] = field(default_factory=list)
    unchanged: dict[str, Any] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)

    @property
    def types(self) -> list[Any]:
        """IR types of the results."""
        return [handle.type for handle in self.then_handles]

    def add(self, name: str, left: Any, right: Any) -> None:
        """Add a variable, whose values on both sides have the same type."""
        self.names.append(name)
        self.value_types.append(left.type)
        handles = flatten(left)
        self.then_handles += handles
        self.else_handles += flatten(right)
        self.leaf_names += [name] * len(handles)

    def rename(self, gen: FunctionGenerator, handles: Sequence[Any]) -> None:
        """Call the values at the end of a branch after the variables that they are, as Triton does: see
        `test_names_as_in_triton`."""
        for name, handle in zip(self.names, handles, strict=False):
            if name.isidentifier():
                gen.rename(handle, name)

    def bind(self, gen: FunctionGenerator, handles: Sequence[Any]) -> None:
        """Bind the variables to the results."""
        gen.scope.locals.update(self.unchanged)
        for name in self.dropped:
            del gen.scope.locals[name]
        gen.scope.locals.update(zip(self.names, unflatten_all(self.value_types, handles), strict=True))


def merge_branches(gen: FunctionGenerator, then: Branch, other: Branch) -> Merged:
    """Compare the variables at the ends of two branches; types must agree."""
    merged = Merged()
    for name in changed_names(then, other):
        left, right = then.locals[name], other.locals[name]
        if is_same(left, right):
            merged.unchanged[name] = left
        elif isinstance(unwrap(left), NUMBERS) and isinstance(unwrap(right), NUMBERS) and name in then.before:
            merged.dropped.append(name)  # the variable of an unrolled loop, the one constexpr that may change
        elif name in then.before and is_nothing(then.before[name]):
            merged.unchanged[name] = ambiguous(gen, name, then, other)
        elif name in then.before:
            check_rebound(gen, name, then, other)
            merged.add(name, left, right)
        else:
            check_same_type(gen, name, then, other)
            merged.add(name, left, right)
    return merged


def changed_names(then: Branch, other: Branch) -> list[str]:
    """Names bound at the end of both branches whose value is not the one from before."""
    before = then.before
    return [
        name
        for name, value in then.locals.items()
        if name in other.locals and name.isidentifier()
        if value is not before.get(name) or other.locals[name] is not before.get(name)
    ]


def assigned_at(gen: FunctionGenerator, statements: Sequence[ast.stmt], name: str) -> str:
    """A line for an error message that says where `name` is assigned."""
    lines = [line for statement in statements for line in assigned_lines(statement, name, gen.where)]
    return f"\n`{name}` is assigned in line {lines[-1]}" if lines else ""


def is_nothing(value: Any) -> bool:
    return unwrap(value) is None or isinstance(value, Ambiguous)


def ambiguous(gen: FunctionGenerator, name: str, then: Branch, other: Branch) -> Ambiguous:
    """A variable that was None before the `if`: after it no value says whether it still is."""
    assignments = "".join(assigned_at(gen, branch.statements, name) for branch in (then, other))
    return Ambiguous(
        f"`{name}` is None before an `if` that assigns it, and whether it does is known only at run time{assignments}"
        f"\nhelp: give `{name}` a run-time value before the `if`"
    )


def check_rebound(gen: FunctionGenerator, name: str, then: Branch, other: Branch) -> None:
    """A variable from before the `if` keeps its type, and compile-time values cannot be rebound."""
    before = then.before[name]
    for block, branch in (("then", then), ("else", other)):
        value, assignment = branch.locals[name], assigned_at(gen, branch.statements, name)
        if value is before:
            continue
        new = describe_type(value.type) if is_storable(value) else repr(unwrap(value))
        if not is_storable(before):
            raise TypeError(
                f"initial value for `{name}` is of type constexpr[{unwrap(before)!r}], but the {block} block redefines"
                f" it as {new}, and whether it does is known only at run time"
                f"{assignment}\nhelp: give `{name}` a run-time value before the `if`"
            )
        if not is_storable(value) or value.type != before.type:
            raise TypeError(
                f"initial value for `{name}` is of type {describe_type(before.type)}, but the {block} block redefines"
                f" it as {new}{assignment}\nhelp: cast the new value, or start with the type you need"
            )


def check_same_type(gen: FunctionGenerator, name: str, then: Branch, other: Branch) -> None:
    """A variable that both branches define has one type."""
    left, right = then.locals[name], other.locals[name]
    if is_storable(left) and is_storable(right) and left.type == right.type:
        return
    shown = [describe_type(v.type) if is_storable(v) else repr(unwrap(v)) for v in (left, right)]
    raise TypeError(
        f"Mismatched type for {name} between then block ({shown[0]}) and else block ({shown[1]})"
        f"{assigned_at(gen, then.statements, name)}{assigned_at(gen, other.statements, name)}"
        f"\nhelp: cast both to one type, or define `{name}` before the `if`"
    )


CONTINUE, BREAK, RETURN, RESULT = ".continue", ".break", ".return", ".result"
BROKEN = ".broken"  # `break` of a finished loop whose `else` is compiled; a `break` in there leaves an outer loop
EXITS = CONTINUE, BREAK, RETURN, BROKEN


@visits(ast.Break)
def visit_break(gen: FunctionGenerator, node: ast.Break) -> None:
    """End the innermost loop."""
    gen.beyond_triton(node, triton_messages.BREAK)
    leave(gen, BREAK)


@visits(ast.Continue)
def visit_continue(gen: FunctionGenerator, node: ast.Continue) -> None:
    """Go on with the next iteration of the innermost loop."""
    gen.beyond_triton(node, triton_messages.CONTINUE)
    leave(gen, CONTINUE)


def leave(gen: FunctionGenerator, kind: str) -> None:
    """Set the flag of an exit; the rest of this block is dead."""
    gen.scope.locals[kind] = tl.constexpr(True)
    gen.terminated = gen.leaves = True


def visit_body(gen: FunctionGenerator, statements: Sequence[ast.stmt]) -> None:
    """Compile the statements of one block; those after an unconditional exit are dead and not visited."""
    for position, statement in enumerate(statements):
        if gen.terminated:
            if not isinstance(statements[position - 1], ast.Return):
                note_dead(gen, statements[position:])
            return
        gen.visit(statement)
        if gen.leaves and may_leave(gen) and (gen.at_top_level or not gen.terminated):
            rest = statements[position + 1 :]
            return go_on(gen, partial(visit_body, gen, rest) if rest else None)


def may_leave(gen: FunctionGenerator) -> bool:
    return any(kind in gen.scope.locals for kind in EXITS)


def visit_branch(gen: FunctionGenerator, statements: Sequence[ast.stmt]) -> Branch:
    """Visit one side of an `if` in a block of its own."""
    branch = Branch.open(gen)
    branch.statements = statements
    visit_body(gen, statements)
    branch.close(gen)
    return branch


def go_on(gen: FunctionGenerator, rest: Callable[[], None] | None) -> None:
    """Compile the `rest` of a block for when none of the flags is set."""
    locals = gen.scope.locals
    if gen.at_top_level and RETURN in locals:
        return_where(gen, locals.pop(RETURN), locals.pop(RESULT, None))
    if rest is None or gen.terminated:
        return
    found = {kind: locals.pop(kind) for kind in EXITS if kind in locals}
    if not found:
        rest()
        return
    continues = none_of(gen, found)
    gen.structured += 1
    then = Branch.open(gen)
    rest()
    then.close(gen)
    other = Branch.open(gen)
    other.close(gen)
    gen.structured -= 1
    kept = {kind: flag for kind, flag in found.items() if kind not in then.locals}  # in `rest` they are not set
    other.locals.update({kind: flag for kind, flag in found.items() if kind not in kept})
    insert_if(gen, continues, then, other, True)
    gen.scope.locals.update(kept)
    gen.terminated = then.terminated and BROKEN not in found  # behind the `else` of a loop that was broken it goes on


def insert_if(gen: FunctionGenerator, test: Any, then: Branch, other: Branch, has_else: bool) -> None:
    """An `scf.if` of two branches; variables bound in them become its results."""
    loc = gen.builder.loc
    merged = merge_branches(gen, then, other)
    known = merge_exits(gen, merged, then, other, test) if gen.leaves else {}
    merged.rename(gen, merged.then_handles)
    append(gen, then.last_block, make_yield(merged.then_handles, end_location(then.last_block, loc)))
    append(gen, other.last_block, make_yield(merged.else_handles, end_location(other.last_block, loc)))
    merged.rename(gen, merged.else_handles)
    has_else = has_else or bool(merged.types)
    op = make_if(test.handle, merged.types, Region(then.block), Region(other.block) if has_else else None, loc)
    gen.builder.insert(op)
    merged.bind(gen, op.results)
    gen.scope.locals.update(known)


def merge_exits(gen: FunctionGenerator, merged: Merged, then: Branch, other: Branch, test: Any) -> dict[str, Any]:
    """Let `merged` have the flags that differ; those that the condition of the branches implies are returned."""
    known: dict[str, Any] = {}
    for kind in EXITS:
        left, right = then.locals.get(kind), other.locals.get(kind)
        if left is None and right is None:
            continue
        if is_same(left, right):
            known[kind] = left
        elif isinstance(left, tl.constexpr) and right is None:
            known[kind] = test
        elif isinstance(right, tl.constexpr) and left is None:
            known[kind] = gen.semantic.not_(test)
        else:
            merged.add(kind, as_value(gen, left), as_value(gen, right))
    left, right = then.locals.get(RESULT), other.locals.get(RESULT)
    if is_same(left, right):
        return known if left is None else {**known, RESULT: left}
    type = next(side for side in (left, right) if side is not None).type
    merged.add(RESULT, *(undefined(gen, type) if side is None else side for side in (left, right)))
    return known


def as_value(gen: FunctionGenerator, flag: Any) -> tl.tensor:
    """A flag as a run-time value; one that is not set is false."""
    return flag if isinstance(flag, tl.tensor) else gen.semantic.constant(flag is not None, tl.int1)


def undefined(gen: FunctionGenerator, type: Any) -> Any:
    """Return a poison value of a type."""
    loc = gen.builder.loc
    return unflatten(type, [gen.builder.insert(poison(leaf, loc)).results[0] for leaf in ir_types(type)])


def none_of(gen: FunctionGenerator, flags: Mapping[str, Any]) -> tl.tensor:
    """Return the condition that none of the flags is set."""
    first, *others = (as_value(gen, flags[kind]) for kind in EXITS if kind in flags)
    for flag in others:
        first = gen.semantic.or_(first, flag)
    return gen.semantic.not_(first)


def return_where(gen: FunctionGenerator, flag: Any, result: Any) -> None:
    """Return if `flag` is set; what follows goes on in a block of its own."""
    gen.terminated = isinstance(flag, tl.constexpr)
    value, loc = tl.constexpr(None) if result is None else result, gen.builder.loc
    if gen.terminated:
        record(gen, value, gen.builder.block, in_region=True)
        return
    before, leaving, staying = gen.builder.block, Block(), Block()
    assert before is not None
    gen.body.add_block(leaving)
    gen.body.add_block(staying)
    append(gen, before, make_cond_br(flag.handle, leaving, [], staying, [], loc))
    record(gen, value, leaving, in_region=True)
    gen.builder.set_to_end(staying)


class Stops:
    """The exits of a loop body: its flags of `break` and `return`, and the returned value."""

    def __init__(self, gen: FunctionGenerator) -> None:
        """Take the flags at the end of a body, where code is inserted."""
        locals = gen.scope.locals
        self.skips = locals.pop(CONTINUE, None) is not None
        gen.terminated = False
        self.values = {kind: as_value(gen, locals.pop(kind)) for kind in (BREAK, RETURN) if kind in locals}
        if RESULT in locals:
            self.values[RESULT] = locals.pop(RESULT)

    def __bool__(self) -> bool:
        return bool(self.values)

    @property
    def handles(self) -> list[Any]:
        """The values that the body yields."""
        return [handle for value in self.values.values() for handle in flatten(value)]

    def initial(self, gen: FunctionGenerator) -> list[Any]:
        """Return the values of the first iteration."""
        made = [
            undefined(gen, value.type) if kind == RESULT else as_value(gen, None) for kind, value in self.values.items()
        ]
        return [handle for value in made for handle in flatten(value)]

    def given(self, handles: Sequence[Any]) -> dict[str, Any]:
        """Return the flags and the returned value that `handles`, block arguments or results of the loop, hold."""
        values = unflatten_all((value.type for value in self.values.values()), handles)
        return dict(zip(self.values, values, strict=True))


def visit_else(gen: FunctionGenerator, statements: Sequence[ast.stmt], ends: Mapping[str, Any]) -> None:
    """Compile the `else` of a finished loop that no `break` has left; `ends` are its flags."""
    locals = gen.scope.locals
    locals.update({BROKEN if kind == BREAK else kind: value for kind, value in ends.items()})
    if statements:
        go_on(gen, partial(visit_body, gen, statements))
    gen.scope.locals.pop(BROKEN, None)


# ---- Branches and `match` statements.


@visits(ast.If)
def visit_if(gen: FunctionGenerator, node: ast.If) -> None:
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


def constant_condition(gen: FunctionGenerator, node: ast.If | ast.IfExp | ast.While, condition: Any) -> bool:
    """The truth of a compile-time condition; only bool, int and None have an unambiguous one."""
    value = unwrap(condition)
    if type(value) not in (bool, int, type(None)):
        raise gen.unsupported(
            node,
            f"`if` conditionals can only accept values of type {{bool, int, NoneType}}, not objects of type"
            f" {type(value).__name__}",
        )
    return bool(value)


def runtime_condition(gen: FunctionGenerator, node: ast.If | ast.IfExp, condition: Any) -> Any:
    """A scalar int1."""
    if condition.type.is_block():
        if condition.numel.value != 1:
            raise gen.unsupported(
                node, f"{triton_messages.AMBIGUOUS}: this condition is {describe_type(condition.type)}"
            )
        gen.warn(
            node,
            "If conditional called with multidimensional Tensor instead of scalar; please use "
            "`if (condition.item())` instead",
        )
        condition = gen.semantic.unsplat(condition)
    return gen.semantic.cast(condition, tl.int1, None) if condition.type != tl.int1 else condition


def contains_return(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Return) for inner in ast.walk(node))


def visit_structured_if(gen: FunctionGenerator, node: ast.If, test: Any) -> None:
    """An `scf.if`; variables bound in its branches become its results."""
    gen.structured += 1
    loc = gen.builder.loc
    then = visit_branch(gen, node.body)
    other = visit_branch(gen, node.orelse)
    gen.structured -= 1
    gen.builder.loc = loc
    insert_if(gen, test, then, other, bool(node.orelse))
    gen.terminated = then.terminated and other.terminated


def visit_if_with_return(gen: FunctionGenerator, node: ast.If, test: Any) -> None:
    """Build `cf` blocks and branches; the code after the `if` continues in the block that joins the live branches."""
    loc = gen.builder.loc
    before = gen.builder.block
    assert before is not None
    then = visit_branch(gen, node.body)
    other = visit_branch(gen, node.orelse)
    append(gen, before, make_cond_br(test.handle, then.block, [], other.block, [], end_location(before, loc)))
    live = [branch for branch in (then, other) if not branch.terminated]
    if not live:
        gen.terminated = True
    elif len(live) == 1:
        live[0].resume(gen)
    else:
        merged = merge_branches(gen, then, other)
        end = Block()
        for type, name in zip(merged.types, merged.leaf_names, strict=True):
            end.insert_arg(type, len(end.args), name_loc(name, unknown))
        gen.body.add_block(end)
        for branch, handles in ((then, merged.then_handles), (other, merged.else_handles)):
            append(gen, branch.last_block, make_br(end, handles, end_location(branch.last_block, loc)))
        gen.builder.set_to_end(end)
        merged.bind(gen, end.args)


@visits(ast.IfExp)
def visit_ternary(gen: FunctionGenerator, node: ast.IfExp) -> Any:
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
    append(gen, then.last_block, make_yield(results, end_location(then.last_block, loc)))
    append(gen, other.last_block, make_yield(values[1] + merged.else_handles, end_location(other.last_block, loc)))
    regions = Region(then.block), Region(other.block)
    op = gen.builder.insert(make_if(test.handle, [handle.type for handle in results], *regions, loc))
    count = len(values[0])
    merged.bind(gen, op.results[count:])
    return unflatten(types[0], op.results[:count]) if left is not None else None


@visits(ast.Match)
def visit_match(gen: FunctionGenerator, node: ast.Match) -> None:
    """The first case that fits."""
    gen.beyond_triton(node, triton_messages.MATCH)
    subject = gen.visit(node.subject)
    for case in node.cases:
        names: dict[str, Any] = {}
        if not fits(gen, case.pattern, subject, names):
            continue
        gen.scope.locals.update(names)
        if case.guard is None or is_true(gen, case.guard):
            visit_body(gen, case.body)
            return


def is_true(gen: FunctionGenerator, guard: ast.expr) -> bool:
    value = gen.visit(guard)
    if isinstance(value, tl.tensor):
        raise TypeError(
            "the guard of a `case` must be known at compile time\nhelp: use `if` for conditions of run-time values"
        )
    return truth(value)


def fits(gen: FunctionGenerator, pattern: ast.pattern, subject: Any, names: dict[str, Any]) -> bool:
    """Return True if a value has the form of a pattern; `names` gets what the pattern names."""
    match pattern:
        case ast.MatchAs(pattern=inner, name=name):
            if inner is not None and not fits(gen, inner, subject, names):
                return False
            if name is not None:
                names[name] = subject
            return True
        case ast.MatchOr(patterns=patterns):
            return any(fits(gen, inner, subject, names) for inner in patterns)
        case ast.MatchSequence(patterns=patterns):
            return fits_sequence(gen, patterns, subject, names)
        case ast.MatchSingleton(value=value):
            return plain(subject) is value
        case ast.MatchValue(value=value):
            return bool(plain(subject) == unwrap(gen.visit(value)))
        case _:
            raise gen.unsupported(pattern, triton_messages.PATTERN.format(ast.unparse(pattern)))


def plain(subject: Any) -> Any:
    """A value that can be compared."""
    if isinstance(subject, tl.tensor):
        raise TypeError(
            f"`match` needs a compile-time value, this one is {describe(subject)}"
            "\nhelp: use `if` for conditions of run-time values, or make it a tl.constexpr"
        )
    return unwrap(subject)


def fits_sequence(gen: FunctionGenerator, patterns: list[ast.pattern], subject: Any, names: dict[str, Any]) -> bool:
    """A sequence of as many items; one `*rest` takes those in the middle."""
    value = plain(subject)
    items = value.values if isinstance(value, tl.tuple) else value
    if not isinstance(items, list | tuple):
        return False
    items = [as_constexpr(item) for item in items]
    star = next((at for at, inner in enumerate(patterns) if isinstance(inner, ast.MatchStar)), None)
    if star is None:
        return len(items) == len(patterns) and all(
            fits(gen, inner, item, names) for inner, item in zip(patterns, items, strict=True)
        )
    after = len(patterns) - star - 1
    if len(items) < star + after:
        return False
    rest, starred = items[star : len(items) - after], patterns[star]
    if isinstance(starred, ast.MatchStar) and starred.name is not None:
        names[starred.name] = make_tuple(rest, None)
    others = [*patterns[:star], *patterns[star + 1 :]]
    outer = items[:star] + items[len(items) - after :]
    return all(fits(gen, inner, item, names) for inner, item in zip(others, outer, strict=True))
