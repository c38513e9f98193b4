"""Programs run as on a machine that has only the runtime: no package of the compiler's can be imported there."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.python_programs import run_python

ROOT = Path(__file__).parents[2]
COMPILERS = ("xdsl", "llvmlite", "ml_dtypes", "immutabledict", "typing_extensions", "torch", "triton", "mpmath")
PRELUDE = f"""
import sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {COMPILERS!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Blocked())
"""


def environment_without_compiler(folder: Path, allowed: str = "") -> dict[str, str]:
    """Of a process that has its cache in `folder`; it may import the package that is `allowed`."""
    (folder / "sitecustomize.py").write_text(PRELUDE.replace(f"{allowed!r}, ", ""))
    paths = os.pathsep.join((str(folder), str(ROOT)))
    return {**os.environ, "TRITON_CACHE_DIR": str(folder / "cache"), "TILEWORK_DEVICE": "native", "PYTHONPATH": paths}


def run_without_compiler(
    folder: Path, program: str, environment: Mapping[str, str] | None = None, allowed: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run `python program.py` in `folder`."""
    script = folder / "program.py"
    script.write_text(program)
    settings = {**environment_without_compiler(folder, allowed), **(environment or {})}
    return run_python(str(script), cwd=folder, env=settings)
