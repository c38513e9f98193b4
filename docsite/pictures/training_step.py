"""The program of the profiler's picture: a step of a small network, with kernels of `examples/`."""

import numpy as np

import tilework.profiler as proton
from examples.add import add
from examples.attention import attention
from examples.layernorm import layernorm_forward
from examples.matmul import matmul
from examples.softmax import softmax

ROWS, COLUMNS, HEADS, LENGTH, DEPTH = 1024, 512, 8, 512, 64
STEPS = 10
KERNELS = (add, attention, layernorm_forward, matmul, softmax)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def main() -> None:
    rng = np.random.default_rng(0)
    x, weights, out = (
        rng.standard_normal(shape, np.float32) for shape in ((ROWS, COLUMNS), (COLUMNS, COLUMNS), (ROWS, COLUMNS))
    )
    scale, shift, mean, deviation = np.ones(COLUMNS, np.float32), zeros(COLUMNS), zeros(ROWS), zeros(ROWS)
    q, k, v, attended = ((rng.standard_normal((HEADS, LENGTH, DEPTH)) / 2).astype(np.float16) for _ in range(4))
    grads, state = zeros(1 << 22), zeros(1 << 22)
    for _ in range(STEPS):
        with proton.scope("attention"):
            attention[(LENGTH // 32, HEADS)](
                q, k, v, attended, 0.18, LENGTH * DEPTH, DEPTH, LENGTH, BM=32, BN=32, D=DEPTH, CAUSAL=False
            )
        with proton.scope("feed forward"):
            layernorm_forward[(ROWS,)](x, out, scale, shift, mean, deviation, COLUMNS, 1e-5, COLS=COLUMNS)
            tiles = (ROWS // 64) * (COLUMNS // 64)
            matmul[(tiles,)](
                out, weights, x, ROWS, COLUMNS, COLUMNS, COLUMNS, COLUMNS, COLUMNS, BM=64, BN=64, BK=32, GROUP=8
            )
            softmax[(ROWS,)](out, x, COLUMNS, COLUMNS, COLUMNS, BLOCK=COLUMNS)
        with proton.scope("optimizer"):
            add[(grads.size // 4096,)](grads, state, grads, grads.size, BLOCK=4096)


if __name__ == "__main__":
    main()
