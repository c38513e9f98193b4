"""Methods of dataclasses, compiled once for each number of fields: those of another class are the same code with other names in it.

    method_of(Place, "__hash__", is_frozen=True)        # def __hash__(self): return hash((self.row, self.column))

Compiling a method from text takes fifty times as long as giving it other names. The texts are Python's own; classes whose fields are not
as simple as that (factories, keywords, variables that are only given) have no such methods.
"""

import dataclasses
import sys
from collections.abc import Sequence
from functools import cache
from types import CodeType, FunctionType
from typing import Any

TEXTS = {
    "__hash__": "def __hash__(self): return hash(({own}))",
    "__init__": "def __init__(self, {given}): pass; {set}",
}
if sys.version_info < (3, 13):  # later ones compare one field after the other
    TEXTS["__eq__"] = (
        "def __eq__(self, other):\n"
        "  if other.__class__ is self.__class__: return ({own}) == ({others})\n"
        "  return NotImplemented"
    )


def method_of(cls: Any, name: str, is_frozen: bool) -> FunctionType | None:
    """A method of a class whose fields are known; None if Python has to make it."""
    fields, is_init = dataclasses.fields(cls), name == "__init__"
    if name not in TEXTS or (is_init and not is_plain(cls, fields)):
        return None
    if name == "__eq__":
        fields = [field for field in fields if field.compare]
    elif name == "__hash__":
        fields = [field for field in fields if (field.compare if field.hash is None else field.hash)]
    code, closure = template(name, len(fields), is_frozen, is_init and hasattr(cls, "__post_init__"))
    scope = getattr(sys.modules.get(cls.__module__), "__dict__", {})
    made = FunctionType(renamed(code, [field.name for field in fields]), scope, name, None, closure)
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    if is_init:
        made.__defaults__ = tuple(field.default for field in fields if field.default is not dataclasses.MISSING) or None
        made.__annotations__ = {**{field.name: field.type for field in fields}, "return": None}
    return made


def is_plain(cls: Any, fields: Sequence[Any]) -> bool:
    """Whether an object is made of the values of all its fields, in order, and the last ones may be left out."""
    has_default = [field.default is not dataclasses.MISSING for field in fields]
    return (
        len(fields) == len(cls.__dataclass_fields__)
        and has_default == sorted(has_default)
        and all(field.init and not field.kw_only and field.name != "self" for field in fields)
        and all(field.default_factory is dataclasses.MISSING for field in fields)
    )


def marks(count: int) -> list[str]:
    """What stands where the names of fields will be."""
    return [f"_field_{place}" for place in range(count)]


def renamed(code: CodeType, names: Sequence[str]) -> CodeType:
    """Code with the names of fields in it."""
    called = dict(zip(marks(len(names)), names, strict=True))
    variables, attributes, values = (
        tuple(called.get(word, word) for word in words) for words in (code.co_varnames, code.co_names, code.co_consts)
    )
    return code.replace(co_varnames=variables, co_names=attributes, co_consts=values)


@cache
def template(name: str, count: int, is_frozen: bool, has_more: bool) -> tuple[CodeType, tuple[Any, ...] | None]:
    """A method of a class with so many fields, and what it refers to."""
    fields = marks(count)
    statements = [f"put(self, {field!r}, {field})" if is_frozen else f"self.{field} = {field}" for field in fields]
    text = TEXTS[name].format(
        own="".join(f"self.{field}, " for field in fields),
        others="".join(f"other.{field}, " for field in fields),
        given=", ".join(fields),
        set="; ".join([*statements, "self.__post_init__()"] if has_more else statements),
    )
    scope: dict[str, Any] = {}
    exec(f"def within(put):\n {text}\n return {name}", scope)
    made = scope["within"](object.__setattr__)
    return made.__code__, made.__closure__
