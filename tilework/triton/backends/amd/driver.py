"""The driver for AMD GPUs under Triton's names.

>>> ty_to_cpp("*fp32"), ty_to_cpp("i1"), ty_to_cpp("u64")
('hipDeviceptr_t', 'int8_t', 'uint64_t')
"""

# pyright: reportUnusedImport=false

import os
from typing import Any

from tilework import knobs
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.hip.hip_driver import HipDriver as HIPDriver
from tilework.runtime.devices.hip.hip_driver import HipUtils as HIPUtils
from tilework.targets.base import GPUTarget
from tilework.triton.backends.driver import GPUDriver
from tilework.triton.runtime.build import compile_module_from_src

ROCM = "/opt/rocm"
include_dirs = [
    folder
    for folder in (os.path.join(knobs.getenv("ROCM_PATH") or ROCM, "include"),)
    if os.path.isdir(os.path.join(folder, "hip"))
]


def HIPLauncher(src: Any, metadata: Any) -> Any:
    """What launches a compiled kernel on the active device."""
    return driver.active.launcher_cls(src, metadata)


def ty_to_cpp(ty: str) -> str:
    """The C type of an argument with this signature code."""
    return HIPDriver.map_python_to_cpp_type(HIPDriver(), ty)
