"""Mathematical functions of the device library, whatever the device is.

    from tilework.language.extra import libdevice

    y = libdevice.asin(x)

The functions here are placeholders that carry a name. When a kernel is compiled, the function of that name in the
device's own module takes its place (`tl.extra.cuda.libdevice` for NVIDIA GPUs, `tl.extra.hip.libdevice` for AMD's); the attribute `_libdevice_name` tells
the compiler which one, also if the kernel imported it under another name.
"""

from typing import Any

from tilework.language.extra.cuda import libdevice as cuda
from tilework.language.extra.cuda.libdevice import TABLE, documentation, function
from tilework.numerics.libdevice_table import ONLY_NEUTRAL


def __getattr__(name: str) -> Any:
    """Make a function when it is first asked for; there are about two hundred."""
    if name not in TABLE and name != ONLY_NEUTRAL:
        raise AttributeError(f"libdevice has no function {name!r}")

    def refuse(args: list[Any], semantic: Any) -> Any:
        raise ValueError(f"libdevice.{name} does not exist on the device this kernel is compiled for")

    if name == ONLY_NEUTRAL:
        text, arity = f"libdevice {name}: the hyperbolic tangent of fp32 values, approximate.", 1
    else:
        text, arity = documentation(name, TABLE[name]), len(next(iter(TABLE[name])))
    made = globals()[name] = function(name, text, arity, refuse)
    return made


def __dir__() -> list[str]:
    return sorted([*TABLE, ONLY_NEUTRAL])


def of_target(name: str, backend: str | None = None) -> Any:
    """The function of the device's own library, or of NVIDIA's, whose symbols every target understands; None if neither has it."""
    from tilework.language.extra.hip import libdevice as hip  # lazily: most kernels call nothing of it

    order = (hip, cuda) if backend == "hip" else (cuda,) if backend else (cuda, hip)
    return next((found for library in order if (found := getattr(library, name, None)) is not None), None)
