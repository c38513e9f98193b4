"""The meaning of each environment variable, for the page of the documentation; programs do not need it.

`MEANINGS` has the variables that have a knob, which knows their type and default. `WITHOUT_KNOB` has the others, as
(type, meaning).
"""

NO_EFFECT = "Accepted because Triton has it; has no effect in tilework"

MEANINGS = {
    # build
    "CC": (
        "The C compiler for C extension modules that programs written for Triton build; tilework itself needs no "
        "compiler"
    ),
    "CXX": (
        "The C++ compiler for kernels that torch's `cpp_wrapper` and AOTInductor call on CPUs; nothing else needs one"
    ),
    "TRITON_CUDACRT_PATH": "An additional include folder for the modules that `CC` compiles",
    "TRITON_CUDART_PATH": "An additional include folder for the modules that `CC` compiles",
    # redis
    "TRITON_REDIS_KEY_FORMAT": "The format of the keys under which `RedisRemoteCacheBackend` stores entries",
    "TRITON_REDIS_HOST": "The host of that Redis; `TILEWORK_CACHE_URL` also takes a password and TLS",
    "TRITON_REDIS_PORT": "The port of that Redis",
    # cache
    "TRITON_HOME": "The folder that contains `.triton`",
    "TRITON_DUMP_DIR": "The folder that `TRITON_KERNEL_DUMP` writes to",
    "TRITON_OVERRIDE_DIR": "The folder that `TRITON_KERNEL_OVERRIDE` reads from",
    "TRITON_CACHE_DIR": "The folder where compiled kernels are kept; `tilework cache info` shows its contents",
    "TRITON_CACHE_MANAGER": "The class that reads and writes the cache, as `module:Class`",
    "TRITON_REMOTE_CACHE_BACKEND": "The class that implements a remote cache, as `module:Class`",
    "TILEWORK_CACHE_MAX_SIZE": (
        "The maximum size of the cache; the least recently used entries are evicted first. 0: no limit"
    ),
    "TILEWORK_COMPILE_WAIT": (
        "The maximum number of seconds to wait for another process that compiles the same kernel; 0: every process "
        "compiles"
    ),
    "TILEWORK_CACHE_URL": (
        "A cache that several machines share, in addition to the one on disk: `redis://user:password@host:port/db`, "
        "`rediss://`, `s3://bucket/prefix`, `https://host/path`, `file:///folder`"
    ),
    "TILEWORK_CACHE_KEY": (
        "The key used to sign entries of the shared cache; entries that are loaded must be signed with it"
    ),
    "TILEWORK_CACHE_KEY_FILE": "A file with that key: a secret, or an Ed25519 key in PEM format, private or public",
    "TILEWORK_CACHE_TRUST_SERVER": (
        "Load and run unsigned machine code from the shared cache: anyone who can write there can run code here"
    ),
    "TILEWORK_CACHE_CONNECT_TIMEOUT": "The number of seconds to wait for a connection to the shared cache",
    "TILEWORK_CACHE_TIMEOUT": "The number of seconds to wait for an entry of the shared cache",
    "TILEWORK_EXACT_LOCATIONS": (
        "Use only compiled code whose line tables name the files and lines of this process, for debuggers and profilers"
    ),
    # compilation
    "TRITON_KERNEL_OVERRIDE": "Replace compilation stages with the files for them in `TRITON_OVERRIDE_DIR`",
    "TRITON_KERNEL_DUMP": "Write every stage of each compiled kernel to `TRITON_DUMP_DIR`",
    "LLVM_EXTRACT_DI_LOCAL_VARIABLES": "Include the names of values in debug information",
    "TRITON_STORE_BINARY_ONLY": "Keep only the last stage in the cache",
    "TRITON_ALWAYS_COMPILE": "Compile kernels again even if they are in the cache",
    "USE_IR_LOC": (
        "Let debug information refer to the lines of this stage's text (`ttir`, `ttgir`) instead of the lines of "
        "the kernel"
    ),
    "TRITON_ENABLE_ASAN": (
        "AMD's address sanitizer. tilework does not have it and reports an error; use `TRITON_SANITIZE=1` instead"
    ),
    "TRITON_DISABLE_LINE_INFO": "Do not record which line of the kernel each instruction comes from",
    "TRITON_FRONT_END_DEBUGGING": (
        "For an error in a kernel, show the compiler's own traceback instead of only the line of the kernel"
    ),
    "TRITON_ALLOW_NON_CONSTEXPR_GLOBALS": (
        "Allow kernels to read globals that are not `tl.constexpr`; later changes to them go unnoticed"
    ),
    "TILEWORK_PERFORMANCE_REMARKS": (
        "Report, at the lines of the kernel, what limits each loop, how close it comes to that limit, and what "
        "the compiler decided"
    ),
    "TILEWORK_TRITON_VERSION": "The version of Triton whose names, messages and rules apply: 3.6.0, 3.7.1 or 3.8.0",
    "TILEWORK_STRICT_TRITON": (
        "Reject, with Triton's messages, language features that Triton does not have; without this, `as_triton` "
        "only warns about them"
    ),
    "TRITON_FPSAN_HOMOMORPHIC_CASTS": NO_EFFECT,
    "TRITON_INSTRUMENTATION_MODE": (
        "`consan` and `iisan` enable the checks of `debug` except those for overflow; other values only change "
        "the cache key"
    ),
    # autotuning
    "TRITON_CACHE_AUTOTUNING": "Keep the autotuner's measurements on disk, for every kernel",
    "TRITON_PRINT_AUTOTUNING": "Print what was tuned, how long it took and which configuration was chosen",
    "TILEWORK_COMPILE_WORKERS": (
        "The number of worker processes that may compile for this process, for tuning and `AsyncCompileMode()`. "
        "Default: one fewer than the number of cores; 0: none"
    ),
    "TILEWORK_WORKER_TIMEOUT": (
        "The number of seconds that a worker process may spend on one kernel before it is replaced; 0: no limit"
    ),
    "TILEWORK_SAVE_TUNING": "Keep tuning results for all later runs; `tilework tune` sets this",
    "TILEWORK_TUNING_PART": (
        "Measure only part of the configurations: `2/8` means every eighth one, starting with the third. "
        "`tilework tune --workers` sets this"
    ),
    # runtime
    "TRITON_INTERPRET": (
        "Run kernels as plain Python on NumPy, so that breakpoints and `print` work in them. Read when a kernel "
        "is decorated"
    ),
    "TRITON_OVERRIDE_ARCH": "Compile for this architecture of the device's vendor: `sm80`, `gfx942`",
    "TILEWORK_NUM_THREADS": "The number of threads that run a grid on the CPU",
    "TILEWORK_DEVICE": (
        "Where kernels run: `auto`, `cuda`, `hip`, `native` or `cpu`, `evaluator`, `emulator` or "
        "`emulator:sm_80`. If not set: a GPU if there is one, but the CPU for arrays in host memory"
    ),
    "TILEWORK_NATIVE_LAUNCH": (
        "Launch from machine code if an earlier launch had the same kinds of arguments; off: every launch goes "
        "through Python"
    ),
    "TILEWORK_EXPLAIN": (
        "On: report why each kernel is compiled, as it happens. A folder: write the reports there, as `tilework "
        "explain` does"
    ),
    "TILEWORK_RECORD": "A file that records every specialisation the program uses, for `tilework precompile`",
    "TILEWORK_BUNDLE": (
        "A file written by `tilework precompile`, or several separated by `:`. Launches look for their kernels "
        "there before they use the cache or the compiler"
    ),
    "TILEWORK_BUNDLE_KEY": "The key used to sign bundles; bundles that are loaded must be signed with it",
    "TILEWORK_BUNDLE_DIGEST": (
        "The digest that the file named by `TILEWORK_BUNDLE` must have, as shown by `tilework bundle`"
    ),
    "TILEWORK_BUNDLE_KEY_FILE": "A file with that key: a secret, or an Ed25519 key in PEM format, private or public",
    "TILEWORK_NO_JIT": (
        "Never compile or tune: a launch that would need to is an error, which says how it differs from the "
        "kernels that are available"
    ),
    "TILEWORK_PROGRESS": "Show the progress of tuning, benchmarks and long compilations on a terminal",
    "TILEWORK_CPU_DOTS": "Use the CPU's dot product instructions for bf16, f16 and int8",
    "TRITON_DEBUG": "Check `tl.device_assert` and integer overflow, as `debug=True` does, in every kernel",
    "TRITON_SANITIZE": (
        "Compile checks into kernels: `1` (bounds, undefined elements, arithmetic), `strict` (warnings become "
        "errors) or `race` (races between programs)"
    ),
    "TRITON_SANITIZE_OVERFLOW": "Let the sanitizer and `debug` check for integer overflow",
    "TILEWORK_REPRODUCIBLE": (
        "Compute the same bits on every device, with any number of warps and threads, as `reproducible=True` "
        "does, in every kernel"
    ),
    # language
    "TRITON_F32_DEFAULT": (
        "The precision of float32 dots: `tf32`, `tf32x3` or `ieee`. If not set: the target's default"
    ),
    "TRITON_DEFAULT_FP_FUSION": (
        "Allow a floating-point multiplication and addition to be fused into one instruction that rounds once"
    ),
    # nvidia
    "TRITON_CUOBJDUMP_PATH": "The program that disassembles cubins if nvdisasm is missing",
    "TRITON_NVDISASM_PATH": "The program that disassembles cubins",
    "TRITON_PTXAS_PATH": "The assembler for PTX; without one, the driver assembles",
    "TRITON_PTXAS_BLACKWELL_PATH": "The assembler for PTX of sm_100 and later",
    "NVPTX_ENABLE_DUMP": "Print the PTX of each compiled kernel",
    "DISABLE_PTXAS_OPT": "Turn off ptxas optimisations",
    "PTXAS_OPTIONS": "Additional options for ptxas",
    "TRITON_MOCK_PTX_VERSION": (
        "The ptxas release to use in cache keys and to report through Triton's interface, instead of the installed one"
    ),
    "TRITON_DUMP_PTXAS_LOG": "Print the output of ptxas",
    "TRITON_LIBDEVICE_PATH": "The path of libdevice.10.bc",
    "TRITON_LIBCUDA_PATH": "The path of libcuda.so.1, or of its folder",
    "TILEWORK_PTXAS_TIMEOUT": "The number of seconds after which ptxas is stopped",
    "TILEWORK_AUTO_TMA": (
        "Turn loads through pointers into TMA copies. On: wherever possible; off: never; not set: where it pays"
    ),
    "TILEWORK_PLAIN_DOTS": "Arrange the operands and results of wgmma as Triton does",
    "TILEWORK_WARP_SPECIALIZE": (
        "Split loops between warps that copy and warps that compute. `0`: never; `1`: where the kernel requests "
        "it; `auto` or not set: also where it pays"
    ),
    "TILEWORK_PERSISTENT_PROGRAMS": (
        "Use persistent kernels, whose blocks each run several programs of the grid, where that pays; `0`: never"
    ),
    # amd
    "AMDGCN_USE_BUFFER_OPS": "Use buffer instructions to load and store arrays that are small enough",
    "AMDGCN_USE_BUFFER_ATOMICS": "Use buffer instructions for atomics on arrays that are small enough",
    "AMDGCN_ANALYZE_SMALL_TENSOR_RANGE": "Use buffer instructions only if offsets are known not to be negative",
    "AMDGCN_ENABLE_DUMP": "Print the assembly of each compiled kernel",
    "TRITON_LIBHIP_PATH": "The path of libamdhip64.so",
    "TRITON_HIP_USE_BLOCK_PINGPONG": (
        "Use ping-pong scheduling, in which warps alternate between memory and matrix units. If not set: on GPUs "
        "that are known to gain from it"
    ),
    "TRITON_HIP_USE_IN_THREAD_TRANSPOSE": (
        "Transpose operands in registers. If not set: on GPUs that are known to gain from it"
    ),
    "TRITON_HIP_USE_ASYNC_COPY": (
        "Let the loads of pipelined loops go to LDS directly, without passing through registers. If not set: off"
    ),
    "TRITON_DUMP_MIR": (
        "The folder for dumps of the machine instructions after selection: `NAME.txt` for AMD GPUs, otherwise "
        "`NAME.mir`"
    ),
    "TRITON_SWAP_MIR": (
        "The folder to take machine instructions from. Setting it is an error, because llvmlite cannot read them"
    ),
    "TRITON_SWAP_MIR_ENABLE_MISCHED": NO_EFFECT,
    "TRITON_HIP_USE_COEXEC_SCHEDULER": NO_EFFECT,
    "TRITON_HIP_USE_EXPERT_SCHEDULING": NO_EFFECT,
    "AMDGCN_SCALARIZE_PACKED_FOPS": NO_EFFECT,
    "TILEWORK_SOFTWARE_FP8": (
        "Compute with 8-bit floats in software on CDNA 1 and 2, which have no instructions for them, as under "
        "`as_triton`; off: using them is an error"
    ),
    # proton
    "TRITON_PROTON_DISABLE": "Disable recording in the profiler",
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
        "Print the module before every pass, for every kernel or for the one named",
    ),
    "MLIR_DUMP_PATH": ("file", "Append the output of `MLIR_ENABLE_DUMP` to this file"),
    "MLIR_ENABLE_TIMING": (ON, "Print how long each pass took"),
    "MLIR_ENABLE_DIAGNOSTICS": (
        "names",
        (
            "The diagnostics of passes to show: any of `remarks`, `warnings`, `operations` (with the op) and "
            "`stacktraces`, separated by commas"
        ),
    ),
    "MLIR_DISABLE_MULTITHREADING": (ON, NO_EFFECT),
    "TRITON_REPRODUCER_PATH": (
        "start of a path",
        ("Write the input and the passes of each stage to files; `tilework opt FILE --run-reproducer` runs one again"),
    ),
    "LLVM_IR_ENABLE_DUMP": (ON, "Print the LLVM IR of each compiled kernel"),
    "LLVM_ENABLE_TIMING": (ON, "Print how long LLVM's passes took"),
    "DISABLE_LLVM_OPT": (
        "on, or LLVM's switches",
        "On: turn off LLVM's optimisations. Otherwise: LLVM switches to set, such as `disable-lsr`",
    ),
    "LLVM_PASS_PLUGIN_PATH": ("file", "Has no effect except a warning: llvmlite cannot load plugins"),
    "TRITON_ENABLE_LLVM_DEBUG": (ON, "Print the debug output of LLVM's passes, which is very long"),
    "TRITON_LLVM_DEBUG_ONLY": (TEXT, "Print the debug output of the named LLVM passes only, such as `isel`"),
    "DISABLE_MMA_V3": (ON, "Use mma.sync for dots that could use wgmma"),
    "DISABLE_MMA_V5": (ON, NO_EFFECT),
    "ALLOW_LHS_TMEM_LAYOUT_CONVERSION": (ON, NO_EFFECT),
    "TRITON_PREFER_TMEM_16x256_LAYOUT": (ON, NO_EFFECT),
    "TRITON_ENABLE_EXPERIMENTAL_CONSAN": (ON, NO_EFFECT),
    "TRITON_DEFAULT_BACKEND": (
        TEXT,
        ("The backend whose device is used, by its name in `triton.backends.backends`: `nvidia`, `amd` or `cpu`"),
    ),
    "TRITON_PLUGIN_PATHS": (
        TEXT,
        (
            "Compiled plugins for Triton's own compiler. Setting it is an error: plugins for tilework are Python "
            "packages (`process/plugins.py`)"
        ),
    ),
    "TRITON_PLUGIN_VERSION_CHECK": (TEXT, NO_EFFECT),
    "TRITON_PARTITION_SCHEDULING_ENABLE_DUMP_DOT": (ON, NO_EFFECT),
    "TRITON_PARTITION_SCHEDULING_DUMP_DATA_ONLY": (ON, NO_EFFECT),
    "TRITON_PARTITION_SCHEDULING_DUMP_LOOP_ONLY": (ON, NO_EFFECT),
    "TRITON_BACKENDS_IN_TREE": (ON, "Use only the backends, drivers and targets that are part of tilework"),
    "TRITON_ENABLE_PYTHON_STACKTRACE": (ON, "Print Python's stack when a signal kills the process"),
    "CUDA_HOME": (FOLDER, "The CUDA toolkit, if it is not in `/usr/local/cuda`"),
    "ROCM_PATH": (FOLDER, "ROCm, if it is not in `/opt/rocm`"),
    "HIP_PATH": (FOLDER, "A folder whose `lib` is searched for libamdhip64"),
    "PATH": (TEXT, "The folders to search for ptxas, nvdisasm, cuobjdump, ld.lld and hipconfig"),
    "LD_LIBRARY_PATH": (TEXT, "The folders to search for libcuda and libamdhip64"),
    "PYTHONPATH": (TEXT, "`as_triton` adds to this for child processes"),
}
