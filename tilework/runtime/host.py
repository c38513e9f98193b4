"""The host as a device: until native code exists, kernels run in the evaluator, op by op on real memory.

Launches are synchronous, there is one device (0) and one stream (0).
"""

from collections.abc import Sequence
from typing import Any

from tilework.backends.base import GPUTarget
from tilework.ir.parser import parse_module
from tilework.runtime.evaluate import EvaluatorLauncher


class CpuUtils:
    """What the runtime asks a driver about devices and binaries."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """The numbers a GPU has; the ones without a meaning here are generous."""
        import os

        return {
            "max_shared_mem": 1 << 62,
            "max_num_regs": 1 << 30,
            "multiprocessor_count": os.cpu_count() or 1,
            "warpSize": 1,
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }


class CpuDriver:
    """Runs kernels on the host."""

    binary_ext = "ttir"
    launcher_cls = EvaluatorLauncher

    def __init__(self) -> None:
        self.utils = CpuUtils()
        self._plain: set[type] = set()  # classes whose instances never live on a GPU

    @staticmethod
    def is_active() -> bool:
        """Always usable; the runtime asks other drivers first."""
        return True

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cpu", "host", 1)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        if device != 0:
            raise ValueError(f"the host is device 0, there is no device {device}")

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[str, int]:
        return ("cpu", 0)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """What times and synchronises work: `Event` and `synchronize`."""
        from tilework.runtime.benchmark import HostClock

        return HostClock

    def synchronize(self) -> None:
        """Launches return when they are done."""

    def get_empty_cache_for_benchmark(self) -> Any:
        """A buffer larger than the last-level cache; clearing it evicts everything else."""
        import numpy as np

        return np.empty(64 << 20, np.uint8)

    def clear_cache(self, cache: Any) -> None:
        cache[:] = 0

    def load_binary(self, name: str, binary: str, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        """(module, function, registers, spills, most threads) of a kernel: here its parsed TTIR."""
        module = parse_module(binary, f"{name}.ttir")
        return module, module, 0, 0, 1 << 30

    def get_benchmarker(self) -> Any:
        """The function that times a call."""
        from tilework.testing import do_bench

        return do_bench

    def check_arguments(self, args: Sequence[Any]) -> None:
        """Refuse memory that the host cannot reach, before anything runs."""
        for position, arg in enumerate(args):
            if type(arg) not in self._plain:
                self._check_argument(position, arg)

    def _check_argument(self, position: int, arg: Any) -> None:
        """One argument of a class that is not known to live on the host."""
        device = getattr(arg, "device", None)
        interface = hasattr(arg, "__cuda_array_interface__") and not hasattr(arg, "data_ptr")
        if (device is None or device == "cpu") and not interface and not hasattr(arg, "is_cuda"):
            self._plain.add(type(arg))
        elif getattr(arg, "is_cuda", False) or interface or getattr(device, "type", "cpu") not in ("cpu", "meta"):
            raise ValueError(
                f"Pointer argument (at {position}) cannot be accessed from Triton (gpu tensor?): the active device is"
                " the CPU, and this memory is on a GPU. Copy it to the host, or select the GPU's driver"
            )
