"""NVIDIA's libdevice: mathematical functions, found by the dtypes of their arguments.

    y = libdevice.erf(x)        # fp32: __nv_erff, fp64: __nv_erf
    z = libdevice.pow(x, n)     # (fp32, int32): __nv_powif, (fp32, fp32): __nv_powf, ...

There is no conversion between argument types: a combination that is not listed is an error. `TABLE` has a row for
every function, ``name: {argument dtypes: (symbol, result dtype)}``; most rows follow a rule.
"""

from collections.abc import Callable
from typing import Any

from tilework.language.core import (
    dtype,
    extern,
    extern_elementwise,
    float32,
    float64,
    int1,
    int32,
    int64,
    uint32,
    uint64,
)

Symbols = dict[tuple[dtype, ...], tuple[str, dtype]]
ROUNDINGS = ("rn", "rz", "rd", "ru")

REGULAR = {  # arity: names whose fp32 symbol is __nv_<name>f and whose fp64 symbol is __nv_<name>
    1: "floor ceil trunc rint nearbyint round sqrt rsqrt cbrt rcbrt exp exp2 exp10 expm1 log log2 log10 log1p logb sin"
    " cos tan sinpi cospi asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfcx erfinv erfcinv normcdf"
    " normcdfinv lgamma tgamma j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1",
    2: "atan2 hypot rhypot fmod remainder fdim copysign nextafter",
    3: "fma norm3d rnorm3d",
    4: "norm4d rnorm4d",
}
FAST = "fast_sinf fast_cosf fast_tanf fast_expf fast_exp10f fast_logf fast_log2f fast_log10f saturatef"

CODES = {"i": int32, "u": uint32, "l": int64, "k": uint64, "f": float32, "d": float64, "b": int1}
SINGULAR = """
    abs i:i=abs l:l=llabs f:f=fabsf d:d=fabs
    clz i:i=clz l:i=clzll
    popc i:i=popc l:i=popcll
    ffs i:i=ffs l:i=ffsll
    brev i:i=brev l:l=brevll
    byte_perm iii:i=byte_perm
    mulhi ii:i=mulhi uu:u=umulhi ll:l=mul64hi kk:k=umul64hi
    mul24 ii:i=mul24 uu:u=umul24
    hadd ii:i=hadd uu:u=uhadd
    rhadd ii:i=rhadd uu:u=urhadd
    sad iiu:i=sad uuu:u=usad
    rsqrt_rn f:f=frsqrt_rn
    rcp64h d:d=rcp64h
    fast_dividef ff:f=fast_fdividef
    fast_powf ff:f=fast_powf
    pow fi:f=powif di:d=powi ff:f=powf dd:d=pow
    ldexp fi:f=ldexpf di:d=ldexp
    scalbn fi:f=scalbnf di:d=scalbn
    jn if:f=jnf id:d=jn
    yn if:f=ynf id:d=yn
    ilogb f:i=ilogbf d:i=ilogb
    llrint f:l=llrintf d:l=llrint
    llround f:l=llroundf d:l=llround
    signbit f:i=signbitf d:i=signbitd
    isnan f:b=isnanf d:b=isnand
    isinf f:b=isinff d:b=isinfd
    finitef f:b=finitef
    isfinited d:b=isfinited
    int2double_rn i:d=int2double_rn
    uint2double_rn u:d=uint2double_rn
    hiloint2double ii:d=hiloint2double
    double2loint d:i=double2loint
    double2hiint d:i=double2hiint
    int_as_float i:f=int_as_float
    uint_as_float u:f=uint_as_float
    float_as_int f:i=float_as_int
    float_as_uint f:i=float_as_uint
    longlong_as_double l:d=longlong_as_double
    double_as_longlong d:l=double_as_longlong
"""
CONVERSIONS = (  # name without rounding, argument, result; the symbol is the name
    ("double2float", "d", "f"),
    ("double2int", "d", "i"),
    ("double2uint", "d", "i"),
    ("double2ll", "d", "l"),
    ("double2ull", "d", "l"),
    ("float2int", "f", "i"),
    ("float2uint", "f", "i"),
    ("float2ll", "f", "l"),
    ("float2ull", "f", "l"),
    ("int2float", "i", "f"),
    ("uint2float", "u", "f"),
    ("ll2float", "l", "f"),
    ("ull2float", "k", "f"),
    ("ll2double", "l", "d"),
    ("ull2double", "k", "d"),
)


