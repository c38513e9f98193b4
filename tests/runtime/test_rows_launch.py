"""Kernels, arguments and launches, rule by rule; what other files of this folder test is not repeated."""

import inspect
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.fake_gpu import STREAM, fake_gpu
from tests.runtime.modules import load_module
from tilework import knobs
from tilework.oracles.interpreter import InterpretedFunction
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.launch.jit import create_function_from_signature
from tilework.targets.base import GPUTarget


@tilework.jit
def inner(x):
    return x + 1


@tilework.jit(version=7, noinline=True, debug=True)
def configured(p, n, STEP: tl.constexpr = 4):
    """Doc."""
    tl.store(p, inner(n) * STEP)


@tilework.jit
def store(p, v):
    tl.store(p, v)


@tilework.jit
def fill(p, value, n, BLOCK: tl.constexpr = 16):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, value, mask=i < n)


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Iterator[None]:
    with knobs.cache.scope(), knobs.runtime.scope(), knobs.compilation.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield
    for kernel in (configured, store, fill):
        kernel.device_caches.clear()
        kernel.pre_run_hooks.clear()


# -- 6.1 jit -------------------------------------------------------------------------------------------------------


def test_6_1_version_is_stored() -> None:
    assert configured.version == 7 and store.version is None


def test_6_1_jit_with_and_without_brackets() -> None:
    bare, empty = tilework.jit(store.fn), tilework.jit()(store.fn)
    for kernel in (bare, empty, tilework.JITFunction(store.fn)):
        out = np.zeros(1, "i4")
        kernel[(1,)](out, 5)
        assert out[0] == 5


def test_6_1_noinline_makes_a_real_function() -> None:
    helper = tilework.jit(noinline=True)(inner.fn)
    assert helper.noinline and not inner.noinline

    @tilework.jit
    def calls(p):
        tl.store(p, helper(tl.load(p)))

    assert "attributes {noinline = true}" in calls.warmup(np.zeros(1, "i4"), grid=(1,)).asm["source"]


@pytest.mark.parametrize("which", [["n"], [1], (1,), ("n",)])
@pytest.mark.parametrize("parameter", ["do_not_specialize", "do_not_specialize_on_alignment"])
def test_6_1_do_not_specialize_by_name_and_index(parameter: str, which: Any) -> None:
    kernel = tilework.jit(**{parameter: which})(lambda_free_store())
    out = np.zeros(1, "i4")
    for value in (2, 3, 16, 32):
        kernel[(1,)](out, value)
        assert out[0] == value
    assert len(kernel.device_caches[0][0]) == 1
    kernel[(1,)](out, 1)
    assert len(kernel.device_caches[0][0]) == (1 if parameter == "do_not_specialize" else 2)
    assert kernel.params[1].do_not_specialize is (parameter == "do_not_specialize")


def lambda_free_store() -> Any:
    def store_it(p, n):
        tl.store(p, n)

    return store_it


def test_6_1_interpreter_at_decoration_time() -> None:
    with knobs.runtime.scope():
        knobs.runtime.interpret = True
        kernel = tilework.jit(store.fn)
    assert isinstance(kernel, InterpretedFunction) and not isinstance(store, InterpretedFunction)


ATTRIBUTES = (
    "fn signature params arg_names constexprs src raw_src starting_line_number hash cache_key used_global_vals device_caches"
    " noinline debug module __name__ __qualname__ __doc__ __globals__ pre_run_hooks launch_metadata do_not_specialize version"
    " run warmup preload add_pre_run_hook parse get_capture_scope repr _unsafe_update_src create_binder _pack_args"
)
PARAMETER_ATTRIBUTES = "name num annotation annotation_type is_constexpr is_const do_not_specialize has_default default"


@pytest.mark.parametrize("name", ATTRIBUTES.split())
def test_6_1_attribute(name: str) -> None:
    assert hasattr(configured, name)


@pytest.mark.parametrize("name", PARAMETER_ATTRIBUTES.split())
def test_6_1_parameter_attribute(name: str) -> None:
    assert hasattr(configured.params[2], name)


