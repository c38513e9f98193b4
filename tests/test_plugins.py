"""Entry points: of a source tree, of installed packages, and of installations that are out of date."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tilework import plugins

ROOT = Path(plugins.__file__).parent.parent


def install(folder: Path, package: str, text: str) -> None:
    """What an installer leaves behind of a package with these entry points."""
    (folder / f"{package}-1.0.dist-info").mkdir(parents=True)
    (folder / f"{package}-1.0.dist-info" / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
    )
    (folder / f"{package}-1.0.dist-info" / "entry_points.txt").write_text(text)


def values(group: str) -> list[str]:
    return [plugin.value for plugin in plugins.plugins(group)]


def test_a_source_tree_lists_what_its_pyproject_lists() -> None:
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    for group, entries in tables.items():
        found = [plugin for plugin in plugins.plugins(group) if plugin.package == "tilework"]
        assert {plugin.name: plugin.value for plugin in found} == entries
        for plugin in found:
            plugin.load()


@pytest.mark.parametrize("text", ["[console_scripts]\na = b:c\n", "[x]\n\n[tilework.test]\na = b:c\n"])
@pytest.mark.parametrize("has_archive", [False, True])
def test_packages_are_searched_for_a_group(text: str, has_archive: bool, tmp_path: Path, monkeypatch) -> None:
    install(tmp_path, "other", text)
    monkeypatch.syspath_prepend(str(tmp_path))
    if has_archive:  # then Python's own search is used
        (tmp_path / "application.pyz").write_bytes(b"PK")
        monkeypatch.syspath_prepend(str(tmp_path / "application.pyz"))
    assert values("tilework.test") == ["b:c"] * ("tilework.test" in text)


def test_a_process_whose_folder_is_gone_finds_ours(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.syspath_prepend("relative")
    assert values("tilework.backends")


def test_of_two_copies_of_a_package_the_first_counts(tmp_path: Path, monkeypatch) -> None:
    for place, value in (("second", "b:second"), ("first", "b:first")):
        install(tmp_path / place, "other", f"[tilework.test]\na = {value}\n")
        monkeypatch.syspath_prepend(str(tmp_path / place))
    assert values("tilework.test") == ["b:first"]


def test_two_packages_cannot_have_one_name(tmp_path: Path, monkeypatch) -> None:
    for package in ("one", "two"):
        install(tmp_path, package, "[tilework.test]\na = b:c\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(plugins.PluginError, match="one and two have both an entry point a"):
        plugins.find("tilework.test", "a")


PROGRAM = """
from tilework import plugins
for plugin in plugins.plugins("tilework.backends"):
    try:
        print(plugin.package, plugin.name, plugin.load().__name__)
    except plugins.PluginError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("metadata", "has_pyproject", "printed"),
    [
        (None, True, "tilework cuda CudaBackend\ntilework hip HipBackend\ntilework cpu CpuBackend\n"),
        ("x = tilework.gone:Y", True, "tilework cuda CudaBackend\ntilework hip HipBackend\ntilework cpu CpuBackend\n"),
        ("cpu = tilework.targets.cpu.pipeline:CpuBackend", False, "tilework cpu CpuBackend\n"),
        (
            "x = tilework.gone.deep:Y",
            False,
            "the package tilework lists x = 'tilework.gone.deep:Y' under tilework.backends, but there is no module"
            " tilework.gone; install the package again\n",
        ),
        (
            "x = tilework.plugins:Y",
            False,
            "the package tilework lists x = 'tilework.plugins:Y' under tilework.backends, but tilework.plugins has no"
            " Y; install the package again\n",
        ),
    ],
    ids=["source tree", "source tree beside an old installation", "installed", "module gone", "name gone"],
)
def test_where_our_own_come_from(metadata: str | None, has_pyproject: bool, printed: str, tmp_path: Path) -> None:
    (tmp_path / "tilework").symlink_to(ROOT / "tilework")
    if has_pyproject:
        shutil.copy(ROOT / "pyproject.toml", tmp_path)
    if metadata is not None:
        install(tmp_path, "tilework", f"[tilework.backends]\n{metadata}\n")
    elsewhere = [folder for folder in sys.path if not (Path(folder) / "tilework").is_dir()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *elsewhere])}
    command = [sys.executable, "-S", "-c", PROGRAM]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (printed, "")
