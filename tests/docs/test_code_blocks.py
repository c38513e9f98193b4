"""Every block of code in the documentation runs: `page_runner` says how."""

import re
from pathlib import Path

import pytest

from tests.docs.page_runner import PAGES, ROOT, blocks_of, run_page


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks_of(page.read_text())],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_the_code_of_a_page_runs(page: Path, warm_cache: Path) -> None:
    ran, wrong = run_page(page, warm_cache)
    assert not wrong, "\n".join(wrong)
    if not ran:
        pytest.skip("nothing of it can be run here")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_block_of_commands_and_python_is_seen(page: Path) -> None:
    """Blocks of another name, or inside of a list, would be left out without a word."""
    text = page.read_text()
    fences = re.findall(r"^[ \t>]*(?:```|~~~)[ \t]*(\S+)", text, re.MULTILINE)
    assert set(fences) <= {"python", "sh", "text", "c", "mlir"}
    found = [block for block in blocks_of(text) if block.kind in ("python", "sh")]
    assert len(found) - text.count("<!-- setup\n") == fences.count("python") + fences.count("sh")


def test_what_a_page_says_wrong_is_found(tmp_path: Path, warm_cache: Path) -> None:
    cases = {
        "```python\nx = 1\nassert x == 2\n```": "AssertionError",
        "<!-- raises ValueError -->\n```python\nx = 1\n```": "nothing raised ValueError",
        "```sh\ntilework layuot\n```": "`tilework layuot` ended with 2",
        "```sh\nmake coffee\n```": "`make coffee` ended with 2",
        "<!-- setup\nx = 1\n-->\n```python\nx / 0\n```": "ZeroDivisionError",
        "```python\nprint(1)\n```\n<!-- printed above -->\n```text\n2\n```": "nothing printed '2'",
        "<!-- raises 2 2 -->\n```sh\ntilework layuot\ntilework --version\n```": "`tilework --version` ended with 0",
        "```sh\ntilework --version\n```\n<!-- printed above -->\n```text\ntriton\n```": "nothing printed 'triton'",
    }
    for text, message in cases.items():
        wrong = run_text(text, tmp_path, warm_cache)
        assert len(wrong) == 1 and message in wrong[0], (text, wrong)
    good = (
        "```python\n# one.py\nimport sys\nassert len(sys.argv) > 0\n```\n```sh\npython one.py\n```\n```text\n"
        "x = = 1\n```"
    )
    good += "\n```python\nprint(1)\nprint(2)\n```\n<!-- printed above -->\n```text\n1\n...\n2\n```"
    assert run_text(good, tmp_path, warm_cache) == []


def run_text(text: str, folder: Path, cache: Path) -> list[str]:
    page = folder / "page"
    page.write_text(text + "\n")
    return run_page(page, cache)[1]
