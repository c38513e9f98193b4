"""Mathematical functions of the device library, whatever the device is.

    from tilework.language.extra import libdevice

    y = libdevice.asin(x)

The functions here are placeholders that carry a name. When a kernel is compiled, the function of that name in the
device's own module takes its place (`tl.extra.cuda.libdevice` for NVIDIA GPUs); the attribute `_libdevice_name` tells
the compiler which one, also if the kernel imported it under another name.
"""

from typing import Any

from tilework.language.extra.cuda.libdevice import TABLE, arity_of, documentation, function
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
        text, arity = documentation(name), arity_of(name)
    made = globals()[name] = function(name, text, arity, refuse)
    return made


def __dir__() -> list[str]:
    return sorted([*TABLE, ONLY_NEUTRAL])
