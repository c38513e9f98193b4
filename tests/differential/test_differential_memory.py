"""Loads, stores, block pointers, descriptors and atomics (4.3, 4.4): memory must be equal bit by bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilework.language as tl
from tests.differential.devices import DEVICES, FLOATS, FP8, INTS, NUMPY, ON_AMD, HostDescriptor, Refused
from tests.differential.harness import launch, sample
from tests.differential.settings import few_examples, seeds
from tilework.language.function import jit

ALL = st.sampled_from(["u1", *INTS, *FLOATS, *FP8])


@jit
def copy_masked(x, out, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask, other=OTHER, eviction_policy="evict_last"), mask=i < n + 3)
    tl.store(out + i + 64, tl.load(x + i, mask, cache_modifier=".cg"), mask=mask, cache_modifier=".wb")
    if tl.program_id(0) == 0:
        tl.store(out + 120, tl.load(x + 1))
        tl.store(out + 121, tl.load(x + 2, mask=n > 100, other=OTHER))
        tl.store(out + 122, tl.load(x + 2, mask=False, other=OTHER))


@few_examples
@given(ALL, st.integers(2, 30), seeds)
def test_masked_loads_and_stores(code: str, n: int, seed: int) -> None:
    out = np.zeros(128, NUMPY[code])
    launch(copy_masked, {"x": sample(code, (32,), seed), "out": out, "n": n}, {"OTHER": 1, "BLOCK": 16}, (2,))


@jit
def store_cast(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))
    tl.store(out + BLOCK + i, 1)
    tl.store(out + 2 * BLOCK + i[:, None], tl.load(x + i)[:, None], mask=(i > 3)[:, None])


@few_examples
@given(st.sampled_from(["u1", *INTS, *FLOATS]), st.sampled_from(["u1", *INTS, *FLOATS]), seeds)
def test_stores_convert(source: str, target: str, seed: int) -> None:
    values = sample(source, (16,), seed)
    launch(store_cast, {"x": values, "out": np.zeros(48, NUMPY[target])}, {"BLOCK": 16})


@jit
def store_numbers(out, NUMBERS: tl.constexpr):
    for index in tl.static_range(len(NUMBERS)):  # pyright: ignore[reportArgumentType]  a tuple
        tl.store(out + index, NUMBERS[index])
        tl.store(out + 16 + index, tl.load(out + index, mask=False, other=NUMBERS[index]))


@pytest.mark.parametrize("code", ["u1", *INTS, *FLOATS, *FP8])
def test_numbers_in_memory(code: str) -> None:
    numbers = (0, 1, 2, -1, 300, 0.1, -2.7, 300.7, 1e6, -1e6, 1e12, 2**40, float("inf"), 1e-50, True)
    numbers = tuple(number for number in numbers if code not in FP8 or abs(number) < 1e5)
    launch(store_numbers, {"out": np.zeros(32, NUMPY[code])}, {"NUMBERS": numbers})


@jit
def wide_mask(x, out):
    i = tl.arange(0, 4)
    j = tl.arange(0, 8)
    block = tl.load(x + i[:, None], mask=(j < 6)[None, :] & (i < 3)[:, None], other=7)
    tl.store(out + i[:, None] * 8 + j[None, :], block)


def test_a_wider_mask_widens_the_load() -> None:
    launch(wide_mask, {"x": sample("i32", (4,), 1), "out": np.zeros(32, np.int32)})


@jit
def indirect(table, index, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    address = (table + tl.load(index + i)).to(tl.int64)
    tl.store(out + i, tl.load(address.to(tl.pointer_type(tl.float32))))
    raw = table.to(tl.int64) + 8
    tl.store(out + BLOCK, tl.load(raw.to(tl.pointer_type(tl.float32))))
    unsigned = tl.load(index + i).to(tl.uint8)
    tl.store(out + BLOCK + 1 + i, tl.load(table + unsigned))


def test_addresses_as_integers() -> None:
    index = np.random.default_rng(0).integers(0, 16, 8).astype(np.int32)
    launch(indirect, {"table": sample("fp32", (16,), 1), "index": index, "out": np.zeros(17, np.float32)}, {"BLOCK": 8})


@jit
def pointer_arithmetic(x, out, BLOCK: tl.constexpr):
    p = x + BLOCK
    p -= 2
    p = 1 + p
    down = p - tl.arange(0, BLOCK)
    chosen = tl.where(tl.arange(0, BLOCK) > 3, down, x + tl.arange(0, BLOCK))
    tl.store(out + tl.arange(0, BLOCK), tl.load(chosen))
    if x is not None:
        tl.store(out + BLOCK, tl.load(p))


@few_examples
@given(ALL, seeds)
def test_pointer_arithmetic(code: str, seed: int) -> None:
    launch(pointer_arithmetic, {"x": sample(code, (32,), seed), "out": np.zeros(17, NUMPY[code])}, {"BLOCK": 16})


# -- block pointers ------------------------------------------------------------------------------------------------


@jit
def move_blocks(x, out, M, N, PADDING: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    source = tl.make_block_ptr(x, (M, N), (N, 1), (0, 2), (ROWS, COLUMNS), (1, 0))
    target = tl.make_block_ptr(out, (M, N), (N, 1), (0, 0), (ROWS, COLUMNS), (1, 0))
    for _ in range(0, N, COLUMNS):
        block = tl.load(source, boundary_check=(0, 1), padding_option=PADDING)
        tl.store(target, block, boundary_check=(0, 1))
        source = tl.advance(source, (0, COLUMNS))
        target = target.advance([0, COLUMNS])


@few_examples
@given(
    st.sampled_from(["u1", *INTS, *FLOATS, *FP8]),
    st.integers(1, 9),
    st.integers(3, 12),
    st.sampled_from(["", "zero", "nan"]),
    seeds,
)
def test_block_pointers(code: str, rows: int, columns: int, padding: str, seed: int) -> None:
    padding = padding if code in FLOATS else padding.replace("nan", "")
    args = {
        "x": sample(code, (rows, columns), seed),
        "out": np.zeros((rows, columns), NUMPY[code]),
        "M": rows,
        "N": columns,
    }
    launch(move_blocks, args, {"PADDING": padding, "ROWS": 8, "COLUMNS": 4})


# -- descriptors ---------------------------------------------------------------------------------------------------


@jit
def device_descriptor(x, out, M, N, PADDING: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [4, 16], padding_option=PADDING)
    target = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[4, 16])
    for row in range(0, M, 4):
        block = source.load([row - 1, 16])
        target.store([row, 0], block)
        tl.store_tensor_descriptor(target, [row, 16], tl.load_tensor_descriptor(source, [row, 0]))


@few_examples
@given(st.sampled_from([*INTS, *FLOATS, *FP8]), st.integers(2, 9), st.sampled_from(["zero", "nan"]), seeds)
def test_device_descriptors(code: str, rows: int, padding: str, seed: int) -> None:
    padding = padding if code in FLOATS else "zero"
    args = {"x": sample(code, (rows, 32), seed), "out": np.zeros((rows, 32), NUMPY[code]), "M": rows, "N": 32}
    launch(device_descriptor, args, {"PADDING": padding})


@jit
def host_descriptor(source, target):
    rows = source.shape[0]
    for row in range(0, rows, 4):
        target.store([row, 0], source.load([row, 16]))


@few_examples
@given(st.sampled_from([*INTS, *FLOATS]), st.integers(2, 9), st.sampled_from(["zero", "nan"]), seeds)
def test_host_descriptors(code: str, rows: int, padding: str, seed: int) -> None:
    padding = padding if code in FLOATS else "zero"
    source = HostDescriptor(sample(code, (rows, 32), seed), (4, 16), padding)
    launch(host_descriptor, {"source": source, "target": HostDescriptor(np.zeros((rows, 32), NUMPY[code]), (4, 16))})


@jit
def descriptor_atomics(x, out, M, N, KIND: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [4, 8])
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [4, 8])
    block = source.load([0, 0])
    if KIND == "add":
        target.atomic_add([1, 0], block)
    elif KIND == "min":
        target.atomic_min([1, 0], block)
    elif KIND == "max":
        target.atomic_max([1, 0], block)
    elif KIND == "and":
        target.atomic_and([1, 0], block)
    elif KIND == "or":
        target.atomic_or([1, 0], block)
    else:
        target.atomic_xor([1, 0], block)


@pytest.mark.parametrize("kind", ["add", "min", "max", "and", "or", "xor"])
@pytest.mark.parametrize("code", ["u32", "i32", "u64", "i64", "fp32", "fp16", "bf16"])
def test_descriptor_atomics(code: str, kind: str) -> None:
    args = {"x": sample(code, (4, 8), 1, special=False), "out": sample(code, (4, 8), 2, special=False), "M": 4, "N": 8}
    try:
        launch(descriptor_atomics, args, {"KIND": kind})
    except Refused as refused:  # the CPU has only the atomics of ordinary memory
        assert "does not support" in str(refused) or (
            kind in ("min", "max") and code in FLOATS and "Cannot fallback on descriptor atomic op" in str(refused)
        )


@jit
def gather_rows(x, index, out, M, N):
    source = tl.make_tensor_descriptor(x, [M, N], [N, 1], [1, 32])
    rows = tl.load(index + tl.arange(0, 8))
    block = source.gather(rows, 16)
    target = tl.make_tensor_descriptor(out, [M, N], [N, 1], [1, 32])
    target.scatter(block + 1, rows + 1, 0)


@few_examples
@given(st.sampled_from(["i16", "i32", "fp16", "fp32", "i64"]), seeds)
def test_gather_and_scatter_rows(code: str, seed: int) -> None:
    index = np.random.default_rng(seed).permutation(12)[:8].astype(np.int32) - 2
    args = {"x": sample(code, (8, 32), seed), "index": index, "out": np.zeros((8, 32), NUMPY[code]), "M": 8, "N": 32}
    launch(gather_rows, args, devices=ON_AMD)  # an H200 has no such TMA


# -- atomics -------------------------------------------------------------------------------------------------------


@jit
def atomics(x, out, old, KIND: tl.constexpr, BLOCK: tl.constexpr, LANES: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p = out + i // LANES
    value = tl.load(x + i)
    mask = i != 3
    if KIND == "add":
        before = tl.atomic_add(p, value, mask=mask)
    elif KIND == "max":
        before = tl.atomic_max(p, value, mask=mask, sem="relaxed")
    elif KIND == "min":
        before = tl.atomic_min(p, value, mask=mask, scope="cta")
    elif KIND == "and":
        before = tl.atomic_and(p, value, mask=mask)
    elif KIND == "or":
        before = tl.atomic_or(p, value, mask=mask)
    elif KIND == "xor":
        before = p.atomic_xor(value, mask=mask)
    else:
        before = tl.atomic_xchg(p, value, mask=mask)
    tl.store(old + i, before, mask=mask)


@pytest.mark.parametrize("kind", ["add", "max", "min", "and", "or", "xor", "xchg"])
@pytest.mark.parametrize("code", ["i8", "i32", "u32", "i64", "u64", "fp16", "bf16", "fp32", "fp64"])
def test_atomics(code: str, kind: str) -> None:
    values = sample(code, (16,), 3, special=False)
    args = {"x": values, "out": sample(code, (16,), 4, special=False), "old": np.zeros(16, NUMPY[code])}
    # lanes on one address may be applied in any order; for the extrema of floats the order of devices differs
    lanes = 1 if kind in ("max", "min") and code in FLOATS else 2
    try:
        launch(atomics, args, {"KIND": kind, "BLOCK": 16, "LANES": lanes})
    except Refused as refused:
        assert "does not support" in str(refused)


@jit
def scalar_atomics(counter, out, lock):
    ticket = tl.atomic_add(counter, 1)
    tl.store(out + ticket, tl.program_id(0) * 10 + tl.num_programs(0))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out + 8, tl.load(out + 8) + ticket)
    tl.atomic_xchg(lock, 0)


def test_scalar_atomics_and_locks() -> None:
    launch(
        scalar_atomics,
        {"counter": np.zeros(1, np.int32), "out": np.zeros(9, np.int32), "lock": np.zeros(1, np.int32)},
        {},
        (4,),
        devices=ON_AMD,  # threads of a program race for a word, which only the emulator of PTX minds
    )


@jit
def compare_and_swap(x, y, out, old, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(old + i, tl.atomic_cas(out + i, tl.load(x + i), tl.load(y + i)))


@pytest.mark.parametrize("code", ["i16", "u16", "i32", "u32", "i64", "u64", "fp16", "bf16", "fp32", "fp64"])
def test_compare_and_swap(code: str) -> None:
    out = sample(code, (16,), 1)
    x = np.where(np.arange(16) % 2 == 0, out, sample(code, (16,), 2)).astype(out.dtype)
    launch(
        compare_and_swap, {"x": x, "y": sample(code, (16,), 3), "out": out, "old": np.zeros_like(out)}, {"BLOCK": 16}
    )


# -- refusals ------------------------------------------------------------------------------------------------------


@jit
def mask_not_bool(x, out):
    tl.store(out, tl.load(x, mask=tl.load(x)))


@jit
def value_too_large(x, out):
    tl.store(out + tl.arange(0, 4), tl.arange(0, 8))


@jit
def other_without_mask(x, out):
    tl.store(out, tl.load(x, other=1))


@jit
def scattered_descriptor(x, out):
    d = tl.make_tensor_descriptor(x, [4, 4], [4, 2], [4, 4])
    tl.store(out, d.load([0, 0]))


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        (mask_not_bool, "Mask must have boolean scalar type"),
        (value_too_large, "Expected pointer argument to have shape"),
        (other_without_mask, "`other` cannot be provided without `mask`"),
        (scattered_descriptor, "last dim must be 1 but got 2"),
    ],
)
def test_every_device_refuses(kernel: Any, text: str) -> None:
    for device in DEVICES.values():
        with pytest.raises(Refused, match=text):
            device(kernel, {"x": np.zeros(16, np.int32), "out": np.zeros(16, np.int32)}, {}, (1,))
