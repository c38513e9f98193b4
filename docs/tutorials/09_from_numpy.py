"""# From NumPy

What is different in a kernel for somebody who writes NumPy: pointers instead of arrays, strides that the caller passes,
results that are written into memory instead of returned, types that are never widened silently, and masks in place of
slices.

    python 09_from_numpy.py
"""

import sys

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, assert_close, do_bench, perf_report

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)

# %%
# ## An array becomes a pointer
#
# A NumPy array knows its shape, its strides and its type. A kernel gets the *address of its first element* and the
# type, nothing else: shapes and strides are arguments of their own. `x_ptr + offsets` is a tile of addresses, counted
# in elements (not in bytes, as NumPy's strides are), and `tl.load` reads them.
#
# There is no `x[i]` on a pointer, and no slice. Write the index of each element instead: `x[10:20]` is
# `tl.load(x_ptr + 10 + tl.arange(0, 10))`.


@tilework.jit
def show_kernel(x_ptr, out_ptr, start, COUNT: tl.constexpr):
    i = tl.arange(0, COUNT)
    tl.store(out_ptr + i, tl.load(x_ptr + start + i))


x = np.arange(100, dtype="f4")
out = np.empty(10, "f4")
show_kernel[(1,)](x, out, 10, COUNT=10)
assert np.array_equal(out, x[10:20])
print("x[10:20] =", out)

# %%
# ## Strides
#
# The element `x[i, j]` of a matrix is at `i * stride_row + j * stride_column`. `x.T`, `x[::2]` and `x[:, 1:]` copy
# nothing: they are the same memory with another start and other strides. A kernel that assumes `row * n + column`
# reads the wrong elements of such a view, and *nothing fails*. Pass the strides, in elements; then one kernel serves
# them all.


