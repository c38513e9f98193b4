"""``TILEWORK_DEVICE=emulator``: programs as they are on an emulated GPU, with ordinary arrays; what it finds and
counts."""

import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
import tilework.testing
from tests.runtime.emulator_fixture import emulator
from tilework import knobs
from tilework.errors import PerformanceWarning, SanitizerError
from tilework.runtime.devices.active_driver import default_driver
from tilework.tools.tensor_descriptor import TensorDescriptor


def line_of(text: str) -> int:
    """The line of this file that ends in a mark."""
    return next(number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if line.endswith(text))


@pytest.fixture(autouse=True)
def device(tmp_path: Path) -> Iterator[None]:
    with emulator(cache=str(tmp_path)):
        yield
    for value in list(globals().values()):
        if hasattr(value, "device_caches"):
            value.device_caches.clear()


@tilework.jit
def copy(x_ptr, out_ptr, n, step, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + i * step, mask=i < n)  # the load
    tl.store(out_ptr + i, v, mask=i < n)


@tilework.jit
def racing(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x_ptr + i) + tl.program_id(0)
    tl.store(out_ptr + i, v)  # the racing store


@tilework.jit
def conflicting(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.gather(tl.load(x_ptr + i), (i * 32 + i // 32) % BLOCK, 0)  # the conflict
    tl.store(out_ptr + i, v * 2)


@tilework.jit
def misaligned(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load((x_ptr.to(tl.int64) + 2).to(tl.pointer_type(tl.float32))))  # the odd address


def numbers(count: int = 1024) -> Any:
    return np.arange(count, dtype=np.float32)


def test_the_real_stages_and_counters() -> None:
    x, out = numbers(1000), np.zeros(1000, np.float32)
    kernel = copy[(4,)](x, out, 1000, 1, BLOCK=256)
    assert (out == x).all() and list(kernel.asm) == ["source", "ttir", "ttgir", "llir", "ptx"]
    total = kernel.counters.total
    assert total.bytes == 2 * 4000 and total.instructions["memory"] > 0 and total.conflicts == 0
    assert str(kernel.counters).splitlines()[-1].startswith("total")
    assert kernel.counters.lines[__file__, line_of("# the load")].bytes == 4000


def test_a_race_is_reported_at_its_line() -> None:
    with pytest.raises(SanitizerError) as caught:
        racing[(2,)](numbers(), numbers(), BLOCK=128)
    reported = str(caught.value)
    assert f"{Path(__file__).name}:{line_of('# the racing store')}:5: error: race: " in reported
    assert (
        "of argument 'out_ptr', which thread" in reported
        and "of block (0, 0, 0) wrote, and nothing orders the two" in reported
    )
    racing[(1,)](numbers(), out := numbers(), BLOCK=128)  # the device goes on
    assert (out == numbers()).all()


def test_an_access_out_of_bounds_is_reported_at_its_line() -> None:
    x, out = numbers(1000), np.zeros(1024, np.float32)
    with pytest.raises(
        IndexError, match=r"block \(3, 0, 0\) reads element 1000 of argument 'x_ptr', which has 1000"
    ) as caught:
        copy[(4,)](x, out, 1001, 1, BLOCK=256)
    assert f"{Path(__file__).name}:{line_of('# the load')}:5: error" in str(caught.value)


def test_a_bank_conflict_is_reported_at_its_line() -> None:
    out = np.zeros(1024, np.float32)
    with pytest.warns(
        PerformanceWarning, match=r"conflicting: \d+ of \d+ wavefronts of shared memory are bank conflicts"
    ) as reported:
        kernel = conflicting[(1,)](numbers(), out, BLOCK=1024)
    assert (out == 2 * numbers().reshape(32, 32).T.reshape(-1)).all()
    assert [(one.filename, one.lineno) for one in reported] == [(__file__, line_of("# the conflict"))]
    assert kernel.counters.total.conflicts > 200


def test_accesses_that_are_not_coalesced_are_reported_at_their_line() -> None:
    with pytest.warns(
        PerformanceWarning, match=r"copy: accesses are not coalesced: \d+ sectors .* \d+ would hold"
    ) as reported:
        copy[(1,)](numbers(), np.zeros(64, np.float32), 64, 16, BLOCK=64)
    assert [(one.filename, one.lineno) for one in reported] == [(__file__, line_of("# the load"))]


def test_a_misaligned_access_is_reported_at_its_line() -> None:
    with pytest.raises(SanitizerError, match=r"argument 'x_ptr'.*is not a multiple of 4") as caught:
        misaligned[(1,)](numbers(), np.zeros(1, np.float32))
    assert f":{line_of('# the odd address')}:" in str(caught.value)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.int64])
def test_views_with_strides_and_odd_addresses(dtype: type) -> None:
    """Elements outside of a view are unchanged."""
    data = np.arange(100).astype(dtype)
    room = np.full(300, 77, dtype)
    with pytest.warns(PerformanceWarning, match="not coalesced") if dtype is np.int64 else nullcontext():
        copy[(1,)](data[1::3], room[7:40], 33, 3, BLOCK=64)
    expected = np.full(300, 77, dtype)
    expected[7:40] = data[1::3]
    np.testing.assert_array_equal(room, expected)
    copy[(1,)](data[::-1], room[:100], 100, -1, BLOCK=128)
    np.testing.assert_array_equal(room[:100], data[::-1])


def test_arguments_that_share_memory() -> None:
    x = numbers(256)
    copy[(1,)](x[:128], x[128:], 128, 1, BLOCK=128)
    assert (x[128:] == x[:128]).all()
    with pytest.raises(SanitizerError, match="race"):  # one block writes what another one reads
        copy[(2,)](x[:-1], x[1:], 255, 1, BLOCK=128)


@tilework.jit
def locked(x_ptr, lock_ptr):
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(x_ptr, tl.load(x_ptr) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def test_loads_by_more_threads_than_there_are_elements_are_no_races() -> None:
    """Every warp loads what one of them stores; a warp that stores what it has not loaded races."""
    x = numbers(64)
    copy[(1,)](x, x, 64, 1, BLOCK=64, num_warps=8)
    count = np.zeros(1, np.int32)
    locked[(4,)](count, np.zeros(1, np.int32))
    assert (x == numbers(64)).all() and count[0] == 4
    shifted = numbers(129)
    with pytest.raises(SanitizerError, match="race"):
        copy[(1,)](shifted[:-1], shifted[1:], 128, 1, BLOCK=128)


def test_threads_are_reported_of_their_own_launches() -> None:
    found: dict[int, str] = {}

    def work(number: int) -> None:
        try:
            racing[(1 + number % 2,)](numbers(), numbers(), BLOCK=128)
            found[number] = "fine"
        except SanitizerError:
            found[number] = "race"

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == {0: "fine", 1: "race", 2: "fine", 3: "race"}


def test_graphs_and_other_clocks() -> None:
    """A captured launch runs when the graph is replayed; times are step counts, the same in every run."""
    x, out = numbers(64), np.zeros(64, np.float32)
    call = lambda: copy[(1,)](x, out, 64, 1, BLOCK=64)
    times = [tilework.testing.do_bench(call), tilework.testing.do_bench_cudagraph(call)]
    assert times[0] == times[1] > 64 / 32 and (out == x).all()


def test_read_only_arrays() -> None:
    x = numbers(64)
    x.flags.writeable = False
    copy[(1,)](x, out := np.zeros(64, np.float32), 64, 1, BLOCK=64)
    assert (out == x).all()
    with pytest.raises(SanitizerError, match=r"writes element \d+ of argument 'out_ptr'.*is read-only"):
        copy[(1,)](out, x, 64, 1, BLOCK=64)


@tilework.jit
def through_table(table_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.load(table_ptr + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + i, tl.load(row + i))


def test_arrays_that_are_pointed_to_and_arrays_that_were_freed() -> None:
    out = np.zeros((3, 32), np.float32)

    def launched() -> Any:
        rows = [np.empty(1 << 24, np.float32) for _ in range(3)]  # so large that their pages are given back
        for number, row in enumerate(rows):
            row[:32] = numbers(32) + number
        del row
        table = np.array([row.ctypes.data for row in rows])
        through_table[(3,)](table, out, BLOCK=32)
        return table

    table = launched()
    assert (out == numbers(32) + np.arange(3)[:, None]).all()
    with pytest.raises(IndexError, match="which is in no array the kernel was given"):
        through_table[(3,)](table, out, BLOCK=32)


@tilework.jit
def counting(x_ptr, hist_ptr, limit, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x_ptr + i)
    tl.device_assert(v < limit, "a large number")
    tl.atomic_add(hist_ptr + v, 1)
    if tl.program_id(0) == 1:
        tl.device_print("first", tl.sum(v))


def test_atomics_prints_and_asserts(capsys: pytest.CaptureFixture[str]) -> None:
    x, hist = np.arange(256, dtype=np.int32) % 5, np.zeros(5, np.int32)
    counting[(2,)](x, hist, 5, BLOCK=128, debug=True)
    assert (hist == np.bincount(x)).all() and "pid (1, 0, 0) idx () first: 257" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match=r"device-side assert triggered: .*a large number"):
        counting[(2,)](x, hist, 4, BLOCK=128, debug=True)


@tilework.jit
def product(a_desc, b_desc, c_ptr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, K: tl.constexpr):
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a_desc.load([0, k]), b_desc.load([k, 0]), acc)
    tl.store(c_ptr + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], acc)


