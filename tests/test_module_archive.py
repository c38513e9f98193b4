"""Modules come out of an archive as long as Python would take the same bytecode, and are found as ever otherwise."""

import importlib
import marshal
import os
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

from tilework import module_archive
from tilework.module_archive import Archive, ArchivedLoader

PAST = 1_000_000_000


class Package:
    """A package `owned` in a folder, that new processes import: `load` tells the values in its modules."""

    def __init__(self, folder: Path) -> None:
        self.root, self.file = folder / "owned", folder / "archive"
        (self.root / "inner").mkdir(parents=True)
        for name in ("__init__", "one", "inner/__init__", "inner/two"):
            self.write(name, name)

    def write(self, name: str, text: str, when: int = PAST) -> None:
        path = self.root / f"{name}.py"
        path.write_text(f"VALUE = {text!r}")
        for place in (path, path.parent, self.root):
            os.utime(place, (when, when))

    def settle(self) -> None:
        for place in (self.root, self.root / "inner"):
            os.utime(place, (PAST, PAST))

    def load(self, keep: bool = True) -> dict[str, tuple[str, type]]:
        """Of each module what it says, and who has loaded it."""
        forget()
        importlib.invalidate_caches()
        archive = Archive(str(self.file), ["owned"])
        sys.meta_path.insert(0, archive)
        try:
            names = ("owned", "owned.one", "owned.inner", "owned.inner.two")
            modules: list[Any] = [importlib.import_module(name) for name in names]
            self.settle()  # the folders of bytecode are made now
            if keep:
                archive.keep()
            return {name: (module.VALUE, type(module.__spec__.loader)) for name, module in zip(names, modules)}
        finally:
            sys.meta_path.remove(archive)

    def loaders(self) -> list[type]:
        return [loader for _, loader in self.load(keep=False).values()]


def forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "owned"]:
        del sys.modules[name]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(module_archive, "MANY", 1)
    yield Package(tmp_path)
    forget()


ARCHIVED = [SourceFileLoader, *[ArchivedLoader] * 3]  # the package itself is found by Python


def test_the_second_process_takes_modules_out_of_the_archive(package: Package) -> None:
    first = package.load()
    assert {loader for _, loader in first.values()} == {SourceFileLoader}
    second = package.load()
    assert [value for value, _ in second.values()] == [value for value, _ in first.values()]
    assert [loader for _, loader in second.values()] == ARCHIVED
    one, inner = sys.modules["owned.one"], sys.modules["owned.inner"]
    assert one.__file__ == str(package.root / "one.py") and inner.__path__ == [str(package.root / "inner")]
    assert one.__cached__ == importlib.util.cache_from_source(str(one.__file__))
    assert one.__spec__ is not None and one.__spec__.parent == "owned" and inner.__package__ == "owned.inner"
    assert not [path for path in package.file.parent.iterdir() if path.name.startswith("archive.")]


def test_a_changed_source_is_found_as_ever(package: Package) -> None:
    package.load()
    package.write("one", "another text", PAST + 7)
    package.settle()
    found = package.load(keep=False)
    assert found["owned.one"] == ("another text", SourceFileLoader)
    assert found["owned.inner.two"] == ("inner/two", ArchivedLoader)
    package.load()
    assert package.load()["owned.one"] == ("another text", ArchivedLoader)


def test_what_comes_to_be_found_first_is_found(package: Package) -> None:
    package.load()
    assert package.loaders() == ARCHIVED
    (package.root / "one").mkdir()
    (package.root / "one" / "__init__.py").write_text("VALUE = 'a folder is found before a file'")
    assert package.load(keep=False)["owned.one"][0].startswith("a folder")


def test_what_others_load_in_their_way_is_theirs(package: Package) -> None:
    package.load()
    forget()

    class Theirs(SourceFileLoader):
        pass

    spec = importlib.util.spec_from_file_location(
        "owned", package.root / "__init__.py", loader=Theirs("owned", str(package.root / "__init__.py"))
    )
    assert spec is not None
    sys.modules["owned"] = importlib.util.module_from_spec(spec)
    archive = Archive(str(package.file), ["owned"])
    assert archive.entries["owned.one"] is not None
    assert archive.find_spec("owned.one", [str(package.root)]) is None


@pytest.mark.parametrize("content", [b"", b"nonsense", (9).to_bytes(8, "little") + marshal.dumps((1, 2))])
def test_nonsense_is_no_archive(package: Package, content: bytes) -> None:
    package.load()
    whole = package.file.read_bytes()
    for damaged in (content, whole[:-1], whole[:100]):
        package.file.write_bytes(damaged)
        assert set(package.loaders()) == {SourceFileLoader}


def test_no_archive_is_written_without_need(package: Package, monkeypatch: pytest.MonkeyPatch) -> None:
    package.load()
    before = package.file.stat()
    package.load()
    assert package.file.stat().st_ino == before.st_ino
    package.file.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        package.load()
        patch.setattr(sys, "dont_write_bytecode", False)
        patch.setattr(module_archive, "MANY", 5)
        package.load()
        patch.setattr(module_archive, "MANY", 1)
        patch.setattr(Package, "settle", lambda self: os.utime(self.root))  # something changes at this moment
        package.load()
    assert not package.file.exists()


def test_tilework_has_one_archive() -> None:
    assert sum(type(finder) is Archive for finder in sys.meta_path) == 1
