"""`python -m tests.installed_runtime VENV`: what an environment with nothing but the wheel of the runtime has and can do.

`make check-wheel` runs it, with the checkout's Python, on an environment in which `tilework[runtime]` was installed.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

MOST = 10 << 20  # bytes beside NumPy, with compiled modules
NUMPY = ("numpy", "pip", "setuptools", "_distutils_hack", "distutils-precedence")
PROGRAM = """
import numpy as np
import tilework
import tilework.language as tl

@tilework.jit
def add(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) + 1)

try:
    add[(1,)](np.zeros(64, np.float32), BLOCK=64)
except tilework.errors.CompilerMissing as error:
    print(error)
"""


def run(python: Path, *command: str) -> str:
    done = subprocess.run([python, "-I", *command], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def main() -> None:
    environment = Path(sys.argv[1]).resolve()
    python = environment / "bin" / "python"
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    names = sorted(path.name for path in packages.iterdir() if not path.name.startswith(NUMPY))
    assert all(name.startswith("tilework") for name in names), f"more than tilework and NumPy: {names}"
    run(python, "-m", "compileall", "-q", str(packages / "tilework"))
    size = sum(path.stat().st_size for name in names for path in (packages / name).rglob("*") if path.is_file())
    assert size < MOST, f"{size} bytes beside NumPy"
    with tempfile.TemporaryDirectory() as folder:
        (program := Path(folder) / "program.py").write_text(PROGRAM)
        refused = run(python, str(program))
    assert "pip install 'tilework[compiler]" in refused, refused
    print(f"the runtime has {size / 2**20:.1f} MB beside NumPy, and says what is missing")


if __name__ == "__main__":
    main()
