"""Every block of code in the documentation runs: `page_runner` says how."""

from pathlib import Path

import pytest

from tests.docs.page_runner import ROOT, blocks_of, run_page

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page.read_text())], ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page: Path, warm_cache: Path) -> None:
    ran, wrong = run_page(page, warm_cache)
    assert not wrong, "\n".join(wrong)
    if not ran:
        pytest.skip("nothing of it can be run here")


def test_what_a_page_says_wrong_is_found(tmp_path: Path, warm_cache: Path) -> None:
    page = ROOT / "docs" / "index.md"
    assert run_page(page, warm_cache)[1] == []
    cases = {
        "```python\nx = 1\nassert x == 2\n```": "AssertionError",
        "<!-- raises ValueError -->\n```python\nx = 1\n```": "nothing raised ValueError",
        "```sh\ntilework layuot\n```": "`tilework layuot` ended with 2",
        "```sh\nmake coffee\n```": "`make coffee` ended with 2",
        "<!-- setup\nx = 1\n-->\n```python\nx / 0\n```": "ZeroDivisionError",
        "```python\nprint(1)\n```\n<!-- printed above -->\n```text\n2\n```": "nothing printed '2'",
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
