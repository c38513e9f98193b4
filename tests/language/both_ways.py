"""Kernels of tests in both ways: compiled and interpreted."""

from pathlib import Path
from typing import Any

import numpy as np

import tilework
import tilework.compiler
from tests.frontend.rows import Refused, arguments, check, kernel
from tilework import knobs
from tilework.language.function import JITFunction
from tilework.testing import call


def interpreted(fn: JITFunction) -> list[int]:
    """Return what the interpreted kernel of a row writes."""
    out = np.full(8, -1, np.int32)
    tilework.jit(fn.fn, interpret=True)[(1,)](out, *arguments(), C=4)
    return out.tolist()


def check_both(folder: Path, body: str, expected: list[int] | str | Refused, header: str = "") -> None:
    """Check one row; where it has values, in the interpreter too."""
    check(folder, body, expected, header)
    if isinstance(expected, list):
        assert interpreted(kernel(folder, body, header))[: len(expected)] == expected


def call_both(function: Any, interpret: bool, *args: Any, **kwargs: Any) -> Any:
    """Call one function of the language on arrays, compiled or interpreted."""
    with knobs.runtime.scope() as runtime:
        runtime.interpret = interpret
        return call(function, *args, **kwargs)
