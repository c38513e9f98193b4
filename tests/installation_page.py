"""`python -m tests.installation_page [WORD ...]`: the commands of all pages that install, each in a new environment.

A block that installs something runs in an empty environment and a copy of the checkout; then `pip check` has nothing to
say, and what was installed works. WORDs choose blocks that contain one of them. It takes packages from an index, so
`make check-install` runs it and the tests do not.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.docs.page_runner import PAGES, ROOT, blocks_of

RUNTIME = (
    "import tilework, importlib.util as found; assert not found.find_spec('llvmlite'); print(tilework.__version__)"
)
IN_PLACE_OF_TRITON = """
import triton, tilework
assert triton.__version__ == "3.7.1" and triton.jit is tilework.jit, triton.__file__
"""


def copy_checkout(folder: Path) -> None:
    """The files that git knows, as they are now."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)


def run_block(code: str, folder: Path) -> None:
    """Run the lines of a block in an empty environment, then what it installed."""
    checkout, environment = folder / "checkout", folder / "env"
    checkout.mkdir()
    copy_checkout(checkout)
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TRITON_", "VIRT"))}
    settings |= {"PATH": f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    settings |= {"TRITON_CACHE_DIR": str(folder / "cache")}

    def run(*command: str | Path, where: Path = checkout) -> None:
        done = subprocess.run(command, cwd=where, env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"

    run("bash", "-ec", code)
    run("pip", "check")
    outside = folder / "elsewhere"
    outside.mkdir()
    if "packages/runtime" in code:
        run("python", "-c", RUNTIME, where=outside)
        return
    run("tilework", "doctor", where=outside)
    if "-e" not in code.split():
        run("python", checkout / "tests" / "installed_example.py", where=outside)
    if "packages/triton" in code:
        run("python", "-c", "import torch\n" * ("torch" in code) + IN_PLACE_OF_TRITON, where=outside)


def blocks_that_install() -> dict[str, str]:
    """Each block of commands with pip, and where it stands first."""
    found: dict[str, str] = {}
    for page in PAGES:
        for block in blocks_of(page.read_text()):
            if block.kind == "sh" and re.search(r"^pip ", block.code, re.MULTILINE):
                found.setdefault(block.code, f"{page.relative_to(ROOT)}:{block.line}")
    return found


def main(words: list[str]) -> None:
    for code, where in blocks_that_install().items():
        if words and not any(word in code for word in words):
            continue
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            run_block(code, Path(folder))
        print(f"{where}: {'; '.join(code.splitlines())}: {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
