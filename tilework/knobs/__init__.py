"""The settings of tilework, in groups such as `runtime`, `compilation` and `cache`. Every environment variable is read
here and nowhere else.

The value of a knob is the one set in Python, otherwise the one in the environment, otherwise the default. Setting a
knob also writes the environment, so that child processes use the same value (`propagate_env = False` prevents that).
`del group.knob`, or assigning `env`, removes the value set in Python.

Reading a knob takes a microsecond, because the environment may have changed. Knobs that every launch needs
(`READ_ONCE`: `runtime.debug`, `language.triton_version` ...) are read once, at import, and are plain attributes:
setting one does not write the environment. `refresh_knobs()` reads them again.

Example:
    with tilework.knobs.compilation.scope() as compilation:
        compilation.always_compile = True  # as TRITON_ALWAYS_COMPILE=1, until the block ends
"""

import functools
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

if TYPE_CHECKING:
    from tilework.knobs.cuda_tools import NvidiaTool

propagate_env: bool = True
T = TypeVar("T")
TRITON_VERSION = "3.7.1"  # of Triton, where TILEWORK_TRITON_VERSION is not set
TRUE = frozenset({"1", "y", "yes", "on", "true"})
FALSE = frozenset({"", "0", "n", "no", "off", "false"})
SANITIZE_MODES = ("strict", "race")
SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Env:
    """The type of `env`: assign that to a knob to let the environment decide again."""


env = Env()


def getenv(key: str, default: str | None = None) -> str | None:
    """Return the value of a variable without a knob; `default` when it is not set."""
    return os.environ.get(key, default)


def is_on(key: str) -> bool:
    """Return True if a variable without a knob is set to something that is not "off"."""
    return os.environ.get(key, "").lower() not in FALSE


def environment_without(keys: Iterable[str]) -> dict[str, str]:
    """Return the environment for another process, without some variables."""
    return {key: text for key, text in os.environ.items() if key not in keys}


def cells(group: "base_knobs", name: str) -> "list[tuple[dict[Any, Any], Any]]":
    """The (dictionary, key) pairs that a knob is read from: its value changes only if one of these entries does."""
    key = group.knob_descriptors[name].key
    environment: Any = os.environ
    return [(group.__dict__, name), (environment._data, environment.encodekey(key))]


def setenv(key: str, value: str | None) -> None:
    """Write a variable if `propagate_env` allows it; None removes it."""
    if propagate_env:
        os.environ.pop(key, None) if value is None else os.environ.update({key: value})


def toenv(val: Any) -> str | None:
    """Return the value of a variable for a knob's value: True is "1", a tool its path; None and classes have none."""
    if isinstance(val, bool):
        return "1" if val else "0"
    return None if val is None or isinstance(val, type) else str(getattr(val, "path", val))


class env_base(Generic[T]):
    """One setting bound to a variable; subclasses say what its text means and what holds without it."""

    default: Any = None

    def __init__(self, key: str, default: Any = None) -> None:
        self.key, self.name = key, ""
        if default is not None:
            self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def get(self, group: Any = None) -> T:
        """The value that the environment gives."""
        text = os.environ.get(self.key)
        return self.fallback(group) if text is None else self.transform(text)

    def transform(self, text: str) -> T:
        """The value that a text means."""
        return text  # pyright: ignore[reportReturnType]

    def fallback(self, group: Any) -> T:
        """The value without the variable."""
        return self.default

    def __get__(self, group: Any, owner: type | None = None) -> T:
        return self if group is None else self.current(group)  # pyright: ignore[reportReturnType]

    def current(self, group: Any) -> T:
        """The value that holds in a group."""
        if self.name not in group.__dict__:
            return self.get(group)
        value = group.__dict__[self.name]
        return self.transform(value) if isinstance(value, str) else value

    def __set__(self, group: Any, value: Any) -> None:
        if value is env:
            return self.__delete__(group)
        group.__dict__[self.name] = value
        setenv(self.key, toenv(value))

    def __delete__(self, group: Any) -> None:
        group.__dict__.pop(self.name, None)


class env_str(env_base[str]):
    """A text."""


class env_version(env_str):
    """A version; empty means the default."""

    def transform(self, text: str) -> str:
        return text or self.default


class env_str_callable_default(env_base[str]):
    """A text whose default is computed when the knob is read."""

    def __init__(self, key: str, default_factory: Callable[[], str]) -> None:
        super().__init__(key)
        self.default_factory = default_factory

    def fallback(self, group: Any) -> str:
        return self.default_factory()


