"""Kernels given as text: imported from a file, as `@jit` needs it."""

import linecache
from pathlib import Path
from types import ModuleType
from typing import Any

HEADER = "import tilework\nimport tilework.language as tl\n"


def load_module(folder: Path, text: str, name: str = "generated") -> Any:
    """Write a module of this name and import it, whatever a file of that name held before."""
    path = folder / f"{name}.py"
    path.write_text(HEADER + text)
    linecache.cache.pop(str(path), None)
    module = ModuleType(name)
    module.__file__ = str(path)
    exec(compile(HEADER + text, str(path), "exec"), module.__dict__)
    return module
