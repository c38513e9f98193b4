"""What Triton 3.7 and 3.8 have around the compiler: the launch of described arguments, options, backends by name,
plugins, and names."""

# pyright: reportMissingParameterType=false

import importlib
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime import cuda_programs as programs
from tests.runtime.emulated_cuda import emulated_cuda
from tests.runtime.emulated_hip import emulated_hip
from tests.runtime.launch_kernels import HOPPER, fill, fill_source
from tilework import knobs
from tilework.compiler import ASTSource, GPUTarget, compile, make_backend
from tilework.errors import OptionError
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.knobs.meanings import NO_EFFECT, WITHOUT_KNOB
from tilework.process.plugins import PluginError, extend_with, prefer
from tilework.runtime.devices.active_driver import default_driver, driver
from tilework.runtime.devices.cuda.device import DeviceArray
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.runtime.devices.gpu.described_launch import kernel_values
from tilework.runtime.kernel_cache.key import CACHE_INVALIDATING, get_cache_key
from tilework.targets.options import CompileOptions
from tilework.transforms.passes import module_pass
from tilework.transforms.registry import parse_pipeline
from tilework.triton import drivers, libtriton_ir, libtriton_passes
from tilework.triton.backends import CUDABackend, CUDAOptions, get_features
from tilework.triton.drivers import (
    PyKernelArg,
    annotate_arguments,
    expand_signature,
    hip_expand_signature,
    make_kernel_signature,
)
from tilework.triton.runtime import _tuple_create, apply_with_path, find_paths_if, is_iterable

pytestmark = pytest.mark.usefixtures("fresh_cache")

# ---- the launcher


def active() -> Any:
    return driver.active


@pytest.mark.parametrize(
    ("signature", "metas", "expanded"),
    [
        (["*fp32", "i32", "constexpr"], None, ["*fp32", "i32", "constexpr"]),
        (["tensordesc<fp16[8]>"], [{"swizzle": 0}], ["nvTmaDesc", "i32", "i64"]),
        (["tensordesc<fp16[8]>"], [None], ["*fp16", "i64", "i64", "i1", "i1", "i32", "i64"]),
        (["tensordesc<fp16[8]>"], None, ["*fp16", "i64", "i64", "i1", "i1", "i32", "i64"]),
        (
            ["i32", "tensordesc<fp32[8, 16]>", "tensordesc<i8[4, 16],#layout>"],
            [None, {"swizzle": 3}],
            [
                "i32",
                "*fp32",
                *["i64"] * 4,
                "i1",
                "i1",
                "i32",
                "i32",
                "i64",
                "i64",
                "nvTmaDesc",
                "i32",
                "i32",
                "i64",
                "i64",
            ],
        ),
    ],
)
def test_the_signature_with_the_values_of_descriptors(signature: Any, metas: Any, expanded: Any) -> None:
    assert expand_signature(signature, metas) == expanded
    of_amd = ["tensordesc" if type == "nvTmaDesc" else type for type in expanded]
    assert hip_expand_signature(signature, metas) == of_amd


NESTED = ["*fp32", ("i32", "constexpr", ("fp64",)), "constexpr", "nvTmaDesc", "u8"]


def test_signatures_as_bytes_and_annotations() -> None:
    found = make_kernel_signature(NESTED)
    assert isinstance(found, bytes) and len(found) == 5 == len(set(found))
    assert found == make_kernel_signature(["*i8", "i32", "fp64", "nvTmaDesc", "u8"]), "pointers are all alike"
    constant, plain = PyKernelArg(None, 0), PyKernelArg(None, 1)
    inner = PyKernelArg([plain, constant, PyKernelArg([plain], 2)], 2)
    annotations = annotate_arguments(NESTED)
    assert annotations == [plain, inner, constant, plain, plain]
    assert (drivers.ARG_CONSTEXPR, drivers.ARG_KERNEL, drivers.ARG_TUPLE) == (0, 1, 2)
    assert list(kernel_values(annotations, ("p", (1, 2, (3.0,)), 4, "map", 5))) == ["p", 1, 3.0, "map", 5]
    with pytest.raises(ValueError, match=r"^Unknown data type: complex64$"):
        make_kernel_signature(["*fp32", "complex64"])


