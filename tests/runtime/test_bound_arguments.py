"""A bound launch looks at its arguments at every call: what has changed since it was bound is launched as it is now."""

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tilework.language as tl
from tests.runtime.emulated_cuda import emulated_cuda
from tests.runtime.stand_in_tensors import OtherStandIn, StandIn, stand_in_tensors
from tests.runtime.test_cuda_native_descriptors import CHANGES
from tests.runtime.test_cuda_native_launch import Counted, six
from tilework import knobs
from tilework.knobs import cuda_tools
from tilework.runtime.devices.cuda.device import GPUS as cuda_device
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.runtime.devices.emulated.emulated_library import Result
from tilework.runtime.launch.native import launch_log, layout
from tilework.runtime.launch.native import machine as native_machine
from tilework.targets.nvidia import libcuda
from tilework.tools.tensor_descriptor import TensorDescriptor

FACTOR = tl.constexpr(3)


def described(source, target, row, BLOCK: tl.constexpr):
    pass


def factored(p, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, i * FACTOR, mask=i < n)


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedCuda]:
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: the driver gets PTX
    with knobs.cache.scope(), emulated_cuda(devices=2) as library:
        knobs.cache.dir = str(tmp_path)
        if native_machine.machine() is None:
            pytest.fail("this Python has no native launcher")
        with stand_in_tensors(monkeypatch):
            yield library


class Bound(Counted):
    """A bound launch of a kernel, which is compared with the Python path."""

    def __init__(self, cuda: EmulatedCuda, function: Callable[..., Any], *args: Any, **options: Any) -> None:
        super().__init__(function, **options)
        self.cuda, self.args, self.options = cuda, args, options
        self.bound = self.kernel.bind(*args, grid=(1,), **options)

    def result(self, call: Callable[[], Any]) -> Any:
        self.cuda.launches.clear()
        try:
            call()
        except Exception as error:  # noqa: BLE001 - both are compared
            return type(error), str(error)
        return self.cuda.launches.pop()

    def same(self, *given: Any, is_native: bool = False, **named: Any) -> None:
        """Check that a launch does what the Python path does; with `is_native`, in machine code."""
        before = self.slow
        native = self.result(lambda: self.bound(*given, **named))
        assert not is_native or self.slow == before
        values = dict(zip(self.kernel.arg_names, self.args, strict=False)) | self.options
        values |= dict(zip(self.kernel.arg_names, given, strict=False)) | named
        assert native == self.result(lambda: self.kernel.run(grid=(1,), **values))

    def used(self, *given: Any, **named: Any) -> None:
        """Check that a launch runs in machine code from the second time on."""
        for is_native in (False, True, True):
            self.same(*given, is_native=is_native, **named)


def tensors(count: int = 3) -> list[StandIn]:
    return [StandIn(64) for _ in range(count)]


def test_what_is_given_and_what_is_bound(cuda: EmulatedCuda) -> None:
    x, y, z = tensors()
    k = Bound(cuda, six, x, (y, 5, 0.5), 12345678, 0.25, True, None, MODE="plain")
    k.used()
    k.used(z)
    k.used(z, (x, 7, 1.5))
    k.used(c=48 + 5)
    k.used(z, c=48 + 7, d=-1.0)
    k.used(z, (x, 7, 1.5), 48 + 9, 0.5)
    k.used()
    slow = k.slow
    uninterned: dict[str, Any] = {"".join(["a"]): y}
    k.same(c=12345678, **uninterned)  # other tuples of names, and names that Python has not interned
    for number in range(20):
        k.same(StandIn(64), is_native=True, **{"c": 12345 + 2 * number}) if number > 3 else k.same(StandIn(64), c=12345)
    k.same(is_native=True)
    assert k.slow == slow, "all of these fit the first description"
    others: list[dict[str, Any]] = [{"c": 16}, {"a": OtherStandIn(64)}, {"b": (x, 7)}]
    for wrong in others:
        k.same(**wrong)
    k.same(is_native=True)
    assert k.bound(grid=(2,)) is not None and cuda.launches.pop().grid == (2, 1, 1)
    assert k.bound(grid=lambda meta: (3,)) is not None and cuda.launches.pop().grid == (3, 1, 1)
    k.same(is_native=True)


