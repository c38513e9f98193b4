"""The names in the reference, in the order of its pages."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """The names of one page."""

    title: str
    part: str  # "language" or "runtime"
    names: tuple[str, ...]


def family(part: str, title: str, prefix: str, names: str) -> Family:
    return Family(title, part, tuple(prefix + name for name in names.split(" ")))


FAMILIES = (
    family("language", "Programs", "tl.", "program_id num_programs debug_barrier"),
    family(
        "language",
        "Memory",
        "tl.",
        "load store make_tensor_descriptor load_tensor_descriptor store_tensor_descriptor make_block_ptr advance",
    ),
    family(
        "language",
        "Atomics",
        "tl.",
        "atomic_add atomic_max atomic_min atomic_and atomic_or atomic_xor atomic_xchg atomic_cas",
    ),
    family(
        "language",
        "Shapes",
        "tl.",
        "arange full zeros zeros_like broadcast broadcast_to expand_dims reshape ravel view permute trans join"
        " split cat interleave gather",
    ),
    family(
        "language",
        "Element by element",
        "tl.",
        "where cast minimum maximum clamp abs add sub mul fdiv div_rn fma umulhi cdiv exp exp2 log log2 sqrt"
        " sqrt_rn rsqrt sin cos erf floor ceil sigmoid softmax map_elementwise PropagateNan",
    ),
    family("language", "Matrix multiplication", "tl.", "dot dot_scaled"),
    family(
        "language",
        "Reductions and scans",
        "tl.",
        "sum max min argmax argmin xor_sum reduce_or reduce cumsum cumprod associative_scan histogram",
    ),
    family("language", "Sorting", "tl.", "sort topk bitonic_merge flip"),
    family(
        "language",
        "Random numbers",
        "tl.",
        "rand randn randint rand4x randn4x randint4x philox philox_impl uint_to_uniform_float pair_uniform_to_normal",
    ),
    family("language", "Loops", "tl.", "range static_range condition"),
    family("language", "Hints", "tl.", "assume multiple_of max_contiguous max_constancy swizzle2d"),
    family("language", "Debugging", "tl.", "static_print static_assert device_print device_assert"),
    family("language", "Compile time", "tl.", "constexpr tuple slice constexpr_type tuple_type"),
    family(
        "language",
        "Types",
        "tl.",
        "dtype float16 bfloat16 float32 float64 int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64 float8e4nv"
        " float8e5 float8e4b8 float8e5b16 float8e4b15 void pointer_type const_pointer_type const block_type"
        " tensor_descriptor_type function_type pi32_t str_to_ty TRITON_MAX_TENSOR_NUMEL",
    ),
    family("language", "Tensors", "tl.tensor", " .shape .numel .T .__getitem__ .to .item .logical_and .logical_or"),
    family(
        "language",
        "Descriptors",
        "tl.tensor_descriptor",
        " .load .store .gather .scatter .atomic_add .atomic_min .atomic_max .atomic_and .atomic_or .atomic_xor"
        " .dtype .block_shape .block_type",
    ),
    family(
        "language",
        "Targets",
        "tl.target_info.",
        "current_target is_cuda cuda_capability_geq is_hip is_hip_cdna3 is_hip_cdna4",
    ),
    family(
        "language",
        "Assembly and libraries",
        "tl.",
        "inline_asm_elementwise core.extern_elementwise core.extern builtin core.is_builtin core._aggregate"
        " core.to_tensor core.get_int_dtype",
    ),
    family(
        "language",
        "Modules",
        "tl.",
        "math random extra.libdevice extra.cuda extra.cuda.globaltimer extra.cuda.smid extra.cuda.num_threads"
        " extra.cuda.num_warps extra.cuda.gdc_wait extra.cuda.gdc_launch_dependents"
        " extra.cuda.convert_custom_float8_sm80 extra.cuda.convert_custom_float8_sm70 extra.hip"
        " extra.hip.memrealtime",
    ),
    family(
        "runtime",
        "Kernels",
        "tilework.",
        "jit JITFunction JITFunction.__getitem__ JITFunction.bind JITFunction.warmup JITFunction.explain"
        " JITFunction.explore JITFunction.run JITFunction.preload KernelInterface constexpr_function"
        " must_use_result cdiv next_power_of_2 reinterpret TensorWrapper MockTensor set_allocator"
        " tools.tensor_descriptor.TensorDescriptor tools.tensor_descriptor.TensorDescriptor.from_tensor"
        " tools.mxfp.MXFP4Tensor tools.mxfp.MXScaleTensor",
    ),
    family("runtime", "Tuning", "tilework.", "autotune Autotuner Config Config.all_kwargs heuristics Heuristics"),
    family(
        "runtime",
        "Testing and benchmarks",
        "tilework.testing.",
        "call assert_close do_bench do_bench_cudagraph perf_report Benchmark Mark Mark.run get_dram_gbps"
        " get_max_tensorcore_tflops get_max_simd_tflops nvsmi set_gpu_clock cuda_memcheck",
    ),
    family(
        "runtime",
        "Compiling",
        "tilework.",
        "compile load compiler.lower ASTSource compiler.IRSource compiler.GPUTarget compiler.CompiledKernel"
        " compiler.CompiledKernel.run compiler.CompiledKernel.__getitem__ compiler.CompiledKernel.counters"
        " compiler.CompiledKernel.launch_metadata compiler.LazyDict compiler.make_backend compiler.get_cache_key"
        " AsyncCompileMode FutureKernel",
    ),
    family("runtime", "Metrics", "tilework.metrics.", "snapshot total prometheus subscribe reset"),
    family(
        "runtime",
        "Profiling",
        "tilework.profiler.",
        "start finalize activate deactivate profile scope cpu_timed_scope enter_scope exit_scope state"
        " enter_state exit_state DEFAULT_PROFILE_NAME",
    ),
    family(
        "runtime",
        "Errors and warnings",
        "tilework.",
        "TritonError CompilationError errors.CompileTimeAssertionFailure errors.UnsupportedLanguageConstruct"
        " errors.ArgumentError errors.OptionError InterpreterError errors.SanitizerError errors.SanitizerWarning"
        " errors.PerformanceWarning OutOfResources errors.AutotunerError errors.StageError errors.PTXASError"
        " errors.BundleError errors.NotRecorded",
    ),
    family(
        "runtime",
        "Devices, settings and plugins",
        "tilework.",
        "runtime.driver knobs as_triton plugins.find plugins.plugins plugins.prefer",
    ),
)
