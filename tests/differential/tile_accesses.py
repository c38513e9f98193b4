"""Every way to memory on tiles, as a kernel of its own, and what NumPy makes of the same arrays.

    access = ACCESSES["windows"]
    access.kernel      takes an array, one to write to, and their sizes M and N, which are constants
    access.numpy       what is in the second one afterwards

The arrays are a little larger than the tile, so that a lane too many would be seen.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tilework.language as tl
from tests.differential.devices import Array
from tilework.language.function import jit

CE = tl.constexpr
FILL = -77  # what the second array holds before


@dataclass(frozen=True)
class Access:
    """See the module."""

    kernel: Any
    numpy: Callable[[Array, Array, int, int], Any]
    dtype: Any = np.float32
    extra: int = 2  # rows and columns that the arrays have and the tile does not
    multiple: int = 1  # of bytes, of a row


@jit
def masked(x, out, STRIDE: CE, M: CE, N: CE):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    value = tl.load(x + i * STRIDE + j, mask=(i + j) % 3 != 1, other=5)
    tl.store(out + i * STRIDE + j, value + 1, mask=(i * j) % 5 != 2)


def numpy_masked(x: Array, out: Array, m: int, n: int) -> None:
    i, j = np.arange(m)[:, None], np.arange(n)[None, :]
    value = np.where((i + j) % 3 != 1, x[:m, :n], 5) + 1
    out[:m, :n] = np.where((i * j) % 5 != 2, value, out[:m, :n])


@jit
def unmasked(x, out, STRIDE: CE, M: CE, N: CE):
    at = tl.arange(0, M)[:, None] * STRIDE + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.load(x + at) * 2)


def numpy_unmasked(x: Array, out: Array, m: int, n: int) -> None:
    out[:m, :n] = x[:m, :n] * 2


@jit
def atomics(x, out, STRIDE: CE, M: CE, N: CE):
    at = tl.arange(0, M)[:, None] * STRIDE + tl.arange(0, N)[None, :]
    old = tl.atomic_add(out + at, tl.load(x + at))
    tl.atomic_max(out + at, old + 3, mask=old % 2 == 0)
    tl.atomic_add(out + M * STRIDE + tl.zeros((M, N), tl.int32), 1)  # all to one element: how many there are


def numpy_atomics(x: Array, out: Array, m: int, n: int) -> None:
    old = out[:m, :n].copy()
    new = old + x[:m, :n]
    out[:m, :n] = np.where(np.fmod(old, 2) == 0, np.maximum(new, old + 3), new)
    out[m, 0] += m * n


@jit
def exchanges(x, out, STRIDE: CE, M: CE, N: CE):
    at = tl.arange(0, M)[:, None] * STRIDE + tl.arange(0, N)[None, :]
    old = tl.atomic_cas(out + at, tl.full((M, N), FILL_VALUE, tl.int32), tl.load(x + at))
    tl.atomic_xchg(out + at, old + 1, mask=at % 2 == 0)


FILL_VALUE = tl.constexpr(FILL)


def numpy_exchanges(x: Array, out: Array, m: int, n: int) -> None:
    at = np.arange(m)[:, None] * out.shape[1] + np.arange(n)[None, :]
    out[:m, :n] = np.where(at % 2 == 0, out[:m, :n] + 1, x[:m, :n])


@jit
def block_pointers(x, out, STRIDE: CE, M: CE, N: CE):
    source = tl.make_block_ptr(x, (M + 1, N + 1), (STRIDE, 1), (0, 0), (M, N), (1, 0))
    target = tl.make_block_ptr(out, (M + 1, N + 1), (STRIDE, 1), (0, 0), (M, N), (1, 0))
    tl.store(target, tl.load(source))
    source, target = tl.advance(source, (M, 1)), tl.advance(target, (M, 0))
    value = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    tl.store(target, value + 1, boundary_check=(0, 1))


def numpy_block_pointers(x: Array, out: Array, m: int, n: int) -> None:
    out[:m, :n] = x[:m, :n]
    out[m, :n] = x[m, 1 : n + 1] + 1


@jit
def descriptors(x, out, STRIDE: CE, M: CE, N: CE):
    source = tl.make_tensor_descriptor(x, [M + 1, N + 1], [STRIDE, 1], [M, N])
    target = tl.make_tensor_descriptor(out, [M + 1, N + 1], [STRIDE, 1], [M, N])
    target.store([0, 0], source.load([1, N]) + 1)
    target.store([M, 0], source.load([0, 0]))
    target.store([0, N], source.load([0, 0]) + 2)
    target.atomic_add([M, N], tl.full((M, N), 2, tl.float32))


def numpy_descriptors(x: Array, out: Array, m: int, n: int) -> None:
    inside = np.zeros((m, n), x.dtype)
    inside[:, 0] = x[1 : m + 1, n]
    out[:m, :n] = inside + 1
    out[m, :n] = x[0, :n]
    out[:m, n] = x[:m, 0] + 2
    out[m, n] += 2


@jit
def row_descriptors(x, out, STRIDE: CE, M: CE, N: CE):
    rows = tl.make_tensor_descriptor(x, [M + 1, N + 1], [STRIDE, 1], [1, 24])
    target = tl.make_tensor_descriptor(out, [M + 1, N + 1], [STRIDE, 1], [1, 24])
    i = tl.arange(0, M + 8)
    target.scatter(rows.gather((i * 2) % (M + 2), 1) + 1, i, 0)


def numpy_row_descriptors(x: Array, out: Array, m: int, n: int) -> None:
    whole = np.zeros((m + 2, max(n + 1, 25)), x.dtype)
    whole[: m + 1, : n + 1] = x[: m + 1, : n + 1]
    i, width = np.arange(m + 1), min(n + 1, 24)
    out[i, :width] = whole[(i * 2) % (m + 2), 1 : width + 1] + 1


ACCESSES = {
    "masked": Access(masked, numpy_masked, np.int32),
    "unmasked": Access(unmasked, numpy_unmasked, np.float16),
    "atomics": Access(atomics, numpy_atomics, np.int32),
    "exchanges": Access(exchanges, numpy_exchanges, np.int32),
    "block pointers": Access(block_pointers, numpy_block_pointers),
    "descriptors": Access(descriptors, numpy_descriptors, multiple=16),
    "row descriptors": Access(row_descriptors, numpy_row_descriptors, multiple=16),
}


def arrays(access: Access, m: int, n: int) -> tuple[dict[str, Array], dict[str, int]]:
    """The arguments and constants of a launch."""
    columns = n + access.extra
    columns += -columns % (access.multiple // np.dtype(access.dtype).itemsize or 1)
    size = (m + access.extra) * columns
    x = (np.arange(size) * 7 % 50 - 20).reshape(-1, columns).astype(access.dtype)
    return {"x": x, "out": np.full_like(x, FILL)}, {"STRIDE": columns, "M": m, "N": n}
