"""`kernel[grid](...)`: binding, grids, what is compiled for what, kernels in memory."""

# Kernels annotate parameters with values and texts that are no Python types.
# pyright: reportInvalidTypeForm=false, reportUndefinedVariable=false

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.fake_gpu import STREAM, fake_gpu
from tests.runtime.launch_kernels import entries, fill
from tests.runtime.modules import load_module
from tilework import knobs
from tilework.oracles.interpreter.function import COMPILER_OPTIONS, InterpretedFunction
from tilework.runtime.devices.active_driver import driver
from tilework.targets.options import AMD_OPTIONS, LATER_OPTIONS, CompileOptions, option_names

pytestmark = pytest.mark.usefixtures("fresh_cache")


@tilework.jit
def ids(p):
    i = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    tl.store(p + i, i + 1)


@tilework.jit
def empty(x, y, z, a, b, c):
    pass


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


@pytest.mark.parametrize("name", ["device", "stream", "device_type"])
def test_reserved_options(name: str) -> None:
    with pytest.raises(AssertionError):
        fill[(1,)](np.zeros(4, "f4"), 1.0, 4, **{name: 0})


SIZES: list[tuple[str, Any, type[Exception]]] = [
    *(("num_warps", value, AssertionError) for value in (3, 0, -4)),
    *((name, value, TypeError) for name in ("num_warps", "num_ctas", "num_stages") for value in ("4", 4.0)),
    ("num_ctas", 0, ValueError),
]


@pytest.mark.parametrize("kernel", [fill, InterpretedFunction(fill.fn)], ids=["compiled", "interpreted"])
@pytest.mark.parametrize(("name", "value", "kind"), SIZES)
def test_impossible_sizes_of_launches(kernel: Any, name: str, value: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=f"{name} must be"):
        kernel[(1,)](np.zeros(4, "f4"), 1.0, 4, **{name: value})


def test_the_interpreter_takes_the_options_of_every_target() -> None:
    names = {*option_names(CompileOptions), *AMD_OPTIONS, *LATER_OPTIONS}
    assert names == COMPILER_OPTIONS


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


def test_warmup_does_not_launch() -> None:
    out = np.zeros(4, "f4")
    assert fill.warmup(out, 1.0, 4, grid=(1,)) is not None
    assert not out.any()


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
    """As generated code calls them: three sizes, then the arguments one by one, constants included; hook chains as they
    are."""
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


def test_tuples_as_arguments() -> None:
    @tilework.jit
    def k(p, pair, n):
        tl.store(p, pair[0] * n + pair[1])

    out = np.zeros(1, "i4")
    k[(1,)](out, (3, 1), 5)
    assert out[0] == 16


def test_none_arguments_are_constants() -> None:
    @tilework.jit
    def k(p, bias):
        if bias is None:
            tl.store(p, 1)
        else:
            tl.store(p, tl.load(bias))

    out = np.zeros(1, "i4")
    k[(1,)](out, None)
    assert out[0] == 1
    k[(1,)](out, np.full(1, 9, "i4"))
    assert out[0] == 9


@tilework.jit
def inner(x):
    return x + 1


def test_a_callable_grid_gets_every_parameter_by_name() -> None:
    seen: list[Any] = []
    out = np.zeros(4, "f4")
    fill[lambda meta: seen.append(meta) or (1,)](out, 1.0, n=4, num_warps=2)
    assert seen == [{"p": out, "value": 1.0, "n": 4, "BLOCK": 16}]


def test_order_of_work() -> None:
    events: list[str] = []
    fill.add_pre_run_hook(lambda *args, **kwargs: events.append("pre-run"))
    knobs.runtime.jit_cache_hook = lambda **info: events.append("compile")
    knobs.runtime.jit_post_compile_hook = lambda **info: events.append("compiled")
    knobs.runtime.kernel_load_start_hook.add(lambda *args: events.append("load"))
    knobs.runtime.launch_enter_hook.add(lambda metadata: events.append("enter"))
    knobs.runtime.launch_exit_hook.add(lambda metadata: events.append("exit"))
    fill[lambda meta: events.append("grid") or (1,)](np.zeros(4, "f4"), 1.0, 4)
    assert events == ["pre-run", "compile", "compiled", "grid", "load", "enter", "exit"]
    events.clear()
    with pytest.raises(TypeError):
        fill[(1,)](1.0)
    assert events == ["pre-run"]


def test_the_current_device_and_stream_are_used() -> None:
    with fake_gpu() as gpu:
        fill[(2,)](np.zeros(4, "f4"), 1.0, 4)
        kernel = fill.warmup(np.zeros(4, "f4"), 1.0, 4, grid=(1,))
        kernel[(1, 1, 1)](np.zeros(4, "f4"), 1.0, 4, 16, stream=99)
    assert [launch.stream for launch in gpu.launches] == [STREAM, 99]


def test_a_new_thread_launches() -> None:
    out = np.zeros(4, "f4")
    thread = threading.Thread(target=lambda: fill[(1,)](out, 2.0, 4))
    thread.start()
    thread.join()
    assert (out == 2).all()


def test_the_compiled_kernel_is_returned() -> None:
    out = np.zeros(4, "f4")
    tuned = tilework.autotune([tilework.Config({"BLOCK": 8})], key=[])(fill)
    assert tuned[(1,)](out, 1.0, 4) is fill[(1,)](out, 1.0, 4, BLOCK=8, num_warps=4, num_ctas=1, num_stages=3)
    assert fill[(0,)](out, 1.0, 4) is fill[(1,)](out, 1.0, 4)


