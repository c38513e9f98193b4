"""Names of Triton's modules that tilework's modules do not have: functions that programs call to prepare launches
(`triton._utils`, `runtime.jit`, `runtime.cache`), compiler functions, and the protocols of hooks (`triton.knobs`).

    >>> values = [1, ("D", [2, "S"])]
    >>> find_paths_if(values, lambda path, value: isinstance(value, str))
    [(1, 0), (1, 1, 1)]
    >>> get_iterable_path(values, (1, 1, 1))
    'S'
"""

import builtins
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, TypedDict

from tilework.frontend.scopes import is_named_tuple_class
from tilework.knobs import TRUE, CompileTimes, getenv
from tilework.language.compile_time import tuple as kernel_tuple
from tilework.language.core import base_value
from tilework.language.function import (
    JITCallable,
)
from tilework.language.parameters import (
    DTYPE_OF_CODE,
    KernelParam,
    normalize_annotation,
    type_canonicalisation_dict,
)
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.key import folder_of as _base32
from tilework.runtime.launch.python.specialization import encode, target_data
from tilework.runtime.launch.python.specialize import Spec, make_binder, specialize
from tilework.runtime.tuning.benchmark import summarize
from tilework.targets.base import GPUTarget
from tilework.targets.nvidia.arch import capability_of
from tilework.triton.backends import BaseBackend

IndexPath = builtins.tuple[int, ...]
NESTED = (list, builtins.tuple, kernel_tuple)
BITWIDTH_DICT = {
    name: 0 if code == "void" else 1 if code == "u1" else DTYPE_OF_CODE[code].primitive_bitwidth
    for name, code in type_canonicalisation_dict.items()
}


def is_namedtuple(val: Any) -> bool:
    """Return True if a class is a NamedTuple."""
    return is_named_tuple_class(val)


def is_iterable(x: Any) -> bool:
    """Return True for a list or tuple, also of a kernel."""
    return isinstance(x, NESTED)


def apply_with_path(value: Any, fn: Callable[[IndexPath, Any], None], _path: IndexPath = ()) -> None:
    """Call `fn(path, value)` for every value in nested sequences."""
    if is_iterable(value):
        for index, item in enumerate(value):
            apply_with_path(item, fn, (*_path, index))
    else:
        fn(_path, value)


def find_paths_if(iterable: Any, pred: Callable[[IndexPath, Any], Any]) -> list[IndexPath]:
    """Return the index paths of the values in nested sequences for which `pred(path, value)` is true."""
    found: list[IndexPath] = []
    apply_with_path(iterable, lambda path, value: found.append(path) if pred(path, value) else None)
    return found


def _tuple_create(arg: Any, contents: Iterable[Any]) -> Any:
    """Return a tuple of the class of `arg` with other contents; a NamedTuple takes them one by one."""
    return type(arg)(*contents) if hasattr(arg, "_fields") else type(arg)(contents)


def get_iterable_path(iterable: Any, path: IndexPath) -> Any:
    """Return the value at an index path."""
    return reduce(lambda value, index: value[index], path, iterable)


def set_iterable_path(iterable: Any, path: IndexPath, val: Any) -> None:
    """Replace the value at an index path, in a kernel's tuple or a list."""
    assert path, "an empty path names no value inside"
    holder = get_iterable_path(iterable, path[:-1])
    assert isinstance(holder, kernel_tuple | list), f"{type(holder).__name__} cannot be changed"
    (holder.values if isinstance(holder, kernel_tuple) else holder)[path[-1]] = val


def get_primitive_bitwidth(dtype: str) -> int:
    """Return the bits of a type by any of its names: ``"fp16"``, ``"float16"``, ``"half"``."""
    return BITWIDTH_DICT[dtype]


def is_power_of_two(x: int) -> bool:
    """Return True if at most one bit is set."""
    return (x & (x - 1)) == 0


def native_specialize_impl(
    backend: type[BaseBackend] | BaseBackend | None, arg: Any, is_const: bool, specialize_value: bool, align: bool
) -> Spec:
    """Return the type and the specialization key of an argument; a backend may compute the key of a tensor itself."""
    type, key = specialize(arg, is_const, specialize_value, align)
    is_tensor = specialize_value and isinstance(type, str) and type.startswith("*")
    if backend is not None and not backend.supports_native_tensor_specialization and is_tensor:
        key = backend.get_tensor_specialization(arg, align=align)
    return (type, plain_keys(key))


