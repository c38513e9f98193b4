"""Classes whose instances are kernel values: `aggregate`.

    @aggregate
    class Window:
        start: tensor
        size: constexpr

        def __init__(self, start, size):
            self.start = start
            self.size = size

        @jit
        def end(self):
            return self.start + self.size

`Window(x, 4)` in a kernel runs `__init__` while compiling. The fields are declared by annotations, and each must hold
a value of its class. A `Window` crosses loops, branches and calls as the runtime handles of its fields; its constants
are part of its type, so windows of different sizes have different types.
"""

import sys
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any

from tilework.language.compile_time import SUPPLIED, base_type, base_value, constexpr
from tilework.language.parameters import annotations_of

NOT_COPIED = (
    "__dict__",
    "__weakref__",
    "__annotate__",
    "__annotate_func__",
    "__annotations_cache__",
)  # 3.14: the last three
HIDDEN = ("_semantic", "_generator")  # passed to `__init__` only if it has such parameters


class _aggregate_type(base_type):
    """The class of an aggregate, and the types of its fields in order of declaration."""

    def __init__(self, base_cls: type, fields: Sequence[tuple[str, Any]]) -> None:
        self.base_cls = base_cls
        self.fields = list(fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _aggregate_type) and self.base_cls is other.base_cls and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((self.base_cls, *self.fields))

    def __str__(self) -> str:
        return f"{self.base_cls.__qualname__}<{', '.join(f'{name}: {type}' for name, type in self.fields)}>"

    __repr__ = __str__

    def mangle(self) -> str:
        fields = ", ".join(type.mangle() for _, type in self.fields)
        return f"{self.base_cls.__module__}.{self.base_cls.__qualname__}<{fields}>"

    def _unflatten_ir(self, handles: Sequence[Any], cursor: int) -> tuple[Any, int]:
        value = object.__new__(self.base_cls)
        for name, type in self.fields:
            field, cursor = type._unflatten_ir(handles, cursor)
            object.__setattr__(value, name, field)
        return value, cursor


