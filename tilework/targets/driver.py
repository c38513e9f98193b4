"""What the runtime asks of a driver, under the names Triton gives it.

A driver stands for the devices of one kind. `tilework.runtime.devices.active_driver` makes the usable one at its first use; a program
can bring its own, as a subclass of these, and select it with `driver.set_active`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol

from tilework.targets.base import GPUTarget

C_TYPES = {"i1": "int8_t", "u1": "uint8_t"} | dict.fromkeys(("fp16", "bf16", "fp32", "f32", "fp64"), "double")
C_TYPES |= {f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}_t" for sign in "iu" for bits in (8, 16, 32, 64)}


class Benchmarker(Protocol):
    """A function that times a call, in milliseconds."""

    def __call__(
        self, kernel_call: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **kwargs: Any
    ) -> Any: ...


class DriverBase(ABC):
    """The devices of one kind."""

    @classmethod
    @abstractmethod
    def is_active(cls) -> bool:
        """Whether this machine has such a device, with what is needed to use it."""

    @abstractmethod
    def map_python_to_cpp_type(self, ty: str) -> str:
        """The C type of an argument with this signature code: ``"i32"`` is ``"int32_t"``."""

    @abstractmethod
    def get_current_target(self) -> GPUTarget:
        """What to compile for."""

    @abstractmethod
    def get_active_torch_device(self) -> Any:
        """The device as torch calls it."""

    @abstractmethod
    def get_benchmarker(self) -> Benchmarker:
        """How calls are timed here."""


class GPUDriver(DriverBase):
    """A driver for GPUs that torch uses too; torch is asked for the current device and stream."""

    def __init__(self) -> None:
        self.cuda = cuda = import_module("torch.cuda")  # torch is optional: only who makes this driver needs it
        self.get_device_capability = cuda.get_device_capability
        self.get_current_device = cuda.current_device
        self.set_current_device = cuda.set_device

    def get_current_stream(self, device: int) -> int:
        """The handle of the stream that torch launches on."""
        return self.cuda.current_stream(device).cuda_stream

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        """Arguments with the tensor maps in them; nothing to add by default."""
        return args
