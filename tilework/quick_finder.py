"""Python's own way to find and load a module, in half of the time, for the packages of a compiler: it has 400 of them.

    with QuickFinder(("tilework", "xdsl")).installed():
        import tilework.frontend.generator

For a module in a folder, Python looks for seven files, makes the name of the bytecode twice, and looks at both. Here the folder is read once, and what is
asked is what decides: is there one file that could be the module, and is its bytecode of that file's time and size? Whatever is not as
plain as that (no bytecode, another one, another file of that name, a package that somebody loads in another way) is left to the
finder behind this one, which is Python's.
"""

import _imp
import marshal
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import FileFinder, ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source, spec_from_file_location
from io import open_code
from types import CodeType, ModuleType
from typing import Any

PLAIN = MAGIC_NUMBER + bytes(4)  # how bytecode begins that counts as long as its source has the same time and size
NAME = "name"
# of files, of paths that are none, of bytes that are no code, of other Pythons
REFUSALS = (OSError, ValueError, EOFError, TypeError, AttributeError, NotImplementedError)


class QuickFinder:
    """Finds modules below some packages, just before `PathFinder` would."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.roots = roots
        self.folders: dict[str, Folder] = {}
        self.looked_at: set[str] = set()  # in this block

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Ask this finder inside of the block, where `PathFinder` is asked at all."""
        self.looked_at = set()
        if PathFinder in sys.meta_path:
            sys.meta_path.insert(sys.meta_path.index(PathFinder), self)  # pyright: ignore[reportArgumentType]
        try:
            yield
        finally:
            self.remove()

    def remove(self) -> None:
        """From a new list: another thread that goes through this one would pass over `PathFinder`, and find no module."""
        finders = list(sys.meta_path)
        with suppress(ValueError):
            finders.remove(self)  # pyright: ignore[reportArgumentType]
            sys.meta_path = finders

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What `PathFinder` would find, or None."""
        parent, _, last = name.rpartition(".")
        if path is None or parent.partition(".")[0] not in self.roots:
            return None
        try:
            (place,) = path
            return None if (folder := self.folder(place)) is None else folder.spec(name, last)
        except REFUSALS:
            return None

    def folder(self, place: str) -> "Folder | None":
        """What is known of a folder, read once more if it has changed before this block; None if others look there in another way."""
        if place in self.looked_at:
            return self.folders[place]
        if type(finder_of(place)) is not FileFinder:
            return None
        changed = os.stat(place).st_mtime_ns
        if (folder := self.folders.get(place)) is None or folder.changed != changed:
            folder = self.folders[place] = Folder(place, changed)
        self.looked_at.add(place)
        return folder


def finder_of(place: str) -> object:
    """Who looks for modules in a folder: known, or asked for as `PathFinder` would ask."""
    if place not in sys.path_importer_cache:
        for hook in sys.path_hooks:
            with suppress(ImportError):
                sys.path_importer_cache[place] = hook(place)
                break
    return sys.path_importer_cache.get(place)


class Folder:
    """What a folder has, and where its bytecode is."""

    def __init__(self, path: str, changed: int) -> None:
        self.path, self.changed = path, changed
        self.names = frozenset(os.listdir(path))
        self.stems = [name.partition(".")[0] for name in self.names]
        self.before, _, self.after = cache_from_source(f"{path}/{NAME}.py").rpartition(NAME)

    def spec(self, name: str, last: str) -> ModuleSpec | None:
        """The module called `last`; None if Python shall look for it."""
        if self.stems.count(last) != 1:
            return None
        if f"{last}.py" in self.names:
            return spec_of(name, f"{self.path}/{last}.py", f"{self.before}{last}{self.after}", None)
        inside = f"{self.path}/{last}"
        file = f"{inside}/__init__.py"
        return spec_of(name, file, cache_from_source(file), [inside])


def spec_of(name: str, file: str, cached: str, inside: list[str] | None) -> ModuleSpec | None:
    """The spec of a source file whose bytecode may be taken as it is."""
    source = os.stat(file)
    with open_code(cached) as stream:
        data = stream.read()
    wanted = (int(source.st_mtime) & 0xFFFFFFFF).to_bytes(4, "little") + (source.st_size & 0xFFFFFFFF).to_bytes(
        4, "little"
    )
    if data[:8] != PLAIN or data[8:16] != wanted:
        return None
    code = marshal.loads(memoryview(data)[16:])
    if not isinstance(code, CodeType):
        return None
    if code.co_filename != file:
        _imp._fix_co_filename(code, file)  # pyright: ignore[reportAttributeAccessIssue]  # as Python does
    loader: Any = SourceFileLoader(name, file)

    def get_code(_: str) -> CodeType:
        """Once; then the loader is as Python made it."""
        del loader.get_code
        return code

    loader.get_code = get_code
    spec = spec_from_file_location(name, file, loader=loader, submodule_search_locations=inside)
    if spec is not None:
        spec.cached = cached
    return spec
