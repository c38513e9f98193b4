"""Atomics on GPUs: what they leave in memory and what they return, in layouts with and without copies."""

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.gpu_text import NAMES, Array, elementwise_text, kernel_ptx, launch, ptx_of
from tilework.errors import PassError

ARCHS = (80, 90)
INTEGERS: dict[str, Any] = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "exch": lambda old, new: new,
    "max": np.maximum, "min": np.minimum, "umax": np.maximum, "umin": np.minimum,
}  # fmt: skip
BF16 = np.dtype(ml_dtypes.bfloat16)


def atomic_ptx(
    kind: str, name: str, size: int, arch: int, per_thread: int, warps: int, how: str = "acq_rel, gpu"
) -> str:
    """`y = rmw(p, x, m)` on each element."""
    body = f"%y = tt.atomic_rmw {kind}, {how}, %p_at, %x, %m : (T<!tt.ptr<{name}>>, T<{name}>, T<i1>) -> T<{name}>"
    return ptx_of(
        elementwise_text(body, {"x": name, "m": "i1"}, {"y": name}, size, arch, per_thread, warps, {"p": name}), arch
    )


def check_rmw(kind: str, update: Any, p: Array, x: Array, arch: int, per_thread: int, warps: int) -> str:
    size = len(p)
    mask = np.arange(size) // 8 % 3 != 1
    ptx = atomic_ptx(kind, NAMES[p.dtype], size, arch, per_thread, warps)
    memory, old = p.copy(), np.ones_like(p)
    launch(ptx, "kernel", [x, mask, old, memory], warps)
    np.testing.assert_array_equal(memory, np.where(mask, update(p, x), p).astype(p.dtype))
    np.testing.assert_array_equal(old, np.where(mask, p, p.dtype.type(0)))
    return ptx


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers(kind: str) -> None:
    rng = np.random.default_rng(0)
    for size in (4, 8):
        dtype = np.dtype(f"{'u' if kind.startswith('u') else 'i'}{size}")
        limits = np.iinfo(dtype)
        p, x = (rng.integers(limits.min, limits.max, 64, dtype) for _ in range(2))
        for arch, per_thread, warps in ((80, 2, 1), (90, 1, 4)):
            check_rmw(kind, INTEGERS[kind], p, x, arch, per_thread, warps)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", [np.dtype("f2"), BF16, np.dtype("f4"), np.dtype("f8")], ids=str)
