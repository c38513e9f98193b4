"""The kernel language: ``import tilework.language as tl``.

    @tilework.jit
    def add(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

In the order of dependence: `compile_time` (constants and tuples), `dtypes`, `values` (tensors, descriptors), the
builtins by family (`program_builtins`, `shapes`, `memory_builtins`, `elementwise_builtins`, `reductions`), `core` (all
of them, callable from kernels), and the library in the language itself (`standard`, `folds`, `sorting`, `random`).
Importing it loads no compiler.
"""

# ruff: noqa: F401, F403
# pyright: reportUnusedImport=false

from importlib import import_module
from types import ModuleType
from typing import Any

from tilework.language import core, math, random, standard, target_info
from tilework.language.core import *
from tilework.language.random import (
    pair_uniform_to_normal,
    philox,
    philox_impl,
    rand,
    rand4x,
    randint,
    randint4x,
    randn,
    randn4x,
    uint_to_uniform_float,
)
from tilework.language.standard import *

_LAZY = ("extra", "semantic")  # loaded by the first kernel that needs them, or on first use
# all public names, but for what this file itself imports, and modules, which may hide Python's (`random`, `typing`)
_HIDDEN = ("Any", "ModuleType", "import_module")
__all__ = sorted(
    {
        *(
            name
            for name, value in globals().items()
            if not (name.startswith("_") or name in _HIDDEN or isinstance(value, ModuleType))
        ),
        *("extra", "math", "target_info"),
    }
)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return all names, also those that are loaded when they are first used."""
    return sorted({*globals(), *_LAZY})
