"""Devices, streams, events, graphs and memory of NVIDIA GPUs without torch, under the names that torch.cuda gives them.

    start, end = Event(enable_timing=True), Event(enable_timing=True)
    start.record(); kernel[grid](x); end.record()
    synchronize()
    start.elapsed_time(end)                      # milliseconds

    x = DeviceArray.of(np.arange(8.0))           # memory on the GPU, for programs that have no torch
    x.numpy()

This module is what `CudaDriver.get_device_interface()` gives where torch is not loaded, or cannot use the GPU. The current
device is that of the thread's context, the current stream is per thread; where a thread has no context, it gets the primary
one of device 0. Objects free what they hold when they are collected.
"""

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilework.targets.nvidia import libcuda
from tilework.targets.nvidia.libcuda import library

_thread = threading.local()


def ensure_context(device: int | None = None) -> None:
    """Give this thread a context if it has none: that of `device`, or of device 0."""
    cuda = library()
    if not cuda.has_context():
        cuda.use_primary_context(device or 0)


def is_available() -> bool:
    """Whether there is a GPU that can be used."""
    return libcuda.why_unusable() is None


def device_count() -> int:
    """How many GPUs there are."""
    count = ctypes.c_int()
    library().cuDeviceGetCount(ctypes.byref(count))
    return count.value


def current_device() -> int:
    """The number of the device that this thread uses."""
    ensure_context()
    device = ctypes.c_int()
    library().cuCtxGetDevice(ctypes.byref(device))
    return device.value


def set_device(device: int) -> None:
    """Use another device in this thread from now on."""
    if not 0 <= device < (count := device_count()):
        raise ValueError(f"there is no CUDA device {device}: this machine has {count}")
    library().use_primary_context(device)
    _thread.stream = None


def get_device_capability(device: int | None = None) -> tuple[int, int]:
    """(major, minor) compute capability: (9, 0) is Hopper."""
    number = current_device() if device is None else device
    cuda = library()
    return cuda.device_attribute(libcuda.MAJOR, number), cuda.device_attribute(libcuda.MINOR, number)


def synchronize() -> None:
    """Wait for everything that was started on the device."""
    ensure_context()
    library().cuCtxSynchronize()


class Stream:
    """A queue of work of its own; `cuda_stream` is the driver's handle."""

    def __init__(self) -> None:
        ensure_context()
        handle = ctypes.c_void_p()
        self._cuda = library()
        self._cuda.cuStreamCreate(ctypes.byref(handle), libcuda.STREAM_NON_BLOCKING)
        self.cuda_stream: int = handle.value or 0

    def synchronize(self) -> None:
        """Wait for the work in this stream."""
        self._cuda.cuStreamSynchronize(self.cuda_stream)

    def __del__(self) -> None:
        if getattr(self, "cuda_stream", 0):
            self._cuda.code("cuStreamDestroy_v2", self.cuda_stream)


def current_stream() -> int:
    """The handle of the stream that this thread launches to; 0 is the default stream."""
    chosen = getattr(_thread, "stream", None)
    return chosen.cuda_stream if chosen is not None else 0


@contextmanager
def stream(chosen: Stream | None) -> Iterator[None]:
    """Launch to a stream inside of the block; None changes nothing."""
    if chosen is None:
        yield
        return
    before = getattr(_thread, "stream", None)
    _thread.stream = chosen
    try:
        yield
    finally:
        _thread.stream = before


class Event:
    """A place in a stream, and the moment when the device reaches it."""

    def __init__(self, enable_timing: bool = False) -> None:
        ensure_context()
        handle = ctypes.c_void_p()
        self._cuda = library()
        self._cuda.cuEventCreate(ctypes.byref(handle), 0 if enable_timing else libcuda.EVENT_DISABLE_TIMING)
        self.handle: int = handle.value or 0

    def record(self, stream: Stream | None = None) -> None:
        """Mark the end of what was put into the (current) stream so far."""
        ensure_context()
        self._cuda.cuEventRecord(self.handle, current_stream() if stream is None else stream.cuda_stream)

    def synchronize(self) -> None:
        """Wait until the device has reached it."""
        self._cuda.cuEventSynchronize(self.handle)

    def elapsed_time(self, end: "Event") -> float:
        """Milliseconds from this event to `end`; both have been reached."""
        milliseconds = ctypes.c_float()
        self._cuda.cuEventElapsedTime(ctypes.byref(milliseconds), self.handle, end.handle)
        return milliseconds.value

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            self._cuda.code("cuEventDestroy_v2", self.handle)


