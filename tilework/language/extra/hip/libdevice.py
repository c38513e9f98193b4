"""The device library of AMD GPUs by the names that kernels use: ``libdevice.sin`` is ``__ocml_sin_f32``, which is our
own code.

There is no conversion between argument types, as in `tl.extra.cuda.libdevice`.
"""

from tilework.language.extra.cuda.libdevice import Symbols, on_demand, row
from tilework.numerics.libdevice_table import HIP_NAMES, hip_symbol

TABLE: dict[str, Symbols] = {
    name: dict(row(hip_symbol(name, known), known) for known in rows.values()) for name, rows in HIP_NAMES.items()
}
__getattr__, __dir__ = on_demand(globals(), TABLE)
