"""The examples of the page about the compiler: one kernel at every stage, compiled while the site is built.

``<!-- show ttgir -->`` on a line of a page becomes what `SHOWN` makes of that name. The passes, and the module before
each, are what the compiler itself says of them (MLIR_ENABLE_DUMP).
"""

import difflib
import inspect
import os
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from examples.softmax import softmax
from tilework.compiler import ASTSource, GPUTarget, lower
from tilework.layouts.picture import draw
from tilework.layouts.to_linear import to_linear
from tilework.targets.base import pass_of
from tilework.tools.layout import read_aliases

MARK = re.compile(r"^<!-- show (\w+) -->$", re.MULTILINE)
TARGETS = {"cuda": GPUTarget("cuda", 90, 32), "cpu": GPUTarget("cpu", "host", 1)}
STAGES = {"cuda": ("ttir", "ttgir", "llir", "ptx"), "cpu": ("ttir", "ttcir", "llir", "asm")}
POINTERS, NUMBERS = ("out_ptr", "in_ptr"), ("in_stride", "out_stride", "n_cols")
BLOCK = 1024
ROOT = Path(__file__).parent.parent
GENERATED = 512  # elements of a tile in the picture of its layout


class Step(NamedTuple):
    """A pass that has run: its name, and the module before and after it."""

    name: str
    before: str
    after: str


def source() -> ASTSource:
    """The kernel, specialized for addresses and integers that are multiples of 16."""
    types = {**dict.fromkeys(POINTERS, "*fp32"), **dict.fromkeys(NUMBERS, "i32"), "BLOCK": "constexpr"}
    aligned = {(index,): [["tt.divisibility", 16]] for index in range(len(POINTERS + NUMBERS))}
    return ASTSource(softmax, types, {"BLOCK": BLOCK}, aligned)


@cache
def compiled(backend: str) -> tuple[dict[str, str], list[Step]]:
    """The text of every stage, without source locations, and every pass on the way."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "passes")
        variables = {"MLIR_ENABLE_DUMP": "1", "MLIR_DUMP_PATH": str(file), "TRITON_DISABLE_LINE_INFO": "1"}
        with patch.dict(os.environ, variables):
            texts = lower(source(), TARGETS[backend], STAGES[backend])
        _, *pieces = re.split(
            r"^// -----// IR Dump Before (\S+?)(?:\{.*\})? \(\w+\) //----- //\n", file.read_text(), flags=re.MULTILINE
        )
    names, before = pieces[::2], [text.rstrip() for text in pieces[1::2]]
    last = texts[STAGES[backend][1]].rstrip()
    return texts, [Step(*step) for step in zip(names, before, [*before[1:], last])]


def expand(markdown: str) -> str:
    """A page with what its marks ask for."""
    return MARK.sub(lambda found: SHOWN[found[1]](), markdown)


def fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.strip()}\n```"


def kernel_source() -> str:
    return fenced(inspect.getsource(softmax.fn), "python")


def stage(backend: str, name: str, language: str = "mlir") -> Callable[[], str]:
    return lambda: fenced(readable(compiled(backend)[0][name]), language)


def readable(text: str) -> str:
    """IR with a line for each of the many attributes of a function's arguments."""
    return re.sub(r", (?=%\w+: [^,()]+ \{tt\.)|, (?=%\w+: i32\))", ",\n      ", text)


def folded(backend: str, name: str, language: str) -> Callable[[], str]:
    """A long text behind a line that opens it."""

    def show() -> str:
        text = compiled(backend)[0][name].strip()
        title = f"All {len(text.splitlines())} lines"
        return f'<details markdown="1"><summary>{title}</summary>\n\n{fenced(text, language)}\n\n</details>'

    return show


def lines_with(backend: str, name: str, pattern: str, language: str, most: int = 8) -> Callable[[], str]:
    """The lines that have something in them."""

    def show() -> str:
        lines = [line.strip() for line in compiled(backend)[0][name].splitlines() if re.search(pattern, line)]
        return fenced("\n".join(lines[:most]), language)

    return show


