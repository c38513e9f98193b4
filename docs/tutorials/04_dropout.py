"""# Dropout and random numbers

Dropout sets elements to zero at random. Which ones must be known again in the backward pass; a kernel can compute them
again instead of storing a mask, because its random numbers are a *function* of a seed and a position.

    python 04_dropout.py
"""

import sys

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, do_bench, perf_report

QUICK = "--quick" in sys.argv

# %%
# ## The kernel
#
# `tl.rand(seed, offsets)` is a number between 0 and 1 for each offset, computed by a few rounds of multiplications
# (Philox). There is no state: programs need to know nothing of each other, and the same seed and offset give the same
# number in every launch, on every device.


@tilework.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    keep = tl.rand(seed, offsets) > p
    tl.store(out_ptr + offsets, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def dropout(x: np.ndarray, p: float, seed: int, block: int = 1024) -> np.ndarray:
    out = np.empty_like(x)
    dropout_kernel[(tilework.cdiv(x.size, block),)](x, out, x.size, p, seed, BLOCK=block)
    return out


ones = np.ones(100_000, "f4")
first, again, other = (
    dropout(ones, 0.3, 7),
    dropout(ones, 0.3, 7, block=256),
    dropout(ones, 0.3, 8),
)
assert np.array_equal(first, again), (
    "the numbers depend on seed and offset only, not on the block size"
)
print(f"dropped: {np.mean(first == 0):.4f} of all, mean of the result: {first.mean():.4f}")
print(
    f"seeds 7 and 8 agree in {np.mean((first == 0) == (other == 0)):.4f} of all elements (0.58 if they are independent)"
)

# %%
# ## What was dropped
#
# The same elements under three seeds, half of them dropped.

side = 12 if QUICK else 24
kept = {
    seed: dropout(np.ones(side * side, "f4"), 0.5, seed).reshape(side, side)
    for seed in (1, 2, 3)
}
for rows in zip(*kept.values(), strict=True):
    print("   ".join("".join(".#"[int(one > 0)] for one in row) for row in rows))

# %%
# ## Other distributions
#
# `tl.randn` samples the normal distribution, `tl.randint` gives 32 random bits, and `tl.rand4x` and its relatives
# return four tiles at about the cost of one. Below is a histogram of `tl.randn` beside the curve that it should
# follow.


@tilework.jit
def normal_kernel(out_ptr, n, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.randn(seed, offsets), mask=offsets < n)


def normal(n: int, seed: int) -> np.ndarray:
    out = np.empty(n, "f4")
    normal_kernel[(tilework.cdiv(n, 1024),)](out, n, seed, BLOCK=1024)
    return out


samples = normal(20_000 if QUICK else 1_000_000, 2)
density, edges = np.histogram(samples, bins=33, range=(-4, 4), density=True)
middles = (edges[:-1] + edges[1:]) / 2
exact = np.exp(-(middles**2) / 2) / np.sqrt(2 * np.pi)
print(f"mean {samples.mean():+.4f}, standard deviation {samples.std():.4f}")
print(
    f"largest distance of the histogram from the density: {np.abs(density - exact).max():.4f}"
)
# %%
# ## Four random numbers at once
#
# Philox generates 128 random bits at a time, of which `tl.rand` uses 32. `tl.rand4x` gives all four tiles: a program
# that drops four tiles of elements needs a quarter of the rounds. (It drops other elements than above, but as many.)


@tilework.jit
def dropout4_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    start = tl.program_id(0) * 4 * BLOCK
    lane = tl.arange(0, BLOCK)
    uniform = tl.rand4x(seed, tl.program_id(0) * BLOCK + lane)
    for part in tl.static_range(4):
        offsets = start + part * BLOCK + lane
        x = tl.load(x_ptr + offsets, mask=offsets < n)
        tl.store(
            out_ptr + offsets,
            tl.where(uniform[part] > p, x / (1 - p), 0.0),
            mask=offsets < n,
        )


def dropout4(x: np.ndarray, p: float, seed: int, block: int = 1024) -> np.ndarray:
    out = np.empty_like(x)
    dropout4_kernel[(tilework.cdiv(x.size, 4 * block),)](
        x, out, x.size, p, seed, BLOCK=block
    )
    return out


four = dropout4(ones, 0.3, 7)
print(f"dropped: {np.mean(four == 0):.4f} of all, mean of the result: {four.mean():.4f}")

# %%
# ## How fast is it?
#
# NumPy generates a uniform float32 for each element, compares, and multiplies: four arrays pass through memory. Its
# generator is one sequence, so it runs on one core. All of them write into a new array.

n = 2**16 if QUICK else 2**21
x, rng = np.ones(n, "f4"), np.random.default_rng(0)
dropout_numpy = lambda: x * (rng.random(n, dtype="f4") > 0.3) / np.float32(0.7)
calls = {
    ("dropout, tl.rand", "tilework"): lambda: dropout(x, 0.3, 7),
    ("dropout, tl.rand", "NumPy"): dropout_numpy,
    ("dropout, tl.rand4x", "tilework"): lambda: dropout4(x, 0.3, 7),
    ("dropout, tl.rand4x", "NumPy"): dropout_numpy,
    ("normal, tl.randn", "tilework"): lambda: normal(n, 7),
    ("normal, tl.randn", "NumPy"): lambda: rng.standard_normal(n, dtype="f4"),
}


@perf_report(
    Benchmark(
        x_names=["what"],
        x_vals=["dropout, tl.rand", "dropout, tl.rand4x", "normal, tl.randn"],
        line_arg="library",
        line_vals=["tilework", "NumPy"],
        line_names=["tilework", "NumPy"],
        plot_name="Random numbers, float32",
        ylabel="million elements/s (more is better)",
        args={},
    )
)
def million_elements_per_second(what: str, library: str) -> float:
    ms = do_bench(calls[what, library], warmup=5, rep=30, return_mode="min")
    return n / ms / 1e3


million_elements_per_second.run(print_data=True, save_precision=0)

# %%
# ## Try it
#
# - The gradient of dropout is dropout of the gradient, with the same seed: `dropout(gradient, 0.3, 7)`.
# - A different seed for each row of a matrix: `tl.load(seeds + row)` as the seed, and the column as the offset.
#
# Next: [layer norm with gradients](05_layer_norm.py).
