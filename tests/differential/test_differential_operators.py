"""Operators, casts and selection: the interpreter against the compiler, over all pairs of dtypes."""

import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilework.language as tl
from tests.differential.devices import CODE, DEVICES, FLOATS, FP8, INTS, ORACLES, Refused, run_interpreter
from tests.differential.harness import Cell, agree, agree_in_one, nonzero, outcome, sample
from tests.differential.settings import few_examples, seeds, shapes
from tilework.language.function import jit

BOOL = ("u1",)
STANDARD = (*BOOL, *INTS, *FLOATS)
CODES = (*STANDARD, *FP8)
PAIRS = list(product((*STANDARD, *FP8), repeat=2))


@jit
def arithmetic(a, b):
    return a + b, a - b, a * b, a < b, a == b, a != b, a >= b


@jit
def choice(a, b):
    return tl.where(a > b, a, b), tl.minimum(a, b), tl.maximum(a, b)


@jit
def bitwise(a, b):
    return a & b, a | b, a ^ b


@jit
def shifts(a, b):
    return a << b, a >> b


@jit
def integer_division(a, b):
    return a // b, a % b, a / b


@jit
def float_division(a, b):
    return a / b, a % b


@jit
def difference_and_order(a, b):
    return a - b, a < b


@jit
def larger(a, b):
    return tl.where(a > b, a, b)


@jit
def exclusive(a, b):
    return a ^ b


@jit
def shifted(a, b):
    return a >> b


@jit
def quotient(a, b):
    return a / b


@jit
def whole_quotient(a, b):
    return a // b, a / b


@jit
def unary(a):
    return -a, ~a, tl.abs(a)


@jit
def float_unary(a):
    return -a, tl.abs(a)


@jit
def compound(a, b):
    a += b
    a -= 3
    a *= b
    return a


def both(fn: Any, *inputs: Any, **options: Any) -> None:
    """All devices agree, possibly in refusing the program."""
    try:
        agree(fn, *inputs, **options)
    except Refused:
        return


Pairs = Iterable[tuple[Any, Any]]


def pairs(operators: Any, one: Any, inputs: Pairs, **options: Any) -> None:
    """A row of a table: all `operators` in the oracles, and in machine code if the types are equal.

    Machine code knows promoted types only. Of two types it gets `one` operator, which needs the casts of all, in one
    order.
    """
    inputs = list(inputs)
    agree_in_one([Cell(operators, (a, b)) for a, b in inputs if a.dtype != b.dtype], devices=ORACLES, **options)
    ordered = [(a, b) for a, b in inputs if CODES.index(CODE[a.dtype]) <= CODES.index(CODE[b.dtype])]
    agree_in_one([Cell(operators if a.dtype == b.dtype else one, (a, b)) for a, b in ordered], **options)


def table(left: str, codes: Sequence[str]) -> Pairs:
    return ((sample(left, (16,), number), sample(right, (16,), number + 50)) for number, right in enumerate(codes))


@pytest.mark.parametrize("left", CODES)
def test_arithmetic_of_all_pairs(left: str) -> None:
    pairs(arithmetic, difference_and_order, table(left, CODES))


@pytest.mark.parametrize("left", CODES)
def test_choice_of_all_pairs(left: str) -> None:
    """Without zeros: min(-0, 0) is either."""
    no_zeros = lambda array: np.where(array == 0, np.ones_like(array), array)
    pairs(choice, larger, ((no_zeros(a), no_zeros(b)) for a, b in table(left, CODES)))


@pytest.mark.parametrize("left", (*BOOL, *INTS))
def test_bits_of_all_pairs(left: str) -> None:
    def counts(a: Any, b: Any) -> Any:
        narrow = np.minimum(np.abs(b.astype(np.int64)), max(0, 8 * min(a.dtype.itemsize, b.dtype.itemsize) - 1))
        return (narrow * (a.dtype != bool and b.dtype != bool)).astype(b.dtype)

    pairs(bitwise, exclusive, table(left, (*BOOL, *INTS)))
    pairs(shifts, shifted, ((a, counts(a, b)) for a, b in table(left, (*BOOL, *INTS))))


