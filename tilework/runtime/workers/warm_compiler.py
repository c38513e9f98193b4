"""Have the compiler ready for a target before somebody waits for it: a small kernel is compiled, and the product thrown away.

The server does that to load what is needed. A worker does it once more after the fork, and with the cache: what a compilation writes to is
copied then, page by page, which takes as long as the compilation.
"""

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import tilework.language as tl
from tilework import knobs
from tilework.runtime.launch.jit import jit
from tilework.target import GPUTarget

TYPES = {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}


@jit
def double(x: Any, n: Any, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


def load_compiler(target: Sequence[Any]) -> None:
    """Load and try what compiles for ``(backend, architecture, warp size)``; what does not work is for workers to tell."""
    load(GPUTarget(*target))


@cache
def load(target: GPUTarget) -> None:
    from tilework.runtime.compile.cached import compile  # lazily: the compiler loads when something is compiled
    from tilework.runtime.compile.sources import ASTSource
    from tilework.runtime.compile.stages import lower
    from tilework.targets.base import find_backend

    assert callable(compile)
    try:
        backend = find_backend(target)
        *stages, last = backend.stages(backend.parse_options({}))
        wanted = stages[-1] if last == "cubin" else last  # the assembler is a program of its own
        lower(ASTSource(double, TYPES, {"BLOCK": 64}), target, [wanted])
    except Exception:
        return


def compile_once(target: Sequence[Any]) -> None:
    """Compile for ``(backend, architecture, warp size)`` as for a client, into a cache that nobody has."""
    from tempfile import TemporaryDirectory  # lazily, as what follows: only workers come here

    from tilework.runtime.compile.cached import compile  # the compiler
    from tilework.runtime.compile.sources import ASTSource

    with suppress(Exception), knobs.cache.scope(), TemporaryDirectory() as folder:
        knobs.cache.dir = folder
        compile(ASTSource(double, TYPES, {"BLOCK": 64}), GPUTarget(*target))
