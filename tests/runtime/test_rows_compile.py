"""Options, compiled kernels, scratch memory, descriptors and drivers, rule by rule; what other files test is not repeated."""

import gc
import json
import re
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.fake_gpu import fake_gpu
from tilework import knobs
from tilework.compiler import ASTSource, compile, lower
from tilework.errors import OutOfResources
from tilework.targets.base import GPUTarget, find_backend

HOPPER, HOST = GPUTarget("cuda", 90, 32), GPUTarget("cpu", "host", 1)


@tilework.jit
def fill(p, value, n, BLOCK: tl.constexpr = 16):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(p + i, value, mask=i < n)


@tilework.jit
def checked(p, n):
    tl.device_assert(n > 0, "n is positive")
    tl.store(p, n)


@tilework.jit
def touch(x):
    tl.store(x, 1)


SIGNATURE = {"p": "*fp32", "value": "fp32", "n": "i32"}


@pytest.fixture(autouse=True)
def fresh_cache(tmp_path: Path) -> Iterator[None]:
    with knobs.cache.scope(), knobs.runtime.scope(), knobs.compilation.scope(), knobs.language.scope():
        knobs.cache.dir = str(tmp_path / "cache")
        yield
    for kernel in (fill, checked, touch):
        kernel.device_caches.clear()


def source(**constants: Any) -> ASTSource:
    return ASTSource(fill, SIGNATURE, {"BLOCK": 16, **constants})


# -- 6.7 options ---------------------------------------------------------------------------------------------------

