"""Drivers under the names that Triton gives them: what the runtime asks of one, and the base of those that ask torch."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol

from tilework.runtime.devices.driver import Driver as DriverBase

__all__ = ["Benchmarker", "DriverBase", "GPUDriver"]


class Benchmarker(Protocol):
    """A function that times a call, in milliseconds."""

    def __call__(
        self, kernel_call: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **kwargs: Any
    ) -> Any: ...


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
