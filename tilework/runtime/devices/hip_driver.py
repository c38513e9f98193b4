"""AMD GPUs as devices: their limits, loading and launching code objects.

    >>> driver.active.get_current_target()
    GPUTarget(backend='hip', arch='gfx942', warp_size=64)

Torch for ROCm calls its devices cuda, and so do arguments of kernels; where it is loaded and can use a GPU it decides
about the current device and stream.
"""

import ctypes
from typing import Any

from tilework import knobs
from tilework.errors import StageError
from tilework.runtime.devices.gpu import own_interface
from tilework.runtime.devices.gpu.gpu_driver import GpuDriver, GpuUtils
from tilework.runtime.devices.gpu.gpu_launcher import Frame, Functions, GpuLauncher
from tilework.runtime.devices.gpu.parameters import Parameter
from tilework.runtime.devices.launcher import Extent
from tilework.targets.amd import libhip
from tilework.targets.amd.libhip import library
from tilework.targets.base import GPUTarget
from tilework.targets.likely_drivers import has_amd_device

GPUS = own_interface.Gpus(libhip.FOUND)
ELF = b"\x7fELF"


class DeviceArray(own_interface.DeviceArray):
    """Memory on an AMD GPU."""

    gpus = GPUS


class HipUtils(GpuUtils):
    """Queries of the runtime about AMD GPUs and their binaries."""

    def __init__(self) -> None:
        super().__init__(GPUS)

    def find_properties(self, device: int) -> dict[str, Any]:
        return library().properties(device)

    def check_format(self, name: str, data: bytes) -> None:
        if not data.startswith(ELF):
            raise RuntimeError(
                f"{name} cannot be loaded on a HIP device: its last stage is no code object. TILEWORK_DEVICE=native"
                " runs kernels on the CPU"
            )

    def load_module(self, name: str, data: bytes) -> int:
        """Load a code object; for which GPU it was made is part of the error."""
        module = ctypes.c_void_p()
        if code := library().code("load_module", ctypes.byref(module), data, 0, None, None):
            arch = self.get_device_properties(library().current_device())["arch"]
            why = f": it is for {target_of(data)}, the device is {arch}" if code == libhip.NO_BINARY else ""
            library().check(code, f" (loading {name}{why})")
        return module.value or 0

    def declared(self, function: int, name: str, data: bytes) -> tuple[Parameter, ...] | None:
        """From the notes, which know sizes, and which of them are addresses; the runtime fills in what is hidden."""
        from tilework.targets.amd.kernel_notes import read_notes  # lazily: launches on other devices do not need it

        try:
            found = read_notes(data, name).arguments
        except StageError:
            return None
        given = (one for one in found if not one.kind.startswith("hidden_"))
        return tuple(Parameter(one.size, "u64" if one.kind == "global_buffer" else "") for one in given)

    def launch(
        self, launch_cooperative_grid: bool, gridX: int, gridY: int, gridZ: int, stream: int, function: int,
        profile_scratch: object, kernel_metadata: tuple[int, ...], launch_metadata: object, enter_hook: Any,
        exit_hook: Any, warp_size: int, arg_annotations: Any, kernel_signature: bytes, args: Any,
    ) -> None:  # fmt: skip
        """Launch a kernel of any kind; see `gpu/described_launch.py`."""
        # lazily: few programs need it
        from tilework.runtime.devices.gpu.described_launch import kernel_values, launch_described, launcher_for

        facts, flags = tuple(kernel_metadata), (bool(launch_cooperative_grid), False)
        launcher = launcher_for(HipLauncher, self, function, *flags, facts, warp_size, kernel_signature)
        hooks, scratch = (enter_hook, exit_hook), (None, profile_scratch)
        values = list(kernel_values(arg_annotations, args))
        launch_described(launcher, (gridX, gridY, gridZ), stream, function, launch_metadata, hooks, scratch, values)


def target_of(data: bytes) -> str:
    """The architecture that a code object is for, with features if it insists on some."""
    from tilework.targets.amd.kernel_notes import read_metadata  # lazily: only failures need it

    return read_metadata(data)["amdhsa.target"].partition("--")[2]


class HipLauncher(GpuLauncher):
    """Launches one kernel."""

    gpus, array_cls, by_values = GPUS, DeviceArray, True

    def __init__(self, functions: Functions, source: object, metadata: Any) -> None:
        super().__init__(functions, source, metadata)
        self.is_plain = type(self) is HipLauncher
        is_cooperative = self.call == "launch_cooperative"
        if is_cooperative and not library().properties(library().current_device())["cooperativeLaunch"]:
            raise AssertionError(f"Cooperative launch requested but not supported by device: {metadata.name}")
        self.last = () if is_cooperative else (None,)  # arguments in one buffer, which are not used

    def put(self, frame: Frame, blocks: Extent, stream: int, function: int) -> int:
        return self.launch(function, *blocks, self.block, 1, 1, self.shared, stream, frame.addresses, *self.last)


class HipDriver(GpuDriver):
    """Runs kernels on AMD GPUs."""

    selected_by = ("hip",)
    torch_build = "hip"
    kind, description, pointer_type, descriptor_type = "hip", "an AMD GPU", "hipDeviceptr_t", "TDMDescriptor"
    gpus, array_cls = GPUS, DeviceArray
    kernel_launcher = HipLauncher

    def __init__(self) -> None:
        super().__init__()
        self.utils: HipUtils = HipUtils()

    @classmethod
    def is_likely(cls) -> bool:
        """Return True if the system's kernel has a driver for such a GPU, of Linux or of WSL, or the user names the
        library.
        """
        return libhip.FOUND.found is not None or has_amd_device()

    def architecture(self, device: int) -> str:
        return self.utils.get_device_properties(device)["arch"].partition(":")[0]

    def get_current_target(self) -> GPUTarget:
        device = self.get_current_device()
        arch = knobs.runtime.override_arch or self.architecture(device)
        return GPUTarget("hip", arch, self.utils.get_device_properties(device)["warpSize"])
