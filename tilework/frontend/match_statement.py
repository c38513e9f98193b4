"""`match` on values that are known at compile time: one case is compiled, the others are not looked at.

match MODE:
    case "sum" | "mean":
        ...
    case (rows, columns) if rows > columns:
        ...
"""

import ast
from typing import Any

from tilework.frontend.exits import visit_body
from tilework.frontend.expressions import truth
from tilework.frontend.known_values import as_constexpr, describe, make_tuple, unwrap
from tilework.frontend.visitors import FunctionGenerator, visits
from tilework.language import core as tl
from tilework.language.typing import triton_words


@visits(ast.Match)
def visit_match(gen: FunctionGenerator, node: ast.Match) -> None:
    """The first case that fits."""
    gen.beyond_triton(node, triton_words.MATCH)
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
            "what a `case` asks for must be known at compile time\nhelp: use `if` for conditions of run-time values"
        )
    return truth(value)


def fits(gen: FunctionGenerator, pattern: ast.pattern, subject: Any, names: dict[str, Any]) -> bool:
    """Whether a value has the form of a pattern; `names` gets what the pattern names."""
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
    raise gen.unsupported(pattern, triton_words.PATTERN.format(ast.unparse(pattern)))


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
