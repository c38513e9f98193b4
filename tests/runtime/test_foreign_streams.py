"""Arrays of other libraries whose owner still works on them, in a stream that ``__cuda_array_interface__`` names."""

# pyright: reportMissingParameterType=false

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from tests.runtime.emulated_cuda import emulated_cuda
from tests.runtime.test_cuda_native_launch import Counted
from tilework import knobs
from tilework.knobs import cuda_tools
from tilework.runtime.devices.cuda.device import GPUS as cuda_device
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.runtime.launch.native import machine as native_machine

COUNT = 32


def copied(x, out, COUNT: tl.constexpr):
    i = tl.arange(0, COUNT)
    tl.store(out + i, tl.load(x + i))


class Foreign:
    """An array as Numba has them: bytes that are set in a stream of its own."""

    def __init__(self, stream: Any, **items: Any) -> None:
        self.memory, self.stream = DeviceArray.of(np.zeros(COUNT, np.uint8)), stream
        self.items = {"stream": stream, **items}

    def fill(self, cuda: EmulatedCuda, value: int) -> None:
        cuda.fill(self.memory.data_ptr(), value, COUNT, self.stream or 0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        index = (self.memory.data_ptr(), False)
        return {"data": index, "typestr": "|u1", "shape": (COUNT,), "version": 3, **self.items}


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedCuda]:
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)
    with knobs.cache.scope(), emulated_cuda() as library:
        knobs.cache.dir = str(tmp_path)
        assert native_machine.machine() is not None, "this Python has no native launcher"
        yield library


def launched(cuda: EmulatedCuda, kernel: Counted, x: Foreign, value: int) -> list[int]:
    """Return what a launch reads from an array that its owner sets before it; only the stream of the launch is waited
    for."""
    out = DeviceArray(COUNT)
    x.fill(cuda, value)
    kernel(x, out, COUNT=COUNT)
    cuda.wait_for_stream(0)
    return list(set(out.numpy().tolist()))


@pytest.mark.parametrize("stream", ["its own", 2])
def test_launches_wait_for_the_stream_of_an_array(cuda: EmulatedCuda, stream: Any) -> None:
    own = cuda_device.Stream()
    kernel, x = Counted(copied), Foreign(own.cuda_stream if stream == "its own" else stream)
    for value in (3, 5, 7):
        assert launched(cuda, kernel, x, value) == [value]
        assert kernel.slow == 1, "the next launches are native"
        assert not cuda.queue


def test_the_default_stream_needs_no_waiting(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "cuStreamWaitEvent", None)
    kernel = Counted(copied)
    for stream in (1, None):
        x = Foreign(stream)
        for value in (3, 5):
            assert launched(cuda, kernel, x, value) == [value]


def test_an_array_that_gets_a_stream_is_waited_for(cuda: EmulatedCuda) -> None:
    """The native launch was described for one without; an older version has no such item."""
    own, kernel = cuda_device.Stream(), Counted(copied)
    old = Foreign(None)
    del old.items["stream"]
    assert launched(cuda, kernel, old, 3) == launched(cuda, kernel, old, 3) == [3]
    assert kernel.slow == 1
    assert launched(cuda, kernel, Foreign(own.cuda_stream), 5) == [5]
    assert launched(cuda, kernel, Foreign(None), 7) == [7]


def test_a_launch_in_the_stream_of_the_array(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    own, kernel, out = cuda_device.Stream(), Counted(copied), DeviceArray(COUNT)
    x = Foreign(own.cuda_stream)
    monkeypatch.setattr(cuda, "cuStreamWaitEvent", None)
    with cuda_device.stream(own):
        for value in (3, 5):
            x.fill(cuda, value)
            kernel(x, out, COUNT=COUNT)
        own.synchronize()
    assert set(out.numpy().tolist()) == {5}


def test_a_stream_that_records_no_event_of_this_device(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "cuEventRecord", lambda event, stream: 400)
    kernel, x = Counted(copied), Foreign(cuda_device.Stream().cuda_stream)
    assert launched(cuda, kernel, x, 3) == launched(cuda, kernel, x, 3) == [3]


def test_zero_is_refused(cuda: EmulatedCuda) -> None:
    with pytest.raises(ValueError, match=r"`stream` of __cuda_array_interface__ is 0.* 1 is the default stream"):
        launched(cuda, Counted(copied), Foreign(0), 3)
