"""Errors about launches that do not match their kernel: the argument or keyword, and a suggestion.

kernel[grid](x, BLOK=64)       missing a required argument: 'BLOCK'; 'BLOK' is neither a parameter nor an option of this
                               kernel: did you mean 'BLOCK'?
kernel[grid]([1, 2], 64)       failed to specialize argument of type: list (argument 'x' of kernel): pass an array, ...
"""

from collections.abc import Mapping, Sequence

from tilework.errors import ArgumentError, OptionError, did_you_mean
from tilework.language.function import JITFunction
from tilework.runtime.launch.python.specialize import specialize
from tilework.targets.options import NAMES


def wrong_call(fn: JITFunction, error: TypeError, args: Sequence[object], kwargs: Mapping[str, object]) -> TypeError:
    """Return the error of a binder as a message about the user's call; any other TypeError unchanged."""
    if isinstance(error, ArgumentError):
        name = refused_argument(fn, args, kwargs)
        head, separator, rest = str(error).partition(": pass ")
        return ArgumentError(f"{head} (argument {name!r} of {fn.__name__}){separator}{rest}") if name else error
    trace = error.__traceback__
    if trace is not None and trace.tb_next is not None:
        return error  # not of the call itself: something that it called
    text = str(error)
    for name in kwargs:
        if name not in fn.arg_names and name not in NAMES:
            text += f"; {name!r} is neither a parameter nor an option of this kernel{near(fn, name)}"
    return ArgumentError(text)


def wrong_option(fn: JITFunction, error: OptionError, given: Sequence[str]) -> OptionError:
    """The error of a backend about an option, which may have been meant as a parameter."""
    unknown = next((name for name in given if f"argument {name} " in str(error)), None)
    if unknown is None:
        return error
    return OptionError(f"Keyword argument {unknown} was specified but unrecognised{near(fn, unknown)}")


def near(fn: JITFunction, name: str) -> str:
    return did_you_mean(name, [*fn.arg_names, *NAMES])


def refused_argument(fn: JITFunction, args: Sequence[object], kwargs: Mapping[str, object]) -> str | None:
    """The parameter whose argument has no type in a kernel."""
    given = dict(zip(fn.arg_names, args)) | {name: kwargs[name] for name in fn.arg_names if name in kwargs}
    for param in fn.params:
        if param.name in given and not param.is_constexpr:
            try:
                specialize(given[param.name])
            except ArgumentError:
                return param.name
    return None
