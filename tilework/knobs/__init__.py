"""Every environment variable that tilework reads (nothing else looks at them), in groups: `runtime`, `compilation`,
`cache` ...

A knob has the value set in Python, else the one in the environment, else its default. Setting one also writes the
environment, so that child processes agree (`propagate_env = False` stops that); `del group.knob`, or assigning `env`,
forgets the Python value.

Reading a knob costs a microsecond, because the environment may have changed. Those that every launch needs
(`READ_ONCE`: `runtime.debug`, `runtime.sanitize` ...) are read once, at import; `refresh_knobs()` reads them again.

Example:
    with tilework.knobs.compilation.scope() as compilation:
        compilation.always_compile = True  # as TRITON_ALWAYS_COMPILE=1, until the block ends
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tilework.knobs.hooks import CompileTimes as CompileTimes
from tilework.knobs.hooks import HookChain
from tilework.knobs.variables import FALSE as FALSE
from tilework.knobs.variables import SANITIZE_MODES as SANITIZE_MODES
from tilework.knobs.variables import TRUE as TRUE
from tilework.knobs.variables import Env as Env
from tilework.knobs.variables import base_knobs as base_knobs
from tilework.knobs.variables import env as env
from tilework.knobs.variables import env_base as env_base
from tilework.knobs.variables import env_bool as env_bool
from tilework.knobs.variables import env_class as env_class
from tilework.knobs.variables import env_device as env_device
from tilework.knobs.variables import env_home_dir as env_home_dir
from tilework.knobs.variables import env_int as env_int
from tilework.knobs.variables import env_nvidia_tool as env_nvidia_tool
from tilework.knobs.variables import env_opt_bool as env_opt_bool
from tilework.knobs.variables import env_opt_int as env_opt_int
from tilework.knobs.variables import env_opt_str as env_opt_str
from tilework.knobs.variables import env_sanitize as env_sanitize
from tilework.knobs.variables import env_size as env_size
from tilework.knobs.variables import env_str as env_str
from tilework.knobs.variables import env_str_callable_default as env_str_callable_default
from tilework.knobs.variables import environment_without as environment_without
from tilework.knobs.variables import getenv as getenv
from tilework.knobs.variables import is_on as is_on
from tilework.knobs.variables import places as places
from tilework.knobs.variables import sanitize_mode as sanitize_mode
from tilework.knobs.variables import setenv as setenv
from tilework.knobs.variables import toenv as toenv

if TYPE_CHECKING:
    from tilework.knobs.cuda_tools import NvidiaTool

propagate_env: bool = True


class build_knobs(base_knobs):
    """Settings for building C extension modules."""

    cc = env_opt_str("CC")
    cxx = env_opt_str("CXX")
    cudacrt_path = env_opt_str("TRITON_CUDACRT_PATH")
    cudart_path = env_opt_str("TRITON_CUDART_PATH")
    impl: Callable[..., str] | None = None

    @property
    def backend_dirs(self) -> set[str]:
        """Include folders that were named."""
        return {path for path in (self.cudacrt_path, self.cudart_path) if path}


class redis_knobs(base_knobs):
    """The address of the remote cache."""

    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
    host = env_str("TRITON_REDIS_HOST", "localhost")
    port = env_int("TRITON_REDIS_PORT", 6379)


class cache_knobs(base_knobs):
    """The folder of compiled kernels, the cache classes, and the limit of its size."""

    home_dir = env_str_callable_default("TRITON_HOME", lambda: os.path.expanduser("~/"))
    dump_dir = env_home_dir("TRITON_DUMP_DIR", "dump")
    override_dir = env_home_dir("TRITON_OVERRIDE_DIR", "override")
    dir = env_home_dir("TRITON_CACHE_DIR", "cache")
    manager_class = env_class("TRITON_CACHE_MANAGER", "CacheManager")
    remote_manager_class = env_class("TRITON_REMOTE_CACHE_BACKEND", "RemoteCacheBackend")
    max_size = env_size("TILEWORK_CACHE_MAX_SIZE", 4 << 30)

    def get_triton_dir(self, folder: str) -> str:
        """``<home>/.triton/<folder>``."""
        return os.path.join(self.home_dir, ".triton", folder)


class compilation_knobs(base_knobs):
    """Settings of the compiler, its dumps and its checks."""

    override = env_bool("TRITON_KERNEL_OVERRIDE")
    dump_ir = env_bool("TRITON_KERNEL_DUMP")
    dump_ir_extract_di_local_variables = env_bool("LLVM_EXTRACT_DI_LOCAL_VARIABLES")
    store_binary_only = env_bool("TRITON_STORE_BINARY_ONLY")
    always_compile = env_bool("TRITON_ALWAYS_COMPILE")
    use_ir_loc = env_opt_str("USE_IR_LOC")
    enable_asan = env_bool("TRITON_ENABLE_ASAN")
    disable_line_info = env_bool("TRITON_DISABLE_LINE_INFO")
    front_end_debugging = env_bool("TRITON_FRONT_END_DEBUGGING")
    allow_non_constexpr_globals = env_bool("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS")
    performance_remarks = env_bool("TILEWORK_PERFORMANCE_REMARKS")
    listener: Callable[..., None] | None = None
    instrumentation_mode: str
    READ_ONCE = {"instrumentation_mode": env_str("TRITON_INSTRUMENTATION_MODE", "")}


class autotuning_knobs(base_knobs):
    """Keep the timings on disk; report what was chosen; the worker processes that compile."""

    cache = env_bool("TRITON_CACHE_AUTOTUNING")
    print = env_bool("TRITON_PRINT_AUTOTUNING")
    workers = env_opt_int("TILEWORK_COMPILE_WORKERS")
    worker_timeout = env_int("TILEWORK_WORKER_TIMEOUT", 300)
    save = env_bool("TILEWORK_SAVE_TUNING")
    part = env_opt_str("TILEWORK_TUNING_PART")


class runtime_knobs(base_knobs):
    """Settings of launches, and their hooks."""

    interpret = env_bool("TRITON_INTERPRET")
    override_arch = env_opt_str("TRITON_OVERRIDE_ARCH")
    num_threads = env_opt_int("TILEWORK_NUM_THREADS")
    device = env_device("TILEWORK_DEVICE")
    native_launch = env_bool("TILEWORK_NATIVE_LAUNCH", True)
    explain = env_opt_str("TILEWORK_EXPLAIN")  # 1: say why kernels are compiled; a folder: record it there
    record = env_opt_str("TILEWORK_RECORD")  # a file: write down which specialisations are used
    bundle = env_opt_str("TILEWORK_BUNDLE")  # a file of compiled kernels, or several as in PATH
    bundle_key = env_opt_str("TILEWORK_BUNDLE_KEY")
    bundle_digest = env_opt_str("TILEWORK_BUNDLE_DIGEST")
    no_jit = env_bool("TILEWORK_NO_JIT")
    progress = env_bool("TILEWORK_PROGRESS", True)
    cpu_dots = env_bool("TILEWORK_CPU_DOTS", True)  # 0: no instructions that only dots of bf16, f16 and int8 have
    debug: bool
    sanitize: bool | str
    sanitize_overflow: bool
    reproducible: bool
    READ_ONCE = {
        "debug": env_bool("TRITON_DEBUG"),
        "sanitize": env_sanitize("TRITON_SANITIZE"),
        "sanitize_overflow": env_bool("TRITON_SANITIZE_OVERFLOW", True),
        "reproducible": env_bool("TILEWORK_REPRODUCIBLE"),
    }

    jit_cache_hook: Callable[..., Any] | None = None
    jit_post_compile_hook: Callable[..., Any] | None = None
    add_stages_inspection_hook: Callable[..., Any] | None = None

    def __init__(self) -> None:
        super().__init__()
        self.launch_enter_hook = HookChain()
        self.launch_exit_hook = HookChain(reversed=True)
        self.kernel_load_start_hook = HookChain()
        self.kernel_load_end_hook = HookChain(reversed=True)


class language_knobs(base_knobs):
    """Defaults of the language."""

    fp32_default = env_opt_str("TRITON_F32_DEFAULT")
    default_fp_fusion = env_bool("TRITON_DEFAULT_FP_FUSION", True)
    strict_triton = env_bool("TILEWORK_STRICT_TRITON")
    is_triton = False  # `as_triton` serves this process: what Triton does not have is warned about


class nvidia_knobs(base_knobs):
    """NVIDIA's tools and libraries."""

    cuobjdump = env_nvidia_tool("cuobjdump")
    nvdisasm = env_nvidia_tool("nvdisasm")
    ptxas = env_nvidia_tool("ptxas")
    ptxas_blackwell = env_nvidia_tool("ptxas-blackwell")
    dump_nvptx = env_bool("NVPTX_ENABLE_DUMP")
    disable_ptxas_opt = env_bool("DISABLE_PTXAS_OPT")
    ptxas_options = env_opt_str("PTXAS_OPTIONS")
    mock_ptx_version = env_opt_str("TRITON_MOCK_PTX_VERSION")
    dump_ptxas_log = env_bool("TRITON_DUMP_PTXAS_LOG")
    libdevice_path = env_opt_str("TRITON_LIBDEVICE_PATH")
    libcuda_path = env_opt_str("TRITON_LIBCUDA_PATH")
    ptxas_timeout = env_int("TILEWORK_PTXAS_TIMEOUT", 3600)
    auto_tma = env_opt_bool("TILEWORK_AUTO_TMA")  # unset: where it pays
    plain_dots = env_bool("TILEWORK_PLAIN_DOTS")  # operands and products of wgmma as Triton arranges them
    warp_specialize = env_opt_str("TILEWORK_WARP_SPECIALIZE")  # 0, 1, auto
    persistent_programs = env_bool("TILEWORK_PERSISTENT_PROGRAMS", True)

    def find_tool(self, name: str) -> "NvidiaTool | None":
        """The tool of a knob, or None: ``find_tool("ptxas")``."""
        return self.knob_descriptors[name].current(self)

    def find_libdevice(self) -> str | None:
        """The file of `libdevice_path`, else the one of a toolkit or wheel, else None."""
        from tilework.knobs.cuda_tools import find_libdevice  # lazily: loads subprocess, which few programs need

        return self.libdevice_path or find_libdevice(os.environ.get("CUDA_HOME"))


