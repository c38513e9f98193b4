"""Launches that cannot work, and launches in odd circumstances: an error that says what is wrong, never a crash.

Every case runs twice, because the second launch of a kernel takes the native path where there is one, and on the
evaluator.
"""

import copy
import ctypes
import gc
import multiprocessing
import pickle
import signal
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import add_one
from tilework import compiler, knobs
from tilework.runtime.compile import stages
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.host import driver as host
from tilework.runtime.kernel_cache import managers as cache_files
from tilework.tools.cli import main

pytestmark = pytest.mark.usefixtures("fresh_cache")


@tilework.jit
def nothing(x):
    pass


@tilework.jit(interpret=True)
def interpreted(x, y, n, BLOCK: tl.constexpr = 64):  # pyright: ignore[reportArgumentType]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(y + i, tl.load(x + i, mask=mask) + 1, mask=mask)


def arrays(size: int = 64) -> tuple[Any, Any]:
    return np.arange(size, dtype=np.float32), np.zeros(size, np.float32)


def check(kernel: Any = add_one, **options: Any) -> None:
    x, y = arrays()
    kernel[(1,)](x, y, 64, **options)
    assert (y == x + 1).all()


def refuse(error: Any, match: str, launch: Callable[[], Any]) -> None:
    """The same error for the first launch and for those after a good one."""
    for _ in range(2):
        with pytest.raises(error, match=match):
            launch()
        check()
        check()


BAD_GRIDS: dict[str, tuple[Any, type[Exception], str]] = {
    "none": (None, TypeError, "grid sizes are integers, got None"),
    "empty": ((), ValueError, "one to three sizes"),
    "four sizes": ((1, 1, 1, 1), ValueError, "one to three sizes"),
    "negative": ((-1,), ValueError, "grid size -1"),
    "float": ((1.0,), TypeError, "grid sizes are integers"),
    "text": ("a", TypeError, "grid sizes are integers"),
    "text in a tuple": (("1",), TypeError, "grid sizes are integers"),
    "a dictionary": ({}, TypeError, "grid sizes are integers"),
    "an array": (np.array([1]), TypeError, "grid sizes are integers"),
    "too long an axis": ((2**31,), ValueError, "grid size 2147483648"),
    "a callable that gives None": (lambda meta: None, TypeError, "grid sizes are integers, got None"),
    "a callable that gives floats": (lambda meta: (1.5,), TypeError, "grid sizes are integers"),
}


@pytest.mark.parametrize("name", BAD_GRIDS)
def test_bad_grid(name: str) -> None:
    grid, error, match = BAD_GRIDS[name]
    x, y = arrays()
    refuse(error, match, lambda: add_one[grid](x, y, 64))
    with pytest.raises(error, match=match):
        interpreted[grid](x, y, 64)


@pytest.mark.parametrize("device", ["native", "evaluator"])
def test_a_grid_of_too_many_programs(device: str) -> None:
    knobs.runtime.device = device
    for kernel in (add_one, nothing):
        kernel.device_caches.clear()
    match = "has 9903520300447984150353281023 programs; at most 2147483648 can be run"
    with pytest.raises(ValueError, match=match):
        nothing[(2**31 - 1,) * 3](1)
    with pytest.raises(ValueError, match=match):
        nothing[(2**31 - 1,) * 3](1)


@pytest.mark.parametrize(
    "grid", [(np.int64(1),), (True,), [1], 1, (tl.constexpr(1),), lambda meta: [1], lambda meta: 1]
)
def test_odd_grids_that_work(grid: Any) -> None:
    for kernel in (add_one, interpreted):
        x, y = arrays()
        for _ in range(2):
            y[:] = 0
            kernel[grid](x, y, 64)
            assert (y == x + 1).all()


