"""`make bench-cpu`: our CPU kernels beside NumPy's and, if it can be imported, torch's routines for the same work.

All columns come from one run; the rounds alternate between them, and the fastest counts: other work on the machine can
only add time. Before each turn there is a pause, in which the threads of the one before go to sleep (those of NumPy's
BLAS look out for more work for 30 ms), and a turn has as many calls in every column. The ratio is torch's time (or
NumPy's, without torch) divided by ours: 1.00 is as fast; for bf16 it is our own f32 time divided by ours, and for one
program on several threads our time on one. Every result is checked before it is timed. `--only NAME` picks rows,
`--rounds N` changes the least number of rounds, `--seconds S` how long a row is measured.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

os.environ.setdefault("TILEWORK_DEVICE", "native")

from benchmarks import cpu_kernels as kernels
from tilework import cdiv, knobs
from tilework.targets.cpu.target import HostTarget

try:
    import torch
except ImportError:
    torch = None

ROUNDS = 9
SLICE = 0.002  # seconds of one measurement at least
REST = 0.04  # seconds between turns
SPENT = 2.0  # seconds of a row at least
SLOW = 1.0  # seconds; a call that takes longer is measured once
Call = Callable[[], Any]


@dataclass
class Row:
    """One line of the table: the calls, what they return (arrays), the amount of work and the goal for the ratio."""

    name: str
    kernel: Any
    ours: Call
    numpy: Call | None
    torch: Call | None
    expected: Any
    got: Any
    work: float  # bytes moved, or floating-point operations
    unit: str  # "GB/s" or "GF/s"
    goal: float  # 0: none
    atol: float = 1e-4
    base: str = ""  # the row whose time of ours is the base of the ratio, instead of torch's


def random(*shape: int, seed: int = 0, dtype: Any = np.float32) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def tensor(array: Any) -> Any:
    """The same memory as a torch tensor."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def torch_call(make: Callable[..., Call], *arrays: Any) -> Call | None:
    """`make` of the arrays as tensors, if there is torch."""
    return make(*map(tensor, arrays)) if torch is not None else None


def elementwise_rows() -> Iterator[Row]:
    n = 1 << 24
    x, y, out = random(n), random(n, seed=1), np.empty(n, "f4")
    grid = lambda meta: (cdiv(n, meta["BLOCK"]),)
    yield Row(
        "vector add 16M", kernels.add, lambda: kernels.add[grid](x, y, out, n), lambda: np.add(x, y, out=out),
        torch_call(lambda x, y, out: lambda: torch.add(x, y, out=out), x, y, out), x + y, out, 12 * n, "GB/s", 1.0,
    )  # fmt: skip
    yield Row(
        "exp 16M", kernels.exp, lambda: kernels.exp[grid](x, out, n), lambda: np.exp(x, out=out),
        torch_call(lambda x, out: lambda: torch.exp(x, out=out), x, out), np.exp(x), out, 8 * n, "GB/s", 1.0,
    )  # fmt: skip
    erf = np.vectorize(math.erf, otypes=["f8"])(x[:4096] * 2**-0.5)
    yield Row(
        "gelu 16M", kernels.gelu, lambda: kernels.gelu[grid](x, out, n), None,
        torch_call(lambda x, out: lambda: torch._C._nn.gelu(x, out=out), x, out),
        0.5 * x[:4096] * (1 + erf), out[:4096], 8 * n, "GB/s", 1.0,
    )  # fmt: skip
    total = np.zeros(1, "f4")
    programs = (4 * HostTarget.detect().cores,)

    def sum_all() -> None:
        total[0] = 0
        kernels.sum_all[programs](x, total, n)

    expected = np.array([x.sum(dtype="f8")])
    torch_sum = torch_call(lambda x: lambda: torch.sum(x), x)
    yield Row(
        "sum 16M", kernels.sum_all, sum_all, lambda: np.sum(x), torch_sum, expected, total, 4 * n, "GB/s", 1.0, 1.0
    )


def one_program_rows() -> Iterator[Row]:
    """A grid of one program, on one thread and on all; the ratio of the second row is that to the first."""
    n = 1 << 20
    x, out = random(n), np.empty(n, "f4")
    expected = np.exp(x)

    def on(threads: int | None) -> Call:
        def call() -> None:
            with knobs.runtime.scope():
                knobs.runtime.num_threads = threads
                kernels.exp_once[(1,)](x, out, n)

        return call

    name = "exp 1M, one program"
    for threads, base in ((1, ""), (HostTarget.detect().cores, f"{name}, 1 thr.")):
        yield Row(
            f"{name}, {threads} thr.", kernels.exp_once, on(threads), lambda: np.exp(x, out=out),
            torch_call(lambda x, out: lambda: torch.exp(x, out=out), x, out) if not base else None,
            expected, out, 8 * n, "GB/s", 1.0 if base else 0.0, base=base,
        )  # fmt: skip


