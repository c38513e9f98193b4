"""Statements without control flow: assignments, return, assert, with, expression statements.

A plain assignment converts compile-time ints and floats to run-time scalars (`x = 3` makes an int32);
`x: tl.constexpr = 3` keeps them. Nothing else is converted.
"""

import ast
from collections.abc import Sequence
from typing import Any

from tilework.errors import warn_returned
from tilework.frontend import FunctionGenerator, visits
from tilework.frontend.control_flow import RESULT, RETURN, leave, visit_body
from tilework.frontend.expressions import apply_binary
from tilework.frontend.returns import record, returned_value
from tilework.frontend.scopes import (
    NUMBERS,
    as_constexpr,
    describe_type,
    is_storable,
    make_tuple,
    unwrap,
)
from tilework.language import core as tl
from tilework.language.typing import triton_messages
from tilework.language.typing.indexing import NOT_AN_ARRAY, about_parts, is_one_pointer
from tilework.language.typing.python_names import check_assigned, kept_items, names_constexpr, use_as_constant
from tilework.process.triton_version import follows


@visits(ast.Pass)
def visit_pass(gen: FunctionGenerator, node: ast.Pass) -> None:
    """Compile `pass` to nothing."""


@visits(ast.Expr)
def visit_expression_statement(gen: FunctionGenerator, node: ast.Expr) -> None:
    """A call for its effect; a docstring is no call."""
    if isinstance(node.value, ast.Constant):
        return
    gen.statement = node.value
    gen.visit(node.value)


@visits(ast.Assign)
def visit_assign(gen: FunctionGenerator, node: ast.Assign) -> None:
    """``x = value``, ``x = y = value``, ``a, b = value`` or ``a, *rest = value``."""
    first, *others = node.targets
    if others:
        gen.beyond_triton(node, triton_messages.ASSIGNMENTS)
    value = decay(gen, visit_named(gen, first, node.value))
    for target in node.targets:
        assign(gen, target, value)


def visit_named(gen: FunctionGenerator, target: ast.expr, value: ast.expr) -> Any:
    """Visit the right side of an assignment; its ops are named after the variable."""
    outer = gen.naming
    gen.naming = target.id if isinstance(target, ast.Name) else None
    try:
        return gen.visit(value)
    finally:
        gen.naming = outer


def assign(gen: FunctionGenerator, target: ast.expr, value: Any) -> None:
    """Bind a value to a name, or the elements of a tuple to names."""
    if isinstance(target, ast.Name):
        gen.scope.locals[target.id] = value
        return
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        assign_part(gen, target, value)
        return
    if not isinstance(target, ast.Tuple | ast.List):
        kind = type(target).__name__.lower()
        raise gen.unsupported(
            target,
            f"assignment to {ast.unparse(target)} is not supported: values of a kernel cannot be changed in place"
            f" ({kind})",
        )
    if isinstance(target, ast.List):
        gen.beyond_triton(target, triton_messages.LIST_TARGET.format(ast.unparse(target)))
    if isinstance(unwrap(value), list | tuple):
        value = make_tuple([decay(gen, as_constexpr(item)) for item in unwrap(value)], None)
    if not isinstance(value, tl.tuple):
        raise ValueError(
            f"cannot unpack `{ast.unparse(target)}` from {describe_type(getattr(value, 'type', value))}: not a tuple"
        )
    for element, item in zip(*unpacked(gen, target, list(value.values)), strict=True):
        assign(gen, element, item)


def assign_part(gen: FunctionGenerator, target: ast.Subscript, value: Any) -> None:
    """``x[2:10] = value`` gives `x` a new value."""
    refusal = triton_messages.PART.format(ast.unparse(target))
    owner = gen.visit(target.value)
    if is_one_pointer(owner):
        raise gen.unsupported(target, f"assignment to {ast.unparse(target)} is not supported: {NOT_AN_ARRAY}")
    gen.beyond_triton(target, refusal)
    if not isinstance(owner, tl.tensor) or not owner.type.is_block():
        raise gen.unsupported(target, f"{refusal}\nhelp: {about_parts(owner)}")
    assign(gen, target.value, gen.semantic.with_subscript(owner, gen.visit(target.slice), value))


def unpacked(
    gen: FunctionGenerator, target: ast.Tuple | ast.List, items: Sequence[Any]
) -> tuple[list[ast.expr], Sequence[Any]]:
    """The names on the left of an assignment, and one value for each: ``*rest`` is a tuple of those that the others
    leave."""
    names = list(target.elts)
    star = next((index for index, name in enumerate(names) if isinstance(name, ast.Starred)), None)
    others = len(names) - (star is not None)
    if star is None:
        return names, kept_items(gen.semantic, items, others)
    if len(items) < others:
        raise ValueError(f"cannot unpack {len(items)} values into {others} names")
    gen.beyond_triton(target, triton_messages.STARRED_TARGET.format(ast.unparse(target)))
    starred, end = names[star], len(items) - (others - star)
    assert isinstance(starred, ast.Starred)
    rest = make_tuple(items[star:end], None)
    return [*names[:star], starred.value, *names[star + 1 :]], [*items[:star], rest, *items[end:]]


