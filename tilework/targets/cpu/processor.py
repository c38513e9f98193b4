"""Facts from the system about the processors of this machine.

Every first launch reads them, so nothing else is here.
"""

import os
import sys
from functools import cache

from tilework import knobs

# Linux on x86: a component of a thread's state, and its request code
TILE_DATA, REQUEST_PERMISSION, ARCH_PRCTL = 18, 0x1023, 158

CACHES = "/sys/devices/system/cpu/cpu0/cache"
IDENTIFYING = (
    *("vendor_id", "cpu family", "model", "stepping", "flags", "cache size"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features"),
)


def processor_facts() -> dict[str, str]:
    """The lines of Linux about the first processor; nothing on other systems."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            text = file.read(1 << 13)  # asking for all of them takes long where there are hundreds
    except OSError:
        return {}
    lines = (line.partition(":") for line in text.partition("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def available_cores() -> int:
    """Cores this process may use, which containers restrict."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def last_cache_bytes(cores: int) -> int:
    """The bytes in the last-level caches of so many cores together, where Linux reports them; otherwise 0."""
    found = 0
    for index in range(8):
        try:
            size, shared = (read(f"{CACHES}/index{index}/{name}") for name in ("size", "shared_cpu_list"))
        except OSError:
            break
        ends = [part.split("-") for part in shared.split(",")]
        sharers = sum(int(part[-1]) - int(part[0]) + 1 for part in ends)
        found = max(found, int(size.rstrip("K")) * 1024 * -(-cores // sharers))
    return found


def read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def machine_identity() -> str:
    """The facts that object code depends on, for cache keys, where Linux reports them; otherwise nothing."""
    facts = processor_facts()
    known = ";".join(f"{name}={facts[name]}" for name in IDENTIFYING if name in facts)
    if not known:
        return ""
    return known + f";dots={knobs.runtime.cpu_dots};tiles={' amx_tile' in known and may_use_tiles()}"


@cache
def may_use_tiles() -> bool:
    """Request AMX's tiles: a process must be allowed to use them, all threads at once; stacks of signal handlers may be
    too small.
    """
    if sys.platform != "linux" or not knobs.runtime.cpu_dots:
        return False
    import ctypes  # lazily: most processors have none

    libc = ctypes.CDLL(None)
    libc.syscall.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_ulong]
    return libc.syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) == 0