def test_6_1_values_of_attributes() -> None:
    lines, start = inspect.getsourcelines(configured.fn)
    assert configured.raw_src == lines
    assert configured.starting_line_number == start and configured.__globals__ is globals()
    assert configured.signature == inspect.signature(configured.fn) and configured.debug is True
    assert configured.params[2].num == 2 and configured.params[2].default == 4 and not configured.params[0].has_default
    key = configured.cache_key
    assert configured.hash == key and len(key) == 64


def test_6_1_pack_args_and_the_binder() -> None:
    x = np.zeros(64, "f4")
    backend = store.create_binder()[3]
    bound, specialization, options = store_binder(fill, backend)(x, 1.5, 32, num_warps=8)
    parsed, signature, constants, attrs = fill._pack_args(backend, options, bound, specialization, options)
    assert (parsed.num_warps, signature) == (8, {"p": "*fp32", "value": "fp32", "n": "i32", "BLOCK": "constexpr"})
    assert constants == {(3,): 16} and attrs[(2,)] == [["tt.divisibility", 16]]


def store_binder(kernel: Any, backend: Any) -> Any:
    return create_function_from_signature(kernel.signature, kernel.params, backend)


# -- 6.2 annotations -----------------------------------------------------------------------------------------------


def test_6_2_const_pointer_is_read_only(tmp_path: Path) -> None:
    module = load_module(tmp_path, "@tilework.jit\ndef k(p: tl.const, q):\n    tl.store(p, tl.load(q))\n", "const")
    with pytest.raises(tilework.CompilationError, match="Cannot store to a constant pointer"):
        module.k[(1,)](np.zeros(1, "f4"), np.zeros(1, "f4"))


@pytest.mark.parametrize(
    "note", ["bool", "int", "float", "object", "'torch.Tensor'", "list[int]", "None", "'not python'"]
)
def test_6_2_annotations_are_never_evaluated_in_the_kernel(note: str, tmp_path: Path) -> None:
    name = f"note_{abs(hash(note))}"
    module = load_module(tmp_path, f"@tilework.jit\ndef k(p, x: {note}):\n    tl.store(p, x)\n", name)
    out = np.zeros(1, "f4")
    module.k[(1,)](out, 3)
    assert out[0] == (1 if note == "bool" else 3)


def test_6_2_forced_pointer_types(tmp_path: Path) -> None:
    module = load_module(tmp_path, "@tilework.jit\ndef k(p: '*i32'):\n    tl.store(p, 5)\n", "forced")
    out = np.zeros(1, "i4")
    module.k[(1,)](out.ctypes.data)  # an address
    assert out[0] == 5


def test_6_2_forced_integers_wrap_in_their_type(tmp_path: Path) -> None:
    module = load_module(tmp_path, "@tilework.jit\ndef k(p, x: tl.uint8):\n    tl.store(p, x)\n", "byte")
    out = np.zeros(1, "i4")
    module.k[(1,)](out, 255)
    assert out[0] == 255


# -- 6.3 launch ----------------------------------------------------------------------------------------------------


def test_6_3_a_callable_grid_gets_every_parameter_by_name() -> None:
    seen: list[Any] = []
    out = np.zeros(4, "f4")
    fill[lambda meta: seen.append(meta) or (1,)](out, 1.0, n=4, num_warps=2)
    assert seen == [{"p": out, "value": 1.0, "n": 4, "BLOCK": 16}]


def test_6_3_order_of_work() -> None:
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


def test_6_3_the_current_device_and_stream_are_used() -> None:
    with fake_gpu() as gpu:
        fill[(2,)](np.zeros(4, "f4"), 1.0, 4)
        kernel = fill.warmup(np.zeros(4, "f4"), 1.0, 4, grid=(1,))
        kernel[(1, 1, 1)](np.zeros(4, "f4"), 1.0, 4, 16, stream=99)
    assert [launch.stream for launch in gpu.launches] == [STREAM, 99]


