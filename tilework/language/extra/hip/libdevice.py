"""The device library of AMD GPUs by the names that kernels use: ``libdevice.sin`` is ``__ocml_sin_f32``, which is our own code.

There is no conversion between argument types, as in `tl.extra.cuda.libdevice`.
"""

from typing import Any

from tilework.language.extra.cuda.libdevice import Symbols, library_function, row
from tilework.numerics.libdevice_table import HIP_NAMES, hip_symbol

TABLE: dict[str, Symbols] = {
    name: dict(row(hip_symbol(name, known), known) for known in rows.values()) for name, rows in HIP_NAMES.items()
}


def __getattr__(name: str) -> Any:
    """Make a function when it is first asked for."""
    if name not in TABLE:
        raise AttributeError(f"libdevice of AMD GPUs has no function {name!r}")
    made = globals()[name] = library_function(__name__, name, TABLE[name])
    return made


def __dir__() -> list[str]:
    return sorted(TABLE)
