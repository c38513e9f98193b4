"""Dataclasses that are cheap to define: their methods are the functions of this file, shared by all of them.

    @light_dataclass
    class Span:
        file: str
        line: int = 0

`dataclasses.dataclass` writes the source of `__init__`, `__repr__`, `__eq__`, `__hash__`, `__setattr__` and
`__delattr__` for each class and compiles it, 0.3 to 0.5 ms each time. A first launch defines a hundred classes of the
compiler, a tenth of its time. Here `dataclass` only collects the fields, so that `fields`, `replace`, `asdict`,
`is_dataclass` and `match` work as usual, and the methods read the names of the fields from the class. They take about
the time of generated ones, except `__init__` with keywords or defaults, which takes about a microsecond more. A method
that the class body defines stays.

Use it in every module that a first compilation imports. It differs from `dataclass(frozen=True)` in this: `frozen` is
the default; a field with `init=False` has no `default_factory`; there is no `order` and no `slots`.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from inspect import Parameter, Signature
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, NamedTuple, TypeVar, dataclass_transform, overload

Class = TypeVar("Class", bound=type)


class Names(NamedTuple):
    """The names of the fields of a class that its shared methods read, as `__light_fields__` of the class."""

    init: tuple[str, ...]  # parameters of `__init__`
    positional: int  # the number of those that can be positional; they come first
    shown: tuple[str, ...]  # in the `repr`
    compared: Callable[[Any], Any]  # of an object: the values that decide equality and hash
    has_post_init: bool


def __init__(self: Any, *values: Any, **named: Any) -> None:
    names = self.__light_fields__
    if named or not len(values) == names.positional == len(names.init):
        values = bound(type(self), names, values, named)
    for name, value in zip(names.init, values, strict=True):
        object.__setattr__(self, name, value)
    if names.has_post_init:
        self.__post_init__()


def bound(cls: Any, names: Names, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return a value for each parameter of `__init__`: positional, named, or its default."""
    if len(values) > names.positional:
        raise TypeError(f"{cls.__name__} takes {names.positional} positional arguments but {len(values)} were given")
    if not named:
        return (*values, *[default(cls, name) for name in names.init[len(values) :]])
    given = dict(zip(names.init, values, strict=False))
    if repeated := given.keys() & named.keys():
        raise TypeError(f"{cls.__name__} got multiple values for argument {min(repeated)!r}")
    given |= named
    if unknown := given.keys() - names.init:
        raise TypeError(f"{cls.__name__} got an unexpected keyword argument {min(unknown)!r}")
    return tuple([given[name] if name in given else default(cls, name) for name in names.init])


def default(cls: Any, name: str) -> Any:
    """Return the default of a field; a TypeError if it has none."""
    described: Field[Any] = cls.__dataclass_fields__[name]
    if described.default is not MISSING:
        return described.default
    if described.default_factory is not MISSING:
        return described.default_factory()
    raise TypeError(f"{cls.__name__} missing the required argument {name!r}")


@recursive_repr()
def __repr__(self: Any) -> str:
    shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.__light_fields__.shown])
    return f"{type(self).__qualname__}({shown})"


def __eq__(self: Any, other: object) -> Any:
    if self is other:
        return True
    if type(other) is not type(self):
        return NotImplemented
    compared = self.__light_fields__.compared
    return compared(self) == compared(other)


def __hash__(self: Any) -> int:
    return hash(self.__light_fields__.compared(self))


def __setattr__(self: Any, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def __delattr__(self: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


class LazySignature:
    """The parameters of the shared `__init__` as `inspect.signature` and `help` show them for one class."""

    def __get__(self, instance: object, cls: Any) -> Signature:
        def parameter(name: str) -> Parameter:
            found: Field[Any] = cls.__dataclass_fields__[name]
            kind = Parameter.KEYWORD_ONLY if found.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            given = Parameter.empty if found.default is MISSING else found.default
            if found.default_factory is not MISSING:
                given = ...
            return Parameter(name, kind, default=given, annotation=found.type)

        return Signature(list(map(parameter, cls.__light_fields__.init)))


@overload
def light_dataclass(cls: Class, *, frozen: bool = True, eq: bool = True) -> Class: ...
@overload
def light_dataclass(*, frozen: bool = True, eq: bool = True) -> Callable[[Class], Class]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def light_dataclass(cls: Any = None, *, frozen: bool = True, eq: bool = True) -> Any:
    """Make a class a dataclass with the methods of this file; see the module docstring."""
    if cls is None:
        return lambda cls: light_dataclass(cls, frozen=frozen, eq=eq)
    own = vars(cls)
    methods: dict[str, Any] = {"__repr__": __repr__}
    if "__init__" not in own:
        methods |= {"__init__": __init__, "__signature__": LazySignature()}
    if eq:
        methods["__eq__"] = __eq__
    if frozen:
        methods |= {"__setattr__": __setattr__, "__delattr__": __delattr__}
    for name in methods.keys() - own.keys():
        setattr(cls, name, methods[name])
    if eq and own.get("__hash__") is None:  # Python sets None where the body defines `__eq__`
        cls.__hash__ = __hash__ if frozen else None
    cls.__doc__ = cls.__doc__ or cls.__name__  # else `dataclass` computes a signature
    dataclass(init=False, repr=False, eq=False)(cls)
    cls.__light_fields__ = names_of(cls)
    return cls


def names_of(cls: Any) -> Names:
    known: list[Field[Any]] = list(cls.__dataclass_fields__.values())
    positional = [field.name for field in known if field.init and not field.kw_only]
    keywords = [field.name for field in known if field.init and field.kw_only]
    compared = [field.name for field in known if field.compare]
    return Names(
        (*positional, *keywords),
        len(positional),
        tuple([field.name for field in known if field.repr]),
        attrgetter(*compared) if compared else lambda value: (),
        hasattr(cls, "__post_init__"),
    )
