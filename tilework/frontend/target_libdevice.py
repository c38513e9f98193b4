"""`tl.extra.libdevice` is a neutral module of stubs; here they become the functions of the target.

Every target understands the symbols of NVIDIA's library (`__nv_tanhf` ...); AMD's have names of their own for some.
"""

from typing import Any

from tilework.frontend.options import FrontendOptions
from tilework.language.extra.libdevice import of_target


def resolve_stub(value: Any, options: FrontendOptions) -> Any:
    """The real function behind a stub; anything else unchanged."""
    name = getattr(value, "_libdevice_name", None) if callable(value) else None
    if name is None:
        return value
    function = of_target(name, options.backend_name)
    if function is None:
        raise AttributeError(
            f"libdevice function {name} is not available on target {options.backend_name}:{options.arch}"
        )
    return function