def test_6_3_a_new_thread_launches() -> None:
    out = np.zeros(4, "f4")
    thread = threading.Thread(target=lambda: fill[(1,)](out, 2.0, 4))
    thread.start()
    thread.join()
    assert (out == 2).all()


def test_6_3_the_compiled_kernel_is_returned() -> None:
    out = np.zeros(4, "f4")
    tuned = tilework.autotune([tilework.Config({"BLOCK": 8})], key=[])(fill)
    assert tuned[(1,)](out, 1.0, 4) is fill[(1,)](out, 1.0, 4, BLOCK=8, num_warps=4, num_ctas=1, num_stages=3)
    assert fill[(0,)](out, 1.0, 4) is fill[(1,)](out, 1.0, 4)


def test_6_3_warmup_needs_its_grid_as_a_keyword() -> None:
    with pytest.raises(TypeError, match="grid"):
        fill.warmup(np.zeros(4, "f4"), 1.0, 4)


def test_6_3_torch_dtypes_stand_for_aligned_tensors_in_warmup() -> None:
    torch = pytest.importorskip("torch")
    kernel = fill.warmup(torch.float32, 1.0, 16, grid=(1,))
    assert kernel is fill.warmup(torch.zeros(16), 1.0, 16, grid=(1,))


def test_6_3_a_mock_tensor_stands_for_an_aligned_tensor() -> None:
    kernel = fill.warmup(tilework.MockTensor(np.dtype("f4")), 1.0, 16, grid=(1,))
    assert kernel is fill[(1,)](np.zeros(16, "f4"), 1.0, 16)


# -- 6.4 specialisation --------------------------------------------------------------------------------------------