def test_warmup_needs_its_grid_as_a_keyword() -> None:
    with pytest.raises(TypeError, match="grid"):
        fill.warmup(np.zeros(4, "f4"), 1.0, 4)


def test_torch_dtypes_stand_for_aligned_tensors_in_warmup() -> None:
    torch = pytest.importorskip("torch")
    kernel = fill.warmup(torch.float32, 1.0, 16, grid=(1,))
    assert kernel is fill.warmup(torch.zeros(16), 1.0, 16, grid=(1,))


def test_a_mock_tensor_stands_for_an_aligned_tensor() -> None:
    kernel = fill.warmup(tilework.MockTensor(np.dtype("f4")), 1.0, 16, grid=(1,))
    assert kernel is fill[(1,)](np.zeros(16, "f4"), 1.0, 16)


def test_device_caches() -> None:
    out = np.zeros(16, "f4")
    kernel = fill[(1,)](out, 1.0, 16, num_warps=2)
    kernels, keys, target, backend, binder = fill.device_caches[0]
    (key,) = kernels
    specs = [("*fp32", "D"), ("fp32", None), ("i32", "D"), ("constexpr", 16)]
    options = {"num_warps": 2, "debug": False, "instrumentation_mode": ""}
    assert key == str(specs) + str(options) and kernels[key] is kernel
    assert list(keys.values()) == [key] and target == driver.active.get_current_target()
    assert backend.target == target and callable(binder)


def test_functions_in_keys_are_their_hashes() -> None:
    @tilework.jit
    def apply(p, f: tl.constexpr):
        tl.store(p, f(tl.load(p)))

    apply[(1,)](np.zeros(1, "f4"), inner)
    assert inner.cache_key in next(iter(apply.device_caches[0][0]))


@pytest.mark.parametrize("clear", ["kernels", "device_caches"])
def test_clearing_forces_a_new_look_up(clear: str) -> None:
    out = np.zeros(16, "f4")
    first = fill[(1,)](out, 1.0, 16)
    (fill.device_caches if clear == "device_caches" else fill.device_caches[0][0]).clear()
    second = fill[(1,)](out, 1.0, 16)
    assert first is not second and first.hash == second.hash


@pytest.mark.parametrize("warm", [False, True], ids=["first launch", "native launch"])
@pytest.mark.parametrize("device", ["native", "evaluator"])
def test_a_callable_grid_that_gives_a_callable(warm: bool, device: str) -> None:
    """The same error on every path, and the second callable is never called."""
    knobs.runtime.device = device
    fill.device_caches.clear()
    kernel, calls = tilework.jit(fill.fn), []
    out = np.zeros(4, "f4")
    if warm:
        kernel[(1,)](out, 1.0, 4)
        kernel[(1,)](out, 1.0, 4)

    def sizes(meta: Any) -> Any:
        calls.append(meta)
        return (1,)

    for _ in range(2):
        with pytest.raises(
            TypeError, match=r"a callable grid returns one to three integers, and this one returned <function"
        ):
            kernel[lambda meta: sizes](out, 1.0, 4)
    with pytest.raises(TypeError, match="a callable grid returns one to three integers"):
        tilework.jit(interpret=True)(fill.fn)[lambda meta: sizes](out, 1.0, 4)
    assert calls == []


def test_a_grid_without_brackets() -> None:
    out = np.zeros(4, "f4")
    fill[1,](out, 3.0, 4)
    assert (out == 3).all()


def test_run_is_a_launch_and_its_hooks_run() -> None:
    seen: list[Any] = []
    fill.add_pre_run_hook(lambda *args, **kwargs: seen.append((args[1:], kwargs)))
    out = np.zeros(4, "f4")
    compiled = fill.run(out, 2.0, grid=(1,), warmup=False, n=4)
    assert (out == 2).all() and seen == [((2.0,), {"n": 4})] and compiled.name == "fill"
    out[:] = 0
    assert fill.run(out, 2.0, 4, grid=(1,), warmup=True) is compiled and not out.any() and len(seen) == 2


def test_globals_are_checked_before_the_grid_is_queried(tmp_path: Path) -> None:
    text = "N = tl.constexpr(1)\n@tilework.jit\ndef k(p):\n    tl.store(p, N)\n"
    module, events = load_module(tmp_path, text, "order"), []
    module.k.add_pre_run_hook(lambda *args, **kwargs: events.append("hook"))
    out = np.zeros(1, "i4")
    module.k[lambda meta: events.append("grid") or (1,)](out)
    module.N = tl.constexpr(2)
    with pytest.raises(RuntimeError, match=r"^Global variable N has changed"):
        module.k[lambda meta: events.append("grid") or (1,)](out)
    assert events == ["hook", "grid", "hook"] and out[0] == 1


def test_dtypes_of_torch_in_warmup(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class of that name is all that is needed."""
    dtype = type("dtype", (), {"__module__": "torch", "__repr__": lambda self: "torch.float32"})
    kernel = fill.warmup(dtype(), 1.0, 16, grid=(1,))
    assert kernel is fill[(1,)](np.zeros(16, "f4"), 1.0, 16) and entries(fill) == 1


def test_addresses_and_null() -> None:
    @tilework.jit
    def first(p: "*fp32", q, given: tl.constexpr):  # noqa: F722
        tl.store(q, tl.load(p) if given else -1.0)

    x, out = np.full(4, 7, "f4"), np.zeros(1, "f4")
    first[(1,)](x.ctypes.data, out, True)
    assert out[0] == 7
    first[(1,)](None, out, False)
    assert out[0] == -1
