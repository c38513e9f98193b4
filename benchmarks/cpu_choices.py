"""The effect of choices in the source of a kernel on this CPU: the tables of docs/cpu-performance.md.

    python -m benchmarks.cpu_choices              # all tables, half a minute
    python -m benchmarks.cpu_choices threads      # one

The columns of a row are measured in turns, and the fastest turn of each counts, as in `benchmarks.cpu`.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

os.environ.setdefault("TILEWORK_DEVICE", "native")

import tilework
import tilework.language as tl
from benchmarks import cpu, cpu_kernels
from tilework import cdiv, knobs
from tilework.targets.cpu.target import HostTarget

Call = Callable[[], Any]


@dataclass
class Line:
    """A row of a table: what is done, the unit of `work / time`, and the calls by the heads of their columns."""

    name: str
    work: float
    unit: str
    calls: dict[str, Call]


@tilework.jit
def sum_lines(x_ptr, out_ptr, LINES: tl.constexpr, LENGTH: tl.constexpr, STRIDE: tl.constexpr, STEP: tl.constexpr):
    """Sums of `LINES` lines of a matrix; `STRIDE` is from one line to the next, `STEP` from one element of it to the
    next."""
    lines = tl.program_id(0) * LINES + tl.arange(0, LINES)
    x = tl.load(x_ptr + lines[:, None] * STRIDE + tl.arange(0, LENGTH)[None, :] * STEP)
    tl.store(out_ptr + lines, tl.sum(x, axis=1))


def blocks() -> Iterator[Line]:
    """Elements of a tile of vector add."""
    add, sizes = cpu_kernels.add.fn, (64, 256, 1024, 4096, 65536, 1 << 20)
    for n in (1 << 14, 1 << 18, 1 << 22):
        x, y, out = cpu.random(n), cpu.random(n, seed=1), np.empty(n, "f4")
        launch = lambda block, x=x, y=y, out=out, n=n: add[(cdiv(n, block),)](x, y, out, n, BLOCK=block, CACHE="")
        yield Line(f"add, {n >> 10}K elements", 12 * n, "GB/s", {str(b): (lambda b=b, f=launch: f(b)) for b in sizes})


def rows() -> Iterator[Line]:
    """Rows of a tile of softmax: a program for each row, or for several."""
    softmax = cpu_kernels.softmax.fn
    for cols in (64, 512, 4096):
        count = (1 << 20) // cols
        x, out = cpu.random(count, cols), np.empty((count, cols), "f4")
        launch = lambda n, x=x, out=out, count=count, cols=cols: softmax[(count // n,)](
            out, x, count, cols, ROWS=n, BLOCK=cols, CACHE=""
        )
        yield Line(
            f"softmax, rows of {cols}", 8 * x.size, "GB/s", {str(n): (lambda n=n, f=launch: f(n)) for n in (1, 4, 16)}
        )


def dots() -> Iterator[Line]:
    """Tiles of a product of matrices: BM x BN x BK."""
    size, tiles = 512, ((16, 16, 16), (32, 32, 32), (64, 64, 64), (128, 128, 64), (64, 256, 128), (128, 512, 512))
    a, b, c = cpu.random(size, size), cpu.random(size, size, seed=1), np.empty((size, size), "f4")
    matmul = cpu_kernels.matmul.fn
    launch = lambda bm, bn, bk: matmul[(size // bm, size // bn)](c, a, b, size, size, size, BM=bm, BN=bn, BK=bk)
    calls = {" x ".join(map(str, tile)): (lambda tile=tile: launch(*tile)) for tile in tiles}
    yield Line("matmul, 512 x 512", 2 * size**3, "GFLOP/s", calls)


def order() -> Iterator[Line]:
    """The same sums over rows, which lie in memory as they are read, and over columns."""
    n = 2048
    x, out = cpu.random(n, n), np.empty(n, "f4")
    yield Line(
        "sums of 2048 lines of 2048", 4 * n * n, "GB/s",
        {
            "rows": lambda: sum_lines[(n // 8,)](x, out, LINES=8, LENGTH=n, STRIDE=n, STEP=1),
            "columns, 1 at a time": lambda: sum_lines[(n,)](x, out, LINES=1, LENGTH=n, STRIDE=1, STEP=n),
            "columns, 64 at a time": lambda: sum_lines[(n // 64,)](x, out, LINES=64, LENGTH=n, STRIDE=1, STEP=n),
        },
    )  # fmt: skip


def streaming() -> Iterator[Line]:
    """Stores that stay in the caches, and stores past them (`cache_modifier=".cs"`)."""
    add = cpu_kernels.add.fn
    for n in (1 << 16, 1 << 24):
        x, y, out = cpu.random(n), cpu.random(n, seed=1), np.empty(n, "f4")
        launch = lambda cache, x=x, y=y, out=out, n=n: add[(cdiv(n, 65536),)](x, y, out, n, BLOCK=65536, CACHE=cache)
        calls = {"plain": lambda f=launch: f(""), '".cs"': lambda f=launch: f(".cs")}
        yield Line(f"add, {12 * n >> 10} KB", 12 * n, "GB/s", calls)


def threads() -> Iterator[Line]:
    """`TILEWORK_NUM_THREADS`: a grid of many programs, and of one."""
    counts = sorted({1, 2, HostTarget.detect().cores // 2 or 1, HostTarget.detect().cores})
    x, out = cpu.random(1 << 22), np.empty(1 << 22, "f4")

    def on(number: int, programs: int, n: int) -> Call:
        def call() -> None:
            knobs.runtime.num_threads = number
            cpu_kernels.exp.fn[(programs,)](x, out, n, BLOCK=n // programs)

        return call

    for name, programs, n in (("1M, 256 programs", 256, 1 << 20), ("1M, 1 program", 1, 1 << 20)):
        calls = {f"{count} thread{'s'[: count - 1]}": on(count, programs, n) for count in counts}
        yield Line(f"exp, {name}", 8 * n, "GB/s", calls)


TABLES = {"blocks": blocks, "rows": rows, "dots": dots, "order": order, "streaming": streaming, "threads": threads}


def show(name: str, rounds: int, spent: float) -> None:
    """A table as Markdown."""
    table, head = TABLES[name], None
    print(f"\n{table.__doc__}\n")
    for line in table():
        for call in line.calls.values():
            call()
        if head != [*line.calls]:
            head = [*line.calls]
            print(f"| {line.unit} | {' | '.join(head)} |\n|---{'|---:' * len(head)}|")
        times = cpu.measure([*line.calls.values()], rounds, spent)
        cells = [f"{line.work / time / 1e9:.1f}" for time in times if time is not None]
        print(f"| {line.name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("table", nargs="*", choices=[*TABLES, []], help="which; all by default")
    parser.add_argument("--rounds", type=int, default=cpu.ROUNDS)
    parser.add_argument("--seconds", type=float, default=1.0, help="at least, for each row")
    args = parser.parse_args()
    host = HostTarget.detect()
    print(f"{host.cpu}, {host.cores} cores, vectors of {host.vector_bytes} bytes")
    with knobs.runtime.scope():
        for name in args.table or TABLES:
            show(name, args.rounds, args.seconds)


if __name__ == "__main__":
    main()