@pytest.mark.parametrize("left", STANDARD)
def test_division_of_all_pairs(left: str) -> None:
    others = STANDARD if left in FLOATS else FLOATS
    pairs(float_division, quotient, ((a, nonzero(b)) for a, b in table(left, others)), ulps=1)
    if left not in FLOATS:
        pairs(integer_division, whole_quotient, ((a, nonzero(b)) for a, b in table(left, (*BOOL, *INTS))), ulps=1)


def test_unary_operators() -> None:
    agree_in_one([Cell(float_unary if code in (*FLOATS, *FP8) else unary, [sample(code, (32,), 7)]) for code in CODES])


@jit
def weak_int(a):
    return a + 3, a * 2, 5 - a, a - 1, a < 3, a == 2, tl.where(a > 1, a, 0)


@jit
def weak_float(a):
    return a + 1.5, a * 0.1, 2.0 - a, a / 3.0, a < 0.5, tl.where(a > 1, a, 0.25)


@jit
def weak_bool(a):
    return a + True, a * True, tl.where(a == a, True, a)


@jit
def strong(a):
    n = 2
    f = 1.5
    return a + n, a * f, a < n, n - a


@jit
def strong_through_call(a):
    return scaled(a, 2), scaled(a, 1.5), scaled_by_local(a, 3)


@jit
def scaled(a, factor):
    return a * factor


@jit
def scaled_by_local(a, factor):
    factor = factor + 0
    return a * factor


@pytest.mark.parametrize("fn", [weak_int, weak_float, weak_bool, strong, strong_through_call], ids=lambda f: f.__name__)
def test_weak_and_strong_numbers(fn: Any) -> None:
    agree_in_one([Cell(fn, [sample(code, (16,), 3)]) for code in CODES], ulps=1)


@jit
def out_of_range(a, NUMBER: tl.constexpr):
    return a + NUMBER


@pytest.mark.parametrize("code", (*BOOL, *INTS))
def test_range_checks_have_the_same_words(code: str) -> None:
    fits = []
    for number in (-1, 127, 128, 255, 256, -128, -129, 70000, 2**31, 2**40, 2**63, -(2**63)):
        cell = Cell(out_of_range, [sample(code, (4,), 1)], (number,))
        if not isinstance(outcome(run_interpreter, cell.fn, cell.inputs, cell.params), Refused):
            fits.append(cell)
            continue
        refused = {name: str(outcome(device, cell.fn, cell.inputs, cell.params)) for name, device in DEVICES.items()}
        words = [re.search("(Scalar|Cannot).*(out of range|negative scalar)[^']*", one) for one in refused.values()]
        assert all(words) and len({found[0] for found in words if found}) == 1, (number, refused)
    agree_in_one(fits)


@jit
def casts(a, TARGET: tl.constexpr):
    return a.to(TARGET)


@jit
def rounded(a, TARGET: tl.constexpr, ROUNDING: tl.constexpr):
    return tl.cast(a, TARGET, fp_downcast_rounding=ROUNDING)


@jit
def reinterpreted(a, TARGET: tl.constexpr):
    return a.to(TARGET, bitcast=True)


def row(fn: Any, cell: Any, values: Any, targets: Any) -> None:
    """Return `fn` of `values` for all `targets` at once; a target that is refused, by `cell` alone."""
    types = [tl.str_to_ty(target) for target in targets]
    refused = [type for type in types if isinstance(outcome(run_interpreter, cell, [values], (type,)), Refused)]
    for type in refused:
        both(cell, values, params=(type,))
    agree(fn, values, params=(tuple(type for type in types if type not in refused),))


@jit
def casts_to_all(a, TARGETS: tl.constexpr):
    return [a.to(TARGET) for TARGET in TARGETS]


@pytest.mark.parametrize("source", CODES)
def test_casts_between_all_pairs(source: str) -> None:
    row(casts_to_all, casts, sample(source, (64,), 5), CODES)


@pytest.mark.parametrize("source", FLOATS)
def test_rounding_modes(source: str) -> None:
    values = sample(source, (128,), 11)
    values = np.where(np.isnan(values.astype(np.float32)), np.zeros_like(values), values)
    targets = map(tl.str_to_ty, ("fp16", "bf16", "fp8e5", "fp8e4nv", "fp64"))
    agree_in_one([Cell(rounded, [values], cell) for cell in product(targets, ("rtne", "rtz"))])


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
def test_a_rounding_mode_means_nothing_where_nothing_is_converted(rounding: str) -> None:
    for name in (*STANDARD, *FP8):
        values = sample(name, (64,), 3)
        (found,) = agree(rounded, values, params=(tl.str_to_ty(name), rounding))
        assert found.tobytes() == values.tobytes(), name