GONE = ["make_launcher", "FLOAT_STORAGE_TYPE", "FLOAT_PACK_FUNCTION", "_BASE_ARGS_FORMAT"]


@pytest.mark.parametrize("name", GONE)
def test_names_that_37_does_not_have(name: str) -> None:
    assert not hasattr(drivers, name)
    with emulated_cuda():
        utils = active().utils
        assert not hasattr(utils, "fill_tma_descriptor")


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("pdl", [False, True])
def test_a_launch_of_described_arguments_on_cuda(cooperative: bool, pdl: bool) -> None:
    with emulated_cuda() as library:
        utils, calls = active().utils, []
        function = utils.load_binary("scale", programs.scale(), 0, 0)[1]
        x, types = DeviceArray.of(np.arange(100, dtype="f4")), ["*fp32", ("i32", "constexpr"), "fp32"]
        hooks = [lambda metadata, name=name: calls.append((name, metadata)) for name in ("enter", "exit")]
        utils.launch(
            4, 1, 1, 0, function, cooperative, pdl, (1, 1, 0), "facts", *hooks, None, None, annotate_arguments(types),
            make_kernel_signature(types), (x, (90, "constant"), 3.0),
        )  # fmt: skip
        expected = np.arange(100, dtype="f4")
        expected[:90] *= 3
        assert (x.numpy() == expected).all() and calls == [("enter", "facts"), ("exit", "facts")]
        assert len(library.launches) == 1


def test_a_launch_of_described_arguments_passes_scratch_and_maps() -> None:
    with emulated_cuda():
        utils = active().utils
        out, scratch, profile = (DeviceArray(2, "uint64") for _ in range(3))
        function = utils.load_binary("pointers", programs.pointers(), 0, 0)[1]
        utils.launch(
            1, 1, 1, 0, function, False, False, (1, 1, 0), None, None, None, scratch, profile,
            annotate_arguments(["*i64"]), make_kernel_signature(["*i64"]), (out,),
        )  # fmt: skip
        assert out.numpy().tolist() == [scratch.data_ptr(), profile.data_ptr()]


