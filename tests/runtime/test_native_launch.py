"""Launches in machine code do what the Python path does, and no more."""

# Kernels annotate parameters with values of the language, which are no Python types.
# pyright: reportInvalidTypeForm=false

import copy
import gc
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.python_programs import run_python
from tilework import knobs
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.host.driver import CpuDriver
from tilework.runtime.launch.native import entries as native_entry
from tilework.runtime.launch.native import kernel_launch
from tilework.runtime.launch.native import layout as launcher_layout
from tilework.runtime.launch.native import machine as native_machine
from tilework.runtime.launch.native.code import device_launch as launcher_host
from tilework.runtime.launch.python.specialize import small_address
from tilework.targets.cpu.pipeline import CpuBackend

SCALE = tl.constexpr(3)


def axpy_source(x, y, n, s, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * s + tl.load(y + i, mask=i < n), mask=i < n)


def numbers_source(out, a, b, c, flag, mode: tl.constexpr, wide: tl.int64 = 7):
    if mode == "int":
        tl.store(out, a + b)
    else:
        tl.store(out, tl.where(flag, c, -c))
    tl.store(out + 1, wide)


def positive_source(x, n):
    tl.device_assert(n > 0, "n must be positive")
    tl.store(x + tl.program_id(0), n)


def scaled_source(x):
    tl.store(x, SCALE)


def scratch_source(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0))


@pytest.fixture(autouse=True)
def native(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWORK_DEVICE", "native")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    previous = driver._active
    driver.set_active(CpuDriver())
    if native_machine.machine() is None:
        pytest.fail("this Python has no native launcher")
    yield
    driver.set_active(previous)


class Counted:
    """A kernel whose launches through Python are counted."""

    def __init__(self, function: Any, **settings: Any) -> None:
        self.kernel: Any = tilework.jit(function, **settings)
        self.state = self.kernel[(1,)].__self__[0]
        self.slow = 0
        python = self.state[0]

        def count(*args: Any, **kwargs: Any) -> Any:
            self.slow += 1
            return python(*args, **kwargs)

        self.state[0] = count

    def __getitem__(self, grid: Any) -> Any:
        return self.kernel[grid]


def floats(count: int = 64) -> np.ndarray:
    return np.arange(count, dtype=np.float32)


def axpy() -> tuple[Counted, np.ndarray, np.ndarray]:
    counted, x, y = Counted(axpy_source, debug=True), floats(), np.zeros(64, np.float32)
    counted[(1,)](x, y, 60, 0.5, BLOCK=64)
    assert counted.slow == 1
    y[:] = 0
    return counted, x, y


def test_the_second_launch_runs_no_python() -> None:
    k, x, y = axpy()
    kernel = k[(1,)](x, y, 59, 2.0, BLOCK=64)
    assert k.slow == 1 and kernel.name == "axpy_source"
    np.testing.assert_array_equal(y, np.where(np.arange(64) < 59, x * 2, 0))


def test_other_facts_are_other_kernels() -> None:
    k, x, y = axpy()
    first = k[(1,)](x, y, 60, 0.5, BLOCK=64)
    others = [
        k[(1,)](x, y, 64, 0.5, BLOCK=64),  # a multiple of 16
        k[(1,)](x, y, 1, 0.5, BLOCK=64),
        k[(1,)](x, y, 2**40, 0.5, BLOCK=64),
        k[(1,)](x[1:], y, 60, 0.5, BLOCK=32),  # not aligned
        k[(1,)](x.astype("f8"), y, 60, 0.5, BLOCK=64),
    ]
    assert k.slow == 6 and len({id(kernel) for kernel in (first, *others)}) == 6
    for _ in range(2):
        again = [
            k[(1,)](x, y, 32, 0.5, BLOCK=64),
            k[(1,)](x, y, 1, 0.5, BLOCK=64),
            k[(1,)](x, y, 2**41, 0.5, BLOCK=64),
            k[(1,)](x[1:], y, 29, 0.5, BLOCK=32),
        ]
        assert again == others[:4] and k.slow == 6


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        2**31 - 1,
        -(2**31),
        17,
        16,
        1,
        2**30 - 1,
        2**30,
        1 - 2**30,
        -(2**30),
        2**31,
        -(2**31) - 1,
        2**63 - 1,
        -(2**63),
    ],
)
def test_integers_arrive_whole(value: int) -> None:
    k, out = Counted(numbers_source), np.zeros(2, np.int64)
    for _ in range(2):
        out[:] = 0
        k[(1,)](out, value, 0, 0.5, True, "int", wide=value)
        assert out.tolist() == [value, value]
    assert k.slow == 1


