"""Dropout that stores no mask: the random numbers are a function of the seed and the position (Philox)."""

import numpy as np

import tilework
import tilework.language as tl
from examples.case import Arrays, Case


@tilework.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def philox(seed: int, offsets: np.ndarray) -> np.ndarray:
    """The first of the four 32-bit outputs of Philox-4x32-10."""
    c = [offsets.astype("u8"), *(np.zeros(len(offsets), "u8") for _ in range(3))]
    k = [seed & 0xFFFFFFFF, seed >> 32]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (b >> np.uint64(32)) ^ c[1] ^ np.uint64(k[0]),
            b & low,
            (a >> np.uint64(32)) ^ c[3] ^ np.uint64(k[1]),
            a & low,
        ]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c[0].astype("u4")


def reference(a: Arrays) -> Arrays:
    bits = philox(a["seed"], np.arange(a["n"])).view("i4")
    uniform = np.where(bits < 0, -bits - 1, bits).astype("f4") * np.float32(4.6566127342e-10)
    p = np.float32(a["p"])
    return {"out_ptr": np.where(uniform > p, a["x_ptr"] / (1 - p), np.float32(0))}


CASES = [
    Case(
        name="dropout",
        kernel=dropout,
        signature={"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "p": "fp32", "seed": "i32"},
        constexprs={"BLOCK": 256},
        grid=(4,),
        arguments=lambda rng: {
            "x_ptr": rng.standard_normal(1000, dtype="f4"),
            "out_ptr": rng.standard_normal(1000, dtype="f4"),
            "n": 1000,
            "p": 0.3,
            "seed": 123,
        },
        expected=reference,
        divisible=("x_ptr", "out_ptr"),
    )
]
