"""The meaning of every environment variable as text: the table of the documentation, and nothing that a program
needs.

`MEANINGS` has the variables of knobs (type and default are the knob's), `WITHOUT_KNOB` the others, as (type, what it
means).
"""

NO_EFFECT = "Read as in Triton, for its knob; changes nothing in tilework"

MEANINGS = {
    # build
    "CC": "The C compiler for helper modules in C that programs written for Triton build; tilework itself needs none",
    "CXX": (
        "The C++ compiler for kernels that torch's `cpp_wrapper` and AOTInductor call on CPUs; nothing else needs one"
    ),
    "TRITON_CUDACRT_PATH": "One more include folder for such modules",
    "TRITON_CUDART_PATH": "One more include folder for such modules",
    # redis
    "TRITON_REDIS_KEY_FORMAT": "How files are called in the remote cache",
    "TRITON_REDIS_HOST": "The machine of the remote cache",
    "TRITON_REDIS_PORT": "Its port",
    # cache
    "TRITON_HOME": "The folder in which `.triton` is",
    "TRITON_DUMP_DIR": "Where `TRITON_KERNEL_DUMP` writes",
    "TRITON_OVERRIDE_DIR": "Where `TRITON_KERNEL_OVERRIDE` looks for files",
    "TRITON_CACHE_DIR": "Where compiled kernels are kept; `tilework cache info` shows what is there",
    "TRITON_CACHE_MANAGER": "The class that reads and writes the cache, as `module:Class`",
    "TRITON_REMOTE_CACHE_BACKEND": "The class behind a remote cache, as `module:Class`",
    "TILEWORK_CACHE_MAX_SIZE": (
        "The largest size of the cache; the least recently used entries are evicted first. 0: no limit"
    ),
    # compilation
    "TRITON_KERNEL_OVERRIDE": "Take the stages for which there are files in `TRITON_OVERRIDE_DIR` from there",
    "TRITON_KERNEL_DUMP": "Write every stage of every kernel that is compiled to `TRITON_DUMP_DIR`",
    "LLVM_EXTRACT_DI_LOCAL_VARIABLES": "Debug information also has the names of values",
    "TRITON_STORE_BINARY_ONLY": "Keep only the last stage in the cache",
    "TRITON_ALWAYS_COMPILE": "Compile again what the cache has",
    "USE_IR_LOC": (
        "Locations in debug information are lines of this stage's text (`ttir`, `ttgir`) instead of lines of the kernel"
    ),
    "TRITON_ENABLE_ASAN": (
        "AMD's address sanitizer, which tilework does not have: an error. `TRITON_SANITIZE=1` is what to use"
    ),
    "TRITON_DISABLE_LINE_INFO": "Leave out which line of the kernel an instruction comes from",
    "TRITON_FRONT_END_DEBUGGING": (
        "Show the compiler's own traceback of an error in a kernel, instead of the kernel's line alone"
    ),
    "TRITON_ALLOW_NON_CONSTEXPR_GLOBALS": (
        "Kernels may read globals that are not `tl.constexpr`; later changes of them are not seen"
    ),
    "TILEWORK_PERFORMANCE_REMARKS": (
        "Report at the kernel's lines what limits each loop, how close it comes, and what the compiler decided"
    ),
    "TILEWORK_TRITON_VERSION": "The version of Triton whose names, messages and rules hold: 3.6.0, 3.7.1 or 3.8.0",
    "TILEWORK_STRICT_TRITON": (
        "Refuse, in Triton's words, what the language has beyond Triton's; under `as_triton` it is warned about "
        "otherwise"
    ),
    "TRITON_FPSAN_HOMOMORPHIC_CASTS": NO_EFFECT,
    "TRITON_INSTRUMENTATION_MODE": (
        "`consan` and `iisan` turn on what `debug` does, without checks of overflow; other texts only change the cache "
        "key"
    ),
    # autotuning
    "TRITON_CACHE_AUTOTUNING": "Keep what the autotuner measured on disk, for every kernel",
    "TRITON_PRINT_AUTOTUNING": "Say what was tuned, how long it took and what was chosen",
    "TILEWORK_COMPILE_WORKERS": (
        "Worker processes that may compile for this one, for tuning and `AsyncCompileMode()`; by default one less "
        "than there are cores, 0: none"
    ),
    "TILEWORK_WORKER_TIMEOUT": "Seconds for one kernel after which a worker process is replaced; 0: no limit",
    "TILEWORK_SAVE_TUNING": "Keep results for all later runs; `tilework tune` sets it",
    "TILEWORK_TUNING_PART": (
        "Measure only a part of the configurations, `2/8`: every eighth from the third on; `tilework tune "
        "--workers` sets it"
    ),
    # runtime
    "TRITON_INTERPRET": (
        "Run kernels as plain Python on NumPy: breakpoints and `print` work in them. Read when a kernel is decorated"
    ),
    "TRITON_OVERRIDE_ARCH": "Compile for this architecture of the device's vendor: `sm80`, `gfx942`",
    "TILEWORK_NUM_THREADS": "How many threads run a grid on the CPU",
    "TILEWORK_DEVICE": (
        "Where kernels run: `auto`, `cuda`, `hip`, `native` or `cpu`, `evaluator`, `emulator` or "
        "`emulator:sm_80`. Not set: a GPU if there is one, the CPU for arrays of the host"
    ),
    "TILEWORK_NATIVE_LAUNCH": "Launches like earlier ones run in machine code; off: all go through Python",
    "TILEWORK_EXPLAIN": (
        "On: say why each kernel is compiled, as it happens. A folder: write it there, which `tilework explain` does"
    ),
    "TILEWORK_RECORD": (
        "A file: every specialisation that the program uses is written there, for `tilework precompile`"
    ),
    "TILEWORK_BUNDLE": (
        "A file of `tilework precompile`, or several with `:` between them: launches are served from it before "
        "the cache and the compiler"
    ),
    "TILEWORK_BUNDLE_KEY": "The key that bundles are signed with, and must be signed with",
    "TILEWORK_BUNDLE_DIGEST": "The digest that the file of TILEWORK_BUNDLE must have, as `tilework bundle` shows it",
    "TILEWORK_NO_JIT": (
        "Nothing is compiled and nothing is tuned: a launch that would need it is an error, which says what "
        "differs from what there is"
    ),
    "TILEWORK_PROGRESS": "Show on a terminal how far tuning, benchmarks and long compilations have come",
    "TILEWORK_CPU_DOTS": "Use the CPU's instructions for dots of bf16, f16 and int8",
    "TRITON_DEBUG": "`tl.device_assert` is checked, and so is overflow of integers; as `debug=True` for every kernel",
    "TRITON_SANITIZE": (
        "Kernels check themselves: `1` (bounds, undefined elements, arithmetic), `strict` (warnings are errors) "
        "or `race` (races between programs)"
    ),
    "TRITON_SANITIZE_OVERFLOW": "The sanitizer and `debug` check integer overflow",
    "TILEWORK_REPRODUCIBLE": (
        "The same bits on every device, with any number of warps and threads; as `reproducible=True` for every kernel"
    ),
    # language
    "TRITON_F32_DEFAULT": "The precision of dots of float32: `tf32`, `tf32x3` or `ieee`. Not set: the target's",
    "TRITON_DEFAULT_FP_FUSION": (
        "Multiplications and additions of floats may be fused into one instruction with one rounding"
    ),
    # nvidia
    "TRITON_CUOBJDUMP_PATH": "The program that disassembles cubins, where there is no nvdisasm",
    "TRITON_NVDISASM_PATH": "The program that disassembles cubins",
    "TRITON_PTXAS_PATH": "The assembler of PTX; without one the driver assembles",
    "TRITON_PTXAS_BLACKWELL_PATH": "The same for sm_100 and later",
    "NVPTX_ENABLE_DUMP": "Print the PTX of every kernel that is compiled",
    "DISABLE_PTXAS_OPT": "ptxas does not optimise",
    "PTXAS_OPTIONS": "More options for ptxas",
    "TRITON_MOCK_PTX_VERSION": (
        "The release of ptxas that cache keys and Triton's interface have, instead of the one that is found"
    ),
    "TRITON_DUMP_PTXAS_LOG": "Print what ptxas says",
    "TRITON_LIBDEVICE_PATH": "The file libdevice.10.bc",
    "TRITON_LIBCUDA_PATH": "The file libcuda.so.1, or its folder",
    "TILEWORK_PTXAS_TIMEOUT": "After how many seconds ptxas is stopped",
    "TILEWORK_AUTO_TMA": (
        "Loads by pointers become copies by TMA: wherever they can, never, or (not set) where it pays"
    ),
    "TILEWORK_PLAIN_DOTS": "Operands and results of wgmma are arranged as in Triton",
    "TILEWORK_WARP_SPECIALIZE": (
        "Loops have warps that copy and warps that compute: `0` never, `1` where the kernel requests it, `auto` "
        "(not set) where it pays too"
    ),
    "TILEWORK_PERSISTENT_PROGRAMS": (
        "Persistent kernels, whose blocks run several programs of the grid each, where that pays; `0` never"
    ),
    # amd
    "AMDGCN_USE_BUFFER_OPS": "Buffer instructions for loads and stores of arrays that are small enough",
    "AMDGCN_USE_BUFFER_ATOMICS": "The same for atomics",
    "AMDGCN_ANALYZE_SMALL_TENSOR_RANGE": "Only where offsets can be shown not to be negative",
    "AMDGCN_ENABLE_DUMP": "Print the assembly of every kernel that is compiled",
    "TRITON_LIBHIP_PATH": "The file libamdhip64.so",
    "TRITON_HIP_USE_BLOCK_PINGPONG": (
        "Ping-pong scheduling: warps alternate between memory and matrix units; not set: where the GPU is known to gain"
    ),
    "TRITON_HIP_USE_IN_THREAD_TRANSPOSE": (
        "Operands are transposed in registers; not set: where the GPU is known to gain"
    ),
    "TRITON_HIP_USE_ASYNC_COPY": "Loads of pipelined loops go to LDS without registers; not set: off",
    "TRITON_DUMP_MIR": (
        "A folder: the machine instructions after selection are written there, `NAME.txt` on AMD GPUs, else `NAME.mir`"
    ),
    "TRITON_SWAP_MIR": "Take machine instructions from this folder: an error, for llvmlite reads none",
    "TRITON_SWAP_MIR_ENABLE_MISCHED": NO_EFFECT,
    "TRITON_HIP_USE_COEXEC_SCHEDULER": NO_EFFECT,
    "TRITON_HIP_USE_EXPERT_SCHEDULING": NO_EFFECT,
    "AMDGCN_SCALARIZE_PACKED_FOPS": NO_EFFECT,
    "TILEWORK_SOFTWARE_FP8": (
        "8-bit floats on CDNA 1 and 2, which have no instructions for them, as under `as_triton`; else an error"
    ),
    # proton
    "TRITON_PROTON_DISABLE": "The profiler records nothing",
    "TRITON_CUPTI_LIB_PATH": NO_EFFECT,
    "TRITON_ENABLE_NVTX": NO_EFFECT,
    "TRITON_ENABLE_HW_TRACE": NO_EFFECT,
    "TRITON_PROFILE_BUFFER_SIZE": NO_EFFECT,
    "TRITON_PROFILE_METRIC_BUFFER_SIZE": NO_EFFECT,
}

