"""Devices, streams, events, graphs and memory of GPUs without torch, under the names that torch.cuda gives them.

    start, end = Event(enable_timing=True), Event(enable_timing=True)
    start.record(); kernel[grid](x); end.record()
    synchronize()
    start.elapsed_time(end)                      # milliseconds

    x = DeviceArray.of(np.arange(8.0))           # memory on the GPU, for programs that have no torch
    x.numpy()

A `Gpus` has these names for the GPUs of a vendor (`cuda/device.py`, `hip_driver.py`); `get_device_interface()` of a
driver returns it where torch is not loaded, or cannot use the GPU. The current device is that of the thread, and so is
the current stream; a thread that uses no device yet uses device 0. Objects free what they hold when they are collected.
"""

import ctypes
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Self

from tilework.targets import driver_library
from tilework.targets.driver_library import DriverLibrary, FoundLibrary


class Gpus:
    """The GPUs of a vendor, and which of them each thread uses."""

    def __init__(self, found: FoundLibrary[Any]) -> None:
        self.found = found
        self.Stream, self.Event, self.CUDAGraph = partial(Stream, self), partial(Event, self), partial(CUDAGraph, self)
        self.thread = threading.local()  # its `stream` is the chosen one

    def library(self) -> DriverLibrary:
        return self.found.library()

    def ensure_context(self, device: int | None = None) -> None:
        """Let this thread use `device`, or device 0, if it uses none."""
        library = self.found.library()
        if not library.has_context():
            library.use_device(device or 0)

    def is_available(self) -> bool:
        """Return True if there is a GPU that can be used."""
        return self.found.why_unusable() is None

    def device_count(self) -> int:
        """The number of GPUs."""
        count = ctypes.c_int()
        self.library().count_devices(ctypes.byref(count))
        return count.value

    def current_device(self) -> int:
        """The index of the device that this thread uses."""
        self.ensure_context()
        return self.library().current_device()

    def set_device(self, device: int) -> None:
        """Use another device in this thread from now on."""
        if not 0 <= device < (count := self.device_count()):
            raise ValueError(f"there is no {self.library().vendor} device {device}: this machine has {count}")
        self.library().use_device(device)
        self.thread.stream = None

    def synchronize(self) -> None:
        """Wait for everything that was started on the device."""
        self.ensure_context()
        self.library().synchronize()

    def current_stream(self) -> int:
        """The handle of the stream that this thread launches to; 0 is the default stream."""
        chosen = getattr(self.thread, "stream", None)
        return chosen.cuda_stream if chosen is not None else 0

    def is_capturing(self, stream: int) -> bool:
        """Return True while a stream records a graph, or cannot be used because another one does."""
        status = ctypes.c_int()
        return bool(self.library().code("get_capture_status", stream, ctypes.byref(status)) or status.value)

    @contextmanager
    def stream(self, chosen: "Stream | None") -> Iterator[None]:
        """Launch to a stream inside of the block; None changes nothing."""
        if chosen is None:
            yield
            return
        before = getattr(self.thread, "stream", None)
        self.thread.stream = chosen
        try:
            yield
        finally:
            self.thread.stream = before

    @contextmanager
    def graph(self, target: "CUDAGraph") -> Iterator[None]:
        """Record what the block launches; the default stream cannot record, so the block has another one."""
        with self.stream(None if self.current_stream() else Stream(self)):
            self.synchronize()
            target.capture_begin()
            try:
                yield
            except BaseException:
                abandoned = ctypes.c_void_p()  # ends the capture, so that the stream can be used again
                self.library().code("end_capture", self.current_stream(), ctypes.byref(abandoned))
                if abandoned.value:
                    self.library().code("destroy_graph", abandoned)
                raise
            target.capture_end()


class Held:
    """A resource of the driver, released with this object: `ENDS` names the function for each handle."""

    ENDS: ClassVar[Mapping[str, str]]
    _library: DriverLibrary

    def made(self, function: str, *settings: int) -> int:
        """The handle of what a function makes."""
        handle = ctypes.c_void_p()
        getattr(self._library, function)(ctypes.byref(handle), *settings)
        return handle.value or 0

    def __del__(self) -> None:
        for name, end in self.ENDS.items():
            if handle := getattr(self, name, 0):
                self._library.destroy(end, handle)


