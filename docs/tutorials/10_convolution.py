"""# Convolution

Neighbours in a kernel: a blur that reads nine elements around each pixel, with a mask as the padding, and the
convolution of a neural network as a matrix multiplication whose left operand exists only as a tile of pointers (an
*implicit GEMM*).

    python 10_convolution.py
"""

import sys

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, assert_close, do_bench, perf_report

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)

# %%
# ## A blur: the same tile, moved
#
# A slice `x[1:]` of a tile does not exist. A neighbour is *loaded*: the tile of the left neighbours has the same
# offsets minus one. Nine loads of nearly the same elements sound expensive, but eight find them in the cache.
#
# `tl.static_range` is unrolled when the kernel is compiled, so `dy` and `dx` are constants, and `weights_ptr + ...`
# is the address of one number, which each program loads once. Outside the image a masked load gives 0: zero padding
# costs a mask.


@tilework.jit
def blur_kernel(
    x_ptr, weights_ptr, out_ptr, height, width, BH: tl.constexpr, BW: tl.constexpr
):
    row = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    column = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    total = tl.zeros((BH, BW), tl.float32)
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            y, x = row + dy, column + dx
            inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
            pixel = tl.load(x_ptr + y * width + x, mask=inside, other=0.0)
            total += pixel * tl.load(weights_ptr + (dy + 1) * 3 + dx + 1)
    exists = (row < height) & (column < width)
    tl.store(out_ptr + row * width + column, total, mask=exists)


