"""Every name and signature of `triton_surface.txt` is there under `as_triton`.

The table is what Triton 3.6.0 has, and what 3.7.1 and 3.8 add (as `inspect.signature` shows it, parameters with a
leading underscore left out, ``name=`` for one with a default) and programs may use. A call that fits Triton's signature
fits ours: the same names in the same order, and what is more here has a default.
"""

import os
import re
from pathlib import Path

from tests.python_programs import run_python

HERE = Path(__file__).parent
LLVM = "triton._C.libtriton.llvm"  # of which only a part is not there
CHECK = """
import inspect, sys
from importlib import import_module

def parameters(thing):
    return [p for p in inspect.signature(thing).parameters.values() if not p.name.startswith("_") and p.name != "self"]

def problem(wanted, thing):
    found = [p for p in parameters(thing) if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    wanted = [name for name in wanted if name and not name.startswith("*") and name != "self"]
    names = [name.rstrip("=") for name in wanted]
    if [p.name for p in found[: len(names)]] != names:
        return f"takes {[p.name for p in found]}"
    for text, p in zip(wanted, found):
        if text.endswith("=") and p.default is p.empty:
            return f"needs {p.name}"
    needed = [p.name for p in found[len(names) :] if p.default is p.empty]
    return f"needs {needed}" if needed else None

module, wrong = None, []
for line in open(sys.argv[1]):
    if not line.startswith(" "):
        name = line.strip()
        exec(f"import {name}")
        module = sys.modules[name]
        continue
    for entry in line.split():
        path, _, rest = entry.partition("(")
        thing = module
        try:
            for part in path.split("."):
                thing = getattr(thing, part)
        except AttributeError as error:
            wrong.append(f"{name}.{path}: {error}")
            continue
        if rest and (text := problem(rest.rstrip(")").split(","), thing)):
            wrong.append(f"{name}.{entry} {text}")
print("\\n".join(wrong))
"""


ABSENT = """
import sys
from importlib import import_module
from pkgutil import resolve_name

for name in sys.argv[1:]:
    try:
        resolve_name(name)
        print(name)
    except (ImportError, AttributeError):
        pass
"""


def test_names_that_the_documentation_says_are_not_there(tmp_path: Path) -> None:
    text = (HERE.parent.parent / "docs" / "compatibility.md").read_text()
    rows = re.findall(r"^\| (.*) \| missing \|$", text, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(triton\.[\w.]+)`", row) if name != LLVM]
    assert len(rows) == 3 and len(names) == 12
    assert under_triton(tmp_path, ABSENT, *names) == []


def test_names_and_signatures(tmp_path: Path) -> None:
    assert under_triton(tmp_path, CHECK, str(HERE / "triton_surface.txt")) == []


def under_triton(tmp_path: Path, script: str, *args: str) -> list[str]:
    """Run a script where tilework is Triton, and return the words that it prints."""
    (tmp_path / "check.py").write_text(script)
    settings = {
        **os.environ,
        "PYTHONPATH": str(HERE.parent.parent),
        "TRITON_INTERPRET": "0",
        "TRITON_CACHE_DIR": str(tmp_path),
    }
    done = run_python("-m", "tilework.as_triton", str(tmp_path / "check.py"), *args, env=settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