def test_6_4_divisibility_is_an_attribute_of_the_argument() -> None:
    base = np.zeros(65, "f4")
    aligned = base if base.ctypes.data % 16 == 0 else base[(16 - base.ctypes.data % 16) // 4 :]
    source = fill.warmup(aligned, 1.5, 32, grid=(1,)).asm["source"]
    assert source.count("tt.divisibility = 16") == 2
    source = fill.warmup(aligned[1:], 1.5, 33, grid=(1,)).asm["source"]
    assert "tt.divisibility" not in source


def test_6_4_constants_that_are_functions_and_classes() -> None:
    @tilework.jit
    def apply(p, f: tl.constexpr, T: tl.constexpr):
        tl.store(p, f(tl.load(p)).to(T))

    out = np.zeros(1, "f4")
    apply[(1,)](out, inner, tl.float32)
    assert out[0] == 1


# -- 6.5 memory cache ----------------------------------------------------------------------------------------------


def test_6_5_device_caches() -> None:
    out = np.zeros(16, "f4")
    kernel = fill[(1,)](out, 1.0, 16, num_warps=2)
    kernels, keys, target, backend, binder = fill.device_caches[0]
    (key,) = kernels
    specs = [("*fp32", "D"), ("fp32", None), ("i32", "D"), ("constexpr", 16)]
    options = {"num_warps": 2, "debug": False, "instrumentation_mode": ""}
    assert key == str(specs) + str(options) and kernels[key] is kernel
    assert list(keys.values()) == [key] and target == driver.active.get_current_target()
    assert backend.target == target and callable(binder)


def test_6_5_functions_in_keys_are_their_hashes() -> None:
    @tilework.jit
    def apply(p, f: tl.constexpr):
        tl.store(p, f(tl.load(p)))

    apply[(1,)](np.zeros(1, "f4"), inner)
    assert inner.cache_key in next(iter(apply.device_caches[0][0]))


@pytest.mark.parametrize("clear", ["kernels", "device_caches"])
def test_6_5_clearing_forces_a_new_look_up(clear: str) -> None:
    out = np.zeros(16, "f4")
    first = fill[(1,)](out, 1.0, 16)
    (fill.device_caches if clear == "device_caches" else fill.device_caches[0][0]).clear()
    second = fill[(1,)](out, 1.0, 16)
    assert first is not second and first.hash == second.hash


# -- 6.6 source hash and globals -----------------------------------------------------------------------------------


def test_6_6_cache_key_follows_noinline_and_constexpr_globals(tmp_path: Path) -> None:
    text = "N = tl.constexpr({n})\n@tilework.jit{options}\ndef helper(x):\n    return x + N\n@tilework.jit\ndef k(p):\n    tl.store(p, helper(1))\n"
    keys = {
        load_module(tmp_path, text.format(n=n, options=options), "same").k.cache_key
        for n in (1, 2)
        for options in ("", "(noinline=True)")
    }
    assert len(keys) == 4


def test_6_6_recursion_does_not_hang_the_hash(tmp_path: Path) -> None:
    text = "@tilework.jit\ndef odd(x):\n    return even(x)\n@tilework.jit\ndef even(x):\n    return odd(x)\n"
    module = load_module(tmp_path, text, "recursive")
    assert len(module.odd.cache_key) == 64 and module.odd.cache_key != module.even.cache_key


def test_6_6_aggregates_count_with_their_methods(tmp_path: Path) -> None:
    text = (
        "from tilework.language.core import _aggregate as aggregate\n@aggregate\nclass Pair:\n    a: tl.tensor\n"
        "    def __init__(self, a):\n        self.a = a\n    @tilework.jit\n    def total(self):\n        return self.a + {n}\n"
        "@tilework.jit\ndef k(p):\n    tl.store(p, Pair(tl.load(p)).total())\n"
    )
    one, two = (load_module(tmp_path, text.format(n=n), "same").k for n in (1, 2))
    assert one.cache_key != two.cache_key


def test_6_6_default_arguments_are_fixed_at_definition(tmp_path: Path) -> None:
    module = load_module(tmp_path, "N = 3\n@tilework.jit\ndef k(p, n=N):\n    tl.store(p, n)\n", "defaults")
    out = np.zeros(1, "i4")
    module.k[(1,)](out)
    module.N = 4
    module.k[(1,)](out)
    assert out[0] == 3


def test_6_6_dtype_globals_are_checked_too(tmp_path: Path) -> None:
    text = "T = tl.constexpr(tl.int32)\n@tilework.jit\ndef k(p):\n    tl.store(p, tl.full((), 3, T))\n"
    module = load_module(tmp_path, text, "types")
    out = np.zeros(1, "i4")
    module.k[(1,)](out)
    module.T = tl.constexpr(tl.int64)
    with pytest.raises(RuntimeError, match="Global variable T has changed since we compiled this kernel, from"):
        module.k[(1,)](out)


def test_6_6_caller_and_callee_saw_different_values(tmp_path: Path) -> None:
    text = (
        "N = tl.constexpr(1)\n@tilework.jit\ndef helper(x):\n    return x + N\n"
        "@tilework.jit\ndef first(p):\n    tl.store(p, helper(0))\n"
        "@tilework.jit\ndef second(p):\n    tl.store(p, helper(0) + N)\n"
    )
    module = load_module(tmp_path, text, "conflict")
    out = np.zeros(1, "i4")
    module.first[(1,)](out)
    assert out[0] == 1
    module.N = tl.constexpr(2)
    with pytest.raises(RuntimeError, match=r"^Global variable N has value"):
        module.second[(1,)](out)


def test_6_6_a_changed_function_argument_is_compiled_again_and_found_again() -> None:
    @tilework.jit
    def helper(x):
        return x + 1

    @tilework.jit
    def apply(p, f: tl.constexpr):
        tl.store(p, f(tl.load(p)))

    hits: list[bool] = []
    knobs.compilation.listener = lambda **event: hits.append(event["cache_hit"])
    original, hashes = helper.src, []
    for text in (original, original.replace("+ 1", "+ 5"), original):
        helper._unsafe_update_src(text)
        out = np.zeros(1, "i4")
        hashes.append(apply[(1,)](out, helper).hash)
        assert out[0] == (5 if "+ 5" in text else 1)
        apply.device_caches.clear()
    assert hashes[0] == hashes[2] != hashes[1] and hits == [False, False, True]


def test_6_4_targets_are_values() -> None:
    assert fill.create_binder()[2] == GPUTarget("cpu", "host", 1)
