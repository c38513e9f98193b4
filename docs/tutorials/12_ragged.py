"""# Segmented and ragged data

Sentences of different lengths, edges of a graph sorted by node, rows of a sparse matrix: the data are one array, and a
second one says where each part begins. A program for each part, a program for each block of elements, and how the work
is kept even.

    python 12_ragged.py
"""

import itertools
import sys

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, assert_close, do_bench, perf_report

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)

# %%
# ## One array and its offsets
#
# A list of arrays of different lengths is not an array. Padding all of them to the longest wastes memory and work, so
# they are stored one after another. `offsets` has one element more than there are segments: segment `s` is
# `values[offsets[s]:offsets[s + 1]]`, and a segment may be empty.


def ragged(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype("i4")
    return rng.standard_normal(int(offsets[-1]), dtype="f4"), offsets


lengths = np.array([3, 0, 700, 12, 1, 128, 129, 40])
values, offsets = ragged(lengths)
print("lengths:", lengths)
print("offsets:", offsets)

# %%
# ## A program for each segment
#
# The program loads its two offsets and goes through its segment in steps of `BLOCK`. How many steps that are differs
# from program to program: a loop whose bounds are loaded from memory is a loop like any other. Only the last step has
# elements to mask, and for an empty segment the loop runs no step at all.


@tilework.jit
def segment_sums_kernel(values_ptr, offsets_ptr, out_ptr, BLOCK: tl.constexpr):
    segment = tl.program_id(0)
    start = tl.load(offsets_ptr + segment)
    end = tl.load(offsets_ptr + segment + 1)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(start, end, BLOCK):
        i = first + tl.arange(0, BLOCK)
        total += tl.load(values_ptr + i, mask=i < end, other=0.0)
    tl.store(out_ptr + segment, tl.sum(total, axis=0))


def segment_sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    out = np.empty(offsets.size - 1, "f4")
    segment_sums_kernel[(out.size,)](values, offsets, out, BLOCK=128)
    return out


def segment_sums_numpy(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    sums = np.zeros(offsets.size - 1, "f4")
    full = np.flatnonzero(np.diff(offsets))  # `reduceat` does not know empty segments
    sums[full] = np.add.reduceat(values, offsets[full])
    return sums


sums = segment_sums(values, offsets)
assert_close(sums, segment_sums_numpy(values, offsets), atol=1e-4)
print("sums:", np.array2string(sums, precision=2))

# %%
# ## Softmax of segments
#
# Attention over sentences of different lengths, or the weights of the neighbours of a node, need a softmax for each
# segment. It takes three passes over the segment: the maximum, the sum, the quotient. A pass over a segment that was
# just read finds it in the cache.


@tilework.jit
def segment_softmax_kernel(values_ptr, offsets_ptr, out_ptr, BLOCK: tl.constexpr):
    segment = tl.program_id(0)
    start = tl.load(offsets_ptr + segment)
    end = tl.load(offsets_ptr + segment + 1)
    highest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for first in range(start, end, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(values_ptr + i, mask=i < end, other=-float("inf"))
        highest = tl.maximum(highest, x)
    top = tl.max(highest, axis=0)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(start, end, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(values_ptr + i, mask=i < end, other=-float("inf"))
        total += tl.exp(x - top)
    scale = 1 / tl.sum(total, axis=0)
    for first in range(start, end, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(values_ptr + i, mask=i < end, other=0.0)
        tl.store(out_ptr + i, tl.exp(x - top) * scale, mask=i < end)


out = np.empty_like(values)
segment_softmax_kernel[(offsets.size - 1,)](values, offsets, out, BLOCK=128)
for start, end in itertools.pairwise(offsets):
    if start < end:
        weights = np.exp(values[start:end] - values[start:end].max())
        assert_close(out[start:end], weights / weights.sum(), atol=1e-6)
assert_close(segment_sums(out, offsets), (lengths > 0).astype("f4"), atol=1e-5)
print("softmax: the weights of each segment sum to 1, and those of the empty one to 0")

# %%
# ## A program for each block of elements
#
# With one program for each segment the longest segment decides how long the launch takes, and many short ones waste
# most of a tile. The other way is to cut the *elements* into blocks of the same size, whatever the segments are. Then
# a program must know the segment of each of its elements: an array of as many integers as there are elements, which
# often exists already (the target nodes of sorted edges, the row indices of a sparse matrix).
#
# Neighbours mostly belong to the same segment. `tl.associative_scan` computes running sums with a function of our
# own, which starts again where the segment changes: the last element of a segment holds the sum of its elements in
# this block, and only there is the result written. A segment may extend over several blocks, so it is added, by
# `tl.atomic_add`; additions of floats then come in any order, and the last bits may differ from run to run.


@tilework.jit
def add_in_segment(segment_a, sum_a, segment_b, sum_b):
    return segment_b, tl.where(segment_a == segment_b, sum_a + sum_b, sum_b)


@tilework.jit
def even_sums_kernel(values_ptr, ids_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    i = tl.program_id(0) * BLOCK + lane
    x = tl.load(values_ptr + i, mask=i < n, other=0.0)
    segment = tl.load(ids_ptr + i, mask=i < n, other=-1)
    following = tl.load(ids_ptr + i + 1, mask=i + 1 < n, other=-1)
    _, running = tl.associative_scan((segment, x), 0, add_in_segment)
    is_last = (following != segment) | (lane == BLOCK - 1)
    tl.atomic_add(out_ptr + segment, running, mask=(i < n) & is_last)


def even_sums(values: np.ndarray, ids: np.ndarray, segments: int) -> np.ndarray:
    out = np.zeros(segments, "f4")
    grid = (tilework.cdiv(values.size, 1024),)
    even_sums_kernel[grid](values, ids, out, values.size, BLOCK=1024)
    return out


ids = np.repeat(np.arange(lengths.size, dtype="i4"), lengths)
sums = even_sums(values, ids, lengths.size)
assert_close(sums, segment_sums_numpy(values, offsets), atol=1e-4)
print("sums by blocks of elements: the same")

# %%
# ## Which is faster?
#
# The same number of elements in equal segments, in segments of random lengths, and in one long segment beside many
# short ones. `np.add.reduceat` runs on one core.

TOTAL = 2**14 if QUICK else 2**21
SHAPES = {
    "equal": np.full(TOTAL // 256, 256),
    "random": rng.multinomial(TOTAL, rng.dirichlet(np.full(TOTAL // 256, 0.5))),
    "one is long": np.array([TOTAL // 2, *[256] * (TOTAL // 512)]),
}
DATA = {name: ragged(lengths) for name, lengths in SHAPES.items()}
IDS = {
    name: np.repeat(np.arange(lengths.size, dtype="i4"), lengths)
    for name, lengths in SHAPES.items()
}
WAYS = {
    "a program for a segment": lambda name: segment_sums(*DATA[name]),
    "a program for a block": lambda name: even_sums(
        DATA[name][0], IDS[name], SHAPES[name].size
    ),
    "NumPy": lambda name: segment_sums_numpy(*DATA[name]),
}
for name in SHAPES:
    expected = segment_sums_numpy(*DATA[name])
    for way in WAYS.values():
        assert_close(way(name), expected, atol=1e-2, rtol=1e-3)


@perf_report(
    Benchmark(
        x_names=["segments"],
        x_vals=list(SHAPES),
        line_arg="way",
        line_vals=list(WAYS),
        line_names=list(WAYS),
        plot_name=f"Sums of the segments of {TOTAL} float32",
        ylabel="GB/s of values (more is better)",
        args={},
    )
)
def gigabytes_per_second(segments: str, way: str) -> float:
    ms = do_bench(lambda: WAYS[way](segments), warmup=5, rep=30, return_mode="min")
    return 4 * TOTAL / ms / 1e6


gigabytes_per_second.run(print_data=True, save_precision=1)

# %%
# ## Try it
#
# - Sort the segments by length, longest first: the long ones begin early, and the short ones fill the rest.
# - The product of a sparse matrix (CSR) and a vector is `segment_sums` of `values * x[columns]`: load the columns,
#   then `x_ptr + columns`.
# - [Grouped matmul](07_grouped_persistent_matmul.py) does with matrices what this one does with sums.
#
# Next: [top-k and sampling](13_topk_sampling.py).