@pytest.mark.parametrize(("a", "b"), [("fp8e5", "fp16"), ("fp8e4nv", "fp16"), ("fp8e4nv", "bf16"), ("fp8e5", "fp32")])
def test_every_fp8_value_widens_exactly(a: str, b: str) -> None:
    patterns = np.arange(256, dtype=np.uint8)
    (wide,) = agree(reinterpreted_and_cast, patterns, params=(tl.str_to_ty(a), tl.str_to_ty(b)))
    assert np.isfinite(wide.astype(np.float32)).sum() >= 248


@jit
def reinterpreted_and_cast(bits, MIDDLE: tl.constexpr, TARGET: tl.constexpr):
    return bits.to(MIDDLE, bitcast=True).to(TARGET)


@pytest.mark.parametrize("target", ["fp8e5", "fp8e4nv", "fp8e4b15"])
def test_every_fp16_value_narrows_alike(target: str) -> None:
    patterns = np.arange(0, 65536, 16, dtype=np.uint16).reshape(4, 1024)
    halves = patterns.view(np.float16)
    finite = np.where(np.isnan(halves), np.float16(0), halves)
    for row in finite:
        agree(narrowed, row, params=(tl.str_to_ty(target),))


@jit
def narrowed(x, TARGET: tl.constexpr):
    return x.to(TARGET).to(tl.float16)


@jit
def reinterpreted_as_all(a, TARGETS: tl.constexpr):
    return [a.to(TARGET, bitcast=True) for TARGET in TARGETS]


@pytest.mark.parametrize("source", (*INTS, *FLOATS, *FP8))
def test_bitcasts(source: str) -> None:
    row(reinterpreted_as_all, reinterpreted, sample(source, (16,), 9), (*INTS, *FLOATS, *FP8))


@jit
def clamped(a, b, c, RULE: tl.constexpr):
    return tl.clamp(a, b, c, propagate_nan=RULE), tl.minimum(a, b, propagate_nan=RULE), tl.maximum(a, b, RULE)


def test_nan_rules() -> None:
    cells = []
    for code in FLOATS:
        a, b, c = (sample(code, (64,), seed) for seed in (1, 2, 3))
        b, c = (np.where(np.isnan(x.astype(np.float64)), np.ones_like(x), x) for x in (b, c))
        inputs = [np.where(x == 0, np.ones_like(x), x) for x in (a, np.minimum(b, c), np.maximum(b, c))]
        cells += [Cell(clamped, inputs, (rule,)) for rule in tl.PropagateNan]
    agree_in_one(cells)


@jit
def logic(a, b):
    return a & b, a | b, (a > b) & (b > a), a.logical_and(b), a.logical_or(b), ~a


@jit
def words(a, b, FLAG: tl.constexpr):
    x = tl.sum(a.to(tl.int32), 0) > 2
    y = tl.sum(b.to(tl.int32), 0) > 2
    return x and y, x or y, not x, FLAG and x, FLAG or x, (x and FLAG) or y


@pytest.mark.parametrize("flag", [True, False])
def test_and_or_not(flag: bool) -> None:
    a, b = sample("u1", (8,), 1), sample("u1", (8,), 2)
    agree(logic, a, b)
    agree(words, a, b, params=(flag,))


@few_examples
@given(st.sampled_from([p for p in PAIRS if set(p) <= set(STANDARD)]), shapes(), seeds)
def test_broadcasting(pair: tuple[str, str], shape: tuple[int, ...], seed: int) -> None:
    other = tuple(size if (seed >> axis) & 1 else 1 for axis, size in enumerate(shape))
    both(arithmetic, sample(pair[0], shape, seed), sample(pair[1], other[seed % 2 :], seed + 1))


@few_examples
@given(st.sampled_from(INTS), st.sampled_from(INTS), seeds)
def test_compound_assignment(left: str, right: str, seed: int) -> None:
    both(compound, sample(left, (8,), seed), sample(right, (8,), seed))
