"""The interface of a driver, which represents the devices of one kind.

    [project.entry-points."tilework.drivers"]            in the package that brings one
    toy = "toy.device:ToyDriver"

`active_driver.py` makes the active one at its first use; a program can select another with `driver.set_active`. A
driver must say whether it can be used, what to compile for, how binaries are loaded and how kernels are launched
(`launcher.py` has what launchers share). The rest has defaults, for one device that works in order and is done when a
launch returns.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tilework.target import GPUTarget

C_TYPES = {"i1": "int8_t", "u1": "uint8_t"} | dict.fromkeys(("fp16", "bf16", "fp32", "f32", "fp64"), "double")
C_TYPES |= {f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}_t" for sign in "iu" for bits in (8, 16, 32, 64)}

Loaded = tuple[Any, Any, int, int, int]


if TYPE_CHECKING:
    from typing import Protocol

    class Utils(Protocol):
        """Queries about devices and binaries."""

        def get_device_properties(self, device: int) -> dict[str, int]:
            """Limits and clocks of a device; `max_shared_mem` at least."""
            ...

        def load_binary(self, name: str, binary: object, shared: int, device: int) -> Loaded:
            """(module, function, registers, spills, most threads) of a kernel in the output of its last stage."""
            ...


class Driver(ABC):
    """See the module docstring."""

    priority: ClassVar[int] = 1  # the host has 0: it is active where no driver above it is
    selected_by: ClassVar[tuple[str, ...]] = ()  # values of TILEWORK_DEVICE that select it
    has_own_memory: ClassVar[bool] = False  # launches on memory of the host go to the host's driver
    reads_line_tables: ClassVar[bool] = False  # to name the lines of a launch in messages
    utils: "Utils"
    launcher_cls: Callable[..., Any]  # (source, metadata) to what launches the kernel

    @property
    def _obj(self) -> "Driver":
        """The driver itself, for programs written for older Tritons, where `driver.active` was a proxy."""
        return self

    @classmethod
    @abstractmethod
    def is_active(cls) -> bool:
        """Return True if this machine has such a device, with all that is needed to use it."""

    @classmethod
    def why_inactive(cls) -> str:
        """Return what is missing, for the error about a request for this driver."""
        return "the driver cannot be used"

    @abstractmethod
    def get_current_target(self) -> GPUTarget:
        """The target to compile for."""

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The C type of an argument with this signature code: ``"i32"`` is ``"int32_t"``."""
        return "void*" if ty.startswith(("*", "tensordesc")) else C_TYPES[ty]

    def load_binary(self, name: str, binary: object, shared: int, device: int) -> Loaded:
        """As `utils.load_binary`."""
        return self.utils.load_binary(name, binary, shared, device)

    def check_arguments(self, args: Sequence[object]) -> None:  # noqa: B027  a device may reach everything
        """Refuse memory that the device cannot reach, before anything runs."""

    def on_device_of(self, args: Sequence[object]) -> Any:  # noqa: B027  most drivers have one device
        """The context in which the device of the arguments is the current one; None if it is, or there is no such
        device.
        """

    def is_chosen_by(self, args: Sequence[object]) -> bool:
        """Return True if these arguments choose the current device among several, and every guard of theirs would see
        another one.
        """
        return False

    def launches_natively(self) -> bool:
        """Return True if launchers of this driver know how to launch without Python code (`Launcher.native`)."""
        return False

    # the current device and stream

    def get_current_device(self) -> int:
        return 0

    def device_kind(self) -> str | None:
        """A key that differs for devices unlike the first one; None for those that are like it."""
        return None

    def set_current_device(self, device: int) -> None:
        if device != 0:
            raise ValueError(f"{type(self).__name__} has device 0, there is no device {device}")

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        """The device as torch calls it."""
        raise NotImplementedError(f"torch does not know the device of {type(self).__name__}")

    # benchmarks

    def get_benchmarker(self) -> Callable[..., Any]:
        """The benchmarker for calls on this device."""
        from tilework.runtime.tuning.benchmark import do_bench  # lazily: most programs time nothing

        return do_bench

    def get_device_interface(self) -> Any:
        """The module that times and synchronises work: `Event` and `synchronize`."""

        return HostClock

    def synchronize(self) -> None:
        """Wait for everything that was launched."""
        self.get_device_interface().synchronize()

    def get_empty_cache_for_benchmark(self) -> Any:
        """A buffer larger than the last-level cache."""
        return None

    def clear_cache(self, cache: object) -> None:  # noqa: B027  a device may have no cache
        """Clear that buffer, which evicts everything else."""


# ---- the host's clock with the interface of a device that has events: calls are finished when they return


class HostEvent:
    """A moment on the host's clock, with the interface of a device event."""

    def __init__(self, enable_timing: bool = True) -> None:
        self.moment = 0

    def record(self) -> None:
        """Remember now."""
        self.moment = time.perf_counter_ns()

    def elapsed_time(self, end: "HostEvent") -> float:
        """Milliseconds from this moment to `end`."""
        return (end.moment - self.moment) / 1e6


class HostClock:
    """The device interface of the host: calls are finished when they return."""

    Event = HostEvent

    @staticmethod
    def synchronize() -> None:
        """Nothing is under way."""
