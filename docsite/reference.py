"""Pages of the reference: signature, documentation and source line of every public name, from the objects themselves.

``pages()`` gives the Markdown of each page by its place in the site. `FAMILIES` says which modules make a page of the language, `RUNTIME` which
names make one of the runtime; a public name that neither has is found by tests/docs/test_reference_pages.py.
"""

import enum
import inspect
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import tilework.language as tl
from docsite.docstrings import as_markdown
from tilework.language.core import METHODS
from tilework.language.dtypes import dtype

ROOT = Path(__file__).parent.parent
HIDDEN = ("_semantic", "_generator", "_builder")  # the compiler supplies them
SPECIAL = ("__getitem__", "__call__", "__enter__")  # methods with such names that users call without knowing the name


class Family(NamedTuple):
    """A page: its file, its title, what it is about, and where its names are defined."""

    file: str
    title: str
    about: str
    modules: tuple[str, ...]


LANGUAGE = "tilework.language"
FAMILIES = (
    Family("program", "Programs, hints and checks", "Which program this is, what the compiler may assume, and what is checked or printed.", ("program_builtins",)),
    Family("memory", "Memory", "Loads and stores through pointers, block pointers and tensor descriptors; atomics.", ("memory_builtins",)),
    Family("shapes", "Making and shaping tensors", "New tensors, and the same elements in another shape or order.", ("shapes", "standard:zeros,zeros_like,ravel,interleave")),
    Family("elementwise", "Arithmetic", "Element by element: arithmetic, elementary functions, comparison and conversion.", ("elementwise_builtins", "standard:cdiv,sigmoid,softmax,swizzle2d")),
    Family("dots", "Products of matrices", "What becomes tensor cores, or micro-kernels on a CPU.", ("dots",)),
    Family("reductions", "Reductions and scans", "Along an axis, with an operation of the library or one of your own.", ("reductions", "folds")),
    Family("sorting", "Sorting", "Networks that sort, merge, select and reverse.", ("sorting",)),
    Family("random", "Random numbers", "Philox: the same numbers for the same seed and offset, wherever the kernel runs.", ("random",)),
    Family("loops", "Loops", "`for` over a range that the compiler pipelines, unrolls or hands to other warps.", ("loops",)),
    Family("types", "Types and constants", "Element types, pointers, tuples and values that are known when a kernel is compiled.", ("dtypes", "compile_time", "core")),
    Family("tensor", "Tensors and descriptors", "What kernels compute with, and the methods it has.", ("values",)),
    Family("assembly", "Inline assembly", "Instructions of the target in the middle of a kernel.", ("assembly",)),
)  # fmt: skip


def public_names() -> list[str]:
    """Every name of `tilework.language` that users may write."""
    return sorted(
        name
        for name, value in vars(tl).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and belongs_to_language(value)
    )


def belongs_to_language(value: Any) -> bool:
    return isinstance(value, int | dtype) or module_of(value).startswith(LANGUAGE)


def module_of(value: Any) -> str:
    """Where a value was defined; builtins and jit functions say it of what they wrap."""
    function = getattr(value, "fn", value)
    return getattr(function, "__module__", None) or type(value).__module__


def family_of(name: str) -> Family:
    """The page that a name of the language is on: that of its own row, else that of its module."""
    value = getattr(tl, name)
    module = "dtypes" if isinstance(value, int | dtype) and not isinstance(value, type) else module_of(value)
    module = module.removeprefix(LANGUAGE + ".")
    for family in FAMILIES:
        for place in family.modules:
            where, _, names = place.partition(":")
            if where == module and (not names or name in names.split(",")):
                return family
    raise LookupError(f"tl.{name} of {module} has no row in FAMILIES of docsite/reference.py")


@cache
def names_by_family() -> dict[str, list[str]]:
    """The names of each page of the language."""
    found: dict[str, list[str]] = {family.file: [] for family in FAMILIES}
    for name in public_names():
        found[family_of(name).file].append(name)
    return found


def pages() -> dict[str, str]:
    """Every page of the language, by its place: ``reference/tl/memory.md``."""
    found = {f"reference/tl/{family.file}.md": family_page(family) for family in FAMILIES}
    found["reference/language.md"] = language_page()
    return found


def language_page() -> str:
    """All names on one page, each with its first sentence and a link to its own entry."""
    parts = [
        "# Every name of the language",
        "`import tilework.language as tl`. A name links to its entry, with its arguments, an example and its source.",
    ]
    for family in FAMILIES:
        rows = [
            f"| [`tl.{name}`](tl/{family.file}.md#tl.{name}) | {first_sentence(getattr(tl, name))} |"
            for name in names_by_family()[family.file]
        ]
        parts += [f"## [{family.title}](tl/{family.file}.md)", "\n".join(["| | |", "|---|---|", *rows])]
    return "\n\n".join(parts)


def family_page(family: Family) -> str:
    """The entries of one family."""
    names = names_by_family()[family.file]
    types = [name for name in names if isinstance(getattr(tl, name), dtype)]
    parts = [f"# {family.title}", family.about]
    if types:
        parts += ["## Element types", types_table(types)]
    parts += [entry(f"tl.{name}", getattr(tl, name)) for name in names if name not in types]
    return "\n\n".join(parts)


def types_table(names: Iterable[str]) -> str:
    """Types have no documentation of their own: what they are follows from their fields."""
    rows = ["| type | in IR and signatures | bits | |", "|---|---|---|---|"]
    for name in names:
        value = getattr(tl, name)
        rows.append(f"| <span id='tl.{name}'>`tl.{name}`</span> | `{value}` | {bits_of(value)} | {kind_of(value)} |")
    return "\n".join(rows)


