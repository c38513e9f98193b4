"""The host as a device: kernels run as machine code on all cores, or in the evaluator, op by op on real memory.

What a kernel was compiled to decides: an object file is loaded, TTIR is evaluated. `targets/cpu/pipeline.py` chooses
between them, by TILEWORK_DEVICE. Launches are synchronous, there is one device (0) and one stream (0).
"""

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tilework import knobs
from tilework.runtime.devices import active_driver
from tilework.runtime.devices.driver import Driver
from tilework.runtime.devices.host.native_launcher import NativeLauncher
from tilework.runtime.devices.host.own_code import pool_object
from tilework.runtime.devices.launcher import Launcher, refuse_negated
from tilework.target import GPUTarget

REGISTERS = 32  # of a kernel, for programs that compute from it how many of them run at once


class CpuUtils:
    """Queries of the runtime about devices and binaries."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Return the properties of a GPU: its multiprocessors are the cores that this process may use, with warps of
        one thread.

        Limits without a meaning here are large, so that they do not limit the occupancy that a program computes. Clocks
        are 0: peak rates computed from them would be wrong.
        """
        from tilework.targets.cpu.target import available_cores  # lazily: only launches on the host need it

        return {
            "max_shared_mem": 1 << 62,
            "max_num_regs": 1 << 30,
            "multiprocessor_count": available_cores(),
            "warpSize": 1,
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }

    def load_binary(self, name: str, binary: Any, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        """(module, function, registers, spills, most threads) of a kernel: its code in memory, or its parsed TTIR."""
        if isinstance(binary, bytes):
            from tilework.targets.cpu.run.interface import load  # lazily: only launches on the host need it

            kernel = load(binary, name)
            return kernel, kernel, REGISTERS, 0, 1 << 30
        from tilework.ir.parser import parse_module  # lazily: the compiler loads when something is compiled

        module = parse_module(binary, f"{name}.ttir")
        return module, module, REGISTERS, 0, 1 << 30

    def set_printf_fifo_size(self, size: int) -> None:
        """Nothing to do: what kernels print on the host is written when they print it, and never lost."""
        if size < 0:
            raise ValueError(f"a buffer for what kernels print cannot have {size} bytes")

    def fill_tma_descriptor_tiled(self, *args: object, **kwargs: object) -> Any:
        """Tensor maps are for a unit that the host does not have."""
        raise RuntimeError(
            "fill_tma_descriptor_tiled makes tensor maps for the copy engine (TMA) of NVIDIA GPUs, and the active"
            " device is the CPU: pass a TensorDescriptor, which kernels for every target can read"
        )


def make_launcher(source: Any, metadata: Any) -> Launcher:
    """The launcher for what a kernel was compiled to."""
    if metadata.binary_ext == "obj" and metadata.interface.get("checks"):
        from tilework.runtime.devices.checked_launch import SanitizedLauncher  # lazily: only checked launches need it

        return SanitizedLauncher(source, metadata)
    if getattr(metadata, "sanitize", False) == "race":
        from tilework.runtime.devices.checked_launch import RaceLauncher  # lazily: only checked launches need it

        return RaceLauncher(source, metadata)
    if metadata.binary_ext == "obj":
        return NativeLauncher(source, metadata)
    from tilework.runtime.devices.host.evaluator_launcher import EvaluatorLauncher  # lazily: few programs use it

    return EvaluatorLauncher(source, metadata)


def complete_torch() -> None:
    """Add to `torch.cpu` the functions that torch has for other devices: programs for GPUs look them up there."""

    if (module := getattr(sys.modules["torch"], "cpu", None)) is not None:  # torch may be importing us
        complete(module)


class CpuDriver(Driver):
    """Runs kernels on the host."""

    priority = 0
    selected_by = ("native", "evaluator")

    launcher_cls = staticmethod(make_launcher)

    def __init__(self) -> None:
        self.utils = CpuUtils()
        self._plain: set[type] = set()  # classes whose instances never live on a GPU
        if "torch" in sys.modules:
            complete_torch()

    @classmethod
    def is_active(cls) -> bool:
        """Return True if kernels go to the CPU: the user selects it, or no other device can be used."""
        if knobs.runtime.device in cls.selected_by:
            return True
        above = (other for other in active_driver.likely_drivers() if other.priority > cls.priority)
        return not any(other.is_active() for other in above)

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cpu", "host", 1)

    def launches_natively(self) -> bool:
        from tilework.targets.cpu.pipeline import device  # lazily: only launches on the host need it

        if type(self) is not CpuDriver or device() != "native":
            return False
        if pool_object().is_possible():
            pool_object().begin()
        return True

    def get_device_capability(self, device: int = 0) -> tuple[str, int]:
        return ("cpu", 0)

    def get_active_torch_device(self) -> Any:
        import torch  # lazily: torch is optional

        complete_torch()
        return torch.device("cpu")

    def get_empty_cache_for_benchmark(self) -> Any:
        """A buffer larger than the last-level cache; clearing it evicts everything else."""
        import numpy as np  # lazily: few launches need NumPy, which is slow to load

        return np.empty(64 << 20, np.uint8)

    def clear_cache(self, cache: Any) -> None:
        cache[:] = 0

    def check_arguments(self, args: Sequence[object]) -> None:
        """Refuse memory that the host cannot reach, before anything runs."""
        for position, arg in enumerate(args):
            if type(arg) not in self._plain:
                self._check_argument(position, arg)

    def _check_argument(self, position: int, arg: Any) -> None:
        """One argument of a class that is not known to live on the host."""
        if getattr(arg, "is_cpu", False) is True:  # torch: cheaper than reading the device
            return refuse_negated(position, arg)
        if isinstance(arg, tuple):
            for item in arg:
                if type(item) not in self._plain:
                    self._check_argument(position, item)
            return
        if hasattr(arg, "block_shape") and hasattr(arg, "base"):
            return self._check_argument(position, arg.base)
        device = getattr(arg, "device", None)
        interface = hasattr(arg, "__cuda_array_interface__") and not hasattr(arg, "data_ptr")
        if (device is None or device == "cpu") and not interface and not hasattr(arg, "is_cuda"):
            if not hasattr(arg, "data_ptr"):
                self._plain.add(type(arg))
        elif getattr(arg, "is_cuda", False) or interface or getattr(device, "type", "cpu") != "cpu":
            where = "a GPU" if interface or device is None else f"the device {device}"
            raise ValueError(
                f"Pointer argument (at {position}) cannot be accessed from Triton (gpu tensor?): the active device is"
                f" the CPU, and this memory is on {where}. Copy it to the host, or select that device's driver"
            )


# ---- names that programs for GPUs look up in torch's module of the device, and that `torch.cpu` lacks


def set_stream(stream: object) -> None:
    """Nothing to do: what is called on the host has run when the call returns."""


def get_device_properties(device: object = None) -> SimpleNamespace:
    """The host as a device: its cores are what a GPU's multiprocessors are."""
    import platform  # lazily: few programs look at it

    from tilework.targets.cpu.target import available_cores  # lazily: as above

    return SimpleNamespace(name=platform.processor() or platform.machine(), multi_processor_count=available_cores())


def complete(module: object) -> None:
    """Add the functions that a module lacks, and keep those that a later torch has."""
    for function in (set_stream, get_device_properties):
        if not hasattr(module, function.__name__):
            setattr(module, function.__name__, function)
