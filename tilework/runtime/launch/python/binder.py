"""A function made for each kernel that binds a launch's arguments and specialises them in one go.

For ``def add(x, y, n: tl.int64, BLOCK: tl.constexpr = 64)`` it is, in effect,

    def bind(x, y, n, BLOCK=64, **options):
        return ((x, y, n, BLOCK),
                (specialize(x, False, True, True), specialize(y, False, True, True), forced_int("i64", n), ("constexpr", BLOCK)),
                (kind(BLOCK),),
                options)

The kinds are there because Python finds 1, True and 1.0 equal, and 0.0 and -0.0; as constants they are not.

Python itself does the binding, so positional, keyword and default arguments cost nothing extra, and a wrong call is the
usual TypeError.

A keyword that names both a parameter and an option (``def k(x, num_warps: tl.constexpr)``, launched with ``num_warps=8``) is bound
and is among the options. Given by position, or left at its default, it is only an argument, as in Triton.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tilework.language import core as tl
from tilework.language.constant_text import constant_text
from tilework.language.function import JITFunction
from tilework.language.parameters import KernelParam
from tilework.runtime.launch.facts import MULTIPLE, ONE, VALUE, facts_of, is_converted
from tilework.runtime.launch.python.specialize import Spec, specialize

Binder = Callable[..., tuple[tuple[Any, ...], tuple[Spec, ...], tuple[Any, ...], dict[str, Any]]]


def make_binder(
    fn: JITFunction, specialize: Callable[..., Spec] = specialize, option_names: Collection[str] = ()
) -> Binder:
    """Compile the binder of a kernel; `option_names` are the options of the backend."""
    scope: dict[str, Any] = {
        "__specialize": specialize,
        "__forced_int": forced_int,
        "__kind": kind,
    }  # no parameter has such a name
    parameters, specs = [], []
    for param in fn.params:
        text = param.name
        if param.has_default:
            scope[f"__default_{param.name}"] = param.default
            text += f"=__default_{param.name}"
        parameters.append(text)
        specs.append(spec_expression(param))
    values = "".join(f"{name}, " for name in fn.arg_names)
    kinds = "".join(f"__kind({param.name}), " for param in fn.params if param.is_constexpr)
    source = (
        f"def bind({', '.join([*parameters, '**options'])}):\n"
        f"    return ({values}), ({''.join(f'{spec}, ' for spec in specs)}), ({kinds}), options\n"
    )
    exec(compile(source, f"<binder of {fn.__name__}>", "exec"), scope)
    bind = scope["bind"]
    bind.__name__ = fn.__name__
    bind.__qualname__ = fn.__qualname__
    shared = [index for index, name in enumerate(fn.arg_names) if name in option_names]
    return with_shared(bind, fn.arg_names, shared) if shared else bind


def with_shared(bind: Binder, names: Sequence[str], shared: Sequence[int]) -> Binder:
    """A binder that adds to the options the keywords that are arguments too; memory is no option."""

    def bind_both(*args: Any, **kwargs: Any) -> Any:
        values, specs, kinds, options = bind(*args, **kwargs)
        for index in shared:
            if (name := names[index]) in kwargs and is_plain_type(specs[index][0]):
                options[name] = tl._unwrap_if_constexpr(values[index])
        return values, specs, kinds, options

    return bind_both


def is_plain_type(type: Any) -> bool:
    """Return True for the type of a constant or a number."""
    return isinstance(type, str) and not type.startswith(("*", "tensordesc"))


def call_of(
    fn: JITFunction, values: Sequence[Any], options: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return (positional, keyword) arguments of a launch that binds to these values and options."""
    first = next((index for index, name in enumerate(fn.arg_names) if name in options), len(values))
    rest = zip(fn.params[first:], values[first:], strict=True)
    named = {param.name: value for param, value in rest if not param.has_default or value is not param.default}
    return tuple(values[:first]), {**named, **options}


BY_EQUALITY = frozenset({int, bool, str, bytes, type(None), tl.dtype, tl.pointer_type, tl.block_type})


def kind(value: Any) -> Any:
    """What tells equal constants apart: their class, for floats the sign of zero, and all of what has parts."""
    cls = value.__class__
    if cls is float:
        return repr(value)
    if cls in BY_EQUALITY:
        return cls
    if cls is tuple:
        return tuple([kind(item) for item in value])
    return cls if cls.__eq__ is object.__eq__ else constant_text(value)


def spec_expression(param: KernelParam) -> str:
    """The Python expression that specialises one parameter."""
    name, forced, facts = param.name, param.annotation_type, facts_of(param)
    if facts & VALUE:
        return f'("constexpr", {name})'
    if forced and not forced.startswith("*"):
        return (
            f'("{forced}", None)' if is_converted(forced) else f'__forced_int("{forced}", {name}, {bool(facts & ONE)})'
        )
    flags = f"{param.is_const}, {bool(facts & ONE)}, {bool(facts & MULTIPLE)}"
    if forced:
        return f'("{forced}", __specialize({name}, {flags})[1])'
    return f"__specialize({name}, {flags})"


def forced_int(type: str, value: Any, specialize_value: bool = True) -> Spec:
    """An integer whose type the annotation fixes: 1, multiples of 16 and the rest get entries of their own."""
    if not specialize_value:
        return (type, None)
    if value == 1:
        return (type, "1")
    return (type, "D" if value % 16 == 0 else "")
