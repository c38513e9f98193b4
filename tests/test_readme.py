"""The README's example and the commands beside it, run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.installed_example import first_example
from tests.python_programs import run_python

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize(("interpret", "device"), [("0", "native"), ("1", "native"), ("0", "emulator")])
def test_the_example_runs(tmp_path: Path, warm_cache: Path, interpret: str, device: str) -> None:
    script = tmp_path / "example.py"
    script.write_text(first_example() + "\nassert np.allclose(out, x + y)\nprint('right')\n")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TRITON_INTERPRET": interpret,
        "TILEWORK_DEVICE": device,
        "TRITON_CACHE_DIR": str(warm_cache),
    }
    done = run_python(str(script), env=environment)
    assert done.stdout == "right\n", done.stderr[-2000:]


def test_the_installed_program_finds_the_files_of_the_current_folder(tmp_path: Path, warm_cache: Path) -> None:
    """It does not see that folder by itself, as `python -m` does. Every command of the pages runs in
    tests/docs/test_code_blocks.py."""
    environment = {**os.environ, "TRITON_CACHE_DIR": str(warm_cache)}
    installed = Path(sys.executable).with_name("tilework")
    program = [str(installed)] if installed.is_file() else [sys.executable, "-m", "tilework"]
    line = re.findall(r"^tilework compile .*", (ROOT / "docs" / "index.md").read_text(), re.MULTILINE)[0]
    line = line.replace(" out", f" {tmp_path}/out")
    done = subprocess.run(
        [*program, *shlex.split(line)[1:]], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{line}\n{done.stderr[-2000:]}"
    assert (tmp_path / "out" / "add.ptx").is_file()


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
