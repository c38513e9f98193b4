"""The source of functions: their lines, their syntax trees, and walks over deep trees.

    block = block_of(lines)         lines of a file from the first decorator on
    block.lines, block.header       those of the function; the number of lines before its `def`
    block.tree                      a module with the function, line 1 at the `def`, without its decorators

A function ends before the first line that is indented no more than its `def`, unless that line is a comment, or closes
a bracket. Where a long string is indented less, that is wrong, and the lines do not parse; then Python's tokenizer
finds the end, which takes ten times as long.

A function that was created by `exec` or typed at a prompt has no file. Notebooks, IPython and the prompt of Python 3.13
keep the text where `linecache` finds it. `exec` keeps nothing, but the text may be next to the function, as
`__source__` of its globals. The prompt of earlier Pythons keeps nothing either; the lines are in the history of
`readline`, if they were typed. Both are used only if they compile to the code that the function has.

Generated kernels have expressions with thousands of terms:

    deeply(levels_of(tree), lambda: visitor.visit(tree))

Python refuses more than 1,000 nested calls, which a walk needs for a few hundred levels; with a higher limit alone a
walk can overflow the stack of its thread, which ends the process. So a deep tree is walked in a thread with a stack for
its depth, and the limit is higher until that walk ends. Context variables are those of the caller.
"""

import ast
import inspect
import linecache
import sys
import threading
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from types import CodeType
from typing import Any, TypeVar

from tilework.process.forks import held_at_fork

T = TypeVar("T")

SHALLOW = 40  # levels of most kernels, which are walked where the caller is
DEEPEST = 20_000  # levels; Python itself compiles fewer
FRAMES = 12  # nested Python calls of a walk for each level, at most
LEVEL_BYTES, LEAST_BYTES = 16 * 1024, 16 << 20  # of the stack
TOO_DEEP = "this is nested too deeply\nhelp: give parts of it names, in statements of their own"
_LOCK = held_at_fork(threading.RLock())
_RAISED: list[int] = []  # Python's own limit, once for each walk that needs a higher one


def levels_of(tree: ast.AST) -> int:
    """Return the depth of a syntax tree."""
    levels, level = 0, [tree]
    while level:
        levels, level = levels + 1, [child for node in level for child in ast.iter_child_nodes(node)]
    return levels


def deeply(levels: int, call: Callable[[], T]) -> T:
    """``call()``, which recurses through so many levels of a tree."""
    if levels <= SHALLOW:
        return call()
    if levels > DEEPEST:
        raise RecursionError(TOO_DEEP)
    found: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            errors.append(error)

    with raised_limit(levels * FRAMES):
        context = copy_context()
        with _LOCK:
            before = threading.stack_size(LEAST_BYTES + levels * LEVEL_BYTES)
            try:
                thread = threading.Thread(target=context.run, args=(run,), name="tilework deep tree", daemon=True)
                thread.start()
            finally:
                threading.stack_size(before)
        thread.join()
    if errors:
        raise errors.pop()
    return found[0]


@contextmanager
def raised_limit(frames: int) -> Iterator[None]:
    """Let all threads nest `frames` more calls than before."""
    with _LOCK:
        limit = sys.getrecursionlimit()
        _RAISED.append(_RAISED[0] if _RAISED else limit)
        sys.setrecursionlimit(max(limit, _RAISED[0] + frames))
    try:
        yield
    finally:
        with _LOCK:
            limit = _RAISED.pop()
            if not _RAISED:
                sys.setrecursionlimit(limit)


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


TYPED = ("<stdin>", "<console>")
ADVICE = {
    "<stdin>": (
        "it was typed at the plain prompt or piped into Python, which keep no source: use Python 3.13 or later, IPython"
        " or a"
        " notebook, or write it into a file and import that"
    ),
    "<string>": (
        "it was made by exec or `python -c`, which keep no source: put the text into the globals as `__source__`"
        ' (exec(text, {"__source__": text, ...})), or write it into a file and import that'
    ),
}


def unfiled_lines(fn: Callable[..., Any]) -> list[str]:
    """The lines of what has no file, up to the function at least; none if they cannot be had."""
    name, first = fn.__code__.co_filename, fn.__code__.co_firstlineno
    lines = linecache.getlines(name)
    if any(f"def {fn.__name__}" in line for line in lines[first - 1 :]):
        return lines
    beside = fn.__globals__.get("__source__")
    if isinstance(beside, str) and any(part.co_firstlineno == first for part in same_parts(beside, fn)):
        return beside.splitlines(True)
    return from_history(fn) if name in TYPED and "readline" in sys.modules else []


def from_history(fn: Callable[..., Any]) -> list[str]:
    """The lines as they were typed last, if they are those of this function."""
    import readline  # only where the prompt has loaded it: not every Python has one

    count = readline.get_current_history_length()
    typed = [(readline.get_history_item(index + 1) or "") + "\n" for index in range(count)]
    start = next((at for at in reversed(range(count)) if typed[at].startswith(f"def {fn.__name__}(")), None)
    if start is None:
        return []
    above = start
    while above and typed[above - 1].startswith("@"):
        above -= 1
    body = inspect.getblock(typed[start:])
    return [*typed[above:start], *body] if any(same_parts("".join(body), fn)) else []


def same_parts(text: str, fn: Callable[..., Any]) -> Iterator[CodeType]:
    """The functions in a text that do what `fn` does; none if it is no Python."""
    try:
        left = [compile(text, "<text>", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError):
        return
    while left:
        code = left.pop()
        left += [part for part in code.co_consts if isinstance(part, CodeType)]
        if is_same(code, fn.__code__):
            yield code


def is_same(one: CodeType, other: CodeType) -> bool:
    """Return True if two functions do the same, wherever they are defined."""
    facts = ("co_name", "co_code", "co_names", "co_varnames", "co_freevars", "co_argcount", "co_kwonlyargcount")
    plain = [[const for const in code.co_consts if not isinstance(const, CodeType)] for code in (one, other)]
    return all(getattr(one, fact) == getattr(other, fact) for fact in facts) and plain[0] == plain[1]


def no_source(fn: Callable[..., Any]) -> ValueError:
    """An error that says what to do."""
    name = fn.__code__.co_filename
    advice = ADVICE.get("<stdin>" if name in TYPED else name)
    if advice is None:
        advice = (
            "its text is not registered with linecache; write it into a file and import that"
            if name.startswith("<")
            else f"{name} cannot be read as text, or has changed since it was imported"
        )
    return ValueError(f"@jit functions should be defined in a Python file: no source for `{fn.__qualname__}`; {advice}")
