"""The source of functions that no file holds: made by `exec`, or typed at a prompt.

Notebooks, IPython and the prompt of Python 3.13 keep what was typed where `linecache` finds it. `exec` keeps nothing, but the
text may stand beside the function, as `__source__` of its globals. The prompt of earlier Pythons keeps nothing either; the lines
are in the history of `readline`, if they were typed. Both count only if they give the very code that the function has.
"""

import inspect
import linecache
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

TYPED = ("<stdin>", "<console>")
ADVICE = {
    "<stdin>": (
        "it was typed at the plain prompt or piped into Python, which keep no source: use Python 3.13 or later, IPython or a"
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
    """Whether two functions do the same, wherever they stand."""
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
