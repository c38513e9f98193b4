"""Start kernels on AMD GPUs: one `hipModuleLaunchKernel` per launch."""

from tilework.runtime.devices.gpu.gpu_launcher import Frame, Functions, GpuLauncher
from tilework.runtime.devices.hip.hip_device import GPUS, DeviceArray
from tilework.runtime.devices.launcher import Extent


class HipLauncher(GpuLauncher):
    """Launches one kernel."""

    gpus, array_cls, by_numbers = GPUS, DeviceArray, True

    def __init__(self, functions: Functions, source: object, metadata: object) -> None:
        super().__init__(functions, source, metadata)
        self.is_plain = type(self) is HipLauncher
        self.last = () if self.call == "launch_cooperative" else (None,)  # arguments in one buffer, which nobody gives

    def put(self, frame: Frame, blocks: Extent, stream: int, function: int) -> int:
        return self.launch(function, *blocks, self.block, 1, 1, self.shared, stream, frame.addresses, *self.last)
