"""Differences between two results of one kernel: none, by rounding, or wrong values.

    gap = gap_of(expected, got, Tolerance("f32", 2e-4))
    gap.is_rounding, gap.describe()     False, "out[17] is 2.5, not 3.0; 3 of 64 written elements of `out` differ, ..."

Floats may differ by rounding: by `RTOL` of the largest magnitude among the elements that were written, for the coarsest
floats that the kernel computes with. Other elements of an array may hold anything. Everything else must be equal; NaNs
equal each other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Operation

from tilework.ir.enums import InputPrecision
from tilework.ir.types import bit_width, element_type, is_float
from tilework.numerics.rounding import FORMAT_OF

Array = np.ndarray[Any, Any]
RTOL = {1: 0.13, 2: 2e-2, 4: 2e-4, 8: 1e-9}  # by bytes of the float
TF32 = ("tf32", 2e-3)  # 11 bits, and sums of some of them
COMPUTING = ("arith.", "math.", "tt.dot", "tt.reduce", "tt.scan", "tt.fp_to_fp", "tt.precise", "tt.extern")


@dataclass(frozen=True)
class Tolerance:
    """The allowed error of floats, relative to the largest one; `because` names the format that decides."""

    because: str
    part: float


EXACT = Tolerance("integers", 0.0)


def tolerance_of(module: ModuleOp) -> Tolerance:
    """Return the tolerance of a kernel, from its module before any pass: its coarsest floats decide."""
    found = Tolerance("f64", RTOL[8])
    for op in module.walk():
        if not op.name.startswith(COMPUTING) or op.name == "arith.constant":
            continue
        for value in op.results:
            if is_float(element_type(value.type)):
                size = max(bit_width(value.type) // 8, 1)
                found = max(
                    found, Tolerance(str(element_type(value.type)), RTOL[size]), key=lambda tolerance: tolerance.part
                )
        if op.name == "tt.dot" and str(element_type(op.operands[0].type)) == "f32" and rounds_operands(op):
            found = max(found, Tolerance(*TF32), key=lambda tolerance: tolerance.part)
    return found


def rounds_operands(op: Operation) -> bool:
    """Return True if a dot of f32 may round its operands to fewer bits."""
    precision = op.properties.get("inputPrecision")
    return isinstance(precision, IntegerAttr) and InputPrecision(precision.value.data) is not InputPrecision.IEEE


@dataclass(frozen=True)
class Gap:
    """The first wrong element of an array, and the size of the errors."""

    name: str
    differing: int
    size: int  # elements that are compared
    index: tuple[int, ...]  # of the first one beyond the tolerance, or of the largest error
    expected: str
    got: str
    largest: float
    relative: float  # to the largest magnitude that is compared
    is_rounding: bool

    def describe(self, tolerance: Tolerance) -> str:
        element = f"{self.name}[{', '.join(map(str, self.index))}]"
        size = f"the largest error is {self.largest:.3g}, {self.relative:.1e} of the largest value"
        differing = f"{self.differing} of {self.size} written elements of `{self.name}` differ"
        if self.is_rounding:
            return f"{differing} by rounding: {size} ({tolerance.because} allows {tolerance.part:.0e})"
        return f"{element} is {self.got}, not {self.expected}; {differing}, {size}"


@dataclass(frozen=True)
class Expected:
    """The expected results of a launch, the previous contents of its arrays, and the written elements as far as
    known."""

    arrays: Mapping[str, Array]
    before: Mapping[str, Array]
    written: Mapping[str, Array] = field(default_factory=dict)

    def compared(self, name: str, got: Array) -> Array:
        """The elements of an array that are written: known ones, and what a launch has changed."""
        before = self.before[name]
        found = changed(before, self.arrays[name]) | changed(before, got)
        return found | self.written[name] if name in self.written else found

    def gaps(self, got: Mapping[str, Array], tolerance: Tolerance) -> list[Gap]:
        """The arrays that differ, those beyond rounding first."""
        pairs = ((name, self.arrays[name], got[name]) for name in self.arrays)
        found = [gap_of(name, right, one, tolerance, self.compared(name, one)) for name, right, one in pairs]
        return sorted((gap for gap in found if gap is not None), key=lambda gap: gap.is_rounding)

    def largest_move(self, name: str, got: Array) -> float:
        """Return the largest error of an array; infinities and NaNs do not count."""
        if self.arrays[name].dtype not in FORMAT_OF:
            return 0.0
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(self.arrays[name].astype(np.float64) - got.astype(np.float64))
        return float(np.max(error, where=np.isfinite(error), initial=0.0))


def changed(before: Array, after: Array) -> Array:
    """The elements of two contiguous arrays that have not the same bits."""
    shape = (*before.shape, before.dtype.itemsize)
    old, new = (np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(shape) for array in (before, after))
    return np.any(old != new, axis=-1)


def gap_of(
    name: str, expected: Array, got: Array, tolerance: Tolerance = EXACT, compared: Array | None = None
) -> Gap | None:
    """Return the gap between two arrays; None if they are equal bit by bit, NaNs aside. `compared` elements (by default
    all)
    set the scale of the allowed errors."""
    if expected.tobytes() == got.tobytes():
        return None
    compared = np.ones(expected.shape, np.bool_) if compared is None else compared
    if expected.dtype in FORMAT_OF:
        return float_gap(name, expected, got, tolerance, compared)
    differs = expected != got
    if not differs.any():
        return None
    a, b = (array.astype(np.float64) for array in (expected, got))
    scale = np.max(np.abs(a), where=compared, initial=0.0)
    return made(name, expected, got, differs, differs, np.abs(a - b), scale, compared)


def float_gap(name: str, expected: Array, got: Array, tolerance: Tolerance, compared: Array) -> Gap | None:
    a, b = expected.astype(np.float64), got.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        differs = ~((a == b) | (np.isnan(a) & np.isnan(b)))
        if not differs.any():
            return None
        scale = np.max(np.abs(a), where=np.isfinite(a) & compared, initial=0.0)
        error = np.abs(a - b)
        part = max(tolerance.part, RTOL[expected.dtype.itemsize])
        is_wrong = differs & ~(error <= part * scale)
    return made(name, expected, got, differs, is_wrong, error, scale, compared)


def made(
    name: str,
    expected: Array,
    got: Array,
    differs: Array,
    is_wrong: Array,
    error: Array,
    scale: float,
    compared: Array,
) -> Gap:
    finite = np.where(np.isfinite(error), error, np.inf)
    largest = float(np.max(finite, where=differs, initial=0.0))
    first = np.argwhere(is_wrong)[0] if is_wrong.any() else np.argwhere(differs & (finite == largest))[0]
    index = tuple(int(position) for position in first)
    return Gap(
        name=name,
        differing=int(np.count_nonzero(differs)),
        size=int(np.count_nonzero(compared)),
        index=index,
        expected=str(expected[index]),
        got=str(got[index]),
        largest=largest,
        relative=largest / scale if scale else float("inf"),
        is_rounding=not is_wrong.any(),
    )
