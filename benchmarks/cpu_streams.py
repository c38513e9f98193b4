"""Stores that stay in the caches (`.wb`), go past them (`.cs`), or do what the compiler chooses (no modifier), in
turns.

python -m benchmarks.cpu_streams --mb 64 512 --threads 1 2 16

`chain` copies x to y, y to z and z to x: each launch reads what the one before it has stored. Each array has as many MB
as the first column says; the figures are GB/s, the fastest and (the median) of the turns. Results are checked first.
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

os.environ.setdefault("TILEWORK_DEVICE", "native")

import tilework
import tilework.language as tl
from tilework import cdiv, knobs
from tilework.targets.cpu.target import HostTarget

BLOCK = 65536
SOME = slice(None, None, 37)  # of the results: these are checked
MODIFIERS = {"kept": ".wb", "chosen": "", "past": ".cs"}
Call = Callable[[], Any]


@tilework.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr, CACHE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n, cache_modifier=CACHE)


@tilework.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, CACHE: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, total, mask=i < n, cache_modifier=CACHE)


@tilework.jit
def softmax(x_ptr, out_ptr, ROWS: tl.constexpr, COLS: tl.constexpr, CACHE: tl.constexpr):
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None] * COLS + tl.arange(0, COLS)[None, :]
    x = tl.load(x_ptr + i)
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(out_ptr + i, e / tl.sum(e, axis=1)[:, None], cache_modifier=CACHE)


@tilework.jit
def transpose(x_ptr, out_ptr, M, N, B: tl.constexpr, CACHE: tl.constexpr):
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :])
    tl.store(out_ptr + columns[:, None] * M + rows[None, :], x.T, cache_modifier=CACHE)


def aligned(n: int, shift: int) -> Any:
    """Zeros that begin `shift` bytes behind the beginning of a cache line."""
    memory = np.zeros(n + 64, np.float32)
    start = (-memory.ctypes.data % 64 + shift) // 4
    return memory[start : start + n]


def calls(name: str, n: int, shift: int) -> tuple[dict[str, Call], Call, float]:
    """A call for each modifier, a check of the last one, and the bytes that one moves."""
    x, y, z = (aligned(n, shift) for _ in range(3))
    x.reshape(64, -1)[:] = np.random.default_rng(0).standard_normal(n // 64).astype(np.float32)
    y[:] = x[::-1]
    grid = (cdiv(n, BLOCK),)

    def chain(cache: str) -> None:
        for source, target in ((x, y), (y, z), (z, x)):
            copy[grid](source, target, n, BLOCK, cache)

    def soft(rows: Any) -> Any:
        e = np.exp(rows - rows.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    m = 1 << (n.bit_length() // 2)
    runs: dict[str, tuple[Callable[[str], Any], Callable[[], Any], float]] = {
        "chain": (chain, lambda: x[SOME], 24.0),
        "add": (lambda cache: add[grid](x, y, z, n, BLOCK, cache), lambda: x[SOME] + y[SOME], 12.0),
        "softmax": (
            lambda cache: softmax[(n // 4096 // 4,)](x, z, 4, 4096, cache),
            lambda: soft(x.reshape(-1, 4096)[SOME]),
            8.0,
        ),
        "transpose": (
            lambda cache: transpose[(m // 64, n // m // 64)](x, z, m, n // m, 64, cache),
            lambda: x.reshape(m, -1).T[SOME],
            8.0,
        ),
    }
    run, expected, size = runs[name]

    def check() -> None:
        wanted = expected()
        np.testing.assert_allclose(z.reshape(-1, *wanted.shape[1:])[SOME], wanted, rtol=1e-4, atol=1e-6)

    return {key: lambda cache=cache: run(cache) for key, cache in MODIFIERS.items()}, check, size * n


def measure(name: str, mb: int, shift: int, rounds: int, rest: float) -> str:
    made, check, size = calls(name, mb << 18, shift)
    taken: dict[str, list[float]] = {key: [] for key in made}
    for call in made.values():
        call()
        check()
    order = list(made)
    for turn in range(rounds):
        for key in order[turn % 3 :] + order[: turn % 3]:
            time.sleep(rest)
            made[key]()
            start = time.perf_counter()
            made[key]()
            taken[key].append(time.perf_counter() - start)
    found = (f"{size / min(t) / 1e9:7.1f} ({size / float(np.median(t)) / 1e9:6.1f})" for t in taken.values())
    return f"{name:10}{mb:6}" + "".join(f"{text:>20}" for text in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", nargs="+", default=["chain", "add", "softmax", "transpose"])
    parser.add_argument("--mb", nargs="+", type=int, default=[4, 64, 512])
    parser.add_argument("--threads", nargs="+", type=int, default=[HostTarget.detect().cores])
    parser.add_argument(
        "--shift", type=int, default=0, help="bytes from the beginning of a cache line to that of arrays"
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--rest", type=float, default=0.02, help="seconds between turns")
    args = parser.parse_args()
    host = HostTarget.detect()
    print(
        f"{host.cpu}, {host.cores} cores, last caches {host.cache_bytes >> 20} MB; "
        f"stores go past them from {host.streams_from >> 20} MB (0: never)"
    )
    for threads in args.threads:
        print(f"{threads} threads, GB/s      " + "".join(f"{key:>20}" for key in MODIFIERS))
        for name in args.kernels:
            for mb in args.mb:
                with knobs.runtime.scope():
                    knobs.runtime.num_threads = threads
                    print(measure(name, mb, args.shift, args.rounds, args.rest), flush=True)


if __name__ == "__main__":
    main()