class Stream(Held):
    """A queue of work of its own; `cuda_stream` is the driver's handle, which torch calls so for every vendor."""

    ENDS = {"cuda_stream": "destroy_stream"}

    def __init__(self, gpus: Gpus) -> None:
        gpus.ensure_context()
        self._library = gpus.library()
        self.cuda_stream = self.made("create_stream", driver_library.STREAM_NON_BLOCKING)

    def synchronize(self) -> None:
        """Wait for the work in this stream."""
        self._library.wait_for_stream(self.cuda_stream)


class Event(Held):
    """A position in a stream, and the moment when the device reaches it."""

    ENDS = {"handle": "destroy_event"}

    def __init__(self, gpus: Gpus, enable_timing: bool = False) -> None:
        gpus.ensure_context()
        self._gpus, self._library = gpus, gpus.library()
        self.handle = self.made("create_event", 0 if enable_timing else driver_library.EVENT_DISABLE_TIMING)

    def record(self, stream: Stream | None = None) -> None:
        """Mark the end of what was put into the (current) stream so far."""
        self._gpus.ensure_context()
        chosen = self._gpus.current_stream() if stream is None else stream.cuda_stream
        self._library.record_event(self.handle, chosen)

    def synchronize(self) -> None:
        """Wait until the device has reached it."""
        self._library.wait_for_event(self.handle)

    def elapsed_time(self, end: "Event") -> float:
        """Milliseconds from this event to `end`; both have been reached."""
        milliseconds = ctypes.c_float()
        self._library.elapsed_time(ctypes.byref(milliseconds), self.handle, end.handle)
        return milliseconds.value


class CUDAGraph(Held):
    """Launches that were recorded inside of ``with graph(g):`` and are started again together by `replay`."""

    ENDS = {"_executable": "destroy_executable", "_graph": "destroy_graph"}

    def __init__(self, gpus: Gpus) -> None:
        self._gpus, self._library = gpus, gpus.library()
        self._graph = self._executable = 0

    def capture_begin(self) -> None:
        """Record what this thread puts into the current stream, instead of running it."""
        self._library.begin_capture(self._gpus.current_stream(), driver_library.CAPTURE_RELAXED)

    def capture_end(self) -> None:
        """Stop recording, and make it ready to run."""
        graph = ctypes.c_void_p()
        self._library.end_capture(self._gpus.current_stream(), ctypes.byref(graph))
        self._graph = graph.value or 0
        self._executable = self.made("make_executable", self._graph, 0)

    def replay(self) -> None:
        """Start all of it in the current stream."""
        if not self._executable:
            raise RuntimeError(f"a {self._library.vendor} graph is replayed after its capture has ended")
        self._library.launch_graph(self._executable, self._gpus.current_stream())


class DeviceArray(Held):
    """Memory on the GPU with a NumPy dtype and shape: an argument of kernels, with copies from and to the host."""

    ENDS = {"_address": "free"}
    is_cuda = True  # as torch's tensors say of every vendor
    gpus: ClassVar[Gpus]

    def __init__(self, shape: int | Sequence[int], dtype: Any = "uint8") -> None:
        import numpy as np  # lazily: few launches need NumPy, which is slow to load

        self.shape: tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = np.dtype(dtype)
        self.nbytes = self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
        self.device = self.gpus.current_device()
        self._library = self.gpus.library()
        self._address = self.made("allocate", max(1, self.nbytes))

    @classmethod
    def of(cls, array: Any) -> Self:
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

    def ptr_range(self) -> int:
        """The bytes from there on."""
        return self.nbytes

    def copy_from(self, array: object) -> None:
        """Fill it from a NumPy array of the same size."""
        import numpy as np  # lazily: few launches need NumPy, which is slow to load

        data = np.ascontiguousarray(array)
        if data.nbytes != self.nbytes:
            raise ValueError(f"{data.nbytes} bytes cannot fill an array of {self.nbytes} bytes")
        stream = self.gpus.current_stream()
        self._library.copy_in(self._address, data.ctypes.data, self.nbytes, stream)
        self._library.wait_for_stream(stream)

    def numpy(self) -> Any:
        """A copy on the host, after all work of the current stream."""
        import numpy as np  # lazily: few launches need NumPy, which is slow to load

        data = np.empty(self.shape, self.dtype)
        stream = self.gpus.current_stream()
        self._library.copy_out(data.ctypes.data, self._address, self.nbytes, stream)
        self._library.wait_for_stream(stream)
        return data

    def fill(self, byte: int) -> None:
        """Set every byte, in the current stream."""
        self._library.fill(self._address, byte, self.nbytes, self.gpus.current_stream())