class amd_knobs(base_knobs):
    """The compiler for AMD GPUs."""

    use_buffer_ops = env_bool("AMDGCN_USE_BUFFER_OPS", True)
    use_buffer_atomics = env_bool("AMDGCN_USE_BUFFER_ATOMICS", True)
    buffer_ops_analyze_small_tensor_range = env_bool("AMDGCN_ANALYZE_SMALL_TENSOR_RANGE")
    dump_amdgcn = env_bool("AMDGCN_ENABLE_DUMP")
    libhip_path = env_opt_str("TRITON_LIBHIP_PATH")
    use_block_pingpong = env_opt_bool("TRITON_HIP_USE_BLOCK_PINGPONG")
    use_in_thread_transpose = env_opt_bool("TRITON_HIP_USE_IN_THREAD_TRANSPOSE")
    use_async_copy = env_bool("TRITON_HIP_USE_ASYNC_COPY")
    scalarize_packed_fops = env_bool("AMDGCN_SCALARIZE_PACKED_FOPS")
    software_fp8 = env_bool("TILEWORK_SOFTWARE_FP8")


class proton_knobs(base_knobs):
    """The profiler."""

    disable = env_bool("TRITON_PROTON_DISABLE")
    cupti_lib_dir = env_str("TRITON_CUPTI_LIB_PATH", "")
    enable_nvtx = env_bool("TRITON_ENABLE_NVTX", True)


def replace_environment(variables: Mapping[str, str]) -> None:
    """Work as a process with these variables does, no others being set."""
    os.environ.clear()
    os.environ.update(variables)
    refresh_knobs()


def refresh_knobs() -> None:
    """Read from the environment again what is read once."""
    for group in (runtime, compilation):
        group.refresh()


build = build_knobs()
redis = redis_knobs()
cache = cache_knobs()
compilation = compilation_knobs()
autotuning = autotuning_knobs()
runtime = runtime_knobs()
language = language_knobs()
nvidia = nvidia_knobs()
amd = amd_knobs()
proton = proton_knobs()
