"""NVIDIA GPUs as devices: their limits, loading and launching binaries.

>>> driver.active.get_current_target()
GPUTarget(backend='cuda', arch=90, warp_size=32)
"""

import ctypes
from typing import Any

from tilework.runtime.devices.cuda.device import (
    GPUS,
    DeviceArray,
    fill_tma_descriptor_im2col,
    fill_tma_descriptor_tiled,
    map_of_descriptor,
)
from tilework.runtime.devices.gpu.gpu_driver import GpuDriver, GpuUtils
from tilework.runtime.devices.gpu.gpu_launcher import Frame, Functions, GpuLauncher, launch_config
from tilework.runtime.devices.gpu.parameters import HIDDEN_MAP, Packer, Parameter, parameters_of_ptx
from tilework.runtime.devices.launcher import Extent, Launcher
from tilework.targets import driver_library
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia import libcuda
from tilework.targets.nvidia.libcuda import LaunchAttribute, library

# ---- launches: one `cuLaunchKernelEx` each


PORTABLE_CLUSTER = 8
SPREAD = 1  # over the multiprocessors


class CudaFrame(Frame):
    """With the configuration."""

    def __init__(self, packer: Packer, attributes: object, block: int, shared: int) -> None:
        super().__init__(packer)
        self.config = launch_config(attributes, block, shared)
        self.grid = self.config.grid
        self.pointers = (ctypes.byref(self.config), self.addresses)


class CudaLauncher(GpuLauncher):
    """Launches one kernel."""

    gpus, array_cls, by_values = GPUS, DeviceArray, False

    def __init__(self, functions: Functions, source: Any, metadata: object) -> None:
        super().__init__(functions, source, metadata)
        if self.signature is not None:
            self.signature += [HIDDEN_MAP] * len((getattr(metadata, "rectangles", None) or {"maps": ()})["maps"])
        self.is_plain, self.map_of = type(self) is CudaLauncher, map_of_descriptor
        self.attributes = launch_attributes(metadata)
        self.declared = parameters_of_ptx(source.text, self.name) if getattr(source, "ext", "") == "ptx" else None

    def frame(self, packer: Packer, function: int) -> Frame:
        if self.num_ctas > PORTABLE_CLUSTER:
            library().cuFuncSetAttribute(function, libcuda.FUNCTION_NON_PORTABLE_CLUSTER, 1)
        return CudaFrame(packer, self.attributes, self.block, self.shared)

    def put(self, frame: CudaFrame, blocks: Extent, stream: int, function: int) -> int:
        frame.grid[:] = blocks
        frame.config.stream = stream
        return self.launch(frame.pointers[0], function, frame.pointers[1], None)


def launch_attributes(metadata: Any) -> Any:
    """The attributes of a launch that follow from the options: a cooperative grid, overlap with the kernel before
    (PDL), clusters.
    """
    found: list[LaunchAttribute] = []

    def add(id: int, flag: int = 0, dimensions: tuple[int, ...] = ()) -> None:
        attribute = LaunchAttribute(id=id)
        if dimensions:
            attribute.value.dimensions[:] = dimensions
        else:
            attribute.value.flag = flag
        found.append(attribute)

    if getattr(metadata, "launch_cooperative_grid", False):
        add(driver_library.LAUNCH_COOPERATIVE, 1)
    if getattr(metadata, "launch_pdl", False):
        add(libcuda.LAUNCH_PROGRAMMATIC, 1)
    if metadata.num_ctas > 1:
        add(libcuda.LAUNCH_CLUSTER, dimensions=(metadata.num_ctas, 1, 1))
        add(libcuda.LAUNCH_CLUSTER_POLICY, SPREAD)
    return (LaunchAttribute * len(found))(*found)


# ---- devices and binaries


PLAIN_SHARED = 48 << 10  # a block has more only on request
MAGIC = (b"\x7fELF", b"\x50\xed\x55\xba")  # how cubins and fat binaries begin
LOG_BYTES = 8192
PROPERTIES = {
    "max_shared_mem": libcuda.MAX_SHARED_OPTIN,
    "max_num_regs": libcuda.MAX_REGISTERS,
    "multiprocessor_count": libcuda.MULTIPROCESSORS,
    "warpSize": libcuda.WARP_SIZE,
    "sm_clock_rate": libcuda.CLOCK_RATE,
    "mem_clock_rate": libcuda.MEMORY_CLOCK_RATE,
    "mem_bus_width": libcuda.MEMORY_BUS_WIDTH,
}