DEFAULTS = {
    "num_warps": 4, "num_ctas": 1, "num_stages": 3, "maxnreg": None, "arch": "sm90", "ptx_version": None, "ptx_options": None,
    "ir_override": None, "enable_fp_fusion": True, "enable_reflect_ftz": True, "launch_cooperative_grid": False,
    "launch_pdl": False, "debug": False, "sanitize_overflow": True, "deprecated_fp8_dot_operand_dtypes": ("fp8e4b15",),
    "default_dot_input_precision": "tf32", "max_num_imprecise_acc_default": 2**30, "backend_name": "cuda", "warp_size": 32,
    "instrumentation_mode": "", "supported_fp8_dtypes": ("fp8e4b15", "fp8e4nv", "fp8e5"),
    "allowed_dot_input_precisions": ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
}  # fmt: skip
GIVEN = {
    "num_warps": 8, "num_ctas": 2, "num_stages": 5, "maxnreg": 64, "arch": "sm80", "ptx_version": 84, "ptx_options": "-v",
    "enable_fp_fusion": False, "enable_reflect_ftz": False, "launch_cooperative_grid": True, "launch_pdl": True,
    "debug": True, "sanitize_overflow": False, "extern_libs": {"mine": "/nowhere.bc"},
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_6_7_default_of_option(name: str) -> None:
    assert getattr(find_backend(HOPPER).parse_options({}), name) == DEFAULTS[name]
    assert getattr(find_backend(HOPPER).parse_options({name: None}), name) == DEFAULTS[name]


@pytest.mark.parametrize("name", [name for name in GIVEN if name not in ("num_ctas", "arch")])
def test_6_7_option_reaches_the_metadata_and_the_key(name: str) -> None:
    out = np.zeros(16, "f4")
    plain, given = fill[(1,)](out, 1.0, 16), fill[(1,)](out, 1.0, 16, **{name: GIVEN[name]})
    assert plain.hash != given.hash
    wanted = GIVEN[name] if name != "extern_libs" else (["mine", "/nowhere.bc"],)
    assert getattr(given.metadata, name) == wanted


def test_6_7_clusters_need_hopper() -> None:
    assert find_backend(HOPPER).parse_options({"num_ctas": 2}).num_ctas == 2
    for settings in ({"num_ctas": 2, "arch": "sm80"},):
        with pytest.raises(ValueError, match=r"num_ctas > 1 requires NVIDIA SM90\+ \(Hopper\)"):
            find_backend(HOPPER).parse_options(settings)


def test_6_7_arch_overrides_the_target_and_the_knob_wins() -> None:
    options = find_backend(HOPPER).parse_options({"arch": "sm80"})
    assert options.arch == "sm80" and "fp8e4nv" not in options.supported_fp8_dtypes
    knobs.runtime.override_arch = "sm75"
    options = find_backend(HOPPER).parse_options({"arch": "sm80"})
    assert options.arch == "sm75" and options.max_num_imprecise_acc_default == 0
    knobs.runtime.override_arch = "hopper"
    with pytest.raises(ValueError, match="arch 'hopper': expected sm and a number"):
        find_backend(HOPPER).parse_options({})


DEBUG_CASES = [
    # (environment, keyword, decorator) -> on
    (False, None, None, False), (False, None, True, True), (False, True, None, True), (False, False, True, False),
    (True, None, None, True), (True, False, None, True), (True, False, True, True), (True, None, False, True),
]  # fmt: skip


@pytest.mark.parametrize(("environment", "keyword", "decorator", "on"), DEBUG_CASES)
def test_6_7_debug_is_environment_or_keyword_or_decorator(
    environment: bool, keyword: bool | None, decorator: bool | None, on: bool
) -> None:
    kernel = tilework.jit(debug=decorator)(checked.fn)
    knobs.runtime.debug = environment
    settings = {} if keyword is None else {"debug": keyword}
    compiled = kernel.warmup(np.zeros(1, "i4"), 5, grid=(1,), **settings)
    assert compiled.metadata.debug is on
    assert ("tt.assert" in compiled.asm["ttir"]) is on


def test_6_7_libraries_count_with_their_content(tmp_path: Path) -> None:
    path = tmp_path / "mine.bc"
    hashes = set()
    for content in (b"one", b"two", b"one"):
        path.write_bytes(content)
        hashes.add(find_backend(HOPPER).parse_options({"extern_libs": {"mine": str(path)}}).hash())
    assert len(hashes) == 2


# -- 6.8 compile, sources, CompiledKernel --------------------------------------------------------------------------


def test_6_8_parameters_without_a_type_must_be_constants() -> None:
    with pytest.raises(Exception, match="n"):
        compile(ASTSource(fill, {"p": "*fp32", "value": "fp32"}, {"BLOCK": 16}), HOPPER)


def test_6_8_order_is_that_of_the_function() -> None:
    backwards = ASTSource(fill, dict(reversed(SIGNATURE.items())), {"BLOCK": 16})
    assert backwards.hash() == source().hash() and list(backwards.signature) == ["p", "value", "n"]


@pytest.mark.parametrize("constants", [{"BLOCK": 16}, {(3,): 16}, {3: 16}])
def test_6_8_constants_by_name_and_path(constants: Any) -> None:
    text = lower(ASTSource(fill, SIGNATURE, constants), HOPPER)["ttir"]
    assert "end = 16 : i32" in text


def test_6_8_attributes_by_path() -> None:
    text = lower(ASTSource(fill, SIGNATURE, {"BLOCK": 16}, {(0,): [["tt.divisibility", 16]]}), HOPPER)["ttir"]
    assert re.search(r"%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}", text)


def test_6_8_no_target_is_the_current_device() -> None:
    assert compile(source()).metadata.target == HOST


def test_6_8_members() -> None:
    out = np.zeros(16, "f4")
    kernel = fill.warmup(out, 1.0, 16, grid=(1,))
    assert isinstance(kernel.asm["source"], str) and isinstance(kernel.asm["ttir"], str)
    with pytest.raises(KeyError):
        kernel.asm["nothing"]
    names = "hash target name shared tmem_size num_warps num_ctas num_stages global_scratch_size global_scratch_align"
    names += " profile_scratch_size profile_scratch_align tensordesc_meta triton_version"
    for name in names.split():
        assert hasattr(kernel.metadata, name), name
    assert isinstance(kernel.metadata.target, GPUTarget) and kernel.metadata.triton_version == tilework.__version__
    assert all(Path(path).is_file() for path in kernel.metadata_group.values()) and "fill.json" in kernel.metadata_group
    assert kernel.packed_metadata == (4, 1, 1) and kernel.metadata.hash == kernel.hash and len(kernel.hash) == 64
    assert (kernel.module, kernel.function, kernel.n_regs, kernel.n_spills) == (None, None, None, None)
    assert kernel.src.fn is fill and kernel.kernel == kernel.asm[kernel.metadata.binary_ext]
    assert callable(kernel.run)  # loads the binary
    assert None not in (kernel.module, kernel.function, kernel.n_regs, kernel.n_spills, kernel.n_max_threads)


@pytest.mark.parametrize(
    ("facts", "options", "message"),
    [
        ({"shared": 1 << 20}, {}, "out of resource: shared memory, Required: 1048576, Hardware limit: 65536."),
        ({"tmem_size": 513}, {}, "out of resource: tensor memory, Required: 513, Hardware limit: 512."),
        ({}, {"num_warps": 64}, "out of resource: threads, Required: 2048, Hardware limit: 1024."),
    ],
    ids=["shared memory", "tensor memory", "threads"],
)
def test_6_8_out_of_resources(facts: Any, options: Any, message: str) -> None:
    whole = message + " Reducing block sizes or `num_stages` may help."
    with fake_gpu(**facts) as gpu:
        for _ in range(3):
            with pytest.raises(OutOfResources, match=f"^{re.escape(whole)}$"):
                touch[(1,)](np.zeros(1, "i4"), **options)
        assert gpu.loads == (1 if "threads" in message else 0)  # it is remembered, not tried again
    assert not gpu.launches


def test_6_8_a_remembered_error_keeps_no_tracebacks_alive() -> None:
    class Big:
        """Something that a frame of the caller holds."""

    def launch() -> weakref.ref[Big]:
        big = Big()
        with pytest.raises(OutOfResources):
            touch[(1,)](np.zeros(1, "i4"))
        return weakref.ref(big)

    with fake_gpu(shared=1 << 20):
        alive = launch()
        gc.collect()
        assert alive() is None


# -- 6.10 host tensor descriptors ----------------------------------------------------------------------------------


def test_6_10_shape_and_strides_in_the_kernel() -> None:
    from tilework.tools.tensor_descriptor import TensorDescriptor

    @tilework.jit
    def sizes(descriptor, out):
        tl.static_assert(descriptor.shape[0].dtype == tl.int32)
        tl.static_assert(descriptor.strides[0].dtype == tl.int64)
        tl.store(out, descriptor.shape[0])
        tl.store(out + 1, descriptor.shape[1])
        tl.store(out + 2, descriptor.strides[0])
        tl.store(out + 3, descriptor.strides[1])

    base, out = np.zeros((6, 32), "f4"), np.zeros(4, "i8")
    sizes[(1,)](TensorDescriptor.from_tensor(base, [2, 16]), out)
    assert out.tolist() == [6, 32, 32, 1]


# -- 6.11 hooks ----------------------------------------------------------------------------------------------------

COMPILE_KEYS = (
    "key signature device constants num_warps num_ctas num_stages enable_fp_fusion launch_cooperative_grid extern_libs"
    " configs specialization_data is_warmup"
)


@pytest.mark.parametrize("place", ["knob", "class attribute"])
def test_6_11_compile_hooks_get_everything(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def hook(**info: Any) -> bool:
        seen.append({**info, "in cache": info["key"] in fill.device_caches[0][0]})
        return False

    if place == "knob":
        knobs.runtime.jit_cache_hook = knobs.runtime.jit_post_compile_hook = hook
    else:
        monkeypatch.setattr(tilework.JITFunction, "cache_hook", staticmethod(hook))
        monkeypatch.setattr(tilework.JITFunction, "compiled_hook", staticmethod(hook))
    fill.warmup(np.zeros(16, "f4"), 1.5, 16, grid=(1,))
    fill[(1,)](np.zeros(16, "f4"), 1.5, 17)
    assert len(seen) == 4
    before, after = seen[:2]
    assert set(before) == {"key", "repr", "fn", "compile", "is_manual_warmup", "already_compiled", "in cache"}
    assert (before["already_compiled"], before["in cache"]) == (False, False)
    assert (after["already_compiled"], after["in cache"]) == (True, True)
    assert [info["is_manual_warmup"] for info in seen] == [True, True, False, False]
    assert set(before["compile"]) == set(COMPILE_KEYS.split()) and before["compile"]["is_warmup"] is True
    assert before["compile"]["configs"] == [{(0,): [["tt.divisibility", 16]], (2,): [["tt.divisibility", 16]]}]
    assert before["compile"]["extern_libs"] == () and before["compile"]["key"] == before["key"]
    assert (before["fn"].module, before["fn"].name, before["fn"].jit_function) == (__name__, "fill", fill)
    assert before["repr"].startswith("fill[num_warps=4") and before["repr"].endswith("BLOCK: constexpr)")
    data = json.loads(before["compile"]["specialization_data"])
    assert {"name", "signature", "constant_keys", "constant_vals", "attrs_keys", "attrs_vals", "options", "key"} <= set(
        data
    )


def test_6_11_launch_hooks_run_in_order_and_out_in_reverse() -> None:
    events: list[str] = []
    for name in ("one", "two"):
        knobs.runtime.launch_enter_hook.add(lambda metadata, name=name: events.append(f"enter {name}"))
        knobs.runtime.launch_exit_hook.add(lambda metadata, name=name: events.append(f"exit {name}"))
    seen: list[dict[str, Any]] = []
    knobs.runtime.launch_enter_hook.add(lambda metadata: seen.append(metadata.get()))
    kernel = fill[(1,)](np.zeros(16, "f4"), 1.0, 16)
    assert events == ["enter one", "enter two", "exit two", "exit one"]
    assert (seen[0]["name"], seen[0]["function"], seen[0]["stream"]) == ("fill", kernel.function, 0)


def test_6_11_load_hooks_get_five_arguments_each() -> None:
    seen: list[tuple[Any, ...]] = []
    for chain in (knobs.runtime.kernel_load_start_hook, knobs.runtime.kernel_load_end_hook):
        for _ in range(2):
            chain.add(lambda *args: seen.append(args))
    kernel = fill[(1,)](np.zeros(16, "f4"), 1.0, 16)
    fill[(1,)](np.zeros(16, "f4"), 1.0, 16)
    assert len(seen) == 4
    assert seen[0] == (None, None, "fill", kernel.metadata_group, kernel.hash)
    assert seen[3] == (kernel.module, kernel.function, "fill", kernel.metadata_group, kernel.hash)


def test_6_11_the_listener_gets_everything() -> None:
    events: list[dict[str, Any]] = []
    knobs.compilation.listener = lambda **event: events.append(event)
    kernel = compile(source())
    (event,) = events
    assert set(event) == {"src", "metadata", "metadata_group", "times", "cache_hit"}
    assert event["metadata"]["hash"] == kernel.hash and event["metadata"]["target"] == HOST
    assert event["metadata_group"] == kernel.metadata_group
    times = event["times"]
    assert times.lowering_stages[0][0] == "ttir" and times.store_results > 0
    assert times.total_lowering == sum(spent for _, spent in times.lowering_stages)
    assert times.total == times.ir_initialization + times.total_lowering + times.store_results
    compile(source())
    assert events[1]["cache_hit"] and (events[1]["times"].total_lowering, events[1]["times"].store_results) == (0, 0)


def test_6_11_stages_can_be_looked_at() -> None:
    seen: list[tuple[Any, ...]] = []
    knobs.runtime.add_stages_inspection_hook = lambda *args: seen.append(args)
    compile(source(), HOPPER)
    ((backend, stages, options, language, capability),) = seen
    assert backend.target == HOPPER and "ttir" in stages and options.num_warps == 4
    assert (language, capability) == (0, 90)


def test_6_11_preload_keeps_dtypes_constexprs_and_tuples() -> None:
    @tilework.jit
    def convert(p, pair, T: tl.constexpr, SHAPE: tl.constexpr, F: tl.constexpr):
        tl.store(p, (pair[0] + pair[1] + SHAPE[0] + F).to(T))

    data: list[str] = []
    knobs.runtime.jit_cache_hook = lambda **info: data.append(info["compile"]["specialization_data"]) and False
    out = np.zeros(1, "f4")
    first = convert[(1,)](out, (2, 1), tl.float32, (3, 4), 0.5)
    assert out[0] == 6.5
    knobs.runtime.jit_cache_hook = None
    convert.device_caches.clear()
    second = convert.preload(data[0])
    assert second.hash == first.hash
    assert convert[(1,)](out, (2, 1), tl.float32, (3, 4), 0.5) is second


def test_6_11_async_mode_submits_each_kernel_once_and_fills_the_cache() -> None:
    out = np.zeros(64, "f4")
    submitted: list[Any] = []

    class Counting(ThreadPoolExecutor):
        def submit(self, *args: Any, **kwargs: Any) -> Any:
            submitted.append(args)
            return super().submit(*args, **kwargs)

    with Counting(2) as pool, tilework.AsyncCompileMode(pool):
        futures = [fill.warmup(out, 1.0, 16, grid=(1,)) for _ in range(3)]
        assert futures[0] is futures[1] is futures[2]
        assert futures[0].result().metadata.name == "fill"
    assert len(submitted) == 1
    assert list(fill.device_caches[0][0].values()) == [futures[0].result()]


@pytest.mark.parametrize("ignore", [False, True])
def test_6_11_async_errors(ignore: bool) -> None:
    @tilework.jit
    def bad(p):
        tl.static_assert(False, "never")

    def compile_it() -> None:
        with ThreadPoolExecutor(1) as pool, tilework.AsyncCompileMode(pool, ignore_errors=ignore):
            bad.warmup(np.zeros(1, "f4"), grid=(1,))

    if ignore:
        compile_it()
    else:
        with pytest.raises(tilework.CompilationError, match="never"):
            compile_it()
    with pytest.raises(tilework.CompilationError, match="never"):
        bad[(1,)](np.zeros(1, "f4"))
