"""Branches and `match` statements.

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
import warnings
from typing import Any

from xdsl.ir import Block, Region

from tilework.frontend import FunctionGenerator, visits
from tilework.frontend.branches import Branch, append, end_location, insert_if, merge_branches, visit_body, visit_branch
from tilework.frontend.expressions import truth
from tilework.frontend.scopes import as_constexpr, describe, describe_type, flatten, make_tuple, unflatten, unwrap
from tilework.ir.cf import make_br, make_cond_br
from tilework.ir.locations import name_loc, unknown
from tilework.ir.scf import make_if, make_yield
from tilework.language import core as tl
from tilework.language.typing import triton_messages


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
        warnings.warn(
            "If conditional called with multidimensional Tensor instead of scalar; please use "
            f"`if (condition.item())` instead ({gen.where.file}:{gen.where.first_line + node.lineno - 1})",
            UserWarning,
            stacklevel=2,
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
