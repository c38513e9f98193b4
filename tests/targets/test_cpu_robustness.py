"""No input makes the process crash: odd arrays, grids, numbers and shapes, in a process of their own.

A case is a function `case_...` of this file. A child runs them and says after each that it is done, so that a crash
names its case and no crash ends the tests.
"""

# Kernels annotate parameters with values of the language, which are no Python types.
# pyright: reportInvalidTypeForm=false

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilework
import tilework.language as tl

ROOT = Path(tilework.__file__).parent.parent


@tilework.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


@tilework.jit
def bump(out):
    tl.atomic_add(out, 1)


@tilework.jit
def add_strided(x, out, rows, columns, row_stride, column_stride, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    mask = (i < rows) & (j < columns)
    tile = tl.load(x + i * row_stride + j * column_stride, mask=mask, other=0)
    tl.store(out + i * N + j, tile + 1, mask=mask)


@tilework.jit
def optional(x, bias, out, flag, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    if bias is not None:
        value += tl.load(bias + i)
    tl.store(out + i, value)


@tilework.jit
def masked_off(nowhere: tl.pointer_type(tl.float32), out, flag, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(nowhere + i, mask=i < flag, other=7.0)
    if flag > 0:
        tl.store(nowhere + i, value)
    tl.store(nowhere + i * 3, value, mask=i < flag)
    tl.store(out + i, value)


@tilework.jit
def quotients(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a // b)
    tl.store(out + BLOCK + i, a % b)
    tl.store(out + 2 * BLOCK, tl.load(x) // tl.load(y))
    tl.store(out + 2 * BLOCK + 1, tl.load(x) % tl.load(y))


@tilework.jit
def shifted(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a << b)
    tl.store(out + BLOCK + i, a >> b)
    tl.store(out + 2 * BLOCK, tl.load(x) << tl.load(y))


@tilework.jit
def converted(x, outs, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    for number in tl.static_range(len(outs)):
        tl.store(outs[number] + i, tl.load(x + i).to(outs[number].dtype.element_ty))
        tl.store(outs[number] + BLOCK, tl.load(x).to(outs[number].dtype.element_ty))


@tilework.jit
def gathered(x, index, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.gather(tl.load(x + i), tl.load(index + i), 0))


@tilework.jit
def counted(x, out, BLOCK: tl.constexpr, BINS: tl.constexpr):
    tl.store(out + tl.arange(0, BINS), tl.histogram(tl.load(x + tl.arange(0, BLOCK)), BINS))


@tilework.jit(noinline=True)
def apart(x, n):
    if n > 2:
        x += n
    return x * 2


@tilework.jit(noinline=True)
def apart_twice(x, n):
    return apart(x, n) + apart(x, n - 1)


@tilework.jit
def calling(x, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + apart_twice(tl.load(x + 5), n))


@tilework.jit
def tree_sum(x):
    if x.shape[0] == 1:
        return tl.sum(x, 0)
    else:
        left, right = tl.split(tl.reshape(x, [x.shape[0] // 2, 2]))
        return tree_sum(left) + tree_sum(right)


@tilework.jit
def recursive(x, out, BLOCK: tl.constexpr):
    tl.store(out, tree_sum(tl.load(x + tl.arange(0, BLOCK))))


@tilework.jit
def nested(out, n, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.int32)
    for a in range(n):
        for b in range(n):
            for c in range(n):
                for d in range(n):
                    for e in range(n):
                        for f in range(n):
                            total += a + b * c + d * e + f
                            if f == 1:
                                total ^= tl.arange(0, BLOCK)
    tl.store(out + tl.arange(0, BLOCK), total)


@tilework.jit
def long_loop(out, n, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.int64)
    i = 0
    while i < n:
        total += i
        i += 1
    for _ in range(n):
        total += 1
    tl.store(out + tl.arange(0, BLOCK), total)


@tilework.jit
def large(x, out, total, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    top = tl.max(value, 0)
    tl.store(out + i, tl.flip(tl.cumsum(value, 0)) + top)
    tl.store(total, tl.sum(value, 0))


@tilework.jit
def high_rank(x, out):
    i = tl.arange(0, 512)
    tile = tl.reshape(tl.load(x + i), [2, 2, 2, 2, 2, 2, 2, 2, 2])
    tile = tl.permute(tile, [8, 7, 6, 5, 4, 3, 2, 1, 0])
    tl.store(out + i, tl.reshape(tile + tl.sum(tile, 4, keep_dims=True), [512]))


@tilework.jit
def outside(x, out, offset):
    source = tl.make_tensor_descriptor(x, [5, 7], [7, 1], [8, 16])
    target = tl.make_tensor_descriptor(out, [5, 7], [7, 1], [8, 16])
    target.store([offset, offset], source.load([offset, offset]))


@tilework.jit
def product(a, b, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + i * N + j, tl.dot(tl.load(a + i * N + j), tl.load(b + i * N + j)))


def case_zero_size_arrays() -> None:
    empty = np.zeros(0, "f4")
    copy[(1,)](empty, empty, 0, BLOCK=64)
    copy[(3,)](empty, np.zeros((4, 0), "f4"), 0, BLOCK=64)


def case_empty_grids() -> None:
    out = np.zeros(1, "i4")
    for grid in ((0,), (0, 5), (4, 0, 2), lambda meta: (0,)):
        bump[grid](out)
    assert out[0] == 0


def case_huge_and_negative_grids() -> None:
    out = np.zeros(1, "i4")
    for grid in ((2**31 + 1,), (2**20, 2**20), (2**62, 4), (2**40,), (2**31, 2**31, 2**31), (2**31, 1, 0), (0, 2**40)):
        refused((ValueError, OverflowError), lambda grid=grid: bump[grid](out), unless=0 in grid)
    for grid in ((-1,), (-1, -1), (4, -2)):
        refused(ValueError, lambda grid=grid: bump[grid](out), unless=True)
    assert out[0] == 0
    bump[(3, 1, 1)](out)
    assert out[0] == 3


def case_read_only_arrays() -> None:
    x, out = np.arange(64, dtype="f4"), np.zeros(64, "f4")
    out.flags.writeable = False
    refused(ValueError, lambda: copy[(1,)](x, out, 64, BLOCK=64))
    constant = np.frombuffer(bytes(256), "f4")
    refused(ValueError, lambda: copy[(1,)](x, constant, 64, BLOCK=64))
    refused(ValueError, lambda: bump[(1,)](np.frombuffer(bytes(4), "i4")))
    assert not out.any() and not constant.any()


def case_non_contiguous_arrays() -> None:
    base = np.arange(40 * 50, dtype="f4").reshape(40, 50)
    for view in (base[::2, ::3], base.T[:30, :30], base[::-1, ::-1][:20, :20], base[3:4, ::7]):
        rows, columns = view.shape
        out = np.zeros((32, 32), "f4")
        strides = [stride // 4 for stride in view.strides]
        add_strided[(1,)](view, out, rows, columns, *strides, M=32, N=32)
        assert (out[:rows, :columns] == view + 1).all() and out.sum() == (view + 1).sum()


def case_unaligned_arrays() -> None:
    for code in ("f4", "f8", "f2", "i8", "i2"):
        size = np.dtype(code).itemsize
        for offset in (1, 3):
            x = np.zeros(100 * size + 8, "u1")[offset : offset + 100 * size].view(code)
            out = np.zeros(100 * size + 8, "u1")[offset : offset + 100 * size].view(code)
            x[:] = np.arange(100)
            copy[(2,)](x, out, 100, BLOCK=64)
            assert (out == x).all()
    raw, whole = np.zeros(9, "u1"), np.zeros(9, "i4")
    for _ in range(3):
        refused(ValueError, lambda: bump[(1,)](raw[1:5].view("i4")))
        for position in (0, 1):
            bump[(1,)](whole[position:])  # the next launch of the same kernel need not go through Python
    assert not raw.any() and whole[0] == whole[1] == 3


def case_pointers_to_nothing() -> None:
    x, out = np.arange(64, dtype="f4"), np.zeros(64, "f4")
    optional[(1,)](x, None, out, 0, BLOCK=64)
    assert (out == x).all()
    for nothing in (0, None):
        masked_off[(1,)](nothing, out, 0, BLOCK=64)
        assert (out == 7).all()


def case_division_by_zero() -> None:
    for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        low, high = np.iinfo(code).min, np.iinfo(code).max
        x = np.array([low, low, 5, 0, high, high, low, 1] * 8, code)
        y = np.array([0, high if low == 0 else -1, 0, 0, 0, 3, 2, 0] * 8, code)
        out = np.zeros(130, code)
        quotients[(1,)](x, y, out, BLOCK=64)
        assert out[5] == high // 3 and out[64 + 5] == high % 3
        quotients[(1,)](x[1:57], y[1:57], out, BLOCK=32)


def case_shifts_beyond_the_width() -> None:
    for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        x = np.full(64, 77, code)
        y = np.array([8, 16, 32, 64, 100, 127, 3, 0] * 8, code)
        out = np.zeros(129, code)
        shifted[(1,)](x, y, out, BLOCK=64)
        assert out[64 + 6] == 77 >> 3 and out[7] == 77


def case_floats_that_no_integer_holds() -> None:
    for code in ("f2", "f4", "f8"):
        with np.errstate(over="ignore"):
            x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 300, -300, 2.5] * 8).astype(code)
        outs = tuple(np.zeros(65, name) for name in ("int8", "uint16", "int32", "uint32", "int64", "uint64"))
        converted[(1,)](x, outs, BLOCK=64)
        assert all(out[7] == 2 for out in outs), outs


def case_gather_and_histogram_out_of_range() -> None:
    x, out = np.arange(64, dtype="f4"), np.zeros(64, "f4")
    for index in ([-1, 64, 2**31 - 1, -(2**31), 1000, 0, 63, 5], [2**31 - 1] * 8):
        gathered[(1,)](x, np.array(index * 8, "i4"), out, BLOCK=64)
    values = np.array([0, 15, 16, -1, 2**31 - 1, -(2**31), 3, 3] * 8, "i4")
    counts = np.zeros(16, "i4")
    counted[(1,)](values, counts, BLOCK=64, BINS=16)
    assert counts[0] == 8 and counts[15] == 8 and counts[3] == 16 and counts.sum() == 32


def case_functions_that_are_not_inlined() -> None:
    x, out = np.arange(64, dtype="i4"), np.zeros(64, "i4")
    calling[(1,)](x, out, 3, BLOCK=64)
    assert (out == x + (5 + 3) * 2 + 5 * 2).all()


def case_recursion_by_shape() -> None:
    x, out = np.arange(64, dtype="i4"), np.zeros(1, "i4")
    recursive[(1,)](x, out, BLOCK=64)
    assert out[0] == x.sum()


def case_launches_from_four_threads() -> None:
    problems: list[BaseException | str] = []

    def work(seed: int) -> None:
        try:
            x, out = np.full(5000, seed, "f4"), np.zeros(5000, "f4")
            for turn in range(100):
                out[:] = -1
                copy[(tilework.cdiv(5000, 64),)](x, out, 5000, BLOCK=64)
                if not (out == seed).all():
                    problems.append(f"thread {seed}, launch {turn}")
                if turn == 50:
                    tree, total = np.ones(16 << seed % 2, "i4"), np.zeros(1, "i4")
                    recursive[(1,)](tree, total, BLOCK=tree.size)
                    assert total[0] == tree.size
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems


def case_deep_and_long_loops() -> None:
    out, n = np.zeros(16, "i4"), 3
    nested[(1,)](out, n, BLOCK=16)
    wanted = np.zeros(16, "i4")
    for a, b, c, d, e, f in np.ndindex(*[n] * 6):
        wanted += a + b * c + d * e + f
        if f == 1:
            wanted ^= np.arange(16, dtype="i4")
    assert (out == wanted).all()
    nested[(1,)](out, 0, BLOCK=16)
    assert not out.any()
    wide, n = np.zeros(16, "i8"), 200_000
    long_loop[(1,)](wide, n, BLOCK=16)
    assert (wide == n * (n - 1) // 2 + n).all()


def case_very_large_tiles() -> None:
    n = 1 << 20
    x, out, total = np.arange(n, dtype="i4") % 7, np.zeros(n, "i4"), np.zeros(1, "i4")
    large[(1,)](x, out, total, BLOCK=n)
    assert total[0] == x.sum() and (out == np.cumsum(x)[::-1] + 6).all()
    large[(4,)](x, out, total, BLOCK=n)  # every thread needs scratch memory of its own
    assert (out == np.cumsum(x)[::-1] + 6).all()


def case_tiles_of_rank_nine() -> None:
    x, out = np.arange(512, dtype="i4"), np.zeros(512, "i4")
    high_rank[(1,)](x, out)
    tile = x.reshape([2] * 9).transpose()
    assert (out == (tile + tile.sum(4, keepdims=True)).reshape(-1)).all()


def case_descriptors_outside_of_the_array() -> None:
    x, out = np.arange(35, dtype="f4"), np.full(35, -1, "f4")
    for offset in (3, -3, 100, -100, 2**31 - 1, -(2**31)):
        outside[(1,)](x, out, offset)
    outside[(1,)](x, out, 0)
    assert (out == x).all()


def case_unaligned_products() -> None:
    random = np.random.default_rng(0)
    for code, result in (("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i1", "i4")):
        size = np.dtype(code).itemsize
        a, b = (np.zeros(256 * size + 8, "u1")[1 : 1 + 256 * size].view(code).reshape(16, 16) for _ in range(2))
        a[:], b[:] = random.integers(-5, 5, (2, 16, 16))
        out = np.zeros((16, 16), result)
        product[(1,)](a, b, out, N=16)
        assert (out == a.astype("f8") @ b.astype("f8")).all()


def case_arguments_that_are_no_arrays() -> None:
    x, out = np.arange(64, dtype="f4"), np.zeros(64, "f4")
    copy[(1,)](x, out, 64, BLOCK=64)
    for bad in ("text", object(), [1, 2], 1.5, np.zeros(3, "c8"), np.zeros(3, "O"), np.array(["a"])):
        refused((TypeError, KeyError, tilework.CompilationError), lambda bad=bad: copy[(1,)](bad, out, 64, BLOCK=64))
    assert (out == x).all()


def refused(errors: Any, call: Callable[[], object], unless: bool = False) -> None:
    """`call` raises one of `errors`; `unless`: or does nothing."""
    try:
        call()
    except errors:
        return
    assert unless, "not refused"


CASES = [name for name in globals() if name.startswith("case_")]
CASES.sort(
    key=lambda name: "threads" not in name
)  # in a fresh process, where threads also meet while things are loaded


def test_nothing_crashes(warm_cache: Path) -> None:
    environment = {
        **os.environ,
        "TILEWORK_DEVICE": "native",
        "TRITON_CACHE_DIR": str(warm_cache),
        "TILEWORK_NUM_THREADS": "3",
    }
    command = [sys.executable, "-m", "tests.targets.test_cpu_robustness", *CASES]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split() == CASES and done.returncode == 0, (
        f"{done.stdout}\nexit {done.returncode}\n{done.stderr}"
    )


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for _ in range(2):  # the second launch of a kernel takes the short way
            globals()[name]()
        print(name, flush=True)