def plain_keys(key: Any) -> Any:
    """Return the key of a tuple as plain tuples, which compare by value; the keys of launches also carry the class."""
    return tuple(map(plain_keys, key)) if isinstance(key, tuple) else key


TRITON_MODULE = "triton.language"
GLUON_MODULE = "triton.experimental.gluon.language"


def _normalize_ty(ty: Any) -> str:
    """Return the type of an annotation as signatures spell it: ``tl.int32`` -> ``i32``."""
    text = normalize_annotation(ty)
    stars = text[: len(text) - len(text.lstrip("*"))]
    return stars + type_canonicalisation_dict.get(text[len(stars) :], text[len(stars) :])


def compute_cache_key(kernel_key_cache: dict[Any, str], specialization: Any, options: Any) -> str:
    """Return the in-memory key of a specialization, computed once."""
    marker = (tuple(specialization), str(options))
    if marker not in kernel_key_cache:
        kernel_key_cache[marker] = str(specialization) + str(options)
    return kernel_key_cache[marker]


def convert_to_tuple_if_list(item: Any) -> Any:
    """Return a list, and the lists inside it, as tuples."""
    return tuple(map(convert_to_tuple_if_list, item)) if isinstance(item, list) else item


def get_full_name(fn: Any) -> str:
    """Return ``module.function``."""
    return f"{fn.__module__}.{fn.__qualname__}"


def serialize_specialization_data(
    name: str,
    signature: Mapping[str, Any],
    constants: Mapping[Any, Any],
    attrs: Mapping[Any, Any],
    options: Any,
    key: str,
    target: GPUTarget | None = None,
) -> str:
    """Return a specialization as text, which `JITFunction.preload` takes."""
    settings = options if isinstance(options, Mapping) else vars(options)
    return json.dumps(
        {
            "name": name,
            "signature": {param: encode(type, is_plain=True) for param, type in signature.items()},
            "constant_keys": [list(path) for path in constants],
            "constant_vals": [encode(value) for value in constants.values()],
            "attrs_keys": [list(path) for path in attrs],
            "attrs_vals": list(attrs.values()),
            "options": {option: encode(value, is_plain=True) for option, value in settings.items()},
            "key": key,
            **({} if target is None else {"target": target_data(target)}),
        }
    )


def get_jit_fn_file_line(fn: Any) -> tuple[str, int]:
    """Return file and line of the `def` of a kernel, whatever is wrapped around it."""
    base = fn
    while not isinstance(base, JITCallable):
        base = base.fn
    return base._file, base.def_line


def create_function_from_signature(sig: Any, kparams: Sequence[KernelParam], backend: Any) -> Any:
    """Return the binder of a kernel, whose result is (bound arguments, specialization, options)."""
    names = list(sig.parameters)
    kernel: Any = SimpleNamespace(params=list(kparams), arg_names=names, __name__="bind", __qualname__="bind")
    bind = make_binder(kernel)

    def dynamic_func(*args: Any, **kwargs: Any) -> Any:
        values, specs, _, options = bind(*args, **kwargs)
        return dict(zip(names, values, strict=True)), list(specs), options

    return dynamic_func


def make_so_cache_key(version_hash: str, signature: Any, constants: Any, ids: Any, **kwargs: Any) -> str:
    """Return the cache folder of a compiled launcher: a hash of all that it depends on."""
    types = {name: "ptr" if str(type).startswith("*") else type for name, type in dict(signature).items()}
    text = f"{version_hash}-{types}-{constants}-{ids}" + "".join(f"-{kwargs[name]}" for name in sorted(kwargs))
    return _base32(hashlib.sha256(text.encode()).hexdigest())


def _summarize_statistics(times: Iterable[Any], quantiles: Sequence[float] | None, return_mode: str) -> Any:
    """Return the quantiles of times, or the statistic named `return_mode`."""
    return summarize([float(time) for time in times], quantiles, return_mode)


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
    """`knobs.runtime.add_stages_inspection_hook`: returns (key, hash) without arguments, and may replace stages."""

    def __call__(
        self,
        backend: Any = None,
        stages: dict[str, Any] | None = None,
        options: Any = None,
        language: Any = None,
        capability: int | None = None,
        /,
    ) -> tuple[str, str] | None: ...


class AutotuneListener(Protocol):
    """`knobs.autotuning.listener`: called after every tuning."""

    def __call__(
        self, *, fn: Any, key: Any, best_config: Any, timings: Mapping[Any, Any], bench_time: float, cache_hit: bool
    ) -> None: ...
