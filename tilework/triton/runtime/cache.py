"""Triton's names for how its cache is keyed."""

import hashlib
from typing import Any

from tilework.runtime.kernel_cache.key import folder_of as _base32

__all__ = ["_base32", "make_so_cache_key"]


def make_so_cache_key(version_hash: str, signature: Any, constants: Any, ids: Any, **kwargs: Any) -> str:
    """The folder of a compiled launcher: a hash of all that it depends on."""
    types = {name: "ptr" if str(type).startswith("*") else type for name, type in dict(signature).items()}
    text = f"{version_hash}-{types}-{constants}-{ids}" + "".join(f"-{kwargs[name]}" for name in sorted(kwargs))
    return _base32(hashlib.sha256(text.encode()).hexdigest())
