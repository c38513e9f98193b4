"""The modules and names of Triton, as two tables that `finder.py` serves.

A module of Triton is one of tilework's under another name (`MODULES`; by default the module with the same path, as
`tilework.knobs` for `triton.knobs`), plus names from elsewhere (`NAMES`). A module that only `NAMES` lists consists of
these names. Each name is resolved when a program first uses it, so that `import triton` loads no compiler.
"""

PROFILER = {  # where the modules inside of triton.profiler are
    "": "inspect.profiler", ".context": "inspect.profiler.sessions", ".data": "inspect.profiler.data",
    ".flags": "inspect.profiler.stacks",
    ".hooks": "inspect.profiler.hooks", ".hooks.hook": "inspect.profiler.hooks",
    ".hooks.instrumentation": "inspect.profiler.hooks", ".hooks.launch": "inspect.profiler.hooks",
    ".language": "inspect.profiler.language", ".mode": "inspect.profiler.mode", ".profile": "inspect.profiler.profile",
    ".proton": "tools.proton", ".scope": "inspect.profiler.profile", ".specs": "inspect.profiler.viewer",
    ".state": "inspect.profiler.profile", ".viewer": "inspect.profiler.viewer",
}  # fmt: skip
MODULES = {
    "triton._C.libtriton.ir": "tilework.triton.libtriton_ir",
    "triton._C.libtriton.llvm": "tilework.triton.libtriton_llvm",
    "triton._C.libtriton.passes": "tilework.triton.libtriton_passes",
    "triton._filecheck": "tilework.tools.filecheck",
    "triton._internal_testing": "tilework.triton.internal_testing",
    "triton.backends.amd.compiler": "tilework.triton.backends",
    "triton.backends.compiler": "tilework.triton.backends",
    "triton.backends.cpu.compiler": "tilework.triton.backends",
    "triton.backends.driver": "tilework.triton.drivers",
    "triton.backends.nvidia.compiler": "tilework.triton.backends",
    "triton.backends.nvidia.driver": "tilework.triton.drivers",
    "triton.compiler.code_generator": "tilework.frontend.generator",
    "triton.compiler.compiler": "tilework.compiler",
    "triton.compiler.errors": "tilework.errors",
    "triton.experimental.gluon": "tilework.triton.gluon",
    "triton.experimental.gluon.language.extra": "tilework.language.extra",
    "triton.language.extra.cpu.libdevice": "tilework.language.extra.libdevice",
    "triton.language.extra.cuda.utils": "tilework.language.extra.cuda",
    "triton.language.extra.hip.utils": "tilework.language.extra.hip",
    **{f"triton.profiler{inner}": f"tilework.{module}" for inner, module in PROFILER.items()},
    "triton.runtime._allocation": "tilework.runtime.devices.launcher",
    "triton.runtime._async_compile": "tilework.runtime.workers.async_compile",
    "triton.runtime.autotuner": "tilework.runtime.tuning.autotuner",
    "triton.runtime.build": "tilework.triton.build",
    "triton.runtime.cache": "tilework.runtime.kernel_cache.managers",
    "triton.runtime.driver": "tilework.runtime.devices.active_driver",
    "triton.runtime.interpreter": "tilework.triton.interpreter",
    "triton.runtime.jit": "tilework.runtime.launch.python.jit",
    "triton.tools.compile": "tilework.aot.c_files",
    "triton.tools.disasm": "tilework.triton.disasm",
    "triton.tools.linear_layout": "tilework.triton.linear_layout",
    "triton.tools.link": "tilework.aot.link",
    "triton.tools.ragged_tma": "tilework.triton.ragged_tma",
}