def test_descriptors_copy_engines_and_tensor_cores() -> None:
    draw = np.random.default_rng(0).standard_normal
    a, b = draw((64, 64)).astype(np.float16), draw((64, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    maps = TensorDescriptor.from_tensor(a, [64, 32]), TensorDescriptor.from_tensor(b, [32, 64])
    kernel = product[(1,)](*maps, c, BM=64, BN=64, BK=32, K=64)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), atol=1e-3)
    assert "wgmma" in kernel.asm["ptx"] and "cp.async.bulk.tensor" in kernel.asm["ptx"]
    assert kernel.counters.total.tensor_operations == 2 * 64**3


@tilework.jit
def by_pointers(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn, rk = tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * stride_a + rk[None, :]
    b_ptrs = b_ptr + (rn % N)[:, None] * K + rk[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=PARTS):
        a = tl.load(a_ptrs, mask=(rm[:, None] < M) & (rk[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=rk[None, :] < K - k, other=0.0)
        acc = tl.dot(a, b.T, acc)
        a_ptrs += BK
        b_ptrs += BK
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def test_loads_of_rectangles_become_copies_where_the_launch_proves_it() -> None:
    """The first launch does; one whose tile wraps around launches the kernel that loads."""
    rng = np.random.default_rng(0)
    for m, n, k, pad, copies in ((80, 64, 40, 8, True), (64, 48, 40, 0, False)):
        a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k + pad), (n, k)))
        c = np.zeros((m, n), np.float32)
        with knobs.nvidia.scope():
            knobs.nvidia.auto_tma = True
            kernel = by_pointers[(-(-m // 64),)](a, b, c, m, n, k, k + pad, BM=64, BN=64, BK=32, PARTS=pad == 0)
        np.testing.assert_array_equal(c, a[:, :k].astype(np.float32) @ b.T.astype(np.float32))
        assert ("cp.async.bulk.tensor" in kernel.asm["ptx"]) == copies and kernel.metadata.global_scratch_size == 0


@tilework.jit
def of_columns(a_ptr, b_ptr, c_ptr, K, A: tl.constexpr, B: tl.constexpr, SIDE: tl.constexpr, BK: tl.constexpr):
    """Whose operands have rows (1) or columns (0) that are contiguous."""
    i, rk = tl.arange(0, SIDE), tl.arange(0, BK)
    acc = tl.zeros((SIDE, SIDE), tl.int32 if a_ptr.dtype.element_ty.is_int() else tl.float32)
    for k in range(0, K, BK):
        if A:
            a = tl.load(a_ptr + i[:, None] * K + (k + rk)[None, :])
        else:
            a = tl.load(a_ptr + i[:, None] + (k + rk)[None, :] * SIDE)
        if B:
            b = tl.load(b_ptr + (k + rk)[:, None] * SIDE + i[None, :])
        else:
            b = tl.load(b_ptr + (k + rk)[:, None] + i[None, :] * K)
        acc = tl.dot(a, b, acc, out_dtype=acc.dtype)
    tl.store(c_ptr + i[:, None] * SIDE + i[None, :], acc.to(c_ptr.dtype.element_ty))


@pytest.mark.parametrize(
    ("dtype", "a_rows", "b_rows", "block"),
    [(np.float32, 1, 1, 32), (np.int8, 0, 0, 64), (ml_dtypes.float8_e4m3fn, 0, 1, 64)],
)
@pytest.mark.filterwarnings("ignore::tilework.errors.PerformanceWarning")
def test_operands_that_tensor_cores_cannot_read_are_copies_too(
    dtype: type, a_rows: int, b_rows: int, block: int
) -> None:
    rng, depth = np.random.default_rng(0), 3 * block
    a, b = (rng.integers(-4, 5, shape).astype(dtype) for shape in ((64, depth), (depth, 64)))
    c = np.zeros((64, 64), np.int32 if dtype is np.int8 else np.float32)
    with knobs.nvidia.scope():
        knobs.nvidia.auto_tma = True
        given = np.asarray(a, order="C" if a_rows else "F"), np.asarray(b, order="C" if b_rows else "F")
        flat = [x.ravel(order="K") for x in given]
        kernel = of_columns[(1,)](*flat, c, depth, a_rows, b_rows, SIDE=64, BK=block)
    np.testing.assert_array_equal(c, a.astype(c.dtype) @ b.astype(c.dtype))
    assert kernel.asm["ttgir"].count("async_tma_copy_global_to_local") and "wgmma" in kernel.asm["ptx"]
    assert "async_copy_global_to_local" not in kernel.asm["ttgir"]


def test_kernels_with_copies_however_they_are_launched(tmp_path: Path) -> None:
    """Directly, through `run`, from another process, from their own text; what they must not copy they load, if they
    know how."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (16, 40)).astype(np.float16) for _ in range(2))
    narrow, c, shape = a[:, :39].copy(), np.zeros((16, 16), np.float32), (16, 16, 40)
    settings = {"BM": 16, "BN": 16, "BK": 32, "PARTS": False}
    kernel = by_pointers[(1,)](a, b, c, *shape, 40, **settings, auto_tma=True, num_warps=1)
    (file := tmp_path / "kernel.ttir").write_text(kernel.asm["ttir"])
    read = tilework.compiler.compile(file, kernel.metadata.target)
    launches = [kernel[(1, 1, 1)], pickle.loads(pickle.dumps(kernel))[(1, 1, 1)]]
    launches.append(partial(kernel.run, 1, 1, 1, 0, kernel.function, kernel.packed_metadata, None, None, None))
    for launch in launches:
        for array, stride in ((a, 40), (narrow, 39)):
            c[:] = 0
            launch(array, b, c, *shape[:2], stride, stride, *settings.values())
            np.testing.assert_array_equal(c, array.astype(np.float32) @ b.ravel()[: 16 * stride].reshape(16, stride).T)
    c[:] = 0
    read[(1, 1, 1)](a, b, c, *shape, 40)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.T)
    with pytest.raises(ValueError, match="compiled with auto_tma=False"):
        read[(1, 1, 1)](narrow, b, c, *shape[:2], 39, 39)


def test_tuning_finds_the_fewest_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock counts what warps do: a block of 32 needs eight times as many instructions as one of 256."""
    configs = [tilework.Config({"BLOCK": block}, num_warps=1) for block in (32, 256)]
    tuned = tilework.autotune(configs, key=["n"])(tilework.jit(copy.fn))
    monkeypatch.setattr(knobs.autotuning, "workers", 0)
    tuned[lambda meta: (tilework.cdiv(256, meta["BLOCK"]),)](numbers(256), out := numbers(256), 256, 1)
    assert tuned.best_config.kwargs["BLOCK"] == 256 and (out == numbers(256)).all()


def test_kernels_that_check_themselves_too() -> None:
    x, out = numbers(1000), np.zeros(1024, np.float32)
    with pytest.raises(IndexError, match=r"program \(3, 0, 0\) reads element 1000 of argument 'x_ptr'"):
        copy[(4,)](x, out, 1001, 1, BLOCK=256, sanitize=True)


def test_older_architectures_and_unknown_ones() -> None:
    with emulator("sm_80"):
        copy.device_caches.clear()
        kernel = copy[(1,)](numbers(64), out := numbers(64), 64, 1, BLOCK=64)
        assert kernel.metadata.target.arch == 80 and (out == numbers(64)).all()
        knobs.runtime.device = "emulator:sm_70"
        with pytest.raises(
            ValueError, match=r"emulator:sm_70: the emulator is one of sm_80, .*sm_90, .*gfx942.*, not 'sm_70'"
        ):
            default_driver()
        knobs.runtime.device = "gpu"
        with pytest.raises(ValueError, match=r"TILEWORK_DEVICE is .*emulator\[:ARCH\], not 'gpu'"):
            default_driver()


def test_gpus_of_amd() -> None:
    """Kernels are LLVM text there; emulated memory is lent and checked as for PTX."""
    x, out = numbers(60), np.zeros(64, np.float32)
    with emulator("gfx942"):
        copy.device_caches.clear()
        kernel = copy[(1,)](x, out, 60, 1, BLOCK=64)
        assert str(kernel.metadata.target) == "hip:gfx942" and kernel.counters is None
        assert (out[:60] == x).all() and tilework.testing.do_bench(lambda: copy[(1,)](x, out, 60, 1, BLOCK=64)) > 10
        with pytest.raises(IndexError, match=r"reads element 60 of argument 'x_ptr', which has 60") as caught:
            copy[(1,)](x, out, 61, 1, BLOCK=64)
        assert f"{__file__}:{line_of('# the load')}:5: error" in str(caught.value) and "LLVM line" in str(caught.value)
        out.flags.writeable = False
        with pytest.raises(SanitizerError, match=r"writes element \d+ of argument 'out_ptr'.*is read-only"):
            copy[(1,)](x, out, 60, 1, BLOCK=64)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    x, out = torch.arange(100.0)[10:].view(9, 10).t(), torch.zeros(90)
    copy[(1,)](x, out, 90, 1, BLOCK=128)
    assert (out == torch.arange(10.0, 100.0)).all()


def test_arrays_that_are_left_when_python_ends_are_left_in_silence() -> None:
    """Modules are gone by then, those of the driver too."""
    text = """
import threading
from tests.runtime.emulated_cuda import emulated_cuda
from tilework.runtime.devices.cuda.device import DeviceArray
with emulated_cuda():
    threading.kept = DeviceArray(4)
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
