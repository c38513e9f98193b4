"""Random programs of branches, loops, calls and tuples: the kernel computes what Python computes.

The same text is compiled as a kernel and executed by Python. Every value is masked to ten bits, so Python's integers
and 32-bit ones agree.
"""

import importlib.util
import random
from pathlib import Path

import numpy as np
import pytest

from tests.frontend.run import run_all
from tests.fuzz.amount import amount

NAMES = ("a", "b", "c", "d")
HELPERS = """
@tilework.jit
def clip(x, y):
    if x > y:
        if y > 500:
            return x - y
        return y
    elif x == y:
        return 7
    return x + 1


@tilework.jit
def swapped(t, k):
    x, y = t
    for i in tl.static_range(2):
        x, y = y, (x + k + i) & 1023
    return x, y


@tilework.jit
def found(x, limit):
    for i in range(8):
        if x + i == 40:
            continue
        left = 4 + 0 * x
        while left > 0:
            left -= 1
            x = (x * 3 + i) & 1023
            if x > limit:
                return x, i
            if x & 1:
                break
        else:
            x = 1
    else:
        x = x ^ 5
    return x, limit
"""


class Program:
    """Lines of a random body."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.counters = 0

    def expression(self, names: tuple[str, ...]) -> str:
        left, right = self.random.choice(names), self.random.choice([*names, str(self.random.randrange(9))])
        form = self.random.choice(
            ["{0} + {1}", "{0} * {1}", "{0} ^ {1}", "{0} - {1} + 1024", "min({0}, {1})", "max({0}, {1}, 3)",
             "clip({0}, {1})",
             "({0} if {0} > {1} else {1} + 0 * n)", "({0} >> 1) | {1}"]
        )  # fmt: skip
        return f"({form.format(left, right)}) & 1023"

    def condition(self, names: tuple[str, ...]) -> str:
        left, right = self.random.choice(names), self.random.choice([*names, "n", "40"])
        third = f" {self.random.choice(['<', '!='])} {self.random.choice(names)}" if self.random.random() < 0.2 else ""
        return f"{left} {self.random.choice(['<', '>', '==', '!=', '<='])} {right}{third}"

    def block(self, depth: int, indent: int, names: tuple[str, ...], in_loop: bool) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self.statement(depth, indent, names, in_loop)

    def statement(self, depth: int, indent: int, names: tuple[str, ...], in_loop: bool) -> None:
        pad = "    " * indent
        kind = self.random.choice(
            ["set", "set", "swap", "tuple", "temp", "find", "if", "if", "for", "while", "unroll", "leave", "leave"]
        )
        if depth == 0 and kind in ("if", "for", "while", "unroll", "leave"):
            kind = "set"
        target, other = self.random.sample(NAMES, 2)
        if kind == "set":
            self.lines.append(f"{pad}{target} = {self.expression(names)}")
        elif kind == "swap":
            self.lines.append(f"{pad}{target}, {other} = {other}, {target}")
        elif kind == "tuple":
            self.lines.append(f"{pad}t = swapped(t, {target})")
            self.lines.append(f"{pad}{target} = t[0]")
        elif kind == "find":
            self.lines.append(f"{pad}{target}, {other} = found({target}, {other})")
        elif kind == "temp":
            self.lines.append(f"{pad}local = {self.expression(names)}")
            self.lines.append(f"{pad}{target} = (local + {other}) & 1023")
        elif kind == "if":
            self.lines.append(f"{pad}if {self.condition(names)}:")
            self.block(depth - 1, indent + 1, names, in_loop)
            if self.random.random() < 0.6:
                self.lines.append(f"{pad}else:")
                self.block(depth - 1, indent + 1, names, in_loop)
        elif kind == "for":
            self.counters += 1
            index = f"i{self.counters}"
            bounds = self.random.choice(["3", "n & 3", "1, 6, 2", "5, 0, -2", f"{target} & 1, 3"])
            self.lines.append(f"{pad}for {index} in range({bounds}):")
            self.block(depth - 1, indent + 1, (*names, index), True)
            self.otherwise(depth, indent, names, in_loop)
        elif kind == "unroll":
            self.counters += 1
            index = f"i{self.counters}"
            self.lines.append(f"{pad}for {index} in tl.static_range(2):")
            self.block(depth - 1, indent + 1, (*names, index), True)
            self.otherwise(depth, indent, names, in_loop)
        elif kind == "while":
            self.counters += 1
            count = f"w{self.counters}"
            self.lines.append(f"{pad}{count} = 0")
            endless = self.random.random() < 0.4
            self.lines.append(f"{pad}while {'True' if endless else f'({count} < 3) & ({target} < 900)'}:")
            self.lines.append(f"{pad}    {count} += 1")
            if endless:
                self.lines += [f"{pad}    if {count} > 3:", f"{pad}        {self.random.choice(['break', 'return'])}"]
            self.block(depth - 1, indent + 1, (*names, count), True)
            self.otherwise(depth, indent, names, in_loop)
        else:
            words = ["break", "break", "continue", "continue", "return"] if in_loop else ["return"]
            if self.random.random() < 0.9:
                self.lines.append(f"{pad}if {self.condition(names)}:")
                pad += "    "
            if self.random.random() < 0.5:
                self.lines.append(f"{pad}{target} = {self.expression(names)}")
            self.lines.append(f"{pad}{self.random.choice(words)}")

    def otherwise(self, depth: int, indent: int, names: tuple[str, ...], in_loop: bool) -> None:
        """The `else` of a loop."""
        if self.random.random() < 0.3:
            self.lines.append(f"{'    ' * indent}else:")
            self.block(depth - 1, indent + 1, names, in_loop)
            if in_loop and self.random.random() < 0.4:
                self.lines.append(f"{'    ' * (indent + 1)}{self.random.choice(['break', 'continue', 'return'])}")

    def text(self) -> str:
        self.lines = []
        for _ in range(6):
            self.statement(3, 1, NAMES, False)
        start = "    a = n & 1023\n    b = 1 + 0 * n\n    c = (n * 3) & 1023\n    d = 4 + 0 * n\n    t = (a, b)\n"
        return start + "\n".join(self.lines) + "\n"


class PlainLanguage:
    """The names that the text needs when Python executes it."""

    static_range = range


def in_python(body: str, n: int) -> list[int]:
    space: dict = {"tl": PlainLanguage}
    exec(HELPERS.replace("@tilework.jit\n", ""), space)
    exec(f"def f(n):\n{body}    return [a, b, c, d, *t]\n", space)
    return space["f"](n) or [-1] * 6


def as_kernel(body: str, folder: Path):
    stores = "".join(f"    tl.store(out + {i}, {value})\n" for i, value in enumerate([*NAMES, "t[0]", "t[1]"]))
    path = folder / "program.py"
    head = "import tilework\nimport tilework.language as tl\n\n"
    path.write_text(f"{head}{HELPERS}\n\n@tilework.jit\ndef kernel(out, n):\n{body}{stores}")
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.parametrize("seed", range(amount(24)))
def test_random_program(seed: int, tmp_path: Path) -> None:
    body = Program(seed).text()
    kernel = as_kernel(body, tmp_path)
    calls = [(np.full(6, -1, np.int32), n) for n in (2, 45, 700)]
    run_all(kernel, calls)
    for out, n in calls:
        assert out.tolist() == in_python(body, n), f"n = {n}\n{body}"
