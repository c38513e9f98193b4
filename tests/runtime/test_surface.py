"""Every name that programs written for Triton import, and how its exceptions behave."""

import ast
import pickle
from dataclasses import FrozenInstanceError
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import tilework
from tilework.compiler import CompileTimeAssertionFailure, UnsupportedLanguageConstruct
from tilework.errors import AutotunerError, InterpreterError, OutOfResources, PTXASError
from tilework.triton.backends.compiler import GPUTarget, Language
from tilework.triton.experimental.gluon.language._layouts import NVMMASharedLayout
from tilework.triton.experimental.gluon.nvidia.hopper import TensorDescriptor
from tilework.triton.serving.finder import additions, exists, has_source, place_of

NAMES = {
    "triton": """__version__ jit autotune heuristics Config JITFunction KernelInterface MockTensor TensorWrapper
        reinterpret OutOfResources InterpreterError TritonError CompilationError compile constexpr_function
        AsyncCompileMode FutureKernel set_allocator must_use_result cdiv next_power_of_2 language runtime compiler
        testing tools knobs backends errors as_triton""",
    "triton.language": """core math standard random semantic extra target_info str_to_ty constexpr_type tuple_type
        tensor_descriptor_type""",
    "triton.language.core": """builtin extern is_builtin _aggregate base_value base_type constexpr_type
        _unwrap_if_constexpr get_int_dtype to_tensor extern_elementwise inline_asm_elementwise must_use_result load
        store dot tensor constexpr float32""",
    "triton.language.math": "exp sqrt",
    "triton.language.standard": "sum softmax",
    "triton.language.random": "philox rand",
    "triton.language.semantic": "Semantic",
    "triton.language.target_info": "current_target is_cuda",
    "triton.language.extra": "cuda libdevice",
    "triton.language.extra.libdevice": "exp sqrt",
    "triton.language.extra.cuda": """libdevice globaltimer smid num_threads num_warps gdc_wait gdc_launch_dependents
        convert_custom_float8_sm70 convert_custom_float8_sm80""",
    "triton.language.extra.cuda.libdevice": "exp sqrt",
    "triton.runtime": """driver autotuner jit cache errors build Autotuner Heuristics RedisRemoteCacheBackend
        RemoteCacheBackend""",
    "triton.runtime.driver": "driver",
    "triton.runtime.autotuner": "Autotuner Heuristics Config autotune heuristics",
    "triton.runtime.jit": """JITCallable JITFunction ConstexprFunction KernelParam MockTensor TensorWrapper reinterpret
        mangle_type type_canonicalisation_dict create_function_from_signature get_jit_fn_file_line""",
    "triton.runtime.cache": """CacheManager FileCacheManager RemoteCacheBackend RedisRemoteCacheBackend
        RemoteCacheManager get_cache_manager get_dump_manager get_override_manager get_cache_key triton_key""",
    "triton.runtime.errors": "InterpreterError OutOfResources PTXASError AutotunerError",
    "triton.runtime.build": "compile_module_from_src",
    "triton.runtime._allocation": "NullAllocator set_allocator set_profile_allocator",
    "triton.runtime.interpreter": "InterpretedFunction",
    "triton.compiler": """compile ASTSource IRSource CompiledKernel CompilationError make_backend LazyDict
        get_cache_key""",
    "triton.compiler.compiler": "compile ASTSource",
    "triton.compiler.errors": "CompilationError CompileTimeAssertionFailure UnsupportedLanguageConstruct",
    "triton.compiler.code_generator": "compile_to_ttir",
    "triton.backends": "",
    "triton.backends.compiler": "GPUTarget BaseBackend Language",
    "triton.backends.driver": "DriverBase GPUDriver",
    "triton.backends.nvidia.compiler": "CUDABackend CUDAOptions",
    "triton.backends.amd.compiler": "HIPBackend",
    "triton.tools": "",
    "triton.tools.tensor_descriptor": "TensorDescriptor",
    "triton.tools.mxfp": "MXFP4Tensor MXScaleTensor",
    "triton.testing": "do_bench do_bench_cudagraph perf_report Benchmark assert_close",
    "triton.errors": "TritonError",
    "triton.knobs": """build redis cache compilation autotuning runtime language nvidia amd proton propagate_env env
        refresh_knobs env_str env_str_callable_default env_bool env_int env_opt_str env_opt_bool env_class
        env_nvidia_tool base_knobs HookChain CompileTimes""",
    "triton._utils": "canonicalize_dtype canonicalize_ptr_dtype type_canonicalisation_dict TRITON_MAX_TENSOR_NUMEL",
    "triton._internal_testing": """int_dtypes uint_dtypes integral_dtypes float_dtypes float_dtypes_with_bfloat16
        dtypes dtypes_with_bfloat16 torch_float8_dtypes torch_dtypes tma_dtypes is_cuda is_hopper is_blackwell is_hip
        is_interpreter get_arch supports_tma numpy_random to_triton to_numpy str_to_triton_dtype torch_dtype_name
        unwrap_tensor default_alloc_fn _fresh_knobs_impl""",
    "triton._filecheck": "run_parser run_filecheck run_filecheck_test filecheck_test",
    "triton._C.libtriton": "native_specialize_impl ir llvm nvidia",
    "triton.experimental.gluon.nvidia.hopper": "TensorDescriptor",
    "triton.experimental.gluon.language._layouts": "NVMMASharedLayout",
}


