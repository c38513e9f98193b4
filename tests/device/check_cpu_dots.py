"""Dots of every type on this CPU, with the instructions that it has, against NumPy:
`python -m tests.device.check_cpu_dots`.

Each row names the instructions (`targets/cpu/lower/dot_units.py`). The last rows are kernels on all threads, whose
tiles a process has to ask for.
"""

import sys
from typing import Any

import ml_dtypes
import numpy as np

import tilework
import tilework.language as tl
from tests.targets.cpu_rules import ELEMENTS, buffer, run
from tilework.ir import types as ir
from tilework.targets.cpu.lower.dot_rules import Dot, plan_of
from tilework.targets.cpu.target import HostTarget

SHAPES = [
    *(
        (1, 1, 1),
        (2, 4, 8),
        (5, 7, 3),
        (13, 35, 18),
        (16, 16, 16),
        (8, 8, 64),
        (16, 16, 32),
        (32, 16, 64),
        (16, 32, 128),
    ),
    *((32, 32, 64), (64, 64, 8), (48, 48, 64), (64, 128, 256), (128, 128, 128), (96, 80, 160), (256, 64, 66)),
]
TYPES: list[tuple[Any, Any, Any, Any]] = [
    (ml_dtypes.bfloat16, np.float32, ir.bf16, ir.f32),
    (np.float16, np.float32, ir.f16, ir.f32),
    (np.int8, np.int32, ir.i8, ir.i32),
    (np.float32, np.float32, ir.f32, ir.f32),
    (np.float64, np.float64, ir.f64, ir.f64),
    (ml_dtypes.float8_e4m3fn, np.float32, ir.f8E4M3FN, ir.f32),
    (ml_dtypes.float8_e5m2, np.float32, ir.f8E5M2, ir.f32),
]


@tilework.jit
def matmul(c_ptr, a_ptr, b_ptr, N, K, SIZE: tl.constexpr, TOTAL: tl.constexpr):
    rm = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    rn = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    acc = tl.zeros((SIZE, SIZE), TOTAL)
    for k in range(0, K, SIZE):
        rk = k + tl.arange(0, SIZE)
        acc = tl.dot(tl.load(a_ptr + rm[:, None] * K + rk), tl.load(b_ptr + rk[:, None] * N + rn), acc, out_dtype=TOTAL)
    tl.store(c_ptr + rm[:, None] * N + rn, acc)


def operands(rows: int, columns: int, depth: int, dtype: Any, exact: bool) -> tuple[Any, Any]:
    """Integers whose products add up exactly, or any numbers; bytes are always exact."""
    random = np.random.default_rng([rows, columns, depth])
    shapes = (rows, depth), (depth, columns)
    if dtype is np.int8:
        a, b = (random.integers(-128, 128, shape).astype(dtype) for shape in shapes)
        return a, b
    draw = (lambda shape: random.integers(-4, 5, shape)) if exact else random.standard_normal
    a, b = (draw(shape).astype(np.float32).astype(dtype) for shape in shapes)
    return a, b


def check(dtype: Any, total: Any, left: Any, sum: Any) -> bool:
    units, bad = {}, []
    for rows, columns, depth in SHAPES:
        units[plan_of(HostTarget.detect(), Dot(1, rows, columns, depth, left, left, sum)).unit.name] = True
        for exact in (True, False):
            a, b = operands(rows, columns, depth, dtype, exact)
            c = np.random.default_rng(1).integers(-9, 9, (rows, columns)).astype(total)
            wide = np.int64 if dtype is np.int8 else np.float64
            expected = c.astype(wide) + a.astype(wide) @ b.astype(wide)
            scale = np.abs(c.astype(wide)) + np.abs(a.astype(wide)) @ np.abs(b.astype(wide))
            run(f"ttc.dot %a, %b, %c : {buffer(a)}, {buffer(b)}, {buffer(c)}", {"a": a, "b": b, "c": c})
            allowed = 0 if exact or dtype is np.int8 else (1e-14 if total is np.float64 else 1e-5) * scale
            if not np.all(np.abs(c.astype(wide) - expected) <= allowed):
                bad.append((rows, columns, depth))
    print(
        f"{ELEMENTS[np.dtype(dtype)]:10} {', '.join(units):40} {f'WRONG at {bad}' if bad else 'as NumPy'}", flush=True
    )
    return not bad


def check_threads(dtype: Any, total: Any, kind: Any) -> bool:
    good = True
    for size in (16, 32, 64, 128):
        a, b = operands(1024, 1024, 512, dtype, exact=True)
        c = np.zeros((1024, 1024), total)
        matmul[(1024 // size, 1024 // size)](c, a, b, 1024, 512, size, kind)
        good &= np.array_equal(c, (a.astype(np.float64) @ b.astype(np.float64)).astype(total))
    print(f"{ELEMENTS[np.dtype(dtype)]:10} {'kernels on all threads':40} {'as NumPy' if good else 'WRONG'}", flush=True)
    return good


def main() -> int:
    host = HostTarget.detect()
    print(f"{host.cpu}: {', '.join(sorted(host.features | host.dot_features))}")
    found = [check(*row) for row in TYPES]
    found += [
        check_threads(dtype, total, kind) for (dtype, total, *_), kind in zip(TYPES, (tl.float32, tl.float32, tl.int32))
    ]
    return 0 if all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
