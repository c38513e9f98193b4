"""The files of the checkout above that the runtime's wheel does not have (`packages/split.py`)."""

import os
import sys
import tomllib
from pathlib import Path

ABOVE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ABOVE))

from parts import CompilerPart  # noqa: E402
from setuptools import find_namespace_packages, setup  # noqa: E402
from split import COMPILER_REQUIRES, ROOT, version  # noqa: E402

setup(
    version=version(),
    install_requires=[f"tilework=={version()}", *COMPILER_REQUIRES],
    package_dir={"": os.path.relpath(ROOT, Path(__file__).resolve().parent)},
    packages=find_namespace_packages(str(ROOT), include=["tilework*"]),
    package_data=tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"],
    cmdclass={"build_py": CompilerPart},
)
