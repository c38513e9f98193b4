"""# Paged attention for decoding

A server that writes many answers at once keeps the keys and values of all words so far, in pages of a fixed size that
belong to one answer or another. This tutorial computes the attention of one new word to them: through a table of
pages, with several heads of queries for one head of keys, and with the work of a long answer split among programs.

    python 14_paged_attention.py
"""

import sys
from dataclasses import dataclass

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, assert_close, do_bench, perf_report

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)

# %%
# ## Pages
#
# The memory for keys is one array `[pages, PAGE, heads, D]`, and so is the memory for values. A sequence of 70 words
# has five pages of 16, anywhere in the array; row `s` of `table` lists them in order. When a sequence grows past its
# last page it gets any free one, and when it ends its pages are free: nothing is copied, and no memory is reserved
# for words that may never come.


@dataclass
class Cache:
    """Keys and values in pages, the pages of each sequence, and the lengths of the sequences."""

    k: np.ndarray
    v: np.ndarray
    table: np.ndarray
    lengths: np.ndarray


PAGE, HEADS, GROUP, D = 16, 2, 4, 64  # GROUP heads of queries share a head of keys


def random_cache(lengths: list[int]) -> Cache:
    counts = [tilework.cdiv(length, PAGE) for length in lengths]
    free = rng.permutation(sum(counts) + 3).astype("i4")  # pages in no order
    table = np.zeros((len(lengths), max(counts)), "i4")
    for row, count in enumerate(counts):
        table[row, :count], free = free[:count], free[count:]
    k, v = rng.standard_normal((2, sum(counts) + 3, PAGE, HEADS, D), dtype="f4")
    return Cache(k, v, table, np.array(lengths, "i4"))


cache = random_cache([70, 1, 16, 131])
print("pages of the first sequence:", cache.table[0, :5])

# %%
# ## One word, all keys
#
# The loop is that of [attention](06_attention.py): a running maximum, a running sum, a running result. What is
# different:
#
# - There is one query for each sequence and head. `GROUP` heads of queries share a head of keys (*grouped-query
#   attention*), so one program takes all heads of a group and loads each key once. `tl.dot` needs a tile of at least
#   16 rows on a GPU: the rows past `GROUP` are zero, and are not stored.
# - One step of the loop is one page. Its number comes from the table: an address that is computed from a loaded
#   number, which no `arange` could describe.
# - A launch with one program for each sequence and head of keys may be too small for the machine, especially with few
#   sequences. `SPLITS` programs share the pages of a sequence. Each writes its result with its maximum and its sum.


@tilework.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, out_ptr, peaks_ptr, totals_ptr, scale, pages,
    HEADS: tl.constexpr, GROUP: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr,
    PAGE: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    sequence, head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row, d, token = tl.arange(0, ROWS), tl.arange(0, D), tl.arange(0, PAGE)
    query = (sequence * HEADS + head) * GROUP + row
    is_query = row < GROUP
    q = tl.load(q_ptr + query[:, None] * D + d[None, :], mask=is_query[:, None], other=0.0)
    length = tl.load(lengths_ptr + sequence)
    share = tl.cdiv(tl.cdiv(length, PAGE), SPLITS)
    end = tl.minimum((split + 1) * share, tl.cdiv(length, PAGE))
    peak = tl.full((ROWS,), -1e30, tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, D), tl.float32)
    for page in range(split * share, end):
        at = tl.load(table_ptr + sequence * pages + page).to(tl.int64)
        offsets = ((at * PAGE + token) * HEADS + head)[:, None] * D + d[None, :]
        exists = page * PAGE + token < length
        k = tl.load(k_ptr + offsets, mask=exists[:, None], other=0.0)
        scores = tl.dot(q, k.T) * (scale * 1.4426950408889634)
        scores = tl.where(exists[None, :], scores, -float("inf"))
        new_peak = tl.maximum(peak, tl.max(scores, axis=1))
        weights = tl.exp2(scores - new_peak[:, None])
        correction = tl.exp2(peak - new_peak)
        total = total * correction + tl.sum(weights, axis=1)
        v = tl.load(v_ptr + offsets, mask=exists[:, None], other=0.0)
        acc = tl.dot(weights.to(v.dtype), v, acc * correction[:, None])
        peak = new_peak
    part = query * SPLITS + split
    tl.store(out_ptr + part[:, None] * D + d[None, :], acc, mask=is_query[:, None])
    tl.store(peaks_ptr + part, peak, mask=is_query)
    tl.store(totals_ptr + part, total, mask=is_query)


# %%
# ## Adding up the splits
#
# Each split has its own maximum. To be added, they need a common maximum, the largest of all: a sum and a result with
# maximum `m` count `exp2(m - largest)` times. A split without any page has sum 0 and the maximum `-1e30`, and adds
# nothing. (With minus infinity as the first maximum there would be `inf - inf`, which is NaN.)


@tilework.jit
def combine_kernel(
    parts_ptr, peaks_ptr, totals_ptr, out_ptr, D: tl.constexpr, SPLITS: tl.constexpr
):
    query = tl.program_id(0)
    part, d = query * SPLITS + tl.arange(0, SPLITS), tl.arange(0, D)
    peaks = tl.load(peaks_ptr + part)
    factor = tl.exp2(peaks - tl.max(peaks, axis=0))
    total = tl.sum(tl.load(totals_ptr + part) * factor, axis=0)
    parts = tl.load(parts_ptr + part[:, None] * D + d[None, :])
    result = tl.sum(parts * factor[:, None], axis=0) / total
    tl.store(out_ptr + query * D + d, result)


