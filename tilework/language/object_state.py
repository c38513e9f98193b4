"""The state of any object, and what the body of its class defines."""

from collections.abc import Iterator
from types import FunctionType, GetSetDescriptorType, MemberDescriptorType
from typing import Any

from tilework.language.origins import is_of_language

# of a class, what Python adds, says nothing about values, or is found in the rest
WITHOUT_MEANING = frozenset(
    (
        "__module__ __qualname__ __dict__ __weakref__ __annotations__ __static_attributes__ "
        "__firstlineno__ __abstractmethods__ _abc_impl __dataclass_fields__ __dataclass_params__ "
        "__parameters__ __orig_bases__ __annotate__ __annotate_func__ __conditional_annotations__ "
        "__annotations_cache__ __hash__ __slotnames__ _value2member_map_ _hashable_values_ _unhashable_values_ "
        "_unhashable_values_map_ _sort_order_ __triton_aggregate__"
    ).split()
)


def methods_of(cls: type) -> Iterator[tuple[str, Any]]:
    """The functions that an aggregate class and its bases define."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found |= vars(base)
    for name, member in sorted(found.items()):
        function = getattr(member, "__func__", member)
        if hasattr(function, "cache_key") or (isinstance(function, FunctionType) and not is_of_language(function)):
            yield name, function


def own_members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the names and values that the body of a class defines, without those that other parts of the text
    contain."""
    enumerated = vars(cls).get("_member_map_", ())
    for name, member in sorted(vars(cls).items()):
        if name not in WITHOUT_MEANING and name not in enumerated and not is_slot(member):
            yield name, member


def is_slot(member: Any) -> bool:
    """Return True for a descriptor that Python generated for an attribute."""
    return isinstance(member, MemberDescriptorType | GetSetDescriptorType)


def is_python_made(kind: type) -> bool:
    """Return True if the state of an object is its attributes: no class that it inherits from has a state in C."""
    slots = sum(len(slots_of(cls)) for cls in kind.__mro__)
    inside = (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0) + slots  # others are in front of the object
    return kind.__basicsize__ <= object.__basicsize__ + 8 * inside and not kind.__itemsize__


def attributes_of(value: Any, kind: type) -> dict[str, Any]:
    """The attributes of an object, without those of its class."""
    slots = (name for cls in kind.__mro__ for name in slots_of(cls))
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return {**found, **value.__dict__} if kind.__dictoffset__ else found


def slots_of(cls: type) -> tuple[str, ...]:
    """The names of the attributes that a class stores in `__slots__`."""
    names = cls.__dict__.get("__slots__", ())
    mangled = f"_{cls.__name__.lstrip('_')}"
    return tuple(
        f"{mangled}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in ((names,) if isinstance(names, str) else names)
        if name not in ("__dict__", "__weakref__")
    )