@tilework.jit
def add_one(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def test_a_launch_of_described_arguments_on_hip() -> None:
    with emulated_hip():
        array_cls = active().array_cls
        x, types, calls = array_cls.of(np.zeros(100, "f4")), ["*fp32", "i32", "constexpr"], []
        kernel = add_one.warmup(x, 90, BLOCK=64, grid=(1,))
        kernel._init_handles()
        utils, metadata = active().utils, kernel.metadata
        packed = (metadata.num_warps, metadata.num_ctas, metadata.shared)
        utils.launch(
            False, 2, 1, 1, 0, kernel.function, None, packed, "facts", calls.append, calls.append,
            metadata.target.warp_size, annotate_arguments(types), make_kernel_signature(types), (x, 90, 64),
        )  # fmt: skip
        assert x.numpy().tolist() == [1] * 90 + [0] * 10 and calls == ["facts", "facts"]


class WithImages(EmulatedCuda):
    """Records the arguments for maps of images."""

    maps: list[Any] = []

    def cuTensorMapEncodeIm2col(
        self, target: int, type: int, rank: int, base: int, sizes: Any, strides: Any, lower: Any, upper: Any,
        channels: int, pixels: int, steps: Any, interleave: int, swizzle: int, promotion: int, fill: int,
    ) -> int:  # fmt: skip
        corners = list(lower[: rank - 2]), list(upper[: rank - 2])
        self.maps.append(
            (type, rank, base, sizes[:rank], strides[: rank - 1], *corners, channels, pixels, steps[:rank])
        )
        return 0


def test_maps_of_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.runtime.emulated_cuda.EmulatedCuda", WithImages)
    with emulated_cuda():
        utils, image = active().utils, ([2, 8, 9, 16], [1152, 144, 16, 1])
        utils.fill_tma_descriptor_im2col(1 << 40, 0, 2, 6, [64, 16], *image, 0, [-1, -2], [1, 2])
        (found,) = WithImages.maps
        assert found == (6, 4, 1 << 40, [16, 9, 8, 2], [32, 288, 2304], [-2, -1], [2, 1], 16, 64, [1, 1, 1, 1])
        with pytest.raises(ValueError, match="3 to 5 dimensions"):
            utils.fill_tma_descriptor_im2col(1 << 40, 0, 2, 6, [64, 16], [8, 16], [16, 1], 0, [], [])


# ---- the driver by the name of its backend


@pytest.fixture
def plain_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWORK_DEVICE", raising=False)


@pytest.mark.usefixtures("plain_device")
def test_the_default_backend_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "cpu")
    assert default_driver().get_current_target().backend == "cpu"
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "nope")
    with pytest.raises(
        RuntimeError, match=r"^Unknown backend device 'nope'\. Available backends: \['nvidia', 'amd'.*\]$"
    ):
        default_driver()
    monkeypatch.delenv("TRITON_DEFAULT_BACKEND")
    usual = type(default_driver())
    monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "")  # as if it were not set
    assert type(default_driver()) is usual
    with emulated_cuda():
        knobs.runtime.device = None
        monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "nvidia")
        assert default_driver().get_current_target().backend == "cuda"
        monkeypatch.setattr("tilework.runtime.devices.hip_driver.HipDriver.is_active", classmethod(lambda cls: False))
        monkeypatch.setenv("TRITON_DEFAULT_BACKEND", "amd")
        with pytest.raises(RuntimeError, match=r"^Backend device 'amd' is not active\.$"):
            default_driver()


# ---- options and knobs


@pytest.mark.parametrize("version", ["3.6.0", "3.7.1"])
@pytest.mark.parametrize("mode", ["", "consan", "iisan", "consan,iisan", "other"])
def test_instrumentation_modes(version: str, mode: str) -> None:
    knobs.language.triton_version = version
    checks = "consan" in mode or "iisan" in mode
    options = CUDABackend(HOPPER).parse_options({"instrumentation_mode": mode})
    assert options.enable_iisan is ("iisan" in mode)
    for found in (options, make_backend(HOPPER).parse_options({"instrumentation_mode": mode})):
        assert found.debug is checks and found.sanitize_overflow is not (checks and version != "3.6.0")
    knobs.compilation.instrumentation_mode = mode
    metadata = fill.warmup(np.zeros(4, "f4"), 1.0, 4, grid=(1,)).metadata
    assert (metadata.debug, metadata.instrumentation_mode) == (checks, mode)
    assert CUDAOptions().enable_iisan is False
    of_amd = make_backend(AMD).parse_options({"instrumentation_mode": mode})
    assert (of_amd.debug, of_amd.sanitize_overflow, of_amd.instrumentation_mode) == (False, True, mode)


AMD = GPUTarget("hip", "gfx942", 64)
LATER: list[tuple[str, Any, Any]] = [
    ("clc", False, True),
    ("fpsan_homomorphic_casts", False, True),
]


@pytest.mark.parametrize(("name", "usual", "other"), LATER)
def test_options_of_38_may_be_named(name: str, usual: Any, other: Any) -> None:
    out = np.zeros(4, "f4")
    fill[(1,)](out, 1.0, 4, **{name: usual})
    assert out.tolist() == [1] * 4
    with pytest.raises(OptionError, match=f"{name}=.* is of Triton 3.8, and tilework does not have it"):
        fill[(1,)](out, 1.0, 4, **{name: other})
    with pytest.raises(OptionError, match=name):
        CompileOptions.of({name: other})


