"""The text of encodings, both ways, from the fields of the values of `layouts/encodings.py`.

    blocked          #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
    slice            #ttg.slice<{dim = 1, parent = #blocked}>
    shared_linear    #ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 16>
    padded_shared    #ttg.padded_shared<[16:+4] {order = [1, 0], shape = [16, 32]}>

`encoding_parts` gives the text after the name in parts, because the text of a parent is for the printer to choose (an
alias, mostly); `read_encoding` reads the same. A linear layout is written as its bases, that of memory without a swizzle
as an order and a shape where it is padded. How blocks share a tensor (`CGALayout`) is left out when there is one block.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any

from xdsl.parser import AttrParser

from tilework.ir.legacy.encoding_fields import OLD_NAMES, Fields, modernize
from tilework.layouts import amd as amd  # has kinds too
from tilework.layouts.encodings import (
    DISTRIBUTED_INS,
    KINDS,
    SHARED_INS,
    Bases,
    Encoding,
    Linear,
    PaddedShared,
    SharedLinear,
    SwizzledShared,
)
from tilework.layouts.errors import LayoutError
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import first_moved, to_linear

Parts = Sequence[str | Encoding]
BY_NAME = {kind.NAME: kind for kind in KINDS}
NAMES = {f"ttg.{name}": name for name in (*BY_NAME, *OLD_NAMES)}
"""The encodings that can be read, by the name of their attribute."""


@cache
def written_fields(kind: type[Encoding]) -> tuple[tuple[str, Field[Any]], ...]:
    """Each field of `kind` and how it is called in text: ``sizePerThread``."""
    camel = lambda name: re.sub("_(.)", lambda found: found[1].upper(), name)  # noqa: E731
    return tuple((field.metadata.get("name") or camel(field.name), field) for field in fields(kind))  # type: ignore


def unwritten(field: Field[Any], known: Fields) -> Any:
    """The value of a field that is not written, or MISSING."""
    implied = field.metadata.get("implied")
    return field.default if implied is None else implied(known)


# Writing


def encoding_parts(encoding: Encoding) -> Parts:
    """The text after ``#ttg.name``: strings, and the parent where it is named."""
    known = vars(encoding)
    before: list[str | Encoding] = ["<"]
    inside: list[str | Encoding] = []
    after = ""
    for name, field in written_fields(type(encoding)):
        value = known[field.name]
        if isinstance(value, LinearLayout):
            inside.append(layout_text(type(encoding), value))
        elif field.name == "intervals":
            before = [f"<[{', '.join(f'{interval}:+{padding}' for interval, padding in value)}] "]
        elif field.metadata.get("outside"):
            after = f", {name} = {value}"
        elif value != unwritten(field, known):
            inside += [", "] if inside else []
            inside += [f"{name} = ", value] if isinstance(value, Encoding) else [f"{name} = {value_text(value)}"]
    return [*before, "{", *inside, "}", after, ">"]