class env_home_dir(env_base[str]):
    """A folder below the group's `home_dir`, unless named: ``~/.triton/cache``."""

    def fallback(self, group: Any) -> str:
        return (group or cache).get_triton_dir(self.default)


class env_bool(env_base[bool]):
    """True for 1, y, yes, on and true in any case; false for any other text."""

    default = False

    def transform(self, text: str) -> bool:
        return text.lower() in TRUE


class env_opt_bool(env_base[bool | None]):
    """A bool, None when unset: three states."""

    transform = env_bool.transform


class env_sanitize(env_base[bool | str]):
    """Off, on, or the name of a mode: see docs/sanitizer.md."""

    default = False

    def transform(self, text: str) -> bool | str:
        name = text.strip().lower()
        if name not in (*SANITIZE_MODES, *TRUE, *FALSE):
            raise ValueError(f"{self.key} is 0, 1, {' or '.join(SANITIZE_MODES)}, not {text!r}")
        return name if name in SANITIZE_MODES else name in TRUE


def sanitize_mode(given: object) -> bool | str:
    """The value of the option `sanitize`: False, True, "strict" or "race"."""
    if isinstance(given, str) and given not in SANITIZE_MODES:
        raise ValueError(f"sanitize is True, False, {' or '.join(map(repr, SANITIZE_MODES))}, not {given!r}")
    return given if isinstance(given, str) else bool(given)


class env_int(env_base[int]):
    """An integer; any other text is an error."""

    default = 0

    def transform(self, text: str) -> int:
        try:
            return int(text)
        except ValueError as error:
            raise RuntimeError(f"Unable to use {self.key}={text}: expected int") from error


class env_opt_int(env_int):
    """An integer, or None when unset."""

    default = None


class env_size(env_int):
    """A size in bytes: ``500000``, ``64k``, ``512M``, ``4G``."""

    def transform(self, text: str) -> int:
        size = text.strip().lower()
        digits, factor = (size[:-1], SIZES[size[-1]]) if size[-1:] in SIZES else (size, 1)
        if not digits.isdecimal():
            raise RuntimeError(f"Unable to use {self.key}={text}: expected bytes, for example 500000, 64k, 512M or 4G")
        return int(digits) * factor


class env_seconds(env_base[float]):
    """A number of seconds above 0."""

    def transform(self, text: str) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < float("inf"):
            raise RuntimeError(f"Unable to use {self.key}={text}: expected seconds, for example 0.2 or 5")
        return seconds


class env_opt_str(env_base[str | None]):
    """A text, None when unset or empty."""

    def transform(self, text: str) -> str | None:
        return text or None


class env_device(env_opt_str):
    """A device: that of the host has two names."""

    def transform(self, text: str) -> str | None:
        return "native" if text == "cpu" else super().transform(text)


class env_class(env_base[type | None]):
    """A class as ``module:Class``, which must have a class called `type` among its bases; None when unset."""

    def __init__(self, key: str, type: str) -> None:
        super().__init__(key)
        self.type = type

    def transform(self, text: str) -> type | None:
        module, colon, name = text.partition(":")
        if not (module and colon and name):
            raise RuntimeError(f"Unable to read {self.key}: {text!r} isn't of the form MODULE:CLASS")
        try:
            found: Any = attrgetter(name)(import_module(module))
        except (ImportError, AttributeError) as error:
            raise RuntimeError(f"Unable to read {self.key}: {text!r}: {error}") from error
        if not isinstance(found, type) or self.type not in {base.__name__ for base in found.__mro__}:
            raise RuntimeError(f"Unable to use {text!r} from {self.key}: not of type {self.type!r}")
        return found


class env_nvidia_tool(env_base["NvidiaTool | None"]):
    """A program of the CUDA toolkit: the one that the variable names if it runs, else the newest one found."""

    def __init__(self, binary: str) -> None:
        super().__init__(f"TRITON_{binary.upper().replace('-', '_')}_PATH")
        self.binary = binary

    def transform(self, text: str | None) -> "NvidiaTool | None":
        from tilework.knobs.cuda_tools import find_tool  # loads subprocess, which few programs need

        return find_tool(self.binary, text, os.environ.get("CUDA_HOME"))

    def fallback(self, group: Any) -> "NvidiaTool | None":
        return self.transform(None)

    def __get__(self, group: Any, owner: type | None = None) -> "NvidiaTool":
        tool = super().__get__(group, owner)
        if tool is None:
            source = "nvidia-cuda-nvcc (pip)" if self.binary.startswith("ptxas") else "a CUDA toolkit"
            raise RuntimeError(f"Cannot find {self.binary}: install {source}, or set {self.key} to its path")
        return tool


