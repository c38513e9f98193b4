"""How Triton's cache names folders."""

from tilework.runtime.cache_key import folder_of as _base32

__all__ = ["_base32"]
