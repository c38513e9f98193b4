"""Screenshots of the tools for the guides: pages that the tools make, opened in Chromium, light and dark.

    make screenshots                              all that show what is no more
    python -m docsite.screenshots explorer        one, in any case

A picture is out of date when the page that it shows is another one, and looks different in the same browser: the
manifest has a digest of each page and of each picture. Times of compilations, which differ from run to run, are left
out of the pages; times of kernels are recorded (`pictures/profile.json`).
"""

import argparse
import base64
import hashlib
import json
import linecache
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from docsite.pictures.recorded_profile import recorded
from tests.inspection.browser import Browser
from tilework import knobs
from tilework.inspect.explorer.document import build, write
from tilework.inspect.profiler.page import page as profile_page
from tilework.targets.base import GPUTarget
from tilework.tools.explore import named_request

ROOT = Path(__file__).parent.parent
KERNELS = ROOT / "examples" / "matmul.py"
FOLDER = ROOT / "docs" / "pictures"
MANIFEST = Path(__file__).parent / "pictures" / "manifest.json"
SCHEMES = ("light", "dark")
MOST_BYTES = 3_000_000  # of all pictures
QUALITY = 82  # of WebP


def profile_folder() -> "tempfile.TemporaryDirectory[str]":
    """A temporary folder for the files of Chromium, whose processes may still write some while it is removed."""
    return tempfile.TemporaryDirectory(ignore_cleanup_errors=True)


@dataclass(frozen=True)
class Screenshot:
    """A page and what is done in it before its picture is taken."""

    name: str
    page: Callable[[], str]
    size: tuple[int, int]
    prepare: Callable[[Browser], None] = lambda browser: None
    part: str = "html"  # the element that is shown

    def path(self, scheme: str) -> Path:
        return FOLDER / f"{self.name}-{scheme}.webp"

    def digest(self, page: str) -> str:
        return digest(f"{self.size} {self.part} {page}".encode())

    def take(self, page: str, folder: Path) -> dict[str, bytes]:
        """The picture in each colour scheme."""
        file = folder / f"{self.name}.html"
        file.write_text(page, encoding="utf-8")
        found: dict[str, bytes] = {}
        for scheme in SCHEMES:
            with profile_folder() as profile, Browser(Path(profile), self.size) as browser:
                browser.prefer(scheme)
                browser.open(file.as_uri())
                self.prepare(browser)
                assert browser.problems == [], browser.problems
                left, top, width, height = browser.evaluate(
                    f"(() => {{ const box = document.querySelector('{self.part}').getBoundingClientRect();"
                    f" return [box.left, box.top, box.width, Math.min(box.height, innerHeight)]; }})()"
                )
                clip = {"x": left, "y": top, "width": width, "height": height, "scale": 1}
                shot = browser.send("Page.captureScreenshot", format="webp", quality=QUALITY, clip=clip)
                found[scheme] = base64.b64decode(shot["data"])
        return found


# ---- the pages


def explorer_page() -> str:
    """`tilework explore examples/matmul.py:matmul --target cuda:90`, without the time that compiling took."""
    document = build([named_request(f"{KERNELS}:matmul", "", GPUTarget.parse("cuda:90"), {}, True)])
    document = timeless(document) | {"tilework": ""}
    for made in document["kernels"]:
        made["times"], made["metrics"] = [], [one for one in made["metrics"] if one[0] != "compile time"]
    with tempfile.TemporaryDirectory() as folder:
        write(document, Path(folder) / "page.html")
        return (Path(folder) / "page.html").read_text(encoding="utf-8")


def timeless(value: Any) -> Any:
    """The data without what was measured."""
    if isinstance(value, dict):
        return {name: 0 if name == "ms" else timeless(one) for name, one in value.items()}
    return [timeless(one) for one in value] if isinstance(value, list) else value


def pin_dot(browser: Browser) -> None:
    """Keep the line of the dot highlighted."""
    lines = KERNELS.read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if "tl.dot" in line)
    browser.click(f"#source .row[data-line='{number}']")
    browser.send("Input.dispatchMouseEvent", type="mouseMoved", x=1, y=1)


def open_layout(browser: Browser) -> None:
    """Show the layout of the accumulator."""
    row = "[...document.querySelectorAll('.row')].find((row) => /arith.constant.*#mma/.test(row.textContent))"
    browser.evaluate(f"{row}.querySelector('.has-layout').click()")
    browser.wait("document.querySelector('canvas') !== null")


def profiler_page() -> str:
    return ready(profile_page(*recorded()))


def ready(page: str) -> str:
    """A page that says it is loaded, as `Browser.open` waits for."""
    return page.replace("</body>", "<script>document.documentElement.dataset.ready = '';</script></body>")


STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 18px 22px; font: 15px/1.5 system-ui, sans-serif;
       background: light-dark(#ffffff, #14181e); color: light-dark(#1d2430, #dde3ea); }
pre { font: 13.5px/1.5 "DejaVu Sans Mono", monospace; margin: 0; white-space: pre-wrap; }
.cell { display: grid; grid-template-columns: 62px 1fr; gap: 4px 10px; margin-bottom: 16px; }
.mark { font: 13.5px/1.5 "DejaVu Sans Mono", monospace; padding-top: 9px; color: light-dark(#2f6fdb, #6ea3ff); }
.code { padding: 8px 12px; border-radius: 6px; background: light-dark(#f4f6f8, #1b222b); }
.output { grid-column: 2; overflow: hidden; }
svg { max-width: 100%; height: auto; }
.typed { color: light-dark(#2f6fdb, #6ea3ff); } .wrong { color: light-dark(#b42318, #ff8a80); }
"""


def plain_page(title: str, body: str) -> str:
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    return ready(f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>')


CELLS = (
    """\
import tilework
import tilework.language as tl

@tilework.jit
def scale(x, by, BLOCK: tl.constexpr = 8):
    "Multiply by a number."
    i = tl.arange(0, BLOCK)
    tl.store(x + i, by * tl.load(x + i))

scale""",
    """\
from tilework.layouts.encodings import Blocked

Blocked(size_per_thread=(1, 2), threads_per_warp=(2, 16), warps_per_cta=(2, 1), order=(1, 0))""",
)


def notebook_page() -> str:
    """Cells, each with the HTML that notebooks show for its last line."""
    names: dict[str, Any] = {}
    parts: list[str] = []
    for number, cell in enumerate(CELLS, 1):
        file = f"cell {number}"
        lines = list[str](cell.splitlines(keepends=True))
        linecache.cache[file] = (len(cell), None, lines, file)  # kernels find their source
        *_, last = cell.split("\n\n")
        exec(compile(cell[: -len(last)], file, "exec"), names)
        shown = eval(compile(last, file, "eval"), names)._repr_html_()
        code = f'<div class="mark">[{number}]:</div><pre class="code">{escape(cell)}</pre>'
        parts.append(f'<div class="cell">{code}<div class="output">{shown}</div></div>')
    return plain_page("notebook", "".join(parts))


COMMANDS = ("TRITON_SANITIZE=1 python row_sums.py", "TILEWORK_DEVICE=emulator python row_sums.py")


def sanitizer_page() -> str:
    """A terminal in which a program of docs/emulator-and-sanitizer.md is run twice."""
    guide = (ROOT / "docs" / "emulator-and-sanitizer.md").read_text()
    program = re.search(r"^```python\n# row_sums\.py\n(.*?)^```", guide, re.DOTALL | re.MULTILINE)
    assert program is not None
    kernel = re.search(r"^@tilework\.jit.*?\n\n\n", program[1], re.DOTALL | re.MULTILINE)
    assert kernel is not None
    lines = [typed("cat row_sums.py"), escape(f"...\n{kernel[0].rstrip()}\n...")]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "row_sums.py").write_text(f"# row_sums.py\n{program[1]}")
        for command in COMMANDS:
            lines += [typed(command), output(command, Path(folder))]
    return plain_page("sanitizer", f"<pre>{chr(10).join(lines)}</pre>")


def typed(command: str) -> str:
    return f'$ <span class="typed">{escape(command)}</span>'


def output(command: str, folder: Path) -> str:
    """What a command prints, as HTML: the errors are marked."""
    setting, _, program = command.split()
    name, _, value = setting.partition("=")
    environment = {**os.environ, name: value, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, program], cwd=folder, env=environment, capture_output=True, text=True)
    text = escape((run.stdout + run.stderr).replace(f"{folder}/", "").rstrip())
    return re.sub(r"^.*?error: .*$", lambda line: f'<span class="wrong">{line[0]}</span>', text, flags=re.MULTILINE)


SCREENSHOTS = (
    Screenshot("explorer", explorer_page, (1600, 776), pin_dot),
    Screenshot("layouts", explorer_page, (2400, 760), open_layout, ".panes > :last-child"),
    Screenshot("profiler", profiler_page, (1120, 1330)),
    Screenshot("notebook", notebook_page, (1000, 930)),
    Screenshot("sanitizer", sanitizer_page, (1000, 570)),
)


# ---- the manifest


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def manifest() -> dict[str, Any]:
    return json.loads(MANIFEST.read_text()) if MANIFEST.exists() else {}


def machine_facts() -> str:
    """What pages and pixels depend on: the browser, the sizes of letters, and the assembler of cubins."""
    script = """(() => { const pen = document.createElement("canvas").getContext("2d");
      return ["system-ui", "sans-serif", "monospace"].map(font => {
        pen.font = `100px ${font}`; return pen.measureText("tile WORK 0123").width.toFixed(2); }).join(" "); })()"""
    with profile_folder() as folder, Browser(Path(folder)) as browser:
        facts = f"{browser.send('Browser.getVersion')['product']}, {browser.evaluate(script)}"
    try:
        return f"{facts}, ptxas {knobs.nvidia.ptxas.version}"
    except RuntimeError:
        return f"{facts}, no ptxas"


def update(chosen: Sequence[str]) -> list[str]:
    """Take the chosen pictures, and those whose pages have changed; return their names."""
    known, changed, facts = manifest(), [], machine_facts()
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for one in SCREENSHOTS:
            page = one.page()
            if one.name not in chosen and known.get(one.name, {}).get("page") == one.digest(page):
                continue
            taken = one.take(page, Path(folder))
            for scheme, data in taken.items():
                one.path(scheme).write_bytes(data)
            pictures = {scheme: digest(data) for scheme, data in taken.items()}
            known[one.name] = {"page": one.digest(page), "machine": facts, "pictures": pictures}
            changed.append(one.name)
    MANIFEST.write_text(json.dumps(known, indent=1) + "\n")
    return changed


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docsite.screenshots", description="Take the guides' screenshots.")
    names = [one.name for one in SCREENSHOTS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(names)}: in any case, not if out of date")
    chosen = parser.parse_args().names
    if unknown := set(chosen).difference(names):
        parser.error(f"there is no picture {', '.join(sorted(unknown))}, only {', '.join(names)}")
    changed = update(chosen)
    print(f"taken: {', '.join(changed)}" if changed else "all pictures are up to date")


if __name__ == "__main__":
    main()
