"""The modules and requirements of the wheel, which `pyproject.toml` cannot compute (`packages/split.py`)."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "packages"))

from parts import RuntimePart  # noqa: E402
from setuptools import setup  # noqa: E402
from split import COMPILER_REQUIRES, RUNTIME_REQUIRES  # noqa: E402

whole = "TILEWORK_BUILD_WHOLE" in os.environ
setup(
    install_requires=[*RUNTIME_REQUIRES, *(COMPILER_REQUIRES if whole else ())],
    cmdclass={"build_py": RuntimePart},
)