def passes(backend: str, stop: str | None = None, start: str | None = None) -> Callable[[], str]:
    """A table of passes up to `stop`, or from `start` on: what each is for, and what it changed in this kernel."""

    def show() -> str:
        steps = compiled(backend)[1]
        names = [step.name for step in steps]
        chosen = steps[names.index(start) if start else 0 : names.index(stop) if stop else None]
        first = {step.name: step for step in reversed(chosen)}
        rows = [
            f"| `{step.name}` | {purpose(step.name) if first[step.name] is step else 'again'} | {change(step)} |"
            for step in chosen
        ]
        return "\n".join(["| pass | what it is for | lines changed here |", "|---|---|---|", *rows])

    return show


def purpose(name: str) -> str:
    """The first sentence of a pass's documentation."""
    module = inspect.getmodule(type(pass_of(name)))
    text = inspect.getdoc(module) or ""
    sentence = re.split(r"(?<=[.:;]) (?=[A-Z`])", " ".join(text.split("\n\n")[0].split()))[0]
    return sentence.rstrip(":").replace("|", "\\|")


def change(step: Step) -> str:
    """Return the count of lines that a pass has changed."""
    if step.before == step.after:
        return ""
    lines = list(difflib.unified_diff(step.before.splitlines(), step.after.splitlines(), lineterm="", n=0))[2:]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return f"**+{added} −{removed}**"


def layout_picture() -> str:
    """A picture of the layout that coalescing has chosen: the thread that holds each element."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.ttgir")
        file.write_text(compiled("cuda")[0]["ttgir"])
        encoding = read_aliases(str(file), ["blocked"])["#blocked"]
    picture = draw(to_linear(encoding, (GENERATED,)), f"#blocked, {GENERATED} elements")
    return f'<figure class="picture">\n{" ".join(picture.split())}\n</figure>'


def coalescing() -> str:
    """The change of the load by coalescing."""
    (step,) = [step for step in compiled("cuda")[1] if step.name == "tritongpu-coalesce"]
    lines = [
        f"{sign} {line.strip()}"
        for sign, text in (("-", step.before), ("+", step.after))
        for line in text.splitlines()
        if re.match(r"#blocked\d* = |\s*%\w+ = tt\.load", line)
    ]
    return fenced("\n".join(lines), "diff")


SHOWN: dict[str, Callable[[], str]] = {
    "source": kernel_source,
    "frontend": lambda: fenced(readable(without_long_names(compiled("cuda")[1][0].before)), "mlir"),
    "ttir_passes": passes("cuda", stop="convert-triton-to-tritongpu"),
    "ttir": stage("cuda", "ttir"),
    "ttgir_passes": passes("cuda", start="convert-triton-to-tritongpu"),
    "ttgir": stage("cuda", "ttgir"),
    "coalescing": coalescing,
    "layout": layout_picture,
    "llir": folded("cuda", "llir", "llvm"),
    "ptx_memory": lines_with("cuda", "ptx", r"(ld|st)\.global|shfl|bar\.|ex2", "ptx", 14),
    "ptx": folded("cuda", "ptx", "ptx"),
    "ttcir_passes": passes("cpu", start="triton-licm"),
    "ttcir": stage("cpu", "ttcir"),
    "cpu_llir": folded("cpu", "llir", "llvm"),
    "asm": folded("cpu", "asm", "text"),
}


def without_long_names(text: str) -> str:
    """Names of functions of the library carry the types of their arguments: the end of them is left out."""
    text = re.sub(r'@"tilework\.language\.(\w+\.\w+?)__[^"]*"', r'@"\1..."', text)
    return re.sub(r"@tilework\.language\.(\w+\.\w+?)__\w+", r"@\1...", text)
