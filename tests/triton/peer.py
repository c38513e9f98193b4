"""Triton beside us, when it is installed: in this interpreter, or in the one that TRITON_PYTHON names.

python -m tests.triton.peer      records what it prints for the examples under fixtures/, and shows where our ops differ
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.pipeline.compiled import CASES, optimised
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module

FIXTURES = Path(__file__).parent / "fixtures"
ARCHITECTURES = (80, 90)
KEYS = [f"{name}:{arch}" for name in CASES for arch in ARCHITECTURES]
# a message of Triton's own parser names the file it read; in locations, only the example counts
MACHINE_PATH = re.compile(r'"[^"\n]*?/(examples/\w+\.py)"')
LIBRARY_PATH = re.compile(r'"[^"\n]*?/(triton/language/[\w/]+\.py)"')


@dataclass(frozen=True)
class Answer:
    """The text that Triton printed for each example, and why it refused ours."""

    printed: dict[str, str]
    refused: dict[str, str]


@cache
def triton_python() -> str | None:
    """An interpreter that has Triton, or None."""
    candidate = os.environ.get("TRITON_PYTHON", sys.executable)
    found = subprocess.run([candidate, "-c", "import triton.compiler"], capture_output=True, check=False)
    return candidate if found.returncode == 0 else None


@cache
def ask() -> Answer:
    """One run of Triton over all examples; importing it is slow."""
    python = triton_python()
    assert python is not None, "callers ask triton_python first"
    kernels, texts = [], []
    for key in KEYS:
        name, arch = key.split(":")
        case = CASES[name]
        kernels.append(
            {
                "key": key,
                "arch": int(arch),
                "kernel": case.kernel.__name__,
                "file": case.kernel.where.file,
                "signature": case.types,
                "constexprs": case.constexprs,
                "attrs": [[list(path), facts] for path, facts in case.attrs.items()],
            }
        )
        module = optimised(name, f"cuda:{arch}")
        for label, debuginfo in (("plain", False), ("located", True)):
            text = print_module(module, debuginfo=debuginfo)
            texts.append({"key": f"{key}:{label}", "arch": int(arch), "text": text})
    return run_triton(python, {"kernels": kernels, "texts": texts})


def run_triton(python: str, request: dict) -> Answer:
    """Return the answer of `under_triton.py`."""
    done = subprocess.run(
        [python, str(Path(__file__).with_name("under_triton.py"))],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return Answer(**json.loads(done.stdout.splitlines()[-1]))


def without_machine_paths(text: str) -> str:
    return LIBRARY_PATH.sub(r'"\1"', MACHINE_PATH.sub(r'"\1"', text))


def op_counts(text: str) -> Counter[str]:
    return Counter(op.name for op in parse_module(text).walk())


def main() -> None:
    FIXTURES.mkdir(exist_ok=True)
    for key, text in ask().printed.items():
        name, arch = key.split(":")
        (FIXTURES / f"{name}_sm_{arch}.ttir").write_text(without_machine_paths(text))
        ours, theirs = op_counts(print_module(optimised(name, f"cuda:{arch}"))), op_counts(text)
        more, fewer = dict(ours - theirs), dict(theirs - ours)
        print(f"{key}: {'same ops' if not more and not fewer else f'only ours {more}, only theirs {fewer}'}")
    for key, message in ask().refused.items():
        print(f"{key}: refused: {message}")


if __name__ == "__main__":
    main()
