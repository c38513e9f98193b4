"""Built-in backends, entry points of installed packages, and copies of the package without metadata."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tilework.process import plugins

ROOT = Path(plugins.__file__).parents[2]


def install(folder: Path, package: str, text: str) -> None:
    """Write the files that an installer leaves for a package with these entry points."""
    (folder / f"{package}-1.0.dist-info").mkdir(parents=True)
    (folder / f"{package}-1.0.dist-info" / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
    )
    (folder / f"{package}-1.0.dist-info" / "entry_points.txt").write_text(text)


def values(group: str) -> list[str]:
    return [plugin.value for plugin in plugins.plugins(group)]


def test_what_is_built_in_can_be_loaded_and_is_declared_nowhere_else() -> None:
    for group, entries in plugins.BUILT_IN.items():
        found = [plugin for plugin in plugins.plugins(group) if plugin.package == "tilework"]
        assert {plugin.name: plugin.value for plugin in found} == entries
        for plugin in found:
            assert callable(plugin.load())
    assert "entry-points" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


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
    for folder, value in (("second", "b:second"), ("first", "b:first")):
        install(tmp_path / folder, "other", f"[tilework.test]\na = {value}\n")
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    assert values("tilework.test") == ["b:first"]


def test_two_packages_cannot_have_one_name(tmp_path: Path, monkeypatch) -> None:
    for package in ("one", "two"):
        install(tmp_path, package, "[tilework.test]\na = b:c\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(plugins.PluginError, match="one and two have both an entry point a"):
        plugins.find("tilework.test", "a")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("other.gone.deep:Y", "but there is no module other"),
        ("tilework.process.plugins:Y", "but tilework.process.plugins has no Y"),
    ],
)
def test_an_entry_point_that_leads_nowhere(value: str, message: str, tmp_path: Path, monkeypatch) -> None:
    install(tmp_path, "other", f"[tilework.test]\nx = {value}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = plugins.find("tilework.test", "x")
    assert found is not None
    with pytest.raises(plugins.PluginError) as caught:
        found.load()
    expected = f"the package other lists x = {value!r} under tilework.test, {message}; install the package again"
    assert str(caught.value) == expected


PROGRAM = """
import numpy as np
import tilework
import tilework.language as tl
from tilework.process import plugins

@tilework.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.softmax(tl.load(x + i, mask=i < n, other=float("-inf"))) * n, mask=i < n)

x, out = np.arange(5, dtype="f4"), np.zeros(5, "f4")
scaled[(1,)](x, out, 5, 8)
np.testing.assert_allclose(out, 5 * np.exp(x) / np.exp(x).sum(), rtol=1e-5)
for plugin in plugins.plugins("tilework.backends"):
    print(plugin.package, plugin.name, plugin.load().__name__)
print(tilework.__file__)
"""


@pytest.mark.parametrize("device", ["native", "emulator"])
@pytest.mark.parametrize("kind", ["folder", "folder beside an old installation", "archive"])
def test_a_copy_of_the_package_needs_nothing_beside_it(kind: str, device: str, tmp_path: Path) -> None:
    package, folder = ROOT / "tilework", tmp_path / "vendored"
    if kind == "archive":
        shutil.make_archive(str(folder), "zip", ROOT, "tilework")
        folder = tmp_path / "vendored.zip"
    else:
        shutil.copytree(package, folder / "tilework", ignore=shutil.ignore_patterns("__pycache__"))
    if kind == "folder beside an old installation":
        install(folder, "tilework", "[tilework.backends]\ncpu = tilework.gone:Y\nx = tilework.gone:Y\n")
    elsewhere = [folder for folder in sys.path if not (Path(folder) / "tilework").is_dir()]
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), *elsewhere]),
        "TILEWORK_DEVICE": device,
        "TRITON_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-S", str(tmp_path / "program.py")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    *printed, file = done.stdout.splitlines()
    assert printed == ["tilework cuda CudaBackend", "tilework hip HipBackend", "tilework cpu CpuBackend"]
    assert file.startswith(str(folder))