@tilework.jit
def row_sums_kernel(
    x_ptr, out_ptr, columns, row_stride, column_stride, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    pointers = x_ptr + row * row_stride + column * column_stride
    x = tl.load(pointers, mask=column < columns, other=0.0)
    tl.store(out_ptr + row, tl.sum(x, axis=0))


def row_sums(x: np.ndarray) -> np.ndarray:
    rows, columns = x.shape
    row_stride, column_stride = (stride // x.itemsize for stride in x.strides)
    out = np.empty(rows, x.dtype)
    block = tilework.next_power_of_2(columns)
    row_sums_kernel[(rows,)](x, out, columns, row_stride, column_stride, BLOCK=block)
    return out


x = rng.standard_normal((60, 100), dtype="f4")
views = {"x": x, "x.T": x.T, "x[::2]": x[::2], "x[:, 1:]": x[:, 1:], "x[::-1]": x[::-1]}
for name, view in views.items():
    assert_close(row_sums(view), view.sum(axis=1), atol=1e-4)
    strides = tuple(stride // view.itemsize for stride in view.strides)
    print(f"{name:9} shape {view.shape!s:10} strides {strides!s:10}: right")

wrong = np.empty(100, "f4")
row_sums_kernel[(100,)](x.T, wrong, 60, 60, 1, BLOCK=64)  # as if x.T were contiguous
print(
    f"x.T with the strides of a contiguous matrix: {np.isclose(wrong, x.T.sum(1)).sum()} of 100 sums are right"
)

# %%
# The alternative is a copy, `np.ascontiguousarray(x.T)`: it is worth it if the kernel reads the array more than once,
# because elements that are neighbours both in the tile and in memory are loaded together. The measurement at the end
# shows it.
#
# ## No return values
#
# A kernel returns nothing. Thousands of programs run at the same time, and each of them writes *its* part of the
# result into an array that the caller has made. `np.empty` is enough: every element is written exactly once. An array
# that several programs add to needs `np.zeros` and `tl.atomic_add`, since `load`, add and `store` of two programs at
# once would lose one of the sums.


@tilework.jit
def histogram_kernel(x_ptr, counts_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    value = tl.load(x_ptr + i, mask=mask, other=0)
    tl.atomic_add(counts_ptr + value, 1, mask=mask)


values = rng.integers(0, 8, 1000).astype("i4")
counts = np.zeros(8, "i4")
histogram_kernel[(tilework.cdiv(1000, 128),)](values, counts, 1000, BLOCK=128)
assert np.array_equal(counts, np.bincount(values, minlength=8))
print("counts:", counts)

# %%
# ## In place
#
# `x += 1` of an array is a kernel whose result goes where the input came from. That is right if each program reads only
# what it writes itself. A kernel that reads its *neighbour's* elements, such as a running mean, must not work in place:
# the neighbour may already have overwritten them. NumPy makes a copy in such cases; a kernel does exactly what it says.
#
# Inside a kernel, `x += 1` rebinds a name, as for Python's integers: tiles are values, and nothing is written to
# memory before `tl.store`.


@tilework.jit
def relu_in_place_kernel(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    x = tl.maximum(x, 0.0)  # another tile with the same name; memory is as it was
    tl.store(x_ptr + i, x, mask=i < n)


x = rng.standard_normal(1000, dtype="f4")
expected = np.maximum(x, 0)
relu_in_place_kernel[(tilework.cdiv(1000, 256),)](x, 1000, BLOCK=256)
assert np.array_equal(x, expected)
print("in place:", (x == 0).sum(), "elements became 0")

# %%
# ## Why a mask?
#
# NumPy's loops end where the array ends. A tile has a size that is known when the kernel is compiled, and the last
# one may reach past the end. `mask` says which elements exist: the others are neither read nor written. A masked load
# gives `other` for them; without `other`, their values are undefined. So choose the value that the next step ignores,
# 0 for a sum, minus infinity for a maximum; or use `tl.where` before a reduction.


@tilework.jit
def extremes_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=-float("inf"))
    tl.store(out_ptr, tl.max(x, axis=0))
    tl.store(out_ptr + 1, tl.min(tl.where(mask, x, float("inf")), axis=0))


x, out = 5 + rng.random(100, dtype="f4"), np.empty(2, "f4")
extremes_kernel[(1,)](x, out, 100, BLOCK=128)
assert out[0] == x.max() and out[1] == x.min()
print(
    f"largest {out[0]:.3f}, smallest {out[1]:.3f}; with other=0.0 the smallest would be 0"
)

# %%
# ## Types
#
# NumPy widens: `int8` + `int64` is `int64`, and the mean of `float16` is computed in something better. In kernels
#
# - a Python number takes the type of the tile: `x * 0.5` stays float16 if `x` is;
# - two tiles of different types are converted to the wider one, and a float beats an integer;
# - integers wrap around: a sum of `int8` that exceeds 127 is negative (`tl.sum` adds small integers as int32);
# - a store converts to the type of the pointer, without a warning: `float32` to `float16` rounds, to `int32`
#   truncates.
#
# So long sums of float16 are converted first: `x.to(tl.float32)`.


@tilework.jit
def types_kernel(x_ptr, out_ptr, WIDE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    if WIDE:
        x = x.to(tl.int32)
    tl.store(out_ptr + tl.arange(0, 16), x + x)


x = np.full(16, 100, "i1")
out = np.empty(16, "i4")
for wide in (False, True):
    types_kernel[(1,)](x, out, WIDE=wide)
    print(f"100 + 100 of int8 as {'int32' if wide else 'int8'}: {out[0]}")
assert out[0] == 200

# %%
# ## What strides cost
#
# The sums of the rows of a contiguous matrix, and those of the rows of its transpose, whose elements are far apart.

SIZES = [128, 256] if QUICK else [256, 512, 1024, 2048]
WAYS = {
    "contiguous": row_sums,
    "transposed": lambda x: row_sums(x.T),
    "transposed, copied": lambda x: row_sums(np.ascontiguousarray(x.T)),
    "NumPy, transposed": lambda x: x.T.sum(axis=1),
}


@perf_report(
    Benchmark(
        x_names=["size"],
        x_vals=SIZES,
        line_arg="way",
        line_vals=list(WAYS),
        line_names=list(WAYS),
        plot_name="Sums of the rows of a square matrix, float32",
        xlabel="rows and columns",
        ylabel="GB/s (more is better)",
        x_log=True,
        args={},
    )
)
def gigabytes_per_second(size: int, way: str) -> float:
    x = rng.standard_normal((size, size), dtype="f4")
    ms = do_bench(lambda: WAYS[way](x), warmup=5, rep=20, return_mode="min")
    return x.nbytes / ms / 1e6


gigabytes_per_second.run(print_data=True, save_precision=1)

# %%
# ## Try it
#
# - `TRITON_SANITIZE=1 python 09_from_numpy.py` reports reads past the end of an array, with the line of the kernel.
# - `print(x.strides)` of an array from `np.broadcast_to(row, (60, 100))`: a stride of 0 is valid, too.
# - Write `x.mean(axis=0)` as a kernel: which axis do programs share, and which stride is 1?
# - [Python in kernels](../python.md) lists the parts of Python that a kernel may use.
#
# Next: [convolution](10_convolution.py).
