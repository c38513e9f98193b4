"""The lines of one function in its file, and their syntax tree.

    block = block_of(lines)         lines of a file from the first decorator on
    block.lines, block.header       those of the function; how many of them stand before its `def`
    block.tree                      a module with the function, line 1 at the `def`, without its decorators

A function ends before the first line that is indented no more than its `def`, unless that line is a comment, or closes a
bracket. Where a long string is indented less, that is wrong, and what was cut does not parse; then Python's tokenizer is asked,
which knows and takes ten times as long.
"""

import ast
import inspect
import tokenize
from collections.abc import Sequence

DEFINITION = ("def ", "def\t", "def\\")
CLOSING = (")", "]", "}")


class Block:
    """See the module docstring."""

    def __init__(self, lines: list[str], header: int, tree: ast.Module) -> None:
        self.lines, self.header, self.tree = lines, header, tree


def block_of(lines: Sequence[str]) -> Block | None:
    """The function whose first line is the first; None, or a SyntaxError, if it is no function."""
    if (found := cut(lines)) is not None:
        return found
    try:
        raw = inspect.getblock(list(lines))
    except tokenize.TokenError as error:
        raise SyntaxError(error.args[0]) from None
    indent = indent_of(raw[0])
    block = block_of_text("".join(line.removeprefix(indent) for line in raw))
    return None if block is None else Block(raw, block.header, block.tree)


def block_of_text(text: str) -> Block | None:
    """The function that a text is."""
    tree = ast.parse(text)
    if len(tree.body) != 1 or not isinstance(function := tree.body[0], ast.FunctionDef):
        return None
    header = function.lineno - 1  # decorators may contain anything, so the parser has to say where they end
    if header:
        function.decorator_list = []
        ast.increment_lineno(tree, -header)
    return Block(text.splitlines(keepends=True), header, tree)


def indent_of(line: str) -> str:
    """The white space in front of it."""
    return line[: len(line) - len(line.lstrip())]


def cut(lines: Sequence[str]) -> Block | None:
    """The function by its indentation; None if that is not certain."""
    indent = indent_of(lines[0])
    depth = len(indent)
    starts = (at for at, line in enumerate(lines) if line.startswith(indent) and line.startswith(DEFINITION, depth))
    if (header := next(starts, None)) is None:
        return None
    last, comments, inner = header, header, 0
    for at in range(header + 1, len(lines)):
        text = lines[at].lstrip()
        column = len(lines[at]) - len(text)
        if not text:
            continue
        if text.startswith("#"):
            comments = at if column > depth and column >= inner else comments
        elif column > depth or text.startswith(CLOSING):
            inner = min(inner or column, column) if column > depth else inner
            last = at
        else:
            break
    end = max(last, comments) + 1
    raw = list(lines[:end])
    plain = [line.removeprefix(indent) for line in raw]
    try:
        if header:
            ast.parse("".join(plain[:header]) + "def f(): pass\n")
        block = block_of_text("".join(plain[header:]))
    except SyntaxError:
        return None
    return None if block is None else Block(raw, header, block.tree)
