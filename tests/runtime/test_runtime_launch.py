"""`kernel[grid](...)`: binding, grids, caches, hooks, errors."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs

SCALE = tl.constexpr(42)


@tilework.jit
def fill(p, value, n, BLOCK: tl.constexpr = 16):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, value, mask=i < n)


@tilework.jit
def ids(p):
    i = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    tl.store(p + i, i + 1)


@tilework.jit
def scaled(p):
    tl.store(p, SCALE)


@tilework.jit
def typed(p, i: tl.int32):
    tl.store(p, i)


@tilework.jit(do_not_specialize=["n"])
def unspecialised(p, n):
    tl.store(p, n)


@tilework.jit(do_not_specialize_on_alignment=["n"])
def unaligned(p, n):
    tl.store(p, n)


@tilework.jit
def empty(x, y, z, a, b, c):
    pass


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Any) -> Any:
    """A cache of its own, and no kernel left from another test."""
    with knobs.cache.scope(), knobs.runtime.scope(), knobs.compilation.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield
    for kernel in (fill, ids, scaled, typed, unspecialised, unaligned, empty):
        kernel.device_caches.clear()
        kernel.pre_run_hooks.clear()


def kernels_of(fn: Any) -> dict[str, Any]:
    return fn.device_caches[0][0]


def test_positional_keyword_and_default_arguments() -> None:
    out = np.zeros(40, "f4")
    fill[(3,)](out, 1.5, 40)
    assert (out == 1.5).all()
    fill[(2,)](out, value=2.5, n=40, BLOCK=32)
    assert (out == 2.5).all()


@pytest.mark.parametrize("grid", [(5,), [5], lambda args: (tilework.cdiv(args["n"], args["BLOCK"]),), (5, 1, 1)])
def test_grids(grid: Any) -> None:
    out = np.zeros(70, "f4")
    fill[grid](out, 1.0, 70)
    assert (out == 1).all()


def test_three_axes() -> None:
    out = np.zeros(24, "i4")
    ids[2, 3, 4](out)
    assert (out == np.arange(1, 25)).all()


@pytest.mark.parametrize("grid", [(0,), (3, 0), (0, 0, 0)])
def test_an_empty_grid_launches_nothing(grid: Any) -> None:
    out = np.zeros(4, "f4")
    fill[grid](out, 1.0, 4)
    assert not out.any()


@pytest.mark.parametrize("grid", [(), (1, 1, 1, 1), ("a",), (1.5,), (-1,), (2**31,)])
def test_bad_grids(grid: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="grid"):
        fill[grid](np.zeros(4, "f4"), 1.0, 4)


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2, 3, 4, 5), {}), ((1, 2, 3), {"value": 1})])
def test_wrong_arguments_are_type_errors(args: Any, kwargs: Any) -> None:
    with pytest.raises(TypeError):
        fill[(1,)](*args, **kwargs)


def test_unknown_options_are_key_errors() -> None:
    with pytest.raises(KeyError, match="num_wraps"):
        fill[(1,)](np.zeros(4, "f4"), 1.0, 4, num_wraps=4)


@pytest.mark.parametrize("name", ["device", "stream", "device_type"])
def test_reserved_options(name: str) -> None:
    with pytest.raises(AssertionError):
        fill[(1,)](np.zeros(4, "f4"), 1.0, 4, **{name: 0})


def test_num_warps_must_be_a_power_of_two() -> None:
    with pytest.raises(AssertionError, match="must be a power of 2"):
        fill[(1,)](np.zeros(4, "f4"), 1.0, 4, num_warps=3)


def test_each_specialisation_is_compiled_once() -> None:
    out = np.zeros(64, "f4")
    for n in (2, 3, 5, 16, 32, 1, 1):
        fill[(4,)](out, 1.0, n)
    assert len(kernels_of(fill)) == 3  # any, multiple of 16, one


def test_options_and_debug_have_entries_of_their_own() -> None:
    out = np.zeros(4, "f4")
    fill[(1,)](out, 1.0, 4)
    fill[(1,)](out, 1.0, 4, num_warps=8)
    fill[(1,)](out, 1.0, 4, debug=True)
    assert len(kernels_of(fill)) == 3


def test_forced_integers_have_three_entries() -> None:
    out = np.zeros(1, "i4")
    for value in (1, 8, 16, 17):
        typed[(1,)](out, value)
        assert out[0] == value
    assert len(kernels_of(typed)) == 3


def test_do_not_specialize() -> None:
    out = np.zeros(1, "i4")
    for value in (1, 8, 16):
        unspecialised[(1,)](out, value)
        assert out[0] == value
    assert len(kernels_of(unspecialised)) == 1
    for value in (1, 8, 16):
        unaligned[(1,)](out, value)
    assert len(kernels_of(unaligned)) == 2


def test_clearing_the_memory_cache_compiles_again() -> None:
    out = np.zeros(4, "f4")
    first = fill[(1,)](out, 1.0, 4)
    fill.device_caches[0][0].clear()
    second = fill[(1,)](out, 1.0, 4)
    assert first is not second
    assert first.hash == second.hash


def test_the_kernel_is_returned_and_described() -> None:
    kernel = fill[(1,)](np.zeros(4, "f4"), 1.0, 4, num_warps=2)
    assert kernel.name == "fill"
    assert kernel.metadata.num_warps == 2
    assert kernel.metadata.target.backend == "cpu"
    assert "tt.store" in kernel.asm["ttir"]
    assert "tt.func" in kernel.asm["source"]
    with pytest.raises(KeyError):
        kernel.asm["sass"]


def test_a_compiled_kernel_launches_itself() -> None:
    kernel = fill.warmup(np.zeros(4, "f4"), 1.0, 4, grid=(1,))
    out = np.zeros(4, "f4")
    kernel[(1, 1, 1)](out, 3.0, 4, 16)
    assert (out == 3).all()


def test_warmup_does_not_launch() -> None:
    out = np.zeros(4, "f4")
    assert fill.warmup(out, 1.0, 4, grid=(1,)) is not None
    assert not out.any()


def test_changed_globals_stop_the_launch() -> None:
    out = np.zeros(1, "i4")
    scaled[(1,)](out)
    assert out[0] == 42
    global SCALE
    SCALE = tl.constexpr(43)
    try:
        with pytest.raises(
            RuntimeError,
            match=r"SCALE has changed since we compiled this kernel, from constexpr\[42\] to constexpr\[43\]",
        ):
            scaled[(1,)](out)
    finally:
        SCALE = tl.constexpr(42)


def test_pre_run_hooks_see_every_run() -> None:
    seen: list[Any] = []
    fill.add_pre_run_hook(lambda *args, **kwargs: seen.append((len(args), kwargs)))
    out = np.zeros(4, "f4")
    fill[(1,)](out, 1.0, 4, BLOCK=8)
    fill.warmup(out, 1.0, 4, grid=(1,))
    assert seen == [(3, {"BLOCK": 8}), (3, {})]


def test_compile_hooks() -> None:
    calls: list[Any] = []
    knobs.runtime.jit_cache_hook = lambda **info: calls.append(info)
    knobs.runtime.jit_post_compile_hook = lambda **info: calls.append(info)
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    before, after = calls
    assert (before["already_compiled"], after["already_compiled"]) == (False, True)
    assert before["fn"].name == "fill"
    assert before["compile"]["num_warps"] == 4
    assert before["key"] in kernels_of(fill)


def test_a_hook_can_skip_compilation() -> None:
    knobs.runtime.jit_cache_hook = lambda **info: True
    assert fill[(1,)](np.zeros(4, "f4"), 1.0, 4) is None


def test_launch_hooks_and_metadata() -> None:
    def metadata(grid: Any, kernel: Any, args: dict[str, Any]) -> dict[str, Any]:
        return {"bytes": args["p"].nbytes, "grid": grid}

    @tilework.jit(launch_metadata=metadata)
    def touched(p):
        tl.store(p, 1)

    seen: list[Any] = []
    knobs.runtime.launch_enter_hook.add(lambda lazy: seen.append(lazy.get()))
    try:
        touched[(1,)](np.zeros(4, "i4"))
    finally:
        knobs.runtime.launch_enter_hook.calls.clear()
    assert seen[0]["name"] == "touched"
    assert seen[0]["bytes"] == 16


def test_preload_rebuilds_a_specialisation() -> None:
    data: list[str] = []
    knobs.runtime.jit_cache_hook = lambda **info: data.append(info["compile"]["specialization_data"]) and False
    first = fill[(1,)](np.zeros(4, "f4"), 1.0, 4)
    fill.device_caches.clear()
    knobs.runtime.jit_cache_hook = None
    second = fill.preload(data[0])
    assert first.hash == second.hash
    assert json.loads(data[0])["key"] in kernels_of(fill)
    with pytest.raises(RuntimeError, match="Specialization data is for"):
        ids.preload(data[0])


def test_async_compile_mode() -> None:
    out = np.zeros(64, "f4")
    with ThreadPoolExecutor(2) as pool, tilework.AsyncCompileMode(pool):
        futures = [fill.warmup(out, 1.0, n, grid=(1,)) for n in (4, 16)]
        assert all(isinstance(future, tilework.FutureKernel) for future in futures)
        fill[(4,)](out, 2.0, 64)
        with pytest.raises(RuntimeError):
            tilework.AsyncCompileMode(pool).__enter__()
    assert (out == 2).all()
    assert all(not isinstance(kernel, tilework.FutureKernel) for kernel in kernels_of(fill).values())


def test_the_listener_hears_of_hits_and_misses() -> None:
    events: list[Any] = []
    knobs.compilation.listener = lambda **event: events.append(event)
    out = np.zeros(4, "f4")
    fill[(1,)](out, 1.0, 4)
    fill.device_caches.clear()
    fill[(1,)](out, 1.0, 4)
    miss, hit = events
    assert (miss["cache_hit"], hit["cache_hit"]) == (False, True)
    assert hit["times"].total_lowering == 0
    assert miss["times"].total_lowering > 0
    assert hit["times"].ir_initialization > 0


def test_a_gpu_tensor_on_the_host_is_refused() -> None:
    class Tensor:
        dtype = "torch.float32"
        is_cuda = True

        def data_ptr(self) -> int:
            return 0

    with pytest.raises(ValueError, match=r"at 0"):
        fill[(1,)](Tensor(), 1.0, 4)


def test_calling_a_kernel_without_a_grid() -> None:
    with pytest.raises(RuntimeError, match="outside of the scope of a kernel"):
        fill(np.zeros(4, "f4"), 1.0, 4)


def test_launches_do_not_grow_memory() -> None:
    import tracemalloc

    args = [np.zeros(4, "f4")] * 3 + [1, 2, 3]
    for _ in range(3):
        empty[(1,)](*args)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(100):
        empty[(1,)](*args)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 30_000


def test_constants_that_cannot_be_hashed() -> None:
    @tilework.jit
    def second(p, values: tl.constexpr):
        tl.store(p, values[1])

    out = np.zeros(1, "i4")
    second[(1,)](out, [3, 7])
    assert out[0] == 7


def test_equal_constants_of_different_types_are_different_kernels() -> None:
    @tilework.jit
    def store(p, value: tl.constexpr):
        tl.store(p, value)

    out = np.zeros(1, "f4")
    for values in ((1, True, 1.0), (0.0, -0.0)):
        assert len({store[(1,)](out, value).hash for value in values}) == len(values)
        assert len({store[(1,)](out, value).hash for value in values}) == len(values)


def test_constants_in_tuples_too() -> None:
    @tilework.jit
    def store(p, value: tl.constexpr):
        tl.store(p, value[0])

    out = np.zeros(1, "f4")
    assert len({store[(1,)](out, value).hash for value in ((1,), (1.0,), (True,))}) == 3


def test_launchers_are_called_as_tritons() -> None:
    """As generated code calls them: three sizes, then the arguments one by one, constants included; hook chains as they are."""
    p = np.zeros(40, np.float32)
    kernel = fill.warmup(p, 1.5, 40, grid=(1,))
    kernel._init_handles()
    seen: list[Any] = []
    enter, leave = knobs.HookChain(), knobs.HookChain(reversed=True)
    launch = lambda grid: kernel.run(
        *grid, 0, kernel.function, kernel.packed_metadata, "facts", enter, leave, p, 1.5, 40, 16
    )  # noqa: E731
    launch((2, 1, 1))
    assert p.tolist() == [1.5] * 32 + [0] * 8
    enter.add(lambda facts: seen.append(("enter", facts)))
    leave.add(lambda facts: seen.append(("leave", facts)))
    launch((3, 1, 1))
    assert p.tolist() == [1.5] * 40 and seen == [("enter", "facts"), ("leave", "facts")]
