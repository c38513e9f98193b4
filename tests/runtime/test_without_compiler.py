"""Features that work without the compiler and its packages, and messages about the others."""

from pathlib import Path

from tests.runtime.without_compiler import run_without_compiler

REQUESTED = """
import numpy as np
import tilework
import tilework.language as tl
from tilework.runtime.compile.compiler_presence import missing_parts
from tilework.runtime.launch.python.specialize import make_binder
from tilework.tools import cli

assert missing_parts() == ("xdsl", "llvmlite", "ml_dtypes")

@tilework.jit
def add(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

x = np.zeros(100, np.float32)
specs = make_binder(add)(x, 100, BLOCK=128)[1]
assert specs == (("*fp32", "D"), ("i32", ""), ("constexpr", 128)), specs
assert len(add.cache_key) == 64

def interpreted():
    tilework.jit(add.fn, interpret=True)

for asked in (lambda: add[(1,)](x, 100, BLOCK=128), lambda: add.warmup(x, 100, BLOCK=128, grid=(1,)), interpreted):
    try:
        asked()
    except tilework.errors.CompilerMissing as error:
        assert "xdsl, llvmlite, ml_dtypes" in str(error) and "pip install ." in str(error), error
    else:
        raise AssertionError("it compiled")
assert (x == 0).all()
raise SystemExit(cli.main(["opt", "kernel.ttir"]))
"""


def test_arguments_are_specialised_and_compiling_is_a_clear_error(tmp_path: Path) -> None:
    done = run_without_compiler(tmp_path, REQUESTED)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("tilework opt: error: compiling needs xdsl, llvmlite, ml_dtypes"), done.stderr
    assert len(done.stderr.splitlines()) == 1


IMPORTED = """
import importlib.machinery, sys

class Split(importlib.machinery.PathFinder):  # as where the wheel of the compiler is not installed
    def find_spec(self, name, path=None, target=None):
        is_absent = name.startswith(("tilework.frontend", "tilework.inspect.explain", "tilework.compiler"))
        return None if is_absent else super().find_spec(name, path, target)

others = [one for one in sys.meta_path if "PathFinder" not in str(one) and "Editable" not in str(one)]
sys.meta_path[:] = [*others, Split()]
import tilework
for name in ("compiler", "explain.cases", "frontend"):
    try:
        exec(f"import tilework.{name}")
    except ImportError as error:
        assert ("pip install ." in str(error)) == (name != "frontend"), error
        assert name == "frontend" or type(error) is tilework.errors.CompilerMissing
    else:
        raise AssertionError(name)
assert not hasattr(sys.modules["tilework"], "nothing")
"""


def test_a_module_of_the_compiler_says_how_to_install_it(tmp_path: Path) -> None:
    done = run_without_compiler(tmp_path, IMPORTED)
    assert done.returncode == 0, done.stderr
