"""Loads the compiler in the process from which torch forks Inductor's compile workers.

That process starts in the background when Inductor is imported, and imports `triton` before it forks. Loading the
compiler takes longer than compiling a small kernel: done there it is done once, while nothing is to be compiled, and
not by every worker when the first kernels arrive. Compiling a sample loads all of it, and leaves neither a thread nor a
connection to a GPU behind.
"""

import sys
from contextlib import suppress
from typing import Any

import tilework
import tilework.language as tl
from tilework.compiler import ASTSource, lower
from tilework.target import GPUTarget


@tilework.jit
def sample(a: Any, b: Any, out: Any, count: Any, N: tl.constexpr) -> None:
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    sums = tl.zeros((N, N), tl.float32)
    for start in range(0, count, N):
        mask = start + columns < count
        sums = tl.dot(tl.load(a + rows * count + start + columns, mask), tl.load(b + rows * count + columns), sums)
    scaled = tl.exp(sums - tl.max(sums, 1, keep_dims=True))
    tl.store(out + rows * N + columns, tl.where(rows < columns, scaled, scaled / tl.sum(scaled, 1, keep_dims=True)))


def load_compiler() -> None:
    """Load what compiles for the devices of this torch."""
    with suppress(Exception):  # each worker loads what it needs
        versions = sys.modules["torch"].version
        target, stage = ("cuda:90", "ptx") if versions.cuda else ("hip:gfx942" if versions.hip else "cpu", "llir")
        types = {"a": "*fp16", "b": "*fp16", "out": "*fp32", "count": "i32"}
        divisible = {(index,): [["tt.divisibility", 16]] for index in range(len(types))}
        lower(ASTSource(sample, types, {"N": 64}, divisible), GPUTarget.parse(target), ["ttir", stage])
