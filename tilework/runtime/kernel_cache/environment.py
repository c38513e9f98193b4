"""The environment variables that change what is compiled: a part of every key."""

from tilework import knobs

CACHE_INVALIDATING = (
    "AMDGCN_ANALYZE_SMALL_TENSOR_RANGE", "AMDGCN_ENABLE_DUMP", "AMDGCN_USE_BUFFER_ATOMICS",
    "AMDGCN_USE_BUFFER_OPS", "DISABLE_LLVM_OPT", "DISABLE_MMA_V3",
    "DISABLE_MMA_V5", "DISABLE_PTXAS_OPT", "LLVM_IR_ENABLE_DUMP", "LLVM_ENABLE_TIMING", "LLVM_PASS_PLUGIN_PATH",
    "LLVM_EXTRACT_DI_LOCAL_VARIABLES", "MLIR_ENABLE_DIAGNOSTICS", "MLIR_ENABLE_DUMP", "MLIR_DUMP_PATH",
    "MLIR_ENABLE_TIMING", "MLIR_DISABLE_MULTITHREADING", "TRITON_DEFAULT_FP_FUSION", "TRITON_DISABLE_LINE_INFO",
    "TRITON_DUMP_MIR", "TRITON_ENABLE_LLVM_DEBUG", "TRITON_HIP_USE_ASYNC_COPY", "TRITON_HIP_USE_BLOCK_PINGPONG",
    "TRITON_HIP_USE_IN_THREAD_TRANSPOSE", "TRITON_LLVM_DEBUG_ONLY", "TRITON_ENABLE_ASAN", "TRITON_OVERRIDE_ARCH",
    "USE_IR_LOC", "NVPTX_ENABLE_DUMP", "PTXAS_OPTIONS", "ALLOW_LHS_TMEM_LAYOUT_CONVERSION", "TRITON_F32_DEFAULT",
    "TRITON_PREFER_TMEM_16x256_LAYOUT", "TRITON_ENABLE_EXPERIMENTAL_CONSAN", "TILEWORK_PERFORMANCE_REMARKS",
    "TILEWORK_PERSISTENT_PROGRAMS", "TILEWORK_PLAIN_DOTS", "TILEWORK_STRICT_TRITON", "TILEWORK_WARP_SPECIALIZE",
)  # fmt: skip


def cache_invalidating_env_vars() -> dict[str, str]:
    """Return the set variables that change what is compiled; "1" and "on" as "true", "0" and "off" as "false"."""
    texts = {key: knobs.getenv(key) for key in CACHE_INVALIDATING}
    for group in (
        knobs.compilation,
        knobs.runtime,
        knobs.language,
        knobs.nvidia,
        knobs.amd,
    ):  # with propagate_env off only the knob knows
        for name, knob in group.knob_descriptors.items():
            if knob.key in texts and name in vars(group):
                texts[knob.key] = knobs.toenv(vars(group)[name])
    return {key: normalised(text) for key, text in sorted(texts.items()) if text}


def normalised(text: str) -> str:
    """One spelling for each truth value."""
    word = text.lower()
    return "true" if word in {"1", "on", "true"} else "false" if word in {"0", "off", "false"} else text


def changes_stages() -> bool:
    """Return True if the user replaces stages of the compiler or their output, which no key covers."""
    return knobs.runtime.add_stages_inspection_hook is not None or knobs.compilation.override
