"""The speed of the micro-kernels of `ttc.dot` relative to the machine's limit, beside NumPy on one thread.

    python -m benchmarks.dot_microkernel

The limit is measured in the same run: fused multiply-adds on registers, enough of them in flight to hide their latency.
NumPy's BLAS is limited to one thread through the environment, so this program starts itself again with it set.
"""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tilework.ir import types as ir
from tilework.targets.cpu.lower.dot_rules import Dot, emit_dot, plan_of
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.compile import data_layout, host_target_machine, jit_load, to_object
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import Type, f32, f64, i64, ptr, vector, void
from tilework.targets.llvm.values import constant

SIZES = [
    (16, 16, 16),
    (32, 32, 32),
    (64, 64, 64),
    (128, 128, 64),
    (128, 256, 64),
    (128, 128, 128),
    (1, 64, 64),
    (256, 512, 128),
]
TYPES: list[tuple[Any, Any, Any, Any]] = [
    (ir.f32, ir.f32, np.float32, np.float32),
    (ir.f64, ir.f64, np.float64, np.float64),
    (ir.f16, ir.f32, np.float16, np.float32),
    (ir.bf16, ir.f32, ml_dtypes.bfloat16, np.float32),
    (ir.f8E4M3FN, ir.f32, ml_dtypes.float8_e4m3fn, np.float32),
    (ir.i8, ir.i32, np.int8, np.int32),
]
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def load(module: Module, name: str, arguments: int) -> Callable[..., None]:
    machine = host_target_machine(features=",".join(f"+{name}" for name in sorted(HostTarget.detect().features)))
    library = jit_load(to_object(module.text(), 1, machine), [name])
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(library[name])
    function.library = library  # type: ignore[attr-defined]
    return function


def repeated(module: Module, dot: Dot, target: HostTarget) -> None:
    """``run(a, b, c, scratch, times)``, so that the cost of a ctypes call does not count."""
    emit_dot(module, target, dot, plan_of(target, dot))
    function = module.function("run", void, [(ptr, name) for name in "abcs"] + [(i64, "times")])
    b = Builder(function)
    with b.loop(constant(i64, 0), function.args[4]):
        b.call(dot.name, void, function.args[:4])
    b.ret()


def best(call: Callable[[], Any], work: float, rounds: int = 60) -> float:
    """Work per second of the fastest round."""
    call()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return work / min(times)


def peak(element: Type, target: HostTarget) -> float:
    """Operations per second of multiply-adds that touch no memory."""
    module = Module("peak", data_layout=data_layout(host_target_machine()))
    lanes, chains, times = target.lanes(element.bits), 16, 50_000
    function = module.function("run", void, [(ptr, "out")])
    b = Builder(function)
    pointers = [b.gep(function.args[0], number * target.vector_bytes) for number in range(chains)]
    initial = [b.load(vector(element, lanes), address, align=8) for address in pointers]
    with b.loop_carrying(constant(i64, 0), times, 1, initial) as loop:
        loop.next([b.fma(initial[0], initial[1], value) for value in loop.carried])
    for value, address in zip(loop.results, pointers, strict=True):
        b.store(value, address, align=8)
    b.ret()
    run, out = load(module, "run", 1), np.zeros(chains * target.vector_bytes, np.uint8)
    return best(lambda: run(out.ctypes.data), 2.0 * lanes * chains * times)


def ours(dot: Dot, dtype: Any, total: Any, target: HostTarget) -> float:
    module = Module("dot", data_layout=data_layout(host_target_machine()))
    repeated(module, dot, target)
    run = load(module, "run", 5)
    random = np.random.default_rng(0)
    a = random.integers(-4, 4, (dot.rows, dot.depth)).astype(dtype)
    b = random.integers(-4, 4, (dot.depth, dot.columns)).astype(dtype)
    c = np.zeros((dot.rows, dot.columns), total)
    scratch = np.zeros(plan_of(target, dot).scratch_bytes + 64, np.uint8)
    work = 2.0 * dot.rows * dot.columns * dot.depth
    times = max(1, int(2e7 / work))
    addresses = [array.ctypes.data for array in (a, b, c)] + [-(-scratch.ctypes.data // 64) * 64]
    run(*addresses, 1)
    assert np.array_equal(c, (a.astype(np.float64) @ b.astype(np.float64)).astype(total)), f"{dot.name} is wrong"
    return best(lambda: run(*addresses, times), work * times)


def numpys(dot: Dot, dtype: Any) -> float:
    a = np.ones((dot.rows, dot.depth), dtype)
    b = np.ones((dot.depth, dot.columns), dtype)
    c = np.zeros((dot.rows, dot.columns), dtype)
    work = 2.0 * dot.rows * dot.columns * dot.depth
    times = max(1, int(2e7 / work))

    def call() -> None:
        for _ in range(times):
            np.matmul(a, b, out=c)

    return best(call, work * times)


def main() -> None:
    if any(os.environ.get(name) != "1" for name in THREADS):
        command = [sys.executable, "-m", "benchmarks.dot_microkernel"]
        sys.exit(subprocess.run(command, env=os.environ | dict.fromkeys(THREADS, "1")).returncode)
    target = HostTarget.detect()
    peaks = {f32: peak(f32, target), f64: peak(f64, target)}
    print(f"{target.cpu}: peak f32 {peaks[f32] / 1e9:.1f}, f64 {peaks[f64] / 1e9:.1f} GFLOP/s (registers, one core)")
    print(f"{'types':>14} {'M x N x K':>14} {'block':>6} {'GFLOP/s':>8} {'of peak':>8} {'NumPy':>8}")
    for operand, total, dtype, total_dtype in TYPES:
        for rows, columns, depth in SIZES:
            dot = Dot(1, rows, columns, depth, operand, operand, total)
            block = plan_of(target, dot).block
            rate = ours(dot, dtype, total_dtype, target)
            limit = peaks[f64 if total == ir.f64 else f32]
            numpy_rate = f"{numpys(dot, dtype) / 1e9:8.1f}" if operand in (ir.f32, ir.f64) else f"{'-':>8}"
            size = f"{rows}x{columns}x{depth}"
            shape = f"{operand!s:>9} {total!s:>4} {size:>14} {block.rows}x{block.columns:<4}"
            print(f"{shape} {rate / 1e9:8.1f} {rate / limit:8.0%} {numpy_rate}", flush=True)


if __name__ == "__main__":
    main()