class CudaUtils(GpuUtils):
    """Queries of the runtime about NVIDIA GPUs and their binaries."""

    def __init__(self) -> None:
        super().__init__(GPUS)

    def find_properties(self, device: int) -> dict[str, Any]:
        return {name: library().device_attribute(attribute, device) for name, attribute in PROPERTIES.items()}

    def check_format(self, name: str, data: bytes) -> None:
        if not data.startswith(MAGIC) and not is_ptx(data):
            raise RuntimeError(
                f"{name} cannot be loaded on a CUDA device: its last stage is neither a cubin nor PTX."
                " TILEWORK_DEVICE=native runs kernels on the CPU"
            )

    def load_module(self, name: str, data: bytes) -> int:
        """Load a binary; the log of the assembler is part of the error."""
        module, log = ctypes.c_void_p(), ctypes.create_string_buffer(LOG_BYTES)
        options = (ctypes.c_int * 2)(libcuda.JIT_ERROR_LOG, libcuda.JIT_ERROR_LOG_SIZE)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        code = library().code("load_module", ctypes.byref(module), data + b"\0", 2, options, values)
        text = log.value.decode(errors="replace").strip()
        library().check(code, f" (loading {name})" + (f"\n{text}" if text else ""))
        return module.value or 0

    def prepare(self, function: int, shared: int) -> None:
        if shared + library().function_attribute(driver_library.FUNCTION_SHARED, function) > PLAIN_SHARED:
            library().cuFuncSetAttribute(function, driver_library.FUNCTION_MAX_DYNAMIC_SHARED, shared)

    def declared(self, function: int, name: str, data: bytes) -> tuple[Parameter, ...] | None:
        """Read the parameters from PTX, which has types; else from the cubin, which has sizes; else from the driver, if
        it is new enough.

        The driver is queried until it refuses, which tools like compute-sanitizer report as an error of the program.
        """
        # lazily: launches on other devices do not need it
        from tilework.targets.nvidia.cubin_info import parameter_sizes

        if is_ptx(data) and (found := parameters_of_ptx(data.decode(), name)) is not None:
            return found
        if (known := parameter_sizes(data, name)) is not None:
            return tuple(Parameter(size, "") for size in known)
        cuda = library()
        if not cuda.has("cuFuncGetParamInfo"):
            return None
        sizes, offset, size = [], ctypes.c_size_t(), ctypes.c_size_t()
        results = (ctypes.byref(offset), ctypes.byref(size))
        while cuda.code("cuFuncGetParamInfo", function, len(sizes), *results) == driver_library.SUCCESS:
            sizes.append(Parameter(size.value, ""))
        return tuple(sizes)

    def set_printf_fifo_size(self, size: int) -> None:
        """Bytes for what kernels print between two synchronisations; it must be set before the first kernel that
        prints.
        """
        GPUS.ensure_context()
        library().cuCtxSetLimit(libcuda.LIMIT_PRINTF_FIFO, size)

    def fill_tma_descriptor_tiled(self, *args: Any, **kwargs: Any) -> Any:
        """A tensor map: (base, swizzle, elem_size, elem_type, block_size, shape, strides, padding=0); see
        `device.py`.
        """
        return fill_tma_descriptor_tiled(*args, **kwargs)

    def fill_tma_descriptor_im2col(self, *args: Any, **kwargs: Any) -> Any:
        """A tensor map of images; see `device.py`."""
        return fill_tma_descriptor_im2col(*args, **kwargs)

    def launch(
        self, gridX: int, gridY: int, gridZ: int, stream: int, function: int, launch_cooperative_grid: bool,
        launch_pdl: bool, kernel_metadata: tuple[int, ...], launch_metadata: object, enter_hook: Any, exit_hook: Any,
        global_scratch: object, profile_scratch: object, arg_annotations: Any, kernel_signature: bytes, args: Any,
    ) -> None:  # fmt: skip
        """Launch a kernel of any kind; see `gpu/described_launch.py`."""
        # lazily: few programs need it
        from tilework.runtime.devices.gpu.described_launch import kernel_values, launch_described, launcher_for

        facts, flags = tuple(kernel_metadata), (bool(launch_cooperative_grid), bool(launch_pdl))
        launcher = launcher_for(CudaLauncher, self, function, *flags, facts, 32, kernel_signature)
        hooks, scratch = (enter_hook, exit_hook), (global_scratch, profile_scratch)
        values = list(kernel_values(arg_annotations, args))
        launch_described(launcher, (gridX, gridY, gridZ), stream, function, launch_metadata, hooks, scratch, values)


def is_ptx(data: bytes) -> bool:
    """Return True if a binary is text; the debug information of a cubin may hold PTX too."""
    return not data.startswith(MAGIC) and b".version" in data


class CudaDriver(GpuDriver):
    """Runs kernels on NVIDIA GPUs."""

    selected_by = ("cuda",)
    torch_build = "cuda"
    kind, description, pointer_type, descriptor_type = "cuda", "an NVIDIA GPU", "CUdeviceptr", "CUtensorMap"
    gpus, array_cls = GPUS, DeviceArray
    kernel_launcher = CudaLauncher

    def __init__(self) -> None:
        super().__init__()
        self.utils: CudaUtils = CudaUtils()

    def launcher_cls(self, source: object, metadata: object) -> Launcher:
        launcher = super().launcher_cls(source, metadata)
        if not getattr(metadata, "rectangles", None):
            return launcher
        from tilework.runtime.devices.cuda.guarded_launch import GuardedLauncher  # lazily: few kernels need it

        return GuardedLauncher(launcher, source, metadata)

    def architecture(self, device: int) -> tuple[int, int]:
        """(major, minor) compute capability: (9, 0) is Hopper."""
        return library().device_attribute(libcuda.MAJOR, device), library().device_attribute(libcuda.MINOR, device)

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        return self.architecture(self.get_current_device() if device is None else device)

    def get_current_target(self) -> GPUTarget:
        major, minor = self.get_device_capability()
        return GPUTarget("cuda", 10 * major + minor, 32)
