"""The page in a headless Chromium: links in both directions, passes, layouts, search, keys, colours. Skipped where
there is no Chromium."""

import json
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tests.inspection.browser import Browser, find_chromium
from tests.inspection.documents import compiled, line_of, odd_tiles, request
from tilework.compiler import ASTSource
from tilework.inspect.compilation import Request
from tilework.inspect.explorer.compare import compare, data_of
from tilework.inspect.explorer.document import build, write
from tilework.inspect.page import COMPARISON
from tilework.inspect.page import page as comparison_page
from tilework.targets.base import GPUTarget

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("page")
    with Browser(folder) as running:
        write(build([request("cuda:90", launched=False), request("cpu", num_warps=8)]), folder / "page.html")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tilework.inspect.page.LARGE", 0)
            write(compiled("hip:gfx942"), folder / "packed.html")
        running.prefer("light")
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Browser]:
    """The page as it is when it is opened; nothing may be thrown while a test uses it."""
    browser.open((browser.folder / "page.html").as_uri())
    yield browser
    assert browser.problems == []


def source_row(text: str) -> str:
    """The line of the source that has `text`; its number is beside it."""
    return f"#source .row[data-line='{line_of(text)}']"


def lit(page: Browser, pane: int, name: str = "lit") -> str:
    """The lines of a pane that are lit up."""
    rows = f"document.querySelectorAll('.panes > .pane')[{pane}].querySelectorAll('.row.{name} .text')"
    return "\n".join(page.evaluate(f"[...{rows}].map((row) => row.textContent)"))


def test_pointing_at_a_line_lights_up_what_became_of_it_and_back(page: Browser) -> None:
    assert page.evaluate("document.documentElement.dataset.tabs") == "ttgir ptx"
    page.point(source_row("x = tl.load"))
    assert "tt.load" in lit(page, 1) and "ld.global" in lit(page, 2)
    assert "tt.store" not in lit(page, 1)
    page.click(source_row("tl.store"))
    assert "tt.store" in lit(page, 1, "pinned") and "st.global" in lit(page, 2, "pinned")
    index = page.evaluate(
        "[...document.querySelectorAll('.panes > .pane')[1].querySelectorAll('.row')].find((row) => "
        "row.textContent.includes('mulf')).dataset.i"
    )
    page.click(f".panes > .pane:nth-of-type(2) .row[data-i='{index}']")
    assert "return x * 0.5" in lit(page, 0, "pinned") and "mul" in lit(page, 2, "pinned")
    assert "total = halved" in lit(page, 0, "weak"), "the call that led there"
    page.press("Escape")
    assert lit(page, 0, "pinned") == lit(page, 2, "pinned") == ""


def test_a_line_is_reached_with_the_keyboard(page: Browser) -> None:
    page.evaluate("document.querySelector('#source .code').focus()")
    page.press("Home")
    for _ in range(3):
        page.press("ArrowDown")
    page.press("Enter")
    assert "tl.program_id" in lit(page, 0, "pinned") and "tt.get_program_id" in lit(page, 1, "pinned")


def test_passes_show_what_they_changed(page: Browser) -> None:
    page.click("[data-tab=passes]")
    page.click("[data-pass^=tritongpu-coalesce]")
    added = "[...document.querySelectorAll('.row.add .text')].map((row) => row.textContent).join('\\n')"
    assert "ttg.convert_layout" in page.evaluate(added) and "tt.load" in page.evaluate(added)
    assert page.evaluate("document.querySelectorAll('.row.fold').length") > 0
    page.press("ArrowDown")
    assert page.evaluate("document.querySelector('.list [aria-current=true]').dataset.pass").startswith(
        "tritongpu-F32DotTC"
    )


def test_a_type_opens_the_picture_of_its_layout(page: Browser) -> None:
    row = "[...document.querySelectorAll('.row')].find((row) => row.textContent.includes('tt.load'))"
    page.evaluate(f"{row}.querySelector('.has-layout').setAttribute('id', 'type')")
    page.click("#type")
    assert page.evaluate("document.querySelector('.encoding').textContent").startswith("#ttg.blocked")
    # element 5 is in the second register of lane 2: the picture says so where the mouse is
    script = (
        "(() => { const box = document.querySelector('canvas').getBoundingClientRect(); "
        "return [box.left, box.top, box.width]; })()"
    )
    left, top, width = page.evaluate(script)
    page.send("Input.dispatchMouseEvent", type="mouseMoved", x=left + 36 + 5.5 * (width - 37) / 32, y=top + 22)
    assert page.evaluate("document.querySelector('.tip').textContent") == "[5]\nT2 (warp 0, lane 2), register 1"


