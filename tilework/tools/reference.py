"""The reference of the language and of the runtime: every public name, with what its docstring says and its example.

    >>> for entry in entries():
    ...     print(entry.name, entry.signature, entry.summary)
    tl.program_id (axis) The index of this program along a grid axis (0, 1 or 2), an int32.
    ...

A docstring ends with its example, plain Python that runs after `PROLOGUE`:

    def double(x):
        \"\"\"Twice `x`.

        Example:
            assert_close(call(double, np.arange(4)), [0, 2, 4, 6])
        \"\"\"

A value without a docstring in Python (a dtype, an integer) has a string after its assignment, which is found in the
source. Pages and tests are made from this list; a new public name belongs into a family of `reference_families.py`.
"""

import ast
import inspect
import linecache
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

from tilework.tools.reference_families import FAMILIES, Family

PROLOGUE = """\
import numpy as np
import tilework
import tilework.language as tl
from tilework.testing import assert_close, call
"""
HEADING = "Example:"
HIDDEN = ("_semantic", "_generator")  # parameters that the compiler passes


@dataclass(frozen=True)
class Entry:
    """One name of the reference."""

    name: str  # as programs write it: "tl.exp", "tilework.jit"
    family: Family
    value: Any
    signature: str  # "(x, axis=0)"; "" for what is not called
    text: str  # the docstring without its example; names are in `x`, code in ``x`` and in indented blocks
    example: str  # "" if there is none

    @property
    def summary(self) -> str:
        """The first paragraph, in one line."""
        return " ".join(self.text.split("\n\n")[0].split())


def entries() -> Iterator[Entry]:
    """The whole reference, family by family."""
    for family in FAMILIES:
        for name in family.names:
            yield entry(name, family)


def entry(name: str, family: Family) -> Entry:
    value, doc = documented(name)
    text, example = split_example(doc)
    return Entry(name, family, value, signature(value), text, example)


def split_example(doc: str) -> tuple[str, str]:
    """The text of a docstring and its example, both without indentation."""
    lines = inspect.cleandoc(doc).splitlines()
    if HEADING not in lines:
        return "\n".join(lines), ""
    at = lines.index(HEADING)
    return "\n".join(lines[:at]).rstrip(), textwrap.dedent("\n".join(lines[at + 1 :])).strip() + "\n"


def run_example(entry: Entry) -> None:
    """Run the example of an entry; its kernels find their source, and a traceback shows its lines."""
    file, text = f"<example of {entry.name}>", PROLOGUE + entry.example
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), {"__name__": "example"})


def documented(name: str) -> tuple[Any, str]:
    """Return the value of a name and its docstring: its own, the string after its assignment, that of its class, or
    ""."""
    first, *path = name.split(".")
    owner: Any = import_module({"tl": "tilework.language"}.get(first, first))
    for part in path[:-1]:
        owner = member(owner, part)
    value = member(owner, path[-1]) if path else owner
    if is_function(value) or inspect.ismodule(value) or inspect.isclass(value) or isinstance(value, property):
        return value, value.__doc__ or ""
    home = owner.__name__ if inspect.ismodule(owner) else getattr(owner, "__module__", "")
    return value, assigned(home, path[-1]) or (
        "" if isinstance(value, int | str | tuple) else type(value).__doc__ or ""
    )


def is_function(value: Any) -> bool:
    """Functions of Python, and jit functions, which have the docstrings of theirs."""
    return inspect.isroutine(value) or inspect.isfunction(getattr(value, "fn", None))


def member(owner: Any, name: str) -> Any:
    """An attribute of a class as it is declared, of anything else as it is; modules are imported."""
    found = inspect.getattr_static(owner, name, None) if inspect.isclass(owner) else None
    if isinstance(found, property):
        return found
    if inspect.ismodule(owner) and not hasattr(owner, name):
        return import_module(f"{owner.__name__}.{name}")
    return getattr(owner, name)


def assigned(module: str, name: str) -> str:
    """The string after the assignment of a name, in its module or in the one it was imported from."""
    body = parsed(module)
    for node, after in pairwise(body):
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        match target, after:
            case ast.Name(id=found), ast.Expr(value=ast.Constant(value=str(text))) if found == name:
                return text
    for node in body:
        if isinstance(node, ast.ImportFrom) and {"*", name} & {alias.asname or alias.name for alias in node.names}:
            if node.module and hasattr(import_module(node.module), name):
                return assigned(node.module, name)
    return ""


@cache
def parsed(module: str) -> list[ast.stmt]:
    """The statements of a module."""
    file = getattr(import_module(module), "__file__", None)
    return ast.parse("".join(linecache.getlines(file))).body if file else []


def signature(value: Any) -> str:
    """The call signature of a function or a class, without annotations that carry no information."""
    if isinstance(value, property) or not callable(value) or inspect.ismodule(value):
        return ""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    shown = [p.replace(annotation=p.empty) for p in found.parameters.values() if p.name not in (*HIDDEN, "self")]
    return str(inspect.Signature(shown))
