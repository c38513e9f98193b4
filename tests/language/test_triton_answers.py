"""Compare statements of a kernel with answers of Triton 3.7.1 in `triton_answers.json`, recorded for sm_90.

Each row has a statement, and the functions that its TTIR calls or the words of its error, and its warnings. Names of
the library have no module. tilework may say more behind Triton's words, and shows some types and shapes in its own way:
such words end there.
"""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.frontend.rows import arguments, kernel
from tests.frontend.run import text
from tilework.errors import CompilationError

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "triton_answers.json").read_text())
HEADER = """
class NT(NamedTuple):
    foo: tl.tensor

@tilework.constexpr_function
def ident(x): return x

@tilework.jit
def f(x: tl.constexpr): return x + 1

@tilework.jit
def g(x): return x, 3, None

@tilework.jit
def two(x, y): return x

@tilework.jit
def either(x, a: tl.constexpr, b: tl.constexpr):
    if x > 0:
        return a
    return b

@tilework.jit
def nothing(x): return None

@tilework.jit
def falls(x): x + 1

@tilework.jit
def some(x):
    if x > 2:
        return 3

@tilework.jit
def callee(x, n, t, u, f): return x

@tilework.jit
def default(x, y=4, z: tl.constexpr = "q"): return x + y
"""
FUNCTION = re.compile(r'tt\.func private @("(?:[^"\\]|\\.)*"|[\w.<>$-]+)')
LIBRARY = re.compile(r"^(?:triton|tilework)\.language\.\w+\.")


def answer(folder: Path, body: str) -> dict[str, Any]:
    """Return our answer in the form of a row."""
    found: dict[str, Any] = {"body": body}
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            module = text(kernel(folder, body, HEADER), np.zeros(8, np.int32), *arguments(), C=4)
        except CompilationError as error:
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            found["error"] = type(cause).__name__
            found["words"] = str(cause).splitlines()[-1] if isinstance(cause, CompilationError) else str(cause)
        else:
            names = {name.strip('"').replace("\\22", '"') for name in FUNCTION.findall(module)}
            found["functions"] = sorted(LIBRARY.sub("L.", name) for name in names)
    found["warnings"] = [f"{one.category.__name__}: {one.message}" for one in seen]
    return found


@pytest.mark.parametrize("row", ROWS, ids=[row["body"].replace("\n", "; ") for row in ROWS])
def test_answer(tmp_path: Path, row: dict[str, Any]) -> None:
    found = answer(tmp_path, row["body"])
    assert (found.get("error"), found.get("functions")) == (row.get("error"), row.get("functions")), found
    assert found.get("words", "").startswith(row.get("words", "").rstrip("')\"")), found
    expected = row.get("warnings", [])
    assert len(found["warnings"]) == len(expected), found
    assert all(ours.startswith(theirs) for ours, theirs in zip(found["warnings"], expected, strict=True)), found
