"""Names that Triton's autotuner module imports."""

from tilework.runtime.kernel_cache.environment import cache_invalidating_env_vars as get_cache_invalidating_env_vars
from tilework.runtime.kernel_cache.managers import get_cache_manager, triton_key

__all__ = ["get_cache_invalidating_env_vars", "get_cache_manager", "triton_key"]