def test_lanes_that_hold_no_element_are_grey(browser: Browser) -> None:
    write(odd_tiles(), browser.folder / "odd.html")
    browser.open((browser.folder / "odd.html").as_uri())
    row = "[...document.querySelectorAll('.row')].find((row) => row.textContent.includes('tt.load'))"
    browser.evaluate(f"{row}.querySelector('.has-layout').click()")  # behind the right border, perhaps
    assert "200 seen" in browser.evaluate("document.querySelector('.tools').textContent")
    assert "padding, which no program sees" in browser.evaluate("document.querySelector('.legend').textContent")
    pixels = """(() => { const canvas = document.querySelector('canvas'), pen = canvas.getContext('2d');
        const [wide, high] = [(canvas.width - 37 * devicePixelRatio) / 32, (canvas.height - 19 * devicePixelRatio) / 8];
        const x = (at) => 36 + (at % 32 + 0.5) * wide, y = (at) => 18 + (Math.floor(at / 32) + 0.5) * high;
        return [199, 200, 255].map((at) => [...pen.getImageData(x(at), y(at), 1, 1).data].slice(0, 3)); })()"""
    last, first, end = browser.evaluate(pixels)
    assert first == end == [228, 228, 228] != last
    assert browser.problems == []


def test_search_finds_everywhere_and_goes_there(page: Browser) -> None:
    page.press("/")
    page.type("st.global")
    page.wait("document.querySelectorAll('.results button').length > 0")
    assert "PTX" in page.evaluate("document.querySelector('.results').textContent")
    page.press("Enter")
    assert "st.global" in page.evaluate("document.querySelector('.row.here .text').textContent")
    assert page.evaluate("document.querySelectorAll('.row mark').length") > 0
    page.press("Escape")
    page.press("Escape")
    assert page.evaluate("document.querySelectorAll('mark').length") == 0


def test_light_and_dark(page: Browser) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    page.prefer("dark")
    dark = page.evaluate(colour)
    assert light != dark
    page.click("#theme")
    assert page.evaluate(colour) == light
    page.press("t")
    assert page.evaluate(colour) == dark
    page.prefer("light")
    assert page.evaluate(colour) == dark, "what the reader chose stays"
    page.evaluate("localStorage.clear()")


def test_another_kernel_has_its_own_stages_and_report(page: Browser) -> None:
    page.evaluate(
        "(() => { const list = document.getElementById('kernel'); list.value = 1; "
        "list.dispatchEvent(new Event('change')); })()"
    )
    tabs = "[...document.querySelectorAll('.pane:nth-of-type(2) .tab')].map((tab) => tab.dataset.tab)"
    assert page.evaluate(tabs) == [
        "ttir", "ttcir", "llir", "asm", "passes", "layouts", "report",
    ]  # fmt: skip
    page.click("[data-tab=report]")
    assert "limits of this machine have not been measured" in page.evaluate(
        "document.querySelector('#limits').textContent"
    )
    counters = page.evaluate("document.querySelector('#counters').textContent")
    assert "Counters of the evaluator and in the assembly" in counters and "bytes loaded" in counters


def test_a_comparison_opens_at_the_first_difference(browser: Browser) -> None:
    one, other = compiled("cuda:90"), compiled("cuda:90", 8)
    path = browser.folder / "diff.html"
    path.write_text(comparison_page(json.dumps(data_of(compare(one, other))), "diff", COMPARISON))
    browser.open(path.as_uri())
    assert browser.evaluate("document.querySelector('[aria-current=true]').dataset.text").startswith("convert-triton")
    browser.click("[data-text=PTX]")
    assert ".reqntid 256" in browser.evaluate("document.querySelector('.code').textContent")
    assert browser.problems == []


def test_a_packed_page_opens_and_its_picture_is_taken(browser: Browser, tmp_path: Path) -> None:
    browser.open((browser.folder / "packed.html").as_uri())
    assert "amdgcn" in json.dumps(browser.evaluate("document.documentElement.dataset.tabs"))
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 50_000
    assert browser.problems == []


HOSTILE = """
import tilework
import tilework.language as tl


@tilework.jit
def größe(x):
    # </script> <!-- <script> {{data}} ]]> & \\u003c
    tl.store(x, 1)
"""


def test_a_source_may_hold_what_means_something_to_html(browser: Browser) -> None:
    (browser.folder / "hostile.py").write_text(HOSTILE)
    spec = spec_from_file_location("hostile", browser.folder / "hostile.py")
    assert spec is not None and spec.loader is not None
    spec.loader.exec_module(module := module_from_spec(spec))
    source = ASTSource(module.größe, {"x": "*fp32"})
    write(build([Request(source, GPUTarget.parse("cuda:90"), {}, None)]), browser.folder / "hostile.html")
    browser.open((browser.folder / "hostile.html").as_uri())
    shown = browser.evaluate("document.querySelector('#source').textContent")
    assert "</script> <!-- <script> {{data}} ]]> & \\u003c" in shown and "def größe" in shown
    assert "größe" in browser.evaluate("document.title")
    assert "st.global" in browser.evaluate("document.querySelector('.panes').textContent")
    assert browser.problems == []
