"""The cache, the interpreter and the tools, rule by rule, and caches under real launches; what other files test is not repeated."""

import errno
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.fake_gpu import FakeDriver
from tilework import knobs
from tilework.errors import InterpreterError
from tilework.runtime.devices import active_driver as drivers
from tilework.runtime.devices.active_driver import DriverConfig, default_driver
from tilework.runtime.devices.host import native_machine
from tilework.runtime.devices.host.driver import CpuDriver
from tilework.runtime.kernel_cache import entry as cache_entry
from tilework.runtime.kernel_cache import files as cache_files
from tilework.runtime.launch.wrappers import MockTensor, TensorWrapper, reinterpret
from tilework.targets.base import GPUTarget

ROOT = Path(__file__).parent.parent.parent


@tilework.jit
def add_one(x, y, n, BLOCK: tl.constexpr = 64):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(y + i, tl.load(x + i, mask=mask) + 1, mask=mask)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(cache_files, "_warned", set())
    with knobs.cache.scope(), knobs.compilation.scope():
        knobs.cache.dir = str(tmp_path / "outer" / "cache")
        add_one.device_caches.clear()
        yield tmp_path / "outer" / "cache"
    add_one.device_caches.clear()


def launch(**options: Any) -> Any:
    """Compile or load the kernel, run it, and check what it did."""
    add_one.device_caches.clear()
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel = add_one[(2,)](x, y, 64, **options)
    assert (y == x + 1).all()
    return kernel


# -- 6.15 the disk cache under launches ----------------------------------------------------------------------------


def test_6_15_files_of_a_kernel(cache: Path) -> None:
    kernel = launch()
    folder = Path(kernel.metadata_group["add_one.json"]).parent
    assert folder.parent == cache and folder.name == cache_key_folder(kernel.hash)
    names = {path.name for path in folder.iterdir()}
    assert {"add_one.source", "add_one.ttir", "add_one.json", "__grp__add_one.json"} <= names


def cache_key_folder(key: str) -> str:
    import base64

    return base64.b32encode(bytes.fromhex(key)).decode().rstrip("=")