@functools.cache
def knobs_of(group: type) -> dict[str, env_base[Any]]:
    """The knobs that a class defines."""
    return {name: knob for name, knob in vars(group).items() if isinstance(knob, env_base)}


class base_knobs:
    """Knobs that belong together. `READ_ONCE` are those that are plain attributes, read at import."""

    READ_ONCE: ClassVar[dict[str, env_base[Any]]] = {}

    def __init__(self) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Read the knobs of `READ_ONCE` again."""
        for name, knob in self.READ_ONCE.items():
            setattr(self, name, knob.get())

    @property
    def knob_descriptors(self) -> dict[str, env_base[Any]]:
        """The knobs that have a variable, by name."""
        return knobs_of(type(self))

    @property
    def variables(self) -> list[str]:
        """Return the names of all variables of the group."""
        return [knob.key for knob in (*self.knob_descriptors.values(), *self.READ_ONCE.values())]

    @property
    def knobs(self) -> dict[str, Any]:
        """The values now; None for a tool that this machine does not have."""
        return {name: knob.current(self) for name, knob in self.knob_descriptors.items()}

    def copy(self) -> Self:
        """Return a copy of the group, which can be changed independently."""
        other = type(self)()
        for name, value in vars(self).items():
            other.__dict__[name] = value.copy() if isinstance(value, HookChain) else value
        return other

    def reset(self) -> Self:
        """Return every knob to the environment or its default; hooks are kept."""
        for name in self.knob_descriptors:
            delattr(self, name)
        self.refresh()
        return self

    @contextmanager
    def scope(self) -> Generator[Self, None, None]:
        """Restore the group, its hooks and its variables on exit from the block."""
        values = dict(vars(self))
        calls = {name: list(value.calls) for name, value in values.items() if isinstance(value, HookChain)}
        texts = {key: os.environ.get(key) for key in self.variables}
        try:
            yield self
        finally:
            self.__dict__.clear()
            self.__dict__.update(values)
            for name, before in calls.items():
                values[name].calls = before
            for key, text in texts.items():
                os.environ.pop(key, None) if text is None else os.environ.update({key: text})


# ---- hooks of users for launches and compilations: `runtime.launch_enter_hook`, `compilation.listener`


class HookChain:
    """Functions called one after the other, in the order they were added or the opposite one. Results are dropped."""

    def __init__(self, reversed: bool = False) -> None:
        self.calls: list[Callable[..., Any]] = []
        self.reversed = reversed

    def add(self, func: Callable[..., Any]) -> None:
        """Call `func` too; adding it twice does nothing."""
        if func not in self.calls:
            self.calls.append(func)

    def remove(self, func: Callable[..., Any]) -> None:
        """Stop calling `func`; nothing happens if it was not there."""
        self.calls[:] = [call for call in self.calls if call != func]  # the same list: native launches watch it

    def __bool__(self) -> bool:
        return bool(self.calls)

    def copy(self) -> "HookChain":
        """A chain with the same functions."""
        other = HookChain(self.reversed)
        other.calls = list(self.calls)
        return other

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        for call in self.calls[::-1] if self.reversed else tuple(self.calls):
            call(*args, **kwargs)


class CompileTimes(NamedTuple):
    """The microseconds of a compilation by stage, for `compilation.listener`."""

    ir_initialization: int
    lowering_stages: list[tuple[str, int]]
    store_results: int

    @property
    def total_lowering(self) -> int:
        """All stages together."""
        return sum(time for _, time in self.lowering_stages)

    @property
    def total(self) -> int:
        """Everything."""
        return self.ir_initialization + self.total_lowering + self.store_results


# ---- the groups


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
    """The address of the shared cache, in Triton's variables; `cache.url` says more."""

    key_format = env_str("TRITON_REDIS_KEY_FORMAT", "triton:{key}:{filename}")
    host = env_str("TRITON_REDIS_HOST", "localhost")
    port = env_int("TRITON_REDIS_PORT", 6379)


