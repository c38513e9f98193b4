"""Elementary functions under the name ``tl.math``: the same builtins as in `tilework.language`.

`abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi`; more are in
`tl.extra.libdevice`.

Example:
    assert tl.math.exp is tl.exp
    assert_close(call(tl.math.sqrt, np.array([4.0, 9.0])), [2, 3])
"""

from tilework.language.core import (
    abs,
    ceil,
    cos,
    div_rn,
    erf,
    exp,
    exp2,
    fdiv,
    floor,
    fma,
    log,
    log2,
    rsqrt,
    sin,
    sqrt,
    sqrt_rn,
    umulhi,
)

__all__ = [
    "abs",
    "ceil",
    "cos",
    "div_rn",
    "erf",
    "exp",
    "exp2",
    "fdiv",
    "floor",
    "fma",
    "log",
    "log2",
    "rsqrt",
    "sin",
    "sqrt",
    "sqrt_rn",
    "umulhi",
]
