"""A kernel that has a bit of everything, compiled before others so that their times are not those of imports."""

from typing import Any

from tilework.language import core as tl
from tilework.language.standard import sum as reduced
from tilework.runtime.compile.sources import ASTSource
from tilework.runtime.launch.python.jit import jit


@jit
def small(x_ptr: Any, out_ptr: Any, n: Any, BLOCK: tl.constexpr) -> None:
    rows, columns = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    total = tl.full((BLOCK, BLOCK), 0, tl.float32)
    for step in range(0, n, BLOCK):
        x = tl.load(x_ptr + rows[:, None] * n + columns[None, :] + step, mask=columns[None, :] + step < n, other=0.0)
        total = tl.dot(x, x, total)
    tl.store(out_ptr + rows, reduced(total, axis=1))


def small_source() -> ASTSource:
    types = {"x_ptr": "*fp16", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    return ASTSource(small, types, {"BLOCK": 32})
