"""One cache for programs in several folders, environments and containers; messages name the lines of each."""

import ast
import os
import shutil
from pathlib import Path

import pytest

import tilework
from tests.python_programs import run_python
from tests.runtime.modules import load_module
from tilework import knobs
from tilework.compiler import ASTSource, GPUTarget

ROOT = Path(tilework.__file__).parent
HELPERS = "import tilework\n\n@tilework.jit\ndef twice(x):\n    return x * 2\n"
PROGRAM = """
import os, sys
import numpy as np
import tilework, tilework.language as tl
from tilework import knobs
from tilework.ir.attr_text import quoted
from helpers import twice

hits = []
knobs.compilation.listener = lambda **event: hits.append(event["cache_hit"])

@tilework.jit
def double(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, twice(tl.load(x + i, mask=i < n)), mask=i < n)  # the access

@tilework.jit
def check(x, out):
    v = tl.load(x)
    tl.device_assert(v == 0, "not zero")  # the assert
    tl.store(out, v)

def line(comment):
    lines = open(__file__).read().splitlines()
    return f"{__file__}:{next(at for at, text in enumerate(lines, 1) if '# ' + comment in text)}"

x, out = np.ones(16, np.float32), np.zeros(16, np.float32)
double[(1,)](x, out, 16, B=16)
assert out[0] == 2
for comment, launch in {
    "the assert": lambda: check[(1,)](x, out, debug=True),
    "the access": lambda: double[(1,)](x, out[:8], 16, B=16, sanitize=True),
}.items():
    try:
        launch()
    except (RuntimeError, tilework.TritonError) as error:
        assert line(comment) in str(error), error
    else:
        raise AssertionError(comment)
for target in ("cuda:90", "hip:gfx942") if len(sys.argv) == 1 else ():
    source = tilework.compiler.ASTSource(check, {"x": "*fp32", "out": "*fp32"})
    for debug in (False, True):
        kernel = tilework.compile(source, tilework.compiler.GPUTarget.parse(target), {"debug": debug})
        assert quoted(__file__)[:-1] in kernel.asm["ttir"]
        assert getattr(kernel.metadata, "shows_locations", False) == debug
        assert not debug or os.path.basename(__file__) in kernel.asm["llir"]
print(hits)
"""


def run(program: Path, cache: Path, *args: str, package: Path = ROOT.parent, **settings: str) -> list[bool]:
    """Run a program, and return which compilations were found in the cache."""
    keep = {name: text for name, text in os.environ.items() if not name.startswith(("TRITON_", "TILEWORK_"))}
    environment = {**keep, "TRITON_CACHE_DIR": str(cache), "TILEWORK_DEVICE": "native", "PYTHONPATH": str(package)}
    done = run_python(str(program), *args, cwd=program.parent, env={**environment, **settings})
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stdout.splitlines()[-1])


def written(folder: Path, name: str, above: str = "") -> Path:
    folder.mkdir(parents=True)
    (folder / "helpers.py").write_text(above + HELPERS)
    (folder / name).write_text(above + PROGRAM)
    return folder / name


def test_another_folder_environment_user_and_name(tmp_path: Path) -> None:
    here = written(tmp_path / "here", "program.py")
    there = written(tmp_path / "elsewhere" / "déep", "other.py", "# a line\n\n")
    package = tmp_path / "venv" / "lib" / "python3" / "site-packages"
    shutil.copytree(ROOT, package / "tilework", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "home").mkdir()
    cache, container = tmp_path / "cache", {"HOME": str(tmp_path / "home"), "USER": "other", "LOGNAME": "other"}
    assert run(here, cache) == [False] * 7
    # the code of GPUs contains the file and the line of an assertion
    assert run(there, cache, package=package, **container) == [True] * 4 + [False, True, False]
    for program in (here, there):
        assert run(program, cache) == [True] * 7


@pytest.mark.parametrize("device", ["emulator:sm_90", "emulator:gfx942"])
def test_emulators_name_the_lines_of_each(device: str, tmp_path: Path) -> None:
    """Emulators read line tables, so each program has machine code of its own."""
    here, there = written(tmp_path / "here", "program.py"), written(tmp_path / "there", "program.py", "\n\n")
    for program, expected in ((here, False), (there, False), (here, True), (there, True)):
        assert {*run(program, tmp_path / "cache", "only", TILEWORK_DEVICE=device)} == {expected}


def test_line_tables_are_exact_where_that_is_requested(tmp_path: Path) -> None:
    text = "@tilework.jit\ndef k(p):\n    tl.store(p, 1)\n"
    found = []
    with knobs.cache.scope(), knobs.compilation.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        knobs.compilation.listener = lambda **event: found.append(event["cache_hit"])
        for exact, folder in ((False, "a"), (False, "b"), (True, "b"), (True, "b"), (True, "a"), (False, "b")):
            knobs.cache.exact_locations = exact
            (tmp_path / folder).mkdir(exist_ok=True)
            module = load_module(tmp_path / folder, text)
            kernel = tilework.compile(ASTSource(module.k, {"p": "*i32"}), GPUTarget("cuda", 90, 32))
            assert not exact or f'directory: "{tmp_path / folder}"' in kernel.asm["llir"]
            assert str(tmp_path / folder / "generated.py") in kernel.metadata.locations["files"]
    assert found == [False, True, False, True, True, True]
