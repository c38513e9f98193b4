"""Source locations; the most recent are cached: one object per file position, name and call.

    >>> str(name_loc("x", file_loc("k.py", 3, 8)))
    'loc("x"("k.py":3:8))'

A value named in the source carries a name location; an op that was inlined carries a call-site location.

The text has the location that Triton prints: that of the part of an expression that was read last. A diagnostic points
at the whole expression:

    x = tl.load(p + i, mask)        loc("x"("k.py":3:12)) in the text, `source_positions` has 3:4
        ^       ^ read last

For a location that was read from text, `expression_start` looks the expression up in the source file, if it still
exists; a position at which no part of an expression starts is returned as it is.
"""

import ast
import linecache
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
)
from xdsl.ir import Attribute

from tilework.errors import LIBRARY, POSITIONS
from tilework.ir.create import create_attr
from tilework.ir.types import RECENT, string_attr

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
    """Return, for each position where a part of an expression starts, the start of the expression around it.

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


unknown: LocationAttr = UNKNOWN_LOC
recent = lru_cache(maxsize=RECENT)


interned_int = recent(IntAttr)


def new_loc(file: str, line: int, col: int) -> FileLineColLoc:
    return create_attr(FileLineColLoc, filename=string_attr(file), line=interned_int(line), column=interned_int(col))


@recent
def read_loc(file: str, line: int, col: int) -> FileLineColLoc:
    """``loc("file":line:col)`` of a text, which does not say where the expression starts."""
    return new_loc(file, line, col)


@recent
def file_loc(file: str, line: int, col: int) -> FileLineColLoc:
    """``loc("file":line:col)``."""
    loc = new_loc(file, line, col)
    vars(loc)["start"] = line, col
    return loc


@recent
def expression_loc(file: str, line: int, col: int, name: str | None, start: tuple[int, int]) -> LocationAttr:
    """``loc("file":line:col)`` of an expression that starts at the line and column `start`, under the name of a value
    if there is one; its parts are quicker to look up than a location."""
    loc = new_loc(file, line, col)
    vars(loc)["start"] = start
    return loc if name is None else create_attr(NameLoc, desc=string_attr(name), location=loc)


@recent
def name_loc(name: str, loc: LocationAttr) -> NameLoc:
    """``loc("name"(loc))``: the value called `name` in the source."""
    return create_attr(NameLoc, desc=string_attr(name), location=loc)


@recent
def callsite_loc(callee: LocationAttr, caller: LocationAttr) -> CallSiteLoc:
    """``loc(callsite(callee at caller))``: an op of `callee` inlined where `caller` calls it."""
    return create_attr(CallSiteLoc, callee=callee, caller=caller)


def name_of(loc: Attribute) -> str | None:
    """The first name in a location: its own, then that of the callee, then that of the caller."""
    located: Any = loc
    kind = located.__class__  # faster than `isinstance`, which asks the metaclass
    if kind is NameLoc:
        return located.desc.data or None
    if kind is CallSiteLoc:
        return name_of(located.callee) or name_of(located.caller)
    if kind is FusedLoc and isinstance(located.locations, ArrayAttr):
        return next((name for inner in located.locations if (name := name_of(inner))), None)
    return None


def source_positions(loc: Attribute) -> list[tuple[str, int, int]]:
    """File, line (from 1) and column (from 0) of the op itself, then of the calls that led there."""
    located: Any = loc
    kind = located.__class__  # faster than `isinstance`, which asks the metaclass
    if kind is NameLoc:
        return source_positions(located.location)
    if kind is FileLineColLoc:
        file, line, column = located.filename.data, located.line.data, located.column.data
        line, column = vars(located).get("start") or expression_start(file, line, column)
        return [(file, line, column)]
    if kind is CallSiteLoc:
        return source_positions(located.callee) + source_positions(located.caller)
    if kind is FusedLoc and isinstance(located.locations, ArrayAttr):
        return next((found for part in located.locations if (found := source_positions(part))), [])
    return []


POSITIONS.append(source_positions)


def location_text(location: Attribute | None, *, innermost: bool = False) -> str | None:
    """``file:line:column`` of the first source position outside of the language's own, or None if it is unknown;
    `innermost`: of the first one of all."""
    positions = source_positions(location) if location is not None else []
    own = [position for position in positions if innermost or not position[0].startswith(LIBRARY)]
    found = own[:1] or positions[-1:]
    return ":".join(map(str, found[0])) if found else None
