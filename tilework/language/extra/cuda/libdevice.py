"""NVIDIA's libdevice: mathematical functions, found by the dtypes of their arguments.

    y = libdevice.erf(x)        # fp32: __nv_erff, fp64: __nv_erf
    z = libdevice.pow(x, n)     # (fp32, int32): __nv_powif, (fp32, fp32): __nv_powf, ...

There is no conversion between argument types: a combination that is not listed is an error. `TABLE` has a row for
every function, ``name: {argument dtypes: (symbol, result dtype)}``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.language.compile_time import SUPPLIED
from tilework.language.core import (
    dtype,
    extern,
    extern_elementwise,
    float32,
    float64,
    int1,
    int32,
    int64,
    tensor,
    uint32,
    uint64,
)
from tilework.language.origins import set_shown_module
from tilework.language.values import Value
from tilework.numerics.libdevice_table import NAMES, SYMBOLS, Symbol

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic

Builtin = Callable[..., tensor]
Symbols = dict[tuple[dtype, ...], tuple[str, dtype]]
CODES = {"i": int32, "u": uint32, "l": int64, "k": uint64, "f": float32, "d": float64, "b": int1}


def row(symbol: str, known: Symbol) -> tuple[tuple[dtype, ...], tuple[str, dtype]]:
    return tuple(CODES[code] for code in known.arguments), (symbol, CODES[known.result])


TABLE: dict[str, Symbols] = {
    name: dict(row(symbol, SYMBOLS[symbol]) for symbol in symbols) for name, symbols in NAMES.items()
}


def documentation(name: str, symbols: Symbols) -> str:
    """The docstring of a function: its combinations of types."""
    rows = [
        f"({', '.join(map(str, arguments))}) -> {result}, `{symbol}`" for arguments, (symbol, result) in symbols.items()
    ]
    return f"libdevice {name}: {'; '.join(rows)}."


def function(
    module: str, name: str, text: str, arity: int, body: Callable[[list[Value], "Semantic"], tensor]
) -> Builtin:
    """A function of the language with `arity` arguments, which calls ``body(arguments, _semantic)``; `module` has
    it."""

    def unary(arg0: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
        return body([arg0], _semantic)

    def binary(arg0: Value, arg1: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
        return body([arg0, arg1], _semantic)

    def ternary(arg0: Value, arg1: Value, arg2: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
        return body([arg0, arg1, arg2], _semantic)

    def quaternary(arg0: Value, arg1: Value, arg2: Value, arg3: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
        return body([arg0, arg1, arg2, arg3], _semantic)

    made: Any = (unary, binary, ternary, quaternary)[arity - 1]
    made.__module__, made.__name__, made.__qualname__ = module, name, name
    made.__doc__ = text
    made = extern(made)
    made._libdevice_name = name
    if knobs.language.is_triton:
        set_shown_module(made, module.replace("tilework.", "triton.", 1))
    return made


def library_function(module: str, name: str, symbols: Symbols) -> Builtin:
    """The function that calls the symbol of its arguments' types."""

    def call(args: list[Value], semantic: "Semantic") -> tensor:
        return extern_elementwise("", "", args, symbols, True, _semantic=semantic)

    return function(module, name, documentation(name, symbols), len(next(iter(symbols))), call)


def on_demand(
    module: dict[str, Any], table: dict[str, Symbols]
) -> tuple[Callable[[str], Builtin], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a library: a function is created on first use; there are about two
    hundred."""

    def find(name: str) -> Builtin:
        if name not in table:
            raise AttributeError(f"{module['__name__'].removeprefix('tilework.language.')} has no function {name!r}")
        return module.setdefault(name, library_function(module["__name__"], name, table[name]))

    return find, lambda: sorted(table)


__getattr__, __dir__ = on_demand(globals(), TABLE)
