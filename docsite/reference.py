"""Pages of the reference: signature, documentation, example and source line of every public name.

`public_names.py` reads the names and what their docstrings say; here they become Markdown, one page for
each family. A public name that is in no family is on a page of its own kind, "Other names", so that nothing is
missing.
"""

import inspect
import re
from functools import cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import tilework.language as tl
from docsite.docstrings import as_markdown
from docsite.public_names import PROLOGUE, Entry, Family, entries, entry, split_example
from tilework import knobs
from tilework.language.extra import libdevice
from tilework.testing import call

ROOT = Path(__file__).parent.parent
LANGUAGE = "tilework.language"
PARTS = {
    "language": ("Every name of the language", "`import tilework.language as tl`. "),
    "runtime": ("Every name of the runtime", "`import tilework`. "),
}
WIDTH = 96
OTHERS = "Other names"


def public_names() -> dict[str, str]:
    """The part of the reference that each name belongs to which users may write."""
    language = (
        f"tl.{name}"
        for name, value in vars(tl).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and belongs_to_language(value)
    )
    return dict.fromkeys(sorted(language), "language") | dict.fromkeys(sorted(runtime_names()), "runtime")


def belongs_to_language(value: Any) -> bool:
    """False for what the modules of the language only import: typing's and Python's names."""
    if isinstance(value, int):
        return True
    home = getattr(getattr(value, "fn", value), "__module__", None) or type(value).__module__
    return home.startswith(LANGUAGE)


def runtime_names() -> set[str]:
    """The names that docs/api.md promises, outside of the language."""
    page = (ROOT / "docs" / "api.md").read_text()
    rows = re.findall(r"^\| `([\w.]+)`[^|]*\| (.*) \|$", page, re.MULTILINE)
    return {
        f"{module}.{name}"
        for module, names in rows
        if not module.startswith(LANGUAGE)
        for name in re.findall(r"`(\w+)`", names)
        if not isinstance(getattr(import_module(module), name), ModuleType)
    } - {"tilework.__version__"}


@cache
def all_entries() -> list[Entry]:
    """Return all entries by family; names without a family last, unless they are listed under another path."""
    listed = list(entries())
    known = {one.name for one in listed}
    values = [one.value for one in listed]
    for part in PARTS:
        missing = tuple(name for name, of in public_names().items() if of == part and name not in known)
        family = Family(OTHERS, part, missing)
        found = [entry(name, family) for name in missing]
        listed += [one for one in found if not any(one.value is value for value in values)]
    return listed


def slug(family: Family) -> str:
    return re.sub(r"\W+", "_", family.title.lower()).strip("_")


def anchor(name: str) -> str:
    """The anchor of a name on its page; two underscores would be Markdown's for bold."""
    return name.replace("__", "")


def path_of(family: Family) -> str:
    """``reference/language/memory.md``."""
    return f"reference/{family.part}/{slug(family)}.md"


@cache
def pages() -> dict[str, str]:
    """Every page of the reference, by its path in the site."""
    by_family = {family: list(group) for family, group in groupby(all_entries(), key=lambda one: one.family)}
    found = {path_of(family): family_page(family, group) for family, group in by_family.items()}
    found["reference/language/libdevice.md"] = libdevice_page()
    for part in PARTS:
        found[f"reference/{part}.md"] = overview(part, {f: g for f, g in by_family.items() if f.part == part})
    return found


def overview(part: str, by_family: dict[Family, list[Entry]]) -> str:
    """All names of a part on one page, each with its first sentence and a link to its entry."""
    title, about = PARTS[part]
    parts = [
        f"# {title}",
        f"{about}A name links to its entry: how it is called, what it does, an example, its source. "
        "Terms are in the [glossary](../glossary.md).",
    ]
    for family, group in by_family.items():
        rows = [
            f"| [`{one.name}`]({part}/{slug(family)}.md#{anchor(one.name)}) | {first_sentence(one)} |" for one in group
        ]
        parts += [f"## [{family.title}]({part}/{slug(family)}.md)", "\n".join(["| | |", "|---|---|", *rows])]
    return "\n\n".join(parts)


def libdevice_page() -> str:
    """The functions of the device library, which differ in little but their names."""
    rows = [
        f"| `{name}` | {forms_of(getattr(libdevice, name))} | {libdevice_example(name)} |" for name in dir(libdevice)
    ]
    text, example = split_example(libdevice.__doc__ or "")
    head = f"# Functions of libdevice\n\n{as_markdown(text)}\n\n**Example**\n\n```python\n{example.rstrip()}\n```\n"
    return "\n".join([head, "", "| function | types | example |", "|---|---|---|", *rows])


