"""Take the modules that serving needs from the checkout above (`serving_modules.py`)."""

import os
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from serving_modules import ROOT, runtime_modules, version  # noqa: E402
from setuptools import find_namespace_packages, setup  # noqa: E402
from setuptools.command.build_py import build_py  # noqa: E402

Found = list[tuple[str, str, str]]  # (package, module, file)


class RuntimePart(build_py):
    """The modules that belong to the runtime, and the files beside them."""

    def find_package_modules(self, package: str, package_dir: str) -> Found:
        found: Found = super().find_package_modules(package, package_dir)
        return [row for row in found if ".".join(row[:2]).removesuffix(".__init__") in runtime_modules()]

    def find_data_files(self, package: str, src_dir: str) -> list[str]:
        found: list[str] = super().find_data_files(package, src_dir)
        return [path for path in found if owner_of(Path(path)) in runtime_modules()]


def owner_of(path: Path) -> str:
    """The package whose folder a file is in, or below."""
    folder = path.resolve().parent
    while not (folder / "__init__.py").exists():
        folder = folder.parent
    return ".".join(folder.relative_to(ROOT).parts)


whole: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
setup(
    version=version(),
    package_dir={"": os.path.relpath(ROOT, HERE)},
    packages=find_namespace_packages(str(ROOT), include=["tilework*"]),
    package_data=whole["tool"]["setuptools"]["package-data"],
    cmdclass={"build_py": RuntimePart},
)
