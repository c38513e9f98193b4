"""Machine code of the runtime itself, for a bundle: who serves from it has nothing that could compile it.

    blobs = own_objects()       {"linux-x86_64/tilework_pool": ..., "linux-x86_64/tilework_launcher-1-24": ..., ...}

The thread pool, and the native launcher for every layout of tuples that CPython has (`launch/native/machine.py` looks at the
Python that runs, and asks for the one that fits), for any processor of each kind. 120 KB in all. They are written for Linux, on
Linux; a bundle that was made elsewhere has none, and its kernels for GPUs are launched by Python.
"""

import hashlib
import sys

from tilework.runtime.devices.host.own_code import own_name
from tilework.runtime.kernel_cache.managers import load_entry, store_entry, triton_key
from tilework.runtime.launch.native.machine import NAME

MONOTONIC = 1  # the clock of Linux
TUPLE_ITEMS = (24, 32)  # up to Python 3.13, and since: a tuple keeps its hash
PROCESSORS = {"x86_64": ("x86-64", ""), "aarch64": ("generic", "+neon")}  # what all of them have, as LLVM calls it
CACHED_AS = "tilework_own_objects"


def own_objects() -> dict[str, bytes]:
    """The objects by what `OwnObject` looks for; from the cache where it has them."""
    if sys.platform != "linux":
        return {}
    import llvmlite  # lazily: who reads a bundle need not have it

    key = hashlib.sha256(f"{CACHED_AS}-{triton_key()}-{llvmlite.__version__}".encode()).hexdigest()
    if (found := load_entry(key, CACHED_AS)) is None:
        made = {name.replace("/", "@"): data for name, data in compiled_objects().items()}
        store_entry(key, CACHED_AS, found := {**made, f"{CACHED_AS}.json": b"{}"})
    return {name.replace("@", "/"): data for name, data in found.items() if "@" in name}


def compiled_objects() -> dict[str, bytes]:
    # lazily: the compiler, which who reads a bundle need not have
    from tilework.runtime.launch.native.code.launcher import launcher_text
    from tilework.targets.cpu.run.pool import POOL_LEVEL
    from tilework.targets.cpu.run.pool_code import pool_text
    from tilework.targets.llvm.compile import LINUX, target_machine, to_object

    made: dict[str, bytes] = {}
    for processor, features in PROCESSORS.items():
        machine = target_machine(LINUX.format(processor), *features)
        texts = {"tilework_pool": (pool_text(processor), POOL_LEVEL)}
        texts |= {f"{NAME}-{MONOTONIC}-{items}": (launcher_text(MONOTONIC, items), 0) for items in TUPLE_ITEMS}
        for name, (text, level) in texts.items():
            made[own_name(name, "linux", processor)] = to_object(text, level, machine)
    return made