def test_an_error_in_a_callable_grid_is_the_users() -> None:
    x, y = arrays()
    refuse(ZeroDivisionError, "division", lambda: add_one[lambda meta: (1 // 0,)](x, y, 64))
    refuse(TypeError, "positional argument", lambda: add_one[lambda: (1,)](x, y, 64))


@pytest.mark.parametrize("kernel", [add_one, interpreted], ids=["compiled", "interpreted"])
def test_wrong_counts_of_arguments(kernel: Any) -> None:
    x, y = arrays()
    refuse(TypeError, "missing", lambda: kernel[(1,)](x, y))
    refuse(TypeError, "positional arguments", lambda: kernel[(1,)](x, y, 64, 64, 5))
    refuse(TypeError, "multiple values", lambda: kernel[(1,)](x, y, 64, n=64))
    refuse(KeyError, "blok", lambda: kernel[(1,)](x, y, 64, blok=64))


@pytest.mark.parametrize("option", ["num_warps", "num_stages", "num_ctas"])
@pytest.mark.parametrize("value", ["4", 4.0, [4]])
def test_options_that_are_not_integers(option: str, value: Any) -> None:
    x, y = arrays()
    refuse(TypeError, f"{option} must be an int", lambda: add_one[(1,)](x, y, 64, **{option: value}))
    check(**{option: np.int64(1)})


class Subclass(np.ndarray[Any, Any]):
    pass


class Exporter:
    """Memory that can be had through DLPack only."""

    def __init__(self, array: Any, kind: int = 1) -> None:
        self.array, self.kind = array, kind

    def __dlpack__(self, **settings: Any) -> Any:
        return self.array.__dlpack__(**settings if self.kind == 1 else {})

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.kind, 0)


def read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


GOOD_INPUTS: dict[str, Callable[[Any], Any]] = {
    "a subclass": lambda x: x.view(Subclass),
    "a masked array": lambda x: np.ma.array(x),
    "a matrix": lambda x: np.matrix(x),
    "read-only": read_only,
    "DLPack only": Exporter,
    "float64": lambda x: x.astype(np.float64),
    "integers": lambda x: x.astype(np.int16),
    "one byte of any order": lambda x: x.astype(">i1"),
    "a part": lambda x: np.concatenate([x[:3], x])[3:],
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("device", ["native", "evaluator"])
@pytest.mark.parametrize("name", GOOD_INPUTS)
def test_input(name: str, device: str) -> None:
    knobs.runtime.device = device
    add_one.device_caches.clear()
    x, y = arrays()
    given = GOOD_INPUTS[name](x.copy())
    for kernel in (add_one, add_one, interpreted):
        y[:] = 0
        kernel[(1,)](given, y, 64)
        assert (y == x + 1).all()


def test_outputs_through_dlpack_and_subclasses() -> None:
    x, y = arrays()
    for out in (Exporter(y), y.view(Subclass), y.reshape(8, 8)):
        for _ in range(2):
            y[:] = 0
            add_one[(1,)](x, out, 64)
            assert (y == x + 1).all()


def test_negative_strides_point_at_the_first_element() -> None:
    x, y = arrays()
    for _ in range(2):
        add_one[(1,)](x[::-1], y, 1)
        assert y[0] == 64 and not y[1:].any()


def test_empty_and_zero_dimensional_arrays() -> None:
    for _ in range(2):
        add_one[(1,)](np.zeros(0, np.float32), np.zeros(0, np.float32), 0)
        out = np.array(0, np.float32)
        add_one[(1,)](np.array(4, np.float32), out, 1)
        assert out == 5


BAD_INPUTS: dict[str, tuple[Callable[[Any], Any], Any, str]] = {
    "byte-swapped": (lambda x: x.astype(">f4"), TypeError, "byte order"),
    "structured": (lambda x: np.zeros(64, [("a", "f4")]), TypeError, "element type"),
    "objects": (lambda x: x.astype(object), TypeError, "element type object"),
    "complex": (lambda x: x.astype(np.complex64), TypeError, "element type complex64"),
    "text": (lambda x: np.array(["a"]), TypeError, "element type"),
    "dates": (lambda x: np.zeros(64, "M8[s]"), TypeError, "element type"),
    "a list": (lambda x: [1.0], TypeError, "failed to specialize argument of type: list"),
    "bytes": (lambda x: b"abc", TypeError, "failed to specialize argument of type: bytes"),
    "a string": (lambda x: "abc", TypeError, "failed to specialize argument of type: str"),
    "a NumPy number that Python compares with nothing": (
        lambda x: np.complex64(1),
        TypeError,
        "argument of type: complex64",
    ),
    "a complex number": (lambda x: 1j, TypeError, "failed to specialize argument of type: complex"),
    "a class": (lambda x: np.float32, TypeError, "failed to specialize argument of type: type"),
    "a list in a tuple": (lambda x: ((1, [2]),), TypeError, "failed to specialize argument of type: list"),
    "DLPack of a GPU": (lambda x: Exporter(x, 2), ValueError, "DLPack"),
    "DLPack of another kind of device": (lambda x: Exporter(x, 7), ValueError, "DLPack's kind 7|DLPack device 7"),
    "beyond 64 bits": (lambda x: 2**64, OverflowError, "64 bits"),
    "below 64 bits": (lambda x: -(2**63) - 1, OverflowError, "64 bits"),
}


@pytest.mark.parametrize("name", BAD_INPUTS)
def test_bad_input(name: str) -> None:
    make, error, match = BAD_INPUTS[name]
    x, y = arrays()
    refuse(error, match, lambda: add_one[(1,)](make(x), y, 64))
    with pytest.raises(error, match=match):
        interpreted[(1,)](make(x), y, 64)


def test_a_value_that_no_launcher_takes() -> None:
    @tilework.jit
    def kernel(out, x: "fp8e5"):  # pyright: ignore[reportUndefinedVariable]  # noqa: F821
        tl.store(out, x.to(tl.float32))

    refuse(TypeError, "parameter 1 of kernel is f8E5M2", lambda: kernel[(1,)](np.zeros(1, np.float32), 2.0))


@pytest.mark.parametrize("given", [None, 64, 2.5])
def test_numbers_where_memory_is_needed(given: Any) -> None:
    _, y = arrays()
    refuse(tilework.CompilationError, "pointer|operands", lambda: add_one[(1,)](given, y, 64))


def test_a_tensor_without_memory() -> None:
    """torch gives the address 0 for freed storages, fake tensors and meta tensors."""
    _, y = arrays()
    refuse(ValueError, r"shape \(64,\) has no memory", lambda: add_one[(1,)](Foreign(0), y, 64))
    refuse(ValueError, r"shape \(1,\) has no memory", lambda: add_one[(1,)](tilework.MockTensor(np.dtype("f4")), y, 64))


class Foreign:
    """An object with `data_ptr()`, as torch's tensors are."""

    def __init__(self, address: int, device: Any = None) -> None:
        self.address, self.device = address, device
        self.dtype, self.shape = np.dtype("f4"), (64,)

    def data_ptr(self) -> int:
        return self.address


def gpu_array() -> Any:
    return Foreign(4096, SimpleNamespace(type="cuda"))


@tilework.jit
def first_of(pair, out):
    tl.store(out, tl.load(pair[0]))


def test_gpu_memory_is_found_in_tuples_descriptors_and_wrappers() -> None:
    check = host.CpuDriver().check_arguments
    descriptor = SimpleNamespace(base=gpu_array(), block_shape=[16])
    for arg in ((1, gpu_array()), (1, ((gpu_array(),),)), descriptor, tilework.TensorWrapper(gpu_array(), tl.int32)):
        with pytest.raises(ValueError, match=r"Pointer argument \(at 1\) cannot be accessed from Triton"):
            check((None, arg))
    check((None, (1, np.zeros(3)), SimpleNamespace(base=np.zeros(3), block_shape=[16])))
    out = np.zeros(1, "f4")
    first_of[(1,)]((np.ones(1, "f4"),), out)
    with pytest.raises(ValueError, match="cannot be accessed"):
        first_of[(1,)]((gpu_array(),), out)
    assert out[0] == 1


def torch_cases(torch: Any) -> dict[str, tuple[Callable[[], Any], Any, str]]:
    def freed() -> Any:
        tensor = torch.ones(64)
        tensor.untyped_storage().resize_(0)
        return tensor

    return {
        "sparse": (lambda: torch.eye(64).to_sparse(), ValueError, "no memory that a kernel can read"),
        "meta": (lambda: torch.zeros(64, device="meta"), ValueError, "on the device meta"),
        "complex": (lambda: torch.zeros(64, dtype=torch.complex64), TypeError, "element type torch.complex64"),
        "conjugated": (lambda: torch.zeros(64, dtype=torch.complex64).conj(), TypeError, "element type"),
        "imaginary part": (lambda: torch.ones(64, dtype=torch.cfloat).conj().imag, ValueError, "resolve_neg"),
        "restrided": (
            lambda: torch.ones(64, dtype=torch.cfloat).conj().imag.as_strided((64,), (1,)),
            ValueError,
            "resolve_neg",
        ),
        "zeros without memory": (lambda: torch._efficientzerotensor(64), ValueError, "has no memory"),
        "freed": (freed, ValueError, "has no memory"),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["sparse", "meta", "complex", "conjugated", "imaginary part", "restrided", "zeros without memory", "freed"]
)
def test_torch_tensor_that_cannot_be_used(name: str) -> None:
    torch = pytest.importorskip("torch")
    make, error, match = torch_cases(torch)[name]
    x, y = torch.arange(64, dtype=torch.float32), torch.zeros(64)
    unaligned = torch.arange(65, dtype=torch.float32)[1:]  # as an imaginary part is
    for _ in range(3):
        add_one[(1,)](unaligned, y, 64)
        add_one[(1,)](x, y, 64)
        with pytest.raises(error, match=match):
            add_one[(1,)](make(), y, 64)
        with pytest.raises(error, match=match):
            add_one[(1,)](x, make(), 64)
    assert (y == x + 1).all()


@pytest.mark.filterwarnings("ignore")
def test_torch_tensors_with_gradients_and_parameters() -> None:
    torch = pytest.importorskip("torch")
    y = torch.zeros(64)
    leaf = torch.ones(64, requires_grad=True)
    for given in (leaf, leaf * 1, torch.nn.Parameter(torch.ones(64)), torch.ones(1).expand(64).contiguous()):
        for _ in range(2):
            y.zero_()
            add_one[(1,)](given, y, 64)
            assert (y == 2).all()
    add_one[(1,)](torch.zeros(0), torch.zeros(0), 0)


def test_pickled_by_name() -> None:
    for kernel in (add_one, interpreted):
        assert pickle.loads(pickle.dumps(kernel)) is kernel
    local = tilework.jit(add_one.fn)
    with pytest.raises(pickle.PicklingError, match="not the same object"):
        pickle.dumps(local)


def test_copies_are_kernels() -> None:
    check()
    for make in (copy.copy, copy.deepcopy):
        for kernel in (add_one, interpreted):
            made = make(kernel)
            assert made is not kernel and made.fn is kernel.fn
            check(made)
    assert copy.deepcopy({"kernel": add_one})["kernel"].cache_key == add_one.cache_key


def test_a_kernel_that_is_deleted_during_its_launch() -> None:
    kernels = {"one": tilework.jit(add_one.fn)}
    kernels["one"].add_pre_run_hook(lambda *args, **kwargs: (kernels.clear(), gc.collect()))
    check(kernels["one"])
    assert not kernels
    kernels["one"] = tilework.jit(add_one.fn)
    x, y = arrays()
    launch = kernels.pop("one")[(1,)]
    for _ in range(3):
        gc.collect()
        launch(x, y, 64)
    assert (y == x + 1).all()


@pytest.mark.parametrize("device", ["native", "evaluator"])
def test_eight_threads_compile_and_launch_the_same_kernel(device: str) -> None:
    knobs.runtime.device = device
    kernel = tilework.jit(add_one.fn)
    barrier, errors = threading.Barrier(8), []

    def work(number: int) -> None:
        try:
            barrier.wait()
            for size in range(1, 6):
                x, y = arrays(16 * size + number)
                kernel[(2,)](x, y, x.size, BLOCK=64)
                assert (y == x + 1).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def child_launches(results: Any) -> None:
    x, y = arrays(4096)
    add_one[(64,)](x, y, 4096)
    nothing[(1,)](x)
    results.put(bool((y == x + 1).all()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_after_launches() -> None:
    x, y = arrays(4096)
    for _ in range(3):
        add_one[(64,)](x, y, 4096)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=child_launches, args=(results,))
    child.start()
    child.join(120)
    alive = child.is_alive()
    if alive:
        child.kill()
    assert not alive and child.exitcode == 0 and results.get()
    check()


def broken(*args: Any, **kwargs: Any) -> Any:
    raise LookupError("the hook")


@pytest.mark.parametrize(
    "hook",
    [
        "pre_run",
        "launch_enter_hook",
        "launch_exit_hook",
        "jit_cache_hook",
        "jit_post_compile_hook",
        "kernel_load_start_hook",
        "kernel_load_end_hook",
        "grid",
    ],
)
def test_hooks_that_raise(hook: str) -> None:
    """The error is the user's own, and the next launch works."""
    x, y = arrays()
    grid: Any = (1,)
    with knobs.runtime.scope():
        if hook == "pre_run":
            add_one.add_pre_run_hook(broken)
        elif hook == "grid":
            grid = broken
        elif hook.startswith("jit"):
            setattr(knobs.runtime, hook, broken)
        else:
            getattr(knobs.runtime, hook).add(broken)
        for _ in range(2 if not hook.startswith(("jit_post", "kernel_load")) else 1):
            with pytest.raises(LookupError, match="the hook"):
                add_one[grid](x, y, 64)
    add_one.pre_run_hooks.clear()
    check()
    check()


def interrupt(*args: Any, **kwargs: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["frontend", "stages", "storing", "loading"])
def test_an_interrupted_compilation_is_done_again(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = arrays()
    offsets: dict[str, tuple[Any, str]] = {
        "frontend": (compiler.ASTSource, "module"),
        "stages": (stages, "stage_data"),
        "storing": (cache_files.os, "write"),
        "loading": (host.CpuDriver, "load_binary"),
    }
    with monkeypatch.context() as patched:
        patched.setattr(*offsets[where], interrupt)
        with pytest.raises(KeyboardInterrupt):
            add_one[(1,)](x, y, 64)
    check()
    assert main(["cache", "verify", "--dir", str(knobs.cache.dir)]) == 0


def test_ctrl_c_ends_a_long_launch_of_short_programs() -> None:
    """The launch itself is machine code; the signal is seen when it returns, and nothing hangs."""
    x, y = arrays()
    check()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored below nohup and `&`
    timer = threading.Timer(0.05, lambda: ctypes.pythonapi.PyErr_SetInterrupt())
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            add_one[(1,)](x, y, 64)
    timer.join()
    signal.signal(signal.SIGINT, before)
    check()


def test_the_driver_may_change_between_launches() -> None:
    check()
    old = driver._active
    try:
        driver.set_active(host.CpuDriver())
        check()
    finally:
        driver.set_active(old)
    check()
