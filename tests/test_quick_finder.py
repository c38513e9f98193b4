"""Modules are found as Python finds them: the same ones, from the same files, with the same attributes."""

import importlib
import importlib.util
import os
import py_compile
import sys
from collections.abc import Iterator
from importlib.machinery import FileFinder, PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

from tilework.quick_finder import QuickFinder

NAMES = ("owned", "owned.one", "owned.inner", "owned.inner.two")
ATTRIBUTES = ("__name__", "__file__", "__cached__", "__package__", "__path__", "VALUE", "WHERE")


class Package:
    """A package `owned` in a folder."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "owned"
        (self.root / "inner").mkdir(parents=True)
        for name in ("__init__", "zero", "one", "inner/__init__", "inner/zero", "inner/two"):
            self.write(name, name)

    def write(self, name: str, text: str) -> None:
        path = self.root / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"VALUE = {text!r}\nWHERE = (lambda: 0).__code__.co_filename")

    def bytecode(self, name: str) -> Path:
        return Path(importlib.util.cache_from_source(str(self.root / f"{name}.py")))

    def load(self, finder: QuickFinder | None = None) -> tuple[list[dict[str, Any]], list[str]]:
        """What all modules are, and which of them `finder` has found."""
        forget()
        importlib.invalidate_caches()
        for name in ("owned.zero", "owned.inner.zero"):  # Python is the first to look into a folder
            importlib.import_module(name)
        for name in ("owned.inner", "owned.inner.zero"):
            del sys.modules[name]
        found: list[str] = []
        if finder is not None:
            plain = finder.find_spec

            def noted(name: str, *rest: Any) -> Any:
                if (spec := plain(name, *rest)) is not None:
                    found.append(name)
                return spec

            finder.find_spec = noted  # type: ignore[method-assign]
            with finder.installed():
                modules = [importlib.import_module(name) for name in NAMES]
            assert finder not in sys.meta_path
        else:
            modules = [importlib.import_module(name) for name in NAMES]
        for module in modules:
            assert module.__spec__ is not None and type(module.__loader__) is SourceFileLoader
            assert module.__loader__.get_code(module.__name__) is not None  # type: ignore[union-attr]
        return [{name: getattr(module, name, None) for name in ATTRIBUTES} for module in modules], found

    def same(self) -> list[str]:
        """What is found quickly; everything is as Python finds it."""
        quick, found = self.load(QuickFinder(("owned",)))
        assert quick == self.load()[0]
        return found


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "owned"]:
        del sys.modules[name]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    made = Package(tmp_path)
    made.load()
    yield made
    forget()


ALL = ["owned.one", "owned.inner", "owned.inner.two"]


def test_modules_with_bytecode_are_found_quickly(package: Package) -> None:
    assert package.same() == ALL


def test_code_is_of_the_file_that_it_came_from(package: Package) -> None:
    py_compile.compile(str(package.root / "one.py"), dfile="elsewhere/one.py")
    assert package.same() == ALL


def test_what_is_not_plain_is_left_to_python(package: Package) -> None:
    package.bytecode("one").unlink()
    assert package.same() == ["owned.inner", "owned.inner.two"]
    assert package.same() == ALL  # Python has written it
    package.write("one", "another text")
    assert package.same() == ["owned.inner", "owned.inner.two"]
    os.utime(package.root / "one.py", (1_000_000_000, 1_000_000_000))
    assert package.same() == ["owned.inner", "owned.inner.two"]


@pytest.mark.parametrize("kept", [0, 5, 16, 30])
def test_bytes_that_are_no_code_are_left_to_python(package: Package, kept: int) -> None:
    path = package.bytecode("inner/two")
    path.write_bytes(path.read_bytes()[:kept])
    finder = QuickFinder(("owned",))
    importlib.import_module("owned.inner")
    with finder.installed():
        assert finder.find_spec("owned.inner.two", [str(package.root / "inner")]) is None


def test_two_of_a_name_are_left_to_python(package: Package) -> None:
    package.write("one/__init__", "a folder is found before a file")
    found = package.same()
    assert "owned.one" not in found and "owned.inner" in found


def test_other_ways_to_load_are_respected(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    path = [str(package.root)]
    finder = QuickFinder(("owned",))
    with finder.installed():
        assert finder.find_spec("owned.one", path) is not None
        assert finder.find_spec("others.one", path) is None
        assert finder.find_spec("owned.nothing", path) is None
        assert finder.find_spec("owned", path) is None
        assert (
            finder.find_spec("owned.one", [*path, *path]) is None
            and finder.find_spec("owned.one", ["/nowhere"]) is None
        )
    package.write("new", "a file that was not there")
    importlib.invalidate_caches()
    importlib.import_module("owned.new")
    with finder.installed():
        assert finder.find_spec("owned.new", path) is not None
    monkeypatch.setattr(os, "stat", lambda path: os.lstat("/nowhere"))
    with finder.installed():
        assert finder.find_spec("owned.one", path) is None
    monkeypatch.undo()
    monkeypatch.setitem(sys.path_importer_cache, str(package.root), None)
    with finder.installed():
        assert finder.find_spec("owned.one", path) is None


def test_a_thread_that_looks_for_a_module_meanwhile_asks_python_too() -> None:
    """It goes through the list of finders while another thread leaves the block."""
    finder = QuickFinder(("owned",))
    with finder.installed():
        asked = iter(sys.meta_path)
        while next(asked) is not finder:
            pass
    assert next(asked) is PathFinder


def test_a_folder_that_nobody_has_looked_into(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(package.root)
    finder, others = QuickFinder(("owned",)), object()
    monkeypatch.delitem(sys.path_importer_cache, place)
    with finder.installed():
        assert finder.find_spec("owned.one", [place]) is not None
    assert isinstance(sys.path_importer_cache[place], FileFinder)
    del sys.path_importer_cache[place]
    monkeypatch.setattr(sys, "path_hooks", [lambda path: others, *sys.path_hooks])
    with finder.installed():
        assert finder.find_spec("owned.one", [place]) is None and sys.path_importer_cache[place] is others