TENSOR_CHANGES: dict[str, Callable[[StandIn], Any]] = {
    "its memory is elsewhere": lambda x: setattr(x, "data", StandIn(64).data),
    "another offset": lambda x: setattr(x, "offset", 16),
    "not aligned": lambda x: setattr(x, "offset", 3),
    "nothing in it": lambda x: setattr(x, "count", 0),
    "freed": lambda x: setattr(x, "data", 0),
    "another dtype": lambda x: setattr(x, "base", DeviceArray(64, "f8")),
    "DLPack cannot describe it": lambda x: x.tell(-1),
    "another class": lambda x: setattr(x, "__class__", OtherStandIn),
}


@pytest.mark.parametrize("given", [False, True])
def test_a_changed_tensor_is_seen(cuda: EmulatedCuda, given: bool) -> None:
    """Each change of a tensor that is bound, alone or in a tuple: whatever the Python path does, and nothing stale."""
    more: dict[str, Any] = {"d": 1002} if given else {}
    for index, change in enumerate(TENSOR_CHANGES.values()):
        x, y, z = tensors()
        k = Bound(cuda, six, z, x, (y, 5), 2, 2, 2)
        k.used(**more)
        change((x, y)[index % 2 ^ given])
        k.same(**more)
        k.same(**more)


@pytest.mark.parametrize("parts", [list, tuple])
def test_a_changed_descriptor_is_seen(cuda: EmulatedCuda, parts: type) -> None:
    target = TensorDescriptor(StandIn(64, 64), parts([64, 64]), parts([64, 1]), parts([8, 32]))

    kept: list[Any] = []

    def replaced(desc: Any) -> None:
        kept.append(vars(desc))  # the old dictionary is not notified that it is no longer used
        desc.__dict__ = dict(vars(desc), base=StandIn(64, 64))

    more = {
        "its dictionary": replaced,
        "the memory of its base": lambda desc: setattr(desc.base, "data", StandIn(64, 64).data),
        "its class": lambda desc: setattr(desc, "__class__", type("Mine", (TensorDescriptor,), {})),
        "a new member": lambda desc: setattr(desc, "more", 1),
    }
    for change in (
        *CHANGES.values(),
        *more.values(),
        *(lambda desc, c=c: c(desc.base) for c in TENSOR_CHANGES.values()),
    ):
        source, other = (
            TensorDescriptor(StandIn(64, 128), parts([64, 64]), parts([64, 1]), parts([8, 32])) for _ in range(2)
        )
        k = Bound(cuda, described, source, target, 8, BLOCK=32)
        k.used()
        k.used(other)
        try:
            change(source)
            change(other)
        except (AttributeError, TypeError):  # a tuple
            assert parts is tuple
            continue
        k.same()
        for _ in range(2):
            k.same(other)
            k.same()
    source: Any = TensorDescriptor(StandIn(4096, 64), [4096, 64], [64, 1], [8, 32])
    k = Bound(cuda, described, source, target, 8, BLOCK=32)
    for size in range(1000, 1040):  # ints that are freed, and made again where others were
        source.shape[0] = int(str(size))
        k.same()


def test_what_else_changes_is_seen(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    x, seen, factor = StandIn(64), [], FACTOR
    k = Bound(cuda, factored, x, 60, BLOCK=64)
    k.used()

    def hook(metadata: Any) -> None:
        seen.append(metadata.get()["name"])

    slow = k.slow
    knobs.runtime.launch_enter_hook.add(hook)
    k.bound()
    knobs.runtime.launch_enter_hook.remove(hook)
    assert seen == ["factored"] and k.slow == slow + 1
    k.used()
    monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(4))
    with pytest.raises(RuntimeError, match="FACTOR has changed"):
        k.bound()
    monkeypatch.setitem(globals(), "FACTOR", factor)
    k.kernel.device_caches.clear()
    k.used()


