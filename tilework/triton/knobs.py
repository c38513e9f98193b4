"""The protocols of what users hang into the knobs, and what Triton's module has beside ours."""

# pyright: reportUnusedImport=false

from collections.abc import Callable
from typing import Any, Protocol, TypedDict

from tilework.knobs.cuda_tools import NvidiaTool
from tilework.triton._C.libtriton import getenv_bool


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
    """`knobs.compilation.listener`: told about every compilation."""

    def __call__(
        self, *, src: Any, metadata: dict[str, Any], metadata_group: dict[str, str], times: Any, cache_hit: bool
    ) -> None: ...


class InitHandleHook(Protocol):
    """`knobs.runtime.kernel_load_start_hook` and `..._end_hook`: told when a binary is loaded."""

    def __call__(
        self,
        module: object | None,
        function: Callable[..., Any] | None,
        name: str,
        metadata_group: dict[str, str],
        hash: str,
    ) -> None: ...


class JITHookCompileInfo(TypedDict):
    """What `JITHook` is told about a specialisation."""

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
    """`knobs.runtime.jit_cache_hook`: a true result means that nothing is compiled. `jit_post_compile_hook`: told afterwards."""

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
    """`knobs.runtime.launch_enter_hook` and `launch_exit_hook`: told about every launch."""

    def __call__(self, metadata: Any) -> None: ...


class PipelineStagesHook(Protocol):
    """`knobs.runtime.add_stages_inspection_hook`: may replace stages."""

    def __call__(self, stages: dict[str, Any], options: Any, language: Any, capability: int) -> None: ...