def test_float_sums(arch: int, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    for size, per_thread, warps in ((256, 8, 1), (256, 2, 4), (32, 1, 4), (16, 8, 2)):
        p, x = (rng.normal(size=size).astype(dtype) for _ in range(2))
        check_rmw("fadd", np.add, p, x, arch, per_thread, warps)


@pytest.mark.parametrize(("arch", "name", "wanted"), [
    (90, "f32", "atom.global.gpu.relaxed.add.v4.f32"),
    (90, "f16", "atom.global.gpu.acq_rel.add.noftz.v4.f16x2"),
    (90, "bf16", "atom.global.gpu.acq_rel.add.noftz.v4.bf16x2"),
    (80, "f32", "atom.global.gpu.relaxed.add.f32"),
    (80, "f16", "atom.global.gpu.relaxed.add.noftz.f16x2"),
    (80, "bf16", "atom.relaxed.gpu.global.cas.b16"),
])  # fmt: skip
def test_instructions(arch: int, name: str, wanted: str) -> None:
    body = f"%y = tt.atomic_rmw fadd, acq_rel, gpu, %p_at, %x : (T<!tt.ptr<{name}>>, T<{name}>) -> T<{name}>"
    ptx = ptx_of(elementwise_text(body, {"x": name}, {"y": name}, 256, arch, 8, 1, {"p": name}), arch)
    assert wanted in ptx
    assert ptx.count("fence.acq_rel.gpu") == (2 if "relaxed" in wanted else 0)  # around several of one tile


def test_orderings_and_scopes() -> None:
    for sem in ("relaxed", "acquire", "release", "acq_rel"):
        for scope in ("cta", "gpu", "sys"):
            ptx = atomic_ptx("xor", "i32", 32, 80, 1, 1, f"{sem}, {scope}")
            assert f"atom.global.{scope}.{sem}.xor.b32" in ptx


def test_duplicates_are_applied_one_by_one() -> None:
    body = """%one = tt.splat %p_ptr : !tt.ptr<i32> -> T<!tt.ptr<i32>>
    %y = tt.atomic_rmw add, relaxed, gpu, %one, %x : (T<!tt.ptr<i32>>, T<i32>) -> T<i32>"""
    x, y, p = np.full(64, 3, np.int32), np.zeros(64, np.int32), np.array([7, 1], np.int32)
    launch(
        ptx_of(elementwise_text(body, {"x": "i32"}, {"y": "i32"}, 64, 90, 1, 2, {"p": "i32"}), 90),
        "kernel",
        [x, y, p],
        2,
    )
    assert p.tolist() == [7 + 64 * 3, 1]
    assert sorted(y) == list(range(7, 7 + 64 * 3, 3))


@pytest.mark.parametrize(("size", "per_thread", "warps"), [(32, 1, 4), (8, 1, 1), (16, 4, 2), (2, 8, 4), (1, 1, 2)])
@pytest.mark.parametrize("dtype", [np.dtype("i4"), np.dtype("f2"), np.dtype("i8")], ids=str)
def test_copies_get_the_old_value(size: int, per_thread: int, warps: int, dtype: Any) -> None:
    p, x = np.arange(size).astype(dtype) * 5, (np.arange(size) % 7 + 1).astype(dtype)
    mask, old = np.ones(size, np.bool_), np.zeros_like(p)
    memory = p.copy()
    kind = "fadd" if dtype.kind == "f" else "add"
    launch(atomic_ptx(kind, NAMES[dtype], size, 90, per_thread, warps), "kernel", [x, mask, old, memory], warps)
    np.testing.assert_array_equal(memory, p + x)
    np.testing.assert_array_equal(old, p)


def test_scalars() -> None:
    """Once per program, and all threads have the result."""
    body = """%two = arith.constant 2 : i32
    %old = tt.atomic_rmw add, acq_rel, gpu, %p_ptr, %two : (!tt.ptr<i32>, i32) -> i32
    %y = tt.splat %old : i32 -> T<i32>"""
    text = elementwise_text(body, {}, {"y": "i32"}, 128, 80, 1, 4, {"p": "i32"})
    y, p = np.zeros(128, np.int32), np.array([40], np.int32)
    launch(ptx_of(text, 80), "kernel", [y, p], 4)
    assert p[0] == 42 and set(y) == {40}


def test_adding_zero_reads() -> None:
    body = """%zero = arith.constant 0 : i32
    %old = tt.atomic_rmw add, acquire, gpu, %p_ptr, %zero : (!tt.ptr<i32>, i32) -> i32
    %y = tt.splat %old : i32 -> T<i32>"""
    ptx = ptx_of(elementwise_text(body, {}, {"y": "i32"}, 64, 90, 1, 2, {"p": "i32"}), 90)
    assert "ld.global.acquire.gpu.b32" in ptx and "atom" not in ptx
    y, p = np.zeros(64, np.int32), np.array([123], np.int32)
    launch(ptx, "kernel", [y, p], 2)
    assert set(y) == {123} and p[0] == 123


@pytest.mark.parametrize(
    "dtype", [np.dtype("i2"), np.dtype("f2"), np.dtype("i4"), np.dtype("f4"), np.dtype("i8")], ids=str
)
def test_compare_and_swap(dtype: Any) -> None:
    name = NAMES[dtype]
    body = f"%y = tt.atomic_cas acq_rel, gpu, %p_at, %c, %x : (T<!tt.ptr<{name}>>, T<{name}>, T<{name}>) -> T<{name}>"
    p = np.arange(64).astype(dtype)
    c, x = np.where(np.arange(64) % 3 == 0, p, p + 1).astype(dtype), (p + 100).astype(dtype)
    for per_thread, warps in ((1, 2), (2, 4)):
        ptx = ptx_of(
            elementwise_text(body, {"c": name, "x": name}, {"y": name}, 64, 90, per_thread, warps, {"p": name}), 90
        )
        sem = "acq_rel" if per_thread == 1 else "relaxed"  # between fences
        assert f"atom.global.{sem}.gpu.cas.b{8 * dtype.itemsize}" in ptx
        memory, y = p.copy(), np.zeros_like(p)
        launch(ptx, "kernel", [c, x, y, memory], warps)
        np.testing.assert_array_equal(memory, np.where(c == p, x, p))
        np.testing.assert_array_equal(y, p)


def test_unused_results_have_no_register() -> None:
    body = "%y = tt.atomic_rmw add, relaxed, gpu, %p_at, %x : (T<!tt.ptr<i32>>, T<i32>) -> T<i32>"
    ptx = ptx_of(elementwise_text(body, {"x": "i32"}, {}, 64, 90, 1, 2, {"p": "i32"}), 90)
    assert "red.global.gpu.relaxed.add.u32 [" in ptx
    assert "bar.sync" not in ptx and "barrier" not in ptx


@pytest.mark.parametrize(("kind", "name", "said"), [
    ("max", "f32", "an atomic max on f32"), ("add", "i16", "an atomic add on i16"),
    ("exch", "f16", "an atomic exch on f16"),
])  # fmt: skip
def test_refused(kind: str, name: str, said: str) -> None:
    with pytest.raises(PassError, match=said):
        atomic_ptx(kind, name, 32, 90, 1, 1)


@tilework.jit
def extremes(x_ptr, low_ptr, high_ptr, lock_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.atomic_min(low_ptr + tl.arange(0, N) % 2, x)
    tl.atomic_max(high_ptr, tl.max(x, 0))
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    count = tl.load(lock_ptr + 1)
    tl.debug_barrier()
    tl.store(lock_ptr + 1, count + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@pytest.mark.parametrize("arch", ARCHS)
def test_kernel_with_extremes_and_a_lock(arch: int) -> None:
    types = {"x_ptr": "*fp32", "low_ptr": "*fp32", "high_ptr": "*fp32", "lock_ptr": "*i32"}
    ptx = kernel_ptx(extremes, types, {"N": 64}, arch, 2)
    x = np.random.default_rng(2).normal(size=64).astype(np.float32)
    lowest, highest, lock = np.array([5.0, -0.5], np.float32), np.array([-7.0], np.float32), np.zeros(2, np.int32)
    launch(ptx, "extremes", [x, lowest, highest, lock], 2, grid=2)
    assert lowest.tolist() == [min(5.0, x[::2].min()), min(-0.5, x[1::2].min())]
    assert highest[0] == max(-7.0, x.max())
    assert lock.tolist() == [0, 2]


@tilework.jit
def scattered(x_ptr, counts_ptr, seen_ptr, n, KIND: tl.constexpr, SIZE: tl.constexpr):
    offsets = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    at = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    if KIND == "add":
        tl.atomic_add(counts_ptr + at, 1, mask=offsets < n)
    if KIND == "and":
        tl.atomic_and(counts_ptr + at, ~(1 << (offsets % 32)), mask=offsets < n, sem="relaxed")
    if seen_ptr is not None:
        tl.store(seen_ptr + offsets, tl.load(counts_ptr + at), mask=offsets < n)


@pytest.mark.parametrize("kind", ["add", "and"])
def test_atomics_of_a_tile_meet_in_shared_memory(kind: str) -> None:
    """Within reach of a table and out of it, by two programs; what follows reads what others did for it."""
    types = {"x_ptr": "*i32", "counts_ptr": "*i32", "n": "i32"}
    ptx = kernel_ptx(scattered, types, {"KIND": kind, "SIZE": 512, "seen_ptr": None}, 90, 4)
    assert ptx.count("red.shared") == 4 and "atom." not in ptx and ptx.count("fence.acq_rel") == (kind != "and")
    assert "st.shared.b64" not in ptx  # pointers do not change places first
    single = kernel_ptx(scattered, types, {"KIND": kind, "SIZE": 512, "seen_ptr": None}, 90, 16)  # one of each thread
    assert ("acq_rel" in single.partition("red.shared")[0]) == (kind != "and")
    seeing = kernel_ptx(scattered, {**types, "seen_ptr": "*i32"}, {"KIND": kind, "SIZE": 512}, 90, 4)
    assert ["bar.sync" in text.rpartition("red.global")[2] for text in (ptx, seeing)] == [False, True]
    spot = np.array([0, 1, 511, 512, 700, 5, 5, 5], np.int32)
    x = spot[np.random.default_rng(5).integers(0, 8, 1024)]
    for text, n in ((ptx, 900), (seeing, 500)):
        counts, seen, offsets = np.full(701, -1, np.int32), np.zeros(512, np.int32), np.arange(n, dtype=np.int32)
        given = {"add": np.ones_like(offsets), "and": ~(1 << offsets % 32)}[kind]
        wanted = counts.copy()
        INTEGERS[kind].at(wanted, x[:n], given)
        launch(text, "scattered", [x, counts, *([seen] if text is seeing else []), n], 4, grid=-(-n // 512))
        np.testing.assert_array_equal(counts, wanted)
    np.testing.assert_array_equal(seen[:n], wanted[x[:n]])


@tilework.jit
def grouped(x_ptr, sums_ptr, seen_ptr, n, KIND: tl.constexpr, RUN: tl.constexpr, SIZE: tl.constexpr):
    offsets = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    if KIND == "add":
        tl.atomic_add(sums_ptr + offsets // RUN, x, mask=offsets < n)
    if KIND == "max":
        tl.atomic_max(sums_ptr + offsets // RUN, x, mask=offsets < n, sem="relaxed")
    if KIND == "fadd":
        tl.atomic_add(sums_ptr + offsets // RUN, x.to(tl.float32), mask=offsets < n)
    if seen_ptr is not None:
        tl.store(seen_ptr + offsets, tl.load(sums_ptr + offsets // RUN), mask=offsets < n)


@pytest.mark.parametrize(
    ("kind", "run", "size", "atomics", "exchanges"),
    [("add", 8, 128, 1, 6), ("add", 256, 512, 2, 4), ("max", 1024, 512, 1, 2), ("add", 2, 512, 4, 0),
     ("fadd", 256, 512, 4, 0)],
)  # fmt: skip
def test_values_for_one_place_meet_in_their_warp(kind: str, run: int, size: int, atomics: int, exchanges: int) -> None:
    """Of integers: the order of sums of floats is seen. What a lane did for others they see behind it, if they look."""
    looks, types = size == 128, {"x_ptr": "*i32", "sums_ptr": "*fp32" if kind == "fadd" else "*i32", "n": "i32"}
    types |= {"seen_ptr": "*i32"} if looks else {}
    constants = {"KIND": kind, "RUN": run, "SIZE": size, **({} if looks else {"seen_ptr": None})}
    ptx = kernel_ptx(grouped, types, constants, 90, 4)
    assert len(re.findall(r"(?:red|atom)\S*\.global", ptx)) == atomics
    assert len(re.findall(r"(?:redux|shfl)\.sync", ptx)) == exchanges
    n, x = 2 * size - 100, np.random.default_rng(6).integers(-99, 99, 2 * size).astype(np.int32)
    sums, seen = np.full(512, -5, np.float32 if kind == "fadd" else np.int32), np.zeros(2 * size, np.int32)
    wanted = sums.copy()
    (np.maximum if kind == "max" else np.add).at(wanted, np.arange(n) // run, x[:n])
    launch(ptx, "grouped", [x, sums, *([seen] if looks else []), n], 4, grid=2)
    np.testing.assert_array_equal(sums, wanted)
    if looks:
        np.testing.assert_array_equal(seen[:n], wanted[np.arange(n) // run])


@tilework.jit
def never(x_ptr, counts_ptr, flag, SIZE: tl.constexpr):
    if flag:
        tl.store(counts_ptr, 5)
    else:
        tl.atomic_add(counts_ptr + tl.load(x_ptr + tl.arange(0, SIZE)), 1, mask=flag)


def test_a_tile_that_is_masked_off_is_not_collected() -> None:
    types = {"x_ptr": "*i32", "counts_ptr": "*i32", "flag": "i1"}
    counts = np.zeros(64, np.int32)
    launch(kernel_ptx(never, types, {"SIZE": 512}, 90), "never", [np.zeros(512, np.int32), counts, False], 4)
    assert not counts.any()
