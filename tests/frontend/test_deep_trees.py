"""Kernels that programs write: expressions and chains of hundreds of parts, compiled and interpreted, and texts that
are too deep."""

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.python_programs import run_python
from tilework.language.dependencies import DEEPEST, deeply

HEAD = """
import tilework, tilework.language as tl

def kernel(xp, out, m, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(xp + i)
"""
STORE = "    tl.store(out + i, {})\n"


def chain(first: str, parts: str, count: int) -> str:
    branches = "".join(f"    elif {parts.format(number)}:\n        x = x + {number}\n" for number in range(2, count))
    return f"    if {first}:\n        x = x + 1\n{branches}{STORE.format('x')}"


# how long they are, the text, and what becomes of ones
KINDS: dict[str, tuple[int, Callable[[int], str], float]] = {
    "sum": (500, lambda n: STORE.format(" + ".join(["x"] * n)), 500),
    "long sum": (2000, lambda n: STORE.format(" + ".join(["x"] * n)), 2000),
    "conditions": (500, lambda n: STORE.format("x, mask=" + " & ".join(["(x > 0)"] * n)), 1),
    "and": (500, lambda n: STORE.format("x, mask=" + " and ".join(["N > 0"] * n)), 1),
    "comparisons": (500, lambda n: STORE.format("x, mask=" + " < ".join(map(str, range(n)))), 1),
    "signs": (500, lambda n: STORE.format("-" * n + "x"), 1),
    "methods": (400, lambda n: STORE.format("x" + ".abs()" * n), 1),
    "attributes": (400, lambda n: STORE.format(f"tl.reshape(x[:, None]{'.T' * n}, (N,))"), 1),
    "calls": (90, lambda n: STORE.format("tl.abs(" * n + "x" + ")" * n), 1),  # Python allows 200 brackets
    "choices": (400, lambda n: STORE.format("".join(f"x if N == {k + 99} else " for k in range(n)) + "x"), 1),
    "elif": (500, lambda n: chain("N == -1", "N == -{}", n), 1),
    "elif at run time": (60, lambda n: chain("m == -1", "m == -{}", n), 1),
}


def loaded(folder: Path, text: str) -> Any:
    path = folder / "deep_kernel.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("deep_kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("kind", KINDS)
def test_deep_kernels_run(kind: str, interpret: bool, tmp_path: Path) -> None:
    count, text, wanted = KINDS[kind]
    limit = sys.getrecursionlimit()
    decorated = HEAD.replace("def ", f"@tilework.jit(interpret={interpret})\ndef ")
    kernel = loaded(tmp_path, decorated + text(count))
    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    kernel[(1,)](x, out, 3, N=8)
    np.testing.assert_array_equal(out, np.full(8, wanted, np.float32))
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize("interpret", [False, True], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("count", [20_000, 100_000])
def test_a_text_that_python_cannot_parse_is_an_error(count: int, interpret: bool, tmp_path: Path) -> None:
    decorated = HEAD.replace("def ", f"@tilework.jit(interpret={interpret})\ndef ")
    kernel = loaded(tmp_path, decorated + STORE.format("x"))
    kernel._unsafe_update_src(kernel.src.replace("i, x)", f"i, {' + '.join(['x'] * count)})"))
    with pytest.raises(Exception, match="this is nested too deeply"):
        kernel[(1,)](np.ones(8, np.float32), np.zeros(8, np.float32), 3, N=8)


def test_recursion_that_does_not_end_is_an_error() -> None:
    """In a thread with a large stack too, Python's limit comes before the end of the stack."""

    def recursive(number: int) -> int:
        return recursive(number + 1) + len(str(max([number], key=lambda item: recursive(item + 1))))

    for levels in (10, 1000):
        with pytest.raises(RecursionError):
            deeply(levels, lambda: recursive(0))
    with pytest.raises(RecursionError, match="nested too deeply"):
        deeply(DEEPEST + 1, lambda: None)


TOOLS = """
import warnings
import numpy as np
import tilework
tilework.as_triton()
import triton.language as tl
import triton.runtime.interpreter  # from now on launches go through what tools may replace

@tilework.jit(interpret=True)
def kernel(x, out, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    tl.store(out + tl.arange(0, N), {terms})
    return v

x, out = np.arange(8.0), np.zeros(8)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    kernel[(1,)](x, out, N=8)
np.testing.assert_array_equal(out, 300 * x)
assert ["returns a value" in str(one.message) for one in seen] == [True], seen
"""


def test_deep_kernels_run_with_the_tools_of_triton(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TOOLS.format(terms=" + ".join(["v"] * 300)))
    done = run_python(str(tmp_path / "program.py"), env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0, done.stderr
