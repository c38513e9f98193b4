"""Values that exist while a kernel is compiled: `constexpr`, `tuple`, `slice`, and the bases of every value and type.

A kernel works on two sorts of values. Run-time values (`tensor`, see `values.py`) represent data; compile-time values
are ordinary Python objects in a wrapper:

    BLOCK = constexpr(64)          # constexpr[64]
    BLOCK // 2 + 1                 # constexpr[33]: plain Python arithmetic
    tuple([BLOCK, x]).type         # [constexpr_type[64],int32]: a tuple mixes both sorts

Every value has a `.type`. `_flatten_ir` lists the run-time handles inside a value, and its type's `_unflatten_ir`
rebuilds the value from new handles. That is how a tuple passes through a loop or a call: the handles are passed, the
compile-time parts are in the type. Handles are opaque here.

`ACTIVE` is the interpreter that is running a kernel in this context, if there is one. A compiled kernel is never
*called*: the compiler passes `_semantic` to each builtin. An interpreted kernel is plain Python, so its builtins and
operators find the object that executes them in `ACTIVE`.
"""

import builtins
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from tilework.process.triton_version import follows

__all__ = ["ACTIVE", "Active", "RunTimeOnly"]


class RunTimeOnly(TypeError, ValueError):
    """Python code computes with `value`, which only exists when the kernel runs; `operation` is what it
    tried."""

    def __init__(self, text: str, operation: str, value: Any) -> None:
        super().__init__(text)
        self.operation, self.value = operation, value


class Active(Protocol):
    """The interface of an interpreter that the language uses; it is also the `_generator` of builtins."""

    semantic: Any

    def call_JitFunction(self, fn: Any, args: Any, kwargs: Any, caller_context: Any = None) -> Any: ...  # noqa: N802
    def truth(self, value: Any) -> bool: ...
    def number(self, value: Any) -> Any: ...
    def iterate(self, loop: Any) -> Any: ...


ACTIVE: ContextVar[Active | None] = ContextVar("ACTIVE", default=None)
SUPPLIED: Any = None  # default of `_semantic` and `_generator`: the compiler or the interpreter supplies the argument


class base_value:
    """Anything a kernel variable can hold; `type` is a `base_type`."""

    type: Any

    def _flatten_ir(self, handles: list[Any]) -> None:
        """Append the runtime handles inside this value, in a fixed order."""
        raise TypeError(f"{builtins.type(self).__name__} cannot be passed at run time")


