"""Return True if a vendor's driver is worth loading: what can be known before any of its modules is.

>>> is_likely("cuda"), is_likely("hip"), is_likely("abacus")        # on a machine without a GPU
(False, False, True)

A process that finds no GPU has imported some twenty modules to find none; here it looks where they would. What is not
known here is likely, and so is all that is loaded already: it may have been given a library.
"""

import ctypes
import os
import sys
from collections.abc import Callable

from tilework import knobs

LIBCUDA = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
HIP_DEVICES = ("/dev/kfd", "/dev/dxg")  # of Linux's driver, and of WSL's


def is_likely(name: str) -> bool:
    """Return True if the driver of this name may find a device."""
    loaded, rule = RULES.get(name, ("", None))
    return rule is None or loaded in sys.modules or rule()


def has_libcuda() -> bool:
    if knobs.nvidia.libcuda_path:
        return True
    try:
        ctypes.CDLL(LIBCUDA)
    except OSError:
        return False
    return True


def has_amd_device() -> bool:
    return knobs.amd.libhip_path is not None or any(map(os.path.exists, HIP_DEVICES))


RULES: dict[str, tuple[str, Callable[[], bool]]] = {
    "cuda": ("tilework.targets.nvidia.libcuda", has_libcuda),
    "hip": ("tilework.targets.amd.libhip", has_amd_device),
}
