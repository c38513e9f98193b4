"""How an argument is specialised, under the name and signature that Triton's tests call."""

from typing import Any

from tilework.runtime.launch.python.specialize import Spec, specialize
from tilework.triton.backends.compiler import BaseBackend

__all__ = ["native_specialize_impl"]


def native_specialize_impl(
    backend: type[BaseBackend] | BaseBackend | None, arg: Any, is_const: bool, specialize_value: bool, align: bool
) -> Spec:
    """The type and the key of an argument; a backend may decide about tensors itself."""
    type, key = specialize(arg, is_const, specialize_value, align)
    is_tensor = specialize_value and isinstance(type, str) and type.startswith("*")
    if backend is not None and not backend.supports_native_tensor_specialization and is_tensor:
        key = backend.get_tensor_specialization(arg, align=align)
    return (type, plain_keys(key))


def plain_keys(key: Any) -> Any:
    """Return keys of a tuple as a tuple that equals others; those of launches also know the class of what they are for."""
    return tuple(map(plain_keys, key)) if isinstance(key, tuple) else key
