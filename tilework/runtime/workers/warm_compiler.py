"""Have the compiler ready for a target before somebody waits for it: small kernels are compiled, and the products thrown away.

The server does that to load what is needed. A worker does it once more after the fork, as for a client (`exercises`): what a compilation writes to
is copied then, page by page, which takes as long as compiling a simple kernel, and what comes as a message takes other ways than what is here.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import islice, product
from typing import Any

import tilework.language as tl
from tilework import knobs
from tilework.runtime.launch.python.jit import jit
from tilework.runtime.workers.line_channel import Message
from tilework.runtime.workers.process_context import Context, context_of_process
from tilework.runtime.workers.sent_kernel import described
from tilework.target import GPUTarget


@jit
def double(x: Any, n: Any, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@jit
def attend(x: Any, out: Any, n: Any, BLOCK: tl.constexpr):
    """A bit of everything: a loop, a dot, elementary functions, reductions, masks."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offsets = i[:, None] * n + i[None, :]
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, n, BLOCK):
        tile = tl.load(x + offsets + k, mask=i[None, :] + k < n, other=0.0)
        total = tl.dot(tile, tile, total)
    weights = tl.exp(total - tl.max(total, 1)[:, None])
    tl.store(out + offsets, weights / tl.sum(weights, 1)[:, None], mask=i[:, None] < n)


LIKELY = {"cuda": ["cuda", 90, 32], "hip": ["hip", "gfx942", 64], "cpu": ["cpu", "host", 1]}
KERNELS = {
    double: ({"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64}),
    attend: ({"x": "*fp16", "out": "*fp16", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 32}),
}


def likely_target() -> list[Any]:
    """What kernels will probably be compiled for on this machine; of which generation a GPU is makes little difference."""
    from tilework.targets.likely_drivers import is_likely  # lazily: only servers come here

    asked = (knobs.runtime.device or "auto").partition(":")[0]
    found = next((name for name in ("cuda", "hip") if asked == name or (asked == "auto" and is_likely(name))), "cpu")
    return LIKELY["cuda" if asked == "emulator" else found]


def load_frontend() -> None:
    """Load what every target needs."""
    import_module("tilework.frontend.generator")


def load_compiler(target: Sequence[Any], all_of_it: bool = False) -> None:
    """Load and try what compiles for ``(backend, architecture, warp size)``: for simple kernels, then for others. What does not work is for
    workers to tell."""
    # lazily: the compiler loads when something is compiled
    from tilework.runtime.compile.cached import compile
    from tilework.runtime.compile.stages import lower
    from tilework.targets.base import find_backend

    assert callable(compile)
    for source in islice(sources(), None if all_of_it else 1):
        with suppress(Exception):
            backend = find_backend(GPUTarget(*target))
            *stages, last = backend.stages(backend.parse_options({}))
            wanted = stages[-1] if last == "cubin" else last  # the assembler is a program of its own
            lower(source, GPUTarget(*target), [wanted])
    if all_of_it:
        load_rest()


def load_rest() -> None:
    """Load passes and rules that the kernels here had no ops for."""
    # lazily: the compiler loads when something is compiled
    from tilework.targets import base
    from tilework.targets.llvm import rules

    for name in sorted(base.LEFT_OUT):
        base.pass_of(name)
    for file in sorted(rules.LEFT_OUT):
        import_module(file)


def sources() -> Iterator[Any]:
    from tilework.runtime.compile.sources import ASTSource  # lazily: the compiler loads when something is compiled

    for kernel, (types, constants) in KERNELS.items():
        yield ASTSource(kernel, types, constants)


def exercises(targets: Sequence[Sequence[Any]], all_of_them: bool = True) -> Iterator[tuple[Message, Context]]:
    """Each kernel for each target, or the simple one, as a client would ask for it that has a cache of its own, which is thrown away."""
    from tempfile import TemporaryDirectory  # lazily, as what follows: only workers come here

    # lazily, too
    from tilework.runtime.kernel_cache.environment import cache_invalidating_env_vars
    from tilework.runtime.kernel_cache.key import get_cache_key
    from tilework.targets.base import find_backend

    kernels = islice(sources(), None if all_of_them else 1)
    for source, target in product(kernels, [GPUTarget(*target) for target in targets]):
        with suppress(Exception), TemporaryDirectory() as folder:  # as `load_compiler`: a request will show it
            backend, context = find_backend(target), context_of_process()
            key = get_cache_key(source, backend, backend.parse_options({}), cache_invalidating_env_vars())
            assert context is not None
            context.environment["TRITON_CACHE_DIR"] = folder
            yield json.loads(json.dumps(described(source, target, {}, key))), context
