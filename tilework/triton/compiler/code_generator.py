"""What Triton's frontend module has beside what `tilework.frontend.generator` has."""

# pyright: reportUnusedImport=false

from collections.abc import Iterable
from typing import Any

from tilework.language.core import _unwrap_if_constexpr, base_type, base_value, constexpr, str_to_ty, tensor
from tilework.language.function import BoundConstexprFunction, ConstexprFunction
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia.arch import number_of
from tilework.triton._utils import find_paths_if, get_iterable_path, is_namedtuple, set_iterable_path
from tilework.triton.runtime.jit import get_jit_fn_file_line


def ast_to_ttir(
    fn: Any, src: Any, context: Any, options: Any, codegen_fns: Any, module_map: Any, module: Any = None
) -> Any:
    """The module of a kernel before any pass, for the target that the options are for."""
    name = options.backend_name
    arch = {"cuda": number_of, "hip": str}.get(name, lambda _: "host")(options.arch)
    return src.make_ir(GPUTarget(name, arch, options.warp_size), options, codegen_fns, module_map, context)


def flatten_values_to_ir(values: Iterable[base_value]) -> list[Any]:
    """The IR values behind kernel values, tuples and aggregates taken apart."""
    handles: list[Any] = []
    for value in values:
        value._flatten_ir(handles)
    return handles