@pytest.mark.parametrize("value", [0.5, -0.0, 1e300, 1e-42, float("inf")])
@pytest.mark.parametrize("flag", [True, False])
def test_floats_and_bools_arrive(value: float, flag: bool) -> None:
    k, out = Counted(numbers_source), np.zeros(2, np.float32)
    with np.errstate(over="ignore"):
        expected = np.float32(value if flag else -value)
    for _ in range(2):
        out[:] = 7
        k[(1,)](out, 3, 4, value, flag, "float")
        assert out[0] == expected and np.signbit(out[0]) == np.signbit(expected) and out[1] == 7
    assert k.slow == 1


def test_constants_are_compared_by_value_and_class() -> None:
    k, out = Counted(numbers_source), np.zeros(2, np.int64)
    k[(1,)](out, 5, 2, 0.5, True, "int")
    k[(1,)](out, 5, 2, 0.5, True, "".join(["in", "t"]))  # an equal text, another object
    assert k.slow == 1
    k[(1,)](out, 5, 2, 0.5, True, "other")
    assert k.slow == 2
    k[(1,)](out, True, 2, 0.5, True, "int")  # a bool is no int
    assert k.slow == 3


def test_keywords_and_defaults() -> None:
    k, out = Counted(numbers_source), np.zeros(2, np.int64)
    k[(1,)](out, a=2, b=3, c=0.5, flag=True, mode="int")
    k[(1,)](out, a=4, b=5, c=0.5, flag=True, mode="int")
    assert k.slow == 1 and out.tolist() == [9, 7]
    k[(1,)](out, b=5, a=6, c=0.5, flag=True, mode="int")  # another order is another call
    assert k.slow == 2 and out.tolist() == [11, 7]
    k[(1,)](out, b=6, a=6, c=0.5, flag=True, mode="int", num_warps=2)
    k[(1,)](out, b=7, a=6, c=0.5, flag=True, mode="int", num_warps=2)
    k[(1,)](out, b=8, a=6, c=0.5, flag=True, mode="int", num_warps=4)
    assert k.slow == 4 and out.tolist() == [14, 7]
    with pytest.raises(TypeError, match="missing"):
        k[(1,)](out)
    with pytest.raises(TypeError, match="grid"):
        k[(1,)](out, 1, 2, 3.0, True, "int", grid=(1,))


