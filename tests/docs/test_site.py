"""The site is built, its links lead somewhere, it needs no network, and every page opens in a browser without
complaints."""

import re
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the site is built by MkDocs: pip install tilework[docs]")
from tests.docs.built_site import broken_links, build_once
from tests.inspection.browser import Browser, find_chromium
from tests.shared_folder import shared_by_workers
from tilework.version import __version__

ROOT = Path(__file__).parent.parent.parent
DESK, PHONE = 1280, 390  # pixels of a window
COLUMNS = 120  # of code, which are seen without scrolling
TOO_WIDE = f"""
document.querySelectorAll("details").forEach(part => {{ part.open = true; }});
[...document.querySelectorAll("main:not(.listing) :is(pre, table)")].filter(
  part => part.scrollWidth > part.clientWidth
    && !(part.tagName === "PRE" && part.innerText.split("\\n").some(line => line.length > {COLUMNS}))
).map(part => part.innerText.slice(0, 200))
"""
HIDDEN_TITLES = """
[...document.querySelectorAll("main th")].filter(
  title => title.textContent.trim() && !title.offsetHeight && !title.closest("details:not([open])")
).map(title => title.textContent)
"""
SHARED = {"style.css", "code.css", "site.js", "search_index.js", "icon.svg"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, warm_cache: Path) -> Path:
    return build_once(shared_by_workers(tmp_path_factory), warm_cache)


def test_every_page_is_there_and_no_link_is_broken(site: Path) -> None:
    made = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}
    expected = {"index.html", "architecture.html", "reference/environment.html", "tutorials/01_vector_add.html"}
    assert made >= SHARED | expected | {"reference/language.html", "source/tilework/language/block_builtins.py.html"}
    assert broken_links(site) == []


def test_nothing_comes_from_the_network(site: Path) -> None:
    for path in [*site.rglob("*.html"), *site.rglob("*.css"), *site.rglob("*.js")]:
        if path.name != "search_index.js":
            found = re.findall(
                r"""<(?:script|link|img)[^>]*(?:src|href)=["']?https?:|url\(\s*["']?https?:""", path.read_text()
            )
            assert not found, (path, found)


@pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium")
def test_every_page_opens_in_a_browser_and_fits(site: Path, tmp_path: Path) -> None:
    pages = [page for page in sorted(site.rglob("*.html")) if "source" not in page.relative_to(site).parts[:1]]
    listings = sorted((site / "source").rglob("*.html"))[:3]
    with Browser(tmp_path, (DESK, 800)) as browser:
        for page in [*pages, *listings]:
            browser.open(page.as_uri())
            assert browser.problems == [], page
            assert browser.evaluate("scrollY") == 0, f"{page} does not open at its top"
            assert browser.evaluate(HIDDEN_TITLES) == [], f"titles of columns that {page} does not show"
            assert browser.evaluate("document.querySelector('main').innerText.trim().length") > 20, page
            assert browser.evaluate(TOO_WIDE) == [], f"parts of {page} that are wider than a window of {DESK} pixels"
            for width in (DESK, PHONE):
                browser.resize(width, 800)
                too_wide = browser.evaluate("document.documentElement.scrollWidth - innerWidth")
                assert too_wide <= 0, f"{page} is {too_wide} pixels wider than a window of {width}"
            browser.resize(DESK, 800)


@pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium")
def test_rows_of_environment_variables_are_paragraphs_on_a_phone(site: Path, tmp_path: Path) -> None:
    with Browser(tmp_path, (PHONE, 800)) as browser:
        browser.open((site / "reference" / "environment.html").as_uri())
        tables = "[...document.querySelectorAll('main table')]"
        assert browser.evaluate(f"{tables}.filter(table => table.scrollWidth > table.clientWidth).length") == 0
        assert browser.evaluate(f"{tables}.every(table => getComputedStyle(table.rows[1]).display === 'block')")


def test_pages_name_their_version_and_their_source(site: Path) -> None:
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    for page in sorted(site.rglob("*.html")):
        if page.is_relative_to(site / "source"):
            continue
        edit = re.search(r'<a class="edit" href="([^"]*)">', page.read_text())
        assert edit and edit[1].startswith(f"{repository}/edit/main/"), page
        assert (ROOT / edit[1].removeprefix(f"{repository}/edit/main/")).is_file(), edit[1]
        assert f"<span>tilework {__version__}</span>" in page.read_text(), page


@pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium")
def test_search_and_colours_work_from_a_folder(site: Path, tmp_path: Path) -> None:
    with Browser(tmp_path, (1200, 800)) as browser:
        browser.prefer("dark")
        browser.open((site / "index.html").as_uri())
        ground = "getComputedStyle(document.body).backgroundColor"
        dark = browser.evaluate(ground)
        browser.click("#theme")
        assert browser.evaluate(ground) == "rgb(255, 255, 255)" != dark
        browser.open((site / "explorer.html").as_uri())
        picture = "document.querySelector('picture img').currentSrc"
        browser.evaluate("localStorage.setItem('theme', 'light')")
        browser.open((site / "explorer.html").as_uri())
        assert browser.evaluate(picture).endswith("explorer-light.webp"), "what the reader chose, not the system"
        browser.click("#theme")
        browser.wait(f"{picture}.endsWith('explorer-dark.webp')")
        browser.press("/")
        browser.type("atomic_add")
        browser.wait("document.querySelector('#found a')?.textContent.startsWith('tl.atomic_add')")
        browser.press("Enter")
        browser.wait("location.hash === '#tl.atomic_add' && document.documentElement?.dataset.ready !== undefined")
        assert browser.problems == []
        for word, found in (("int4", r"\bint4\b"), ("conv", "convolution")):
            browser.click("#search")
            browser.evaluate("document.querySelector('#search').select()")
            browser.type(word)
            first = "document.querySelector('#found a')?.innerText.toLowerCase()"
            browser.wait(f"/{found}/.test({first})")
        browser.press("Escape")
        browser.resize(400, 800)
        assert not browser.evaluate("document.querySelector('nav.pages').checkVisibility()")
        browser.click("#menu")
        assert browser.evaluate("document.querySelector('nav.pages').checkVisibility()")