@pytest.mark.parametrize(("least", "expected"), [(None, 0), (0, 0), (65536, 65536)])
def test_least_shared_memory(least: int | None, expected: int) -> None:
    kernel = compile(fill_source(), HOPPER, options={"min_shared_mem": least})
    assert kernel.metadata.shared == expected
    fill[(1,)](out := np.zeros(4, "f4"), 1.0, 4, min_shared_mem=least)  # the CPU has none
    assert out.tolist() == [1] * 4


def test_least_shared_memory_that_no_gpu_has() -> None:
    with pytest.raises(ValueError, match="min_shared_mem is a number of bytes, got -1"):
        compile(fill_source(), HOPPER, options={"min_shared_mem": -1})


ATTRIBUTES = {
    "amdgpu-sched-strategy=max-ilp": ['"amdgpu-sched-strategy"="max-ilp"'],
    " amdgpu-waves-per-eu=2, 2bare": ['"amdgpu-waves-per-eu"="2"', '"2bare"'],
    (("one", "1,2"), ("bare", None)): ['"one"="1,2"', '"bare"'],
    "denormal-fp-math-f32=preserve-sign": ['"denormal-fp-math-f32"="preserve-sign"'],
}


@pytest.mark.parametrize("given", ATTRIBUTES)
def test_attributes_of_kernels_for_amd(given: Any) -> None:
    """An attribute that tilework sets too is replaced by the user's."""
    kernel = compile(fill_source(), AMD, options={"llvm_fn_attrs": given})
    for text in ATTRIBUTES[given]:
        assert kernel.asm["llir"].count(text) == 1
        assert kernel.asm["llir"].count(f"{text.partition('=')[0]}=") <= 1


@pytest.mark.parametrize("given", [3, ("one",), "a b=1", '"=1', (("one", 1),)])
def test_wrong_attributes_of_kernels_for_amd(given: Any) -> None:
    with pytest.raises(ValueError, match='llvm_fn_attrs is a text like "name=value,name"'):
        compile(fill_source(), AMD, options={"llvm_fn_attrs": given})


INVALIDATING = [
    "TRITON_PLUGIN_PATHS", "TRITON_PLUGIN_VERSION_CHECK", "TRITON_PARTITION_SCHEDULING_ENABLE_DUMP_DOT",
    "TRITON_PARTITION_SCHEDULING_DUMP_DATA_ONLY", "TRITON_PARTITION_SCHEDULING_DUMP_LOOP_ONLY",
]  # fmt: skip


@pytest.mark.parametrize("name", INVALIDATING)
def test_variables_of_37_are_part_of_keys_and_documented(name: str) -> None:
    assert name in CACHE_INVALIDATING and name in WITHOUT_KNOB
    assert (WITHOUT_KNOB[name][1] == NO_EFFECT) is (name != "TRITON_PLUGIN_PATHS")


TEXTS = (None, "0", "1", "on", "FALSE", "123", "/d")
SWITCH = [False, True, True, False, False, False]
KNOBS = {  # what each of `TEXTS` means, as Triton 3.7.1 reads it
    "TRITON_HIP_USE_ASYNC_COPY": ("amd", "use_async_copy", [None, *SWITCH]),
    "TRITON_DUMP_MIR": ("amd", "dump_mir", list(TEXTS)),
    "TRITON_SWAP_MIR": ("amd", "swap_mir", list(TEXTS)),
    "TRITON_PROFILE_BUFFER_SIZE": ("proton", "profile_buffer_size", [64 << 20, 0, 1, RuntimeError, RuntimeError, 123,
                                                                   RuntimeError]),
    "TRITON_ENABLE_HW_TRACE": ("proton", "enable_hw_trace", [False, *SWITCH]),
}  # fmt: skip