class cache_knobs(base_knobs):
    """The folder of compiled kernels, its largest size, the cache classes, and the cache that machines share."""

    home_dir = env_str_callable_default("TRITON_HOME", lambda: os.path.expanduser("~/"))
    dump_dir = env_home_dir("TRITON_DUMP_DIR", "dump")
    override_dir = env_home_dir("TRITON_OVERRIDE_DIR", "override")
    dir = env_home_dir("TRITON_CACHE_DIR", "cache")
    manager_class = env_class("TRITON_CACHE_MANAGER", "CacheManager")
    remote_manager_class = env_class("TRITON_REMOTE_CACHE_BACKEND", "RemoteCacheBackend")
    max_size = env_size("TILEWORK_CACHE_MAX_SIZE", 4 << 30)
    exact_locations = env_bool("TILEWORK_EXACT_LOCATIONS")
    compile_wait = env_int("TILEWORK_COMPILE_WAIT", 300)
    url = env_opt_str("TILEWORK_CACHE_URL")  # docs/shared-cache.md
    key = env_opt_str("TILEWORK_CACHE_KEY")
    key_file = env_opt_str("TILEWORK_CACHE_KEY_FILE")
    trust_server = env_bool("TILEWORK_CACHE_TRUST_SERVER")
    connect_timeout = env_seconds("TILEWORK_CACHE_CONNECT_TIMEOUT", 0.2)
    timeout = env_seconds("TILEWORK_CACHE_TIMEOUT", 2.0)

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
    fpsan_homomorphic_casts = env_bool("TRITON_FPSAN_HOMOMORPHIC_CASTS")
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
    listener: Callable[..., None] | None = None


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
    bundle_key_file = env_opt_str("TILEWORK_BUNDLE_KEY_FILE")
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
        self.kernel_unload_hook = HookChain(reversed=True)  # for programs that set it: no module of a GPU is unloaded


class language_knobs(base_knobs):
    """Defaults of the language."""

    fp32_default = env_opt_str("TRITON_F32_DEFAULT")
    default_fp_fusion = env_bool("TRITON_DEFAULT_FP_FUSION", True)
    strict_triton = env_bool("TILEWORK_STRICT_TRITON")
    is_triton = False  # `as_triton` serves this process: what Triton does not have is warned about
    triton_version: str
    READ_ONCE = {"triton_version": env_version("TILEWORK_TRITON_VERSION", TRITON_VERSION)}


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
    plain_dots = env_bool("TILEWORK_PLAIN_DOTS")  # operands and results of wgmma arranged as in Triton
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
    use_async_copy = env_opt_bool("TRITON_HIP_USE_ASYNC_COPY")  # unset: off
    dump_mir = env_opt_str("TRITON_DUMP_MIR")
    swap_mir = env_opt_str("TRITON_SWAP_MIR")
    swap_mir_enable_misched = env_bool("TRITON_SWAP_MIR_ENABLE_MISCHED")
    use_coexec_scheduler = env_bool("TRITON_HIP_USE_COEXEC_SCHEDULER")
    use_expert_scheduling = env_bool("TRITON_HIP_USE_EXPERT_SCHEDULING")
    scalarize_packed_fops = env_bool("AMDGCN_SCALARIZE_PACKED_FOPS")
    software_fp8 = env_bool("TILEWORK_SOFTWARE_FP8")


class proton_knobs(base_knobs):
    """The profiler."""

    disable = env_bool("TRITON_PROTON_DISABLE")
    cupti_lib_dir = env_str("TRITON_CUPTI_LIB_PATH", "")
    enable_nvtx = env_bool("TRITON_ENABLE_NVTX", True)
    enable_hw_trace = env_bool("TRITON_ENABLE_HW_TRACE")
    profile_buffer_size = env_int("TRITON_PROFILE_BUFFER_SIZE", 64 << 20)
    profile_metric_buffer_size = env_opt_int("TRITON_PROFILE_METRIC_BUFFER_SIZE")


def replace_environment(variables: Mapping[str, str]) -> None:
    """Replace the environment by these variables, and refresh the knobs of `READ_ONCE`."""
    os.environ.clear()
    os.environ.update(variables)
    refresh_knobs()


def refresh_knobs() -> None:
    """Read the knobs of `READ_ONCE`, in all groups, from the environment again."""
    for group in (runtime, compilation, language):
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
