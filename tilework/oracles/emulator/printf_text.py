"""What C's printf makes of a format and values.

>>> values = iter([7, 2.5])
>>> printf_text("x[%2u] is %f", lambda dtype: next(values), str)
'x[ 7] is 2.500000'
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|j|t)?([diouxXcsfFeEgGaAp%])")


def printf_text(format: str, value: Callable[[Any], Any], string: Callable[[], str]) -> str:
    """`value` gives the next value, of the type it is asked for; `string` the next text."""

    def one(match: "re.Match[str]") -> str:
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        width = str(value(np.int32)) if width == "*" else width or ""
        precision = str(value(np.int32)) if precision == "*" else precision
        pattern = f"%{flags}{width}" + (f".{precision}" if precision is not None else "")
        wide = length in ("l", "ll", "z", "j", "t")
        if kind in "di":
            return (pattern + "d") % int(value(np.int64 if wide else np.int32))
        if kind in "ouxX":
            number = int(value(np.uint64 if wide else np.uint32))
            return (pattern + ("d" if kind == "u" else kind)) % number
        if kind == "c":
            return (pattern + "c") % chr(int(value(np.uint32)) & 255)
        if kind == "s":
            return (pattern + "s") % string()
        if kind == "p":
            return f"{int(value(np.uint64)):#x}"
        number = float(value(np.float64))
        return number.hex() if kind in "aA" else (pattern + kind) % number

    return CONVERSION.sub(one, format)
