"""Mistakes that the code for GPUs has made once, each with the smallest kernel that shows it."""

import re
import subprocess
from shutil import which

import ml_dtypes
import numpy as np
import pytest

import tilework.language as tl
from tests.targets.gpu_text import CPU, kernel_ptx, launch
from tilework.language.function import jit
from tilework.oracles.emulator.device import Device

ARCHS = (80, 90)


def assembled(ptx: str, arch: int) -> str:
    """The PTX, if ptxas accepts it or is not there."""
    if which("ptxas") is not None:
        command = ["ptxas", f"-arch={CPU[arch]}", "-", "-o", "/dev/null"]
        done = subprocess.run(command, input=ptx, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    return ptx


# Pieces of PTX write their outputs before they read all inputs; in a loop LLVM gave both one register.


@jit
def exchange_in_loop(p, out, n, N: tl.constexpr):
    at = tl.arange(0, N)
    x = at * 10
    for i in range(n):
        x = tl.atomic_xchg(p + at, x, mask=(at + i) % 3 != 0)
    tl.store(out + at, x)


@pytest.mark.parametrize("arch", ARCHS)
def test_masked_atomics_that_feed_themselves(arch: int) -> None:
    ptx = kernel_ptx(exchange_in_loop, {"p": "*i32", "out": "*i32", "n": "i32"}, {"N": 64}, arch, warps=1)
    p, out = np.arange(1000, 1064, dtype=np.int32), np.zeros(64, np.int32)
    launch(ptx, "exchange_in_loop", [p, out, 5], warps=1)
    memory, x = np.arange(1000, 1064), np.arange(64) * 10
    for turn in range(5):
        mask = (np.arange(64) + turn) % 3 != 0
        memory, x = np.where(mask, x, memory), np.where(mask, memory, 0)
    np.testing.assert_array_equal(p, memory)
    np.testing.assert_array_equal(out, x)


@jit
def chase(p, out, n):
    at = tl.load(p)
    for _ in range(n):
        at = tl.load(at.to(tl.pointer_type(tl.int64)), mask=at > 4096)
    tl.store(out, at)


def test_masked_loads_from_what_was_loaded() -> None:
    ptx = kernel_ptx(chase, {"p": "*i64", "out": "*i64", "n": "i32"}, {}, 90, warps=1)
    device = Device(check=True, together=True)
    cells = device.upload(np.zeros(3, np.int64))
    for cell, value in ((0, cells + 16), (1, 77), (2, cells + 8)):
        device.memory.write(cells + 8 * cell, np.array([value], np.int64).tobytes())
    out = device.upload(np.zeros(1, np.int64))
    device.launch(device.load(ptx).function("chase"), 1, 32, [cells, out, 2, 0, 0], 0)
    assert device.download(out, np.zeros(1, np.int64))[0] == 77


# ptxas accepts a cache modifier or an eviction priority, not both.


@jit
def hinted(x, y, n, N: tl.constexpr, CACHE: tl.constexpr, EVICT: tl.constexpr, BACK: tl.constexpr):
    at = tl.arange(0, N)
    value = tl.load(x + at, mask=at < n, other=1, cache_modifier=CACHE, eviction_policy=EVICT)
    tl.store(y + at, value, mask=at < n, cache_modifier=BACK, eviction_policy=EVICT)


@pytest.mark.parametrize("evict", ["", "evict_first", "evict_last"])
@pytest.mark.parametrize("caches", [(".ca", ".wb"), (".cg", ".cs"), (".cv", ".wt"), ("", "")])
def test_cache_modifiers_with_eviction_policies(caches: tuple[str, str], evict: str) -> None:
    constants = {"N": 64, "CACHE": caches[0], "EVICT": evict, "BACK": caches[1]}
    ptx = assembled(kernel_ptx(hinted, {"x": "*fp16", "y": "*fp16", "n": "i32"}, constants, 80, warps=1), 80)
    x, y = np.arange(64, dtype=np.float16), np.zeros(64, np.float16)
    launch(ptx, "hinted", [x, y, 50], warps=1)
    np.testing.assert_array_equal(y, np.where(np.arange(64) < 50, x, 0))
    assert all(cache in ptx for cache in caches) and (not evict or any(caches) or f"L1::{evict}" in ptx)


# ptxas 13.0 dies of an atomic addition to one bf16 whose result goes to `_`.


@jit
def scattered_sum(p, n, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.atomic_add(p + at // 4, (at % 3).to(p.dtype.element_ty), mask=at < n)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", ["bf16", "fp16", "fp32"])
def test_sums_whose_old_value_is_unused(arch: int, name: str) -> None:
    ptx = assembled(kernel_ptx(scattered_sum, {"p": f"*{name}", "n": "i32"}, {"N": 128}, arch), arch)
    p = np.zeros(32, {"bf16": ml_dtypes.bfloat16, "fp16": np.float16, "fp32": np.float32}[name])
    launch(ptx, "scattered_sum", [p, 120], warps=4)
    terms = np.where(np.arange(128) < 120, np.arange(128) % 3, 0)
    np.testing.assert_array_equal(p.astype(np.float32), terms.reshape(32, 4).sum(1).astype(np.float32))


# A dot took over the grid of warps of a batched one that it is connected with.


@jit
def plain_and_batched(x, out, B: tl.constexpr, T: tl.constexpr):
    inner = tl.arange(0, T)[:, None] * T + tl.arange(0, T)[None, :]
    at = tl.arange(0, B)[:, None, None] * (T * T) + inner[None, :, :]
    a, b = tl.load(x + inner), tl.load(x + at)
    tl.store(out + at, tl.dot(b, b) + tl.dot(a, a)[None, :, :])


@pytest.mark.parametrize("arch", ARCHS)
def test_dots_of_different_rank_together(arch: int) -> None:
    ptx = kernel_ptx(plain_and_batched, {"x": "*fp16", "out": "*fp32"}, {"B": 2, "T": 16}, arch)
    x = np.random.default_rng(0).integers(-4, 5, (2, 16, 16)).astype(np.float16)
    out = np.zeros((2, 16, 16), np.float32)
    launch(ptx, "plain_and_batched", [x, out], warps=4)
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(out, wide @ wide + wide[0] @ wide[0])


# The emulator found a barrier in divergent code where rare blocks are placed behind the end of the kernel.

BEHIND_THE_END = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 out) {
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 1;
    mov.u32 %r2, 5;
    @%p1 bra RARE;
JOIN:
    bar.sync 0;
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret;
RARE:
    mov.u32 %r2, 7;
    bra.uni JOIN;
}
"""


def test_lanes_wait_for_those_behind_the_end() -> None:
    device = Device(check=True, together=True)
    out = device.upload(np.zeros(64, np.uint32))
    device.launch(device.load(BEHIND_THE_END).function("kernel"), 1, 64, [out], 0)
    np.testing.assert_array_equal(device.download(out, np.zeros(64, np.uint32)), np.where(np.arange(64) == 1, 7, 5))


# What a tile has beyond a size that the compiler knows was loaded and stored under masks that are never true.


@jit
def within_size(x, count, out, start, N: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.arange(0, 2), tl.arange(0, BLOCK)
    mask = (row[:, None] >= 0) & (at.to(tl.int64) < N)[None, :]
    offsets = row[:, None] * N + at[None, :]
    values = tl.load(x + start + offsets, mask=mask, other=7)
    tl.atomic_add(count + offsets, values, mask=mask)
    kept = tl.load(x + offsets, mask=(at[None, :] >= 8) & mask, other=-1)
    tl.store(out + offsets, values + kept, mask=mask)
    tl.store(out + 2 * N + row, tl.sum(values, axis=1))


@pytest.mark.parametrize("arch", ARCHS)
def test_nothing_is_done_beyond_a_size_that_is_known(arch: int) -> None:
    signature = {"x": "*i32", "count": "*i32", "out": "*i32", "start": "i32"}
    ptx = kernel_ptx(within_size, signature, {"N": 40, "BLOCK": 1024}, arch, warps=1)
    assert len(re.findall(r"ld\.global|st\.global|(?:red|atom)\S*\.global", assembled(ptx, arch))) < 40
    x, count, out = np.arange(100, 200, dtype=np.int32), np.ones(80, np.int32), np.zeros(82, np.int32)
    launch(ptx, "within_size", [x, count, out, 3], warps=1)
    values, kept = x[3:83].reshape(2, 40), np.where(np.arange(40) >= 8, x[:80].reshape(2, 40), -1)
    np.testing.assert_array_equal(count.reshape(2, 40), values + 1)
    np.testing.assert_array_equal(out[:80].reshape(2, 40), values + kept)
    np.testing.assert_array_equal(out[80:], values.sum(axis=1) + 7 * (1024 - 40))


# Quotients are rounded towards zero: of neighbours that begin at a negative multiple of the divisor the first one has
# another quotient, and another rest, than those behind it. Pairs were divided once, and read at one address.


@jit
def divided(out, table, start, N: tl.constexpr):
    at = tl.arange(0, N)
    x = start * 16 - 256 + at
    tl.store(out + at, x // 64 * 1000 + x % 64)
    tl.store(out + N + at, tl.load(table + 64 + x % 64))
    tl.store(out + 2 * N + at, tl.load(table + 64 + tl.program_id(0) * 16 + at % 64))


@pytest.mark.parametrize("arch", ARCHS)
def test_negative_numbers_that_are_divided(arch: int) -> None:
    ptx = kernel_ptx(divided, {"out": "*i32", "table": "*i32", "start": "i32"}, {"N": 512}, arch, warps=1)
    loads = re.findall(r"ld\.global\S*", ptx)
    wide = [load for load in loads if ".v4" in load]  # LLVM knows that all of them read the same
    assert wide and len(loads) - len(wide) == 512 // 32, "natural numbers are read four at a time"
    out, table = np.zeros(3 * 512, np.int32), np.arange(128, dtype=np.int32) * 7
    launch(ptx, "divided", [out, table, 0], warps=1)
    x = np.arange(512) - 256
    rest = np.fmod(x, 64)
    np.testing.assert_array_equal(out[:512], (x - rest) // 64 * 1000 + rest)
    np.testing.assert_array_equal(out[512:1024], table[64 + rest])
    np.testing.assert_array_equal(out[1024:], table[64 + np.arange(512) % 64])


# Nor is a product natural that overflows on purpose, as those of hash functions do.


@jit
def hashed(out, table, N: tl.constexpr):
    at = tl.arange(0, N)
    x = (tl.program_id(0) + 1) * 0x27D4EB2D * 16 + at
    tl.store(out + tl.program_id(0) * N + at, x // 64 * 1000 + tl.load(table + 64 + x % 64))


def test_hashes_that_are_divided() -> None:
    ptx = kernel_ptx(hashed, {"out": "*i32", "table": "*i32"}, {"N": 256}, 90, warps=1, overflows=True)
    out, table = np.zeros(8 * 256, np.int32), np.arange(-64, 64, dtype=np.int32)
    launch(ptx, "hashed", [out, table], warps=1, grid=8)
    x = (np.arange(1, 9, dtype=np.uint32) * 0x27D4EB2D * 16).astype(np.int32)[:, None] + np.arange(256, dtype=np.int32)
    rest = np.fmod(x, 64)
    np.testing.assert_array_equal(out.reshape(8, 256), (x - rest) // 64 * 1000 + rest)


# In a generated kernel (loops, seed 750263 of be1d8455) ptxas 12.8, 12.9 and 13.0, from -O1 on, counted two predicates
# that a loop carried and negated by their negations. Bits are carried as integers.


@jit
def flipping(out, n, N: tl.constexpr):
    at, total = tl.arange(0, N), n
    mask, flag = at < n, n > 3
    for i in range(n):
        mask = ~mask
        if i % 2 == 1:
            flag = not flag
        total += tl.sum(mask.to(tl.int32), 0) + flag.to(tl.int32) * 1000  # pyright: ignore[reportAttributeAccessIssue]
    while flag & (total > 0):
        flag = total % 3 == 0
        total += 1
    tl.store(out, total)


@pytest.mark.parametrize("arch", ARCHS)
def test_a_loop_carries_no_predicates(arch: int) -> None:
    ptx = assembled(kernel_ptx(flipping, {"out": "*i32", "n": "i32"}, {"N": 64}, arch, warps=1), arch)
    assert "mov.pred" not in ptx and "not.pred" not in ptx
    out = np.zeros(1, np.int32)
    launch(ptx, "flipping", [out, 5], warps=1)
    total = 5 + 3 * 59 + 2 * 5 + 3000
    assert out[0] == total + (2 if total % 3 == 0 else 1)


# LLVM assumed that a divisor is not 0, and folded the comparison with 0 to false.


@jit
def guarded_quotients(x, d, out, m, n, N: tl.constexpr):
    at = tl.arange(0, N)
    value, divisor = tl.load(x + at), tl.load(d + at)
    quotient, rest = value // divisor, value % divisor
    tl.store(out + at, tl.where(divisor == 0, -1, quotient))
    tl.store(out + N + at, tl.where(divisor == 0, -2, rest))
    for _ in range(n):
        value += value % m
    tl.store(out + 2 * N + at, tl.where(m == 0, value * 2, value))


def test_what_is_divided_by_zero_is_requested() -> None:
    types = dict.fromkeys(("x", "d", "out"), "*i32") | {"m": "i32", "n": "i32"}
    ptx = kernel_ptx(guarded_quotients, types, {"N": 32}, 90, warps=1)
    x, d = np.arange(32, dtype=np.int32) + 100, np.arange(32, dtype=np.int32) % 4
    out = np.zeros(96, np.int32)
    launch(ptx, "guarded_quotients", [x, d, out, 0, 0], warps=1)
    safe = np.maximum(d, 1)
    wanted = [*np.where(d == 0, -1, x // safe), *np.where(d == 0, -2, x % safe), *(x * 2)]
    np.testing.assert_array_equal(out, wanted)


# ptxas lost a carry where what is subtracted from the upper half of a product is 0, as the number of the first program.


@jit
def halves_less_program(x, out, N: tl.constexpr):
    at = tl.arange(0, N)
    half = tl.umulhi(tl.load(x + at), 0x9E3779B1)
    tl.store(out + at, half.to(tl.int64) - tl.program_id(0))


def test_upper_halves_that_are_extended_are_taken_from_whole_products() -> None:
    ptx = kernel_ptx(halves_less_program, {"x": "*u32", "out": "*i64"}, {"N": 32}, 90, warps=1)
    assert "mul.hi.u32" not in ptx and "mul.wide.u32 %whole" in assembled(ptx, 90)
    x, out = np.arange(1 << 31, (1 << 31) + 32, dtype=np.uint32), np.zeros(32, np.int64)
    launch(ptx, "halves_less_program", [x, out], warps=1)
    np.testing.assert_array_equal(out, x.astype(np.int64) * 0x9E3779B1 >> 32)


@jit
def least_of_three(x, out, n, N: tl.constexpr):
    at = tl.arange(0, N)
    a, b = tl.load(x + at), tl.load(x + N + at)
    tl.store(out + at, tl.minimum(tl.minimum(-n, a), b))


def test_a_parameter_is_negated_before_extremes_are_made_of_it() -> None:
    """ptxas made one instruction of both, and forgot the sign."""
    ptx = kernel_ptx(least_of_three, {"x": "*i32", "out": "*i32", "n": "i32"}, {"N": 32}, 90, warps=1)
    assert "neg.s32" not in ptx and "not.b32" in assembled(ptx, 90)
    x, out = np.arange(64, dtype=np.int32) % 11 - 5, np.zeros(32, np.int32)
    launch(ptx, "least_of_three", [x, out, 3], warps=1)
    np.testing.assert_array_equal(out, np.minimum(np.minimum(x[:32], x[32:]), -3))


@jit
def largest_so_far(x, out, n, INIT: tl.constexpr):
    at = tl.arange(0, 32)[:, None] * 64 + tl.arange(0, 64)[None, :]
    largest = tl.full((32,), INIT, tl.float32)
    for _ in range(n):
        largest = tl.maximum(largest, tl.max(tl.load(x + at), 1))
    tl.store(out + tl.arange(0, 32), largest)


@pytest.mark.parametrize("start", [np.nan, -3.0])
def test_a_carried_maximum_that_finds_nothing_is_what_it_was(start: float) -> None:
    """Of no rows, or of rows without numbers, a NaN is left; -inf was."""
    ptx = kernel_ptx(largest_so_far, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"INIT": start})
    for rounds in (0, 2):
        out = np.zeros(32, np.float32)
        launch(ptx, "largest_so_far", [np.full((32, 64), np.nan, np.float32), out, rounds], 4)
        np.testing.assert_array_equal(out, np.full(32, start, np.float32))


# All threads load a number; the one that stores it may be ahead of the others, which then waited for ever for what it
# had taken back.


@jit
def taken_back(flag, out, T: tl.constexpr):
    before = tl.load(flag)
    tl.store(flag, before + 1)
    while tl.load(flag) == before:
        pass
    tl.atomic_xchg(flag, before)
    tl.store(out + tl.arange(0, T), before + tl.load(flag))


@pytest.mark.parametrize("arch", ARCHS)
def test_a_number_is_loaded_by_all_threads_before_one_stores_it(arch: int) -> None:
    ptx = kernel_ptx(taken_back, {"flag": "*i32", "out": "*i32"}, {"T": 256}, arch, warps=4)
    out = np.zeros(256, np.int32)
    launch(ptx, "taken_back", [np.array([7], np.int32), out], warps=4)
    np.testing.assert_array_equal(out, 14)


# A product that is added to another lane's became one fused multiply-add: each lane rounded the other's product, and
# had a sum of its own.


@jit
def products_of_lanes(x, y, out, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out + at, tl.sum(tl.load(x + at) * tl.load(y + at)))


@pytest.mark.parametrize("arch", ARCHS)
def test_lanes_have_the_same_sum_of_products(arch: int) -> None:
    ptx = kernel_ptx(products_of_lanes, {"x": "*fp32", "y": "*fp32", "out": "*fp32"}, {"N": 32}, arch, warps=1)
    rng, out = np.random.default_rng(0), np.zeros(32, np.float32)
    launch(ptx, "products_of_lanes", [*rng.standard_normal((2, 32), dtype=np.float32), out], warps=1)
    assert len(set(out.tolist())) == 1
