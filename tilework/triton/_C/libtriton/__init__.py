"""What programs ask of Triton's native module, as far as it means something here; each part is loaded when it is used."""

from tilework.knobs import TRUE, getenv
from tilework.runtime.kernel_cache.environment import cache_invalidating_env_vars as get_cache_invalidating_env_vars
from tilework.triton._C.libtriton.native_specialize import native_specialize_impl
from tilework.triton.serving.submodules import on_demand

PARTS = ("amd", "ir", "linear_layout", "llvm", "nvidia", "passes")
__all__ = ["get_cache_invalidating_env_vars", "getenv", "getenv_bool", "native_specialize_impl", *PARTS]


def getenv_bool(name: str, default: bool) -> bool:
    """Whether a variable says yes; `default` if it is not set."""
    text = getenv(name)
    return default if text is None else text.lower() in TRUE


__getattr__, __dir__ = on_demand(__name__, *PARTS)
