"""Loops that end early are counted beforehand where that can be known: the same stores in the same order, nothing read
behind the exit."""

import builtins
import importlib.util
import os
import random
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.frontend.run import after_passes, result, run, ttir
from tilework.ir.printer import print_module
from tilework.transforms.remarks import listening

SEEDS = int(os.environ.get("DIFFERENTIAL_EXAMPLES", "8"))
HEAD = "import tilework\nimport tilework.language as tl\n\n\n@tilework.jit\ndef kernel(out, values, n, m):\n"
START = "    x = n * 3\n    at = 0 * n\n"


class Loop:
    """The lines of a generated loop that leaves a trace of what it did; it ends early for reasons that scalars give."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []

    def test(self) -> str:
        forms = ["i >= m", "i > m", "m <= i", "i == m", "i >= m * 2 - n", "x > 60", "x & 7 == m", "i >= m or x > 90",
                 "n > 5 and i > 2",
                 "i * 2 >= m", "tl.load(values + i) > 8", "not i < m", "i + x >= m + 50", "m > 3"]  # fmt: skip
        return self.random.choice(forms)

    def note(self, pad: str) -> None:
        self.lines.append(f"{pad}tl.store(out + at, i * 1000 + x)")
        self.lines.append(f"{pad}at += 1")

    def statement(self, pad: str, depth: int) -> None:
        kind = self.random.choice(["leave", "leave", "leave", "note", "change", "change", "if"])
        if kind == "leave":
            self.lines.append(f"{pad}if {self.test()}:")
            if self.random.random() < 0.4:
                self.note(pad + "    ") if self.random.random() < 0.5 else self.lines.append(f"{pad}    x += 1")
            words = ["break", "break", "break", "continue", "return"]
            self.lines.append(f"{pad}    {self.random.choice(words)}")
        elif kind == "note":
            self.note(pad)
        elif kind == "change" or depth == 0:
            self.lines.append(f"{pad}x = {self.random.choice(['x + i', 'x * 5 & 127', 'x ^ m', 'x + 1'])}")
        else:
            self.lines.append(f"{pad}if {self.test()}:")
            for _ in range(self.random.randrange(1, 4)):
                self.statement(pad + "    ", depth - 1)

    def text(self) -> str:
        bounds = self.random.choice(["n", "0, n, 2", "m, n", "n, 0, -1", "2, n + m, 3"])
        self.lines.append(f"    for i in tl.range({bounds}, num_stages=2):")
        for _ in range(self.random.randrange(2, 6)):
            self.statement("        ", 2)
        if self.random.random() < 0.4:
            self.lines += ["    else:", "        x += 1000"]
        return START + "\n".join(self.lines) + "\n    tl.store(out + at, x)\n    tl.store(out + at + 1, at)\n"


class Language:
    """`tl` where Python runs the text."""

    @staticmethod
    def range(*bounds: int, **hints: int) -> Iterable[int]:
        return builtins.range(*bounds)

    @staticmethod
    def store(index: tuple[list[int], int], value: int) -> None:
        index[0][index[1]] = value

    @staticmethod
    def load(index: tuple[list[int], int]) -> int:
        return index[0][index[1]]


class Pointer(tuple):
    def __add__(self, offset: object) -> "Pointer":
        return Pointer((self[0], self[1] + offset))


def in_python(body: str, n: int, m: int, values: list[int]) -> list[int]:
    out, space = [-1] * 256, {"tl": Language}
    exec(f"def f(out, values, n, m):\n{body}", space)
    space["f"](Pointer((out, 0)), Pointer((values, 0)), n, m)  # pyright: ignore[reportCallIssue]
    return out


def as_kernel(text: str, folder: Path):
    path = folder / "drawn.py"
    path.write_text(HEAD + text)
    spec = importlib.util.spec_from_file_location("drawn", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.parametrize("seed", range(SEEDS))
def test_generated_loops_do_what_python_does(seed: int, tmp_path: Path) -> None:
    body = Loop(seed).text()
    kernel = as_kernel(body, tmp_path)
    values = np.random.default_rng(seed).integers(0, 12, 64).astype(np.int32)
    for n, m in ((7, 3), (0, 5), (12, 12)):
        out = np.full(256, -1, np.int32)
        run(kernel, out, values, n, m)
        assert out.tolist() == in_python(body, n, m, values.tolist()), body


def compiled(kernel, *arguments: object) -> str:
    return print_module(after_passes(ttir(kernel, *arguments)), debuginfo=False)


@tilework.jit
def until_limit(out, n, limit):
    for i in range(0, n, 4):
        if i >= limit:
            break
        tl.store(out + i, i)


@tilework.jit
def until_table(out, table, n):
    for i in tl.range(n, num_stages=2):
        page = tl.load(table + i)
        if page < 0:
            break
        tl.store(out + i, page)


@tilework.jit
def until_found(out, x, n):
    for i in tl.range(n, num_stages=2):
        tile = tl.load(x + i * 4 + tl.arange(0, 4))
        if tl.max(tile, 0) > 7:
            break
        tl.store(out + i, i)


@tilework.jit
def until_own_mark(table, n):
    for i in tl.range(n, num_stages=2):
        if tl.load(table + i) < 0:
            break
        tl.store(table + i + 1, -1)


X = np.zeros(8, np.int32)


def test_a_comparison_with_the_counter_is_the_end_of_the_loop() -> None:
    text = compiled(until_limit, X, 8, 8)
    assert "scf.while" not in text and "scf.if" not in text and "arith.select" in text


@tilework.jit
def sums(out, x, n, limit, EXITS: tl.constexpr):
    total = tl.zeros((64,), tl.float32)
    for start in range(0, n, 64):
        if EXITS:
            if start >= limit:
                break
        total += tl.exp(tl.load(x + start + tl.arange(0, 64)))
    tl.store(out, tl.sum(total, 0))


def test_vector_code_on_the_host_is_that_of_the_loop_without_exits() -> None:
    x, out = np.zeros(256, np.float32), np.zeros(1, np.float32)
    texts = [sums.warmup(out, x, 256, 128, EXITS=exits, grid=(1,)).asm["llir"] for exits in (False, True)]
    vectors = [re.findall(r"= (\w+).*<\d+ x float>", text) for text in texts]
    assert vectors[0] == vectors[1] and len(vectors[0]) > 10


def test_scalars_are_queried_in_a_loop_of_their_own() -> None:
    text = compiled(until_table, X, X, 8)
    asking, loop = text.split("scf.for")
    assert "scf.while" in asking and "tt.load" in asking and "tt.store" not in asking and "tt.store" in loop


@pytest.mark.parametrize(
    ("kernel", "count", "reason"),
    [
        (until_found, 2, "the content of a tile decides"),
        (until_own_mark, 1, "what it loads decides when it ends, and it writes"),
    ],
)
def test_the_next_iteration_waits_where_it_may_not_exist(kernel, count: int, reason: str) -> None:
    with listening() as remarks:
        text = compiled(kernel, *[X] * count, 8)
    assert "scf.while" in text and "scf.for" not in text
    assert [str(one) for one in remarks if reason in str(one)]


@tilework.jit
def at_the_end(out, first, last, step, limit, KIND: tl.constexpr):
    at = 0
    x = limit
    for i in tl.range(first, last, step if KIND != "constant" else 3, num_stages=2):
        tl.store(out + at, i)
        at += 1
        if KIND == "scalars":
            x = x * 5 & 127
            if x == 1:
                break
        elif KIND == "tiles":
            if tl.max(tl.arange(0, 4) + at, 0) == 99:
                break
        elif i >= limit:
            break
    tl.store(out + at, -7)


MOST = 2**31 - 1


@pytest.mark.parametrize(
    ("kind", "bounds"),
    [
        *((kind, (MOST - 7, MOST, 3)) for kind in ("limit", "constant", "scalars", "tiles")),
        *((kind, (1, 3, MOST)) for kind in ("limit", "scalars", "tiles")),
        ("limit", (-MOST, MOST, 2**30 + 5)),
    ],
)
def test_counters_end_where_they_do_not_fit_any_more(kind: str, bounds: tuple[int, int, int]) -> None:
    for limit in (MOST, MOST - 5, 2):
        wanted = list(range(*bounds))
        if kind in ("limit", "constant"):
            wanted = [i for index, i in enumerate(wanted) if index == 0 or wanted[index - 1] < limit]
        found = result(at_the_end, *bounds, limit, size=8, KIND=kind)
        assert found[: len(wanted) + 1] == [*wanted, -7]