class CUDAGraph:
    """Launches that were recorded inside of ``with graph(g):`` and are started again together by `replay`."""

    def __init__(self) -> None:
        self._cuda = library()
        self._graph = self._executable = 0

    def capture_begin(self) -> None:
        """Record what this thread puts into the current stream, instead of running it."""
        self._cuda.cuStreamBeginCapture_v2(current_stream(), libcuda.CAPTURE_RELAXED)

    def capture_end(self) -> None:
        """Stop recording, and make it ready to run."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self._cuda.cuStreamEndCapture(current_stream(), ctypes.byref(graph))
        self._graph = graph.value or 0
        self._cuda.cuGraphInstantiateWithFlags(ctypes.byref(executable), self._graph, 0)
        self._executable = executable.value or 0

    def replay(self) -> None:
        """Start all of it in the current stream."""
        if not self._executable:
            raise RuntimeError("a CUDA graph is replayed after its capture has ended")
        self._cuda.cuGraphLaunch(self._executable, current_stream())

    def __del__(self) -> None:
        if getattr(self, "_executable", 0):
            self._cuda.code("cuGraphExecDestroy", self._executable)
        if getattr(self, "_graph", 0):
            self._cuda.code("cuGraphDestroy", self._graph)


@contextmanager
def graph(target: CUDAGraph) -> Iterator[None]:
    """Record what the block launches; the default stream cannot record, so the block has another one."""
    with stream(None if current_stream() else Stream()):
        synchronize()
        target.capture_begin()
        try:
            yield
        except BaseException:
            abandoned = ctypes.c_void_p()  # ends the capture, so that the stream can be used again
            library().code("cuStreamEndCapture", current_stream(), ctypes.byref(abandoned))
            if abandoned.value:
                library().code("cuGraphDestroy", abandoned)
            raise
        target.capture_end()


class DeviceArray:
    """Memory on the GPU with a NumPy dtype and shape; what a kernel asks of an argument, and copies from and to the host."""

    is_cuda = True

    def __init__(self, shape: int | Sequence[int], dtype: Any = "uint8") -> None:
        import numpy as np  # lazily: few launches need NumPy, which is slow to load

        self.shape: tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = np.dtype(dtype)
        self.nbytes = self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
        ensure_context()
        self._cuda = library()
        self.device = current_device()
        address = ctypes.c_uint64()
        self._cuda.cuMemAlloc_v2(ctypes.byref(address), max(1, self.nbytes))
        self._address = address.value

    @classmethod
    def of(cls, array: Any) -> "DeviceArray":
        """A copy of a NumPy array."""
        made = cls(array.shape, array.dtype)
        made.copy_from(array)
        return made

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one index to the next, as NumPy counts: there are no gaps."""
        found = [self.dtype.itemsize]
        for size in self.shape[:0:-1]:
            found.insert(0, found[0] * size)
        return tuple(found[: len(self.shape)])

    def data_ptr(self) -> int:
        """The address on the device."""
        return self._address

    def copy_from(self, array: Any) -> None:
        """Fill it from a NumPy array of the same size."""
        import numpy as np  # lazily: few launches need NumPy, which is slow to load

        data = np.ascontiguousarray(array)
        if data.nbytes != self.nbytes:
            raise ValueError(f"{data.nbytes} bytes cannot fill an array of {self.nbytes} bytes")
        self._cuda.cuMemcpyHtoDAsync_v2(self._address, data.ctypes.data, self.nbytes, current_stream())
        self._cuda.cuStreamSynchronize(current_stream())

    def numpy(self) -> Any:
        """A copy on the host, after all work of the current stream."""
        import numpy as np  # lazily: few launches need NumPy, which is slow to load

        data = np.empty(self.shape, self.dtype)
        self._cuda.cuMemcpyDtoHAsync_v2(data.ctypes.data, self._address, self.nbytes, current_stream())
        self._cuda.cuStreamSynchronize(current_stream())
        return data

    def fill(self, byte: int) -> None:
        """Set every byte, in the current stream."""
        self._cuda.cuMemsetD8Async(self._address, byte, self.nbytes, current_stream())

    def __del__(self) -> None:
        if getattr(self, "_address", 0):
            self._cuda.code("cuMemFree_v2", self._address)
