"""`tilework profile --compare`: what two saved profiles are matched by, and what is said about them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.inspection.browser import Browser, find_chromium
from tests.inspection.test_profile_command import PROGRAM, profile
from tests.inspection.test_profile_command import compiled as compiled
from tilework.errors import UsageError
from tilework.inspect.profiler.comparison import ProfileComparison, compare, differing, text_of
from tilework.inspect.profiler.comparison_page import page
from tilework.inspect.profiler.saved import FORMAT, SavedKernel, SavedProfile, load
from tilework.tools.cli import main

OTHER = PROGRAM.replace("(256, 256, 256, 128)", "(256, 128)").replace("BLOCK=64", "BLOCK=32")


def saved(*kernels: SavedKernel, **facts: Any) -> SavedProfile:
    known = {"program": "p.py", "device": "cpu, test", "seconds": 1.0, "tilework": "0.1.0"}
    return SavedProfile(kernels=kernels, **{**known, **facts})


def kernel(name: str, milliseconds: float, signature: str = "x: *fp32", calls: int = 10, **more: Any) -> SavedKernel:
    return SavedKernel(name, calls, milliseconds / 1e3, signature, **more)


def rows(found: ProfileComparison) -> list[tuple[str, str, float | None]]:
    return [(row.name, row.kind, row.ratio and round(row.ratio, 2)) for row in found.rows]


def test_two_runs_are_compared(tmp_path: Path) -> None:
    for folder, text in (("a", PROGRAM), ("b", OTHER)):
        (tmp_path / folder).mkdir()
        code, _, errors = profile(
            tmp_path / folder, "--save", "p.json", "--html", "p.html", "-o", "p.hatchet", "program.py", text=text
        )
        assert code == 0, errors
    one, other = (load(str(tmp_path / folder / "p.json")) for folder in "ab")
    assert {(k.name, k.signature, k.calls, k.scope) for k in one.kernels} == {
        ("double", "p: *fp32, n: i32, BLOCK=64", 4, ("part",)),
        ("double", "p: *fp32, n: i32, BLOCK=64", 1, ()),
    }
    (row,) = compare(one, other).rows
    assert (row.a.calls, row.b.calls) == (5, 3) and row.notes == ["compiled otherwise: BLOCK=64 -> BLOCK=32"]
    assert load(str(tmp_path / "a" / "p.html")) == one, "the page contains the same"
    less = load(str(tmp_path / "b" / "p.hatchet"))
    assert sum(k.calls for k in less.kernels) == 3 and less.seconds is None
    assert sum(k.seconds for k in less.kernels) == pytest.approx(sum(k.seconds for k in other.kernels))
    assert "has no signatures" in text_of(compare(one, less))


def test_kernels_are_matched_by_name_and_signature() -> None:
    a = saved(kernel("f", 10), kernel("f", 30, "x: *fp16"), kernel("old", 5), kernel("g", 8, "BLOCK=64"))
    b = saved(kernel("f", 20, "x: *fp16"), kernel("f", 10.2), kernel("young", 6), kernel("g", 4, "BLOCK=128", calls=5))
    found = compare(a, b)
    assert rows(found) == [
        ("f", "faster", 0.67),
        ("young", "new", None),
        ("old", "gone", None),
        ("g", "same", 1.0),
        ("f", "same", 1.02),
    ]
    shown = text_of(found)
    assert "compiled otherwise: BLOCK=64 -> BLOCK=128" in shown
    assert "in all kernels b takes 0.76 times as long as a (-12.800 ms)" in shown
    assert "faster: `f` 0.67" in shown and "new: `young`" in shown and "gone: `old`" in shown and "1.02 ~" in shown
    assert shown.splitlines()[4].split() == ["53.000", "40.200", "-12.800", "40", "35", "0.76", "all", "kernels"]
    assert rows(compare(b, a))[0] == ("f", "slower", 1.5)


def test_scopes_count_together_and_tuning_apart() -> None:
    a = saved(kernel("f", 10, scope=("one",)), kernel("f", 30, scope=("two",)), kernel("f", 9, is_tuning=True))
    b = saved(kernel("f", 20, scope=("three",)))
    assert [(row.name, row.is_tuning, row.a.calls, row.kind) for row in compare(a, b).rows] == [
        ("f", False, 20, "same"),
        ("f", True, 10, "gone"),
    ]
    assert "`f (autotuning)`" in text_of(compare(a, b))


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"device": "cuda:90, 132 multiprocessors"}, "note: the machines differ"),
        ({"is_real": False}, "note: an emulated device counts steps"),
        ({"program": "q.py"}, "note: the programs differ"),
        ({"tilework": "0.2.0"}, "note: a ran with tilework 0.1.0, b with 0.2.0"),
        ({}, ""),
    ],
)
def test_what_makes_them_hard_to_compare(facts: Any, words: str) -> None:
    shown = text_of(compare(saved(kernel("f", 1)), saved(kernel("f", 1), **facts)))
    assert words in shown and ("note:" in shown) == bool(words)


def test_differences_of_signatures() -> None:
    assert differing("x: *fp32, B=64; 4 warps, 3 stages", "x: *fp32, B=64; 8 warps, 3 stages") == ["4 warps -> 8 warps"]
    assert differing("x: *fp32, B=64", "x: *fp32, y: i32, B=64") == ["a: x: *fp32, B=64", "b: x: *fp32, y: i32, B=64"]


def test_few_rows_are_shown() -> None:
    many = [kernel(f"k{index}", 1 + index) for index in range(9)]
    shown = text_of(compare(saved(*many), saved()), 3)
    assert "`k8`" in shown and "... and 6 more" in shown and "  k3" not in shown
    assert "neither has kernels" in text_of(compare(saved(), saved()))


def test_the_page_shows_the_same(tmp_path: Path) -> None:
    a, b = saved(kernel("<f>", 10), kernel("old", 5)), saved(kernel("<f>", 40), device="other")
    text = page(compare(a, b))
    assert text.count("<rect") == 4 and "&lt;f&gt;" in text and "<f>" not in text and "4.00" in text
    assert "the machines differ" in text and "prefers-color-scheme: dark" in text
    assert not re.search(r"https?://(?!www.w3.org)", text)
    if find_chromium() is None:
        pytest.skip("no Chromium")
    (tmp_path / "p.html").write_text(text)
    with Browser(tmp_path) as browser:
        browser.open((tmp_path / "p.html").as_uri())
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
        browser.evaluate("document.querySelectorAll('th')[4].click()")
        names = "[...document.querySelectorAll('tbody tr')].map((row) => row.cells[0].textContent)"
        assert browser.evaluate(names) == ["<f>", "all kernels", "old"]


def test_files_that_are_no_profiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = tmp_path / "good.json"
    facts = {"program": "p.py", "device": "cpu", "seconds": 1.0, "compiling": 0.0, "is_real": True, "tilework": "0.1.0"}
    good.write_text(json.dumps({"format": FORMAT, **facts, "kernels": []}))
    assert main(["profile", "--compare", str(good), str(good), "--html", str(tmp_path / "c.html")]) == 0
    assert "neither has kernels" in (tmp_path / "c.html").read_text()
    assert main(["profile", "--compare", str(good), str(good), "--html", str(tmp_path / "no" / "c.html")]) == 2
    for content in (b"x = 1", b"[]", b"{}", b"<p>no data", b'{"a": 1}', b'[{"frame": 1}]', bytes(range(256))):
        (bad := tmp_path / "bad").write_bytes(content)
        with pytest.raises(UsageError, match="compare files of `tilework profile`"):
            load(str(bad))
    capsys.readouterr()
    assert main(["profile", "--compare", str(good), str(tmp_path / "none.json")]) == 2
    assert f"profile: error: {tmp_path / 'none.json'}: no such file or directory" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["profile", "--compare", str(good)])
