"""``TILEWORK_DEVICE=emulator`` or ``emulator:sm_80``: programs run, as they are, on a GPU that is not there.

    TILEWORK_DEVICE=emulator python softmax.py

Kernels are compiled as for a real GPU, and their PTX is executed by the emulator, on the NumPy arrays and CPU tensors
themselves: nothing is copied. A launch is checked, and is over when it returns. Nothing of CUDA is needed, ptxas neither.
Its clock counts what warps do (`emulated_libcuda.py`), so that an autotuner here finds the configuration with the fewest steps, which
need not be the fastest one on a GPU.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tilework import knobs
from tilework.runtime.devices.cuda import device as cuda_device
from tilework.runtime.devices.cuda.driver import CudaDriver
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.runtime.devices.host.driver import CpuDriver
from tilework.targets.nvidia import libcuda

ARCHITECTURES = {f"sm_{number}": number for number in (80, 86, 87, 89, 90)}
DEFAULT = "sm_90"
CAPACITY = 16 << 30


def asked_architecture(device: str | None) -> int:
    """``emulator:sm_80`` -> 80."""
    name = (device or "").partition(":")[2] or DEFAULT
    if name not in ARCHITECTURES:
        raise ValueError(f"TILEWORK_DEVICE={device}: the emulator is one of {', '.join(ARCHITECTURES)}, not {name!r}")
    return ARCHITECTURES[name]


class EmulatedDriver(CudaDriver):
    """Runs kernels in the emulator."""

    asked_by = ("emulator",)

    def __init__(self) -> None:
        super().__init__()
        libcuda.FOUND.use(EmulatedCuda(capacity=CAPACITY, arch=asked_architecture(knobs.runtime.device), checks=True))
        self.host = CpuDriver()

    @classmethod
    def is_active(cls) -> bool:
        return (knobs.runtime.device or "").startswith("emulator")

    def launcher_cls(self, source: Any, metadata: Any) -> Any:
        # lazily: with the emulator
        from tilework.runtime.devices.cuda.proved_launch import with_proof
        from tilework.runtime.devices.emulated.emulated_launch import EmulatedLauncher, SanitizedEmulatedLauncher

        checked = bool(getattr(metadata, "sanitizer", None))
        launcher = (SanitizedEmulatedLauncher if checked else EmulatedLauncher)(self.utils, source, metadata)
        return with_proof(launcher, source, metadata)

    def launches_natively(self) -> bool:
        return False

    def _initialized_torch(self) -> None:
        """Torch has no say about this device."""

    def set_current_device(self, device: int) -> None:
        cuda_device.set_device(device)

    def get_active_torch_device(self) -> Any:
        """Where the tensors of programs are."""
        return self.host.get_active_torch_device()

    def check_arguments(self, args: Sequence[Any]) -> None:
        """The memory is that of the host."""
        self.host.check_arguments(args)

    def get_device_interface(self) -> Any:
        return cuda_device

    def get_empty_cache_for_benchmark(self) -> Any:
        """There is no cache to be emptied."""

    def clear_cache(self, cache: Any) -> None:
        """There is no cache to be emptied."""

    def get_benchmarker(self) -> Callable[..., Any]:
        """One call tells all: the clock counts steps, which are the same every time."""
        from tilework.runtime.tuning.benchmark import summarize  # lazily: most programs time nothing

        def steps(fn: Callable[[], Any], quantiles: Sequence[float] | None = None, return_mode: str = "mean") -> Any:
            start, end = (cuda_device.Event(enable_timing=True) for _ in range(2))
            start.record()
            fn()
            end.record()
            cuda_device.synchronize()
            return summarize([start.elapsed_time(end)], quantiles, return_mode)

        return steps
