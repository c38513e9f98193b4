"""Kernels of any size, for `growth.py` and the tests of growth: the text of each consists of N equal parts.

kernel = load(CURVES["ifs"], 100, folder)       a kernel with 100 conditions
source = source_of(CURVES["ifs"], 100, folder)  the same with its signature: what the compiler takes
"""

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

HEAD = """import tilework
import tilework.language as tl

{before}
@tilework.jit
def kernel({parameters}BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
{body}    tl.store(out_ptr + i, x)
"""
CALLED = """
@tilework.jit
def step(x, k):
    return x * 0.5 + k

"""
PARAMETERS = {"x_ptr": "*fp32", "out_ptr": "*fp32", "m": "i32"}


class Curve(NamedTuple):
    """A kernel with `n` equal parts: what they are, the text of the body, and how many are measured."""

    part: str
    body: Callable[[int], str]
    sizes: tuple[int, ...] = (300, 1000, 3000)
    before: str = ""  # functions that the kernel calls
    parameters: Callable[[int], dict[str, str]] = lambda _: {}


def lines(n: int, text: str, indent: int = 4) -> str:
    """`n` lines; ``{k}`` is the number of each."""
    return "".join(" " * indent + text.replace("{k}", str(k)) + "\n" for k in range(n))


def unrolled(step: str) -> Callable[[int], str]:
    return lambda n: f"    for k in tl.static_range({n}):\n        {step}\n"


def nested(opening: str, deepest: int = 8) -> Callable[[int], str]:
    """Statements nested `deepest` levels deep, as often as it takes to have `n` of them."""
    tower = "".join(f"{'    ' * (level + 1)}{opening}\n".replace("{k}", str(level)) for level in range(deepest))
    return lambda n: (tower + "    " * (deepest + 1) + "x += 1.0\n") * (n // deepest)


CURVES: dict[str, Curve] = {
    "static_range": Curve("a step", unrolled("x = x * 0.5 + k"), (1000, 3000, 10000)),
    "static_range, loads": Curve("a load", unrolled("x += tl.load(x_ptr + k * BLOCK + i)"), (1000, 3000, 10000)),
    "static_range, stores": Curve("a store", unrolled("tl.store(out_ptr + k * BLOCK + i, x)")),
    "static_range, masks": Curve("a masked load", unrolled("x += tl.load(x_ptr + k * BLOCK + i, mask=i < m - k)")),
    "static_range, sums": Curve("a reduction", unrolled("x += tl.sum(x * k)"), (100, 300, 1000)),
    "static_range, scalars": Curve(
        "a scalar step", lambda n: f"    for k in tl.static_range({n}):\n        m = (m ^ k) * 3\n    x += m\n"
    ),
    "loops": Curve("a loop", lambda n: ("    for _ in range(m):\n        x = x * 0.5 + 1.0\n") * n, (30, 100, 300)),
    "ifs": Curve("an if", lambda n: "".join(f"    if m > {k}:\n        x = x * 0.5 + {k}\n" for k in range(n))),
    "nested ifs": Curve("an if", nested("if m > {k}:")),
    "nested loops": Curve("a loop", nested("for _ in range(m):", 4), (40, 120, 400)),
    "lines": Curve("a line", lambda n: lines(n, "x = x * 0.5 + {k}")),
    "names": Curve("a name", lambda n: lines(n, "x{k} = x * {k}") + "    x = x0\n" + lines(n, "x += x{k}")),
    "one expression": Curve("an operator", lambda n: f"    x = {' + '.join(['x'] * (n + 1))}\n", (200, 600, 2000)),
    "calls": Curve("a call", lambda n: lines(n, "x = step(x, {k})"), before=CALLED),
    "arguments": Curve(
        "an argument",
        lambda n: lines(n, "x += a{k}"),
        (30, 100, 300),
        parameters=lambda n: {f"a{k}": "fp32" for k in range(n)},
    ),
}


def source_of(curve: Curve, n: int, folder: Path) -> Any:
    """The kernel with `n` parts, and its signature."""
    from tilework.compiler import ASTSource

    parameters = {**PARAMETERS, **curve.parameters(n)}
    text = HEAD.format(before=curve.before, parameters="".join(f"{name}, " for name in parameters), body=curve.body(n))
    path = folder / f"kernel_{n}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(f"kernel_{n}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    divisible: Mapping[Any, Any] = {(k,): [["tt.divisibility", 16]] for k in range(2)}
    return ASTSource(module.kernel, {**parameters, "BLOCK": "constexpr"}, {"BLOCK": 1024}, divisible)
