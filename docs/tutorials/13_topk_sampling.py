"""# Top-k and sampling

The last step of a language model: from one number for each word of a vocabulary, choose the next word. This tutorial
finds the `k` largest numbers of a long row with their indices, in two steps, and samples from them with a temperature
and a limit of probability (top-p), without sorting the row.

    python 13_topk_sampling.py
"""

import sys

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, assert_close, do_bench, perf_report

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)

# %%
# ## Values with their indices
#
# `tl.topk(x, k)` returns the `k` largest values of a tile, the largest first, but not where they were. One way to find
# out is a *key* of 64 bits that is compared as an integer: the value in the upper half, the index in the lower one.
#
# The bits of a positive float, read as an integer, are in the order of the floats. Those of negative floats are in
# the opposite order, so all bits but the sign are inverted. Of equal values the first must win, as in NumPy's
# `argmax`: the lower half is large for a small index.


@tilework.jit
def key_of(value, index):
    bits = value.to(tl.int32, bitcast=True)
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    return (ordered.to(tl.int64) << 32) | (0x7FFFFFFF - index).to(tl.int64)


@tilework.jit
def value_of(key):
    ordered = (key >> 32).to(tl.int32)
    return (ordered ^ ((ordered >> 31) & 0x7FFFFFFF)).to(tl.float32, bitcast=True)


@tilework.jit
def index_of(key):
    return 0x7FFFFFFF - (key & 0x7FFFFFFF).to(tl.int32)


# %%
# ## Two steps
#
# A vocabulary has 50 000 words or more, and sorting networks grow faster than their tiles. So each program finds the
# `k` largest of one block, and a second kernel finds the `k` largest of these: whatever is among the `k` largest of
# the row is also among the `k` largest of its block. A block with fewer than `k` elements is filled with minus
# infinity.


@tilework.jit
def block_topk_kernel(x_ptr, keys_ptr, n, K: tl.constexpr, BLOCK: tl.constexpr):
    row, block = tl.program_id(0), tl.program_id(1)
    i = block * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf"))
    keys = tl.topk(key_of(x, i), K)
    target = (row * tl.num_programs(1) + block) * K
    tl.store(keys_ptr + target + tl.arange(0, K), keys)


