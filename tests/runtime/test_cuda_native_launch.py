"""Launches on CUDA in machine code hand the driver the same bytes as the Python path does, and no more."""

# Kernels annotate parameters with values of the language, which are no Python types.
# pyright: reportInvalidTypeForm=false

import ctypes
import gc
import sys
import threading
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulated_cuda import emulated_cuda
from tilework import knobs
from tilework.knobs import cuda_tools
from tilework.runtime.devices import dlpack
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.device import GPUS as cuda_device
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.cuda.driver import CudaLauncher
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.runtime.devices.emulated.emulated_library import Result
from tilework.runtime.devices.launcher import NullAllocator, set_allocator
from tilework.runtime.launch.native import machine as native_machine
from tilework.runtime.launch.native.entries import tensor_memory
from tilework.targets import driver_library
from tilework.targets.nvidia import libcuda
from tilework.tools.tensor_descriptor import TensorDescriptor

SCALE = tl.constexpr(3)
Pair = namedtuple("Pair", "first second")


def six(a, b, c, d, e, f, MODE: tl.constexpr = "plain"):  # pyright: ignore[reportArgumentType]
    pass


def scaled(p, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, tl.load(p + i, mask=i < n) * SCALE, mask=i < n)


def copied(source, target, row, BLOCK: tl.constexpr):
    target.store([row, 0], source.load([row, 0]))


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatedCuda]:
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)  # no ptxas: the driver gets PTX
    with knobs.cache.scope(), emulated_cuda(devices=2) as library:
        knobs.cache.dir = str(tmp_path)
        if native_machine.machine() is None:
            pytest.fail("this Python has no native launcher")
        yield library


