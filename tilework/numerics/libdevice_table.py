"""The functions of NVIDIA's libdevice and of AMD's device library: names, symbols, types, and which function a symbol
is.

    >>> SYMBOLS["__nv_powif"]
    Symbol(function='powi', arguments='fi', result='f')
    >>> NAMES["pow"]
    ('__nv_powif', '__nv_powi', '__nv_powf', '__nv_pow')

Types are codes: ``i`` int32, ``u`` uint32, ``l`` int64, ``k`` uint64, ``f`` fp32, ``d`` fp64, ``b`` int1. Symbols that
compute the same for different types are one function; most rows follow a rule.
"""

from typing import NamedTuple

ROUNDINGS = ("rn", "rz", "rd", "ru")
REGULAR = {  # arity: functions whose fp32 symbol is __nv_<name>f and whose fp64 symbol is __nv_<name>
    1: "floor ceil trunc rint nearbyint round sqrt rsqrt cbrt rcbrt exp exp2 exp10 expm1 log log2 log10 log1p logb sin"
    " cos tan sinpi cospi asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfcx erfinv erfcinv normcdf"
    " normcdfinv lgamma tgamma j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1",
    2: "atan2 hypot rhypot fmod remainder fdim copysign nextafter",
    3: "fma norm3d rnorm3d",
    4: "norm4d rnorm4d",
}
FAST = "sin cos tan exp exp10 log log2 log10"
SINGULAR = """
    abs i:i=abs l:l=llabs f:f=fabsf d:d=fabs
    clz i:i=clz l:i=clzll
    popc i:i=popc l:i=popcll
    ffs i:i=ffs l:i=ffsll
    brev i:i=brev l:l=brevll
    byte_perm iii:i=byte_perm
    mulhi ii:i=mulhi uu:u=umulhi/umulhi ll:l=mul64hi kk:k=umul64hi/umulhi
    mul24 ii:i=mul24 uu:u=umul24/umul24
    hadd ii:i=hadd uu:u=uhadd/uhadd
    rhadd ii:i=rhadd uu:u=urhadd/urhadd
    sad iiu:i=sad uuu:u=usad/usad
    rsqrt_rn f:f=frsqrt_rn
    rcp64h d:d=rcp64h
    saturatef f:f=saturatef/saturate
    fast_dividef ff:f=fast_fdividef/fdivide
    fast_powf ff:f=fast_powf/pow
    pow fi:f=powif/powi di:d=powi/powi ff:f=powf dd:d=pow
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
    finitef f:b=finitef/isfinite
    isfinited d:b=isfinited/isfinite
    int2double_rn i:d=int2double_rn
    uint2double_rn u:d=uint2double_rn
    hiloint2double ii:d=hiloint2double
    double2loint d:i=double2loint
    double2hiint d:i=double2hiint
    int_as_float i:f=int_as_float/as_float
    uint_as_float u:f=uint_as_float/as_float
    float_as_int f:i=float_as_int/as_int
    float_as_uint f:i=float_as_uint/as_int
    longlong_as_double l:d=longlong_as_double/as_float
    double_as_longlong d:l=double_as_longlong/as_int
"""
HIP = (
    "abs floor rsqrt ceil trunc exp2 exp fast_expf fast_tanhf fast_dividef sqrt llrint nearbyint isnan signbit copysign"
    " isinf nextafter sin cos tan log2 cosh sinh tanh atan2 atan asin acos log log10 log1p acosh asinh atanh expm1"
    " hypot j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1 erf erfinv erfc erfcx lgamma ldexp fmod fma pow ilogb round"
    " rint finitef isfinited"
)
OCML = {"powi": "pown", "cyl_bessel_i0": "i0", "cyl_bessel_i1": "i1"}  # functions with another name in AMD's library
TRITON_HIP = ("abs", "llrint", "rint", "fast_expf", "fast_tanhf", "fast_dividef")  # symbols of the compiler itself
CONVERSIONS = (  # with each rounding; signless integers come out, also unsigned ones
    "double2float:df double2int:di double2uint:di double2ll:dl double2ull:dl float2int:fi float2uint:fi float2ll:fl"
    " float2ull:fl int2float:if uint2float:uf ll2float:lf ull2float:kf ll2double:ld ull2double:kd"
)


class Symbol(NamedTuple):
    """The function of a symbol, with the types of its arguments and of its result."""

    function: str
    arguments: str
    result: str


SYMBOLS: dict[str, Symbol] = {}
NAMES: dict[str, tuple[str, ...]] = {}  # NVIDIA's symbols for each name of the language
HIP_NAMES: dict[str, dict[str, Symbol]] = {}  # AMD's, by the types of arguments


def add(name: str, *rows: tuple[str, str, str, str]) -> None:
    """Register a name with its symbols, each (symbol, function, arguments, result)."""
    SYMBOLS.update((f"__nv_{symbol}", Symbol(*rest)) for symbol, *rest in rows)
    NAMES[name] = tuple(f"__nv_{row[0]}" for row in rows)


def float_pair(name: str, arity: int, single: str, double: str) -> None:
    add(name, (single, name, "f" * arity, "f"), (double, name, "d" * arity, "d"))


def variant(name: str, text: str) -> tuple[str, str, str, str]:
    """``"fi:f=powif/powi"``: (fp32, int32) gives fp32 by ``__nv_powif``, which is the function `powi`."""
    types, target = text.split("=")
    arguments, result = types.split(":")
    symbol, _, function = target.partition("/")
    return symbol, function or name, arguments, result


def fill() -> None:
    for arity, names in REGULAR.items():
        for name in names.split():
            float_pair(name, arity, f"{name}f", name)
    for name in FAST.split():
        add(f"fast_{name}f", (f"fast_{name}f", name, "f", "f"))
    for line in SINGULAR.strip().splitlines():
        name, *variants = line.split()
        add(name, *(variant(name, text) for text in variants))
    for rounding in ROUNDINGS:
        for operation, arity in {"add": 2, "sub": 2, "mul": 2, "div": 2, "rcp": 1, "sqrt": 1}.items():
            name = f"{operation}_{rounding}"
            float_pair(name, arity, f"f{name}", f"d{name}")
        float_pair(f"fma_{rounding}", 3, f"fmaf_{rounding}", f"fma_{rounding}")
        for text in CONVERSIONS.split():
            name, (argument, result) = f"{text[:-3]}_{rounding}", text[-2:]
            add(name, (name, name, argument, result))


fill()
ONLY_NEUTRAL = "fast_tanhf"  # a function of the device library, but of no name in `tl.extra.cuda`
SYMBOLS[f"__nv_{ONLY_NEUTRAL}"] = Symbol("tanh", "f", "f")


def hip_symbol(name: str, known: Symbol) -> str:
    """``__ocml_pown_f32``, ``__triton_hip_fabs``."""
    if name in TRITON_HIP:
        prefix = ("i" if known.result in "il" else "f") if name == "abs" else ""
        return f"__triton_hip_{name.replace('dividef', 'fdividef') if not prefix else prefix + name}"
    return f"__ocml_{OCML.get(known.function, known.function)}_{'f32' if 'f' in known.arguments else 'f64'}"


def fill_hip() -> None:
    """The same functions; booleans are i32."""
    for name in HIP.split():
        rows = HIP_NAMES[name] = {}
        for symbol in NAMES.get(name, (f"__nv_{name}",)):
            known = SYMBOLS[symbol]
            known = known._replace(result="i" if known.result == "b" else known.result)
            rows[known.arguments] = known
            SYMBOLS.setdefault(hip_symbol(name, known), known)


fill_hip()
