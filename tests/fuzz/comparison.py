"""The arguments of a generated kernel, and the comparison of what two runs made of them. Needs no pytest."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.kernels import ELEMENTS, Kernel
from tests.fuzz.rounding import RoundingError
from tests.fuzz.rules import DType
from tests.fuzz.run import load
from tilework.inspect.check_each import RTOL
from tilework.oracles.interpreter import InterpretedFunction

STRICTNESS = 5  # of the comparison of two devices
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
    arrays = {name: random_array(dtype, random) for name, dtype in kernel.inputs.items()}
    for name, (whole, distance) in kernel.aliases.items():
        both = np.concatenate((arrays[whole], arrays[name][:distance]))
        arrays[whole], arrays[name] = both[:ELEMENTS], both[distance:]
    numbers = SCALARS | kernel.numbers
    return {name: arrays.get(name, numbers.get(name)) for name in kernel.signature}


def random_array(dtype: DType, random: np.random.Generator) -> Any:
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


class Unordered(Exception):
    """A kernel whose threads or programs meet in memory without an order: it has no single result."""


def interpreted(kernel: Kernel, folder: Path) -> dict[str, Any]:
    """The arguments after the interpreter has run the kernel."""
    values = arguments(kernel, kernel.seed)
    InterpretedFunction(load(annotated(kernel), folder).fn)[kernel.grid](**values)
    return values


def problem_with(kernel: Kernel, folder: Path, got: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """The first difference that neither tolerance nor the order of additions explains."""
    rounding = RoundingError(kernel, folder, lambda: arguments(kernel, kernel.seed), kernel.grid)
    for name, dtype in kernel.inputs.items():
        found = got[name]
        if difference(found, wanted[name], dtype, STRICTNESS):
            found = np.where(rounding.explains(name, found, wanted[name]), wanted[name], found)
        if problem := difference(found, wanted[name], dtype, STRICTNESS):
            return f"{name}: {problem.replace('NumPy', 'interpreter')}"
    return None


def explain(kernel: Kernel, problem: object) -> str:
    """The problem, and the text of the kernel."""
    return f"seed {kernel.seed}: {problem}\n{kernel.source[kernel.source.index('@jit' + chr(10) + 'def kernel') :]}"