def blur(image: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    height, width = image.shape
    grid = lambda meta: (
        tilework.cdiv(height, meta["BH"]),
        tilework.cdiv(width, meta["BW"]),
    )
    blur_kernel[grid](image, weights, out, height, width, BH=8, BW=128)


def blur_numpy(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
    height, width = image.shape
    padded = np.pad(image, 1)
    parts = (
        weights[dy, dx] * padded[dy : dy + height, dx : dx + width]
        for dy in range(3)
        for dx in range(3)
    )
    return sum(parts, np.zeros_like(image))


image = rng.random((101, 150), dtype="f4")
weights = np.outer([1, 2, 1], [1, 2, 1]).astype("f4") / 16
out = np.empty_like(image)
blur(image, weights, out)
assert_close(out, blur_numpy(image, weights), atol=1e-6)
print(
    f"blur: largest difference from NumPy {np.abs(out - blur_numpy(image, weights)).max():.1e}"
)

# %%
# ## A layer of a network
#
# `out[n, y, x, f]` is the sum over `dy`, `dx` and channels `c` of `image[n, y + dy, x + dx, c] * filter[dy, dx, c,
# f]`. With all pixels of all images as the rows of a matrix, all `(dy, dx, c)` as its columns, and the filter as a
# matrix with these rows and a column for each `f`, that is a multiplication. The left matrix would repeat each pixel
# nine times (`im2col`); the kernel never stores it. It computes the *addresses* of a tile of it:
#
# - a row `r` is a pixel of the output, and its image, row and column follow by division;
# - a column `k` is a tap `(dy, dx)` and a channel; one step of the loop takes `BC` channels of one tap, so that it
#   loads `BC` neighbouring elements of memory for each pixel (channels are the last axis: "NHWC").
#
# Padding and stride change nothing but these addresses and their mask.


@tilework.jit
def conv_kernel(
    x_ptr, w_ptr, out_ptr, batch, height, width, C, out_height, out_width, F,
    TAPS: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    BM: tl.constexpr, BF: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    rows = batch * out_height * out_width
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    f = tl.program_id(1) * BF + tl.arange(0, BF)
    c = tl.arange(0, BC)
    image = r // (out_height * out_width)
    y0 = r // out_width % out_height * STRIDE - PADDING
    x0 = r % out_width * STRIDE - PADDING
    acc = tl.zeros((BM, BF), tl.float32)
    for tap in range(TAPS * TAPS):
        y, x = y0 + tap // TAPS, x0 + tap % TAPS
        inside = (r < rows) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
        pixel = (image * height + y) * width + x
        for start in range(0, C, BC):
            exists = start + c < C
            a = tl.load(
                x_ptr + pixel[:, None] * C + (start + c)[None, :],
                mask=inside[:, None] & exists[None, :],
                other=0.0,
            )
            b = tl.load(
                w_ptr + (tap * C + start + c)[:, None] * F + f[None, :],
                mask=exists[:, None] & (f < F)[None, :],
                other=0.0,
            )
            acc = tl.dot(a, b, acc)
    mask = (r < rows)[:, None] & (f < F)[None, :]
    tl.store(out_ptr + r[:, None] * F + f[None, :], acc, mask=mask)


def convolve(x: np.ndarray, w: np.ndarray, stride: int = 1, padding: int = 0) -> np.ndarray:
    """`x`: [batch, height, width, channels], `w`: [taps, taps, channels, filters]."""
    batch, height, width, channels = x.shape
    taps, _, _, filters = w.shape
    oh, ow = ((size + 2 * padding - taps) // stride + 1 for size in (height, width))
    out = np.empty((batch, oh, ow, filters), "f4")
    grid = lambda meta: (
        tilework.cdiv(batch * oh * ow, meta["BM"]),
        tilework.cdiv(filters, meta["BF"]),
    )
    sizes = (batch, height, width, channels, oh, ow, filters)
    conv_kernel[grid](
        x, w, out, *sizes, TAPS=taps, STRIDE=stride, PADDING=padding, BM=64, BF=64, BC=32
    )
    return out


# %%
# ## What NumPy does
#
# `sliding_window_view` makes the large matrix as a view without a copy; the product makes the copy.


def convolve_numpy(
    x: np.ndarray, w: np.ndarray, stride: int = 1, padding: int = 0
) -> np.ndarray:
    taps, _, channels, filters = w.shape
    padded = np.pad(x, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (taps, taps), axis=(1, 2))
    windows = windows[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)
    matrix = windows.reshape(-1, taps * taps * channels)
    return (matrix @ w.reshape(-1, filters)).reshape(*windows.shape[:3], filters)


x = rng.standard_normal((2, 17, 23, 20), dtype="f4")
for taps, stride, padding in ((1, 1, 0), (3, 1, 1), (3, 2, 1), (5, 2, 0)):
    w = rng.standard_normal((taps, taps, 20, 70), dtype="f4")
    out, expected = (
        function(x, w, stride, padding) for function in (convolve, convolve_numpy)
    )
    assert_close(out, expected, atol=1e-3)
    print(
        f"{taps} x {taps}, stride {stride}, padding {padding}: {out.shape}, "
        f"largest difference {np.abs(out - expected).max():.1e}"
    )

# %%
# ## How fast is it?
#
# An image with 64 channels, 64 filters of 3 by 3: `2 * 9 * 64 * 64` operations for each pixel. NumPy multiplies with
# its BLAS library, after copying every pixel nine times.


@perf_report(
    Benchmark(
        x_names=["size"],
        x_vals=[8, 16] if QUICK else [8, 16, 32, 64],
        line_arg="way",
        line_vals=[convolve, convolve_numpy],
        line_names=["tilework", "NumPy"],
        plot_name="3 by 3 convolution, 64 channels to 64, float32",
        xlabel="height and width of the image",
        ylabel="GFLOP/s (more is better)",
        x_log=True,
        args={},
    )
)
def gflops(size: int, way) -> float:
    x = rng.standard_normal((1, size, size, 64), dtype="f4")
    w = rng.standard_normal((3, 3, 64, 64), dtype="f4")
    ms = do_bench(lambda: way(x, w, 1, 1), warmup=5, rep=30, return_mode="min")
    return 2 * 9 * 64 * 64 * size * size / ms / 1e6


gflops.run(print_data=True, save_precision=1)

# %%
# ## Try it
#
# - Dilation: the taps of a dilated convolution are `DILATION` pixels apart. Which line changes?
# - A depthwise convolution multiplies each channel by its own filter, and is the blur with the channels as another
#   axis: no `tl.dot`, and the weights are a tile.
# - The weights of `blur` are loaded nine times by each program. Are they faster as `tl.constexpr` numbers?
#
# Next: [quantised weights](11_int4_matmul.py).
