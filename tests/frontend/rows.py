"""One rule of the language as one kernel body: what it stores, a part of its TTIR, or the error it must give.

    ROWS = {
        "len of a tuple": ("tl.store(out, len((1, 2)))", [2]),
        "one op": ("tl.store(out, n + 1)", "arith.addi %n"),
        "no axis 3": ("tl.program_id(3)", Refused(ValueError, "program_id axis must be 0, 1, or 2 but got 3")),
    }

The kernel is ``k(out, p, x, n, C)``: `out` points to eight int32 of -1, `p` to 64 fp32 (0, 1, 2 ...), `x` is the fp32
1.5, `n` the int32 3 and `C` the constexpr 4. A list is compared with the first elements of `out`, executed before and
after the TTIR passes. `header` is module text: functions and classes that the bodies use.
"""

import importlib.util
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.frontend.run import error, innermost, result, text
from tilework.errors import CompilationError
from tilework.language.function import JITFunction

HEAD = "import math\nfrom typing import NamedTuple\n\nimport tilework\nimport tilework.language as tl\n"


@dataclass(frozen=True)
class Refused:
    """The class of the innermost error, and words it must have; `whole` if there may be no others.

    The error of an operator has no cause (5.9): the message of its CompilationError begins with the class.
    """

    kind: type[BaseException]
    words: str
    whole: bool = False


def kernel(folder: Path, body: str, header: str = "", parameters: str = "out, p, x, n, C: tl.constexpr") -> JITFunction:
    """The jit function `k` with this body, in a file of its own."""
    path = folder / f"row{len(list(folder.glob('row*.py')))}.py"
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    path.write_text(
        f"{HEAD}\n{textwrap.dedent(header)}\n\n@tilework.jit\ndef k({parameters}):\n{lines}\n", encoding="utf-8"
    )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.k


def arguments() -> tuple[Any, ...]:
    """`p`, `x` and `n`."""
    return np.arange(64, dtype=np.float32), 1.5, 3


def check(folder: Path, body: str, expected: Sequence[int] | str | Refused, header: str = "") -> None:
    """Compile (and execute) one row."""
    fn = kernel(folder, body, header)
    if isinstance(expected, Refused):
        problem = innermost(error(fn, np.zeros(8, np.int32), *arguments(), C=4))
        found = getattr(problem, "error_message", None) or str(problem)
        in_words = type(problem) is CompilationError and found.startswith(f"{expected.kind.__name__}(")
        assert type(problem) is expected.kind or in_words, repr(problem)
        assert (found == expected.words) if expected.whole else (expected.words in found), found
    elif isinstance(expected, str):
        found = text(fn, np.zeros(8, np.int32), *arguments(), C=4)
        assert expected in found, found
    else:
        assert result(fn, *arguments(), size=8, C=4)[: len(expected)] == list(expected)
