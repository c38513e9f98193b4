"""The source lines of each line of a stage, and tables that store every text once.

    >>> located_ir('#l = loc("k.py":3:4)\\n%0 = tt.load %p : f32 loc(#l)\\n')
    [('%0 = tt.load %p : f32', (('k.py', 3, 4),))]

A location is a file, a line and a column; the first is that of the line's own code, the others are the calls that led
there. Text that only encodes locations (`loc(...)`, ``!dbg``, ``.loc``) is left out of the lines.

    tables = Tables()
    tables.rows([("%0 = tt.load %p : f32", (("k.py", 3, 4),))])          [0]
    tables.data()["strings"][0]                                          "%0 = tt.load %p : f32"

A row is a line of text with its locations, a text a list of rows. The IR behind forty passes differs little from pass
to pass, so that a page stores the first text and, for each pass, the rows that it replaced (`edits`).

    parts_of("matmul.py", {13, 28})       [Part("program_tile", 10, [...]), Part("matmul", 22, [...])]

is the Python that a page shows: the functions that code comes from, or the lines around a location outside of every
function.
"""

import ast
import linecache
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from tilework.aot.signature import split_entries, unquoted
from tilework.errors import LIBRARY

Location = tuple[str, int, int]
Locations = tuple[Location, ...]
Located = tuple[str, Locations]

FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)(?: to (?::?\d+)?:\d+)?')
NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"\(')
ALIAS = re.compile(r"^#(loc\d*) = loc\((.*)\)$")
REFERENCE = re.compile(r"#(loc\d*)")


# ---- MLIR


def located_ir(text: str) -> list[Located]:
    """Lines of a module that was printed with its locations."""
    lines = text.splitlines()
    aliases = {match[1]: match[2] for line in lines if (match := ALIAS.match(line)) is not None}
    known: dict[str, Locations] = {}

    def locations(location: str) -> Locations:
        if location not in known:
            known[location] = ()  # an alias of itself says nothing
            known[location] = tuple(dict.fromkeys(locations_of(location, aliases, locations)))
        return known[location]

    found: list[Located] = []
    opened: list[list[int]] = []  # lines that begin what a later line ends, which has the location
    for line in lines:
        if line.startswith("#loc") and ALIAS.match(line) is not None:
            continue
        shown, location = without_locations(line)
        here = locations(location) if location else ()
        bare = shown.strip()
        ends = opened.pop() if bare.startswith("}") and opened else []
        if bare.endswith("{"):
            opened.append([*ends, len(found)])
        else:
            for index in ends:
                found[index] = (found[index][0], found[index][1] or here)
        found.append((shown, here))
    return found


def without_locations(line: str) -> tuple[str, str]:
    """A line without its locations, and the last of them, which is that of the op."""
    kept, last, start = [], "", 0
    while (at := line.find(" loc(", start)) >= 0:
        end = closing(line, at + 4)
        if end < 0:
            break
        kept.append(line[start:at])
        last, start = line[at + 5 : end], end + 1
    kept.append(line[start:])
    # a location in the middle is that of an argument
    return "".join(kept).rstrip(), last if last and not line[start:].strip(" {") else ""


def closing(text: str, start: int) -> int:
    """Return the index of the bracket that closes the one at `start`, ignoring quoted text; -1 if there is none."""
    return next((start + index for index, _, depth in unquoted(text[start:]) if depth == 0), -1)


def locations_of(location: str, aliases: dict[str, str], locations: Callable[[str], Locations]) -> Iterable[Location]:
    """The locations that the inside of ``loc(...)`` names, its own first."""
    location = location.strip()
    if (found := REFERENCE.fullmatch(location)) is not None:
        return locations(aliases.get(found[1], ""))
    if (found := FILE.fullmatch(location)) is not None:
        return [(found[1], int(found[2]), int(found[3]))]
    if location.startswith("callsite("):
        callee, caller = split_call(location[len("callsite(") : -1])
        return [*locations(callee), *locations(caller)]
    if location.startswith("fused"):
        inside = location[location.index("[") + 1 : location.rindex("]")]
        return [found for part in split_entries(inside) for found in locations(part)]
    if NAMED.match(location) is not None:
        return locations(location[location.index('"(') + 2 : -1])
    return ()


def split_call(text: str) -> tuple[str, str]:
    """``a at b``, where `a` may have calls in it."""
    at = next((index for index, _, depth in unquoted(text) if depth == 0 and text.startswith(" at ", index)), -1)
    return (text[:at], text[at + 4 :]) if at >= 0 else (text, "")


# ---- LLVM text

