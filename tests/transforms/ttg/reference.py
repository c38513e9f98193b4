"""Triton's IR around each of its passes, to compare ours with.

    python -m tests.transforms.ttg.reference tritongpu-coalesce DIRECTORY          DIRECTORY/**/*.passes
    python -m tests.transforms.ttg.reference convert-triton-to-tritongpu DIRECTORY matmul_f16

A `.passes` file holds the IR before every pass that ran, each behind a line `// ===== before Name (argument) ...`.
`steps` reads it; `normal` prints a module without what is left to chance: names and locations.
"""

import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from tilework.ir.locations import unknown
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.transforms.registry import make_pass, run_pipeline

HEADER = re.compile(
    r"^// ===== before \S+ \(([\w-]+)\) \('([\w.]+)' operation[^)\n]*\)( \(unchanged\))?.*$", re.MULTILINE
)
INTERNAL = re.compile(r"^// -----// ", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """One pass of Triton's: the module before and behind it."""

    kernel: str
    name: str
    before: str
    after: str
    index: int


def steps(file: Path, name: str | None = None) -> Iterator[Step]:
    """The passes of a dump that ran on a module, in order; only those called `name` if it is given."""
    text = file.read_text(encoding="utf-8")
    marks = list(HEADER.finditer(text))
    found: list[tuple[str, str]] = []
    current = ""
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        if mark[3] is None:
            current = INTERNAL.split(text[mark.end() : following.start() if following else len(text)])[0]
        found.append((mark[1] if mark[2] == "builtin.module" else "", current))
    for index, ((passed, before), (_, after)) in enumerate(pairwise(found)):
        if passed and name in (None, passed):
            yield Step(f"{file.parent.name}/{file.stem}", passed, before, after, index)


def normal(module: ModuleOp) -> str:
    """`module` as we print it, without locations and names: values are numbered."""
    for op in module.walk():
        op.location = unknown
        for result in op.results:
            result.name_hint = None
        for region in op.regions:
            for block in region.blocks:
                for arg in block.args:
                    arg.location, arg.name_hint = unknown, None
    return print_module(module)


@lru_cache(2)
def parsed(text: str) -> tuple[ModuleOp, str]:
    """The module after one pass is the one before the next: it is parsed once."""
    module = parse_module(text)
    return module, normal(module)


def differences(step: Step, options: str = "") -> list[str]:
    """The lines in which our pass and Triton's differ."""
    module = parsed(step.before)[0].clone()
    run_pipeline(module, [make_pass(step.name, options)])
    mine, theirs = normal(module).splitlines(), parsed(step.after)[1].splitlines()
    return list(difflib.unified_diff(theirs, mine, "triton", "tilework", lineterm="", n=1))


def convert_options(after: str) -> str:
    """The options that `convert-triton-to-tritongpu` was given, from the attributes of the module it made."""
    warps = re.search(r'"ttg.num-warps" = (\d+)', after)
    target = re.search(r'ttg.target = "([\w:]+)"', after)
    ctas = re.search(r'"ttg.num-ctas" = (\d+)', after)
    assert warps and target and ctas, "the module says what it is for"
    return f"target={target[1]} num-warps={warps[1]} num-ctas={ctas[1]}"


def main(arguments: Sequence[str]) -> int:
    name, root, *only = arguments
    failures = 0
    for file in sorted(Path(root).rglob("*.passes")):
        for step in steps(file, name):
            if only and file.stem not in only:
                continue
            options = convert_options(step.after) if name == "convert-triton-to-tritongpu" else ""
            found = differences(step, options)
            failures += bool(found)
            print(f"{step.kernel} #{step.index}: {'same' if not found else f'{len(found)} lines differ'}")
            if only:
                print("\n".join(found))
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
