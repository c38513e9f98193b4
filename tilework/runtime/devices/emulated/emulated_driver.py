"""``TILEWORK_DEVICE=emulator``, ``emulator:sm_80`` or ``emulator:gfx942``: programs run, as they are, on a GPU that is
not there.

    TILEWORK_DEVICE=emulator python softmax.py

Kernels are compiled as for a real GPU, and their PTX (for AMD's: their LLVM text) is executed by the emulator, on the
NumPy arrays and CPU tensors themselves: nothing is copied. A launch is checked, and is over when it returns. Nothing of
CUDA or ROCm is needed. Its clock counts what warps do (`emulated_library.py`), so that an autotuner here finds the
configuration with the fewest steps, which need not be the fastest one on a GPU.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tilework import knobs
from tilework.runtime.devices.cuda.driver import CudaDriver
from tilework.runtime.devices.emulated.emulated_launch import EmulatedCudaLauncher, EmulatedHipLauncher
from tilework.runtime.devices.gpu.gpu_driver import GpuDriver
from tilework.runtime.devices.hip.hip_driver import HipDriver
from tilework.runtime.devices.host.driver import CpuDriver

NVIDIA = {f"sm_{index}": index for index in (80, 86, 87, 89, 90)}
AMD = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
DEFAULT = "sm_90"
CAPACITY = 16 << 30


def emulated_driver() -> "EmulatedDriver":
    """The architecture that TILEWORK_DEVICE names."""
    device = knobs.runtime.device
    arch = (device or "").partition(":")[2] or DEFAULT
    if arch not in (*NVIDIA, *AMD):
        raise ValueError(f"TILEWORK_DEVICE={device}: the emulator is one of {', '.join((*NVIDIA, *AMD))}, not {arch!r}")
    if arch in NVIDIA:
        from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda  # lazily: each with its emulator

        return EmulatedCudaDriver(EmulatedCuda(capacity=CAPACITY, arch=NVIDIA[arch], checks=True))
    from tilework.runtime.devices.emulated.emulated_libhip import EmulatedHip  # lazily: as above

    return EmulatedHipDriver(EmulatedHip(capacity=CAPACITY, arch=arch))


class EmulatedDriver(GpuDriver):
    """Runs kernels in the emulator."""

    selected_by = ("emulator",)

    def __init__(self, library: object) -> None:
        super().__init__()
        self.gpus.found.use(library)
        self.host = CpuDriver()

    @classmethod
    def is_active(cls) -> bool:
        return (knobs.runtime.device or "").startswith("emulator")

    def launches_natively(self) -> bool:
        return False

    def _initialized_torch(self) -> None:
        """Torch has no say about this device."""

    @classmethod
    def torch_cuda(cls) -> None:
        """Torch has no say about this device."""

    def get_active_torch_device(self) -> Any:
        """The device of the tensors of programs."""
        return self.host.get_active_torch_device()

    def check_arguments(self, args: Sequence[object]) -> None:
        """The memory is that of the host."""
        self.host.check_arguments(args)

    def get_empty_cache_for_benchmark(self) -> Any:
        """There is no cache to be emptied."""

    def clear_cache(self, cache: object) -> None:
        """There is no cache to be emptied."""

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return a benchmarker of one call: the clock counts steps, which are the same every time."""
        from tilework.runtime.tuning.benchmark import summarize, timed  # lazily: most programs time nothing

        def steps(fn: Callable[[], object], quantiles: Sequence[float] | None = None, return_mode: str = "mean") -> Any:
            start, end = timed(self.own_interface, fn)
            self.own_interface.synchronize()
            return summarize([start.elapsed_time(end)], quantiles, return_mode)

        return steps


class EmulatedCudaDriver(EmulatedDriver, CudaDriver):
    """NVIDIA's."""

    kernel_launcher = EmulatedCudaLauncher


class EmulatedHipDriver(EmulatedDriver, HipDriver):
    """AMD's."""

    kernel_launcher = EmulatedHipLauncher
