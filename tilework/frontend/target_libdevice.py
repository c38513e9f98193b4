"""`tl.extra.libdevice` is a neutral module of stubs; here they become the functions of the target.

Every target understands the symbols of NVIDIA's library (`__nv_tanhf` ...), so one real module serves all of them.
"""

from typing import Any

from tilework.frontend.options import FrontendOptions


def resolve_stub(value: Any, options: FrontendOptions) -> Any:
    """The real function behind a stub; anything else unchanged."""
    name = getattr(value, "_libdevice_name", None) if callable(value) else None
    if name is None:
        return value
    # lazily: most kernels call nothing of it
    from tilework.language.extra.cuda import libdevice

    function = getattr(libdevice, name, None)
    if function is None:
        raise AttributeError(
            f"libdevice function {name} is not available on target {options.backend_name}:{options.arch}"
        )
    return function
