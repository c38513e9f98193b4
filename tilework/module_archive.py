"""Modules out of one file: looking for a module, opening its bytecode and checking it takes Python a tenth of a millisecond, and a
compiler has 400 of them.

    tilework/__pycache__/archive.cpython-311.pyc.modules        an index, and the bytecode of all modules, one after the other

A module comes from there as long as Python would take the same bytecode: its source has the size and the time of change that it
had, and its folder its time, so that no other file has come to be found before it. All others are found as ever. A process
that had to look for many writes the file again when it ends, with what it has loaded and what the file had; where bytecode is not
written, neither is this.
"""

import atexit
import marshal
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source
from types import ModuleType
from typing import Any

OWNERS = ("tilework", "xdsl", "llvmlite")
MANY = 20  # modules that are worth writing the file again
LENGTH = 8  # bytes that say how long the index is
TICK = 2_000_000_000  # nanoseconds, see `kernel_cache/key.py`

State = tuple[int, int]  # size, time of change in nanoseconds
# folder, source, bytecode, state of the source, whether it is a package, where it begins and ends
Entry = tuple[str, str, str, State, bool, int, int]


class ArchivedLoader(SourceFileLoader):
    """The loader of a source file whose bytecode is here."""

    def __init__(self, name: str, path: str, content: memoryview) -> None:
        super().__init__(name, path)
        self.content = content

    def get_code(self, fullname: str) -> Any:
        return marshal.loads(self.content)


class Archive:
    """A finder of modules: ``sys.meta_path.insert(0, Archive(path))``."""

    def __init__(self, path: str, owners: Sequence[str] = OWNERS) -> None:
        self.path, self.owners, self.process = path, owners, os.getpid()
        self.folders: dict[str, int] = {}  # when each was changed
        self.entries: dict[str, Entry | None] = {}  # None: cannot be here
        self.content = memoryview(b"")
        with suppress(OSError, ValueError, EOFError, TypeError):
            self.read()

    def read(self) -> None:
        import mmap  # lazily: an empty package has no file

        with open(self.path, "rb", 0) as file:
            content = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        start = LENGTH + int.from_bytes(content[:LENGTH], "little")
        magic, size, folders, entries = marshal.loads(content[LENGTH:start])
        if magic == MAGIC_NUMBER and size == len(content) - start:
            self.content, self.folders, self.entries = content[start:], folders, entries

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """The spec of a module that is here, for a package that Python itself has found."""
        entry = self.entries.get(name)
        if entry is None or path is None or not is_plain(sys.modules.get(name.partition(".")[0])):
            return None
        folder, source, bytecode, state, is_package, start, end = entry
        try:
            if next(iter(path)) != folder or not self.is_same(folder) or state_of(source) != state:
                return None
            if is_package and not self.is_same(os.path.dirname(source)):
                return None
        except (OSError, StopIteration):
            return None
        spec = ModuleSpec(name, ArchivedLoader(name, source, self.content[start:end]), origin=source)
        spec.has_location, spec.cached = True, bytecode
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(source)]
        return spec

    def is_same(self, folder: str) -> bool:
        """Whether a folder has the names that it had."""
        return os.stat(folder).st_mtime_ns == self.folders.get(folder)

    def keep_later(self) -> None:
        """At the end of this process write the file again, if that pays."""
        atexit.register(self.keep)

    def keep(self) -> None:
        if sys.dont_write_bytecode or os.getpid() != self.process:
            return
        new = [name for name, module in list(sys.modules.items()) if self.is_new(name, module)]
        if len(new) < MANY:
            return
        with suppress(OSError):
            self.write(new)

    def is_new(self, name: str, module: ModuleType) -> bool:
        """Whether a module was found by Python, and is not known to be one that cannot be here."""
        top, _, rest = name.partition(".")
        if not rest or top not in self.owners or not is_plain(module) or not is_plain(sys.modules.get(top)):
            return False
        spec = module.__spec__
        return spec is not None and spec.name == name and self.entries.get(name, ()) is not None

    def write(self, new: Sequence[str]) -> None:
        """Write what is new, and of the rest what is as it was; the file is whole at every moment."""
        parts: list[bytes | memoryview] = []
        entries: dict[str, Entry | None] = {}
        folders: dict[str, int] = {}
        size = 0
        for name, entry in (*self.entries.items(), *((name, None) for name in new)):
            found = self.known(entry) if entry is not None else bytecode_of(sys.modules.get(name))
            entries[name] = None
            if found is None:
                continue
            folder, source, bytecode, state, is_package, content = found
            inside = [folder, os.path.dirname(source)] if is_package else [folder]
            entries[name] = (folder, source, bytecode, state, is_package, size, size + len(content))
            folders.update({place: state_of(place)[1] for place in inside if place not in folders})
            parts.append(content)
            size += len(content)
        changed = max((*folders.values(), *(entry[3][1] for entry in entries.values() if entry is not None)))
        if time.time_ns() - changed < TICK:  # another change may follow that has the same time
            return
        index = marshal.dumps((MAGIC_NUMBER, size, folders, entries))
        draft = f"{self.path}.{os.getpid()}"
        try:
            with open(draft, "xb") as file:
                file.writelines((len(index).to_bytes(LENGTH, "little"), index, *parts))
            os.replace(draft, self.path)
        except OSError:
            with suppress(OSError):
                os.remove(draft)

    def known(self, entry: Entry) -> Any:
        """An entry of the old file, if its source is still the same."""
        *facts, start, end = entry
        return (*facts, self.content[start:end]) if is_state(entry[1], entry[3]) else None


def is_plain(module: ModuleType | None) -> bool:
    """Whether a module was loaded from its source in Python's own way."""
    return type(getattr(getattr(module, "__spec__", None), "loader", None)) is SourceFileLoader


def state_of(path: str) -> State:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def is_state(path: str, state: State) -> bool:
    try:
        return state_of(path) == state
    except OSError:
        return False


def bytecode_of(module: ModuleType | None) -> Any:
    """The facts of an `Entry` about a loaded module and its bytecode as Python keeps it; None if that is not of this source."""
    spec = getattr(module, "__spec__", None)
    if spec is None or not spec.origin or not spec.cached:
        return None
    source, bytecode = spec.origin, spec.cached
    is_package = spec.submodule_search_locations is not None
    folder = os.path.dirname(os.path.dirname(source) if is_package else source)
    try:
        state = state_of(source)
        with open(bytecode, "rb", 0) as file:
            content = file.read()
    except OSError:
        return None
    expected = [0, state[1] // 1_000_000_000 & 0xFFFFFFFF, state[0] & 0xFFFFFFFF]
    header = [int.from_bytes(content[place : place + 4], "little") for place in (4, 8, 12)]
    if content[:4] != MAGIC_NUMBER or header != expected:
        return None
    if marshal.loads(content[16:]).co_filename != source:  # of a package that was moved
        return None
    return folder, source, bytecode, state, is_package, content[16:]


def install(root: str, spec: ModuleSpec | None) -> None:
    """Let the package in the folder `root`, if Python itself has found it, and what it needs come out of its archive."""
    is_there = any(type(finder) is Archive for finder in sys.meta_path)
    if is_there or spec is None or type(spec.loader) is not SourceFileLoader:
        return
    archive = Archive(cache_from_source(os.path.join(root, "archive.py")) + ".modules")
    place = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
    sys.meta_path.insert(place, archive)
    archive.keep_later()
