"""wgmma: descriptors, layouts, types and scales, against images of shared memory built element by element."""

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.tensor_programs import HEADER, descriptor, elements_of, pack, packed_by_k, run, wgmma_text
from tilework.oracles.emulator.async_operations import STATE
from tilework.oracles.emulator.machine import Machine, Run
from tilework.oracles.emulator.memory import MemoryFault
from tilework.oracles.emulator.syntax import EmulatorError
from tilework.oracles.emulator.translate import Unsupported

TYPES = {
    "f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "tf32": np.dtype(np.float32),
    "f32": np.dtype(np.float32), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "s8": np.dtype(np.int8), "u8": np.dtype(np.uint8), "s32": np.dtype(np.int32),
}  # fmt: skip
DEPTH = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32}
SPAN = {"none": 0, "32B": 32, "64B": 64, "128B": 128}
MODE = {"none": 0, "128B": 1, "64B": 2, "32B": 3}


def swizzle(address: int, mode: str) -> int:
    bits = {"none": 0, "32B": 1, "64B": 2, "128B": 3}[mode]
    return address ^ ((address >> 7 & (1 << bits) - 1) << 4)


def image_by_k(matrix: np.ndarray, mode: str, k_bytes: int, first: int = 0) -> tuple[bytearray, int, int]:
    """(rows, k) with k contiguous; (bytes, LBO, SBO). `k_bytes` is the width of the whole tile, of which the
    instruction takes 32 from `first`."""
    rows, size = len(matrix), matrix.dtype.itemsize
    span = SPAN[mode]
    image = bytearray(rows * k_bytes)
    leading, stride = (rows // 8 * 128, 128) if not span else (16, 8 * span)
    for r in range(rows):
        for c in range(0, k_bytes, size):
            if not span:
                at = r // 8 * stride + r % 8 * 16 + c // 16 * leading + c % 16
            else:
                at = r // 8 * stride + r % 8 * span + c
            at = swizzle(at, mode)
            image[at : at + size] = matrix[r, c // size].tobytes()
    return image, leading, stride


def image_by_mn(matrix: np.ndarray, mode: str) -> tuple[bytearray, int, int]:
    """(rows, k) with rows contiguous, 16-bit elements."""
    rows, depth = matrix.shape
    span = SPAN[mode]
    image = bytearray(rows * depth * 2)
    leading, stride = (rows // 8 * 128, 128) if not span else (depth * span, 8 * span)
    for m in range(rows):
        for k in range(depth):
            if not span:
                at = m // 8 * stride + k // 8 * leading + k % 8 * 16 + m % 8 * 2
            else:
                at = m // (span // 2) * leading + k // 8 * stride + k % 8 * span + m % (span // 2) * 2
            at = swizzle(at, mode)
            image[at : at + 2] = matrix[m, k].tobytes()
    return image, leading, stride


def accumulators(values: np.ndarray) -> np.ndarray:
    """(128, N/2) of a warpgroup to (64, N)."""
    columns = values.shape[1] * 2
    found = np.zeros((64, columns), values.dtype)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for r in range(columns // 2):
            found[16 * warp + lane // 4 + 8 * (r >> 1 & 1), 2 * (lane % 4) + (r & 1) + 8 * (r >> 2)] = values[thread, r]
    return found


def integers(rng: np.random.Generator, shape: tuple[int, ...], type: str) -> np.ndarray:
    return rng.integers(0 if type == "u8" else -3, 4, shape).astype(TYPES[type])


def wgmma(d, a, b, columns, constants, image_a, image_b, *, old=None, a_registers=None, keep=1, tail="", blocks=1):
    """One wgmma on two images (bytes, LBO, SBO, mode[, first byte]); the 64 x N result."""
    count = columns // 2 * TYPES[d if d != "f16" else "f16"].itemsize // 4
    old = np.zeros((128 * blocks, count), np.uint32) if old is None else old
    start_b = (len(image_a[0]) + 1023) // 1024 * 1024
    shared = (start_b + len(image_b[0]) + 1023) // 1024 * 1024
    memory = np.zeros(shared, np.uint8)
    memory[: len(image_a[0])] = np.frombuffer(bytes(image_a[0]), np.uint8)
    memory[start_b : start_b + len(image_b[0])] = np.frombuffer(bytes(image_b[0]), np.uint8)
    starts = [0 + (image_a[4] if len(image_a) > 4 else 0), start_b + (image_b[4] if len(image_b) > 4 else 0)]
    descriptors = [descriptor(start, *part[1:4]) for start, part in zip(starts, (image_a, image_b), strict=True)]
    registers = old if a_registers is None else np.concatenate([old, a_registers], axis=1)
    text = wgmma_text(f"m64n{columns}k{DEPTH[a]}.{d}.{a}.{b}{tail}", count, shared, constants, a_registers is not None)
    out = run(
        text,
        128 * blocks,
        [memory, registers, *descriptors, np.uint32(keep)],
        np.zeros((128 * blocks, count), np.uint32),
    )
    return accumulators(out[-128:].view(TYPES[d]))


def constants_for(type: str) -> str:
    return {"f16": ", 1, 1, 0, 0", "bf16": ", 1, 1, 0, 0", "s8": "", "u8": ""}.get(type, ", 1, 1")


@pytest.mark.parametrize(
    ("d", "a", "b"),
    [
        ("f32", "f16", "f16"), ("f16", "f16", "f16"), ("f32", "bf16", "bf16"), ("f32", "tf32", "tf32"),
        ("f32", "e4m3", "e4m3"),
        ("f16", "e4m3", "e5m2"), ("f32", "e5m2", "e4m3"), ("f16", "e5m2", "e5m2"), ("s32", "s8", "s8"),
        ("s32", "u8", "s8"),
        ("s32", "s8", "u8"), ("s32", "u8", "u8"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("columns", [8, 24, 64])
def test_types(d: str, a: str, b: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    left, right = integers(rng, (64, DEPTH[a]), a), integers(rng, (columns, DEPTH[a]), b)
    old = integers(rng, (128, columns // 2), d)
    images = [(packed_by_k(matrix), 128, 256, 0) for matrix in (left, right)]
    found = wgmma(d, a, b, columns, constants_for(a), *images, old=np.ascontiguousarray(old).view(np.uint32))
    expected = left.astype(np.int64) @ right.T.astype(np.int64) + accumulators(old).astype(np.int64)
    np.testing.assert_array_equal(found.astype(np.int64), expected)


@pytest.mark.parametrize("mode", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize("type", ["f16", "tf32", "e4m3"])
@pytest.mark.parametrize("step", [0, 1])
def test_by_k_in_every_swizzle(mode: str, type: str, step: int) -> None:
    """A tile of two k-steps or more; the second starts 32 bytes further inside the span."""
    rng = np.random.default_rng(step)
    k_bytes = max(64, SPAN[mode])
    size = TYPES[type].itemsize
    if mode == "32B":
        k_bytes, step = 32, 0
    left, right = integers(rng, (64, k_bytes // size), type), integers(rng, (40, k_bytes // size), type)
    images = []
    for matrix in (left, right):
        image, leading, stride = image_by_k(matrix, mode, k_bytes)
        images.append((image, leading, stride, MODE[mode], step * (2 * leading if mode == "none" else 32)))
    found = wgmma("f32", type, type, 40, constants_for(type), *images)
    part = slice(step * DEPTH[type], (step + 1) * DEPTH[type])
    np.testing.assert_array_equal(found, left[:, part].astype(np.float64) @ right[:, part].T.astype(np.float64))


@pytest.mark.parametrize("mode", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize("which", ["a", "b", "both"])
def test_by_rows_in_every_swizzle(mode: str, which: str) -> None:
    rng = np.random.default_rng(4)
    left, right = integers(rng, (64, 16), "f16"), integers(rng, (128, 16), "f16")
    by_k = lambda matrix: (packed_by_k(matrix), 128, 256, 0)  # noqa: E731
    transposed = lambda matrix: (*image_by_mn(matrix, mode), MODE[mode])  # noqa: E731
    image_a = by_k(left) if which == "b" else transposed(left)
    image_b = by_k(right) if which == "a" else transposed(right)
    constants = f", 1, 1, {int(which != 'b')}, {int(which != 'a')}"
    found = wgmma("f32", "f16", "f16", 128, constants, image_a, image_b)
    np.testing.assert_array_equal(found, left.astype(np.float64) @ right.T.astype(np.float64))


@pytest.mark.parametrize("type", ["f16", "tf32", "e4m3", "s8"])
def test_a_in_registers(type: str) -> None:
    rng = np.random.default_rng(5)
    left, right = integers(rng, (64, DEPTH[type]), type), integers(rng, (16, DEPTH[type]), type)
    per = 4 // TYPES[type].itemsize

    def location(lane: int, i: int) -> tuple[int, int]:
        register = i // per
        return lane // 4 + 8 * (register % 2), lane % 4 * per + i % per + 4 * per * (register // 2)

    registers = np.concatenate(
        [pack(elements_of(location, left[16 * warp : 16 * warp + 16], 4 * per), TYPES[type]) for warp in range(4)]
    )
    constants = {"f16": ", 1, 1, 0", "s8": ""}.get(type, ", 1, 1")
    d = "s32" if type == "s8" else "f32"
    found = wgmma(
        d, type, type, 16, constants, (b"", 16, 16, 0), (packed_by_k(right), 128, 256, 0), a_registers=registers
    )
    np.testing.assert_array_equal(found, left.astype(np.float64) @ right.T.astype(np.float64))


def test_every_element_of_d_has_its_place() -> None:
    """B is the identity, so D is A: every element is another number."""
    left = np.arange(64 * 16).reshape(64, 16).astype(np.float16)
    images = [(packed_by_k(matrix), 128, 256, 0) for matrix in (left, np.eye(16, dtype=np.float16))]
    np.testing.assert_array_equal(wgmma("f32", "f16", "f16", 16, ", 1, 1, 0, 0", *images), left)


@pytest.mark.parametrize(("signs", "factor"), [("-1, 1", -1), ("1, -1", -1), ("-1, -1", 1)])
@pytest.mark.parametrize("keep", [0, 1])
def test_scales(signs: str, factor: int, keep: int) -> None:
    """With scale-d 0 the old content is not read, not even NaN."""
    rng = np.random.default_rng(6)
    left, right = integers(rng, (64, 16), "f16"), integers(rng, (8, 16), "f16")
    old = np.full((128, 4), 5.0 if keep else np.nan, np.float32).view(np.uint32)
    images = [(packed_by_k(matrix), 128, 256, 0) for matrix in (left, right)]
    found = wgmma("f32", "f16", "f16", 8, f", {signs}, 0, 0", *images, old=old, keep=keep)
    np.testing.assert_array_equal(found, factor * (left.astype(np.float64) @ right.T.astype(np.float64)) + 5 * keep)


@pytest.mark.parametrize(("tail", "expected"), [(".satfinite", 2**31 - 1), ("", -(2**31) + 31)])
def test_integers_saturate_or_wrap(tail: str, expected: int) -> None:
    images = [(packed_by_k(np.ones((rows, 32), np.int8)), 128, 256, 0) for rows in (64, 8)]
    old = np.full((128, 4), 2**31 - 1, np.uint32)
    assert (wgmma("s32", "s8", "s8", 8, "", *images, old=old, tail=tail) == expected).all()


def test_two_warpgroups() -> None:
    rng = np.random.default_rng(7)
    left, right = integers(rng, (64, 16), "f16"), integers(rng, (8, 16), "f16")
    images = [(packed_by_k(matrix), 128, 256, 0) for matrix in (left, right)]
    found = wgmma("f32", "f16", "f16", 8, ", 1, 1, 0, 0", *images, blocks=2)
    np.testing.assert_array_equal(found, left.astype(np.float64) @ right.T.astype(np.float64))


def test_the_pattern_may_start_inside_of_an_atom() -> None:
    """The swizzle is one of absolute addresses: rows 8 and on of a tile, with base offset 0."""
    rng = np.random.default_rng(8)
    left, right = integers(rng, (64, 64), "f16"), integers(rng, (16, 64), "f16")
    image, leading, stride = image_by_k(right, "128B", 128)
    found = wgmma(
        "f32", "f16", "f16", 8, ", 1, 1, 0, 0", (*image_by_k(left, "128B", 128), 1), (image, leading, stride, 1, 1024)
    )
    np.testing.assert_array_equal(found, left[:, :16].astype(np.float64) @ right[8:, :16].T.astype(np.float64))


# numbers, as measured on an H200


@pytest.mark.parametrize(("type", "bits"), [("f16", 25), ("bf16", 25), ("tf32", 25), ("e4m3", 13), ("e5m2", 13)])
def test_terms_are_cut_below_the_largest(type: str, bits: int) -> None:
    """-1 plus 2^-j: kept to j = 24 with 25 fraction bits, and to j = 13 by fp8."""
    left, right = np.zeros((64, DEPTH[type]), TYPES[type]), np.zeros((8, DEPTH[type]), TYPES[type])
    powers = range(2, 28)
    for row, j in enumerate(powers):
        half = min(j // 2, 6) if type == "e4m3" else j // 2
        left[row, 0] = 2.0**-half
    old = np.full((128, 4), -1, np.float32).view(np.uint32)
    for column in range(8):
        right[column, 0] = 2.0 ** -(6 + column) if type != "e4m3" else 2.0 ** -min(6, column)
    images = [(packed_by_k(matrix), 128, 256, 0) for matrix in (left, right)]
    found = wgmma("f32", type, type, 8, constants_for(type), *images, old=old)
    product = left[:, :1].astype(np.float64) @ right[:, :1].T.astype(np.float64)
    cut = np.trunc(product * 2.0**bits) / 2.0**bits
    assert len(np.unique(product)) > 8
    expected = (cut - 1).astype(np.float32)
    expected = np.where(
        np.abs(expected) > np.abs(cut - 1), np.nextafter(expected, np.float32(0)), expected
    )  # towards zero as well
    np.testing.assert_array_equal(found, expected)


def test_fp8_products_are_cut_at_the_largest_term() -> None:
    """1 + 31 · 2^-14 gives exactly 1."""
    left, right = np.full((64, 32), 2.0**-8, TYPES["e4m3"]), np.full((8, 32), 2.0**-6, TYPES["e4m3"])
    left[:, 0], right[:, 0] = 1, 1
    images = [(packed_by_k(matrix), 128, 256, 0) for matrix in (left, right)]
    assert (wgmma("f32", "e4m3", "e4m3", 8, ", 1, 1", *images) == 1).all()


# mistakes, and what is under way


def small(first: int = 0, bits: int = 0) -> str:
    """A kernel with one wgmma whose descriptors are given as constants."""
    return f"""{HEADER}.shared .align 1024 .b8 smem[4096];
.visible .entry kernel(.param .u64 target) {{
    .reg .b32 %d<4>; .reg .b64 %a; .reg .pred %p; .reg .b32 %t;
    mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 128; mov.b64 %a, {descriptor(first, 128, 256) | bits};
    mov.b32 %d0, 0; mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%d0, %d1, %d2, %d3}}, %a, %a, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    ret;
}}
"""


def test_a_matrix_outside_of_shared_memory_is_an_error() -> None:
    with pytest.raises(MemoryFault, match=r"outside of its 4096 bytes(.|\n)*wgmma"):
        run(small(first=4096), 128, [], np.zeros(4))


def test_reserved_bits_of_a_descriptor_are_an_error() -> None:
    with pytest.raises(EmulatorError, match=r"no matrix descriptor: bits 0x4000 must be zero"):
        run(small(bits=1 << 14), 128, [], np.zeros(4))


def test_half_a_warpgroup_is_an_error() -> None:
    with pytest.raises(EmulatorError, match="needs four whole warps; the block has 2 in warpgroup 0"):
        run(small(), 64, [], np.zeros(4))


def test_different_descriptors_are_an_error() -> None:
    text = small().replace("wgmma.fence", "cvt.u64.u32 %a, %t; wgmma.fence")
    with pytest.raises(EmulatorError, match="different matrix descriptors"):
        run(text, 128, [], np.zeros(4))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("m64n8k16.f32.f16.f16", "m64n12k16.f32.f16.f16", "n = 12"),
        ("m64n8k16.f32.f16.f16", "m64n8k8.f32.f16.f16", "m64n8k8 of f16"),
        ("m64n8k16.f32.f16.f16", "m64n8k16.f32.f16.bf16", "A of f16 and B of bf16"),
        ("1, 1, 1, 0, 0", "1, 1, 2, 0, 0", "constants"),
        ("1, 1, 1, 0, 0", "1, 1, 1", "4 constants"), ("%d2, %d3}, %a", "%d2}, %a", "3 registers for D, not 4"),
        ("mma_async.sync", "mma_async.sp.sync", "sparse"),
    ],
)  # fmt: skip
def test_forms_that_are_not_there(old: str, new: str, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        run(small().replace(old, new), 128, [], np.zeros(4))


def test_operations_are_listed_until_their_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker sees the registers and the bytes of an operation that no thread has waited for."""
    seen, leave = [], Machine.leave

    def look(machine: Machine, *rest: object) -> None:
        pending = machine.block.state[STATE].pending if STATE in machine.block.state else []
        seen.append([(one.registers[1], sum(len(read.addresses) * read.size for read in one.reads)) for one in pending])
        leave(machine, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Machine, "leave", look)
    run(small(), 128, [], np.zeros(4))
    assert seen[-1] == []
    assert [(frozenset({"%d0", "%d1", "%d2", "%d3"}), 64 * 32 + 8 * 32)] in seen


def test_a_product_waits_for_its_four_warps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which one goes another way: it would be a round ahead, with another descriptor."""
    started, leave = [], Machine.leave

    def look(machine: Machine, group: int, at: Run, mask: np.ndarray) -> None:
        if at.instructions and "mma_async" in at.instructions[0].modifiers:
            started.append(int(mask.sum()))
        leave(machine, group, at, mask)

    monkeypatch.setattr(Machine, "leave", look)
    loop = "bra LOOP; JOIN: wgmma.fence"
    text = small().replace("wgmma.fence", loop).replace("setp.lt.u32 %p, %t, 128;", ".reg .b32 %i; mov.b32 %i, 0;")
    around = "add.s64 %a, %a, 16; add.s32 %i, %i, 1;\n    LOOP: setp.ge.s32 %p, %i, 3; @%p bra DONE;\n"
    around += "    setp.lt.u32 %p, %t, 32; @%p bra JOIN; mov.b32 %d0, 1; bra JOIN;\n    DONE: ret;"
    run(text.replace("ret;", around), 128, [], np.zeros(4))
    assert started == [128] * 3
