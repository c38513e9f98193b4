"""What Triton's module of kernels has beside what `tilework.runtime.launch.python.jit` has."""

# pyright: reportUnusedImport=false

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

from tilework.language.function import (
    BoundConstexprFunction,
    ConstexprFunction,
    JITCallable,
    JITFunction,
    constexpr_function,
)
from tilework.language.parameters import KernelParam, normalize_annotation
from tilework.language.signature_types import type_canonicalisation_dict
from tilework.runtime.kernel_cache.environment import cache_invalidating_env_vars as get_cache_invalidating_env_vars
from tilework.runtime.kernel_cache.managers import get_cache_key
from tilework.runtime.launch.python.binder import make_binder
from tilework.runtime.launch.python.specialization import encode
from tilework.runtime.launch.python.specialize import mangle_type
from tilework.runtime.launch.python.wrappers import MockTensor, TensorWrapper, reinterpret
from tilework.runtime.workers import async_compile as _async_compile
from tilework.triton._C.libtriton.native_specialize import native_specialize_impl
from tilework.triton._utils import find_paths_if, get_iterable_path, is_namedtuple
from tilework.triton.backends.compiler import BaseBackend

TRITON_MODULE = "triton.language"
GLUON_MODULE = "triton.experimental.gluon.language"


class JitFunctionInfo(NamedTuple):
    """What compile hooks are told about a kernel."""

    module: Any
    name: str
    jit_function: JITFunction


def _normalize_ty(ty: Any) -> str:
    """The type of an annotation as signatures write it: ``tl.int32`` -> ``i32``."""
    text = normalize_annotation(ty)
    stars = text[: len(text) - len(text.lstrip("*"))]
    return stars + type_canonicalisation_dict.get(text[len(stars) :], text[len(stars) :])


def compute_cache_key(kernel_key_cache: dict[Any, str], specialization: Any, options: Any) -> str:
    """The key of a specialisation in memory, computed once."""
    marker = (tuple(specialization), str(options))
    if marker not in kernel_key_cache:
        kernel_key_cache[marker] = str(specialization) + str(options)
    return kernel_key_cache[marker]


def convert_to_tuple_if_list(item: Any) -> Any:
    """A list as a tuple, and the lists inside it too."""
    return tuple(map(convert_to_tuple_if_list, item)) if isinstance(item, list) else item


def get_full_name(fn: Any) -> str:
    """``module.function``."""
    return f"{fn.__module__}.{fn.__qualname__}"


def serialize_specialization_data(
    name: str,
    signature: Mapping[str, Any],
    constants: Mapping[Any, Any],
    attrs: Mapping[Any, Any],
    options: Any,
    key: str,
) -> str:
    """A specialisation as text, which `JITFunction.preload` takes."""
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
        }
    )


def get_jit_fn_file_line(fn: Any) -> tuple[str, int]:
    """Where the `def` of a kernel stands, whatever is wrapped around it."""
    base = fn
    while not isinstance(base, JITCallable):
        base = base.fn
    return base.fn.__code__.co_filename, base.def_line


def create_function_from_signature(sig: Any, kparams: Sequence[KernelParam], backend: Any) -> Any:
    """The binder of a kernel, under the name Triton's tests use; returns (bound arguments, specialisation, options)."""
    names = list(sig.parameters)
    bind = make_binder(SimpleNamespace(params=list(kparams), arg_names=names, __name__="bind", __qualname__="bind"))  # pyright: ignore[reportArgumentType]

    def dynamic_func(*args: Any, **kwargs: Any) -> Any:
        values, specs, _, options = bind(*args, **kwargs)
        return dict(zip(names, values, strict=True)), list(specs), options

    return dynamic_func
