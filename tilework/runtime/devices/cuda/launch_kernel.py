"""Start kernels on NVIDIA GPUs: one `cuLaunchKernelEx` per launch."""

import ctypes
from typing import Any

from tilework.runtime.devices.cuda.device import GPUS, DeviceArray
from tilework.runtime.devices.cuda.tensor_map import map_of_descriptor
from tilework.runtime.devices.gpu.gpu_launcher import Frame, Functions, GpuLauncher, launch_config
from tilework.runtime.devices.gpu.parameters import HIDDEN_MAP, Packer, parameters_of_ptx
from tilework.runtime.devices.launcher import Extent
from tilework.targets import driver_library
from tilework.targets.nvidia import libcuda
from tilework.targets.nvidia.libcuda import LaunchAttribute, library

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
    """Launches one kernel; see the module docstring."""

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