def decay(gen: FunctionGenerator, value: Any) -> Any:
    """Convert compile-time ints and floats to run-time scalars, also inside tuples."""
    inner = unwrap(value)
    if isinstance(inner, NUMBERS):
        return gen.semantic.to_tensor(value)
    if isinstance(value, tl.tuple):
        return make_tuple([decay(gen, item) for item in value.values], value.fields)
    check_assigned(inner)
    if isinstance(inner, tl.range | tl.static_range):
        raise TypeError("a range is no value\nhelp: write it in the loop: `for i in range(...)`")
    return value


@visits(ast.AugAssign)
def visit_augmented_assign(gen: FunctionGenerator, node: ast.AugAssign) -> None:
    """``x += value`` is ``x = x + value``."""
    if isinstance(node.target, ast.Subscript):
        gen.beyond_triton(node, triton_messages.AUGMENTED.format(ast.unparse(node.target)))
        read = ast.copy_location(ast.Subscript(node.target.value, node.target.slice, ast.Load()), node.target)
        changed = gen.visit(ast.copy_location(ast.BinOp(read, node.op, node.value), node))
        assign(gen, node.target, decay(gen, changed))
        return
    if not isinstance(node.target, ast.Name):
        raise gen.unsupported(node, triton_messages.AUGMENTED.format(ast.unparse(node.target)))
    outer = gen.naming
    gen.naming = node.target.id
    try:
        left = gen.visit(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
        right = gen.visit(node.value)
        result = apply_binary(gen, node.op, left, right)
    finally:
        gen.naming = outer
    gen.scope.locals[node.target.id] = decay(gen, result)


@visits(ast.AnnAssign)
def visit_annotated_assign(gen: FunctionGenerator, node: ast.AnnAssign) -> None:
    """``x: tl.constexpr = value`` keeps the value at compile time, if it is known then; other annotations are
    ignored."""
    if not isinstance(node.target, ast.Name):
        raise gen.unsupported(node, f"assignment to {ast.unparse(node.target)} is not supported")
    name = node.target.id
    value = visit_named(gen, node.target, node.value) if node.value is not None else tl.constexpr(None)
    if not names_constexpr(node.annotation, gen.scope.captured):
        if node.value is not None:
            gen.scope.locals[name] = decay(gen, value)
        return
    if name in gen.scope.locals:
        raise ValueError(f"{name} is already defined. constexpr cannot be reassigned.")
    if isinstance(value, tl.tensor) and (use := use_as_constant(gen.scope.tree, name)) is not None:
        gen.beyond_triton(use, triton_messages.KNOWN_AT_RUN_TIME.format(name))
    gen.scope.locals[name] = value if isinstance(value, tl.constexpr) or is_storable(value) else tl.constexpr(value)


@visits(ast.Return)
def visit_return(gen: FunctionGenerator, node: ast.Return) -> None:
    """End the function here; `returns` decides the type of its result."""
    if not gen.at_top_level:
        gen.beyond_triton(node, triton_messages.RETURN_IN_LOOP)
    visited = gen.visit(node.value) if node.value is not None else None
    value = returned_value(visited)
    if gen.is_kernel and unwrap(value) is not None:
        warn_returned(gen.fn.__name__, gen.where.file, gen.where.first_line + node.lineno - 1)
        value = tl.constexpr(None)
    if gen.at_top_level:
        record(gen, value if follows("return-promotion") else decayed(gen, value), gen.builder.block)
        gen.terminated = True
        return
    value = decayed(gen, value)
    record(gen, value, None)
    if unwrap(value) is not None:
        gen.scope.locals[RESULT] = value
    leave(gen, RETURN)


def decayed(gen: FunctionGenerator, value: Any) -> Any:
    """Return a returned value whose numbers are run-time scalars; None stays None."""
    return value if unwrap(value) is None else decay(gen, value)


@visits(ast.Assert)
def visit_assert(gen: FunctionGenerator, node: ast.Assert) -> None:
    """A device-side assert; compiled only with debug on."""
    condition = gen.visit(node.test)
    message = gen.visit(node.msg) if node.msg is not None else ""
    if is_storable(message):
        raise TypeError("the message of an assert is a compile-time string\nhelp: print values with tl.device_print")
    gen.semantic.device_assert(gen.semantic.to_tensor(condition), str(unwrap(message)), None)


@visits(ast.With)
def visit_with(gen: FunctionGenerator, node: ast.With) -> None:
    """A context manager of the compiler, entered and left at compile time."""
    managers = []
    for item in node.items:
        manager = gen.visit(item.context_expr)
        if not hasattr(type(manager), "__enter__"):
            text = f"`{ast.unparse(item.context_expr)}` is not a context manager of the tile language"
            raise TypeError(f"{text}\nhelp: kernels have nothing to close; write the statements without `with`")
        value = manager.__enter__()
        if item.optional_vars is not None:
            assign(gen, item.optional_vars, value)
        managers.append(manager)
    if any(isinstance(inner, ast.Return) for statement in node.body for inner in ast.walk(statement)):
        raise gen.unsupported(node, "Cannot have `return` statements inside `with` statements")
    visit_body(gen, node.body)
    for manager in reversed(managers):
        manager.__exit__(None, None, None)
