"""The formulas of elementary functions on NumPy arrays, against the machine code that LLVM makes of them: the same
bits."""

import os

import numpy as np
import pytest

from tests.differential.elementwise_kernels import random_values
from tests.targets.llvm_run import elementwise
from tilework.numerics.libdevice_table import SYMBOLS
from tilework.numerics.rounding import canonical
from tilework.targets.llvm.math.in_numpy import compute
from tilework.targets.llvm.types import Type, f32, f64, i32, i64

KINDS: dict[str, tuple[Type, str]] = {
    "f": (f32, "f4"),
    "d": (f64, "f8"),
    "i": (i32, "i4"),
    "u": (i32, "i4"),
    "l": (i64, "i8"),
    "k": (i64, "i8"),
}
ALL = sorted({(symbol.function, symbol.arguments) for symbol in SYMBOLS.values()})
QUICK = [
    ("exp", "f"),
    ("log", "d"),
    ("pow", "ff"),
    ("sin", "d"),
    ("fmod", "ff"),
    ("lgamma", "f"),
    ("add_ru", "dd"),
    ("mulhi", "ll"),
]


@pytest.mark.parametrize(("function", "types"), ALL if "REPRODUCIBLE_ALL" in os.environ else QUICK)
def test_the_same_bits(function: str, types: str) -> None:
    random = np.random.default_rng(23)
    args = [random_values(KINDS[code][1], random) for code in types]
    if function in ("jn", "yn"):  # of orders that end
        args[0] = random.integers(-6, 30, len(args[0])).astype(np.int32)
    found = compute(function, *args)
    wanted = elementwise(function, [KINDS[code][0] for code in types], 1)(*args)
    found = found.astype(wanted.dtype) if found.dtype == np.bool_ else found
    assert (canonical(found).view(np.uint8) == canonical(wanted).view(np.uint8)).all()
