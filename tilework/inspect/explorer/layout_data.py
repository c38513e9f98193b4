"""Layouts as numbers that a page draws pictures of: the bases of linear layouts.

    types = layouts_of(["tensor<128x64xf16, #ttg.blocked<{...}>>"])
    types[...]["bases"]["lane"]      [[0, 8], [0, 16], ...]: where the lanes 1, 2, 4, ... are

Types are spelled without aliases, since passes number those as they come (`spelled_out`). Tiles whose sizes are no powers of two are padded before they
are laid out: `seen` lists the sizes that became this one, if not all of it is seen.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from xdsl.utils.exceptions import ParseError

from tilework.inspect.explorer.located import closing
from tilework.ir.encodings import encoding_attr, encoding_of, shared_of
from tilework.ir.parser import IRParser
from tilework.ir.types import Shape, bit_width, shape_of
from tilework.layouts.banks import access_table
from tilework.layouts.errors import LayoutError
from tilework.layouts.to_linear import to_linear
from tilework.transforms.padding.padded import padded_shape

TYPE = re.compile(r"(?:!ttg\.memdesc|tensor)<")
ALIAS = re.compile(r"^#(\w+) = (.*)$")
SIZES = re.compile(r"tensor<((?:\d+x)+)")
NAME = re.compile(r"#(\w+)\b(?!\.)")


def aliases_of(lines: Iterable[str]) -> dict[str, str]:
    """What the names of layouts mean, spelled out."""
    found: dict[str, str] = {}
    for line in lines:
        if (match := ALIAS.match(line)) is not None:
            found[match[1]] = spelled_out(match[2], found)
    return found


def spelled_out(text: str, aliases: Mapping[str, str]) -> str:
    return NAME.sub(lambda match: aliases.get(match[1], match[0]), text)


def types_in(line: str) -> Iterator[str]:
    """The types with a layout in a line of IR."""
    for match in TYPE.finditer(line):
        end = closing(line, match.end() - 1)
        if end > 0 and "#" in line[match.start() : end]:
            yield line[match.start() : end + 1]


def sizes_in(lines: Iterable[str]) -> list[Shape]:
    """The sizes of all tiles in a text."""
    found = dict.fromkeys(match[1] for line in lines for match in SIZES.finditer(line))
    return [tuple(map(int, sizes.split("x")[:-1])) for sizes in found]


def layouts_of(texts: Iterable[Iterable[str]], sizes: Iterable[Shape] = ()) -> dict[str, dict[str, Any]]:
    """The layouts of all types in some texts, by the type without aliases; `sizes` are those that tiles had before they were padded."""
    padded: dict[Shape, list[Shape]] = {}
    for size in sizes:
        padded.setdefault(padded_shape(size), []).append(size)
    found: dict[str, dict[str, Any]] = {}
    for lines in texts:
        lines = list(lines)
        aliases = aliases_of(lines)
        for type in dict.fromkeys(type for line in lines if not line.startswith("#") for type in types_in(line)):
            whole = spelled_out(type, aliases)
            if whole not in found and (data := layout_of(whole)) is not None:
                shape = tuple(data["shape"])
                if (seen := padded.get(shape, [shape])) != [shape]:
                    data["seen"] = [list(size) for size in seen]
                found[whole] = data
    return found


def layout_of(type: str) -> dict[str, Any] | None:
    """What is drawn of a type; None where there is nothing to draw."""
    try:
        attribute = IRParser(type, "type").parse_attribute()
        encoding = encoding_of(attribute)
        if encoding is None:
            return None
        shape, bits = shape_of(attribute), max(8, bit_width(attribute))
        shape = shape[len(shape) - encoding.rank :]  # buffers of a ring lie behind each other
        layout = to_linear(encoding, tuple(shape))
    except (ParseError, LayoutError):
        return None
    is_shared = shared_of(attribute) is not None
    return {
        "encoding": str(encoding_attr(encoding)),
        "shape": [size for _, size in layout.outs],
        "bits": bits,
        "bases": {name: [list(basis) for basis in bases] for name, bases in layout.bases},
        **({"conflicts": access_table(layout, bits)} if is_shared else {}),
    }