def test_every_launch_is_logged(cuda: EmulatedCuda) -> None:
    k, lines = Bound(cuda, six, *tensors(), 2, 2, 2), []

    class Listener:
        def lines(self, data: bytes) -> None:
            lines.append(len(data) // layout.LINE)

        def watch(
            self, launcher: Any, grid: Any, stream: int, function: Any, args: Any, scratch: Any, metadata: Any
        ) -> None:
            launcher.start(grid, stream, function, args, scratch)

    k.used()
    launch_log.begin(Listener())
    try:
        for _ in range(3):
            k.bound()
    finally:
        launch_log.end()
    assert sum(lines) == 3
    k.same(is_native=True)


def test_streams_threads_and_contexts(cuda: EmulatedCuda) -> None:
    x, y, z = tensors()
    k = Bound(cuda, six, x, y, 2, 2, 2, 2)
    k.used()
    k.used(z)
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            cuda_device.set_device(0)
            stream = cuda_device.Stream()
            mine = [StandIn(64) for _ in range(3)]
            with cuda_device.stream(stream):
                for turn in range(30):
                    x.offset = 16 * (turn % 2)
                    k.bound(mine[turn % 3], d=1000 + 2 * number)
                    k.bound()
            addresses = {one.data_ptr().to_bytes(8, "little") for one in mine}
            numbers = [launch.parameters[:4] for launch in cuda.launches if launch.stream == stream.cuda_stream]
            assert len(numbers) == 60
            for values in numbers[::2]:
                assert values[0] in addresses and int.from_bytes(values[3], "little") == 1000 + 2 * number
        except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    k = Bound(cuda, six, y, z, 2, 2, 2, 2)
    k.used()
    cuda.thread.context = 2  # of the other device: the arguments are not there
    k.same()
    cuda.thread.context = 1
    k.same(is_native=True)


def test_errors_of_the_driver(cuda: EmulatedCuda) -> None:
    k = Bound(cuda, six, *tensors(), 2, 2, 2)
    k.used()
    cuda.failure = Result.ILLEGAL_ADDRESS
    for _ in range(3):
        with pytest.raises(libcuda.CudaError, match="illegal memory access"):
            k.bound()
    cuda.failure = Result.OK
    k.same(is_native=True)


def test_nothing_leaks(cuda: EmulatedCuda) -> None:
    x, y = tensors(2)
    target: Any = TensorDescriptor(StandIn(64, 64), [64, 64], [64, 1], [8, 32])
    k = Bound(cuda, six, x, (y, 12345678), target, 2, 2, 2)
    k.used()
    k.used(y, d=1000)
    watched = [x, y, target, target.base, target.shape, k.args[1], k.state[2], *filter(None, k.state[2]), k.bound]

    def counts() -> list[int]:
        cuda.launches.clear()
        gc.collect()
        return [sys.getrefcount(item) for item in watched]

    before = counts()
    for turn in range(200):
        k.bound()
        k.bound(y, d=1000)
        x.offset = 16 * (turn // 10 % 2)
        target.shape[0] = 64 - turn // 15 % 2
    x.offset = 0
    target.shape[0] = 64
    k.used()
    k.used(y, d=1000)
    assert counts() == before
    del k.bound, watched[-1]
    after = counts()
    assert after[0] < before[0], "of what is bound"


def test_tensors_of_torch(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from tests.runtime.test_cuda_native_launch import driver, tensor_memory
    from tilework.runtime.devices.cuda.driver import CudaLauncher

    monkeypatch.setattr(CudaLauncher, "memory_of", lambda self, value: tensor_memory(value))
    monkeypatch.setattr(type(driver.active), "check_arguments", lambda self, args: None)
    changes: tuple[Callable[[Any], Any], ...] = (
        lambda x: x.set_(torch.zeros(64)),
        lambda x: setattr(x, "data", torch.ones(64)),
        lambda x: setattr(x, "data", torch.ones(64, dtype=torch.float64)),
        lambda x: x.resize_(4096),
        lambda x: x.resize_(0),
        lambda x: x.untyped_storage().resize_(0),
        lambda x: x.untyped_storage().resize_(1 << 16),
        lambda x: x.set_(x.untyped_storage(), 16, (32,), (1,)),
        lambda x: torch.utils.swap_tensors(x, torch.zeros(64)),
        lambda x: setattr(x, "__class__", type("Mine", (torch.Tensor,), {})),
        lambda x: setattr(x, "data", torch.complex(torch.zeros(64), torch.zeros(64)).conj()),
        lambda x: x.requires_grad_(),
        lambda x: x.add_(1),
        torch._lazy_clone,
    )
    for change in changes:
        x, base = torch.zeros(64), torch.zeros(64, 64)
        k = Bound(cuda, six, x, torch.zeros(64), 2, 2, 2, 2)
        k.used()
        kept = change(x)
        for _ in range(3):
            k.same()
        del kept
        desc = TensorDescriptor(base, [64, 64], [64, 1], [8, 32])
        described = Bound(cuda, six, desc, 2, 2, 2, 2, 2)
        described.used()
        kept = change(base)
        for _ in range(3):
            described.same()
        del kept