DEBUG = re.compile(r",? !dbg !(\d+)")
NODE = re.compile(r"^!(\d+) = (?:distinct )?!DI(\w+)\((.*)\)$")
FIELD = re.compile(r'(\w+): (?:"((?:[^"\\]|\\.)*)"|!(\d+)|(\d+))')
METADATA = re.compile(r"^!(\d+ = (distinct )?!DI|llvm\.dbg|DI)")


def located_llvm(text: str) -> list[Located]:
    """Lines of LLVM text with debug metadata."""
    nodes: dict[str, tuple[str, dict[str, str]]] = {}
    for line in text.splitlines():
        if (node := NODE.match(line)) is not None:
            nodes[node[1]] = node[2], {name: a or b or c for name, a, b, c in FIELD.findall(node[3])}

    def file_of(scope: str) -> str:
        """The file of a scope, through those around it."""
        for _ in range(len(nodes)):
            _, fields = nodes.get(scope, ("", {}))
            if "filename" in fields:
                return os.path.join(fields.get("directory", ""), fields["filename"])
            scope = fields.get("file") or fields.get("scope", "")
        return ""

    def locations(node: str) -> Locations:
        kind, fields = nodes.get(node, ("", {}))
        if kind == "Subprogram":
            return ((file_of(node), int(fields.get("line", 0)), 0),)
        if kind != "Location" or not int(fields.get("line", 0)):
            return ()
        own = (file_of(fields.get("scope", "")), int(fields["line"]), int(fields.get("column", 0)))
        return (own, *(locations(fields["inlinedAt"]) if "inlinedAt" in fields else ()))

    known: dict[str, Locations] = {}
    found: list[Located] = []
    for line in text.splitlines():
        if METADATA.match(line) is not None:
            continue
        tag = DEBUG.search(line)
        if tag is not None and tag[1] not in known:
            known[tag[1]] = locations(tag[1])
        found.append((DEBUG.sub("", line), known[tag[1]] if tag is not None else ()))
    return trimmed(found)


# ---- assembly: PTX, AMD's, the host's

ASM_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
ASM_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)")
DEBUG_LABEL = re.compile(r"^\s*(\$L__tmp|\.Ltmp|\.Lfunc_|\$L__func|Ltmp)\w*:\s*$")
DEBUG_SECTION = re.compile(r'^\s*\.section\s+"?[\w.,]*(?:debug_|\.debug)')
CODE = re.compile(r"^\s*[@\w{$.]")
DATA = re.compile(r"^\s*(\.(section|size|set|ident|globl|p2align|addrsig|amdhsa|amdgpu|end_amd)|\}\s*$)")


def located_assembly(text: str) -> list[Located]:
    """Lines of assembly; a ``.loc`` holds until the next one, or until the function ends."""
    lines = text.splitlines()
    files: dict[str, str] = {}
    for line in lines:
        if (found := ASM_FILE.match(line)) is not None:
            files[found[1]] = os.path.join(found[2], found[3]) if found[3] else found[2]
    result: list[Located] = []
    here: Locations = ()
    is_debug = False
    for line in lines:
        if line.lstrip().startswith(".section"):
            is_debug = DEBUG_SECTION.match(line) is not None
        if is_debug or ASM_FILE.match(line) is not None or DEBUG_LABEL.match(line) is not None:
            continue
        if (found := ASM_LOC.match(line)) is not None:
            here = ((files.get(found[1], ""), int(found[2]), int(found[3])),) if int(found[2]) else ()
            continue
        here = () if DATA.match(line) is not None else here
        result.append((line.expandtabs(8), here if CODE.match(line) is not None else ()))
    return trimmed(result)


# ---- SASS

SASS_LINE = re.compile(r"^; (.*):(\d+)$")


def located_sass(text: str) -> list[Located]:
    """Lines of `disassemble(cubin, lines=True)`: ``; FILE:LINE`` precedes the instructions of a line."""
    here: Locations = ()
    result: list[Located] = []
    for line in text.splitlines():
        if (found := SASS_LINE.match(line)) is not None:
            here = ((found[1], int(found[2]), 0),)
        elif line.startswith("Function:"):
            here = ()
            result.append((line, ()))
        else:
            result.append((line.expandtabs(16), here))
    return result


def trimmed(lines: list[Located]) -> list[Located]:
    """Remove empty lines at the end, and return the list."""
    while lines and not lines[-1][0].strip():
        lines.pop()
    return lines


READERS: dict[str, Callable[[str], list[Located]]] = {
    **dict.fromkeys(("source", "ttir", "ttgir", "ttcir"), located_ir),
    "llir": located_llvm,
    **dict.fromkeys(("ptx", "amdgcn", "asm"), located_assembly),
    "sass": located_sass,
}


