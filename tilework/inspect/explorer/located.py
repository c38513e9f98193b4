"""The text of a stage as lines, each with the places in the source that it comes from.

    >>> located_ir('#l = loc("k.py":3:4)\\n%0 = tt.load %p : f32 loc(#l)\\n')
    [('%0 = tt.load %p : f32', (('k.py', 3, 4),))]

A place is a file, a line and a column; the first is where the line's own code stands, the others are the calls that led there. What only
says places (`loc(...)`, ``!dbg``, ``.loc``) is left out of the lines.
"""

import os
import re
from collections.abc import Callable, Iterable

from tilework.aot.signature import split_entries, unquoted

Place = tuple[str, int, int]
Places = tuple[Place, ...]
Located = tuple[str, Places]

FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)(?: to (?::?\d+)?:\d+)?')
NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"\(')
ALIAS = re.compile(r"^#(loc\d*) = loc\((.*)\)$")
REFERENCE = re.compile(r"#(loc\d*)")


# ---- MLIR


def located_ir(text: str) -> list[Located]:
    """Lines of a module that was printed with its locations."""
    lines = text.splitlines()
    aliases = {match[1]: match[2] for line in lines if (match := ALIAS.match(line)) is not None}
    known: dict[str, Places] = {}

    def places(location: str) -> Places:
        if location not in known:
            known[location] = ()  # an alias of itself says nothing
            known[location] = tuple(dict.fromkeys(places_of(location, aliases, places)))
        return known[location]

    found: list[Located] = []
    opened: list[list[int]] = []  # lines that begin what a later line ends, which has the location
    for line in lines:
        if line.startswith("#loc") and ALIAS.match(line) is not None:
            continue
        shown, location = without_locations(line)
        here = places(location) if location else ()
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
    """Where the bracket that opens at `start` is closed; brackets in quotes do not count. -1: nowhere."""
    return next((start + index for index, _, depth in unquoted(text[start:]) if depth == 0), -1)


def places_of(location: str, aliases: dict[str, str], places: Callable[[str], Places]) -> Iterable[Place]:
    """The places that the inside of ``loc(...)`` names, its own first."""
    location = location.strip()
    if (found := REFERENCE.fullmatch(location)) is not None:
        return places(aliases.get(found[1], ""))
    if (found := FILE.fullmatch(location)) is not None:
        return [(found[1], int(found[2]), int(found[3]))]
    if location.startswith("callsite("):
        callee, caller = split_call(location[len("callsite(") : -1])
        return [*places(callee), *places(caller)]
    if location.startswith("fused"):
        inside = location[location.index("[") + 1 : location.rindex("]")]
        return [place for part in split_entries(inside) for place in places(part)]
    if NAMED.match(location) is not None:
        return places(location[location.index('"(') + 2 : -1])
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

    def places(number: str) -> Places:
        kind, fields = nodes.get(number, ("", {}))
        if kind == "Subprogram":
            return ((file_of(number), int(fields.get("line", 0)), 0),)
        if kind != "Location" or not int(fields.get("line", 0)):
            return ()
        own = (file_of(fields.get("scope", "")), int(fields["line"]), int(fields.get("column", 0)))
        return (own, *(places(fields["inlinedAt"]) if "inlinedAt" in fields else ()))

    known: dict[str, Places] = {}
    found: list[Located] = []
    for line in text.splitlines():
        if METADATA.match(line) is not None:
            continue
        tag = DEBUG.search(line)
        if tag is not None and tag[1] not in known:
            known[tag[1]] = places(tag[1])
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
    here: Places = ()
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
    """Lines of `disassemble(cubin, lines=True)`: ``; FILE:LINE`` stands before the instructions of a line."""
    here: Places = ()
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
    """Without empty lines at the end."""
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
    """The lines of the product of a stage."""
    return READERS.get(stage, unlocated)(text)


def unlocated(text: str) -> list[Located]:
    """Lines of which nothing is known."""
    return [(line, ()) for line in text.splitlines()]
