"""The HIP runtime library: how to find it, its names for the functions of `targets/driver_library.py`, and device
properties.

    >>> libhip.library().properties(0)["arch"]
    'gfx942:sramecc+:xnack-'

The knob `amd.libhip_path` (TRITON_LIBHIP_PATH) names it; else it is the copy that the process has loaded already,
torch's, or one of ROCm. HIP has no contexts: the device index replaces it, and a thread starts with device 0.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from ctypes import c_int, c_uint, c_void_p
from typing import Any

from tilework import knobs
from tilework.targets.driver_library import OUT, DriverError, DriverLibrary, FoundLibrary, arguments_of, names_of

FILE = "libamdhip64.so"
SONAMES = (FILE, f"{FILE}.7", f"{FILE}.6")
OLDEST = 6
RELEASE, STEP = 10_000_000, 100_000  # the weights of major and minor versions
NO_BINARY = 209

# fields of hipDeviceProp_tR0600: the byte offset, and the `struct` format
PROPERTY_BYTES, TEXT_BYTES = 1472, 256
PROPERTIES = {
    "max_shared_mem": (296, "Q"),
    "max_num_regs": (304, "i"),
    "multiprocessor_count": (388, "i"),
    "sm_clock_rate": (348, "i"),
    "mem_clock_rate": (608, "i"),
    "mem_bus_width": (612, "i"),
    "arch": (1160, f"{TEXT_BYTES}s"),
    "warpSize": (308, "i"),
    "max_threads_per_sm": (624, "i"),
    "cooperativeLaunch": (688, "i"),
}

OWN_NAMES = {
    "count_devices": "hipGetDeviceCount",
    "get_context": "hipGetDevice",
    "set_context": "hipSetDevice",
    "synchronize": "hipDeviceSynchronize",
    "launch": "hipModuleLaunchKernel",
    "launch_cooperative": "hipModuleLaunchCooperativeKernel",
    "allocate": "hipMalloc",
    "free": "hipFree",
    "pin": "hipHostMalloc",
    "unpin": "hipHostFree",
    "create_stream": "hipStreamCreateWithFlags",
    "create_event": "hipEventCreateWithFlags",
}
NAMES = names_of("hip", (), OWN_NAMES)
LAUNCH = (c_void_p, *[c_uint] * 7, c_void_p, c_void_p)
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    **arguments_of(NAMES),
    "hipGetDevice": (OUT,),
    "hipSetDevice": (c_int,),
    "hipGetDevicePropertiesR0600": (OUT, c_int),  # without R0600 it fills the structure of ROCm 5
    "hipModuleLaunchKernel": (*LAUNCH, c_void_p),
    "hipModuleLaunchCooperativeKernel": LAUNCH,
    "hipGetErrorString": (c_int,),
    "hipGetLastError": (),
}


class HipError(DriverError):
    """A function of the runtime failed; `code` is its hipError_t."""

    form = "Triton Error [HIP]:  Code: {code}, Messsage: {text}"  # as Triton spells it


class Hip(DriverLibrary):
    """The functions of a loaded library."""

    vendor, names, functions, error = "HIP", NAMES, FUNCTIONS, HipError
    results = {"hipGetErrorString": ctypes.c_char_p}

    def start(self) -> None:
        version = c_int()
        self.driver_version(ctypes.byref(version))
        release, rest = divmod(version.value, RELEASE)
        if release < OLDEST:
            found_version = f"{release}.{rest // STEP}.{rest % STEP}"
            raise RuntimeError(
                f"libamdhip64 version {found_version} is not supported! Required major version is >={OLDEST}."
            )

    def error_text(self, code: int) -> str:
        text: Any = self.code("hipGetErrorString", code)
        return text.decode() if text else f"error {code}"

    def forget_error(self) -> None:
        self.code("hipGetLastError")

    def properties(self, device: int) -> dict[str, Any]:
        """Return limits, clocks (kHz) and the name of the architecture, with its features."""
        buffer = ctypes.create_string_buffer(PROPERTY_BYTES)
        self.hipGetDevicePropertiesR0600(ctypes.byref(buffer), device)
        found = {name: struct.unpack_from(f"<{form}", buffer, offset)[0] for name, (offset, form) in PROPERTIES.items()}
        return found | {"arch": found["arch"].partition(b"\0")[0].decode()}

    def context(self) -> int:
        return self.current_device()

    def has_context(self) -> bool:
        return True

    def use_device(self, device: int) -> None:
        self.hipSetDevice(device)

    def current_device(self) -> int:
        device = c_int()
        self.hipGetDevice(ctypes.byref(device))
        return device.value


def load() -> ctypes.CDLL:
    """Load the library that the knob names, else the first that is found; a RuntimeError lists the paths tried."""
    if named := knobs.amd.libhip_path:
        if not os.path.basename(named).startswith(FILE) or not os.path.isfile(named):
            raise RuntimeError(f"TRITON_LIBHIP_PATH {named!r} does not point to a valid {FILE}")
        return opened(named)
    if (loaded := first_of(SONAMES, os.RTLD_NOLOAD)) is not None:
        return loaded
    tried = [os.path.join(folder, FILE) for folder in folders()]
    for path in tried:
        if os.path.isfile(path):
            return opened(path)
    if (known := first_of(SONAMES)) is not None:
        return known
    raise RuntimeError(
        f"cannot locate {FILE} after attempted paths {[*tried, *SONAMES]}; install ROCm or set TRITON_LIBHIP_PATH"
    )


def first_of(names: Iterable[str], mode: int = 0) -> ctypes.CDLL | None:
    """Load the first library that the system finds by its name, if any."""
    for name in names:
        with suppress(OSError):
            return ctypes.CDLL(name, mode=mode | os.RTLD_LAZY)
    return None


def opened(path: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(path, mode=os.RTLD_LAZY)
    except OSError as error:
        raise RuntimeError(f"{path} cannot be loaded: {error}") from None


def folders() -> Iterator[str]:
    """Yield the folders to search for the library, the preferred one first."""
    yield from (os.path.join(path, "torch", "lib") for path in sys.path if path.endswith("site-packages"))
    yield from (folder for folder in (knobs.getenv("LD_LIBRARY_PATH") or "").split(":") if folder)
    programs = (os.path.join(folder, "hipconfig") for folder in (knobs.getenv("PATH") or "").split(":"))
    named = [os.path.dirname(os.path.dirname(os.path.realpath(path))) for path in programs if os.path.isfile(path)]
    for root in (knobs.getenv("HIP_PATH"), *named, knobs.getenv("ROCM_PATH"), "/opt/rocm"):
        if root:
            yield os.path.join(root, "lib")


FOUND = FoundLibrary(Hip, load)
library = FOUND.library
