"""`python -m tests.installed_runtime VENV`: what an environment with nothing but the wheel of the runtime has and can
do.

`make check-wheel` runs it, with the checkout's Python, on an environment in which `tilework-runtime` was installed. It
serves the example service there, from a bundle that the checkout compiles, to 200 requests of 8 clients.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from examples.service import client
from tests.examples.test_service import recorded_bundle
from tests.runtime.without_compiler import ROOT

MOST = 10 << 20  # bytes beside NumPy, with compiled modules
NUMPY = ("numpy", "pip", "setuptools", "_distutils_hack", "distutils-precedence")
REFUSED = """
import numpy as np
import tilework
from examples.service.kernels import softmax

try:
    softmax(np.zeros((4, 4), np.float32))
except tilework.errors.CompilerMissing as error:
    print(error)
"""


def run(python: Path, *command: str, **settings: object) -> str:
    done = subprocess.run([python, *command], capture_output=True, text=True, timeout=300, check=False, **settings)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_size(python: Path) -> int:
    """The bytes beside NumPy."""
    packages = Path(run(python, "-Ic", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    names = sorted(path.name for path in packages.iterdir() if not path.name.startswith(NUMPY))
    assert all(name.startswith("tilework") for name in names), f"more than tilework and NumPy: {names}"
    run(python, "-Im", "compileall", "-q", str(packages / "tilework"))
    size = sum(path.stat().st_size for name in names for path in (packages / name).rglob("*") if path.is_file())
    assert size < MOST, f"{size} bytes beside NumPy"
    return size


def check_service(python: Path, folder: Path) -> None:
    """The service in a folder of its own, where only what is installed can be imported."""
    command = [python, "-m", "examples.service.server", "--bundle", recorded_bundle(folder), "--port", "0"]
    settings = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TRITON_", "TILEWORK_"))
    }
    settings |= {"TRITON_CACHE_DIR": str(folder / "cache"), "TILEWORK_NO_JIT": "1"}
    assert "compiling needs the compiler, xdsl" in run(
        python, "-c", REFUSED, cwd=folder, env={**settings, "TILEWORK_NO_JIT": "0"}
    )
    with subprocess.Popen(command, cwd=folder, env=settings, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        said = [server.stdout.readline(), server.stdout.readline()]
        try:
            assert client.main(["--port", said[1].rpartition(":")[2].strip(), "--requests", "200"]) == 0
        finally:
            server.terminate()


def main() -> None:
    python = Path(sys.argv[1]).resolve() / "bin" / "python"
    size = check_size(python)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "examples" / "service", folder / "examples" / "service")
        check_service(python, folder)
    print(f"the runtime has {size / 2**20:.1f} MB beside NumPy, and serves")


if __name__ == "__main__":
    main()
