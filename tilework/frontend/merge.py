"""The merge of two branches: the variables that differ, and their values afterwards.

A variable that neither branch rebinds keeps its value. One that a branch rebinds must have one type in both, and
becomes a result of the branch. One that only one branch defines is not visible afterwards.
"""

import ast
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from xdsl.ir import Block, Operation

from tilework.frontend.known_values import (
    NUMBERS,
    aggregates_in,
    describe_type,
    flatten,
    is_same,
    is_storable,
    unflatten,
    unflatten_all,
    unwrap,
)
from tilework.frontend.scopes import Ambiguous, assigned_lines
from tilework.frontend.visitors import FunctionGenerator
from tilework.light_dataclass import light_dataclass


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
        """Record the variables, and put scope, aggregates and insertion point back."""
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
        """Go on after this branch as if the other did not exist (it returned)."""
        gen.scope.locals = self.locals
        gen.builder.set_to_end(self.last_block)


def snapshot(gen: FunctionGenerator) -> list[tuple[Any, dict[str, Any]]]:
    """The fields of every aggregate in scope: methods may mutate them."""
    return [
        (instance, dict(vars(instance))) for value in gen.scope.locals.values() for instance in aggregates_in(value)
    ]


def has_changed(instance: Any, fields: dict[str, Any]) -> bool:
    """Some field is another value than it was."""
    return any(value is not fields[name] for name, value in vars(instance).items())


def append(gen: FunctionGenerator, block: Block, op: Operation) -> None:
    """Put `op` at the end of `block`."""
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
        """One variable with a value of the same type on both sides."""
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
                " it as"
                f" {new}, and whether it does is known only at run time"
                f"{assignment}\nhelp: give `{name}` a run-time value before the `if`"
            )
        if not is_storable(value) or value.type != before.type:
            raise TypeError(
                f"initial value for `{name}` is of type {describe_type(before.type)}, but the {block} block redefines"
                " it"
                f" as {new}{assignment}\nhelp: cast the new value, or start with the type you need"
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
