"""The guides' pictures show what the tools show now, in every colour scheme, and are small."""

import re
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the guides' tools are those of the site: pip install tilework[docs]")
from docsite import screenshots
from docsite.screenshots import FOLDER, MOST_BYTES, SCHEMES, SCREENSHOTS, Screenshot, digest, machine_facts, manifest
from tests.inspection.browser import find_chromium

DOCS = Path(__file__).parent.parent.parent / "docs"
PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]*)">\s*'
    r'<img src="([^"]*)" alt="([^"]*)" width="(\d+)" height="(\d+)">\s*</picture>'
)


@pytest.mark.parametrize("one", SCREENSHOTS, ids=[one.name for one in SCREENSHOTS])
def test_pictures_are_younger_than_what_they_show(one: Screenshot, tmp_path: Path) -> None:
    """Either the page is the same one, or it looks the same in the browser that took the picture."""
    known = manifest()[one.name]
    for scheme in SCHEMES:
        assert digest(one.path(scheme).read_bytes()) == known["pictures"][scheme], "make screenshots writes both"
    page = one.page()
    if one.digest(page) == known["page"]:
        return
    if find_chromium() is None or machine_facts() != known["machine"]:
        pytest.skip(
            f"{one.name}: the page is another one, and only the browser and ptxas that made it can tell if it looks so"
        )
    taken = {scheme: digest(data) for scheme, data in one.take(page, tmp_path).items()}
    assert taken == known["pictures"], f"docs/pictures/{one.name}-*.webp show what is no more: make screenshots"


def test_all_pictures_are_small_and_known() -> None:
    files = sorted(FOLDER.iterdir())
    assert files == sorted(one.path(scheme) for one in SCREENSHOTS for scheme in SCHEMES)
    assert sum(file.stat().st_size for file in files) <= MOST_BYTES
    assert set(manifest()) == {one.name for one in SCREENSHOTS}


def test_guides_show_every_picture_light_and_dark() -> None:
    shown: set[str] = set()
    for page in [*DOCS.glob("*.md"), DOCS.parent / "README.md"]:
        text = page.read_text().replace('="docs/pictures/', '="pictures/')
        found = PICTURE.findall(text)
        assert len(found) == text.count("<picture>"), page
        for dark, light, alt, width, height in found:
            assert dark == light.replace("-light.", "-dark.") and len(alt) > 30, page
            assert webp_size(DOCS / light) == webp_size(DOCS / dark) == (int(width), int(height)), light
            shown.add(light)
    assert shown == {f"pictures/{one.name}-light.webp" for one in SCREENSHOTS}


def webp_size(file: Path) -> tuple[int, int]:
    """Width and height, of the header of a lossy WebP file."""
    data = file.read_bytes()
    start = data.index(b"\x9d\x01\x2a") + 3  # the start code of a key frame
    width, height = (int.from_bytes(data[at : at + 2], "little") & 0x3FFF for at in (start, start + 2))
    return width, height


@pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium")
def test_a_picture_is_taken_again_when_its_page_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["before"]
    one = Screenshot("words", lambda: screenshots.plain_page("words", words[0]), (300, 100))
    monkeypatch.setattr(screenshots, "SCREENSHOTS", (one,))
    monkeypatch.setattr(screenshots, "FOLDER", tmp_path)
    monkeypatch.setattr(screenshots, "MANIFEST", tmp_path / "manifest.json")
    assert screenshots.update(()) == ["words"] and screenshots.update(()) == []
    before = manifest()["words"]["pictures"]
    assert before["light"] != before["dark"] and webp_size(one.path("dark"))[0] == 300
    assert screenshots.update(("words",)) == ["words"] and manifest()["words"]["pictures"] == before, "repeatable"
    words[0] = "after"
    assert screenshots.update(()) == ["words"] and manifest()["words"]["pictures"] != before
