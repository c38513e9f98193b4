"""Scratch memory: a kernel whose metadata asks for it gets it from the allocator, whoever launches."""

import contextvars
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.fake_gpu import STREAM, Buffer, fake_gpu
from tests.runtime.test_runtime_host import CPU, TEXT
from tilework import knobs
from tilework.compiler import compile
from tilework.runtime.devices import launcher
from tilework.runtime.devices.host.native_launcher import NativeLauncher
from tilework.runtime.devices.launcher import Launcher, NullAllocator, set_allocator, set_profile_allocator


@tilework.jit
def touch(x, n):
    tl.store(x, n)


def isolated(test: Callable[..., None]) -> Callable[..., None]:
    """Allocators live in context variables: each test gets a context, and a cache, of its own."""

    @wraps(test)
    def run(tmp_path: Path, *args: Any, **kwargs: Any) -> None:
        with knobs.cache.scope(), knobs.runtime.scope():
            knobs.cache.dir = str(tmp_path / "cache")
            touch.device_caches.clear()
            try:
                contextvars.Context().run(test, tmp_path, *args, **kwargs)
            finally:
                touch.device_caches.clear()

    return run


@isolated
def test_size_is_bytes_per_program_times_grid_times_ctas(tmp_path: Path) -> None:
    given: list[Buffer] = []
    set_allocator(lambda size, alignment, stream: given.append(Buffer(size, alignment, stream)) or given[-1])
    x = np.zeros(4, "i4")
    with fake_gpu(global_scratch_size=128, global_scratch_align=64) as gpu:
        touch[(3, 2)](x, 5)
        touch[(3, 2)](x, 5)
        touch[(4,)](x, 5, num_ctas=2)
    assert [(b.size, b.alignment, b.stream) for b in given] == [
        (768, 64, STREAM),
        (768, 64, STREAM),
        (1024, 64, STREAM),
    ]
    assert [launch.scratch for launch in gpu.launches] == [(buffer, None) for buffer in given]
    assert [launch.grid for launch in gpu.launches] == [(3, 2, 1), (3, 2, 1), (4, 1, 1)]


@isolated
def test_profile_memory_comes_from_its_own_allocator(tmp_path: Path) -> None:
    set_profile_allocator(Buffer)
    with fake_gpu(profile_scratch_size=32, profile_scratch_align=8) as gpu:
        touch[(2,)](np.zeros(4, "i4"), 5)
        assert gpu.launches[0].scratch == (None, Buffer(64, 8, STREAM))
        set_profile_allocator(None)
        with pytest.raises(RuntimeError, match=r"\(64 bytes\), but no allocator was set"):
            touch[(2,)](np.zeros(4, "i4"), 5)


@isolated
def test_both_at_once(tmp_path: Path) -> None:
    set_allocator(Buffer)
    set_profile_allocator(Buffer)
    with fake_gpu(global_scratch_size=16, profile_scratch_size=4) as gpu:
        touch[(2,)](np.zeros(4, "i4"), 5)
    assert gpu.launches[0].scratch == (Buffer(32, 1, STREAM), Buffer(8, 1, STREAM))


@isolated
def test_no_allocator_is_an_error_that_names_set_allocator(tmp_path: Path) -> None:
    seen: list[str] = []
    knobs.runtime.launch_enter_hook.add(lambda metadata: seen.append("entered"))
    with fake_gpu(global_scratch_size=16) as gpu:
        for _ in range(2):
            with pytest.raises(RuntimeError, match=r"requires a runtime memory allocation \(32 bytes\).*set_allocator"):
                touch[(2,)](np.zeros(4, "i4"), 5)
        set_allocator(Buffer)
        touch[(2,)](np.zeros(4, "i4"), 5)
        set_allocator(NullAllocator())
        with pytest.raises(RuntimeError, match="no allocator was set"):
            touch[(2,)](np.zeros(4, "i4"), 5)
    assert len(gpu.launches) == 1 and seen == ["entered"]


