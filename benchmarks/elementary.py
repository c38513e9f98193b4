"""Elementary functions: the largest error in units of the last place, and the time per element beside NumPy's.

    python -m benchmarks.elementary [names ...]

f32 errors are against this package's f64 functions on every 997th bit pattern; f64 errors are against
tests/targets/elementary_reference.txt (exact values), and on dense samples against long double where the host has
one of more than 64 bits. Times are the best of many runs over 4096 elements in cache, one thread. Functions of an
integer (an order, an exponent) draw it from a small range.

All are within 2 units, also next to the zeros of the Bessel functions.
"""

import ctypes
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.compile import data_layout, host_target_machine, jit_load, to_object
from tilework.targets.llvm.math.table import FUNCTIONS
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import Type, f32, f64, i32, i64, ptr, vector, void

REFERENCE = Path(__file__).parent.parent / "tests" / "targets" / "elementary_reference.txt"
NUMPY: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "cbrt", "hypot")
}
NUMPY |= {name: getattr(np, name) for name in ("sinh", "cosh", "tanh", "sqrt", "fmod")}
NUMPY |= {f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
NUMPY |= {"atan2": np.arctan2, "pow": np.power, "rsqrt": lambda x, out: np.divide(1, np.sqrt(x), out=out)}
ARGUMENTS = {"atan2": 2, "pow": 2, "hypot": 2, "rhypot": 2, "fmod": 2, "remainder": 2}
ARGUMENTS |= {"norm3d": 3, "rnorm3d": 3, "norm4d": 4, "rnorm4d": 4}
INTEGER_AT = {"jn": 0, "yn": 0, "powi": 1, "ldexp": 1}  # the other argument is a float
SLOW = frozenset({"j0", "j1", "y0", "y1", "jn", "yn"})  # fewer samples of f32
WIDTH = {f32: 8, f64: 4}
DTYPE: dict[Type, Any] = {f32: np.float32, f64: np.float64, i32: np.int32}
COUNT = 4096


class Compiled:
    """One function over arrays."""

    def __init__(self, name: str, types: Sequence[Type]) -> None:
        real = next(type for type in types if type.is_float)
        machine, width = host_target_machine(), WIDTH[real]
        module = Module(name, data_layout=data_layout(machine))
        function = module.function("kernel", void, [(ptr, f"p{i}") for i in range(len(types) + 1)] + [(i64, "n")])
        b = Builder(function)
        *pointers, out, count = function.args
        with b.loop(0, count, width) as index:
            args = [b.load(vector(t, width), b.gep(p, index, t), align=t.bits // 8) for p, t in zip(pointers, types)]
            value = FUNCTIONS[name](b, args)
            b.store(value, b.gep(out, index, value.type.scalar), align=value.type.scalar.bits // 8)
        b.ret()
        self.types, self.width, self.real = types, width, real
        started = time.perf_counter()
        self.library = jit_load(to_object(module.text(), 1, machine), ["kernel"])
        self.compile_ms = 1e3 * (time.perf_counter() - started)
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(types) + 1), ctypes.c_int64)
        self.function = signature(self.library["kernel"])

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            given = [np.asarray(array, DTYPE[type]) for array, type in zip(arrays, self.types)]
        size = len(given[0])
        padded = [np.concatenate([array, np.ones(-size % self.width, array.dtype)]) for array in given]
        out = np.zeros(len(padded[0]), DTYPE[self.real])
        self.function(*[array.ctypes.data for array in padded], out.ctypes.data, len(out))
        return out[:size]


def ulps(got: np.ndarray, high: np.ndarray, low: np.ndarray | float = 0.0) -> float:
    with np.errstate(all="ignore"):
        rounded = high.astype(got.dtype)
        finite = np.isfinite(rounded)
        unit = np.spacing(np.abs(np.where(finite, rounded, 1)).astype(got.dtype)).astype(np.float64)
        error = np.abs((got.astype(np.float64) - high) - low) / unit
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return float(np.max(np.where(finite, np.where(np.isfinite(error), error, np.inf), np.where(same, 0.0, np.inf))))


def signature(name: str, real: Type) -> list[Type]:
    if name in INTEGER_AT:
        return [i32, real] if INTEGER_AT[name] == 0 else [real, i32]
    return [real] * ARGUMENTS.get(name, 1)


def dense_arguments(name: str) -> list[np.ndarray]:
    patterns = np.arange(0, 2**32, 997, dtype=np.uint64).astype(np.uint32).view(np.float32)
    patterns = np.where(np.isnan(patterns), np.float32("nan"), patterns)  # signalling ones are quiet when widened
    draw = np.random.default_rng(1)
    inside = [draw.uniform(-a, a, 200_000).astype(np.float32) for a in (1, 10, 100)]
    turns = (np.arange(1, 50_000) * (np.pi / 2)).astype(np.float32)
    first = np.concatenate([patterns, *inside, turns])[:: 16 if name in SLOW else 1]
    types = signature(name, f32)
    permuted = [first] + [draw.permutation(first) for _ in types[1:]]
    return [draw.integers(-9, 30, len(first)).astype(np.int32) if t is i32 else arg for t, arg in zip(types, permuted)]


def exact_rows() -> dict[str, list[list[float]]]:
    rows: dict[str, list[list[float]]] = {}
    for line in REFERENCE.read_text().splitlines():
        name, *numbers = line.split()
        rows.setdefault(name, []).append([float.fromhex(number) for number in numbers])
    return rows


def long_double_error(name: str, compiled: Compiled, count: int) -> float | None:
    """Dense f64 samples against long double, where NumPy has the function and the type is wider."""
    if np.finfo(np.longdouble).nmant <= 62 or name not in NUMPY or name in ("rsqrt", "fmod"):
        return None
    draw = np.random.default_rng(2)
    patterns = draw.integers(-(2**63), 2**63, 20_000, dtype=np.int64).view(np.float64)
    args = [
        np.concatenate([draw.permutation(patterns), draw.uniform(-1, 1, 10_000), draw.uniform(-50, 50, 10_000)])
        for _ in range(count)
    ]
    with np.errstate(all="ignore"):
        exact = NUMPY[name](*[arg.astype(np.longdouble) for arg in args])
        high = exact.astype(np.float64)
        low = np.where(np.isfinite(high), exact - high.astype(np.longdouble), 0).astype(np.float64)
    return ulps(compiled(*args), high, low)


def nanoseconds(call: Callable[[], Any]) -> float:
    best = float("inf")
    rounds, spent = 0, 0.0
    while rounds < 600 and (rounds < 5 or spent < 0.5):
        started = time.perf_counter()
        call()
        taken = time.perf_counter() - started
        best, rounds, spent = min(best, taken), rounds + 1, spent + taken
    return best / COUNT * 1e9


def speed(name: str, compiled: Compiled) -> tuple[float, float | None]:
    draw = np.random.default_rng(3)
    high = 0.95 if name in ("asin", "acos", "atanh", "erfinv", "erfcinv", "normcdfinv") else 4.0
    low = 1.1 if name == "acosh" else 0.1
    args = [
        (draw.integers(0, 6, COUNT) if type is i32 else draw.uniform(low, high, COUNT)).astype(DTYPE[type])
        for type in compiled.types
    ]
    out = np.zeros(COUNT, DTYPE[compiled.real])
    addresses = [array.ctypes.data for array in (*args, out)]
    ours = nanoseconds(lambda: compiled.function(*addresses, COUNT))
    return ours, nanoseconds(lambda: NUMPY[name](*args, out=out)) if name in NUMPY else None


def shown(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def main() -> None:
    rows = exact_rows()
    names = sys.argv[1:] or [*rows, "sqrt", "fmod", "remainder", "ldexp"]
    titles = ("function", "f32 ulp", "ns", "NumPy", "f64 ulp", "dense", "ns", "NumPy", "compile ms")
    print("{:14s}{:>9s}{:>8s}{:>8s}  {:>9s}{:>8s}{:>8s}{:>8s}{:>12s}".format(*titles))
    for name in names:
        single, double = Compiled(name, signature(name, f32)), Compiled(name, signature(name, f64))
        args = dense_arguments(name)
        error32 = ulps(single(*args), double(*args))
        error64 = None
        if name in rows:
            *points, high, low = (np.array(column) for column in zip(*rows[name]))
            error64 = ulps(double(*points), high, low)
        dense64 = long_double_error(name, double, len(args))
        (time32, numpy32), (time64, numpy64) = speed(name, single), speed(name, double)
        print(
            f"{name:14s}{shown(error32):>9s}{shown(time32):>8s}{shown(numpy32):>8s}  "
            f"{shown(error64):>9s}{shown(dense64):>8s}"
            f"{shown(time64):>8s}{shown(numpy64):>8s}{shown(single.compile_ms + double.compile_ms, 0):>12s}",
            flush=True,
        )


if __name__ == "__main__":
    main()