class Counted:
    """A kernel whose launches through Python are counted."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.kernel: Any = function if isinstance(function, tilework.JITFunction) else tilework.jit(function)
        self.options, self.slow = options, 0
        self.state = self.kernel[(1,)].__self__[0]
        python = self.state[0]

        def count(*args: Any, **kwargs: Any) -> Any:
            self.slow += 1
            return python(*args, **kwargs)

        self.state[0] = count

    def __call__(self, *args: Any, grid: Any = (1,), **kwargs: Any) -> Any:
        return self.kernel[grid](*args, **kwargs, **self.options)


def array(count: int = 64, dtype: str = "f4") -> DeviceArray:
    return DeviceArray.of(np.arange(count).astype(dtype))


class Interface:
    """An array of another library."""

    def __init__(self, base: DeviceArray, typestr: str = "<f4", first: int = 0) -> None:
        self.base, self.typestr, self.first = base, typestr, first

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.base.shape,
            "typestr": self.typestr,
            "data": (self.base.data_ptr() + self.first, False),
            "version": 3,
        }


NEW_CAPSULE = ctypes.pythonapi.PyCapsule_New
NEW_CAPSULE.restype, NEW_CAPSULE.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Exporter:
    """An array of another library, where DLPack alone describes bf16, as in JAX."""

    dtype = tl.bfloat16

    def __init__(self, base: DeviceArray, code: int = 4, bits: int = 16) -> None:
        self.tensor = dlpack.Tensor(base.data_ptr() - 32, dlpack.CUDA, 0, 1, code, bits, 1, None, None, 32)
        self.base, self.streams = base, list[int]()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.tensor.code == 4:
            raise AttributeError("there is no letter for bf16")
        return Interface(self.base).__cuda_array_interface__

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CUDA, 0

    def __dlpack__(self, *, stream: int) -> Any:
        self.streams.append(stream)
        return NEW_CAPSULE(ctypes.addressof(self.tensor), b"dltensor", None)


def as_python_does(cuda: EmulatedCuda, k: Counted, *args: Any, slow: int | None = None, **kwargs: Any) -> None:
    """Launch natively and through Python; both give the driver the same."""
    before = k.slow
    k(*args, **kwargs)
    if slow is not None:
        assert k.slow - before == slow
    native = cuda.launches.pop()
    k.kernel.run(*args, grid=kwargs.pop("grid", (1,)), **kwargs, **k.options)
    assert native == cuda.launches.pop()


KINDS: dict[str, Callable[[], list[tuple[Any, ...]]]] = {
    "arrays": lambda: [(array(), array(8), array(), array(), array(), array()) for _ in range(2)],
    "integers": lambda: [(array(), 3, -5, 2**40 + 1, 16, 1), (array(), 7, 9, 2**41 + 1, 48, 1)],
    "floats": lambda: [(array(), 0.5, 1.5, True, False, None), (array(), 1e300, -0.0, False, True, None)],
    "interfaces": lambda: [(Interface(array()), array(), 2, 2, 2, 2) for _ in range(2)],
    "exports": lambda: [(Exporter(array(), 2, 32), Exporter(array()), array(), 2, 2, 2) for _ in range(2)],
    "tuples": lambda: [
        (array(), (array(), 5, (0.5, 1, None)), Pair(array(), 3), (), 2, 2),
        (array(), (array(), 6, (2.5, 1, None)), Pair(array(), 7), (), 3, 2),
    ],
    "descriptors of exports": lambda: [
        (TensorDescriptor(Exporter(array()), [16, 16], [16, 1], [8, 16]), 2, 2, 2, 2, 2) for _ in range(2)
    ],
    "constants": lambda: [(array(), 1, None, 2, 3, 4)] * 2,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_driver_is_given_the_same(cuda: EmulatedCuda, kind: str) -> None:
    k = Counted(six)
    first, second = KINDS[kind]()
    k(*first)
    assert k.slow == 1
    as_python_does(cuda, k, *second, slow=0)
    as_python_does(cuda, k, *second, grid=(3, 2, 1), slow=0)
    as_python_does(cuda, k, *first, grid=lambda meta: (5 if "f" in meta else 4, 1), slow=0)


@pytest.mark.parametrize("kind", [(4, 16), (2, 32)])
def test_every_launch_waits_for_what_another_library_still_does_with_its_array(
    cuda: EmulatedCuda, kind: tuple[int, int]
) -> None:
    """DLPack lets the owner order its work and the launch's; ``__cuda_array_interface__``, if it has that too, does
    not."""
    k, given = Counted(six), Exporter(array(), *kind)
    for launches in range(1, 4):
        before = len(given.streams)
        k(given, array(), 2, 2, 2, 2)
        assert k.slow == 1 and len(given.streams) > before, launches


def halves(a: tl.float16, b: tl.bfloat16, out):
    tl.store(out, a.to(tl.float32) + b)


def test_numbers_of_16_bits(cuda: EmulatedCuda) -> None:
    k, out = Counted(halves), array(4)
    for a, b in (
        (0.0, 1.0),
        (1.0 + 2**-11, 1.0 + 2**-8),
        (-0.0, 1e39),
        (65520.0, -1e-42),
        (2**-25 * 1.5, float("nan")),
        (1e9, 3.3),
    ):
        as_python_does(cuda, k, a, b, out)
    assert k.slow == 1


def blocks(x, out, n, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [n], [1], [BLOCK])
    tl.store(out + tl.arange(0, BLOCK), source.load([0]))


def test_scratch_memory_is_requested_at_every_launch(cuda: EmulatedCuda) -> None:
    k, x, out = Counted(blocks, BLOCK=32), array(), array()
    requested: list[tuple[int, int, int]] = []
    room = DeviceArray(4096, "u1")

    def allocate(size: int, alignment: int, stream: int | None) -> Any:
        requested.append((size, alignment, stream or 0))
        if len(requested) > 10:
            raise MemoryError("no more")
        return room

    set_allocator(allocate)
    try:
        k(x, out, 64)
        as_python_does(cuda, k, x, out, 48, grid=(2,), slow=0)
        stream = cuda_device.Stream()
        with cuda_device.stream(stream):
            as_python_does(cuda, k, x, out, 32, slow=0)
        (size, alignment, _), *rest = requested
        assert rest == [(2 * size, alignment, 0)] * 2 + [(size, alignment, stream.cuda_stream)] * 2
        references = sys.getrefcount(room)
        for _ in range(5):
            k(x, out, 64)
        assert sys.getrefcount(room) == references
        with pytest.raises(MemoryError, match="no more"):
            k(x, out, 64)
    finally:
        set_allocator(NullAllocator())
    with pytest.raises(RuntimeError, match="no allocator was set"):
        k(x, out, 64)


def test_other_facts_take_the_python_path(cuda: EmulatedCuda) -> None:
    k, x = Counted(six), array()
    k(x, 3, 0.5, (x, 2), True, None)
    for args in (
        (array(64, "i4"), 3, 0.5, (x, 2), True, None), (x, 16, 0.5, (x, 2), True, None), (x, 3, 2, (x, 2), True, None),
        (x, 3, 0.5, (x, 2, 2), True, None), (x, 3, 0.5, (x, 16), True, None), (x, 3, 0.5, [x, 2], True, None),
        (x, 3, 0.5, (x, 2), 1, None), (x, 3, 0.5, (x, 2), True, x), (Interface(x), 3, 0.5, (x, 2), True, None),
        (Interface(x, "<i4"), 3, 0.5, (x, 2), True, None),
    ):  # fmt: skip
        before = k.slow
        if isinstance(args[3], list):
            with pytest.raises(TypeError, match="failed to specialize"):
                k(*args)
        else:
            as_python_does(cuda, k, *args)
        assert k.slow == before + 1
    as_python_does(cuda, k, x, 3, 0.5, (x, 2), True, None, slow=0)


def test_torch_tensors_are_read_through_dlpack(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    # without a GPU: memory that the emulated driver takes for its own
    monkeypatch.setattr(CudaLauncher, "memory_of", lambda self, value: tensor_memory(value))
    monkeypatch.setattr(type(driver.active), "check_arguments", lambda self, args: None)
    k, x, whole = Counted(six), torch.zeros(64), torch.zeros(100)
    k(x, x, 2, 2, 2, 2)
    as_python_does(cuda, k, torch.zeros(7), whole[48:], 2, 2, 2, 2, slow=0)
    shared = torch._lazy_clone(whole)  # torch copies when it is asked for the address
    as_python_does(cuda, k, x, shared, 2, 2, 2, 2, slow=0)
    assert shared.data_ptr() != whole.data_ptr()
    as_python_does(cuda, k, x, whole[1:], 2, 2, 2, 2, slow=1)  # not aligned
    freed = torch.zeros(64)
    k(freed, x, 2, 2, 2, 2)
    freed.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="its storage was freed"):
        k(freed, x, 2, 2, 2, 2)
    as_python_does(cuda, k, torch.zeros(0), x, 2, 2, 2, 2, slow=1)
    before = [sys.getrefcount(item) for item in (x, torch.float32)]
    for _ in range(300):
        k(x, whole[48:], 2, 2, 2, 2)
    assert [sys.getrefcount(item) for item in (x, torch.float32)] == before

    class Sub(torch.Tensor):
        pass

    as_python_does(cuda, k, x.as_subclass(Sub), x, 2, 2, 2, 2, slow=1)
    tensors = [torch.zeros(64, 64) for _ in range(4)]
    moved, target = (TensorDescriptor(base, base.shape, base.stride(), [8, 32]) for base in tensors[:2])
    copy = Counted(copied, BLOCK=32)
    copy(moved, target, 8)
    for change in (lambda: moved.base.set_(tensors[2]), lambda: setattr(moved.base, "data", tensors[3])):
        as_python_does(cuda, copy, moved, target, 8, slow=0)
        change()
    as_python_does(cuda, copy, moved, target, 8, slow=0)


def test_streams_devices_and_threads(cuda: EmulatedCuda) -> None:
    k, x = Counted(scaled, BLOCK=64), array()
    k(x, 60)
    stream = cuda_device.Stream()
    with cuda_device.stream(stream):
        k(x, 60)
    assert cuda.launches[-1].stream == stream.cuda_stream and k.slow == 1
    k(x, 60)
    assert cuda.launches[-1].stream == 0 and k.slow == 1
    cuda_device.synchronize()
    np.testing.assert_array_equal(x.numpy()[:60], np.arange(60, dtype="f4") * 27)
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            cuda_device.set_device(number)
            mine, stream_of = array(), cuda_device.Stream()
            with cuda_device.stream(stream_of):
                for _ in range(7):
                    k(mine, 60)
                assert (mine.numpy()[:60] == np.arange(60) * 3**7).all()
        except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number % 2,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    assert k.slow <= 1 + 8, "a thread or a device needs one launch to be known"


STREAM = """
define i32 @current(i32 %kind, i32 %device, ptr %stream) {
  %handle = add i64 HANDLE, 0
  %wide = sext i32 %device to i64
  %sum = add i64 %handle, %wide
  store i64 %sum, ptr %stream
  %code = sub i32 %kind, 2
  ret i32 %code
}
"""


def test_the_stream_may_come_from_machine_code(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilework.targets.llvm.compile import to_object
    from tilework.targets.llvm.object_loader import load_object

    cuda_device.ensure_context()
    stream = cuda_device.Stream()
    code = load_object(to_object(STREAM.replace("HANDLE", str(stream.cuda_stream + 3))), ["current"])
    call = (driver.active.get_current_stream, -3, (code["current"], dlpack.CUDA))
    monkeypatch.setattr(type(driver.active), "stream_call", lambda self: call)
    k, x = Counted(scaled, BLOCK=64), array()
    k(x, 60)
    k(x, 60)
    assert [launch.stream for launch in cuda.launches] == [0, stream.cuda_stream] and k.slow == 1


def test_a_graph_records_native_launches(cuda: EmulatedCuda) -> None:
    k, x = Counted(scaled, BLOCK=64), array()
    k(x, 60)
    graph = cuda_device.CUDAGraph()
    with cuda_device.graph(graph):
        k(x, 60)
    assert k.slow == 1
    graph.replay()
    graph.replay()
    np.testing.assert_array_equal(x.numpy()[:60], np.arange(60, dtype="f4") * 27)


@pytest.mark.parametrize(
    ("options", "attributes"),
    [
        ({"launch_pdl": True}, {libcuda.LAUNCH_PROGRAMMATIC: 1}),
        ({"launch_cooperative_grid": True}, {driver_library.LAUNCH_COOPERATIVE: 1}),
        ({"num_ctas": 2}, {libcuda.LAUNCH_CLUSTER: (2, 1, 1), libcuda.LAUNCH_CLUSTER_POLICY: 1}),
        ({"num_warps": 8}, {}),
    ],
)
def test_attributes(cuda: EmulatedCuda, options: dict[str, Any], attributes: dict[int, Any]) -> None:
    k = Counted(six, **options)
    args = (array(), 2, 2, 2, 2, 2)
    k(*args)
    as_python_does(cuda, k, *args, grid=(3,), slow=0)
    k(*args)
    assert cuda.launches[-1].attributes == attributes


def test_a_compiled_kernel_is_launched_again_and_again(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    x, other, stream = array(), array(), cuda_device.Stream()
    kernel = tilework.jit(scaled).warmup(x, 60, BLOCK=64, grid=(1,))
    run, slow = kernel.run, []
    start = CudaLauncher.start
    monkeypatch.setattr(CudaLauncher, "start", lambda *args: (slow.append(args), start(*args))[1])
    rest = (kernel.function, kernel.packed_metadata, None, None, None)
    for handle in (0, stream.cuda_stream, 0, stream.cuda_stream):
        for grid in ((1, 1, 1), (2, 1, 1)):
            run(*grid, handle, *rest, x, 60, 64)
            assert (cuda.launches[-1].stream, cuda.launches[-1].grid) == (handle, grid)
            run(*grid, handle, *rest, other, 50, 64)
    assert len(slow) == 2
    cuda_device.synchronize()
    np.testing.assert_array_equal(x.numpy()[:60], np.arange(60, dtype="f4") * 3**8)
    seen: list[Any] = []
    run(1, 1, 1, 0, *rest[:2], "metadata", seen.append, seen.append, x, 60, 64)
    assert seen == ["metadata", "metadata"] and len(slow) == 3
    with pytest.raises(TypeError, match="takes 3 arguments"):
        run(1, 1, 1, 0, *rest, x, 60)
    with pytest.raises(libcuda.CudaError, match="1 x 70000 x 1 blocks"):
        run(1, 70000, 1, 0, *rest, x, 60, 64)


def test_errors_of_the_driver(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    k, x = Counted(scaled, BLOCK=64), array()
    k(x, 60)

    def errors(*args: Any, **kwargs: Any) -> set[tuple[type, str]]:
        found = set()
        for call in (k, lambda *args, grid=(1,): k.kernel.run(*args, grid=grid, BLOCK=64)):
            with pytest.raises(Exception) as caught:  # noqa: PT011 - both are compared
                call(*args, **kwargs)
            found.add((caught.type, str(caught.value)))
        return found

    for grid in ((1, 70000), (1, 1, 65536)):
        assert len(errors(x, 60, grid=grid)) == 1
    assert k.slow == 1
    cuda.failure = Result.ILLEGAL_ADDRESS  # a kernel has crashed: the context is dead
    ((kind, text),) = errors(x, 60)
    assert (
        kind is libcuda.CudaError
        and "illegal memory access" in text
        and "A kernel that was launched before did this" in text
    )
    cuda.failure = Result.OK
    k(x, 60)
    cuda.thread.context = None  # as in a thread that has not used a device
    k(x, 60)
    assert cuda.launches and k.slow == 2


def test_what_changes_is_seen(cuda: EmulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    k, x, seen = Counted(scaled, BLOCK=64), array(), []
    k(x, 60)

    def hook(metadata: Any) -> None:
        seen.append(metadata.get()["name"])

    knobs.runtime.launch_enter_hook.add(hook)
    k(x, 60)
    knobs.runtime.launch_enter_hook.remove(hook)
    assert seen == ["scaled"] and k.slow == 2
    k(x, 60)
    monkeypatch.setitem(globals(), "SCALE", tl.constexpr(4))
    with pytest.raises(RuntimeError, match="SCALE has changed"):
        k(x, 60)
    monkeypatch.undo()
    monkeypatch.setattr(cuda_tools, "find_tool", lambda *args: None)
    before = k.slow
    k(x, 60)
    driver.set_active(type(driver.active)())
    k(x, 60)
    assert k.slow == before + 1

    def broken(meta: Any) -> Any:
        raise LookupError("grid")

    for _ in range(3):
        with pytest.raises(LookupError, match="grid"):
            k(x, 60, grid=broken)
    launches = len(cuda.launches)
    k(x, 60, grid=(0,))
    assert len(cuda.launches) == launches


def test_nothing_leaks(cuda: EmulatedCuda) -> None:
    k, x = Counted(six), array()
    source = TensorDescriptor(x, [64], [1], [16])
    args = (x, Interface(x), (x, 12345678), source, 0.125, True)
    k(*args)
    k(*args)
    assert k.slow == 1
    watched = (x, *args[:5], x.dtype, source.shape, k.state[2], *filter(None, k.state[2]), driver.active)
    cuda.launches.clear()
    cuda_device.synchronize()
    gc.collect()
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(500):
        k(*args)
        k(*args, grid=lambda meta: (1,))
    cuda.launches.clear()
    cuda_device.synchronize()
    gc.collect()
    assert k.slow == 1 and [sys.getrefcount(item) for item in watched] == before
