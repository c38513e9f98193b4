"""What Triton's module of kernels has beside what `tilework.runtime.launch.jit` has."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tilework.language.dtypes import type_canonicalisation_dict
from tilework.language.function import BoundConstexprFunction, JITFunction
from tilework.language.parameters import normalize_annotation
from tilework.runtime.kernel_cache.environment import cache_invalidating_env_vars as get_cache_invalidating_env_vars
from tilework.runtime.kernel_cache.managers import get_cache_key
from tilework.runtime.launch.specialization import encode
from tilework.runtime.workers import async_compile as _async_compile
from tilework.triton._C.libtriton.native_specialize import native_specialize_impl
from tilework.triton._utils import find_paths_if, get_iterable_path, is_namedtuple
from tilework.triton.backends.compiler import BaseBackend

__all__ = [
    "GLUON_MODULE",
    "TRITON_MODULE",
    "BaseBackend",
    "BoundConstexprFunction",
    "JitFunctionInfo",
    "_async_compile",
    "_normalize_ty",
    "compute_cache_key",
    "convert_to_tuple_if_list",
    "find_paths_if",
    "get_cache_invalidating_env_vars",
    "get_cache_key",
    "get_full_name",
    "get_iterable_path",
    "is_namedtuple",
    "native_specialize_impl",
    "serialize_specialization_data",
]

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
