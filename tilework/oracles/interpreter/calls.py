"""The `__tw__` object of rewritten kernels: the constructs in which the tile language differs from Python.

Compile-time values are plain Python values. They remain so in expressions, arguments and `x: tl.constexpr = ...`; a
plain assignment converts numbers to tensors, which determines the type of later operations; so does a return, where
another path may return something else.
"""

import builtins
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.advice import counterpart, foreign_call, loop_refusal
from tilework.language.dependencies import COMPILE_TIME_MODULES, array_library
from tilework.language.extra.libdevice import of_target
from tilework.language.function import (
    BoundConstexprFunction,
    ConstexprFunction,
    JITCallable,
    run_on_host,
    unwrap_nested,
)
from tilework.language.typing import triton_messages
from tilework.language.typing.indexing import NOT_AN_ARRAY, about_parts, is_one_pointer, is_plain_view
from tilework.language.typing.promotion import constant_dtype
from tilework.language.typing.python_names import (
    TUPLE_INDEX,
    attribute_name,
    check_arity,
    check_assigned,
    converted,
    extremum,
    ignored_operands,
    kept_items,
    length,
    loop_index_type,
    make_tuple,
)
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.operators import AmbiguousTruth
from tilework.oracles.interpreter.semantic import Semantic
from tilework.oracles.interpreter.tensors import NUMBERS, as_array, plain
from tilework.process.triton_version import follows

COMPARE: dict[str, Callable[["KernelRuntime", Any, Any], Any]] = {
    "Is": lambda runtime, a, b: runtime.same(a, b),
    "IsNot": lambda runtime, a, b: not runtime.same(a, b),
    "In": lambda runtime, a, b: a in b,
    "NotIn": lambda runtime, a, b: a not in b,
    **{
        name: lambda runtime, a, b, compare=compare: compare(a, b)
        for name, compare in {
            "Eq": operator.eq,
            "NotEq": operator.ne,
            "Lt": operator.lt,
            "LtE": operator.le,
            "Gt": operator.gt,
            "GtE": operator.ge,
        }.items()
    },
}


