"""The mathematical functions of the device library, on any device. There are about two hundred; the docstring of each
lists its types.

    from tilework.language.extra import libdevice

    y = libdevice.asin(x)

Powers and logarithms (`pow cbrt hypot exp10 expm1 log10 log1p`), angles (`tan asin atan2 sinpi`), hyperbolic functions,
gamma and error functions (`lgamma tgamma erfc erfinv normcdf`), Bessel functions (`j0 y1 cyl_bessel_i0`), rounding
(`round rint trunc nearbyint llrint`), parts of floats (`ilogb ldexp nextafter copysign signbit isnan isinf finitef`),
remainders (`fmod remainder`), bits of integers (`popc clz ffs brev byte_perm mulhi`), arithmetic and conversions with a
rounding in their name (``add_rd``: down, ``_ru``: up, ``_rz``: to zero, ``_rn``: to nearest), bits as another type
(`float_as_int int_as_float`), and less precise `fast_` variants. Arguments are not converted to other types: a
combination that the docstring does not list is an error.

All targets have them, and no library is linked: their code is generated. On AMD GPUs the functions are those of
`tl.extra.hip.libdevice`.

The functions here are placeholders. When a kernel is compiled, the function of the same name in the device's own module
(`tl.extra.cuda.libdevice` for NVIDIA GPUs, `tl.extra.hip.libdevice` for AMD's) replaces them. The compiler reads the
name from `_libdevice_name`, because a kernel may import the function under another name.

Example:
    from tilework.language.extra import libdevice

    x = np.array([0.25, 0.5], np.float32)
    assert_close(call(libdevice.asin, x), np.arcsin(x), atol=1e-6)
    assert_close(call(libdevice.pow, x, np.float32(3)), x**3, atol=1e-6)
    assert call(libdevice.popc, np.array([7, 255], np.int32)).tolist() == [3, 8]
    assert call(libdevice.isnan, np.array([1.0, np.nan], np.float32)).tolist() == [False, True]
    third = call(libdevice.div_rd, np.ones(1, np.float32), np.full(1, 3, np.float32))
    assert third.astype(float)[0] <= 1 / 3  # rounded down
"""

from typing import TYPE_CHECKING, NoReturn

from tilework.language.extra.cuda import libdevice as cuda
from tilework.language.extra.cuda.libdevice import TABLE, Builtin, documentation, function
from tilework.language.values import Value
from tilework.numerics.libdevice_table import ONLY_NEUTRAL

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic


def __getattr__(name: str) -> Builtin:
    """Create a function on first use; there are about two hundred."""
    if name not in TABLE and name != ONLY_NEUTRAL:
        raise AttributeError(f"libdevice has no function {name!r}")

    def refuse(args: list[Value], semantic: "Semantic") -> NoReturn:
        raise ValueError(f"libdevice.{name} does not exist on the device this kernel is compiled for")

    if name == ONLY_NEUTRAL:
        text, arity = f"libdevice {name}: the hyperbolic tangent of fp32 values, approximate.", 1
    else:
        text, arity = documentation(name, TABLE[name]), len(next(iter(TABLE[name])))
    made = globals()[name] = function(__name__, name, text, arity, refuse)
    return made


def __dir__() -> list[str]:
    return sorted([*TABLE, ONLY_NEUTRAL])


def of_target(name: str, backend: str | None = None) -> Builtin | None:
    """The function of the device's own library, or of NVIDIA's, whose symbols every target understands; None if neither
    has it."""
    from tilework.language.extra.hip import libdevice as hip  # lazily: most kernels call nothing of it

    order = (hip, cuda) if backend == "hip" else (cuda,) if backend else (cuda, hip)
    return next((found for library in order if (found := getattr(library, name, None)) is not None), None)