@pytest.mark.parametrize("variable", KNOBS)
def test_variables_of_37(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    group, name, wanted = KNOBS[variable]
    for text, value in zip(TEXTS, wanted, strict=True):
        monkeypatch.delenv(variable, raising=False)
        if text is not None:
            monkeypatch.setenv(variable, text)
        if value is RuntimeError:
            with pytest.raises(RuntimeError, match=f"^Unable to use {variable}={text}: expected int$"):
                getattr(getattr(knobs, group), name)
        else:
            found = getattr(getattr(knobs, group), name)
            assert found == value and type(found) is type(value)


@pytest.mark.parametrize(("version", "feature"), [(80, 80), (86, 86), (87, 87), (90, 90), (91, 90), (92, 90)])
def test_features_for_llvm(version: int, feature: int) -> None:
    for arch in (80, 90, 120):
        assert get_features(CUDAOptions(ptx_version=version), arch) == f"+ptx{feature}"


def test_machine_instructions_for_amd(tmp_path: Path) -> None:
    (folder := tmp_path / "mir").mkdir()
    with knobs.amd.scope():
        knobs.amd.dump_mir = str(folder)
        compile(fill_source(), AMD)
        (file,) = folder.iterdir()
        assert file.name == "fill.txt" and "Machine code for function fill" in file.read_text()
    with (
        knobs.amd.scope(),
        pytest.raises(ValueError, match=r"TRITON_SWAP_MIR=.*: llvmlite cannot read machine instructions"),
    ):
        knobs.amd.swap_mir = str(folder)
        compile(ASTSource(fill, {"p": "*fp32", "value": "fp32", "n": "i32"}, {"BLOCK": 32}), AMD)


def test_a_tuning_listener() -> None:
    seen: list[dict[str, Any]] = []
    knobs.autotuning.listener = lambda **facts: seen.append(facts)
    configs = [tilework.Config({"BLOCK": size}) for size in (16, 32)]
    tuned = tilework.autotune(configs, key=["n"])(add_one)
    x = np.zeros(16, "f4")
    tuned[(1,)](x, 16)
    tuned[(1,)](x, 16)
    (facts,) = seen
    assert (
        facts["fn"] is add_one.fn
        and facts["best_config"] is tuned.best_config
        and set(facts["timings"]) == set(configs)
    )
    assert facts["bench_time"] > 0 and facts["cache_hit"] is False
    assert isinstance(knobs.runtime.kernel_unload_hook, knobs.HookChain)


# ---- plugins


@module_pass("drop-names")
def drop_names(module: Any) -> None:
    for op in module.walk():
        op.attributes.pop("note", None)


def doubled_value(builder: Any, values: Any) -> Any:
    from tilework.ir import arith

    return builder.insert(arith.binary(arith.AddfOp, values[0], values[0], builder.loc)).results[0]


TEXT = "tt.func public @f(%x: f32) -> f32 {\n  %y = arith.addf %x, %x {note = 1 : i32} : f32\n  tt.return %y : f32\n}"


def test_a_package_can_add_passes() -> None:
    assert dir(libtriton_passes.plugin) == []
    prefer("tilework.passes", "drop-names", f"{__name__}:drop_names")
    prefer("tilework.passes", "cut", "tilework.transforms.tt.loop_unroll:UnrollShortLoopsPass")
    try:
        module = parse_module(TEXT)
        (found,) = parse_pipeline("drop-names")
        found.run(module)
        assert "note" not in print_module(module)
        pm = libtriton_ir.pass_manager(libtriton_ir.context())
        add = libtriton_passes.plugin
        assert dir(add) == ["cut", "drop-names"]
        getattr(add, "drop-names")(pm)
        add.cut(pm, ["most=4"])
        add.cut(pm, args=[])
        assert pm.items == ["drop-names", "cut{most=4}", "cut"]
    finally:
        prefer("tilework.passes", "drop-names", None)
        prefer("tilework.passes", "cut", None)
    with pytest.raises(AttributeError, match="no plugin has a pass drop"):
        _ = libtriton_passes.plugin.drop


@tl.core.builtin
def doubled(x: Any, _semantic: Any = None) -> Any:
    return tl.tensor(_semantic.builder.create_doubled([x.handle]), x.type)


@tilework.jit
def with_custom_op(x):
    tl.store(x, doubled(tl.load(x)))


def test_a_package_can_add_methods_of_the_builder() -> None:
    prefer("tilework.ops", "create_doubled", f"{__name__}:doubled_value")
    try:
        x = np.full(1, 3, "f4")
        with_custom_op[(1,)](x)
        assert x[0] == 6
    finally:
        prefer("tilework.ops", "create_doubled", None)
    with_custom_op.device_caches.clear()
    knobs.compilation.always_compile = True
    with pytest.raises(tilework.CompilationError, match="has no attribute 'create_doubled'"):
        with_custom_op[(1,)](x)


@pytest.mark.parametrize("group", ["tilework.ops", "tilework.passes"])
def test_kernels_are_cached_by_the_plugins(group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache key has the names of plugins, their targets and the text of their files."""
    monkeypatch.syspath_prepend(tmp_path)
    first, second, gone = (tmp_path / f"{name}_plugin_of_a_test.py" for name in ("first", "second", "gone"))
    source, backend = fill_source(), make_backend(GPUTarget("cuda", 90, 32))

    def key() -> str:
        return get_cache_key(source, backend, backend.parse_options({}), {})

    plain = key()
    found = {plain}
    try:
        for file, name, text in ((first, "f", "f = 1"), (first, "f", "f = 2"), (first, "g", "f = 2"),
                                 (second, "f", "f = 2"), (gone, "f", None)):  # fmt: skip
            if text is not None:
                file.write_text(text)
            importlib.invalidate_caches()
            prefer(group, "planted", f"{file.stem}:{name}")
            assert key() == key() and key() not in found
            found.add(key())
    finally:
        prefer(group, "planted", None)
    assert key() == plain


def test_a_compiled_plugin_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_PLUGIN_PATHS", "/lib/libplugin.so:/lib/other.so")
    said = "^Failed to load plugin from path: /lib/libplugin.so: TRITON_PLUGIN_PATHS names libraries"
    with pytest.raises(PluginError, match=said):
        compile(fill_source())
    with pytest.raises(PluginError, match=said):
        _ = libtriton_passes.plugin.anything


@pytest.mark.parametrize("load", [extend_with, libtriton_ir.extend_dialects_with, libtriton_passes.plugin.extend_with])
def test_a_compiled_plugin_of_38_is_refused(load: Any) -> None:
    with pytest.raises(
        PluginError, match=r"from path: /lib/libplugin\.so: extend_with names libraries for Triton's own"
    ):
        load("/lib/libplugin.so")
    assert dir(libtriton_passes.plugin) == []


# ---- names


def test_paths_in_nested_sequences() -> None:
    values, seen = [1, ("D", [2, tl.tuple([3])])], []
    apply_with_path(values, lambda path, value: seen.append((path, value)))
    assert seen == [((0,), 1), ((1, 0), "D"), ((1, 1, 0), 2), ((1, 1, 1, 0), 3)]
    assert find_paths_if(values, lambda path, value: value == 3) == [(1, 1, 1, 0)]
    assert [is_iterable(value) for value in (values, (), tl.tuple([1]), "ab", 3, {})] == [True] * 3 + [False] * 3
    pair = namedtuple("Pair", "first second")
    assert _tuple_create(pair(1, 2), [3, 4]) == pair(3, 4) and type(_tuple_create(pair(1, 2), [3, 4])) is pair
    assert _tuple_create((1, 2), iter([3, 4])) == (3, 4)


def test_a_function_has_no_value_at_run_time() -> None:
    handles: list[Any] = []
    assert add_one._flatten_ir(handles) is None and handles == []


def test_integer_attributes_of_operations() -> None:
    module = libtriton_ir.module(parse_module(TEXT), libtriton_ir.context())
    found: dict[str, Any] = {}
    module.walk(lambda op: found.update({op.get_name(): (op.get_int_attr("note"), op.get_int_attr("other"))}))
    assert found["arith.addf"] == (1, None) and found["tt.return"] == (None, None)