class AggregateValue(base_value):
    """The methods that `_aggregate` adds to a class: checked fields, a type composed of the field types, and
    flattening."""

    __aggregate__ = True
    __triton_aggregate__ = True
    __aggregate_fields__: dict[str, Any] = {}
    __aggregate_defaults__: dict[str, Any] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        initialise = vars(self.__class__)["__aggregate_init__"]
        for name, value in self.__aggregate_defaults__.items():
            setattr(self, name, value)
        accepted = () if initialise is None else _parameter_names(initialise)
        kwargs = {name: value for name, value in kwargs.items() if name not in HIDDEN or name in accepted}
        if initialise is not None:
            initialise(self, *args, **kwargs)
        else:
            self._fill(args, kwargs)
        for name in self.__aggregate_fields__:
            if name not in self.__dict__:
                raise AttributeError(f"{self.__class__.__name__}.__init__ did not set the field {name!r}")

    def _fill(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Initialise the fields in order, where the class has no `__init__`."""
        cls = self.__class__
        if len(args) > len(cls.__aggregate_fields__):
            raise TypeError(f"{cls.__name__} has {len(cls.__aggregate_fields__)} fields, got {len(args)} values")
        given = dict(zip(cls.__aggregate_fields__, args, strict=False))
        if twice := sorted(given.keys() & kwargs.keys()):
            raise TypeError(f"{cls.__name__} got multiple values for field {twice[0]!r}")
        for name, value in {**given, **kwargs}.items():
            setattr(self, name, value)

    @property
    def type(self) -> _aggregate_type:  # pyright: ignore[reportIncompatibleVariableOverride]
        cls = self.__class__
        return _aggregate_type(cls, [(name, getattr(self, name).type) for name in cls.__aggregate_fields__])

    def __setattr__(self, name: str, value: Any) -> None:
        cls = self.__class__
        if name not in cls.__aggregate_fields__:
            raise AttributeError(f"{cls.__name__} has no field {name!r}; declare it in the class: `{name}: tl.tensor`")
        expected = _resolve(cls.__aggregate_fields__[name], cls)
        if expected is constexpr and not isinstance(value, base_value):
            value = constexpr(value)
        if not _is_a(value, expected):
            shown = getattr(expected, "__name__", expected)
            raise TypeError(f"field {name!r} of {cls.__name__} must be a {shown}, not a {value.__class__.__name__}")
        object.__setattr__(self, name, value)

    def _flatten_ir(self, handles: list[Any]) -> None:
        for name in self.__aggregate_fields__:
            getattr(self, name)._flatten_ir(handles)


def aggregate(cls: type) -> Any:
    """Turn the instances of a class into kernel values, which pass through loops, branches and calls as their fields
    do.

    Fields are declared by annotations (`tl.tensor`, `tl.constexpr`, another aggregate), including those of base
    classes. `__init__` runs at compile time; without one, a call gives the fields in order, except those with a default
    (``size: tl.constexpr = 4``). Methods that kernels call are jit functions; those named ``__add__``, ``__lt__`` and
    so on are operators.

    Example:
        @tl.core.aggregate
        class Window:
            start: tl.tensor
            size: tl.constexpr

            def __init__(self, start, size):
                self.start = start
                self.size = size

            @tilework.jit
            def indices(self):
                return self.start + tl.arange(0, self.size)

        @tilework.jit
        def kernel(out):
            window = Window(tl.program_id(0) * 4, 4)
            tl.store(out + window.indices(), tl.program_id(0))

        out = np.zeros(8, np.int32)
        kernel[(2,)](out)
        assert out.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    """
    fields: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base not in (object, base_value, AggregateValue):
            fields |= annotations_of(base)
    for internal in annotations_of(AggregateValue) | annotations_of(base_value):
        fields.pop(internal, None)
    for member in vars(cls).values():
        function = getattr(member, "__func__", member)
        if isinstance(function, FunctionType):
            function.__dict__["_aggregate_method"] = True  # lets kernels call it through the class
    members = {name: member for name, member in vars(cls).items() if name not in NOT_COPIED and name not in fields}
    defaults = getattr(cls, "__aggregate_defaults__", {})
    defaults = defaults | {name: value for name, value in vars(cls).items() if name in fields}
    namespace = members | {
        "__annotations__": {},
        "__aggregate_fields__": fields,
        "__aggregate_defaults__": defaults,
        "__aggregate_init__": _user_init(cls),
        "__init__": AggregateValue.__init__,
        "__setattr__": AggregateValue.__setattr__,
        "type": AggregateValue.type,
    }
    bases = (cls,) if issubclass(cls, AggregateValue) else (cls, AggregateValue)
    return type(cls.__name__, bases, namespace)


_aggregate = aggregate  # its name until Triton 3.7


def aggregate_replace(instance: Any, _semantic: Any = SUPPLIED, **changes: Any) -> Any:
    """A copy of an aggregate with new values in some fields: ``tl.aggregate_replace(window, start=0)``.

    Example:
        @tl.core.aggregate
        class Window:
            start: tl.tensor
            size: tl.constexpr

        @tilework.jit
        def kernel(out):
            window = Window(tl.program_id(0), 4)
            larger = tl.aggregate_replace(window, size=8)
            tl.store(out + tl.arange(0, larger.size), window.size)

        out = np.zeros(8, np.int32)
        kernel[(1,)](out)
        assert (out == 4).all()
    """
    cls = type(instance)
    if not issubclass(cls, AggregateValue):
        raise TypeError(f"aggregate_replace takes an aggregate, got {instance}")
    copy = object.__new__(cls)
    for name in cls.__aggregate_fields__:
        object.__setattr__(copy, name, getattr(instance, name))
    for name, value in changes.items():
        setattr(copy, name, value)
    return copy


def _user_init(cls: type) -> Any:
    """The `__init__` the user wrote, possibly a constexpr_function; None if there is none."""
    for base in cls.__mro__:
        own = vars(base)
        if "__aggregate_init__" in own:
            return own["__aggregate_init__"]
        if "__init__" in own and base is not object:
            return own["__init__"]
    return None


def _parameter_names(function: Any) -> Sequence[str]:
    code = getattr(function, "fn", function).__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _resolve(annotation: Any, cls: type) -> Any:
    """The class an annotation names; text that cannot be evaluated (a name local to a factory) remains text."""
    if not isinstance(annotation, str):
        return annotation
    found: Any = vars(sys.modules.get(cls.__module__, sys))
    for index, part in enumerate(annotation.strip("'\"").split(".")):
        found = found.get(part) if index == 0 else getattr(found, part, None)
        if found is None:
            return annotation.strip("'\"").rsplit(".", 1)[-1]
    return found


def _is_a(value: Any, expected: Any) -> bool:
    if isinstance(expected, str):
        return any(base.__name__ == expected for base in type(value).__mro__)
    return isinstance(value, expected)