@tilework.jit
def row_topk_kernel(
    keys_ptr, values_ptr, indices_ptr, n, K: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    lowest = -0x8000000000000000
    keys = tl.topk(tl.load(keys_ptr + row * n + i, mask=i < n, other=lowest), K)
    out = row * K + tl.arange(0, K)
    tl.store(values_ptr + out, value_of(keys))
    tl.store(indices_ptr + out, index_of(keys))


def topk(x: np.ndarray, k: int, block: int = 2048) -> tuple[np.ndarray, np.ndarray]:
    """The `k` (a power of two) largest of each row, descending, and their indices."""
    rows, n = x.shape
    blocks = tilework.cdiv(n, block)
    keys = np.empty((rows, blocks * k), "i8")
    values, indices = np.empty((rows, k), "f4"), np.empty((rows, k), "i4")
    block_topk_kernel[(rows, blocks)](x, keys, n, K=k, BLOCK=block)
    width = tilework.next_power_of_2(blocks * k)
    row_topk_kernel[(rows,)](keys, values, indices, blocks * k, K=k, BLOCK=width)
    return values, indices


def topk_numpy(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    some = np.argpartition(-x, k, axis=1)[:, :k]  # the k largest in any order
    values = np.take_along_axis(x, some, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(values, order, axis=1), np.take_along_axis(
        some, order, axis=1
    )


logits = rng.standard_normal((3, 10_000), dtype="f4") * 3
values, indices = topk(logits, 16)
assert np.array_equal(values, topk_numpy(logits, 16)[0])
assert np.array_equal(np.take_along_axis(logits, indices, axis=1), values)
assert np.array_equal(indices[:, 0], logits.argmax(axis=1))
print("the first row's largest:", values[0, :4], "at", indices[0, :4])

# %%
# ## Sampling without a sum
#
# A word is to be sampled with probability `softmax(logits / temperature)`. The usual way computes a softmax and its
# running sums, and searches these for a random number. The *Gumbel* trick needs none of this: add `-log(-log(u))` to
# each logit, with an independent uniform `u` for each, and take the largest. Its index has exactly that distribution.
#
# So sampling is a maximum, and a maximum can be computed block by block: `best` holds for each lane of the tile the
# largest so far, and `index` where that was.


@tilework.jit
def gumbel(seed, offset):
    return -tl.log(-tl.log(tl.maximum(tl.rand(seed, offset), 1e-10)))


@tilework.jit
def sample_kernel(x_ptr, out_ptr, n, temperature, seed, BLOCK: tl.constexpr):
    draw = tl.program_id(0)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    index = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))
        x = x / temperature + gumbel(seed, draw * n + i)
        index = tl.where(x > best, i, index)
        best = tl.maximum(x, best)
    _, lane = tl.max(best, axis=0, return_indices=True)
    here = tl.arange(0, BLOCK) == lane
    tl.store(out_ptr + draw, tl.sum(tl.where(here, index, 0), axis=0))


draws = np.empty(2_000 if QUICK else 20_000, "i4")
few = np.array([1.0, 3.0, 2.0, -1.0, 0.0, 2.5], "f4")
shares = {}
for temperature in (0.5, 1.0, 2.0):
    sample_kernel[(draws.size,)](few, draws, few.size, temperature, 7, BLOCK=16)
    shares[temperature] = np.bincount(draws, minlength=few.size) / draws.size
    weights = np.exp(few / temperature)
    exact = weights / weights.sum()
    assert_close(shares[temperature], exact, atol=0.04)
    rounded = (np.array2string(one.round(3)) for one in (shares[temperature], exact))
    print(f"temperature {temperature}: drawn {next(rounded)}, softmax {next(rounded)}")

# %%
# ## Top-k and top-p
#
# There are many rare words, and together they are not that rare. To keep them out, draw only from the `k` most likely
# words, and of these from the first whose probabilities sum to `p`. The candidates are sorted, so their running sum
# is `tl.cumsum`. A word stays if the sum *before* it is below `p`: then the most likely word always stays.


@tilework.jit
def sample_from_kernel(
    values_ptr, indices_ptr, out_ptr, temperature, p, seed, K: tl.constexpr
):
    row, i = tl.program_id(0), tl.arange(0, K)
    x = tl.load(values_ptr + row * K + i) / temperature
    weights = tl.exp(x - tl.max(x, axis=0))
    probability = weights / tl.sum(weights, axis=0)
    before = tl.cumsum(probability, axis=0) - probability
    x = tl.where(before < p, x + gumbel(seed, row * K + i), -float("inf"))
    _, chosen = tl.max(x, axis=0, return_indices=True)
    tl.store(out_ptr + row, tl.load(indices_ptr + row * K + chosen))


def sample(
    logits: np.ndarray, k: int, p: float, temperature: float, seed: int
) -> np.ndarray:
    values, indices = topk(logits, k)
    out = np.empty(len(logits), "i4")
    sample_from_kernel[(len(logits),)](values, indices, out, temperature, p, seed, K=k)
    return out


rows = np.repeat(logits[:1], 200, axis=0)
chosen = sample(rows, k=16, p=0.5, temperature=1.0, seed=3)
values, indices = topk(logits[:1], 16)
weights = np.exp(values[0] - values[0, 0])
kept = np.cumsum(weights / weights.sum()) - weights / weights.sum() < 0.5
assert set(chosen) <= set(indices[0][kept])
print(f"top-p keeps {kept.sum()} of 16 words; 200 draws gave {len(set(chosen))} of them")
assert np.array_equal(sample(logits, 16, 0.0, 1.0, 3), logits.argmax(axis=1))

# %%
# ## How fast is it?
#
# The 16 most likely words of each row of a batch. NumPy's `argpartition` runs on one core.

WORDS = 4_096 if QUICK else 50_304


@perf_report(
    Benchmark(
        x_names=["rows"],
        x_vals=[1, 4] if QUICK else [1, 4, 16, 64],
        line_arg="way",
        line_vals=[topk, topk_numpy],
        line_names=["tilework", "NumPy"],
        plot_name=f"The 16 largest of {WORDS} float32",
        xlabel="rows",
        ylabel="milliseconds (less is better)",
        x_log=True,
        y_log=True,
        args={},
    )
)
def milliseconds(rows: int, way) -> float:
    x = rng.standard_normal((rows, WORDS), dtype="f4")
    return do_bench(lambda: way(x, 16), warmup=5, rep=30, return_mode="min")


milliseconds.run(print_data=True, save_precision=3)

# %%
# ## Try it
#
# - Other blocks: `topk(x, 16, block=512)` has more candidates in the second step, and smaller sorts in the first.
# - A penalty for words that were just used: load a tile of counts beside the logits, and subtract.
# - `tl.argmax(x, axis=0)` is sampling with temperature 0: which of equal values does it choose?
#
# Next: [paged attention](14_paged_attention.py).