# Triton's module: {module of tilework: its names, or NEW=old}
NAMES: dict[str, dict[str, str]] = {
    "triton": {"tilework.triton.runtime": "max_shared_mem"},
    "triton._C.libtriton": {
        "tilework.knobs": "getenv",
        "tilework.process.plugins": "extend_with",
        "tilework.runtime.kernel_cache.key": "get_cache_invalidating_env_vars=cache_invalidating_env_vars",
        "tilework.triton.runtime": "getenv_bool native_specialize_impl",
    },
    "triton._C.libtriton.amd": {
        "tilework.triton.libtriton_ir": "load_dialects",
        "tilework.triton.libtriton_passes": "TARGET_TRIPLE passes=amd_passes",
    },
    "triton._C.libtriton.linear_layout": {"tilework.triton.linear_layout": "LinearLayout"},
    "triton._C.libtriton.nvidia": {
        "tilework.triton": "cublas",
        "tilework.triton.libtriton_ir": "load_dialects",
        "tilework.triton.libtriton_passes": "has_extern_deps passes=nvidia_passes",
    },
    "triton._compile_warmup_state": {"tilework.triton.internal_testing": "is_compile_warmup"},
    "triton._filecheck": {
        "tilework.compiler": "ASTSource make_backend",
        "tilework.triton.runtime": "create_function_from_signature",
    },
    "triton._utils": {
        "tilework.language.dtypes": "TRITON_MAX_TENSOR_NUMEL validate_block_shape",
        "tilework.language.parameters": ("canonicalize_dtype canonicalize_ptr_dtype type_canonicalisation_dict"),
        "tilework.triton.runtime": (
            "BITWIDTH_DICT _tuple_create apply_with_path find_paths_if get_iterable_path get_primitive_bitwidth"
            " is_iterable is_namedtuple is_power_of_two set_iterable_path"
        ),
    },
    "triton.backends": {
        "tilework.triton.backends": "Backend BaseBackend backends",
        "tilework.triton.drivers": "DriverBase",
    },
    "triton.backends.amd.driver": {
        "tilework": "knobs",
        "tilework.runtime.devices.hip_driver": "HIPDriver=HipDriver HIPUtils=HipUtils",
        "tilework.targets.base": "GPUTarget",
        "tilework.triton.build": "compile_module_from_src",
        "tilework.triton.drivers": (
            "ARG_CONSTEXPR ARG_KERNEL ARG_TUPLE GPUDriver HIPLauncher=launcher PyKernelArg annotate_arguments"
            " expand_signature=hip_expand_signature include_dirs=hip_include_dirs make_kernel_signature"
            " ty_to_cpp=hip_ty_to_cpp"
        ),
    },
    "triton.backends.nvidia.compiler": {"tilework.errors": "PTXASError"},
    "triton.backends.nvidia.driver": {
        "tilework.runtime.devices.cuda.driver": "CudaUtils",
        "tilework.targets.base": "GPUTarget",
        "tilework.triton.build": "compile_module_from_src",
    },
    "triton.compiler": {"tilework.triton.runtime": "max_shared_mem"},
    "triton.compiler.code_generator": {
        "tilework.language.core": "_unwrap_if_constexpr base_type base_value constexpr str_to_ty tensor",
        "tilework.language.function": "BoundConstexprFunction ConstexprFunction",
        "tilework.triton.runtime": (
            "ast_to_ttir find_paths_if flatten_values_to_ir get_iterable_path get_jit_fn_file_line is_namedtuple"
            " set_iterable_path"
        ),
    },
    "triton.compiler.compiler": {
        "tilework": "knobs",
        "tilework.errors": "OutOfResources",
        "tilework.knobs": "CompileTimes",
        "tilework.runtime.compile.compiled": "AsmDict",
        "tilework.runtime.compile.sources": "ASTSource IRSource",
        "tilework.runtime.devices.active_driver": "driver",
        "tilework.runtime.kernel_cache.key": "get_cache_invalidating_env_vars=cache_invalidating_env_vars",
        "tilework.runtime.kernel_cache.managers": "get_cache_manager get_dump_manager get_override_manager",
        "tilework.triton": "ir=libtriton_ir",
        "tilework.triton.backends": "BaseBackend Language backends",
        "tilework.triton.runtime": (
            "CompileTimer arg_type_pattern convert_type_repr filter_traceback max_shared_mem parse prototype_pattern"
            " ptx_arg_type_pattern ptx_prototype_pattern"
        ),
        "tilework.triton.disasm": "get_sass",
    },
    "triton.compiler.make_launcher": {},  # empty in Triton too
    "triton.experimental.gluon": {
        "tilework.language.core": "aggregate must_use_result",
        "tilework.language.function": "constexpr_function",
    },
    "triton.experimental.gluon.language": {"tilework.triton.gluon": "NVMMASharedLayout"},
    "triton.experimental.gluon.language._layouts": {"tilework.triton.gluon": "NVMMASharedLayout"},
    "triton.experimental.gluon.nvidia.blackwell": {"tilework.triton.gluon": "TensorDescriptor TensorDescriptorIm2Col"},
    "triton.experimental.gluon.nvidia.hopper": {"tilework.triton.gluon": "TensorDescriptor TensorDescriptorIm2Col"},
    "triton.knobs": {
        "tilework.knobs.cuda_tools": "NvidiaTool",
        "tilework.triton.runtime": (
            "AutotuneListener BuildImpl CompilationListener InitHandleHook JITHook JITHookCompileInfo LaunchHook"
            " PipelineStagesHook getenv_bool"
        ),
    },
    # Inductor writes a dtype that a kernel imports by its bare name as `tl.NAME`, with the name that the dtype has
    "triton.language": {
        "tilework.language.core": (
            "bf16=bfloat16 fp16=float16 fp32=float32 fp64=float64 fp8e4b8=float8e4b8 fp8e4b15=float8e4b15"
            " fp8e4nv=float8e4nv fp8e5=float8e5 fp8e5b16=float8e5b16"
        ),
    },
    "triton.language.core": {
        "tilework": "knobs",
        "tilework.language.compile_time": "constexpr",
        "tilework.language.function": "JITCallable",
        "tilework.triton.language": (
            "CONSTEXPR_0 _normalize_tuple builtin_max builtin_min check_bit_width is_negative_zero item"
            " tensor_descriptor_base tensor_descriptor_base_type"
        ),
        "tilework.triton.runtime": "get_primitive_bitwidth",
    },
    "triton.language.extra.cuda.gdc": {"tilework.language.extra.cuda": "gdc_launch_dependents gdc_wait"},
    "triton.language.semantic": {
        "tilework.frontend.semantic": "TritonSemantic=Semantic",
        "tilework.language.typing.promotion": "IncompatibleTypeErrorImpl",
    },
    "triton.language.standard": {
        "tilework.language": "core",
        "tilework.language.folds": (
            "_argmax_combine_tie_break_fast=_argmax_combine_fast _argmax_combine_tie_break_left=_argmax_combine_left"
            " _argmin_combine_tie_break_fast=_argmin_combine_fast _argmin_combine_tie_break_left=_argmin_combine_left"
            " _elementwise_max _elementwise_min _or_combine _prod_combine _sum_combine _xor_combine"
        ),
        "tilework.language.function": "constexpr_function jit",
        "tilework.language.standard": "_log2 sort topk",
        "tilework.triton.language": (
            "_argmax_combine _argmin_combine _bitonic_merge _bitonic_merge_hypercube _compare_and_swap _get_flip_dim"
            " _get_int_dtype _indicator _is_power_of_two _pick_sum_dtype sort_impl"
        ),
    },
    "triton.profiler.data": {"tilework.inspect.profiler.stacks": "flags"},
    "triton.profiler.hooks.hook": {"tilework.runtime.compile.compiled": "LazyDict"},
    "triton.profiler.hooks.instrumentation": {"tilework.runtime.compile.compiled": "LazyDict"},
    "triton.profiler.hooks.launch": {
        "tilework.inspect.profiler.profile": "enter_state exit_state",
        "tilework.runtime.compile.compiled": "LazyDict",
    },
    "triton.profiler.proton": {"tilework.inspect.profiler.profile": "finalize start"},
    "triton.runtime.autotuner": {
        "tilework.runtime.kernel_cache.key": "get_cache_invalidating_env_vars=cache_invalidating_env_vars",
        "tilework.runtime.kernel_cache.managers": "get_cache_manager triton_key",
    },
    "triton.runtime.cache": {
        "tilework.runtime.kernel_cache.key": "_base32=folder_of",
        "tilework.triton.runtime": "make_so_cache_key",
    },
    "triton.runtime.driver": {
        "tilework.runtime.devices.active_driver": "_create_driver=default_driver",
        "tilework.runtime.devices.driver": "DriverBase=Driver",
        "tilework.triton.backends": "backends",
    },
    "triton.runtime.errors": {
        "tilework.errors": "AutotunerError InterpreterError OutOfResources PTXASError TritonError"
    },
    "triton.runtime.interpreter": {
        "tilework.errors": "InterpreterError",
        "tilework.language.semantic": "TritonSemantic=Semantic",
        "tilework.oracles.interpreter": "AccessError register_memory",
        "tilework.oracles.interpreter.rewriter": "ASTTransformer=Rewriter FunctionRewriter",
        "tilework.runtime.launch.python.kernel_interface": "KernelInterface",
        "tilework.tools.tensor_descriptor": "TensorDescriptor",
    },
    "triton.runtime.jit": {
        "tilework.language.function": (
            "BoundConstexprFunction ConstexprFunction JITCallable JITFunction constexpr_function"
        ),
        "tilework.language.parameters": "KernelParam type_canonicalisation_dict",
        "tilework.runtime.kernel_cache.key": "get_cache_invalidating_env_vars=cache_invalidating_env_vars",
        "tilework.runtime.kernel_cache.managers": "get_cache_key",
        "tilework.runtime.launch.python.specialization": "JitFunctionInfo",
        "tilework.runtime.launch.python.specialize": "mangle_type",
        "tilework.runtime.launch.python.wrappers": "MockTensor TensorWrapper reinterpret",
        "tilework.runtime.workers": "_async_compile=async_compile",
        "tilework.triton.backends": "BaseBackend",
        "tilework.triton.runtime": (
            "GLUON_MODULE TRITON_MODULE _normalize_ty compute_cache_key convert_to_tuple_if_list"
            " create_function_from_signature find_paths_if get_full_name get_iterable_path get_jit_fn_file_line"
            " is_namedtuple native_specialize_impl serialize_specialization_data"
        ),
    },
    "triton.testing": {
        "tilework.triton.cublas": "cublas=current_handle",
        "tilework.triton.runtime": "_summarize_statistics",
        "triton": "runtime",
    },
    "triton.tools": {"tilework.triton.linear_layout": "LinearLayout"},
}

# Gluon's modules, of which tilework has the names only: each name is a placeholder that raises when it is used
GLUON = "triton.experimental.gluon"
GLUON_MODULES = frozenset(
    f"{GLUON}.{name}"
    for name in (
        "amd", "amd.gfx1250", "nvidia.blackwell", "language", "language.amd", "language.amd.cdna3",
        "language.amd.cdna4",
        "language.amd.cdna4.async_copy", "language.amd.gfx1250", "language.amd.gfx1250.async_copy",
        "language.amd.gfx1250.mbarrier", "language.amd.gfx1250.tdm", "language.amd.rdna3", "language.amd.rdna4",
        "language.nvidia", "language.nvidia.ampere", "language.nvidia.ampere.async_copy",
        "language.nvidia.ampere.mbarrier",
        "language.nvidia.blackwell", "language.nvidia.blackwell.float2", "language.nvidia.blackwell.tma",
        "language.nvidia.hopper", "language.nvidia.hopper.mbarrier", "language.nvidia.hopper.tma",
        "language.amd.cdna5", "language.nvidia.blackwell.clc", "language.nvidia.hopper.cluster",
        "language.nvidia.rubin",
    )
)  # fmt: skip