class KernelRuntime:
    """The object that rewritten functions know as `__tw__`; it belongs to one launch."""

    def __init__(self, semantic: Semantic, generator: Any) -> None:
        self.semantic = semantic
        self.generator = generator
        self.special: dict[Any, Callable[..., Any]] = {
            **{range: tl.range, len: length, list: self.to_list, print: self.print},
            **{isinstance: self.is_instance, hasattr: self.has_attribute, getattr: self.get_attribute},
            **{kind: lambda *args, kind=kind: converted(kind, args) for kind in (int, float)},
            min: lambda *args, **kwargs: extremum(semantic, "min", args, kwargs),
            max: lambda *args, **kwargs: extremum(semantic, "max", args, kwargs),
        }

    def python_names(self) -> dict[str, Callable[..., Any]]:
        """Return the meanings of Python's own names in a kernel without source, which cannot be rewritten."""
        kept = {value.__name__: meaning for value, meaning in self.special.items() if value not in (int, float)}
        return {**kept, "range": lambda *bounds: self.iterate(tl.range(*bounds))}

    # -- statements --------------------------------------------------------------------------------------------

    def assign(self, value: Any) -> Any:
        """Return the value of a plain assignment: numbers become tensors, also inside tuples."""
        inner = plain(value)
        if isinstance(inner, NUMBERS):
            return self.semantic.to_tensor(inner)
        if isinstance(value, tl.tuple):
            return make_tuple([self.assign(item) for item in value.values], value.fields)
        check_assigned(inner)
        return inner

    def returned(self, value: Any, decays: Any = False) -> Any:
        """Return what a function returns; `decays` is true if another path may return something else than `value`."""
        if not follows("return-promotion"):
            return self.assign(value)
        return self.run_time(value) if decays else value

    def kept(self, value: Any, count: int) -> Any:
        """Return the values of a tuple that is assigned to `count` names."""
        items = value.values if isinstance(value, tl.tuple) else value
        return kept_items(self.semantic, items, count) if isinstance(items, list | tuple) else value

    def filtered(self, value: Any) -> Any:
        """Return what a comprehension with an `if` iterates over."""
        if not follows("comprehension-filters"):
            self.semantic.beyond_triton(SyntaxError(triton_messages.FILTERS))
        return value

    def run_time(self, value: Any) -> Any:
        """Return numbers as tensors, also inside tuples."""
        if isinstance(value, tl.tuple):
            return make_tuple([self.run_time(item) for item in value.values], value.fields)
        return self.semantic.to_tensor(plain(value)) if isinstance(plain(value), NUMBERS) else value

    def constant(self, value: Any, refusal: str | None) -> Any:
        """``x: tl.constexpr = value``; Triton refuses with `refusal` how a run-time value is used later."""
        if refusal is not None and isinstance(value, tl.tensor):
            self.beyond(refusal)
        return plain(value)

    def subject(self, value: Any) -> Any:
        """Return the subject of a `match`: a compile-time value; tuples become Python's."""
        value = plain(value)
        if isinstance(value, tl.tensor):
            raise TypeError("`match` needs a compile-time value, this one is a tensor")
        if isinstance(value, tl.tuple):
            return tuple(plain(item) for item in value.values)
        return value

    def beyond(self, message: str, value: Any = None) -> Any:
        """Return `value`, or raise an error if kernels must run on Triton too, which has no such statement."""
        self.semantic.beyond_triton(SyntaxError(message))
        return value

    def refuse(self, message: str) -> None:
        """Raise an error for a construct that kernels must not contain."""
        raise SyntaxError(message)

    def goes_on(self, value: Any) -> bool:
        """Evaluate the condition of a `while`."""
        condition = plain(value.condition if isinstance(value, tl.condition) else value)
        if not isinstance(condition, tl.tensor):
            self.beyond(triton_messages.KNOWN_CONDITION.format(condition))
        return self.truth(value)

    def truth(self, value: Any, paths: list[bool] | None = None) -> bool:
        """Evaluate the condition of an `if` or a `while`; `paths` gets an entry if it is known at run time only."""
        value = value.condition if isinstance(value, tl.condition) else value
        value = plain(value)
        if not isinstance(value, tl.tensor):
            return bool(value)
        if paths is not None:
            paths.append(True)
        if value.handle.size != 1:
            raise AmbiguousTruth(
                f"{triton_messages.AMBIGUOUS}: this condition is {value.dtype}{list(value.handle.shape)}"
            )
        if value.type.is_block():
            self.semantic.warn(
                "If conditional called with multidimensional Tensor instead of scalar; please use "
                "`if (condition.item())` instead",
                UserWarning,
            )
        return bool(self.semantic.cast(self.semantic.unsplat(value), tl.int1).handle)

    def loop_over(self, loop: Any, target: str, source: str) -> Iterator[Any]:
        """Return the values of the variable of ``for target in source``."""
        if not isinstance(plain(loop), tl.static_range | tl.range):
            raise RuntimeError(loop_refusal(loop, target, source))
        return self.iterate(loop)

    def iterate(self, loop: Any) -> Iterator[Any]:
        """Return the values of a loop variable: tensors for `range`, Python numbers for `static_range`."""
        loop = plain(loop)
        if isinstance(loop, tl.static_range):
            return iter(range(*map(plain, (loop.start, loop.end, loop.step))))
        if isinstance(loop, tl.range):
            return self.runtime_range(loop.start, loop.end, loop.step)
        return iter(loop)

    def items(self, source: Any, has_one_name: bool) -> Iterator[Any]:
        """Return the values that a comprehension iterates over."""
        if not has_one_name or isinstance(plain(source), tl.static_range | tl.range):
            self.beyond(triton_messages.COMPREHENSION)
        return self.iterate(source)

    def runtime_range(self, *bounds: Any) -> Iterator[tl.tensor]:
        """``range``: the type of the index is the common integer type of its bounds."""
        values = list(map(plain, bounds))
        index = loop_index_type([x.type if isinstance(x, tl.tensor) else constant_dtype(x) for x in values])
        *limits, step = [int(self.semantic.cast(value, index).handle) for value in values]
        limits.append(step if isinstance(values[2], tl.tensor) else int(values[2]))
        if isinstance(values[2], tl.tensor) and step <= 0:
            raise at_run_time(ValueError(f"the step of a loop must be positive, got {step}"))
        for value in range(*limits):
            yield self.semantic.scalar_constant(value, index)

    def check(self, condition: Any, message: Any = "") -> None:
        """``assert``: a device-side assert."""
        self.semantic.device_assert(self.semantic.to_tensor(condition), plain(message), None)

    def outer(self, name: str) -> Any:
        """Return the global of that name, before a local hides it."""
        scope = sys._getframe(1).f_globals
        return scope[name] if name in scope else getattr(builtins, name)

    # -- expressions -------------------------------------------------------------------------------------------

    def bool_op(self, is_and: bool, *operands: Callable[[], Any]) -> Any:
        """``and`` and ``or``: compile-time operands short-circuit, run-time ones are all evaluated and combined."""
        runtime: list[tl.tensor] = []
        last: Any = is_and
        for operand in operands:
            value = plain(operand())
            if isinstance(value, tl.tensor):
                runtime.append(value)
                continue
            last = value
            if bool(value) != is_and:
                if not is_and and runtime and (warning := ignored_operands(value)):
                    self.semantic.warn(warning, UserWarning)
                return value
        if not runtime:
            return last
        combine = self.semantic.logical_and if is_and else self.semantic.logical_or
        if len(runtime) > 1 and any(value.type.is_block() for value in runtime):
            self.semantic.warn(
                "logical operators `and` and `or` are deprecated for non-scalar tensors; please use `&` or `|` instead",
                UserWarning,
            )
        return functools.reduce(lambda right, left: combine(left, right), reversed(runtime))

    def chain(self, warning: str | None, kinds: str, *operands: Any) -> Any:
        """``a < b < c``: every neighbour compared, and all of it combined as `and` does."""
        if warning is not None:
            self.semantic.warn(warning, UserWarning)
        self.beyond(triton_messages.COMPARISONS)
        found = [COMPARE[kind](self, a, b) for kind, a, b in zip(kinds.split(), operands, operands[1:])]
        result: Any = True
        for value in map(plain, found):
            if isinstance(value, tl.tensor):
                result = self.semantic.logical_and(result, value) if isinstance(result, tl.tensor) else value
            elif not value:
                return value
        return result

    def not_(self, value: Any) -> Any:
        value = plain(value)
        return self.semantic.not_(value) if isinstance(value, tl.tensor) else not value

    def choose(self, condition: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        """``a if c else b``: a run-time condition gives a run-time value."""
        is_runtime = isinstance(plain(condition), tl.tensor)
        value = then() if self.truth(condition) else other()
        return self.semantic.to_tensor(value, check_type=False) if is_runtime and value is not None else value

    def same(self, left: Any, right: Any) -> bool:
        return plain(left) is plain(right)

    def tuple_of(self, items: list[Any]) -> tl.tuple:
        return tl.tuple(items)

    def slice_of(self, *bounds: Any) -> slice:
        return slice(*map(plain, bounds))

    def shown(self, value: Any) -> Any:
        """Return a value as an f-string shows it."""
        value = plain(value)
        return as_array(value) if isinstance(value, tl.tensor) else value

    def attribute(self, owner: Any, name: str) -> Any:
        """``x.name``, also of the value inside a constexpr."""
        if isinstance(owner, tl.constexpr) and name not in ("value", "type"):
            owner = owner.value
        if name in ("value", "type") and not isinstance(owner, tl.base_value) and not hasattr(owner, name):
            owner = tl.constexpr(owner)  # which is a plain value here
        return plain(getattr(owner, name))

    def item(self, owner: Any, index: Any) -> Any:
        """``x[index]``."""
        owner, index = plain(owner), plain(index)
        if isinstance(owner, tl.tensor):
            if not is_plain_view(index) and not is_one_pointer(owner):
                self.semantic.beyond_triton(ValueError(triton_messages.INDEX.format(plain(index))))
            return plain(owner[index])
        if getattr(owner, "__triton_aggregate__", False):
            return plain(owner[index])
        if isinstance(index, tl.tensor):
            raise TypeError(TUPLE_INDEX)
        return plain(owner[tuple(map(plain, index)) if isinstance(index, tuple) else index])

    def with_item(self, owner: Any, index: Any, value: Any) -> Any:
        """Return `owner` after ``owner[index] = value``."""
        owner = plain(owner)
        if is_one_pointer(owner):
            raise SyntaxError(f"assignment to a part of it is not supported: {NOT_AN_ARRAY}")
        if not isinstance(owner, tl.tensor) or not owner.type.is_block():
            raise SyntaxError(
                f"values of a kernel cannot be changed in place: only parts of blocks, not of {owner!r}"
                f"\nhelp: {about_parts(owner)}"
            )
        return self.semantic.with_subscript(owner, index, self.assign(value))

    # -- calls -------------------------------------------------------------------------------------------------

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function that is not statically a builtin or a jit function."""
        function = plain(function)
        if (name := getattr(function, "_libdevice_name", None)) is not None:
            function = of_target(name)
        if is_hashable(function) and (special := self.special.get(function)) is not None:
            check_arity(function.__name__, args, kwargs)
            return special(*args, **kwargs)
        if function is tl.constexpr:
            return plain(args[0])
        is_class = isinstance(function, type)
        if is_class and issubclass(function, tuple) and hasattr(function, "_fields"):
            made: Any = function(*args, **kwargs)
            return make_tuple(list(made), made._fields)
        if is_class and getattr(function, "__triton_aggregate__", False):
            hidden = {"_semantic": self.semantic, "_generator": self.generator}
            return function(*args, **kwargs, **hidden)
        if isinstance(function, ConstexprFunction | BoundConstexprFunction):
            return plain(run_on_host(function, args, kwargs))
        if issubclass(type(function), JITCallable) or tl.is_builtin(getattr(function, "__func__", function)):
            return plain(function(*args, **kwargs))
        check_counterpart(function, args, kwargs)
        if getattr(function, "__module__", None) in COMPILE_TIME_MODULES or belongs_to_constant(function):
            named = {name: unwrap_nested(value, plain) for name, value in kwargs.items()}
            result = function(*(unwrap_nested(arg, plain) for arg in args), **named)
            return tl.tuple(result) if type(result) is tuple else result
        return plain(function(*args, **kwargs, **self.hidden_arguments(function)))

    def hidden_arguments(self, function: Any) -> dict[str, Any]:
        """Return `_semantic` and `_generator`, if a Python function has these parameters."""
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if code is None:
            return {}
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        hidden = {"_semantic": self.semantic, "_generator": self.generator}
        return {name: value for name, value in hidden.items() if name in names}

    # -- Python's builtins -------------------------------------------------------------------------------------

    def to_list(self, *args: Any) -> list[Any]:
        return list(*map(plain, args))

    def is_instance(self, value: Any, classes: Any) -> bool:
        classes = tuple(map(plain, classes)) if isinstance(classes, (tuple, tl.tuple)) else plain(classes)
        if classes is tl.constexpr and not isinstance(value, tl.base_value):
            return self.semantic.options.beyond_triton != "error"  # Triton tests the value inside
        return isinstance(plain(value), classes)

    def has_attribute(self, owner: Any, name: Any) -> bool:
        return hasattr(plain(owner), attribute_name("hasattr", name))

    def get_attribute(self, owner: Any, name: Any, *default: Any) -> Any:
        text = attribute_name("getattr", name)
        return default[0] if default and not hasattr(plain(owner), text) else self.attribute(owner, text)

    def print(self, *values: Any, **kwargs: Any) -> None:
        """Python's print, which shows the data of tensors."""
        kwargs.pop("hex", None)
        print(*map(self.shown, values), **{key: plain(value) for key, value in kwargs.items()})


def is_hashable(value: Any) -> bool:
    return getattr(type(value), "__hash__", None) is not None


def belongs_to_constant(function: Any) -> bool:
    """Return True for a method of a Python value or of a dtype: ``"abc".upper``, ``x.dtype.is_fp16``."""
    owner = getattr(function, "__self__", None)
    return owner is not None and not inspect.ismodule(owner) and not isinstance(owner, (tl.base_value, type))


def check_counterpart(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse ``np.exp(x)`` and ``math.exp(x)`` of a tile, which do not compile; functions without a counterpart in the
    language (``np.asarray``) are allowed, because they serve debugging."""
    library = "math" if getattr(function, "__module__", None) == "math" else array_library(function)
    if library is None or not any(isinstance(plain(value), tl.tensor) for value in (*args, *kwargs.values())):
        return
    if library == "math" or counterpart(function.__name__) is not None:
        raise TypeError(foreign_call(library, function))


def scalar_of(value: tl.tensor) -> Any:
    """Return the only element of a tensor as a Python number."""
    if value.handle.size != 1:
        raise TypeError(f"only a tensor with one element is a number, this one is {value}")
    return np.asarray(value.handle).reshape(()).item()
