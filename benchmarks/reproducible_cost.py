"""The cost of `reproducible=True`: kernels of examples/ with and without it, in one run.

    python -m benchmarks.reproducible_cost [--rounds 7] [--only matmul_f16]

Rounds alternate between the two, and the fastest counts. On the CPU always; on the GPU too where there is one. The
examples' own tiles are for tests: these are tiles that suit the machine, and the same for both.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from examples.add import add
from examples.attention import attention
from examples.layernorm import layernorm_forward
from examples.matmul import matmul
from examples.softmax import softmax
from tilework import cdiv

TURN = 0.05  # seconds of one measurement at least
Values = tuple[Any, ...]


@dataclass(frozen=True)
class Row:
    """A kernel, its arguments on the host, its grid and options."""

    name: str
    kernel: Any
    args: Values
    grid: tuple[int, ...]
    options: dict[str, Any]


def random(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


def product(name: str, dtype: Any, size: int, tile: dict[str, int]) -> Row:
    a, b, c = random(size, size, dtype=dtype), random(size, size, dtype=dtype), np.zeros((size, size), dtype)
    grid = (cdiv(size, tile["BM"]) * cdiv(size, tile["BN"]),)
    return Row(name, matmul, (a, b, c, size, size, size, size, size, size), grid, {"GROUP": 8, **tile})


def rows(is_gpu: bool) -> list[Row]:
    count, height, width, size = (1 << 26, 8192, 4096, 2048) if is_gpu else (1 << 22, 1024, 1024, 256)
    heads, length = (16, 2048) if is_gpu else (2, 256)
    x, y = random(count), random(count)
    image, weights, bias = random(height, width), random(width), random(width)
    sums = (np.zeros(height, np.float32), np.zeros(height, np.float32))
    q, k, v = (random(heads, length, 64, dtype=np.float16) for _ in range(3))
    f32 = {"BM": 64, "BN": 64, "BK": 32, "num_warps": 4} if is_gpu else {"BM": 32, "BN": 64, "BK": 64}
    f16 = {"BM": 128, "BN": 128, "BK": 64, "num_warps": 8} if is_gpu else {"BM": 32, "BN": 64, "BK": 64}
    return [
        Row("add", add, (x, y, np.empty_like(x), count), (cdiv(count, 1024),), {"BLOCK": 1024}),
        Row("softmax", softmax, (np.empty_like(image), image, width, width, width), (height,), {"BLOCK": width}),
        Row(
            "layernorm",
            layernorm_forward,
            (image, np.empty_like(image), weights, bias, *sums, width, 1e-5),
            (height,),
            {"COLS": width},
        ),
        product("matmul_f32", np.float32, size, f32),
        *([product("matmul_f32, tiles as of f16", np.float32, size, {**f16, "BK": 32})] if is_gpu else []),
        product("matmul_f16", np.float16, size, f16),
        product("matmul_f16, tiles as of f32", np.float16, size, f32),
        Row(
            "attention",
            attention,
            (q, k, v, np.empty_like(q), 0.18, length * 64, 64, length),
            (length // 64, heads),
            {"BM": 64, "BN": 64, "D": 64, "CAUSAL": False},
        ),
    ]


def milliseconds(call: Callable[[], Any], wait: Callable[[], Any]) -> float:
    """Of one call, of as many as fill a turn."""
    calls = 0
    wait()
    start = time.perf_counter()
    while calls == 0 or time.perf_counter() - start < TURN:
        call()
        calls += 1
    wait()
    return (time.perf_counter() - start) / calls * 1e3


def measured(row: Row, is_gpu: bool, rounds: int) -> tuple[float, float]:
    """(as ever, reproducible)."""
    args, wait = placed(row.args) if is_gpu else (row.args, lambda: None)

    def launch(reproducible: bool) -> None:
        row.kernel[row.grid](*args, **row.options, reproducible=reproducible)

    found = ([], [])
    for _ in range(rounds + 1):  # the first compiles
        for index, reproducible in enumerate((False, True)):
            found[index].append(milliseconds(lambda choice=reproducible: launch(choice), wait))
    return min(found[0][1:]), min(found[1][1:])


def placed(args: Values) -> tuple[Values, Callable[[], Any]]:
    """Arguments on the GPU, and what waits for it."""
    from tilework.runtime.devices.active_driver import driver
    from tilework.runtime.devices.cuda.device import DeviceArray

    moved = tuple(DeviceArray.of(value) if isinstance(value, np.ndarray) else value for value in args)
    return moved, driver.active.get_device_interface().synchronize


def main(words: Sequence[str] | None = None) -> None:
    from tilework.runtime.devices.cuda.driver import CudaDriver

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args(words)
    print("| kernel | device | ms | ms, reproducible | times |\n|---|---|---|---|---|")
    for is_gpu in (False, True) if CudaDriver.is_active() else (False,):
        for row in rows(is_gpu):
            if args.only and row.name not in args.only:
                continue
            before, after = measured(row, is_gpu, args.rounds)
            device = "GPU" if is_gpu else "CPU"
            print(f"| {row.name} | {device} | {before:.3f} | {after:.3f} | {after / before:.2f} |", flush=True)


if __name__ == "__main__":
    main()