def bits_of(value: Any) -> str:
    return str(getattr(value, "primitive_bitwidth", "")) if not value.is_void() else ""


def kind_of(value: Any) -> str:
    """What the numbers of a type are."""
    if value.is_ptr() or value.is_void():
        return "a pointer to int32" if value.is_ptr() else "nothing: what a kernel returns"
    if value.is_floating():
        fraction = value.fp_mantissa_width
        return f"float: {value.primitive_bitwidth - 1 - fraction} bits of exponent, {fraction} of fraction"
    return "truth values" if value.is_bool() else ("signed integers" if value.is_int_signed() else "unsigned integers")


def entry(name: str, value: Any, level: int = 2) -> str:
    """Heading, signature, documentation, members and source of one name."""
    parts = [f"{'#' * level} {name} {{ #{name} }}"]
    if (signature := signature_of(name, value)) is not None:
        parts.append(f"```python\n{signature}\n```")
    parts.append(as_markdown(documentation(value)) or f"`{name} = {value!r}`")
    if inspect.isclass(value):
        parts.append(members(name, value, level + 1))
    if (link := source_link(value)) is not None:
        parts.append(link)
    return "\n\n".join(part for part in parts if part)


def documentation(value: Any) -> str | None:
    """The docstring of this very object: an instance does not borrow that of its class."""
    if isinstance(value, int | float | str | tuple | dict):
        return None
    return getattr(value, "__doc__", None)


def members(name: str, value: type, level: int) -> str:
    """Public methods and properties of a class; for `tensor`, functions that are methods too are listed, not repeated."""
    if issubclass(value, enum.Enum):
        return "\n".join(f"- `{name}.{member.name}`" for member in value)
    parts: list[str] = []
    repeated: list[str] = []
    for member, found in sorted(vars(value).items()):
        if (member.startswith("_") and member not in SPECIAL) or not (documented := unwrapped(found)):
            continue
        if value is tl.tensor and (member in METHODS or member in public_names()):
            repeated.append(f"[`{member}`]({family_of(member).file}.md#tl.{member})")
        elif documented.__doc__:
            parts.append(entry(f"{name}.{member}", documented, level))
    if repeated:
        parts.append("**As methods**: `x.sum(axis=0)` is `tl.sum(x, axis=0)`. " + ", ".join(repeated) + ".")
    return "\n\n".join(parts)


def unwrapped(member: Any) -> Any:
    """The function behind a method of any kind, or the property itself; None for data."""
    if isinstance(member, staticmethod | classmethod):
        return member.__func__
    if isinstance(member, property) or inspect.isroutine(member) or hasattr(member, "func"):
        return member
    return None


def signature_of(name: str, value: Any) -> str | None:
    """``tl.load(pointer, mask=None, ...)``: without what the compiler supplies and without annotations that say nothing."""
    if isinstance(value, property) or hasattr(value, "func") or not callable(value):
        return None
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    shown = [shown_parameter(p) for key, p in signature.parameters.items() if key not in HIDDEN and key != "self"]
    text = str(signature.replace(parameters=shown, return_annotation=inspect.Signature.empty))
    text = re.sub(r"<(?:class|function|object) '?([\w.]+).*?>", r"\1", text)
    return f"{name}{text}" if len(name) + len(text) < 100 else wrapped(name, shown)


def wrapped(name: str, parameters: list[inspect.Parameter]) -> str:
    """One parameter a line."""
    text = str(inspect.Signature(parameters))
    inner = re.sub(r", (?=[\w*/]+(?::|=|,|$))", ",\n    ", text[1:-1])
    return f"{name}(\n    {inner},\n)"


def shown_parameter(parameter: inspect.Parameter) -> inspect.Parameter:
    """Without an annotation that says nothing, or that is more than a word."""
    note = parameter.annotation
    text = note if isinstance(note, str) else getattr(note, "__name__", str(note))
    is_telling = re.fullmatch(r"\w+( \| \w+)*", text) and text not in ("Any", "_empty", "constexpr")
    return parameter.replace(
        annotation=parameter.empty if not is_telling else Plain(text), default=plain_default(parameter)
    )


class Plain:
    """A text that `str(signature)` shows without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def plain_default(parameter: inspect.Parameter) -> Any:
    """A default as a reader would write it."""
    default = parameter.default
    if default is parameter.empty or isinstance(default, int | float | str | tuple | list | dict | type(None)):
        return default
    inner = getattr(default, "value", default)
    return Plain(getattr(inner, "__name__", None) or repr(inner))


def first_sentence(value: Any) -> str:
    """What a table says of a name: the first sentence of its documentation, on one line."""
    if isinstance(value, dtype):
        return kind_of(value)
    text = inspect.cleandoc(documentation(value) or repr(value)).split("\n\n")[0].replace("\n", " ")
    text = re.split(r"(?<=[.:]) (?=[A-Z`])", text)[0].rstrip(":.")
    return text.replace("|", "\\|")


def source_link(value: Any) -> str | None:
    """A link to the line that defines a value, in the copy of its file that the site has."""
    place = source_place(value)
    if place is None:
        return None
    file, line = place
    return f"[source: {file}:{line}](repo:{file}#L{line}){{ .source }}"


def source_place(value: Any) -> tuple[str, int] | None:
    """(file below the root, line) of a definition, if it is one of ours."""
    function = getattr(value, "fget", None) or getattr(value, "func", None) or value
    function = inspect.unwrap(getattr(function, "fn", function))
    try:
        file = Path(inspect.getsourcefile(function) or "").resolve()
        line = inspect.getsourcelines(function)[1]
    except (TypeError, OSError):
        return None
    return (str(file.relative_to(ROOT)), max(line, 1)) if file.is_relative_to(ROOT) else None
