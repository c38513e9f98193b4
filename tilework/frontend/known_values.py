"""Queries about values: known at compile time or not, the IR handles they hold, the text of their type.

A value in a kernel is one of

    constexpr            known now: an int, a float, a string, a dtype, None, a function wrapped by the user
    tensor, descriptor   known at run time, made of IR handles
    tuple, aggregate     made of other values
    any Python object    a module, a jit function, a class: used, never stored in IR
"""

from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from tilework.language import core as tl
from tilework.language.typing.promotion import NUMBERS
from tilework.language.typing.promotion import plain as unwrap
from tilework.language.typing.python_names import describe_type, is_storable, make_tuple

__all__ = ["NUMBERS", "describe_type", "is_storable", "make_tuple", "unwrap"]


def is_aggregate(value: Any) -> bool:
    """An instance of a class made with `tl.core._aggregate`."""
    return getattr(value, "__triton_aggregate__", False) and not isinstance(value, type)


def as_constexpr(value: Any) -> Any:
    """Wrap Python's scalars, strings, None and containers in constexprs; language values are returned as they are."""
    if value is None or isinstance(value, (*NUMBERS, str, bytes, list, dict, set)):
        return tl.constexpr(value)
    if type(value) is tuple:
        return tl.tuple([as_constexpr(item) for item in value])
    return value


def flatten(value: Any) -> list[Any]:
    """The IR handles of a value, in order."""
    handles: list[Any] = []
    value._flatten_ir(handles)
    return handles


def unflatten(type: Any, handles: Sequence[Any]) -> Any:
    """The value of `type` that holds `handles`: the inverse of `flatten`."""
    value, used = type._unflatten_ir(list(handles), 0)
    assert used == len(handles), f"{type} takes {used} handles, not {len(handles)}"
    return value


def unflatten_all(types: Iterable[Any], handles: Sequence[Any]) -> list[Any]:
    """A value of each type, which hold `handles` one after the other."""
    values, cursor = [], 0
    for type in types:
        value, cursor = type._unflatten_ir(handles, cursor)
        values.append(value)
    return values


def aggregates_in(value: Any) -> Iterator[Any]:
    """The aggregates that a value is or contains, outermost first."""
    if is_aggregate(value):
        yield value
        for member in vars(value).values():
            yield from aggregates_in(member)
    elif isinstance(value, tl.tuple):
        for item in value.values:
            yield from aggregates_in(item)


def contains_aggregate(value: Any) -> bool:
    """Return True if methods may mutate this value."""
    return next(aggregates_in(value), None) is not None


def is_same(left: Any, right: Any) -> bool:
    """The same object, or the same compile-time constant (1, 1.0 and True are three)."""
    if left is right:
        return True
    return not is_storable(left) and not is_storable(right) and tl.constexpr_type(left) == tl.constexpr_type(right)


def describe(value: Any) -> str | None:
    """The type of a value in a user's words: ``fp32[64, 16]``, ``int32``, ``the constexpr 4``; None: not worth
    saying."""
    if isinstance(value, tl.constexpr):
        if isinstance(value.value, int) and abs(value.value) >> 128:
            return f"a constexpr of {value.value.bit_length()} bits"
        text = repr(value.value)
        if value.value is None:
            return text
        return f"the constexpr {text}" if len(text) <= 40 else None
    if isinstance(value, tl.tensor):
        return describe_type(value.type)
    if isinstance(value, tl.tuple):
        inner = [describe(item) or "?" for item in value.values]
        return f"a tuple ({', '.join(inner)})" if len(inner) <= 4 else f"a tuple of {len(inner)}"
    if isinstance(value, tl.base_value):
        return describe_type(value.type)
    if isinstance(value, tl.dtype):
        return f"the type {value}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    return None
