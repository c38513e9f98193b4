"""What `x.name` is in a kernel, for every kind of `x`."""

from types import ModuleType
from typing import Any

from tilework.frontend.known_values import as_constexpr, describe, is_aggregate
from tilework.frontend.scopes import compile_time_function
from tilework.frontend.target_libdevice import resolve_stub
from tilework.frontend.visitors import FunctionGenerator
from tilework.language import core as tl
from tilework.language.function import BoundJITMethod, JITFunction


def get_attribute(gen: FunctionGenerator, owner: Any, name: str) -> Any:
    """An attribute of a module, a tensor, a type, an aggregate, a named tuple or a compile-time value."""
    if isinstance(owner, tl.tensor) and name == "T":
        return gen.semantic.transposed(owner)
    if isinstance(owner, tl.constexpr) and name not in ("value", "type"):
        if not hasattr(owner.value, name) and (hasattr(tl.tensor, name) or name == "dtype"):
            text = f"{describe(owner) or 'this value'} is not a tensor: it has no `{name}`"
            raise AttributeError(f"{text}\nhelp: pass a tensor; tl.full((), x, dtype) makes one of a number")
        return as_constexpr(getattr(owner.value, name))
    if is_aggregate(owner):
        static = next((vars(cls)[name] for cls in type(owner).__mro__ if name in vars(cls)), None)
        if isinstance(static, JITFunction):
            return BoundJITMethod(owner, static)
    value = getattr(owner, name)
    if isinstance(owner, ModuleType):
        value = resolve_stub(value, gen.options)
        if compile_time_function(value) is not None:
            return value
    return as_constexpr(value)
