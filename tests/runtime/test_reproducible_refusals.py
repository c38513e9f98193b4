"""Operations that a reproducible kernel cannot have are errors at their line, compiled and interpreted alike."""

from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.errors import CompilationError
from tilework.oracles.interpreter import InterpretedFunction


@tilework.jit
def assembly(x: Any) -> None:
    tl.store(x, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x)], tl.int32, is_pure=True, pack=1))


@tl.core.extern
def strange(x: Any, _semantic: Any = None) -> Any:
    names = {(tl.int32,): ("strange", tl.int32)}
    return tl.core.extern_elementwise("", "", [x], names, is_pure=True, _semantic=_semantic)


@tilework.jit
def library(x: Any) -> None:
    tl.store(x, strange(tl.load(x)))


@pytest.mark.parametrize(("kernel", "what"), [(assembly, "inline assembly"), (library, "the library function strange")])
def test_foreign_code_is_refused(kernel: Any, what: str) -> None:
    x = np.zeros(1, np.int32)
    for run in (kernel, InterpretedFunction(kernel.fn)):
        with pytest.raises(CompilationError, match=f"{what} cannot be in a reproducible kernel") as found:
            run[(1,)](x, reproducible=True)
        assert found.value.node.lineno == 2  # pyright: ignore[reportAttributeAccessIssue]
