"""The protocols of the hooks that `triton.knobs` holds, and names that `tilework.knobs` does not have."""

from collections.abc import Callable
from typing import Any, Protocol, TypedDict

from tilework.knobs import TRUE, getenv


def getenv_bool(name: str, default: bool) -> bool:
    """Return True if a variable is set to a true value; `default` if it is not set."""
    text = getenv(name)
    return default if text is None else text.lower() in TRUE


class BuildImpl(Protocol):
    """`knobs.build.impl`: compiles a C file to an extension module, and returns its path."""

    def __call__(
        self,
        name: str,
        src: str,
        srcdir: str,
        library_dirs: list[str],
        include_dirs: list[str],
        libraries: list[str],
        /,
    ) -> str: ...


class CompilationListener(Protocol):
    """`knobs.compilation.listener`: called after every compilation."""

    def __call__(
        self, *, src: Any, metadata: dict[str, Any], metadata_group: dict[str, str], times: Any, cache_hit: bool
    ) -> None: ...


class InitHandleHook(Protocol):
    """`knobs.runtime.kernel_load_start_hook` and `..._end_hook`: called around the load of a binary."""

    def __call__(
        self,
        module: object | None,
        function: Callable[..., Any] | None,
        name: str,
        metadata_group: dict[str, str],
        hash: str,
    ) -> None: ...


class JITHookCompileInfo(TypedDict):
    """The specialization that `JITHook` is called for."""

    key: str
    signature: dict[Any, str]
    device: int
    constants: None
    num_warps: int
    num_ctas: int
    num_stages: int
    enable_fp_fusion: bool
    launch_cooperative_grid: bool
    extern_libs: tuple[tuple[str, str], ...]
    configs: list[dict[tuple[int, ...], list[Any]]]
    specialization_data: str
    is_warmup: bool


class JITHook(Protocol):
    """`knobs.runtime.jit_cache_hook`: called before a compilation, which a true result prevents.
    `jit_post_compile_hook`: called after it."""

    def __call__(
        self,
        *,
        key: str,
        repr: str,
        fn: Any,
        compile: JITHookCompileInfo,
        is_manual_warmup: bool,
        already_compiled: bool,
    ) -> bool | None: ...


class LaunchHook(Protocol):
    """`knobs.runtime.launch_enter_hook` and `launch_exit_hook`: called around every launch."""

    def __call__(self, metadata: Any) -> None: ...


class PipelineStagesHook(Protocol):
    """`knobs.runtime.add_stages_inspection_hook`: may replace stages."""

    def __call__(self, stages: dict[str, Any], options: Any, language: Any, capability: int) -> None: ...