def test_callable_grids() -> None:
    k, x, y = axpy()
    seen: list[dict[str, Any]] = []

    def grid(meta: dict[str, Any]) -> tuple[int]:
        seen.append(meta)
        return (-(-meta["n"] // meta["BLOCK"]),)

    k[grid](x, y, 60, 1.0, BLOCK=32)
    k[grid](x, y, 60, 1.0, BLOCK=32)
    assert k.slow == 2 and len(seen) == 2 and [*seen[1]] == ["x", "y", "n", "s", "BLOCK"] and seen[0] == seen[1]
    np.testing.assert_array_equal(y[:60], 2 * x[:60])

    def fails(meta: dict[str, Any]) -> tuple[int]:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        k[fails](x, y, 60, 1.0, BLOCK=32)
    assert k.slow == 2
    with pytest.raises(KeyError, match="did you mean 'BLOCK'"):  # the Python path reports it
        k[lambda meta: (meta["BLOK"],)](x, y, 60, 1.0, BLOCK=32)
    with pytest.raises(KeyError, match=r"^'else'$"):
        k[lambda meta: ({}["else"],)](x, y, 60, 1.0, BLOCK=32)
    assert k.slow == 4


def test_grids() -> None:
    k, x, y = axpy()
    for grid in ((0,), (2, 0, 1), (1, 1), (1, 1, 1)):
        assert k[grid](x, y, 60, 1.0, BLOCK=64).name == "axpy_source"
    assert k.slow == 1
    np.testing.assert_array_equal(y[:60], 2 * x[:60])
    for bad, error in (
        ((-1,), ValueError),
        ((2**31,), ValueError),
        ((1.5,), TypeError),
        ((), ValueError),
        ((1, 1, 1, 1), ValueError),
    ):
        with pytest.raises(error):
            k[bad](x, y, 60, 1.0, BLOCK=64)
    with pytest.raises(ValueError, match="programs"):
        k[(2**30, 2**30, 2**30)](x, y, 60, 1.0, BLOCK=64)


def test_a_long_grid_is_shared(monkeypatch) -> None:
    k, x, y = Counted(axpy_source), floats(1 << 16), np.zeros(1 << 16, np.float32)
    k[(1024,)](x, y, x.size - 1, 1.0, BLOCK=64)
    for s in (1.0, 2.0):
        k[(1024,)](x, y, x.size - 1, s, BLOCK=64)
    assert k.slow == 1
    np.testing.assert_array_equal(y[:-1], 4 * x[:-1])


def test_read_only_arrays_are_refused() -> None:
    k, x, y = axpy()
    y.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        k[(1,)](x, y, 60, 1.0, BLOCK=64)
    y.flags.writeable = True
    x.flags.writeable = False  # only read
    k[(1,)](x, y, 60, 1.0, BLOCK=64)
    assert k.slow == 2 and y[2] == 2


def test_asserts_that_fail() -> None:
    k, x = Counted(positive_source, debug=True), np.zeros(4, np.int32)
    k[(3,)](x, 5)
    with pytest.raises(RuntimeError, match=r"n must be positive.*program"):
        k[(3,)](x, -5)
    k[(3,)](x, 7)
    assert k.slow == 1 and x.tolist() == [7, 7, 7, 0]


def test_hooks_turn_it_off() -> None:
    k, x, y = axpy()
    calls: list[str] = []
    k.kernel.add_pre_run_hook(lambda *args, **kwargs: calls.append("before"))
    k[(1,)](x, y, 60, 1.0, BLOCK=64)
    k.kernel.pre_run_hooks.clear()
    with knobs.runtime.scope():
        knobs.runtime.launch_enter_hook.add(lambda metadata: calls.append("enter"))
        k[(1,)](x, y, 60, 1.0, BLOCK=64)
        knobs.runtime.launch_exit_hook = cast(Any, lambda metadata: calls.append("exit"))
        k[(1,)](x, y, 60, 1.0, BLOCK=64)
    assert calls == ["before", "enter", "enter", "exit"] and k.slow == 4
    k[(1,)](x, y, 60, 1.0, BLOCK=64)
    slow = k.slow
    k[(1,)](x, y, 60, 1.0, BLOCK=64)
    assert k.slow == slow and len(calls) == 4


def test_changed_globals_are_found(monkeypatch) -> None:
    k, x = Counted(scaled_source), np.zeros(1, np.int32)
    for _ in range(3):
        k[(1,)](x)
    assert k.slow == 1 and x[0] == 3
    monkeypatch.setitem(globals(), "SCALE", tl.constexpr(4))
    with pytest.raises(RuntimeError, match="SCALE has changed"):
        k[(1,)](x)


def test_caches_drivers_and_launchers_are_watched() -> None:
    k, x, y = axpy()
    first = k[(1,)](x, y, 60, 1.0, BLOCK=64)
    k.kernel.device_caches.clear()
    second = k[(1,)](x, y, 60, 1.0, BLOCK=64)
    assert second is not first and k.slow == 2
    driver.set_active(CpuDriver())
    assert k[(1,)](x, y, 60, 1.0, BLOCK=64) is second and k.slow == 3
    calls: list[Any] = []
    second._loaded.launch = lambda *args: calls.append(args)
    k[(1,)](x, y, 60, 1.0, BLOCK=64)
    assert len(calls) == 1 and k.slow == 4


def test_the_version_of_triton_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    k, x, y = axpy()
    first = k[(1,)](x, y, 60, 1.0, BLOCK=64)
    assert k.slow == 1
    monkeypatch.setenv("TILEWORK_TRITON_VERSION", "3.8.0")
    knobs.refresh_knobs()
    second = k[(1,)](x, y, 60, 1.0, BLOCK=64)
    assert k.slow == 2 and second.hash != first.hash
    with knobs.language.scope() as language:
        language.triton_version = "3.7.1"
        assert k[(1,)](x, y, 60, 1.0, BLOCK=64) is first and k.slow == 3


def test_scratch_memory_from_the_heap() -> None:
    k, x, out = Counted(scratch_source), floats(4096), np.zeros(4096, np.float32)
    for _ in range(3):
        out[:] = 0
        kernel = k[(1,)](x, out, N=4096)
        np.testing.assert_array_equal(out, np.cumsum(x, dtype=np.float64).astype(np.float32))
    assert kernel.launcher.interface.arena > launcher_host.STACK_ARENA and k.slow == 1


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    k, x, y = Counted(axpy_source), torch.arange(64, dtype=torch.float32), torch.zeros(64)
    for s in (0.5, 1.5):
        k[(1,)](x, y, 60, s, BLOCK=64)
    assert k.slow == 1 and torch.equal(y[:60], 2 * x[:60])
    k[(1,)](x.double(), y, 60, 1.0, BLOCK=64)
    k[(1,)](x[1:], y, 30, 1.0, BLOCK=32)
    k[(1,)](torch.nn.Parameter(x), y, 60, 1.0, BLOCK=64)
    assert k.slow == 4
    k[(1,)](x, y, 60, 1.0, BLOCK=64)
    watched = (x, y, torch.float32)
    before = [sys.getrefcount(item) for item in watched]
    slow = k.slow
    for _ in range(1000):
        k[(1,)](x, y, 60, 1.0, BLOCK=64)
    assert k.slow == slow and [sys.getrefcount(item) for item in watched] == before


@pytest.mark.parametrize("has_exchange", [True, False])
def test_special_tensors_take_the_python_path(has_exchange: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With DLPack's exchange interface, and as with a torch that does not have it."""
    torch = pytest.importorskip("torch")
    if not has_exchange:
        monkeypatch.setattr(native_entry, "exchange_api", lambda cls: None)
    guard = "guard_dlpack" if has_exchange and hasattr(torch.Tensor, "__dlpack_c_exchange_api__") else "guard_tensor"
    k, x, y = Counted(axpy_source), torch.arange(64, dtype=torch.float32), torch.zeros(64)
    found = native_entry.tensor_memory(x)
    assert found is not None and found[0] == guard
    assert native_entry.tensor_memory(torch.zeros(2, 64)[1:]) == found
    negated = torch.complex(x, x).conj().imag
    freed = torch.zeros(64)
    freed.untyped_storage().resize_(0)
    special = (negated, torch.zeros(64, device="meta"), torch.zeros(0))
    assert all(native_entry.tensor_memory(other) is None for other in special)
    k[(1,)](x, y, 60, 0.5, BLOCK=64)
    k[(1,)](torch.complex(x, x).imag, y, 60, 0.5, BLOCK=64)  # every other element of a complex tensor
    slow = k.slow
    for _ in range(2):
        k[(1,)](torch.complex(x, x).imag, y, 60, 0.5, BLOCK=64)
    assert k.slow == slow
    for other in (negated, freed):
        slow = k.slow
        with pytest.raises(ValueError, match=r"negates|has no memory"):
            k[(1,)](other, y, 60, 0.5, BLOCK=64)
        assert k.slow == slow + 1


def test_other_arguments_take_the_python_path() -> None:
    k, x, y = axpy()

    class Sub(np.ndarray):
        pass

    k[(1,)](x.view(Sub), y, 60, 1.0, BLOCK=64)
    k[(1,)](x, y, 60, np.float64(1.0), BLOCK=64)
    assert k.slow == 3 and y[2] == 4
    with pytest.raises(TypeError, match="failed to specialize"):
        k[(1,)](x, y, 60, object(), BLOCK=64)


def test_nothing_leaks() -> None:
    k, x, y = axpy()
    kernel = k[(1,)](x, y, 60, 1.0, BLOCK=64)
    number, scale, grid = 12345678, float("1.25"), (1,)
    watched = (x, y, x.dtype, kernel, number, scale, grid, k.state, k.state[2], None, True, "x", np.ndarray, int, float)

    def calls(count: int) -> None:
        launch = k[grid]
        for _ in range(count):
            launch(x, y, number, scale, BLOCK=64)
            k[lambda meta: grid](x, y, number, scale, BLOCK=64)
            k[(0,)](x, y, number, scale, BLOCK=64)

    calls(10)
    gc.collect()
    before = [sys.getrefcount(item) for item in watched]
    calls(2000)
    gc.collect()
    after = [sys.getrefcount(item) for item in watched]
    assert [b - a for a, b in zip(before, after, strict=True) if abs(b - a) > 20] == []
    assert before[:7] == after[:7]


def many_source(x, n, m, N: tl.constexpr):
    pass


def test_thousands_of_specialisations_launch_in_machine_code() -> None:
    k, x, y = Counted(many_source), floats(64), np.zeros(64)
    first = k[(1,)](x, 2, 2, N=0)
    k.kernel.compile_for = lambda specialization, target, backend, kernels, warmup: kernels.setdefault(
        specialization.key, first
    )
    calls = [(array, n, m, number) for array in (x, y) for n in (2, 16) for m in (2, 16) for number in range(250)]
    for array, n, m, number in calls:
        k[(1,)](array, n, m, N=number)
    slow = k.slow
    assert slow >= len(calls)
    for array, n, m, number in calls:
        k[(1,)](array, n + 32 * (n > 1), m, N=number)
    assert k.slow == slow
    k[(1,)](x, 2, 2, N=250)
    k[(1,)](x, 2, 2, N=True)
    k[(1,)](x, 2, 2, N=1.0)
    assert k.slow == slow + 3


def test_entries_that_never_fit_are_not_made_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    k, x, y = axpy()
    made, describe = [], kernel_launch.describe

    def counted(*args: Any) -> Any:
        made.append(1)
        return describe(*args)

    monkeypatch.setattr(kernel_launch, "describe", counted)
    for _ in range(200):
        k.kernel._globals = dict(k.kernel._globals or {})  # which every entry watches
        k[(1,)](x, y, 60, 1.0, BLOCK=64)
    assert k.slow > 200 and len(made) <= native_entry.TRIES + 200 // native_entry.TRIED_AGAIN + 1
    k[(1,)](x, y, 60, 1.0, BLOCK=32)
    slow = k.slow
    k[(1,)](x, y, 60, 1.0, BLOCK=32)
    assert k.slow == slow


def test_kernels_are_collected() -> None:
    k = axpy()[0]
    assert len(k.state) == launcher_layout.FIRST_ENTRY + 1
    gone = weakref.ref(k.kernel)
    del k
    gc.collect()
    assert gone() is None


def test_a_copy_launches_itself() -> None:
    k, x, y = axpy()
    other = copy.copy(k.kernel)
    assert "_bind_grid" not in vars(other)
    slow = k.slow
    other[(1,)](x, y, 60, 1.0, BLOCK=64)
    assert k.slow == slow and y[2] == 2


def test_several_threads() -> None:
    k, outs = Counted(scratch_source), [np.zeros(4096, np.float32) for _ in range(4)]
    xs = [floats(4096) + i for i in range(4)]
    k[(1,)](xs[0], outs[0], N=4096)
    wrong: list[int] = []

    def work(index: int) -> None:
        expected = np.cumsum(xs[index], dtype=np.float64).astype(np.float32)
        for _ in range(200):
            outs[index][:] = 0
            k[(1,)](xs[index], outs[index], N=4096)
            if not np.allclose(outs[index], expected):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and k.slow == 1


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    program = (
        "from tilework.runtime.launch.native import machine as n; import tilework, tilework.language as tl\n"
        "assert n.machine() is None\n"
        "k = tilework.jit(n.machine)\n"
        "assert type(k[(1,)]).__name__ == 'function'\n"
    )
    environment = {"TILEWORK_NATIVE_LAUNCH": "0", "TILEWORK_DEVICE": "native", "PATH": "", "HOME": str(tmp_path)}
    folder = Path(tilework.__file__).parent.parent
    done = run_python("-c", program, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr


def test_the_record_is_what_the_machine_code_reads() -> None:
    layout = launcher_layout
    assert layout.HEADER.size == layout.CODE == layout.GET_CONTEXT == 136 and layout.GUARD.size == 64
    assert layout.HEADER.size + layout.GPU.size == layout.PARAMETERS
    guard, words = layout.Guard(33, -1, 1, 2, 0, 1, 0, 5, 6, 7, 8), layout.HOST.pack(*range(9))
    groups, empties = ((77, 0, 0, 2),), (99,)
    record = layout.Record(1, 0, 11, 22, words, (guard,), b"12345678", groups, empties, 3, 2**64 - 1, (4,), (-1,))
    data, end = record.pack(), 136 + layout.HOST.size
    header = (1, 0, 1, end + 128, 1, end, 1, end + 72, 11, 22, 1, end + 112, 3, 2**64 - 1, 1, end + 120, end + 64)
    assert layout.HEADER.unpack_from(data) == header
    assert layout.GUARD.unpack_from(data, end) == tuple(guard) and data[136:end] == words
    assert data[end + 64 : end + 72] == b"\xff" * 8
    assert layout.GROUP.unpack_from(data, end + 80) == (77, 0, 0, 2) and data[end + 128 : end + 136] == b"12345678"
    assert data[end + 120 : end + 128] == (4).to_bytes(8, "little")


def test_a_launch_may_outlive_the_modules_of_its_process() -> None:
    """Python reads the definition of a function in machine code whenever it looks at it, also in its last
    collection."""
    program = """
import weakref
from tilework.runtime.launch.native import machine as native_machine
made = native_machine.machine()
definitions = [weakref.ref(part) for part in made or () if isinstance(part, native_machine.MethodDefinition)]
native_machine.MADE.clear()
del made
assert all(definition() for definition in definitions)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_small_arrays_are_looked_at_again(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Code compiled for small arrays is not launched with larger ones."""
    arrays = pytest.importorskip(library)
    monkeypatch.setattr(CpuBackend, "specializes_small_arrays", True)
    requested = list[Any]()
    monkeypatch.setattr(native_entry, "small_address", lambda arg: requested.append(arg) or small_address(arg))
    kernel, x, y = Counted(axpy_source), arrays.ones(64, dtype=arrays.float32), arrays.zeros(64, dtype=arrays.float32)
    for _ in range(3):
        kernel[(1,)](x, y, 32, 1.0, BLOCK=32)
    assert kernel.slow == 1 and bool(requested) == (library == "numpy")  # members of torch's tensors are read
    kernel[(1,)](x[16:], y, 32, 1.0, BLOCK=32)
    assert kernel.slow == 2 and y[0] == 4 and len(next(iter(kernel.kernel.device_caches.values()))[0]) == 2
