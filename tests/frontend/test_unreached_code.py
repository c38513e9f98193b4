"""Statements that no path reaches are not compiled, so they may hold anything. Triton 3.7.1 agrees but for `ONLY_HERE`:
it compiles what follows an `if` that has returned, and the body of `while False`."""

from pathlib import Path

import numpy as np
import pytest

from tests.frontend.rows import arguments, kernel
from tests.frontend.run import error, ttir

IN_TRITON_TOO = [
    "tl.store(out, 1)\nreturn\nundefined(out)",
    "return\ntl.load(out, 3, 4, 5, 6, 7, 8, 9, 10)",
    "return\na = out + 'a'",
    "return\ntl.static_assert(C == 5)",
    "return\nyield out",
    "return\nimport os",
    "return\ntry:\n    pass\nexcept: pass",
    "return\na: tl.constexpr = n",
    "return\na, b = 1",
    "return\nreturn 3",
    "if C == 5:\n    undefined(out)",
    "if C == 5:\n    a = out + 'a'",
    "if False:\n    undefined(out)",
    "if C == 5:\n    return 3",
    "if C == 5:\n    raise ValueError('a')",
    "if n > 3:\n    return\n    undefined(out)",
    "for i in tl.static_range(0):\n    undefined(out)",
    "a = 1 if C == 4 else undefined",
    "a = C == 4 or undefined",
    "a = C == 5 and undefined",
    "assert C == 5",
    "tl.static_assert(C == 4, undefined)",
    "tl.static_assert(C == 4, f'n is {n}')",
]
ONLY_HERE = [
    "if C == 4:\n    return\nundefined(out)",
    "if n > 3:\n    return\nelse:\n    return\nundefined(out)",
    "if C == 4:\n    return\nreturn n",
    "while False:\n    undefined(out)",
]
REACHED = [  # as far as is known at compile time
    "for i in range(0):\n    undefined(out)",
    "for i in range(0, 0):\n    a = out + 'a'",
    "if n > 3:\n    undefined(out)",
    "tl.static_assert(C == 5)",
    "tl.static_assert(C == 5, n)",
]


@pytest.mark.parametrize("body", [*IN_TRITON_TOO, *ONLY_HERE])
def test_not_compiled(tmp_path: Path, body: str) -> None:
    ttir(kernel(tmp_path, body), np.zeros(8, np.int32), *arguments(), C=4)


@pytest.mark.parametrize("body", REACHED)
def test_compiled(tmp_path: Path, body: str) -> None:
    assert error(kernel(tmp_path, body), np.zeros(8, np.int32), *arguments(), C=4)
