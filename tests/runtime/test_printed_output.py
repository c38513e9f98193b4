"""Programs leave processes behind that print on: what was printed before is read whole."""

import subprocess
import sys
from pathlib import Path

from tests.docs.page_runner import run_page
from tests.python_programs import run_python
from tests.runtime.forked_script import run_forked
from tilework.targets.nvidia.cubin import run


def program(folder: Path) -> Path:
    """A program that prints a line and ends, while its child prints 60,000 more."""
    file = folder / "program.py"
    file.write_text(
        "import subprocess\n"
        "print('first', flush=True)\n"
        "subprocess.Popen(['sh', '-c', 'i=0; while [ $i -lt 60000 ]; do echo later; i=$((i+1)); done'])\n"
    )
    return file


def test_a_started_program(tmp_path: Path) -> None:
    for _ in range(5):
        assert run_python(str(program(tmp_path))).stdout.startswith("first\n")


def test_a_forked_script(tmp_path: Path) -> None:
    for _ in range(5):
        assert run_forked(program(tmp_path), {})[1].startswith("first\n")


def test_ptxas(tmp_path: Path) -> None:
    for _ in range(5):
        assert run([sys.executable, str(program(tmp_path))], 60)[1].startswith("first\n")


def test_a_command_of_a_page(tmp_path: Path, warm_cache: Path) -> None:
    page = tmp_path / "page"
    block = f"```python\n# program.py\n{program(tmp_path).read_text()}```\n"
    page.write_text(block + "```sh\npython program.py\n```\n<!-- printed above -->\n```text\nfirst\n```\n" * 5)
    assert run_page(page, warm_cache)[1] == []


def test_a_worker(tmp_path: Path) -> None:
    """The output of a module that a worker imports is captured whole."""
    code = (
        "import subprocess, sys\n"
        "from tilework.runtime.workers.worker import captured\n"
        "printed = {}\n"
        "with captured(printed):\n"
        f"    subprocess.run([sys.executable, {str(program(tmp_path))!r}])\n"
        "open(sys.argv[1], 'w').write(printed['output'])\n"
    )
    for number in range(5):
        found = tmp_path / f"found{number}"
        subprocess.run([sys.executable, "-c", code, str(found)], check=True)
        assert found.read_text().startswith("first\n")
