"""NVIDIA GPUs without torch, under the names that torch.cuda gives them: see `gpu/own_interface.py`."""

from functools import partial

from tilework.runtime.devices.gpu import own_interface
from tilework.targets.nvidia import libcuda

GPUS = own_interface.Gpus(libcuda.FOUND)
Stream, Event = partial(own_interface.Stream, GPUS), partial(own_interface.Event, GPUS)
CUDAGraph = partial(own_interface.CUDAGraph, GPUS)
ensure_context, is_available, device_count = GPUS.ensure_context, GPUS.is_available, GPUS.device_count
current_device, set_device, synchronize = GPUS.current_device, GPUS.set_device, GPUS.synchronize
current_stream, stream, graph = GPUS.current_stream, GPUS.stream, GPUS.graph


class DeviceArray(own_interface.DeviceArray):
    """Memory on an NVIDIA GPU."""

    gpus = GPUS


def get_device_capability(device: int | None = None) -> tuple[int, int]:
    """(major, minor) compute capability: (9, 0) is Hopper."""
    index = current_device() if device is None else device
    cuda = libcuda.library()
    return cuda.device_attribute(libcuda.MAJOR, index), cuda.device_attribute(libcuda.MINOR, index)
