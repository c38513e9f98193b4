"""Code for other CPUs, which QEMU executes: casts, operators, functions, reductions, memory, dots, as in the other
files here.

``DIFFERENTIAL_CPU=sve pytest tests/differential`` compares all of the differential tests on one of them.
"""

import numpy as np
import pytest

import tilework.language as tl
from tests.differential import test_differential_math as functions
from tests.differential import test_differential_operators as operators
from tests.differential.devices import FLOATS, FP8, INTS, NUMPY, Device, other_cpu, run_interpreter
from tests.differential.harness import Cell, agree_in_one, nonzero, sample
from tests.targets.odd_tiles import LINE, PAIR, difference, random_numbers
from tests.targets.other_cpus import CPUS, EMULATED
from tilework.language.function import jit

CODES, NO_FP8 = (*INTS, *FLOATS, *FP8), (*INTS, "fp64")
LINES, PAIRS = (3, 11, 5, 7, 35, 13), ((3, 11), (7, 5), (11, 19))
cpus = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.skipif(not CPUS[name].emulator, reason="needs qemu-user"))
        for name in EMULATED
    ],
)


def devices(name: str) -> dict[str, Device]:
    return {"interpreter": run_interpreter, name: other_cpu(name)}


@cpus
def test_casts(name: str) -> None:
    cells = []
    for number, source in enumerate(CODES):
        targets = [
            code for code in CODES if not (source in FP8 and code in NO_FP8) and not (code in FP8 and source in NO_FP8)
        ]
        types = [tl.str_to_ty(code) for code in targets]
        values = sample(source, (LINES[number % len(LINES)],), number)
        cells += [Cell(operators.casts_to_all, [values], (tuple(part),)) for part in (types[:7], types[7:]) if part]
    agree_in_one(cells, devices=devices(name))


@cpus
def test_operators(name: str) -> None:
    cells = []
    for number, code in enumerate((*INTS, *FLOATS)):
        a, b = (sample(code, (LINES[number % len(LINES)],), number + seed) for seed in (0, 50))
        own = (operators.bitwise, operators.integer_division) if code in INTS else (operators.float_division,)
        for fn in (operators.arithmetic, operators.choice, *own):
            cells.append(Cell(fn, [a, nonzero(b) if "division" in fn.__name__ else b]))
        if code in INTS:
            cells.append(Cell(operators.shifts, [a, np.abs(b % 8).astype(b.dtype)]))
    agree_in_one(cells, devices=devices(name), ulps=1)


@cpus
def test_functions(name: str) -> None:
    cells = []
    for number, code in enumerate(("fp32", "fp64")):
        values = [np.clip(sample(code, (LINES[number + 1],), number + seed), -1e4, 1e4) for seed in range(3)]
        cells += [
            Cell(functions.elementary, values[:1]),
            Cell(functions.roots, values[:1]),
            Cell(functions.fused, values),
        ]
    agree_in_one(cells, devices=devices(name), ulps=4, atol=1e-12)


ROWS = [*((row, case, LINES) for row, case in LINE.items()), *((row, case, PAIRS) for row, case in PAIR.items())]


@cpus
def test_odd_tiles(name: str) -> None:
    """Every row on one of the x86-64 and on two of the ARM CPUs."""
    kind = [other for other in EMULATED if CPUS[other].facts.arch == CPUS[name].facts.arch]
    for number, (row, case, sizes) in enumerate(ROWS):
        shown = (number - kind.index(name)) % len(kind)
        if shown >= (1 if CPUS[name].facts.arch == "x86_64" else 2):
            continue
        size = sizes[(number + shown) % len(sizes)]
        size = size if isinstance(size, tuple) else (size,)
        random_numbers.bit_generator.state = np.random.default_rng(number).bit_generator.state
        x, y, out = case.arrays(*size)
        args = {"x": x.copy(), "y": y.copy(), "out": out}
        other_cpu(name)(case.kernel, args, dict(zip("NM", size, strict=False)), (1,))
        assert difference(out, np.asarray(case.expected(x, y)), case.tolerance) is None, (row, size)


@jit
def product(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    x, y = tl.load(a + i * K + k[None, :]), tl.load(b + k[:, None] * N + j)
    tl.store(out + i * N + j, tl.dot(x, y, out_dtype=out.dtype.element_ty))


@cpus
@pytest.mark.parametrize("size", [(5, 7, 1024), (16, 16, 64)], ids=str)
def test_a_narrow_product_is_rounded_once(name: str, size: tuple[int, int, int]) -> None:
    m, n, k = size
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    out = np.zeros((m, n), np.float16)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    other_cpu(name)(product, {"a": a, "b": b, "out": out}, {"M": m, "N": n, "K": k}, (1,))
    assert (np.abs(out.astype(np.float64) - exact) <= 2.0**-11 * np.abs(exact) + 1e-4).all()


@jit
def updates(x, out, FLOAT: tl.constexpr):
    i = tl.arange(0, 11) + tl.program_id(0) * 11
    value = tl.load(x + i)
    tl.atomic_add(out + i % 3, value)
    tl.atomic_max(out + 3 + i % 2, value)
    tl.atomic_min(out + 5 + i % 2, value)
    tl.atomic_xchg(out + 8 + i, value)
    if not FLOAT:
        tl.atomic_and(out + 7 + i * 0, value)
        tl.atomic_cas(out + 30 + i, value * 0, value)


@cpus
@pytest.mark.parametrize("code", ["i32", "u32", "i64", "u64", "fp32", "fp64"])
def test_atomics(name: str, code: str) -> None:
    x = (np.arange(22) * 7 % 19).astype(NUMPY[code])
    found = []
    for device in devices(name).values():
        out = np.ones(60, x.dtype)
        out[30:40] = 0
        device(updates, {"x": x.copy(), "out": out}, {"FLOAT": code.startswith("f")}, (2,))
        found.append(out)
    np.testing.assert_array_equal(*found)
