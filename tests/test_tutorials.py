"""Every tutorial runs with small sizes, draws its picture and becomes a page; pictures show what they are given.

No time is looked at: caches are not emptied before each call that is measured, which takes most of the time.
"""

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest

from tilework.runtime.devices.host.driver import CpuDriver

FOLDER = Path(__file__).parent.parent / "docs" / "tutorials"
Tutorials = Callable[[str], ModuleType]


@pytest.fixture
def tutorials(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tutorials]:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(CpuDriver, "get_empty_cache_for_benchmark", lambda driver: np.empty(1 << 16, np.uint8))
    yield importlib.import_module
    for name in ("pages", "chart"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("script", sorted(FOLDER.glob("[0-9][0-9]_*.py")), ids=lambda script: script.stem)
def test_a_tutorial_runs_and_becomes_a_page(script: Path, tutorials: Tutorials, tmp_path: Path) -> None:
    page = tutorials("pages").page_of(script, tmp_path, ["--quick"])
    assert page.startswith("# ") and "```python" in page and "tilework" in page and "NumPy" in page
    pictures = sorted(tmp_path.glob("*.svg"))
    assert pictures and page.count("<figure>") == len(pictures)
    for picture in pictures:
        assert len(ElementTree.parse(picture).getroot()) > 10
    links = re.findall(r"\]\((\d\d_\w+)\.md\)", page)
    assert all((FOLDER / f"{name}.py").is_file() for name in links), links


def test_a_page_has_prose_code_and_output_in_order(tutorials: Tutorials, tmp_path: Path) -> None:
    script = tmp_path / "01_small.py"
    script.write_text(
        '"""# Small\n\nHead.\n"""\n\nx = 1\n\n# %%\n# ## Twice\n#\n# See [it](02_next.py).\n\nprint(x + x)\n'
    )
    page = tutorials("pages").page_of(script, tmp_path)
    assert page.startswith(
        f"# Small\n\nHead.\n\n```python\nx = 1\n```\n\n## Twice\n\nSee [it](02_next{'.md'}).\n\n```python\n"
        "print(x + x)\n```\n\n"
        "```text\n2\n```\n"
    )


def test_an_error_of_a_tutorial_is_at_its_line(tutorials: Tutorials, tmp_path: Path) -> None:
    script = tmp_path / "01_wrong.py"
    script.write_text('"""# Wrong"""\n\nx = 1\n\n# %%\n# Prose.\n\ny = 1 / 0\n')
    with pytest.raises(ZeroDivisionError) as caught:
        tutorials("pages").page_of(script, tmp_path)
    assert caught.traceback[-1].lineno == 7 and Path(caught.traceback[-1].path) == script


def test_charts_place_values_where_they_belong(
    tutorials: Tutorials, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chart = tutorials("chart")
    monkeypatch.chdir(tmp_path)
    axis = chart.axis([1024, 4096], True, 0, 100, from_zero=False)
    assert [axis.position(value) for value in (1024, 2048, 4096)] == [0, 50, 100] and axis.ticks == [1024, 2048, 4096]
    axis = chart.axis([3, 47], False, 0, 100, from_zero=True)
    assert axis.ticks == [0, 10, 20, 30, 40, 50] and axis.position(25) == 50
    chart.bars("bars.svg", "<1 & 2>", ["a"], {"one": [2.0], "two": [4.0]}, x_label="x", y_label="y")
    heights = [
        float(bar.attrib["height"]) for bar in ElementTree.parse("bars.svg").iter("{http://www.w3.org/2000/svg}rect")
    ]
    assert heights[1] == pytest.approx(2 * heights[0], abs=0.2)