ON = "on or off"
TEXT = "text"
FOLDER = "folder"
WITHOUT_KNOB = {
    "MLIR_ENABLE_DUMP": (
        "on, or a kernel's name",
        "Print the module before every pass, of every kernel or of that one",
    ),
    "MLIR_DUMP_PATH": ("file", "Append that to a file instead"),
    "MLIR_ENABLE_TIMING": (ON, "Print how long each pass took"),
    "MLIR_ENABLE_DIAGNOSTICS": (
        "names",
        "What passes say, any of `remarks`, `warnings`, `operations` (with the op), `stacktraces`, separated by commas",
    ),
    "MLIR_DISABLE_MULTITHREADING": (ON, NO_EFFECT),
    "TRITON_REPRODUCER_PATH": (
        "start of a path",
        "Write what each stage got, and its passes, to files; `tilework opt FILE --run-reproducer` repeats one",
    ),
    "LLVM_IR_ENABLE_DUMP": (ON, "Print the LLVM text of every kernel that is compiled"),
    "LLVM_ENABLE_TIMING": (ON, "Print how long LLVM's passes took"),
    "DISABLE_LLVM_OPT": (
        "on, or LLVM's switches",
        "LLVM does not optimise, or is given its own switches: `disable-lsr`",
    ),
    "LLVM_PASS_PLUGIN_PATH": ("file", "Has no effect, and a warning says so: llvmlite cannot load plugins"),
    "TRITON_ENABLE_LLVM_DEBUG": (ON, "Print what LLVM's passes say about their work; very long"),
    "TRITON_LLVM_DEBUG_ONLY": (TEXT, "The same, of the named passes only: `isel`"),
    "DISABLE_MMA_V3": (ON, "Dots use mma.sync where wgmma could be used"),
    "DISABLE_MMA_V5": (ON, NO_EFFECT),
    "ALLOW_LHS_TMEM_LAYOUT_CONVERSION": (ON, NO_EFFECT),
    "TRITON_PREFER_TMEM_16x256_LAYOUT": (ON, NO_EFFECT),
    "TRITON_ENABLE_EXPERIMENTAL_CONSAN": (ON, NO_EFFECT),
    "TRITON_DEFAULT_BACKEND": (
        TEXT,
        "The backend whose device is used, by its name in `triton.backends.backends`: `nvidia`, `amd` or `cpu`",
    ),
    "TRITON_PLUGIN_PATHS": (
        TEXT,
        "Compiled plugins of Triton's own compiler: an error. Plugins of tilework are packages (`process/plugins.py`)",
    ),
    "TRITON_PLUGIN_VERSION_CHECK": (TEXT, NO_EFFECT),
    "TRITON_PARTITION_SCHEDULING_ENABLE_DUMP_DOT": (ON, NO_EFFECT),
    "TRITON_PARTITION_SCHEDULING_DUMP_DATA_ONLY": (ON, NO_EFFECT),
    "TRITON_PARTITION_SCHEDULING_DUMP_LOOP_ONLY": (ON, NO_EFFECT),
    "TRITON_BACKENDS_IN_TREE": (ON, "Use only backends, drivers and targets that are part of tilework"),
    "TRITON_ENABLE_PYTHON_STACKTRACE": (ON, "Print Python's stack when the process dies of a signal"),
    "CUDA_HOME": (FOLDER, "The CUDA toolkit, if it is not in `/usr/local/cuda`"),
    "ROCM_PATH": (FOLDER, "ROCm, if it is not in `/opt/rocm`"),
    "HIP_PATH": (FOLDER, "Where libamdhip64 is looked for first"),
    "PATH": (TEXT, "Where ptxas, nvdisasm, cuobjdump, ld.lld and hipconfig are looked for"),
    "LD_LIBRARY_PATH": (TEXT, "Where libcuda and libamdhip64 are looked for"),
    "PYTHONPATH": (TEXT, "`as_triton` adds to that of child processes"),
}
