"""Tiles of the size that the work has, beside masked powers of two, and NumPy.

    python -m benchmarks.cpu_tiles                # all, a minute
    python -m benchmarks.cpu_tiles softmax sort   # some

The same kernel with `SIZE == WIDTH` (96, 100, 127, 384 ...) and with `SIZE` the next power of two and a mask, which is
what has to be written where tiles must be powers of two. Both columns and NumPy are measured in turns, and the fastest
turn counts.
"""

import argparse
import os
from collections.abc import Callable
from typing import Any

import numpy as np

os.environ.setdefault("TILEWORK_DEVICE", "native")

import tilework
import tilework.language as tl
from benchmarks import cpu
from tilework import knobs
from tilework.targets.cpu.target import HostTarget

Call = Callable[[], Any]
CE = tl.constexpr
WIDTHS = (12, 48, 96, 100, 127, 384, 1000)
PRODUCTS = (12, 48, 96, 100, 127)
ELEMENTS = 1 << 19
ROWS = 8  # of a tile


@tilework.jit
def add(x, y, out, WIDTH: CE, SIZE: CE, ROWS: CE):
    rows, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, SIZE)
    offsets = rows[:, None] * WIDTH + columns[None, :]
    if SIZE == WIDTH:
        tl.store(out + offsets, tl.load(x + offsets) + tl.load(y + offsets))
    else:
        inside = (columns < WIDTH)[None, :]
        tl.store(out + offsets, tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside), mask=inside)


@tilework.jit
def softmax(x, y, out, WIDTH: CE, SIZE: CE, ROWS: CE):
    rows, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, SIZE)
    offsets = rows[:, None] * WIDTH + columns[None, :]
    if SIZE == WIDTH:
        tl.store(out + offsets, tl.softmax(tl.load(x + offsets), 1, keep_dims=True))
    else:
        inside = (columns < WIDTH)[None, :]
        given = tl.load(x + offsets, mask=inside, other=-float("inf"))
        tl.store(out + offsets, tl.softmax(given, 1, keep_dims=True), mask=inside)


@tilework.jit
def layer_norm(x, y, out, WIDTH: CE, SIZE: CE, ROWS: CE):
    rows, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, SIZE)
    offsets = rows[:, None] * WIDTH + columns[None, :]
    if SIZE == WIDTH:
        given = tl.load(x + offsets)
        centred = given - (tl.sum(given, 1) / WIDTH)[:, None]
        variance = tl.sum(centred * centred, 1) / WIDTH
        tl.store(out + offsets, centred * tl.rsqrt(variance + 1e-5)[:, None])
    else:
        inside = (columns < WIDTH)[None, :]
        given = tl.load(x + offsets, mask=inside, other=0.0)
        centred = tl.where(inside, given - (tl.sum(given, 1) / WIDTH)[:, None], 0.0)
        variance = tl.sum(centred * centred, 1) / WIDTH
        tl.store(out + offsets, centred * tl.rsqrt(variance + 1e-5)[:, None], mask=inside)


@tilework.jit
def cumsum(x, y, out, WIDTH: CE, SIZE: CE, ROWS: CE):
    rows, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, SIZE)
    offsets = rows[:, None] * WIDTH + columns[None, :]
    if SIZE == WIDTH:
        tl.store(out + offsets, tl.cumsum(tl.load(x + offsets), 1))
    else:
        inside = (columns < WIDTH)[None, :]
        tl.store(out + offsets, tl.cumsum(tl.load(x + offsets, mask=inside, other=0.0), 1), mask=inside)


@tilework.jit
def sort(x, y, out, WIDTH: CE, SIZE: CE, ROWS: CE):
    rows, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, SIZE)
    offsets = rows[:, None] * WIDTH + columns[None, :]
    if SIZE == WIDTH:
        tl.store(out + offsets, tl.sort(tl.load(x + offsets)))
    else:
        inside = (columns < WIDTH)[None, :]
        tl.store(out + offsets, tl.sort(tl.load(x + offsets, mask=inside, other=float("inf"))), mask=inside)