class base_type:
    """The type of a `base_value`. Types are compared by content and can be dictionary keys."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def _unflatten_ir(self, handles: Sequence[Any], cursor: int) -> builtins.tuple[Any, int]:
        """Rebuild a value of this type from `handles[cursor:]`; returns it and the next cursor."""
        raise TypeError(f"a value of type {self} cannot be passed at run time")

    def mangle(self) -> str:
        """Return the text of this type in the symbol of a specialized function."""
        raise TypeError(f"type {self} cannot be part of a function name")


class constexpr_type(base_type):
    """The type of a `constexpr`; it contains the value: ``constexpr(3).type == constexpr_type(3)``.

    Example:
        assert tl.constexpr(3).type == tl.constexpr_type(3) != tl.constexpr_type(3.0)
    """

    def __init__(self, value: Any) -> None:
        self.value = _unwrap_if_constexpr(value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple_type):
            return other == self
        return isinstance(other, constexpr_type) and same_constant(self.value, other.value)

    def __hash__(self) -> int:  # a constant may be a list, which has no hash
        return hash((constexpr_type, type(self.value), self.value if isinstance(self.value, (int, str)) else None))

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value}]"

    def mangle(self) -> str:
        """``c4``, ``c'ab'``, ``ci32``: a type's or a layout's own mangled form, the text of other constants."""
        mangle = None if isinstance(self.value, type) else getattr(self.value, "mangle", None)
        return f"c{self.value!r}" if mangle is None else f"c{mangle()}"

    def _unflatten_ir(self, handles: Sequence[Any], cursor: int) -> builtins.tuple["constexpr", int]:
        return constexpr(self.value), cursor


def same_constant(left: Any, right: Any) -> bool:
    """Return True if two constants mean the same in a kernel: 1 is neither True nor 1.0, 0.0 is not -0.0, and a NaN
    is one."""
    kind = type(left)
    if left is right or kind is not type(right):
        return left is right
    if issubclass(kind, float):
        return repr(left) == repr(right)
    if kind is constexpr:
        return same_constant(left.value, right.value)
    if kind is tuple:
        return left.fields == right.fields and same_constant(left.values, right.values)
    if issubclass(kind, (builtins.tuple, list)):
        return len(left) == len(right) and all(map(same_constant, left, right))
    if issubclass(kind, dict):
        return same_constant(list(left.items()), list(right.items()))
    if hasattr(kind, "tobytes") and hasattr(kind, "dtype"):  # NumPy's arrays and numbers
        return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()
    if hasattr(kind, "__dataclass_fields__"):
        return all(same_constant(getattr(left, name), getattr(right, name)) for name in kind.__dataclass_fields__)
    if issubclass(kind, (set, frozenset)):
        return sorted(map(repr, left)) == sorted(map(repr, right))
    return (left == right) is True  # of some objects that is no truth value


def _constant_hash(value: Any) -> int:
    kind = type(value)
    if issubclass(kind, float):
        return hash((kind, repr(value)))
    if issubclass(kind, builtins.tuple):
        return hash((kind, *map(_constant_hash, value)))
    if hasattr(kind, "__dataclass_fields__"):
        return hash((kind, value, *(_constant_hash(getattr(value, name)) for name in kind.__dataclass_fields__)))
    return hash((kind, value))


def _binary(compute: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """``constexpr op other``; a runtime `other` is left to its own reflected operator."""

    def method(self: "constexpr", other: Any, _semantic: Any = None) -> Any:
        if isinstance(other, constexpr):
            other = other.value
        elif isinstance(other, base_value) and not isinstance(self.value, base_value):
            return NotImplemented
        return constexpr(compute(self.value, other))

    return method


def _reflected(compute: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """``other op constexpr``, for a plain Python `other`."""

    def method(self: "constexpr", other: Any, _semantic: Any = None) -> Any:
        return constexpr(compute(_unwrap_if_constexpr(other), self.value))

    return method


def _unary(compute: Callable[[Any], Any]) -> Callable[..., Any]:
    def method(self: "constexpr", _semantic: Any = None) -> Any:
        return constexpr(compute(self.value))

    return method


class constexpr(base_value):
    """A value known at compile time: ``constexpr(2) * 3`` is ``constexpr[6]``.

    As an annotation of a parameter, ``N: tl.constexpr``, it requires a constant argument: the kernel is compiled for
    each value. Constants determine shapes, select branches and bound loops that are unrolled; ``HALF: tl.constexpr = N
    // 2`` keeps a variable constant. Globals that kernels read must be constexprs: ``N = tl.constexpr(4)``. Operators,
    including comparisons, follow Python (``/`` gives a float, ``//`` floors) and return a constexpr.

    Example:
        SCALE = tl.constexpr(10)

        @tilework.jit
        def kernel(out, N: tl.constexpr, IS_NEGATIVE: tl.constexpr):
            value = tl.arange(0, N) * SCALE
            if IS_NEGATIVE:  # decided while compiling
                value = -value
            tl.store(out + tl.arange(0, N), value)

        out = np.zeros(4, np.int32)
        kernel[(1,)](out, N=4, IS_NEGATIVE=True)
        assert out.tolist() == [0, -10, -20, -30]
    """

    def __init__(self, value: Any) -> None:
        while isinstance(value, constexpr):
            value = value.value
        self.value = value

    @property
    def type(self) -> constexpr_type:  # pyright: ignore[reportIncompatibleVariableOverride]
        return constexpr_type(self.value)

    def _flatten_ir(self, handles: list[Any]) -> None:
        """A constant has no runtime part."""

    __add__, __radd__ = _binary(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _binary(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _binary(operator.truediv), _reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _binary(operator.mod), _reflected(operator.mod)
    __pow__, __rpow__ = _binary(operator.pow), _reflected(operator.pow)
    __lshift__, __rlshift__ = _binary(operator.lshift), _reflected(operator.lshift)
    __rshift__, __rrshift__ = _binary(operator.rshift), _reflected(operator.rshift)
    __and__, __rand__ = _binary(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _binary(operator.or_), _reflected(operator.or_)
    __xor__, __rxor__ = _binary(operator.xor), _reflected(operator.xor)
    __eq__, __ne__ = _binary(operator.eq), _binary(operator.ne)
    __lt__, __le__ = _binary(operator.lt), _binary(operator.le)
    __gt__, __ge__ = _binary(operator.gt), _binary(operator.ge)
    __neg__, __pos__ = _unary(operator.neg), _unary(operator.pos)
    __invert__, __not__ = _unary(operator.invert), _unary(operator.not_)
    logical_and = _binary(lambda left, right: left and right)
    logical_or = _binary(lambda left, right: left or right)

    def __hash__(self) -> int:
        """Different for constants that are equal in Python only, so that a dictionary keeps them apart."""
        return _constant_hash(self.value)

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> Any:
        return self.value

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, builtins.tuple):
            return self.value[builtins.tuple(map(_plain_index, index))]
        return self.value[_plain_index(index)]


def _unwrap_if_constexpr(value: Any) -> Any:
    """The Python value inside a constexpr, also inside tuples and lists: ``[constexpr(2), 3]`` gives ``[2, 3]``."""
    kind = type(value)
    if kind is constexpr:
        return value.value
    if kind is list or kind is builtins.tuple:
        return kind(map(_unwrap_if_constexpr, value))
    if kind is tuple:
        return tuple(map(_unwrap_if_constexpr, value.values), value.type if value.fields else None)
    return value.value if isinstance(value, constexpr) else value


def _unwrap_shape(shape: Any) -> list[Any]:
    """A shape argument as a list of plain ints: ``constexpr((4, constexpr(8)))`` gives ``[4, 8]``."""
    shape = _unwrap_if_constexpr(shape)
    if isinstance(shape, base_value) and not isinstance(shape, tuple):
        return [shape]
    return [_unwrap_if_constexpr(size) for size in (shape if isinstance(shape, Iterable) else (shape,))]


def _unwrap_iterable(arguments: Any) -> Any:
    """``f(4, 8)`` and ``f((4, 8))`` mean the same: the inner sequence of a one-element `arguments`, if it is one."""
    if len(arguments) == 1:
        (only,) = arguments
        plain = _unwrap_if_constexpr(only)
        if isinstance(plain, (tuple, builtins.tuple, list)):
            return plain
    return arguments


def _plain_index(index: Any) -> Any:
    index = _unwrap_if_constexpr(index)
    return index.to_python() if isinstance(index, slice) else index


def _type_of(value: Any) -> base_type:
    """The type of a tuple element; what is not a kernel value (numbers, None, dtypes, functions) is a constant."""
    return value.type if isinstance(value, base_value) else constexpr_type(value)


class tuple_type(base_type):
    """The type of a `tuple`: its element types, and the field names if it came from a NamedTuple.

    Example:
        assert tl.tuple([tl.constexpr(1)]).type == tl.tuple_type([tl.constexpr_type(1)])
    """

    def __init__(self, types: Iterable[Any], fields: Iterable[str] | None = None) -> None:
        self.types: list[Any] = list(types)
        self.fields: list[str] | None = None if fields is None else list(fields)

    @property
    def name(self) -> str:
        """``[int32,fp32]``, with fields ``[x:int32,y:fp32]``."""
        if self.fields is None and follows("tuple-names"):
            return f"[{','.join(map(str, self.types))}]"
        names = self.fields or [""] * len(self.types)
        return "[" + ",".join(f"{name}:{element}" for name, element in zip(names, self.types, strict=True)) + "]"

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    def __iter__(self) -> Iterator[Any]:
        return iter(self.types)

    def __len__(self) -> int:
        return len(self.types)

    def __getitem__(self, index: Any) -> Any:
        return self.types[_plain_index(index)]

    def __eq__(self, other: object) -> bool:
        """A tuple of constants has the type of a constant tuple too."""
        if isinstance(other, constexpr_type) and isinstance(other.value, (tuple, builtins.tuple)):
            other = tuple(other.value).type
        return isinstance(other, tuple_type) and self.types == other.types and self.fields == other.fields

    def __hash__(self) -> int:
        return hash((tuple_type, *self.types))

    def mangle(self) -> str:
        return "T" + "_".join(element.mangle() for element in self.types) + "T"

    def _unflatten_ir(self, handles: Sequence[Any], cursor: int) -> builtins.tuple["tuple", int]:
        values: list[Any] = []
        for element in self.types:
            value, cursor = element._unflatten_ir(handles, cursor)
            values.append(value)
        return tuple(values, self), cursor


class tuple(base_value):
    """A fixed sequence of kernel values: ``tuple([x, constexpr(4), None])``.

    Python tuples become such tuples in a kernel: multiple results of a function, arguments as in ``kernel[grid]((x,
    y))``, and a NamedTuple. Elements are read by a compile-time index, ``t[0]``, or by name if `type.fields` names
    them. A tuple cannot be changed; ``+`` and ``*`` build a new one, and ``==`` compares element by element.

    Example:
        @tilework.jit
        def add_all(arrays, out, N: tl.constexpr):
            i = tl.arange(0, N)
            total = tl.zeros((N,), tl.float32)
            for k in tl.static_range(len(arrays)):
                total += tl.load(arrays[k] + i)
            tl.store(out + i, total)

        x, out = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
        add_all[(1,)]((x, x, x), out, N=4)
        assert_close(out, 3 * x)
    """

    def __init__(self, args: Iterable[Any] = (), type: tuple_type | None = None) -> None:
        values = list(args)
        if type is None:
            fields = getattr(args, "_fields", None) or getattr(args, "fields", None)
            type = tuple_type([_type_of(value) for value in values], fields)
        self.values = values
        self.type = type

    @property
    def fields(self) -> list[str] | None:
        """Names of the elements, or None."""
        return self.type.fields

    def _flatten_ir(self, handles: list[Any]) -> None:
        for value in self.values:
            if isinstance(value, base_value):
                value._flatten_ir(handles)

    def __getitem__(self, index: Any) -> Any:
        index = _plain_index(index)
        if isinstance(index, builtins.slice):
            return tuple(self.values[index])
        if not isinstance(index, int):
            raise TypeError(f"a tuple index must be known at compile time, not {index}")
        if not -len(self.values) <= index < len(self.values):
            raise IndexError(f"index {index} is out of range: there are {len(self.values)} elements")
        return self.values[index]

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__["type"].fields if "type" in self.__dict__ else None
        if fields is None or name not in fields:
            raise AttributeError(f"'tuple' object has no attribute {name}")
        return self.values[fields.index(name)]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __bool__(self) -> bool:
        return bool(self.values)

    def __add__(self, other: Any, _semantic: Any = None) -> "tuple":
        return tuple([*self.values, *_elements(other)])

    def __radd__(self, other: Any, _semantic: Any = None) -> "tuple":
        return tuple([*_elements(other), *self.values])

    def __mul__(self, other: Any, _semantic: Any = None) -> "tuple":
        count = _unwrap_if_constexpr(other)
        if not isinstance(count, int):
            raise TypeError(f"a tuple can only be repeated a constant number of times, not {other}")
        return tuple(self.values * count)

    __rmul__ = __mul__

    def __eq__(self, other: Any, _semantic: Any = None) -> Any:
        other = _unwrap_if_constexpr(other)
        if not isinstance(other, (tuple, builtins.tuple, list)):
            return constexpr(False)
        others = list(other)
        return constexpr(len(self) == len(others) and all(map(_is_equal, self.values, others)))

    def __ne__(self, other: Any, _semantic: Any = None) -> Any:
        return constexpr(not (self == other))

    def __hash__(self) -> int:
        return hash(builtins.tuple(self.values))

    def __str__(self) -> str:
        return str([str(value) for value in self.values])

    def __repr__(self) -> str:
        return repr(builtins.tuple(self.values))


def _is_equal(left: Any, right: Any) -> bool:
    """Equality of two tuple elements, which must be known at compile time unless they are the same value."""
    for value in (left, right):
        if left is not right and isinstance(value, base_value) and not isinstance(value, (constexpr, tuple)):
            raise TypeError(f"tuples can only be compared at compile time, and {value} is known at run time")
    return left is right or bool(left == right)


def _elements(other: Any) -> list[Any]:
    other = _unwrap_if_constexpr(other)
    if not isinstance(other, (tuple, builtins.tuple, list)):
        raise TypeError(f"a tuple can only be joined with a tuple or a list, not {other}")
    return list(other)


class slice_type(base_type):
    """The type of a `slice`."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, slice_type)

    def __hash__(self) -> int:
        return hash(slice_type)

    def __str__(self) -> str:
        return "slice_type"

    def mangle(self) -> str:
        return "slice"


class slice(base_value):
    """``start:stop:step`` inside a subscript; every part is known at compile time.

    Blocks, shapes and tuples take slices.

    Example:
        @tilework.jit
        def row_sums(x):
            return tl.reshape(x, [tl.constexpr(2)] + x.shape[1:]).sum(axis=1)

        assert call(row_sums, np.arange(8).reshape(2, 4)).tolist() == [6, 22]
        assert tl.slice(None).is_full()
    """

    def __init__(self, start: Any, stop: Any = None, step: Any = None) -> None:
        self.start, self.stop, self.step = start, stop, step
        self.type = slice_type()

    def to_python(self) -> builtins.slice:
        """The same slice as Python's own: ``tuple`` and constants are indexed with it."""
        return builtins.slice(*map(_unwrap_if_constexpr, (self.start, self.stop, self.step)))

    def is_full(self) -> bool:
        """True for ``:``, the only slice a tensor accepts."""
        return all(_unwrap_if_constexpr(part) is None for part in (self.start, self.stop, self.step))

    def __repr__(self) -> str:
        return f"slice({self.start}, {self.stop}, {self.step})"

    def _flatten_ir(self, handles: list[Any]) -> None:
        """A slice has no runtime part."""
