"""Mathematical functions of the device library, whatever the device is.

    from tilework.language.extra import libdevice

    y = libdevice.asin(x)

The functions here are placeholders that carry a name. When a kernel is compiled, the function of that name in the
device's own module takes its place (`tl.extra.cuda.libdevice` for NVIDIA GPUs); the attribute `_libdevice_name` tells
the compiler which one, also if the kernel imported it under another name.
"""

from collections.abc import Callable
from typing import Any, NoReturn

from tilework.language.core import extern
from tilework.language.extra.cuda.libdevice import TABLE, documentation

ONLY_NEUTRAL = {"fast_tanhf": "libdevice fast_tanhf: the hyperbolic tangent of fp32 values, approximate."}


def _placeholder(name: str) -> Callable[..., Any]:
    def refuse() -> NoReturn:
        raise ValueError(f"libdevice.{name} does not exist on the device this kernel is compiled for")

    def unary(arg0: Any, _semantic: Any = None) -> Any:
        refuse()

    def binary(arg0: Any, arg1: Any, _semantic: Any = None) -> Any:
        refuse()

    def ternary(arg0: Any, arg1: Any, arg2: Any, _semantic: Any = None) -> Any:
        refuse()

    def quaternary(arg0: Any, arg1: Any, arg2: Any, arg3: Any, _semantic: Any = None) -> Any:
        refuse()

    arity = len(next(iter(TABLE[name]))) if name in TABLE else 1
    function: Any = (unary, binary, ternary, quaternary)[arity - 1]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = ONLY_NEUTRAL.get(name) or documentation(name)
    placeholder = extern(function)
    placeholder._libdevice_name = name
    return placeholder


def __getattr__(name: str) -> Any:
    """Make a function when it is first asked for; there are about two hundred."""
    if name not in TABLE and name not in ONLY_NEUTRAL:
        raise AttributeError(f"libdevice has no function {name!r}")
    function = globals()[name] = _placeholder(name)
    return function


def __dir__() -> list[str]:
    return sorted([*TABLE, *ONLY_NEUTRAL])
