"""The map shows every folder of the package, and nothing that is gone."""

import re
from pathlib import Path

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