def libdevice_example(name: str) -> str:
    """``asin(fp32(0.5))`` and what that gives in the interpreter."""
    function = getattr(libdevice, name)
    forms = re.findall(r"\(([^()]*)\) -> \w+", function.__doc__ or "") or ["fp32"]
    for first in (0.5, 2.0):  # some are defined from 1 on
        values = [
            NUMPY[type]((first, 2.0, 3.0, 4.0)[path] if type.startswith("fp") else (7, 3, 2)[path])
            for path, type in enumerate(forms[0].split(", "))
        ]
        with knobs.runtime.scope():
            knobs.runtime.interpret = True
            found = call(function, *values)
        if np.isfinite(found):
            break
    given = ", ".join(f"{type}({value:g})" for type, value in zip(forms[0].split(", "), values, strict=True))
    return f"`{name}({given})` is `{found:.9g}`"


NUMPY = {
    name: np.dtype(re.sub(r"^fp", "float", name)).type for name in "fp16 fp32 fp64 int32 int64 uint32 uint64".split()
}


def forms_of(function: Any) -> str:
    """``(fp32) -> fp32``, for each of its types."""
    return ", ".join(f"`{form}`" for form in re.findall(r"\([^()]*\) -> \w+", getattr(function, "__doc__", None) or ""))


def first_sentence(one: Entry) -> str:
    """The sentence about a name in a table."""
    text = re.split(r"(?<=[.:]) (?=[A-Z`])", one.summary)[0].rstrip(":.")
    return text.replace("|", "\\|")


def family_page(family: Family, group: list[Entry]) -> str:
    """The entries of one family, and what their examples take for granted."""
    names = ", ".join(f"[`{one.name}`](#{anchor(one.name)})" for one in group)
    parts = [f"# {family.title}", f"{names}\n{{ .names }}"]
    if any(one.example for one in group):
        title = "<summary>What the examples begin with</summary>"
        parts.append(f'<details markdown="1">{title}\n\n```python\n{PROLOGUE}```\n\n</details>')
    parts += [rendered(one) for one in group]
    return "\n\n".join(parts)


def rendered(one: Entry) -> str:
    """Heading, signature, documentation, example and source of one name."""
    title = one.name.replace("__", r"\_\_")
    parts = [f"## {title} {{ #{anchor(one.name)} }}"]
    if one.signature:
        parts.append(f"```python\n{call_text(one.name, one.signature)}\n```")
    parts.append(as_markdown(one.text) or f"`{one.value!r}`")
    if one.value is tl.tensor:
        parts.append(methods_of_tensor())
    if one.example:
        parts.append(f"**Example**\n\n```python\n{one.example.rstrip()}\n```")
    if (path := source_path(one.value)) is not None:
        parts.append(f"[source: {path[0]}:{path[1]}](repo:{path[0]}#L{path[1]}){{ .source }}")
    return "\n\n".join(parts)


def call_text(name: str, signature: str) -> str:
    """The signature of a name, on one line or with a line for each parameter."""
    if len(name) + len(signature) <= WIDTH:
        return name + signature
    depth, inner = 0, ""
    for letter in signature[1:-1]:
        depth += (letter in "([{") - (letter in ")]}")
        inner += ",\n   " if letter == "," and depth == 0 else letter
    return f"{name}(\n    {inner},\n)"


def methods_of_tensor() -> str:
    """The functions that tensors have as methods, with links to their entries."""
    families = {one.name: one.family for one in all_entries()}
    links = [
        f"[`{name}`]({slug(families[f'tl.{name}'])}.md#tl.{name})"
        for name in sorted(vars(tl.tensor))
        if f"tl.{name}" in families
    ]
    return f"As methods, `x.sum(axis=0)` for `tl.sum(x, axis=0)`: {', '.join(links)}."


def source_path(value: Any) -> tuple[str, int] | None:
    """(file below the root, line) of a definition, if it is one of ours."""
    function = getattr(value, "fget", None) or getattr(value, "func", None) or value
    function = getattr(function, "fn", function)
    try:
        function = inspect.unwrap(function)
        file = Path(inspect.getsourcefile(function) or "").resolve()
        line = inspect.findsource(function)[1] + 1
    except (TypeError, OSError, ValueError):
        return None
    return (str(file.relative_to(ROOT)), line) if file.is_relative_to(ROOT) else None