def test_6_15_every_folder_is_private(cache: Path) -> None:
    launch()
    folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    assert len(folders) > 1 and {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


def entry_files(cache: Path) -> list[Path]:
    (folder,) = {path.parent for path in cache.rglob("add_one.json")}
    return sorted(path for path in folder.iterdir() if path.name != ".tilework")


SPOILERS: dict[str, Callable[[Path], None]] = {
    "truncated": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "other bytes": lambda path: path.write_bytes(b"\xff" * path.stat().st_size) and None,
    "deleted": Path.unlink,
}


@pytest.mark.parametrize("how", SPOILERS)
def test_6_15_a_damaged_file_of_any_kind_is_built_again(cache: Path, how: str) -> None:
    launch()
    for number in range(len(entry_files(cache))):
        path = entry_files(cache)[number]
        SPOILERS[how](path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            launch()
        assert path.is_file() and path.stat().st_size > 0
        hits: list[bool] = []
        knobs.compilation.listener = lambda **event: hits.append(event["cache_hit"])  # noqa: B023
        launch()
        assert hits == [True], path.name


@pytest.mark.parametrize("how", SPOILERS)
def test_6_15_a_damaged_native_launcher_is_built_again(cache: Path, how: str) -> None:
    if native_machine.machine() is None:
        return
    first = native_machine.launcher_object(1)
    for path in [p for p in cache.rglob("*") if p.is_file() and native_machine.NAME in p.name]:
        SPOILERS[how](path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert native_machine.launcher_object(1) == first


def is_a_file(cache: Path, patch: pytest.MonkeyPatch) -> None:
    cache.parent.mkdir()
    cache.write_text("")


def below_a_file(cache: Path, patch: pytest.MonkeyPatch) -> None:
    cache.parent.write_text("")


def missing_and_impossible(cache: Path, patch: pytest.MonkeyPatch) -> None:
    knobs.cache.dir = "/proc/nowhere/cache"


def failing(code: int) -> Callable[..., Any]:
    def fail(*args: Any, **kwargs: Any) -> Any:
        raise OSError(code, os.strerror(code), "somewhere")

    return fail


def read_only(cache: Path, patch: pytest.MonkeyPatch) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o500)
    if os.geteuid() == 0:  # to whom the mode means nothing
        patch.setattr(cache_entry.os, "mkdir", failing(errno.EROFS))


def full(cache: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache_entry.os, "write", failing(errno.ENOSPC))


def full_at_the_end(cache: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache_entry.os, "rename", failing(errno.ENOSPC))


def out_of_quota(cache: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache_entry.os, "write", failing(errno.EDQUOT))


def broken_disk(cache: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache_entry.os, "write", failing(errno.EIO))


def too_many_files(cache: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cache_entry.os, "mkdir", failing(errno.EMFILE))


UNUSABLE = (
    is_a_file, below_a_file, missing_and_impossible, read_only, full, full_at_the_end, out_of_quota, broken_disk, too_many_files
)  # fmt: skip


@pytest.mark.parametrize("spoil", UNUSABLE, ids=lambda spoil: spoil.__name__)
def test_6_15_an_unusable_folder_is_one_warning_and_compilation_in_memory(
    cache: Path, spoil: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spoil(cache, patch)
        for number in (1, 2):
            launch(num_stages=number)
        launch()
    texts = [str(warning.message) for warning in caught if "cannot use the cache directory" in str(warning.message)]
    assert len(texts) == 1 and str(knobs.cache.dir) in texts[0]


def test_6_15_a_missing_folder_is_made(cache: Path) -> None:
    launch()
    shutil.rmtree(cache.parent)
    launch()
    assert entry_files(cache)


def child_compiles(folder: str, block: int, results: Any) -> None:
    knobs.cache.dir = folder
    add_one.device_caches.clear()
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel = add_one[(64 // block,)](x, y, 64, BLOCK=block)
    results.put(kernel.metadata.name == "add_one" and bool((y == x + 1).all()))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_6_15_subprocesses_compile_after_the_parent(cache: Path, method: str) -> None:
    """The second kernel is one that the parent has not compiled."""
    launch()
    context = multiprocessing.get_context(method)
    results = context.SimpleQueue()
    for block in (64, 32):
        child = context.Process(target=child_compiles, args=(str(cache), block, results))
        child.start()
        child.join(180)
        assert child.exitcode == 0
        assert results.get()


# -- 6.16 interpreter ----------------------------------------------------------------------------------------------


def interpret(kernel: Any) -> Any:
    return tilework.jit(interpret=True)(kernel.fn)


def test_6_16_sizes_of_dots_and_fp8() -> None:
    @tilework.jit(interpret=True)
    def tiny(p, q, T: tl.constexpr):
        one = tl.zeros((1, 1), tl.float32) + tl.load(p)
        wide = tl.dot(one, one, input_precision="ieee")
        tl.store(q, tl.sum(wide).to(T).to(tl.float32))

    for dtype in (tl.float8e4nv, tl.float8e5, tl.float8e4b8, tl.float8e5b16, tl.float8e4b15):
        out = np.zeros(1, "f4")
        tiny[(1,)](np.full(1, 0.5, "f4"), out, dtype)
        assert out[0] == 0.25


@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "ieee"])
def test_6_16_dot_precisions_are_exact(precision: str) -> None:
    @tilework.jit(interpret=True)
    def product(p, q, PRECISION: tl.constexpr):
        i = tl.arange(0, 2)[:, None] * 2 + tl.arange(0, 2)[None, :]
        x = tl.load(p + i)
        tl.store(q + i, tl.dot(x, x, input_precision=PRECISION))

    x, out = np.array([[1.0000001, 0], [0, 1.0000001]], "f4"), np.zeros((2, 2), "f4")
    product[(1,)](x, out, precision)
    assert out[0, 0] == np.float32(np.float64(x[0, 0]) ** 2)


def test_6_16_errors_have_the_cause() -> None:
    @tilework.jit(interpret=True)
    def bad(p):
        tl.arange(0, 3)

    with pytest.raises(InterpreterError, match="power of 2") as caught:
        bad[(1,)](np.zeros(1, "f4"))
    assert isinstance(caught.value.__cause__, ValueError) and str(caught.value) == repr(caught.value.__cause__)


def test_6_16_aliasing_arrays_share_their_memory() -> None:
    @tilework.jit(interpret=True)
    def shift(a, b):
        tl.store(a, 7)
        tl.store(b + 1, tl.load(b) + 1)

    x = np.zeros(4, "i4")
    shift[(1,)](x[1:], x[1:])
    assert x.tolist() == [0, 7, 8, 0]


def test_6_16_autotune_heuristics_and_hooks() -> None:
    seen: list[int] = []
    kernel = interpret(add_one)
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append(kwargs["BLOCK"]))
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    chosen = tilework.heuristics({"BLOCK": lambda args: args["n"]})(kernel)
    assert chosen[(1,)](x, y, 64) is None and (y == x + 1).all()
    assert chosen.warmup(x, y, 64, grid=(1,)) is None and seen == [64, 64]
    tuned = tilework.autotune([tilework.Config({"BLOCK": 32}), tilework.Config({"BLOCK": 64})], key=["n"])(kernel)
    y[:] = 0
    tuned[lambda meta: (tilework.cdiv(64, meta["BLOCK"]),)](x, y, 64)
    assert (y == x + 1).all()


# -- 6.17 driver and utilities -------------------------------------------------------------------------------------


def test_6_17_the_driver_is_made_at_first_use() -> None:
    config = DriverConfig(lambda: FakeDriver({}))
    assert (config._active, config._default) == (None, None)
    first = config.active
    assert config.active is first is config.default
    other = FakeDriver({})
    config.set_active(other)
    assert config.active is other and config.default is first
    config.reset_active()
    assert config.active is first


def test_6_17_importing_makes_no_driver() -> None:
    script = "import tilework; d = tilework.runtime.driver; assert (d._active, d._default) == (None, None)"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, timeout=120)


def usable(name: str, is_usable: bool = True) -> Any:
    return type(name, (), {"is_active": staticmethod(lambda: is_usable), "priority": 1, "asked_by": ()})


def test_6_17_no_usable_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["tilework.runtime.devices.active_driver"]
    monkeypatch.setattr(module, "registered_drivers", list)
    with pytest.raises(RuntimeError, match=r"^0 active drivers"):
        default_driver()
    monkeypatch.setattr(module, "registered_drivers", lambda: [usable("One"), usable("Two"), CpuDriver])
    with pytest.raises(RuntimeError, match=r"2 active drivers ..One, Two"):
        default_driver()
    monkeypatch.setattr(module, "registered_drivers", lambda: [usable("One", False), CpuDriver])
    assert type(default_driver()) is CpuDriver
    monkeypatch.setattr(module, "registered_drivers", lambda: [usable("One"), CpuDriver])
    assert type(default_driver()).__name__ == "One"


METHODS = (
    "get_current_target get_current_device get_current_stream set_current_device get_device_capability"
    " get_active_torch_device get_device_interface get_benchmarker get_empty_cache_for_benchmark clear_cache launcher_cls utils"
)


@pytest.mark.parametrize("name", METHODS.split())
def test_6_17_driver_has(name: str) -> None:
    assert hasattr(CpuDriver(), name)


def test_6_17_the_host_as_a_device() -> None:
    host = CpuDriver()
    assert host.get_current_target() == GPUTarget("cpu", "host", 1)
    assert (host.get_current_device(), host.get_current_stream(0), host.get_device_capability()) == (0, 0, ("cpu", 0))
    host.set_current_device(0)
    with pytest.raises(ValueError, match="there is no device 1"):
        host.set_current_device(1)
    buffer = host.get_empty_cache_for_benchmark()
    host.clear_cache(buffer)
    assert not buffer.any() and host.get_benchmarker() is tilework.testing.do_bench
    names = "max_shared_mem max_num_regs multiprocessor_count warpSize sm_clock_rate mem_clock_rate mem_bus_width"
    assert set(host.utils.get_device_properties(0)) == set(names.split())
    assert drivers.driver is tilework.runtime.driver


def test_6_17_mock_tensor() -> None:
    mock = MockTensor("fp32")
    assert (mock.dtype, mock.shape, mock.data_ptr(), mock.stride()) == ("fp32", [1], 0, (1,))
    assert MockTensor("fp32", [2, 3, 4]).stride() == (12, 4, 1) and MockTensor.ptr_range() == 0


def test_6_17_reinterpret_numpy() -> None:
    base = np.array([[1.0, 2.0], [3.0, 4.0]], "f4")
    view = reinterpret(base, tl.int32)
    assert (view.dtype, view.shape, view.stride(), view.stride(0), view.element_size()) == (
        tl.int32,
        (2, 2),
        (2, 1),
        2,
        4,
    )
    assert view.base is base and view.data_ptr() == base.ctypes.data and view.cpu().base is base
    twin = view.clone()
    assert twin.base is not base and (twin.base == base).all()
    twin.base[:] = 9
    view.copy_(twin)
    assert (base == 9).all() and "TensorWrapper" in str(view)
    assert view.new_empty((3,)).shape == (3,)
    assert reinterpret(view, base.dtype) is base and isinstance(reinterpret(view, tl.uint32), TensorWrapper)
    for other in ([1.0], 5, "text", SimpleNamespace(dtype=1)):
        with pytest.raises(TypeError, match="Cannot reinterpret"):
            reinterpret(other, tl.int32)


def test_6_17_reinterpret_launches() -> None:
    @tilework.jit
    def bits(p, q):
        tl.store(q, tl.load(p))

    out = np.zeros(1, "i4")
    for _ in range(2):
        bits[(1,)](reinterpret(np.ones(1, "f4"), tl.int32), out)
        assert out[0] == 0x3F800000


def test_6_17_reinterpret_torch() -> None:
    torch = pytest.importorskip("torch")
    base = torch.ones(2, 2)
    view = reinterpret(base, torch.int32)
    assert view.stride() == (2, 1) and view.device == base.device and view.to("cpu").base.equal(base)
    assert view.new_empty((3,)).base.shape == (3,) and reinterpret(view, torch.float32) is base
    twin = view.clone()
    twin.base.zero_()
    view.copy_(twin)
    assert not base.any()
