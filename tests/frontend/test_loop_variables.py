"""The variables of finished loops have Python's values: generated programs, compiled and executed by Python itself."""

import ast
import random
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.runtime.modules import load_module
from tilework.frontend.loop_variables import lasting_loops

NAMES = ("i", "j", "k")
HEAD = """
@tilework.jit
def kernel(out, n):
"""
BODIES = {  # the loops, counted from the top, that must carry their variable
    "for i in range(n):\n    a += i\nfor i in range(n):\n    a += i": [],
    "for i in range(n):\n    pass\na += i": [0],
    "for j in range(n):\n    for i in range(n):\n        a += i\n    a += j": [],
    "for j in range(n):\n    a += i\n    for i in range(n):\n        a += i": [1],
    "for i in range(n):\n    pass\ni = 0\na += i": [],
    "for i in range(n):\n    pass\ni += 1": [0],
    "for i in range(n):\n    pass\nif n:\n    i = 0\nelse:\n    i = 1\na += i": [],
    "for i in range(n):\n    pass\nif n:\n    i = 0\na += i": [0],
    "while n:\n    for i in range(n):\n        pass\n    if n:\n        break\n    i = 0\na += i": [0],
    "while i > 0:\n    for i in range(n):\n        pass": [0],
    "for i in range(n):\n    i += 1": [],
    "for i in range(n):\n    pass\nelse:\n    a += i": [0],
    "for i in range(n):\n    pass\nfor i in range(i):\n    pass": [0],
    "for i in range(n):\n    for i in range(n):\n        pass\n    a += i": [1],
    "for i in range(n):\n    a += i\n    for i in range(n):\n        pass": [],
    "for i in tl.static_range(4):\n    pass\na += i": [],
}


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_loops_whose_variables_are_read(body: str) -> None:
    tree = ast.parse("def kernel(a, i, n):\n" + textwrap.indent(body, "    "))
    loops = sorted((node for node in ast.walk(tree) if isinstance(node, ast.For)), key=lambda node: node.lineno)
    assert [number for number, loop in enumerate(loops) if id(loop) in lasting_loops(tree)] == BODIES[body]


def statements(draw: random.Random, depth: int, in_loop: bool) -> list[str]:
    return [line for _ in range(draw.randint(1, 3)) for line in statement(draw, depth, in_loop)]


def statement(draw: random.Random, depth: int, in_loop: bool) -> list[str]:
    name, other = draw.choice(NAMES), draw.choice((*NAMES, "n"))
    kind = draw.randint(0, 7 if depth else 2)
    if kind == 0:
        return [f"{name} = {other} + {draw.randint(0, 3)}"]
    if kind < 3:
        leave = draw.choice(["break", "continue"])
        if in_loop and draw.random() < 0.3:
            return [f"if a % {draw.randint(2, 4)} == 0:", f"    {leave}"]
        return [f"a = (a * 3 + {name}) % 1009"]
    inner = [f"    {line}" for line in statements(draw, depth - 1, in_loop or kind > 3)]
    if kind == 3:
        return ["if a % 2 == 0:", *inner, "else:", *(f"    {line}" for line in statements(draw, depth - 1, in_loop))]
    start, step = draw.randint(0, 3), draw.choice([1, 2, 3])
    end = draw.choice([f"{start} + n", "n", f"{other} % 4"])
    return [f"for {name} in range({start}, {end}, {step}):", *inner]


@pytest.mark.parametrize("seed", range(24))
def test_generated_programs(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    lines = ["a = n", *(f"{name} = n + {draw.randint(0, 9)}" for name in NAMES), *statements(draw, 3, False)]
    body = "\n".join([*lines, *statements(draw, 3, False)])
    values = [f"tl.store(out + {index}, {name})" for index, name in enumerate(("a", *NAMES))]
    kernel = load_module(tmp_path, HEAD + textwrap.indent("\n".join([body, *values]), "    ")).kernel
    for n in (0, 1, 3, 5):
        scope: dict[str, Any] = {"n": n}
        exec(body, scope)
        out = np.zeros(4, np.int32)
        kernel[(1,)](out, n)
        assert out.tolist() == [scope[name] for name in ("a", *NAMES)], body
