"""Leaving a block early: `break` and `continue`, and `return` where the function's own region is not.

    for i in range(n):                  scf.while (%i, %x, %left) { condition(%i < %n and not %left) } do {
        if x > 9:                           %c = %x > 9
            break              ==>          %x1 = scf.if not %c { %x + i } else { %x }
        x += i                              yield %i + 1, %x1, %c
                                        }

A statement that may leave sets a flag, which lies beside the variables under a name that is none; what follows it in
its block is compiled under `not flag`. The flags are a `constexpr` True where a block surely leaves, values of one bit
elsewhere. A loop whose body sets neither that of `break` nor that of `return` is the loop it would be without them.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from xdsl.ir import Block, Region

from tilework.frontend.known_values import flatten, is_same, unflatten, unflatten_all
from tilework.frontend.merge import Branch, Merged, append, end_location, merge_branches
from tilework.frontend.semantic.building import ir_types
from tilework.frontend.visitors import FunctionGenerator, visits
from tilework.ir import tt
from tilework.ir.cf import make_cond_br
from tilework.ir.scf import make_if, make_yield
from tilework.ir.ub import poison
from tilework.language import core as tl
from tilework.language.typing import triton_messages

CONTINUE, BREAK, RETURN, RESULT = ".continue", ".break", ".return", ".result"
BROKEN = ".broken"  # of a loop before this, whose `else` is compiled: a `break` in there is another loop's
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
    """The statements of one block; what follows one that surely leaves it is dead and not looked at."""
    for position, statement in enumerate(statements):
        if gen.terminated:
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
    """Some value of a type."""
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
    handles, loc = flatten(result) if result is not None else [], gen.builder.loc
    if gen.terminated:
        gen.builder.insert(tt.ReturnOp.make(handles, loc))
        return
    before, leaving, staying = gen.builder.block, Block(), Block()
    assert before is not None
    gen.body.add_block(leaving)
    gen.body.add_block(staying)
    append(gen, before, make_cond_br(flag.handle, leaving, [], staying, [], loc))
    append(gen, leaving, tt.ReturnOp.make(handles, loc))
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
        """The same as arguments of a block or results of the loop."""
        values = unflatten_all((value.type for value in self.values.values()), handles)
        return dict(zip(self.values, values, strict=True))


def visit_else(gen: FunctionGenerator, statements: Sequence[ast.stmt], ends: Mapping[str, Any]) -> None:
    """Compile the `else` of a finished loop that no `break` has left; `ends` are its flags."""
    locals = gen.scope.locals
    locals.update({BROKEN if kind == BREAK else kind: value for kind, value in ends.items()})
    if statements:
        go_on(gen, partial(visit_body, gen, statements))
    gen.scope.locals.pop(BROKEN, None)
