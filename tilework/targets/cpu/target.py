"""The machine that code is made for, as far as code generation must know it.

    >>> host = HostTarget.detect()
    >>> host.cpu, host.vector_bytes, host.vector_registers
    ('neoverse-n1', 16, 32)

A target is a plain value: a test makes one of another machine with `HostTarget.of("x86_64", "skylake", {"avx2"})`.
"""

import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

from tilework import knobs
from tilework.light_dataclass import light_dataclass
from tilework.target import Target

# ---- Facts from the system about the processors of this machine.
#
# Every first launch reads them, so nothing else is here.


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


# ---- The machine that code is made for, as far as code generation must know it.


ARM = ("aarch64", "arm64")
# Linux names features differently from LLVM, which reports only a part of them on ARM
LINUX_NAMES = {
    "asimddp": "dotprod",
    "asimdhp": "fullfp16",
    "asimdfhm": "fp16fml",
    "atomics": "lse",
    "bf16": "bf16",
    "i8mm": "i8mm",
    "sve": "sve",
}

CACHE_LINE = 64
STREAM_AHEAD = 1024
# processors that were measured (benchmarks.cpu_streams) and found faster with stores past the caches; Cascade Lake's
# and Neoverse N1 were not
STREAMING = frozenset({"emeraldrapids"})

# Instructions that only dots may use: LLVM would round floats to bf16 with them too, and they read subnormals as
# zero
DOT_ONLY = frozenset({"avx512bf16"})
FOR_DOTS = DOT_ONLY | {"amx-bf16", "amx-fp16", "amx-int8", "avx512vnni", "avxvnni", "bf16", "i8mm"}


def describe(arch: str) -> Target:
    """The host as everything but code generation knows it: one thread, and dots of any size."""
    return Target("cpu", arch or "host")


@light_dataclass
class HostTarget:
    """Facts about a CPU; `features` holds LLVM's names of those that are present."""

    arch: str  # "x86_64" or "aarch64"
    cpu: str
    features: frozenset[str]
    vector_bytes: int
    vector_registers: int
    has_fma: bool
    cores: int = 1
    dot_features: frozenset[str] = frozenset()  # those of DOT_ONLY
    cache_bytes: int = 0  # of its last caches; 0: not known

    @classmethod
    def detect(cls) -> "HostTarget":
        """The machine of this process."""
        return detect()

    @classmethod
    def of(cls, arch: str, cpu: str, features: Iterable[str], cores: int = 1) -> "HostTarget":
        """A machine by its features; the vector unit follows from them."""
        present, for_dots = frozenset(features) - DOT_ONLY, DOT_ONLY.intersection(features)
        if arch in ARM:
            return cls("aarch64", cpu, present, 16, 32, True, cores)
        if "avx512f" in present:
            return cls(arch, cpu, present, 64, 32, True, cores, for_dots)
        wide = "avx2" in present
        return cls(arch, cpu, present, 32 if wide else 16, 16, "fma" in present, cores, for_dots)

    @property
    def stream_ahead(self) -> int:
        """The prefetch distance in bytes of a loop along memory; 0: the hardware prefetcher suffices.

        With vectors of a cache line a loop waits for memory after few rounds, before the processor has seen a stream.
        """
        return STREAM_AHEAD if self.vector_bytes == CACHE_LINE else 0

    @property
    def streams_from(self) -> int:
        """The bytes that a launch must store for its stores to bypass the caches; 0: only stores that request it do. A
        smaller amount is still in the cache for the next launch.
        """
        return self.cache_bytes if self.cpu in STREAMING else 0

    def masks_lanes(self, size: int) -> bool:
        """Return True if there are loads and stores of some lanes of a vector, whose elements have `size` bytes."""
        if size in (4, 8):
            return bool({"avx512f", "avx2"} & self.features)
        return size in (1, 2) and "avx512bw" in self.features

    def lanes(self, bits: int) -> int:
        """Elements of `bits` bits in one vector register."""
        return max(1, self.vector_bytes * 8 // bits)


@cache
def detect() -> HostTarget:
    # lazily: loads LLVM, which a kernel from the cache does not need
    from tilework.targets.llvm.compile import flushing_features, host_features

    cpu, text = host_features()
    features = {name[1:] for name in text.split(",") if name.startswith("+")} | (flushing_features() & DOT_ONLY)
    if "amx-tile" in features and not may_use_tiles():
        features = {name for name in features if not name.startswith("amx-")}
    arch = platform.machine().lower()
    if arch in ARM:
        features |= linux_arm_features()
    if not knobs.runtime.cpu_dots:
        features -= FOR_DOTS
    made = HostTarget.of({"amd64": "x86_64"}.get(arch, arch), cpu, features, available_cores())
    return replace(made, cache_bytes=last_cache_bytes(made.cores))


def linux_arm_features() -> set[str]:
    """Features that the kernel reports, by LLVM's names; none elsewhere than on Linux."""
    names = processor_facts().get("Features", "").split()
    return {LINUX_NAMES[name] for name in names if name in LINUX_NAMES}
