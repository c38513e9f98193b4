"""Where the expression of an op starts, for text that only says what was read last.

    y = tl.load(p + i)        a location at `p + i`, the last that was read before the load: the expression is `tl.load(p + i)`
        ^       ^

Asked of the source itself, if it is still there; a place that no part of an expression starts at is its own answer.
"""

import ast
import linecache
from collections.abc import Mapping

Position = tuple[int, int]
KNOWN: dict[
    str, tuple[list[str], Mapping[Position, Position]]
] = {}  # by file: the lines that were read, and what they say


def expression_start(file: str, line: int, column: int) -> Position:
    """Line and column of the expression around the part that starts at this line (from 1) and column (from 0)."""
    lines = linecache.getlines(file)
    known = KNOWN.get(file)
    if known is None or known[0] is not lines:
        known = KNOWN[file] = lines, starts("".join(lines))
    return known[1].get((line, column), (line, column))


def starts(source: str) -> Mapping[Position, Position]:
    """For each place where a part of an expression starts, that where the expression around it does.

    >>> starts("y = f(a + b)")[1, 6], starts("y = f(a + b)")[1, 10]
    ((1, 4), (1, 6))
    """
    found: dict[Position, Position] = {}

    try:
        waiting: list[tuple[ast.AST, Position | None]] = [(ast.parse(source), None)]
    except (SyntaxError, ValueError, RecursionError):
        return {}
    while waiting:
        node, around = waiting.pop()
        if isinstance(node, ast.expr | ast.keyword):
            here = node.lineno, node.col_offset
            found.setdefault(here, around or here)
            around = here if isinstance(node, ast.expr) else around
        inner = None if isinstance(node, ast.stmt) else around
        waiting += [(child, inner) for child in reversed(list(ast.iter_child_nodes(node)))]
    return found
