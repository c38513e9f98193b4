"""The part of a difference between two runs of a kernel that is rounding.

A sum in any order is the exact sum of terms that are each off by a relative (n - 1) u at most, u being half an ulp; so
is a running sum, and with products of terms a dot product. An elementary function is off by two ulp, and so is a
quotient of f32: on a GPU 82 / 82 may be less than 1. So the kernel is run a few times in the evaluator with all of
these errors put in by hand, with random signs: the inputs of sums, scans and dots, and the results of functions and
quotients, where they occur. What that changes in the outputs, cancellation and comparisons and all later steps
included, is what another order of additions may change.

    allowed = RoundingError(kernel, folder)
    allowed.explains("out_fp16_0", got, wanted)        a bool for each element

A difference that it does not explain is a bug.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tests.fuzz.kernels import Kernel
from tests.fuzz.run import compile_generated
from tilework.ir import arith, math, tt
from tilework.ir.types import int_property
from tilework.oracles.evaluator import evaluate
from tilework.oracles.evaluator.values import RULES, Rule

RUNS, MOST_RUNS = 8, 64  # twice as many, and again, while something is not explained: an integer has to occur
SAFETY, FUNCTION_ULPS = 4.0, 2.0  # random signs give less than the worst case, hence the factor
EXACT = (math.AbsFOp, math.AbsIOp, math.CeilOp, math.FloorOp, math.TruncOp, math.FmaOp, math.CopySignOp)
FUNCTIONS = (*(op for op in math.Math.operations if op not in EXACT), tt.ExternElementwiseOp, arith.DivfOp)
SUMS = (tt.ReduceOp, tt.ScanOp, tt.DotOp)


def terms(op: Operation) -> int:
    """Return the number of values that a sum, scan or dot combines."""
    shape: Sequence[int] = op.operands[0].type.get_shape()  # pyright: ignore[reportAttributeAccessIssue]
    if type(op) is tt.DotOp:
        return shape[-1]
    return shape[int_property(op, "axis")]


def shaken(value: Any, halves: float, random: np.random.Generator) -> Any:
    """`value` with every float off by `halves` half ulps, in half of the runs at most by as much; anything else as it
    is."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype.kind not in "fV":
        return value
    unit = float(ml_dtypes.finfo(dtype).eps) / 2
    parts = random.choice((-1.0, 1.0), np.shape(value))
    seeds = random.bit_generator.seed_seq
    assert isinstance(seeds, np.random.SeedSequence) and isinstance(seeds.entropy, int)
    if seeds.entropy % 2 == 0:  # the number of the run
        parts *= random.random(np.shape(value))
    return np.asarray(value.astype(np.float64) * (1 + parts * halves * unit)).astype(dtype)


@contextmanager
def disturbed(random: np.random.Generator) -> Iterator[None]:
    """The evaluator with rounding errors put in."""

    def shake_inputs(rule: Rule) -> Rule:
        def run(machine: Any, op: Operation, *operands: Any) -> Any:
            return rule(machine, op, *(shaken(operand, terms(op), random) for operand in operands))

        return run

    def shake_results(rule: Rule) -> Rule:
        def run(machine: Any, op: Operation, *operands: Any) -> Any:
            result = rule(machine, op, *operands)
            is_exact = type(op) is arith.DivfOp and result.dtype != np.float32
            return result if is_exact else shaken(result, 2 * FUNCTION_ULPS, random)

        return run

    before = {op: RULES[op] for op in (*SUMS, *FUNCTIONS) if op in RULES}
    RULES.update({op: (shake_inputs if op in SUMS else shake_results)(rule) for op, rule in before.items()})
    try:
        yield
    finally:
        RULES.update(before)


class RoundingError:
    """The possible effect of rounding on the outputs of a kernel; computed on first use."""

    def __init__(self, kernel: Kernel, folder: Path, arguments: Any, grid: tuple[int, ...]) -> None:
        self.kernel, self.folder, self.arguments, self.grid = kernel, folder, arguments, grid

    @cached_property
    def module(self) -> ModuleOp:
        return compile_generated(self.kernel, self.folder)

    @cached_property
    def runs(self) -> list[dict[str, Any]]:
        """The arguments after an exact run, and after some with errors."""
        return [self.run(number) for number in range(1 + RUNS)]

    def run(self, number: int) -> dict[str, Any]:
        """The arguments after a run, of which the first is exact."""
        arguments = self.arguments()
        with disturbed(np.random.default_rng(number)) if number else nullcontext():
            evaluate(self.module, "kernel", list(arguments.values()), self.grid)
        return arguments

    def explains(self, name: str, got: Any, wanted: Any) -> Any:
        """For each element of the output `name` whether the difference is within what the errors do to it."""
        while True:
            found, count = self.within_runs(name, got, wanted), len(self.runs)
            if count > MOST_RUNS or (found | equal(got, wanted)).all():
                return found
            self.runs.extend(self.run(number) for number in range(count, 2 * count - 1))

    def within_runs(self, name: str, got: Any, wanted: Any) -> Any:
        """The same, as far as the runs show it."""
        exact, *others = (run[name] for run in self.runs)
        with np.errstate(all="ignore"):
            seen = np.logical_or.reduce([equal(got, other) for other in others])
            if exact.dtype.kind not in "fV":
                return seen
            centre, *wide = (array.astype(np.float64) for array in (exact, *others[:RUNS]))
            spread = np.max([np.abs(other - centre) for other in wide], axis=0)
            far = np.abs(got.astype(np.float64) - wanted.astype(np.float64))
            return seen | (far <= SAFETY * spread)


def equal(a: Any, b: Any) -> Any:
    """Bit for bit, or both not a number."""
    return (a == b) | ((a != a) & (b != b))
