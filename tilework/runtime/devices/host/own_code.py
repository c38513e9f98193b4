"""Machine code of the runtime itself, compiled once for a machine and kept in the cache like a kernel.

own_object("tilework_pool", compile_pool)
"""

import hashlib
from collections.abc import Callable
from functools import cache

from tilework import knobs
from tilework.runtime.kernel_cache.managers import load_entry, store_entry, triton_key


def own_object(name: str, make: Callable[[], bytes], variant: str = "") -> bytes:
    """The object file that `make` compiles, from the cache on disk unless that is the user's own."""
    from tilework.targets.cpu.pipeline import native_identity  # lazily: only launches on the host need it

    key = hashlib.sha256(f"{name}-{triton_key()}-{native_identity()}{variant}".encode()).hexdigest()
    plain = knobs.cache.manager_class is None
    if plain and (files := load_entry(key, name)) is not None and f"{name}.obj" in files:
        return files[f"{name}.obj"]
    data = make()
    if plain:
        store_entry(key, name, {f"{name}.obj": data, f"{name}.json": b"{}"})
    return data


@cache
def keep_pool() -> None:
    """Let the thread pool take its code from the cache."""
    from tilework.targets.cpu.run.pool import POOL, compile_pool  # lazily: only launches on the host need it

    POOL.source = lambda: own_object("tilework_pool", compile_pool)