def located(stage: str, text: str) -> list[Located]:
    """The lines of the text of a stage."""
    return READERS.get(stage, unlocated)(text)


def unlocated(text: str) -> list[Located]:
    """Lines of which nothing is known."""
    return [(line, ()) for line in text.splitlines()]


Edit = list[Any]  # at which row, how many rows go, the rows that come


class Interned:
    """Different values, each with an id in order of first use."""

    def __init__(self) -> None:
        self.ids: dict[Any, int] = {}

    def __getitem__(self, value: Any) -> int:
        return self.ids.setdefault(value, len(self.ids))

    def __iter__(self) -> Any:
        return iter(self.ids)


class Tables:
    """The ids of strings, files, locations and rows of one page."""

    def __init__(self) -> None:
        self.strings, self.files, self.locations, self.row_ids = Interned(), Interned(), Interned(), Interned()
        self.locations_id(())  # id 0: nowhere
        self.callers: dict[Location | tuple[str, int], dict[Location, None]] = {}

    def locations_id(self, locations: Iterable[Location]) -> int:
        """The id of the source lines that some locations name: columns do not count."""
        return self.locations[
            tuple(dict.fromkeys((self.files[file], line) for file, line, _ in locations if file and line))
        ]

    def rows(self, lines: Iterable[Located]) -> list[int]:
        return [self.row_ids[self.strings[text], self.locations_id(locations)] for text, locations in lines]

    def learn_callers(self, lines: Iterable[Located]) -> None:
        """Remember which calls led to each location: assembly names only the location itself."""
        for _, locations in lines:
            for index, (file, line, column) in enumerate(locations[:-1]):
                calls = dict.fromkeys(locations[index + 1 :])
                self.callers.setdefault((file, line, column), {}).update(calls)
                self.callers.setdefault((file, line), {}).update(calls)

    def with_callers(self, lines: Iterable[Located]) -> list[Located]:
        """Lines whose locations are single ones, with the calls that may have led there."""
        return [(text, self.called(locations)) for text, locations in lines]

    def called(self, locations: Locations) -> Locations:
        if len(locations) != 1:
            return locations
        ((file, line, column),) = locations
        found = self.callers.get((file, line, column)) or self.callers.get((file, line)) or {}
        return (*locations, *found)

    def edits(self, before: Sequence[int], after: Sequence[int]) -> list[Edit]:
        """Return the edits that transform one text into the other."""
        if before == after:
            return []
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        return [
            [first, last - first, list(after[new:end])]
            for kind, first, last, new, end in matcher.get_opcodes()
            if kind != "equal"
        ]

    def data(self) -> dict[str, Any]:
        """Return the tables for the page: strings, locations as lists of [file, line], and two lists for the rows."""
        rows = list(self.row_ids)
        return {
            "strings": list(self.strings),
            "locations": [[list(line) for line in lines] for lines in self.locations],
            "rowStrings": [text for text, _ in rows],
            "rowLocations": [locations for _, locations in rows],
        }


def edited(before: Sequence[int], edits: Iterable[Edit]) -> list[int]:
    """The text that `edits` make of one."""
    after: list[int] = []
    done = 0
    for at, removed, rows in edits:
        after += [*before[done:at], *rows]
        done = at + removed
    return [*after, *before[done:]]


AROUND = 3


@dataclass(frozen=True)
class Part:
    """Consecutive lines of a file, and what they are called."""

    name: str
    first: int
    lines: list[str]


def is_library(file: str) -> bool:
    """Return True if a file belongs to the language itself."""
    return file.startswith(LIBRARY)


def parts_of(file: str, used: Collection[int]) -> list[Part]:
    """The functions that have one of the lines `used`; [] if the file cannot be read."""
    lines = [line.rstrip("\n") for line in linecache.getlines(file)] or read(file)
    used = {line for line in used if 0 < line <= len(lines)}
    if not used:
        return []
    known = functions("\n".join(lines))
    found = {(first, last): name for name, first, last in known if any(first <= line <= last for line in used)}
    alone = [line for line in used if not any(first <= line <= last for first, last in found)]
    ranges = [*found, *((max(1, line - AROUND), line + AROUND) for line in alone)]
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return [Part(found.get((first, last), ""), first, lines[first - 1 : last]) for first, last in merged]


def read(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, first line (of the decorators) and last line of every function that is not inside another one."""
    try:
        waiting: list[ast.AST] = list(ast.parse(text).body)
    except SyntaxError:
        return
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield node.name, first, node.end_lineno or node.lineno
        else:
            waiting += ast.iter_child_nodes(node)