@tilework.jit
def matmul(x, y, out, WIDTH: CE, SIZE: CE, ROWS: CE):
    i, start = tl.arange(0, SIZE), tl.program_id(0) * WIDTH * WIDTH
    offsets = start + i[:, None] * WIDTH + i[None, :]
    if SIZE == WIDTH:
        tl.store(out + offsets, tl.dot(tl.load(x + offsets), tl.load(y + offsets), input_precision="ieee"))
    else:
        inside = (i < WIDTH)[:, None] & (i < WIDTH)[None, :]
        a, b = tl.load(x + offsets, mask=inside, other=0.0), tl.load(y + offsets, mask=inside, other=0.0)
        tl.store(out + offsets, tl.dot(a, b, input_precision="ieee"), mask=inside)


def normalised(x: Any, out: Any) -> None:
    np.subtract(x, x.mean(1, keepdims=True), out=out)
    np.multiply(out, 1 / np.sqrt((out * out).mean(1, keepdims=True) + 1e-5), out=out)


# kernel, NumPy's way, work of a row of w elements, unit
TABLE: dict[str, tuple[Any, Callable[..., Any], Callable[[int], float], str]] = {
    "add": (add, lambda x, y, out: np.add(x, y, out=out), lambda w: 12 * w, "GB/s"),
    "softmax": (softmax, lambda x, y, out: cpu.numpy_softmax(x, out), lambda w: 8 * w, "GB/s"),
    "layer_norm": (layer_norm, lambda x, y, out: normalised(x, out), lambda w: 8 * w, "GB/s"),
    "cumsum": (cumsum, lambda x, y, out: np.cumsum(x, 1, out=out), lambda w: 8 * w, "GB/s"),
    "sort": (sort, lambda x, y, out: np.copyto(out, np.sort(x, 1)), lambda w: w, "G elements/s"),
    "matmul": (matmul, lambda x, y, out: np.matmul(x, y, out=out), lambda w: 2 * w**3, "GFLOP/s"),
}


def row(name: str, width: int, rounds: int, spent: float) -> None:
    kernel, numpy, work, _ = TABLE[name]
    size = 1 << (width - 1).bit_length()
    is_product = name == "matmul"
    count = max(4, ELEMENTS // width ** (2 if is_product else 1)) // ROWS * ROWS or 4
    shape = (count, width, width) if is_product else (count, width)
    x, y = cpu.random(*shape), cpu.random(*shape, seed=1)
    found, masked, wanted = (np.empty(shape, "f4") for _ in range(3))
    grid = (count if is_product else count // ROWS,)
    calls: list[Call] = [
        lambda: kernel[grid](x, y, found, WIDTH=width, SIZE=width, ROWS=ROWS),
        lambda: kernel[grid](x, y, masked, WIDTH=width, SIZE=size, ROWS=ROWS),
        lambda: numpy(x, y, wanted),
    ]
    for call in calls * 2:
        call()
    for got in (found, masked):
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)
    times = cpu.measure([*calls], rounds, spent)
    rates = [work(width) * count / time / 1e9 for time in times if time is not None]
    cells = " | ".join(f"{rate:.2f}" for rate in rates)
    print(f"| {name}, {width} | {cells} | {rates[0] / rates[1]:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("table", nargs="*", help="which; all by default")
    parser.add_argument("--widths", type=int, nargs="*")
    parser.add_argument("--rounds", type=int, default=cpu.ROUNDS)
    parser.add_argument("--seconds", type=float, default=0.5, help="at least, for each row")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    host = HostTarget.detect()
    print(f"{host.cpu}, {args.threads} of {host.cores} cores, vectors of {host.vector_bytes} bytes, float32")
    with knobs.runtime.scope():
        knobs.runtime.num_threads = args.threads
        for name in args.table or TABLE:
            print(
                f"\n| {TABLE[name][3]} | this size | power of two, masked | NumPy | gain |\n|---|---:|---:|---:|---:|"
            )
            for width in args.widths or (PRODUCTS if name == "matmul" else WIDTHS):
                row(name, width, args.rounds, args.seconds)


if __name__ == "__main__":
    main()