def numpy_softmax(x: Any, out: Any) -> None:
    np.subtract(x, x.max(1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, out.sum(1, keepdims=True), out=out)


def row_rows() -> Iterator[Row]:
    for m, n in ((4096, 4096), (8192, 781)):
        x, out, want = random(m, n), np.empty((m, n), "f4"), np.empty((m, n), "f4")
        numpy_softmax(x, want)
        block = 1 << (n - 1).bit_length()
        grid = lambda meta, m=m: (cdiv(m, meta["ROWS"]),)
        yield Row(
            f"softmax {m}x{n}", kernels.softmax,
            lambda x=x, out=out, m=m, n=n, grid=grid, block=block: kernels.softmax[grid](out, x, m, n, BLOCK=block),
            lambda x=x, out=out: numpy_softmax(x, out),
            torch_call(lambda x, out: lambda: torch.softmax(x, 1, out=out), x, out), want, out, 8 * m * n, "GB/s", 1.0,
        )  # fmt: skip
    m, n = 4096, 4096
    x, out, w, b = random(m, n), np.empty((m, n), "f4"), random(n, seed=1), random(n, seed=2)
    grid = lambda meta: (m // meta["ROWS"],)
    mean, var = x.mean(1, keepdims=True, dtype="f8"), x.var(1, keepdims=True, dtype="f8")

    def numpy_layernorm() -> None:
        mean = x.mean(1, keepdims=True)
        np.subtract(x, mean, out=out)
        np.multiply(out, 1 / np.sqrt((out * out).mean(1, keepdims=True) + 1e-5), out=out)
        np.add(np.multiply(out, w, out=out), b, out=out)

    yield Row(
        "layernorm 4096x4096", kernels.layernorm,
        lambda: kernels.layernorm[grid](out, x, w, b, n, 1e-5, BLOCK=4096), numpy_layernorm,
        torch_call(lambda x, w, b: lambda: torch.nn.functional.layer_norm(x, (n,), w, b), x, w, b),
        (x - mean) / np.sqrt(var + 1e-5) * w + b, out, 8 * m * n, "GB/s", 1.0,
    )  # fmt: skip
    c, cout = random(8192, 1024), np.empty((8192, 1024), "f4")
    grid8 = lambda meta: (8192 // meta["ROWS"],)
    yield Row(
        "row cumsum 8192x1024", kernels.cumsum, lambda: kernels.cumsum[grid8](cout, c, 1024, BLOCK=1024),
        lambda: np.cumsum(c, axis=1, out=cout),
        torch_call(lambda x, out: lambda: torch.cumsum(x, 1, out=out), c, cout),
        np.cumsum(c, axis=1, dtype="f8"), cout, 8 * c.size, "GB/s", 1.0, 1e-2,
    )  # fmt: skip
    s, sout = random(2048, 1024), np.empty((2048, 1024), "f4")
    sgrid = lambda meta: (2048 // meta["ROWS"],)
    yield Row(
        "row sort 2048x1024", kernels.sort_rows, lambda: kernels.sort_rows[sgrid](sout, s, 2048, COLS=1024),
        lambda: np.sort(s, axis=1), torch_call(lambda x: lambda: torch.sort(x, 1), s), np.sort(s, axis=1), sout,
        8 * s.size, "GB/s", 1.0,
    )  # fmt: skip
    tgrid = lambda meta: (cdiv(m, meta["BM"]), cdiv(n, meta["BN"]))
    yield Row(
        "transpose 4096x4096", kernels.transpose, lambda: kernels.transpose[tgrid](out, x, m, n),
        lambda: np.copyto(out, x.T), torch_call(lambda x, out: lambda: out.copy_(x.T), x, out), x.T, out,
        8 * m * n, "GB/s", 1.0, 0.0,
    )  # fmt: skip


def matrix_rows() -> Iterator[Row]:
    for size, dtype, total, name in (
        (512, "f4", "f4", "f32"),
        (1024, "f4", "f4", "f32"),
        (2048, "f4", "f4", "f32"),
        (1024, ml_dtypes.bfloat16, ml_dtypes.bfloat16, "bf16"),
        (1024, "f2", "f2", "f16"),
        (1024, "i1", "i4", "int8"),
    ):
        a, b, c = (
            random(size, size, dtype=dtype),
            random(size, size, seed=1, dtype=dtype),
            np.empty((size, size), total),
        )
        grid = lambda meta, size=size: (size // meta["BM"], size // meta["BN"])
        call = lambda a=a, b=b, c=c, grid=grid, size=size: kernels.matmul[grid](c, a, b, size, size, size)
        numpy = (lambda a=a, b=b, c=c: np.matmul(a, b, out=c)) if name == "f32" else None
        # where torch has no code for a type, it takes a minute
        beside = torch_call if name == "f32" or HostTarget.detect().arch == "x86_64" else lambda *_: None
        multiply = torch._int_mm if torch is not None and name == "int8" else torch and torch.matmul
        yield Row(
            f"matmul {name} {size}", kernels.matmul, call, numpy,
            beside(lambda a, b, c, multiply=multiply: lambda: multiply(a, b, out=c), a, b, c),
            a.astype("f4") @ b.astype("f4"), c, 2 * size**3, "GF/s", 0.95 if name == "f32" else 0.9,
            1e-2 if name == "f32" else 1.0,
        )  # fmt: skip
    heads, n, d = 8, 1024, 64
    q, k, v = (random(heads, n, d, seed=seed) for seed in range(3))
    out = np.empty((heads, n, d), "f4")

    def numpy_attention() -> Any:
        s = q @ k.transpose(0, 2, 1) * d**-0.5
        numpy_softmax(s.reshape(-1, n), s.reshape(-1, n))
        return s @ v

    agrid = lambda meta: (n // meta["BM"], heads)
    yield Row(
        "attention f32 8x1024x64", kernels.attention,
        lambda: kernels.attention[agrid](out, q, k, v, d**-0.5, n, D=d), numpy_attention,
        torch_call(lambda *t: lambda: torch.nn.functional.scaled_dot_product_attention(*(x[None] for x in t)), q, k, v),
        numpy_attention(), out, 4 * heads * n * n * d, "GF/s", 1.0,
    )  # fmt: skip


def seconds(call: Call, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def measure(calls: list[Call | None], rounds: int, spent: float) -> list[float | None]:
    """The fewest seconds of each call, measured in turns."""
    times = [[seconds(call, 1)] if call is not None else [] for call in calls]
    quick = [(call, found) for call, found in zip(calls, times, strict=True) if call is not None and found[0] <= SLOW]
    second = [seconds(call, 1) for call, _ in quick]
    repeats = max(1, int(SLICE / max(second, default=SLOW)))
    for _ in range(max(rounds, int(spent / (repeats * sum(second) + REST * len(quick)))) if quick else 0):
        for call, found in quick:
            time.sleep(REST)
            found.append(seconds(call, repeats))
    return [min(found) if found else None for found in times]


def tile_of(row: Row) -> str:
    """Return the tile that the tuner has chosen."""
    return ", ".join(f"{key}={value}" for key, value in row.kernel.best_config.kwargs.items())


def report(row: Row, rounds: int, spent: float, known: dict[str, float]) -> bool:
    """Check, measure and print one row; whether its result is right. Our times are collected in `known`."""
    row.ours()
    difference = float(np.max(np.abs(np.asarray(row.got, "f8") - row.expected)))
    config = tile_of(row)
    if not difference <= row.atol:
        print(f"{row.name:26} WRONG by {difference:.2g} with {config}")
        return False
    ours, numpy, other = measure([row.ours, row.numpy, row.torch], rounds, spent)
    assert ours is not None
    known[row.name] = ours
    base = known.get(row.base) if row.base else other if other is not None else numpy
    ratio = f"{base / ours:6.2f}" if base is not None else "     -"
    goal = f"{row.goal:6.2f}" if row.goal and base is not None and base is not numpy else "     -"
    cells = "".join(f"{value * 1e3:8.2f} ms" if value is not None else f"{'-':>11}" for value in (ours, numpy, other))
    print(f"{row.name:26}{cells}{row.work / ours / 1e9:9.1f} {row.unit}  {ratio}{goal}   {config}", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SPENT)
    args = parser.parse_args()
    host = HostTarget.detect()
    print(f"{host.cpu}, {host.cores} cores, vectors of {host.vector_bytes} bytes; NumPy {np.__version__}, ", end="")
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads" if torch else "no torch")
    print(f"{'':26}{'ours':>11}{'NumPy':>11}{'torch':>11}{'':14}   ratio  goal   tile")
    good, known = True, {}
    for rows in (matrix_rows, row_rows, elementwise_rows, one_program_rows):
        for row in rows():
            if args.only in row.name:
                good &= report(row, args.rounds, args.seconds, known)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