@isolated
def test_every_way_to_launch_asks_the_allocator(tmp_path: Path) -> None:
    given: list[int] = []
    set_allocator(lambda size, alignment, stream: given.append(size) or Buffer(size, alignment, stream))
    x = np.zeros(4, "i4")
    tuned = tilework.autotune([tilework.Config({})], key=[])(touch)
    with fake_gpu(global_scratch_size=10):
        kernel = touch[(1,)](x, 5)
        touch.run(x, 5, grid=(2,))
        kernel[(3, 1, 1)](x, 5)
        kernel.run(4, 1, 1, 0, kernel.function, kernel.packed_metadata, None, None, None, x, 5)
        tuned[(5,)](x, 5)
        touch.warmup(x, 5, grid=(6,))
        touch[(0,)](x, 5)
    assert given == [10, 20, 30, 40, 50]


@isolated
def test_kernels_without_need_do_not_ask(tmp_path: Path) -> None:
    with fake_gpu() as gpu:
        touch[(2,)](np.zeros(4, "i4"), 5)
    assert gpu.launches[0].scratch == (None, None)


@isolated
def test_what_is_no_memory_is_refused(tmp_path: Path) -> None:
    set_allocator(lambda size, alignment, stream: 4096)  # pyright: ignore[reportArgumentType]
    with fake_gpu(global_scratch_size=16), pytest.raises(TypeError, match="gave a int, which has no `data_ptr"):
        touch[(2,)](np.zeros(4, "i4"), 5)


@isolated
def test_memory_that_is_not_aligned_is_refused(tmp_path: Path) -> None:
    set_allocator(lambda size, alignment, stream: Buffer(size, alignment, stream, 4096 + 64))
    facts: dict[str, Any] = {"global_scratch_size": 128, "global_scratch_align": 128}
    with fake_gpu(**facts), pytest.raises(ValueError, match="memory at 0x1040, which is not aligned to 128 bytes"):
        touch[(2,)](np.zeros(4, "i4"), 5)


@isolated
def test_errors_of_the_allocator_are_the_users(tmp_path: Path) -> None:
    def full(size: int, alignment: int, stream: int | None) -> Any:
        raise MemoryError("no more")

    set_allocator(full)
    with fake_gpu(global_scratch_size=16), pytest.raises(MemoryError, match="no more"):
        touch[(2,)](np.zeros(4, "i4"), 5)


@isolated
def test_the_native_launcher_leaves_such_kernels_to_python(tmp_path: Path) -> None:
    """Also when a launch has been described already: the allocator decides at every launch."""
    given: list[int] = []
    memory = np.zeros(64, "i1")

    class Memory:
        def data_ptr(self) -> int:
            return memory.ctypes.data

    set_allocator(lambda size, alignment, stream: given.append(size) or Memory())
    x = np.zeros(4, "i4")
    kernel = touch[(1,)](x, 5)
    launcher = kernel.launcher
    if type(launcher) is not NativeLauncher:  # the evaluator: there is nothing native
        return
    launcher.scratch_size, launcher.needs_scratch = 8, True
    pack = launcher.pack
    launcher.pack = lambda args: pack(args[:2])  # the machine code of this kernel has no parameters for it
    fresh = tilework.jit(touch.fn)
    fresh.device_caches[0] = touch.device_caches[0]
    for count in (1, 2, 3):
        fresh[(count,)](x, 7)
    assert given == [8, 16, 24] and x[0] == 7


def test_a_host_kernel_without_parameters_for_it_is_refused(tmp_path: Path) -> None:
    class Source:
        signature = {"out": "*i32"}

    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        path = tmp_path / "count.llir"
        path.write_text(TEXT)
        metadata = compile(path, CPU).metadata._replace(global_scratch_size=8)
    with pytest.raises(TypeError, match="count has 1 parameters, and its signature more"):
        NativeLauncher(Source(), metadata)


def test_a_launcher_says_how_it_starts() -> None:
    class Metadata:
        name = "kernel"

    with pytest.raises(TypeError, match="Launcher has no method `start`"):
        Launcher(None, Metadata())(1, 1, 1, 0, None, None, None, None, None)
    assert isinstance(launcher._allocator.get(), NullAllocator)