def _build_table() -> dict[str, Symbols]:
    table: dict[str, Symbols] = {}
    for arity, names in REGULAR.items():
        for name in names.split():
            table[name] = _float_pair(arity, f"{name}f", name)
    for name in FAST.split():
        table[name] = {(float32,): (f"__nv_{name}", float32)}
    for line in SINGULAR.strip().splitlines():
        name, *variants = line.split()
        table[name] = dict(map(_variant, variants))
    for rounding in ROUNDINGS:
        for operation in ("add", "sub", "mul", "div"):
            table[f"{operation}_{rounding}"] = _float_pair(2, f"f{operation}_{rounding}", f"d{operation}_{rounding}")
        for operation in ("rcp", "sqrt"):
            table[f"{operation}_{rounding}"] = _float_pair(1, f"f{operation}_{rounding}", f"d{operation}_{rounding}")
        table[f"fma_{rounding}"] = _float_pair(3, f"fmaf_{rounding}", f"fma_{rounding}")
        for conversion, argument, result in CONVERSIONS:
            name = f"{conversion}_{rounding}"
            table[name] = {(CODES[argument],): (f"__nv_{name}", CODES[result])}
    return table


def _float_pair(arity: int, single: str, double: str) -> Symbols:
    return {(float32,) * arity: (f"__nv_{single}", float32), (float64,) * arity: (f"__nv_{double}", float64)}


def _variant(text: str) -> tuple[tuple[dtype, ...], tuple[str, dtype]]:
    """``"fi:f=powif"``: (fp32, int32) gives fp32 by ``__nv_powif``."""
    arguments, rest = text.split(":")
    result, symbol = rest.split("=")
    return tuple(CODES[code] for code in arguments), (f"__nv_{symbol}", CODES[result])


TABLE = _build_table()


def documentation(name: str) -> str:
    """The docstring of a function: its combinations of types."""
    rows = [
        f"({', '.join(map(str, arguments))}) -> {result}, `{symbol}`"
        for arguments, (symbol, result) in TABLE[name].items()
    ]
    return f"libdevice {name}: {'; '.join(rows)}."


def _unary(symbols: Symbols) -> Callable[..., Any]:
    def function(arg0: Any, _semantic: Any = None) -> Any:
        return extern_elementwise("", "", [arg0], symbols, True, _semantic=_semantic)

    return function


def _binary(symbols: Symbols) -> Callable[..., Any]:
    def function(arg0: Any, arg1: Any, _semantic: Any = None) -> Any:
        return extern_elementwise("", "", [arg0, arg1], symbols, True, _semantic=_semantic)

    return function


def _ternary(symbols: Symbols) -> Callable[..., Any]:
    def function(arg0: Any, arg1: Any, arg2: Any, _semantic: Any = None) -> Any:
        return extern_elementwise("", "", [arg0, arg1, arg2], symbols, True, _semantic=_semantic)

    return function


def _quaternary(symbols: Symbols) -> Callable[..., Any]:
    def function(arg0: Any, arg1: Any, arg2: Any, arg3: Any, _semantic: Any = None) -> Any:
        return extern_elementwise("", "", [arg0, arg1, arg2, arg3], symbols, True, _semantic=_semantic)

    return function


BY_ARITY = {1: _unary, 2: _binary, 3: _ternary, 4: _quaternary}


def __getattr__(name: str) -> Any:
    """Make a function when it is first asked for; there are about two hundred."""
    if name not in TABLE:
        raise AttributeError(f"libdevice has no function {name!r}")
    function = BY_ARITY[len(next(iter(TABLE[name])))](TABLE[name])
    function.__name__ = function.__qualname__ = name
    function.__doc__ = documentation(name)
    function = globals()[name] = extern(function)
    function._libdevice_name = name
    return function


def __dir__() -> list[str]:
    return sorted(TABLE)
