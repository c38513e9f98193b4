"""What Triton's compiler module has beside what `tilework.compiler` has."""

# pyright: reportUnusedImport=false

import re
import time
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.errors import OutOfResources
from tilework.knobs.hooks import CompileTimes
from tilework.runtime.compile.compiled import AsmDict
from tilework.runtime.compile.sources import ASTSource, IRSource
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.environment import cache_invalidating_env_vars as get_cache_invalidating_env_vars
from tilework.runtime.kernel_cache.managers import get_cache_manager, get_dump_manager, get_override_manager
from tilework.triton import backends as found
from tilework.triton._C.libtriton import ir
from tilework.triton.backends.compiler import BaseBackend, Language
from tilework.triton.tools.disasm import get_sass


def signature_of(source: IRSource) -> dict[int, str]:
    """The types of the parameters of an IR file's kernel: ``{0: "*f32", 1: "i32"}``."""
    module = ir.parse_mlir_module(str(source.path), ir.context())
    return dict(enumerate(module.get_function_signature(module.get_function(module.get_entry_func_name()))))


ASTSource.language = IRSource.language = Language.TRITON  # pyright: ignore[reportAttributeAccessIssue]
IRSource.signature = property(signature_of)  # pyright: ignore[reportAttributeAccessIssue]

ptx_prototype_pattern = r"\.(?:visible|extern)\s+\.(?:entry|func)\s+(\w+)\s*\(([^)]*)\)"
ptx_arg_type_pattern = r"\.param\s+\.(\w+)"
prototype_pattern = {"ptx": ptx_prototype_pattern}
arg_type_pattern = {"ptx": ptx_arg_type_pattern}


class CompileTimer:
    """A clock for the parts of a compilation: what `compilation.listener` receives."""

    def __init__(self) -> None:
        self.start = self.last = time.perf_counter()
        self.ir_initialization: int | None = None
        self.lowering_stages: list[tuple[str, int]] = []

    def lap(self) -> int:
        """Microseconds since the last call."""
        before, self.last = self.last, time.perf_counter()
        return int((self.last - before) * 1e6)

    def finished_ir_initialization(self) -> None:
        self.ir_initialization = self.lap()

    def stage_finished(self, stage_name: str) -> None:
        self.lowering_stages.append((stage_name, self.lap()))

    def end(self) -> CompileTimes:
        """All times; what has passed since the last stage was storing the results."""
        if self.ir_initialization is None:
            return CompileTimes(self.lap(), [], 0)
        return CompileTimes(self.ir_initialization, self.lowering_stages, self.lap())


def convert_type_repr(x: str) -> str:
    """``!tt.ptr<f32>`` as the signature writes it: ``*f32``."""
    found = re.search(r"!tt\.ptr<(.*?)(?:, \d+)?>", x)
    return f"*{convert_type_repr(found[1])}" if found is not None else x


def max_shared_mem(device: int) -> int:
    """The bytes of shared memory that a program can have."""
    return driver.active.utils.get_device_properties(device)["max_shared_mem"]


def parse(full_name: str, ext: str, context: Any) -> Any:
    """The product of a stage from its file: a module, text, or bytes."""
    if ext in ("ttir", "ttgir", "ttcir"):
        # lazily: the compiler loads when something is compiled
        from tilework.triton._C.libtriton.ir import parse_mlir_module

        return parse_mlir_module(full_name, context)
    return (
        Path(full_name).read_bytes()
        if ext in ("cubin", "hsaco", "obj")
        else Path(full_name).read_text(encoding="utf-8")
    )


def __dir__() -> list[str]:
    return [*globals(), "backends"]


def __getattr__(name: str) -> Any:
    if name != "backends":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found.backends


def filter_traceback(e: BaseException) -> None:
    """Triton removes its own frames from errors here; ours have none when they reach the user."""
