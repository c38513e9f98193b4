"""The arguments of a generated kernel, and the comparison of what two runs made of them. Needs no pytest."""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz.kernels import ELEMENTS, Kernel
from tests.fuzz.rules import DType
from tilework.explain.gaps import RTOL

GRID = (2,)
SCALARS = {"n": 37, "m": 6, "big": 11, "real": 0.75, "flag": True}


def annotated(kernel: Kernel) -> Kernel:
    """Parameters with the types of the signature, which an interpreted launch would take from the arguments."""

    def annotate(match: re.Match[str]) -> str:
        parameters = ", ".join(f'{name}: "{kernel.signature[name]}"' for name in match.group(1).split(", "))
        return f"def kernel({parameters}):"

    return replace(kernel, source=re.sub(r"def kernel\((.*)\):", annotate, kernel.source))


def arguments(kernel: Kernel, seed: int) -> dict[str, Any]:
    """Arrays and numbers by the name of the parameter; the same seed gives the same ones."""
    random = np.random.default_rng(seed)
    arrays = {name: draw_array(dtype, random) for name, dtype in kernel.inputs.items()}
    numbers = SCALARS | kernel.numbers
    return {name: arrays.get(name, numbers.get(name)) for name in kernel.signature}


def draw_array(dtype: DType, random: np.random.Generator) -> Any:
    if dtype.is_bool:
        return random.integers(0, 2, ELEMENTS).astype(np.uint8)
    if dtype.is_int:
        limits = np.iinfo(dtype.numpy)
        wide = random.integers(limits.min, limits.max, ELEMENTS, dtype.numpy, endpoint=True)
        return np.where(random.random(ELEMENTS) < 0.5, wide, random.integers(0, 100, ELEMENTS)).astype(dtype.numpy)
    return random.normal(size=ELEMENTS).astype(dtype.numpy)


def difference(got: Any, wanted: Any, dtype: DType, strictness: int = 20) -> str | None:
    """The first element that differs: integers must be equal, floats nearly so, as functions may be an ulp away."""
    if dtype.is_float:
        tolerance = RTOL[got.dtype.itemsize] / strictness
        with np.errstate(all="ignore"):
            a, b = got.astype(np.float64), wanted.astype(np.float64)
            same = np.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        same = got.astype(wanted.dtype) == wanted
    if same.all():
        return None
    where = int(np.argmin(same))
    return f"index {where}: {got[where]}, NumPy {wanted[where]}"


def explain(kernel: Kernel, problem: object) -> str:
    """The problem, and the text of the kernel."""
    return f"seed {kernel.seed}: {problem}\n{kernel.source[kernel.source.index('@jit' + chr(10) + 'def kernel') :]}"
