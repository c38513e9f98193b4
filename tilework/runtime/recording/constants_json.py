"""Constants of kernels as JSON, so that another process has the same ones.

    constant_to_json(-0.0), constant_to_json(tl.float16)    {"float": "-0x0.0p+0"}, {"dtype": "fp16"}
    constant_to_json((4, scaled))                           {"tuple": [4, {"object": "app:scaled"}]}
    constant_from_json(constant_to_json(value))             the value again

Integers, floats, strings, None and booleans are unchanged; any other value is an object with one key, its kind.
Functions and classes are written by name; one that cannot be imported by its name (a lambda, a local function) is
`Unwritable`.

Two other formats are right where they are: `workers/sent_kernel.py` sends functions as text and refuses classes,
because a worker compiles for this very program and must not import it, while a manifest is read later by a process that
imports the program; `launch/python/specialization.py` writes Triton's `specialization_data`, which hooks of users
parse.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from operator import attrgetter
from pkgutil import resolve_name
from types import BuiltinFunctionType, FunctionType
from typing import Any

from tilework.language import core as tl
from tilework.language.function import JITCallable
from tilework.language.origins import module_of
from tilework.runtime.launch.python.specialize import python_scalar

PLAIN = (str, bool, int, type(None))


class Unwritable(Exception):
    """A constant that only this process can have; the message says what it is."""


def constant_to_json(value: Any) -> Any:
    """A constant as JSON."""
    value = python_scalar(value)
    if type(value) in PLAIN:
        return value
    for cls in type(value).__mro__:
        if (rule := RULES.get(cls)) is not None:
            return rule(value)
    if is_dataclass(value) and not isinstance(value, type):
        members = {field.name: constant_to_json(getattr(value, field.name)) for field in fields(value)}
        return {"dataclass": [name_of(type(value)), members]}
    raise Unwritable(f"{shortened(value)}, of type {type(value).__qualname__}")


def settings_to_json(config: Any) -> dict[str, Any]:
    """The settings of a configuration of the autotuner as JSON."""
    return {name: constant_to_json(value) for name, value in config.all_kwargs().items()}


def sequence(value: Any) -> Any:
    items = [constant_to_json(item) for item in value]
    if hasattr(value, "_fields"):
        return {"named tuple": [name_of(type(value)), items]}
    return {("tuple" if isinstance(value, tuple) else "list"): items}


def unordered(value: Any) -> Any:
    kind = "set" if isinstance(value, set) else "frozenset"
    return {kind: sorted((constant_to_json(item) for item in value), key=json.dumps)}


def float_to_json(value: float) -> Any:
    """A float, exact and distinct from an integer."""
    return value if value == value and abs(value) < 1e308 and value != 0 else {"float": value.hex()}


def dtype(value: Any) -> Any:
    if type(value) is tl.dtype:
        return {"dtype": str(value)}
    if type(value) is tl.pointer_type:
        return {"pointer": [constant_to_json(value.element_ty), value.address_space, value.const]}
    raise Unwritable(f"the type {value}")


RULES: dict[type, Callable[[Any], Any]] = {
    float: float_to_json,
    tl.constexpr: lambda value: {"constexpr": constant_to_json(value.value)},
    tl.dtype: dtype,
    tl.tuple: lambda value: {"tl.tuple": [constant_to_json(item) for item in value.values]},
    Enum: lambda value: {"enum": [name_of(type(value)), value.name]},
    tuple: sequence,
    list: sequence,
    dict: lambda value: {"dict": [[constant_to_json(key), constant_to_json(item)] for key, item in value.items()]},
    set: unordered,
    frozenset: unordered,
    bytes: lambda value: {"bytes": value.hex()},
    range: lambda value: {"range": [value.start, value.stop, value.step]},
    JITCallable: lambda value: {"object": name_of(value)},
    FunctionType: lambda value: {"object": name_of(value)},
    BuiltinFunctionType: lambda value: {"object": name_of(value)},
    type: lambda value: {"object": name_of(value)},
}


def name_of(value: Any) -> str:
    """``module:qualname``, by which another process finds it."""
    owner = getattr(value, "fn", value)
    own, name = module_of(owner), owner.__qualname__
    module = module_name(own)
    try:
        found = attrgetter(name)(sys.modules[own])
    except (KeyError, AttributeError):
        found = None
    if found is not value and unwrapped(found) is not unwrapped(value):
        kind = "a lambda" if "<lambda>" in name else "defined where no other process finds it"
        raise Unwritable(f"{name}, which is {kind}: define it in a module, under its own name")
    return f"{module}:{name}"


def module_name(name: str) -> str:
    """The importable name of a module: ``python -m app`` runs it as `__main__`, and spawned processes as
    `__mp_main__`."""
    if name not in ("__main__", "__mp_main__"):
        return name
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return "__main__" if spec is None else spec.name


def unwrapped(value: Any) -> Any:
    """The Python function inside of what decorators make."""
    while hasattr(value, "fn"):
        value = value.fn
    return value


def constant_text(value: Any) -> str:
    """The result of `constant_to_json` as text for people."""
    if not isinstance(value, dict):
        return repr(value)
    ((kind, inner),) = value.items()
    if kind in ("object", "dtype"):
        return str(inner).rpartition(":")[2]
    if kind in ("tuple", "list", "tl.tuple"):
        return f"({', '.join(map(constant_text, inner))})"
    if kind == "constexpr":
        return constant_text(inner)
    if kind == "enum":
        return f"{inner[0].rpartition(':')[2]}.{inner[1]}"
    if kind == "named tuple":
        return f"{inner[0].rpartition(':')[2]}({', '.join(map(constant_text, inner[1]))})"
    if kind == "dataclass":
        members = ", ".join(f"{name}={constant_text(item)}" for name, item in inner[1].items())
        return f"{inner[0].rpartition(':')[2]}({members})"
    return f"{kind} {inner}"


def shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


READERS: dict[str, Callable[[Any], Any]] = {
    "float": float.fromhex,
    "constexpr": lambda inner: tl.constexpr(constant_from_json(inner)),
    "dtype": tl.dtype,
    "pointer": lambda inner: tl.pointer_type(constant_from_json(inner[0]), inner[1], inner[2]),
    "tl.tuple": lambda inner: tl.tuple([constant_from_json(item) for item in inner]),
    "enum": lambda inner: resolve_name(inner[0])[inner[1]],
    "named tuple": lambda inner: resolve_name(inner[0])(*map(constant_from_json, inner[1])),
    "tuple": lambda inner: tuple(map(constant_from_json, inner)),
    "list": lambda inner: list(map(constant_from_json, inner)),
    "dict": lambda inner: {constant_from_json(key): constant_from_json(item) for key, item in inner},
    "set": lambda inner: set(map(constant_from_json, inner)),
    "frozenset": lambda inner: frozenset(map(constant_from_json, inner)),
    "bytes": bytes.fromhex,
    "range": lambda inner: range(*inner),
    "object": resolve_name,
    "dataclass": lambda inner: resolve_name(inner[0])(
        **{name: constant_from_json(item) for name, item in inner[1].items()}
    ),
}


def constant_from_json(value: Any) -> Any:
    """The inverse of `constant_to_json`; ValueError for what it does not write."""
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind not in READERS:
        raise ValueError(f"a constant of the unknown kind {kind!r}")
    return READERS[kind](inner)
