"""Functions of Triton's compiler modules that `tilework.compiler` and `tilework.frontend` do not have."""

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tilework.knobs import CompileTimes
from tilework.language.core import base_value
from tilework.runtime.devices.active_driver import driver
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia.arch import capability_of

ptx_prototype_pattern = r"\.(?:visible|extern)\s+\.(?:entry|func)\s+(\w+)\s*\(([^)]*)\)"
ptx_arg_type_pattern = r"\.param\s+\.(\w+)"
prototype_pattern = {"ptx": ptx_prototype_pattern}
arg_type_pattern = {"ptx": ptx_arg_type_pattern}


class CompileTimer:
    """Times the parts of a compilation; `end` gives the record that `compilation.listener` receives."""

    def __init__(self) -> None:
        self.start = self.last = time.perf_counter()
        self.ir_initialization: int | None = None
        self.lowering_stages: list[tuple[str, int]] = []

    def lap(self) -> int:
        """Return the microseconds since the last call."""
        before, self.last = self.last, time.perf_counter()
        return int((self.last - before) * 1e6)

    def finished_ir_initialization(self) -> None:
        self.ir_initialization = self.lap()

    def stage_finished(self, stage_name: str) -> None:
        self.lowering_stages.append((stage_name, self.lap()))

    def end(self) -> CompileTimes:
        """Return all times; the time since the last stage is that of storing the results."""
        if self.ir_initialization is None:
            return CompileTimes(self.lap(), [], 0)
        return CompileTimes(self.ir_initialization, self.lowering_stages, self.lap())


def convert_type_repr(x: str) -> str:
    """Return ``!tt.ptr<f32>`` as signatures spell it: ``*f32``."""
    found = re.search(r"!tt\.ptr<(.*?)(?:, \d+)?>", x)
    return f"*{convert_type_repr(found[1])}" if found is not None else x


def max_shared_mem(device: int) -> int:
    """Return the bytes of shared memory that a program can have."""
    return driver.active.utils.get_device_properties(device)["max_shared_mem"]


def parse(full_name: str, ext: str, context: Any) -> Any:
    """Return the result of a stage from its file: a module, text, or bytes."""
    if ext in ("ttir", "ttgir", "ttcir"):
        # lazily: the compiler loads when something is compiled
        from tilework.triton.libtriton_ir import parse_mlir_module

        return parse_mlir_module(full_name, context)
    return (
        Path(full_name).read_bytes()
        if ext in ("cubin", "hsaco", "obj")
        else Path(full_name).read_text(encoding="utf-8")
    )


def filter_traceback(e: BaseException) -> None:
    """Do nothing: Triton removes its own frames from errors here, and tilework's errors have none."""


def ast_to_ttir(
    fn: Any, src: Any, context: Any, options: Any, codegen_fns: Any, module_map: Any, module: Any = None
) -> Any:
    """Return the module of a kernel before any pass, for the target of the options."""
    name = options.backend_name
    arch = {"cuda": capability_of, "hip": str}.get(name, lambda _: "host")(options.arch)
    return src.make_ir(GPUTarget(name, arch, options.warp_size), options, codegen_fns, module_map, context)


def flatten_values_to_ir(values: Iterable[base_value]) -> list[Any]:
    """Return the IR values of kernel values, with tuples and aggregates flattened."""
    handles: list[Any] = []
    for value in values:
        value._flatten_ir(handles)
    return handles