def value_text(value: Any) -> str:
    """``[[0, 1], [1, 0]]``, ``true``, ``8``."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return str(value).lower()


def layout_text(kind: type[Encoding], layout: LinearLayout) -> str:
    """``offset = [[0, 1]], block = []``, or ``order = [1, 0], shape = [16, 32]``."""
    if kind is PaddedShared:
        order, shape = first_moved(layout, "offset"), tuple(size for _, size in layout.outs)
        if layout == plain_layout(order, shape):
            return f"order = {value_text(order)}, shape = {value_text(shape)}"
    text = ", ".join(f"{name} = {value_text(bases)}" for name, bases in layout.bases)
    return text.removesuffix(", block = []") if kind is SharedLinear else text


def plain_layout(order: tuple[int, ...], shape: tuple[int, ...]) -> LinearLayout:
    """Elements one after the other, dimension ``order[0]`` fastest."""
    return to_linear(SwizzledShared(1, 1, 1, order), shape)


# Reading


def read_value(parser: AttrParser) -> Any:
    """A number, a truth value, a list of these, or an encoding."""
    if (
        values := parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, lambda: read_value(parser))
    ) is not None:
        return tuple(values)
    if (flag := parser.parse_optional_boolean()) is not None:
        return flag
    if (number := parser.parse_optional_integer(allow_boolean=False)) is not None:
        return number
    position = parser.pos
    attribute = parser.parse_attribute()
    if not isinstance(encoding := getattr(attribute, "data", None), Encoding):
        parser.raise_error(f"an encoding is expected here, not {attribute}", position)
    return encoding


def read_entry(parser: AttrParser) -> tuple[str, Any]:
    """``sizePerThread = [1, 8]``."""
    name = parser.parse_identifier(" for a field of an encoding")
    parser.parse_punctuation("=")
    return name, read_value(parser)


def read_interval(parser: AttrParser) -> tuple[int, int]:
    """``16:+4``."""
    interval = parser.parse_integer(allow_boolean=False)
    parser.parse_punctuation(":")
    parser.parse_punctuation("+")
    return interval, parser.parse_integer(allow_boolean=False)


def read_fields(name: str, parser: AttrParser) -> Fields:
    """``<{sizePerThread = [1, 8], ...}>``, with what stands before or behind the braces."""
    position = parser.pos
    entries: list[tuple[str, Any]] = []
    known = written_fields(BY_NAME[name]) if name in BY_NAME else ()
    outside = [field.name for _, field in known if field.metadata.get("outside")]
    with parser.in_angle_brackets():
        if outside == ["intervals"]:
            pairs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: read_interval(parser))
            entries.append(("intervals", tuple(pairs)))
        entries += parser.parse_comma_separated_list(parser.Delimiter.BRACES, lambda: read_entry(parser))
        if outside == ["alignment"] and parser.parse_optional_punctuation(","):
            entries.append(read_entry(parser))
    if len(dict(entries)) != len(entries):
        parser.raise_error("a field of this encoding is given twice", position)
    return dict(entries)


def read_encoding(name: str, parser: AttrParser) -> Encoding:
    """``<{...}>`` of ``#ttg.name``."""
    position = parser.pos
    return make_encoding(name, read_fields(name, parser), parser, position)


def make_encoding(name: str, given: Fields, parser: AttrParser, position: int) -> Encoding:
    """The encoding with these fields, or an error at the place where it is written."""
    try:
        kind = BY_NAME[modernize(name, given)]
        encoding = kind(**dict(field_values(kind, given)))
    except KeyError as error:
        parser.raise_error(f"this encoding needs the field {error.args[0]}", position)
    except (LayoutError, TypeError, AttributeError, IndexError) as error:
        parser.raise_error(str(error), position)
    if given:
        parser.raise_error(f"unexpected key: {', '.join(given)}", position)
    return encoding


def field_values(kind: type[Encoding], given: Fields) -> Iterator[tuple[str, Any]]:
    """The fields of `kind` by their names there; what is used of `given` is taken out."""
    known: Fields = {}
    for name, field in written_fields(kind):
        if field.name == "layout":
            known[field.name] = read_layout(kind, given)
        elif name in given or field.default is MISSING:
            known[field.name] = given.pop(name)
    for _, field in written_fields(kind):
        if field.name not in known:
            known[field.name] = unwritten(field, {"cga": (), **known})
    yield from known.items()


def read_layout(kind: type[Encoding], given: Fields) -> LinearLayout:
    """The layout with these bases; each dimension is as large as they reach."""
    if kind is PaddedShared and "order" in given:
        return plain_layout(given.pop("order"), given.pop("shape"))
    names = DISTRIBUTED_INS if kind is Linear else SHARED_INS
    if kind is not Linear:
        given.setdefault("block", ())
    bases: list[tuple[str, Bases]] = [(name, given.pop(name)) for name in names]
    ranks = {len(basis) for _, vectors in bases for basis in vectors}
    if len(ranks) != 1:
        raise LayoutError("the bases of a layout have one rank" if ranks else "a layout needs at least one basis")
    return LinearLayout(bases, [f"dim{dim}" for dim in range(ranks.pop())])
