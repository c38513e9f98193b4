"""The locations of the functions in a compiled kernel: where they were in the process that compiled it, and where they
are here.

    metadata["locations"] = source.locations()      {"library": "/venv/.../tilework/", "files": ["/a/k.py"],
                                                     "functions": [[0, 5, 7, 0]]}
    relocated(key, "add", source, files)            the files of a cache entry, with the locations of this process

The key of an entry does not contain locations. Each function is recorded by file, line of its `def`, number of lines
and indentation, in the order in which the key refers to them, so that the n-th function there is the n-th function
here. Locations in metadata and in IR are replaced when an entry is loaded. Those in machine code cannot be: messages
of `device_assert` on GPUs, and line tables. Code with such messages (``"shows_locations": true``) is used only where it
was compiled, and so is all code where line tables matter: with TILEWORK_EXACT_LOCATIONS=1, and in the emulators.
Elsewhere the variant with the locations of that process has an entry of its own, by `own_key`.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from tilework import knobs
from tilework.runtime.compile.sources import Locations, location_record, metadata_of
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.managers import load_entry
from tilework.targets.base import IR_STAGES

LOCATED = frozenset(("source", *IR_STAGES))
SHOWS = b'"shows_locations": true'


def relocated(key: str, name: str, source: Any, files: Mapping[str, bytes]) -> tuple[str, dict[str, bytes] | None]:
    """Return (key, files) of an entry for this process, from the files of one that was compiled elsewhere; the files
    are None if the kernel must be compiled here."""
    if (found := here(source, files)) is not None:
        return key, found
    key = own_key(key, source)
    own = load_entry(key, name)
    return key, None if own is None else own if source.is_here(own) else here(source, own)


def here(source: Any, files: Mapping[str, bytes]) -> dict[str, bytes] | None:
    """Return the files of an entry that was compiled elsewhere, with the locations of this process; None if the
    locations in its machine code matter."""
    if is_exact():
        return None
    own, data = source.locations(), files[metadata_of(files)]
    if SHOWS in data and not is_of_same_functions(json.loads(data)["locations"], own):
        return None
    return moved(files, own)


def is_of_same_functions(one: Locations, other: Locations) -> bool:
    """Return True if the locations are equal, except for the folder of this package."""
    return all(one[part] == other[part] for part in ("files", "functions"))


def moved(files: Mapping[str, bytes], own: Locations) -> dict[str, bytes]:
    """Return the files of an entry with the locations `own` in metadata and IR."""
    name = metadata_of(files)
    metadata = json.loads(files[name])
    if not isinstance(old := metadata.get("locations"), dict):
        return dict(files)
    map = Map(old, own)
    changed = {file: map.text(data.decode()).encode() for file, data in files.items() if stage_of(file) in LOCATED}
    metadata = {**map.values(metadata), "locations": own}
    return {**files, **changed, name: json.dumps(metadata).encode()}


def stage_of(file: str) -> str:
    return file.rpartition(".")[2]


def is_exact() -> bool:
    """Return True if line tables have to be those of this process."""
    return knobs.cache.exact_locations or getattr(driver.active, "reads_line_tables", False)


def own_key(key: str, source: Any) -> str:
    """Return the key of the variant with the locations of this process."""
    own = source.locations()
    if not is_exact():
        own = {**own, "library": ""}
    return hashlib.sha256(key.encode() + location_record(own)).hexdigest()


class Map:
    """A map of positions where a kernel was compiled to positions in this process."""

    def __init__(self, old: Locations, new: Locations) -> None:
        self.library = old["library"], new["library"]
        self.functions = [
            (old["files"][one[0]], one, new["files"][other[0]], other)
            for one, other in zip(old["functions"], new["functions"])
        ]
        files = {escaped(file): file for file in old["files"]} | {file: file for file in old["files"]}
        self.files = files
        names = "|".join(re.escape(file) for file in sorted(files, key=len, reverse=True))
        self.pattern = re.compile(rf'(?<![\w/.-])({names})("?):(\d+)(?::(\d+))?') if names else None

    def position(self, file: str, line: int, column: int) -> tuple[str, int, int]:
        """Return a position in this process; one outside of all functions is returned unchanged."""
        for old_file, (_, first, count, indent), new_file, (_, new_first, _, new_indent) in self.functions:
            if file == old_file and first <= line < first + count:
                return new_file, line - first + new_first, max(0, column - indent + new_indent)
        return file, line, column

    def text(self, text: str) -> str:
        """Return a text with all its positions replaced."""
        if self.pattern is not None:
            text = self.pattern.sub(self.replacement, text)
        old, new = self.library
        return text.replace(old, new) if old != new else text

    def replacement(self, found: "re.Match[str]") -> str:
        column = int(found[4] or 0)
        file, line, column = self.position(self.files[found[1]], int(found[3]), column)
        shown = escaped(file) if found[2] else file
        return f"{shown}{found[2]}:{line}" + (f":{column}" if found[4] else "")

    def values(self, value: Any) -> Any:
        """Return JSON data with all positions in its strings replaced."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.values(item) for item in value]
        return {key: self.values(item) for key, item in value.items()} if isinstance(value, dict) else value


def escaped(file: str) -> str:
    """Return a file name as IR quotes it."""
    if file.isascii() and file.isprintable() and '"' not in file and "\\" not in file:
        return file
    from tilework.ir.attr_text import quoted  # lazily: few names are odd

    return quoted(file)[1:-1]