@pytest.mark.parametrize("module", NAMES)
def test_names_exist(module: str) -> None:
    places = [place_of(module), *additions().get(place_of(module), ())]
    found = [import_module(place) for place in places]
    missing = [name for name in NAMES[module].split() if not any(hasattr(place, name) for place in found)]
    assert [name for name in missing if not exists(place_of(f"{module}.{name}"))] == []


def test_the_driver_is_an_object_even_after_its_module_was_imported() -> None:
    import_module("tilework.runtime.devices.active_driver")
    driver = tilework.runtime.driver
    for name in ("default", "set_active", "reset_active", "_active", "_default"):
        assert hasattr(type(driver), name) or name in vars(driver)
    assert isinstance(type(driver).active, property)


def test_as_triton_is_a_function_and_a_module() -> None:
    assert callable(tilework.as_triton) and tilework.as_triton is import_module("tilework.as_triton")


def test_targets_are_values() -> None:
    target = GPUTarget("cuda", 90, 32)
    assert target == GPUTarget(backend="cuda", arch=90, warp_size=32) and hash(target) == hash(
        GPUTarget("cuda", 90, 32)
    )
    with pytest.raises(FrozenInstanceError):
        target.arch = 80  # pyright: ignore[reportAttributeAccessIssue]
    assert (Language.TRITON.value, Language.GLUON.value) == (0, 1)


NODE = ast.parse("x = 1\ny = x +  z", mode="exec").body[1]


@pytest.mark.parametrize(
    "kind",
    [tilework.CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct],
    ids=lambda k: k.__name__,
)
def test_compilation_errors(kind: type[tilework.CompilationError]) -> None:
    error = kind("x = 1\ny = x +  z", NODE, "z is not defined")
    assert isinstance(error, tilework.CompilationError) and isinstance(error, tilework.TritonError)
    assert (error.src, error.node, error.error_message) == ("x = 1\ny = x +  z", NODE, "z is not defined")
    assert str(error) == error.message and "at 2:0:" in str(error) and "z is not defined" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error) and again.error_message == error.error_message
    assert kind("x", NODE).error_message is None


def test_out_of_resources() -> None:
    error = OutOfResources(250000, 232448, "shared memory")
    text = (
        "out of resource: shared memory, Required: 250000, Hardware limit: 232448."
        " Reducing block sizes or `num_stages` may help."
    )
    assert isinstance(error, tilework.TritonError) and str(error) == text
    assert (error.required, error.limit, error.name) == (250000, 232448, "shared memory")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is OutOfResources and (str(again), again.required) == (text, 250000)
    assert tilework.OutOfResources is OutOfResources


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (PTXASError("no such instruction"), "PTXAS error: no such instruction"),
        (AutotunerError("nothing left"), "Autotuner error: nothing left"),
        (InterpreterError("ValueError('x')"), "ValueError('x')"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_errors(error: Exception, text: str) -> None:
    assert isinstance(error, tilework.TritonError) and str(error) == text
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == text


def test_every_error_is_an_exception_of_ours() -> None:
    assert tilework.TritonError.__bases__ == (Exception,)
    assert tilework.InterpreterError is InterpreterError
    assert import_module("tilework.errors").TritonError is tilework.TritonError


def test_gluon_descriptors_carry_a_layout() -> None:
    layout = NVMMASharedLayout(128, 16)
    assert (layout.rank, layout.transposed, layout.fp4_padded, len(layout.cga_layout)) == (2, False, False, 0)
    assert layout == NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16) and len({layout, layout}) == 1
    for wrong in ((48, 16), (128, 12)):
        with pytest.raises(AssertionError, match="must be one of"):
            NVMMASharedLayout(*wrong)
    a = np.zeros((64, 128), np.float16)
    found = TensorDescriptor.from_tensor(a, [16, 32], layout)
    assert (found.layout, found.padding, list(found.strides)) == (layout, "zero", [128, 1])
    assert TensorDescriptor(a, [64, 128], [128, 1], [16, 32], layout).block_shape == [16, 32]
    with pytest.raises(AssertionError, match="layout"):
        TensorDescriptor.from_tensor(a, [16, 32], None)  # pyright: ignore[reportArgumentType]
    kind, key = import_module(place_of("triton._C.libtriton")).native_specialize_impl(None, found, False, True, True)
    assert (kind, key) == (f"tensordesc<fp16[16, 32],{layout!r}>", None)


def test_a_folder_that_an_older_tilework_left_is_no_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "backends" / "__pycache__").mkdir(parents=True)
    monkeypatch.setattr("tilework.triton.serving.finder.PACKAGE", str(tmp_path))
    assert not has_source(".backends")
