"""The map shows every folder of the package, and nothing that is gone."""

import re
import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import ModuleType

from packaging.specifiers import SpecifierSet

import tilework
from docsite import version_table
from docsite.generated import paths as generated_paths
from tests.quick import QUICK
from tilework.knobs.meanings import MEANINGS
from tilework.process.triton_version import DIFFERENCES, VERSIONS, distribution
from tilework.tools.cli import SUBCOMMANDS
from tilework.version import __version__

ROOT = Path(__file__).parent.parent
MAP = (ROOT / "docs" / "architecture.md").read_text()


def folders() -> set[str]:
    """Every folder of the package that holds Python files, except the package itself."""
    return {str(path.parent.relative_to(ROOT)) for path in (ROOT / "tilework").rglob("*.py")} - {"tilework"}


def test_every_folder_is_on_the_map() -> None:
    missing = [folder for folder in sorted(folders()) if f"`{folder}/`" not in MAP and parent_row(folder) is None]
    assert not missing


def parent_row(folder: str) -> str | None:
    """Sub-packages of `extra`, and of Triton's tree, are described by its row."""
    return next(
        (parent for parent in ("tilework/language/extra/", "tilework/triton/") if folder.startswith(parent)), None
    )


def test_the_map_shows_only_what_exists() -> None:
    for folder in re.findall(r"`(tilework/[\w/]*)/`", MAP):
        assert (ROOT / folder).is_dir(), folder
    for file in re.findall(r"`(tilework/[\w/]*\.py)`", MAP):
        assert (ROOT / file).is_file(), file


def test_files_to_start_with_exist() -> None:
    for row in re.findall(r"^\| `(tilework/[\w/]*)/` \|.*\| ([^|]*) \|$", MAP, re.MULTILINE):
        for name in re.findall(r"`([\w.]+\.py)`", row[1]):
            assert (ROOT / row[0] / name).is_file(), f"{row[0]}/{name}"


def test_no_file_refers_to_a_document_that_is_not_here() -> None:
    """Names of documents exist; sections and appendices are those of documents that a reader does not have."""
    wrong = []
    for path in text_files():
        text = path.read_text()
        for found in re.finditer(r"[\w./-]*\w\.md\b", text) if ".md" in text else ():
            named = found.group().lstrip("./")
            paths = (folder / named for folder in (ROOT, ROOT / "docs", path.parent))
            if named not in generated_paths() and not any(position.is_file() for position in paths):
                wrong.append(f"{path.relative_to(ROOT)}: {found.group()}")
        if found := re.search(
            r"\b([Ss]pecification, \d|[Ss]ections? \d|[Aa]ppendix [A-Z]\b|spec \d|spec/|errata)", text
        ):
            wrong.append(f"{path.relative_to(ROOT)}: {found.group()}")
    assert not wrong, "\n".join(wrong)


READ = (".py", ".md", ".mlir", ".toml", ".yaml", ".txt", ".html")


def text_files() -> list[Path]:
    """Every file that people read, but this one and what programs wrote."""
    folders = ("tilework", "tests", "docs", "docsite", "examples", "benchmarks", "packages")
    inside = [path for folder in folders for path in sorted((ROOT / folder).rglob("*"))]
    found = [path for path in [*ROOT.glob("*.*"), *inside] if path.suffix in READ]
    return [path for path in found if path != Path(__file__) and "egg-info" not in str(path)]


def test_file_names_say_what_is_inside() -> None:
    """At most three files of one name, so that a name alone says where one is. Triton's tree has Triton's names."""
    stems = Counter(
        path.stem
        for path in (ROOT / "tilework").rglob("*.py")
        if path.stem not in ("__init__", "__main__") and "triton" not in path.relative_to(ROOT).parts
    )
    assert not {stem: count for stem, count in stems.items() if count > 3}


def test_the_quick_tier_has_some_of_every_folder() -> None:
    tests = Path(__file__).parent
    assert not [name for name in QUICK if not (tests / name).exists()]
    for folder in sorted({path.parent for path in tests.rglob("test_*.py")} - {tests}):
        name = str(folder.relative_to(tests))
        assert any(one == name or one.startswith(f"{name}/") for one in QUICK), name


def test_every_version_is_written_once() -> None:
    """Ours in tilework/version.py; the distribution called triton is built apart and repeats that of the language."""
    ours, theirs = (
        tomllib.loads((ROOT / position / "pyproject.toml").read_text()) for position in (".", "packages/triton")
    )
    assert "version" not in ours["project"]
    assert ours["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "tilework.version.__version__"}
    assert theirs["project"]["version"] == distribution()
    assert SpecifierSet("==3.7.1").contains(distribution()), "torch's requirement"
    folder = ROOT / "tilework" / "triton" / "import_path"
    found = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.glob("*/*/METADATA")}
    assert found.keys() == {f"{each}/triton-{each}+tilework.dist-info/METADATA" for each in VERSIONS}
    for each in VERSIONS:
        text = found[f"{each}/triton-{each}+tilework.dist-info/METADATA"]
        assert f"Name: triton\nVersion: {each}+tilework\n" in text
    assert re.search(rf"^## {re.escape(__version__)}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_every_difference_between_versions_is_on_the_page() -> None:
    page = version_table.PAGE.read_text()
    assert page == version_table.written(page), "python -m docsite.version_table writes the table"
    for name, row in DIFFERENCES.items():
        (found,) = re.findall(rf"^\| `{name}` \| {row.since} \| .+ \| .+ \|$", page, re.MULTILINE)
        assert len(re.findall(r"(?<!\\)\|", found)) == 5, f"the cells of {name}"


def test_strict_switches_exist() -> None:
    page = version_table.PAGE.read_text().partition("## Deliberate differences")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| .* \| .* \| (.*) \|$", page, re.MULTILINE)[1:]
    switches = [found[1] for row in rows if (found := re.match(r"`(TILEWORK_\w+)=", row))]
    assert len(switches) >= 7 and not [name for name in switches if name not in MEANINGS]


def test_what_is_public_is_there() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    rows = re.findall(r"^\| `([\w.]+)`[^|]*\| (.*) \|$", page, re.MULTILINE)
    named = {module: set[str]() for module, _ in rows}
    for module, names in rows:
        found = set(re.findall(r"`(\w+)`", names))
        assert not (missing := {name for name in found if not hasattr(import_module(module), name)}), (module, missing)
        named[module] |= found
    submodules = {name for name in tilework.__all__ if isinstance(getattr(tilework, name), ModuleType)}
    assert named["tilework"] | submodules >= {*tilework.__all__} - named["tilework.errors"], "docs/api.md lacks names"
    commands = re.search(r"the command line: (.*?), with", " ".join(page.split()))
    assert commands and set(re.findall(r"`(?:tilework )?(\w+)`", commands.group(1))) == set(SUBCOMMANDS)


def test_checklists_name_what_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for position in re.findall(
        r"`((?:tests|tilework|analysis|transforms|targets|layouts|ir|oracles|language)/[\w./]*)`", text
    ):
        found = [base for base in (ROOT, ROOT / "tilework") if (base / position).exists()]
        assert found or position.isupper() or re.search(r"[A-Z]{3}", position), position