def decode(q, cache: Cache, out, parts, statistics, splits: int) -> None:
    """`q` and `out`: [sequences, heads, GROUP, D]; arrays of NumPy, or tensors of torch."""
    sequences, pages = cache.table.shape
    peaks, totals = statistics[0], statistics[1]
    grid = (sequences, HEADS, splits)
    decode_kernel[grid](
        q, cache.k, cache.v, cache.table, cache.lengths, parts, peaks, totals, D**-0.5, pages,
        HEADS=HEADS, GROUP=GROUP, ROWS=16, D=D, PAGE=PAGE, SPLITS=splits,
    )  # fmt: skip
    queries = (sequences * HEADS * GROUP,)
    combine_kernel[queries](parts, peaks, totals, out, D=D, SPLITS=splits)


def buffers(sequences: int, splits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The result, the results of the splits, and their maxima and sums."""
    shape = (sequences, HEADS, GROUP)
    return (
        np.empty((*shape, D), "f4"),
        np.empty((*shape, splits, D), "f4"),
        np.empty((2, *shape, splits), "f4"),
    )


# %%
# ## What NumPy does
#
# NumPy collects the pages of each sequence, then computes a softmax and two products.


def decode_numpy(q: np.ndarray, cache: Cache) -> np.ndarray:
    out = np.empty_like(q)
    for s, length in enumerate(cache.lengths):
        used = cache.table[s, : tilework.cdiv(int(length), PAGE)]
        k, v = (pages[used].reshape(-1, HEADS, D)[:length] for pages in (cache.k, cache.v))
        scores = q[s] @ k.transpose(1, 2, 0) * np.float32(D**-0.5)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        out[s] = weights @ v.transpose(1, 0, 2)
    return out


q = rng.standard_normal((4, HEADS, GROUP, D), dtype="f4")
expected = decode_numpy(q, cache)
for splits in (1, 2, 8):
    out, parts, statistics = buffers(4, splits)
    decode(q, cache, out, parts, statistics, splits)
    assert_close(out, expected, atol=1e-5)
    difference = np.abs(out - expected).max()
    print(f"{splits} splits: largest difference from NumPy {difference:.1e}")

# %%
# ## How fast is it?
#
# A step reads all keys and values once, `2 * 4 * HEADS * D` bytes for each word: what counts is how fast memory is.

WORDS = [64, 256] if QUICK else [256, 1024, 4096]


@perf_report(
    Benchmark(
        x_names=["words"],
        x_vals=WORDS,
        line_arg="splits",
        line_vals=[1, 8, 0],
        line_names=["tilework", "tilework, 8 splits", "NumPy"],
        plot_name="Decoding 4 sequences, float32",
        xlabel="words of each sequence",
        ylabel="GB/s (more is better)",
        x_log=True,
        args={},
    )
)
def gigabytes_per_second(words: int, splits: int) -> float:
    cache = random_cache([words] * 4)
    q = rng.standard_normal((4, HEADS, GROUP, D), dtype="f4")
    made = buffers(4, splits or 1)
    call = lambda: decode(q, cache, *made, splits) if splits else decode_numpy(q, cache)
    ms = do_bench(call, warmup=5, rep=30, return_mode="min")
    return 4 * words * 2 * 4 * HEADS * D / ms / 1e6


gigabytes_per_second.run(print_data=True, save_precision=1)

# %%
# ## On a GPU
#
# The same function with tensors of torch in float16: 16 sequences. Without a GPU this cell only says so.


@perf_report(
    Benchmark(
        x_names=["words"],
        x_vals=[256, 1024, 4096, 16384],
        line_arg="splits",
        line_vals=[1, 8, 32],
        line_names=["1 split", "8 splits", "32 splits"],
        plot_name="Decoding 16 sequences on the GPU, float16",
        xlabel="words of each sequence",
        ylabel="GB/s (more is better)",
        x_log=True,
        args={},
    )
)
def gpu_gigabytes_per_second(words: int, splits: int, device: str = "cuda") -> float:
    import torch

    on_host = random_cache([words] * 16)
    q = rng.standard_normal((16, HEADS, GROUP, D), dtype="f4")
    on_gpu = lambda x: torch.from_numpy(x).to(device)
    cache = Cache(
        on_gpu(on_host.k).half(),
        on_gpu(on_host.v).half(),
        on_gpu(on_host.table),
        on_gpu(on_host.lengths),
    )
    out, parts, statistics = (on_gpu(x) for x in buffers(16, splits))
    half = on_gpu(q).half()
    decode(half, cache, out, parts, statistics, splits)
    assert_close(out, decode_numpy(q, on_host), atol=0.01)
    call = lambda: decode(half, cache, out, parts, statistics, splits)
    ms = do_bench(call, warmup=10, rep=30, return_mode="median")
    return 16 * words * 2 * 2 * HEADS * D / ms / 1e6


if tilework.runtime.driver.active.get_current_target().backend == "cpu":
    print("There is no GPU here.")
else:
    gpu_gigabytes_per_second.run(print_data=True, save_precision=1)

# %%
# ## Try it
#
# - A sliding window of the last 128 words: where does the loop begin, and what is added to `exists`?
# - The new word's key and value must be in the cache first: a kernel with a program for each sequence stores them at
#   page `table[s, (length - 1) // PAGE]`, word `(length - 1) % PAGE`.
# - Keys in int8 with a scale for each page halve the bytes: [quantised weights](11_int4_matmul.py) shows how.
