"""Where two branches meet: which variables differ, and what they are afterwards.

A variable that both branches leave alone stays. One that a branch rebinds must have the same type in both, and becomes
a result of the branch. One that only one branch defines is not visible afterwards.
"""

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from xdsl.ir import Block

from tilework.frontend.statements import visit_body
from tilework.frontend.values import describe_type, flatten, is_storable, unflatten, unwrap

if TYPE_CHECKING:
    from tilework.frontend.generator import FunctionGenerator


@dataclass
class Branch:
    """One side of a branch: where its code is, and the variables at its end."""

    block: Block
    before: dict[str, Any]
    fields: list[tuple[Any, dict[str, Any]]]
    outer_block: Any
    outer_before: Any
    last_block: Block = field(init=False)
    locals: dict[str, Any] = field(init=False)
    terminated: bool = False

    @classmethod
    def open(cls, gen: "FunctionGenerator") -> "Branch":
        """Start inserting into a new block; inside the function's own region it joins that region."""
        block = Block()
        if gen.at_top_level:
            gen.body.add_block(block)
        branch = cls(block, dict(gen.scope.locals), gen.snapshot(), gen.builder.block, gen.builder.before)
        gen.builder.set_to_end(block)
        return branch

    def close(self, gen: "FunctionGenerator") -> None:
        """Record the variables, and put scope, aggregates and insertion point back."""
        self.last_block = gen.builder.block
        self.terminated = gen.terminated
        self.locals = gen.scope.locals
        for name, value in self.before.items():
            for instance, fields in self.fields:
                if instance is value and vars(instance) != fields and self.locals.get(name) is value:
                    self.locals[name] = copy.copy(instance)
        for instance, fields in self.fields:
            vars(instance).clear()
            vars(instance).update(fields)
        gen.terminated = False
        gen.scope.locals = dict(self.before)
        gen.builder.block, gen.builder.before = self.outer_block, self.outer_before

    def resume(self, gen: "FunctionGenerator") -> None:
        """Go on after this branch as if the other did not exist (it returned)."""
        gen.scope.locals = self.locals
        gen.builder.set_to_end(self.last_block)


def visit_branch(gen: "FunctionGenerator", statements: Sequence[ast.stmt]) -> Branch:
    """Visit one side of an `if` in a block of its own."""
    branch = Branch.open(gen)
    visit_body(gen, statements)
    branch.close(gen)
    return branch


@dataclass
class Merged:
    """The variables that two branches disagree on."""

    names: list[str] = field(default_factory=list)
    value_types: list[Any] = field(default_factory=list)
    then_handles: list[Any] = field(default_factory=list)
    else_handles: list[Any] = field(default_factory=list)
    leaf_names: list[str] = field(default_factory=list)
    unchanged: dict[str, Any] = field(default_factory=dict)

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

    def bind(self, gen: "FunctionGenerator", handles: Sequence[Any]) -> None:
        """Bind the variables to the results."""
        gen.scope.locals.update(self.unchanged)
        cursor = 0
        for name, type in zip(self.names, self.value_types, strict=True):
            count = self.leaf_names.count(name)
            gen.scope.locals[name] = unflatten(type, list(handles)[cursor : cursor + count])
            cursor += count


def merge_branches(gen: "FunctionGenerator", then: Branch, other: Branch) -> Merged:
    """Compare the variables at the ends of two branches; types must agree."""
    merged = Merged()
    for name in changed_names(then, other):
        left, right = then.locals[name], other.locals[name]
        if left is right:
            merged.unchanged[name] = left
        elif name in then.before:
            check_rebound(name, then.before[name], left, right)
            merged.add(name, left, right)
        elif not is_storable(left) and not is_storable(right) and unwrap(left) == unwrap(right):
            merged.unchanged[name] = left
        else:
            check_same_type(name, left, right)
            merged.add(name, left, right)
    return merged


def changed_names(then: Branch, other: Branch) -> list[str]:
    """Names bound at the end of both branches whose value is not the one from before."""
    before = then.before
    return [
        name
        for name, value in then.locals.items()
        if name in other.locals and (value is not before.get(name) or other.locals[name] is not before.get(name))
    ]


def check_rebound(name: str, before: Any, left: Any, right: Any) -> None:
    """A variable from before the `if` keeps its type, and compile-time values cannot be rebound."""
    for block, value in (("then", left), ("else", right)):
        if value is before:
            continue
        if not is_storable(before):
            kind = "None" if unwrap(before) is None else f"{unwrap(before)!r}, a compile-time value"
            raise TypeError(
                f"`{name}` is {kind}, and cannot be re-assigned where the condition is known only at run time"
                f"\nhelp: give `{name}` a run-time value before the `if`"
            )
        if not is_storable(value) or value.type != before.type:
            new = describe_type(value.type) if is_storable(value) else repr(unwrap(value))
            raise TypeError(
                f"initial value for `{name}` is of type {describe_type(before.type)}, but the {block} block redefines it"
                f" as {new}\nhelp: cast the new value, or start with the type you need"
            )


def check_same_type(name: str, left: Any, right: Any) -> None:
    """A variable that both branches define has one type."""
    if is_storable(left) and is_storable(right) and left.type == right.type:
        return
    shown = [describe_type(v.type) if is_storable(v) else repr(unwrap(v)) for v in (left, right)]
    raise TypeError(
        f"Mismatched type for {name} between then block ({shown[0]}) and else block ({shown[1]})"
        f"\nhelp: cast both to one type, or define `{name}` before the `if`"
    )
