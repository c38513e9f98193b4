"""Tensor copies: boxes, swizzles, elements out of bounds, reductions, tensor maps built and changed by kernels."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.tensor_programs import HEADER
from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.machine import Stuck
from tilework.oracles.emulator.memory import MemoryFault
from tilework.oracles.emulator.syntax import EmulatorError
from tilework.oracles.emulator.tensor_map import TYPE_BYTES, TYPES, TensorMapError, decode, encode_tensor_map
from tilework.oracles.emulator.translate import Unsupported

SHARED = 16384
RNG = np.random.default_rng(1)
BF16 = np.dtype(ml_dtypes.bfloat16)


def kernel(copy: str, bytes: int, before: str = "", after: str = "", param: bool = True) -> str:
    """kernel(map, image, target): shared memory is `image`, then thread 0 runs `copy`, then it is stored to
    `target`."""
    declared = ".param .align 128 .b8 map[128]" if param else ".param .u64 map"
    find = "mov.b64 %m, map; cvta.param.u64 %m, %m;" if param else "ld.param.u64 %m, [map];"
    return f"""{HEADER}.shared .align 1024 .b8 smem[{SHARED}];
.shared .align 8 .b64 bar;
.visible .entry kernel({declared}, .param .u64 image, .param .u64 target) {{
    .reg .b32 %t, %s, %b, %at, %w, %c<6>; .reg .b64 %m, %image, %out, %to; .reg .pred %p, %q; .reg .b16 %h;
    ld.param.u64 %image, [image]; ld.param.u64 %out, [target]; {find}
    mov.u32 %t, %tid.x; mov.u32 %s, smem; mov.u32 %b, bar; setp.eq.u32 %p, %t, 0; mov.b16 %h, 1; mov.u32 %at, %t;
    shl.b32 %at, %at, 2;
I:  cvt.u64.u32 %to, %at; add.u64 %to, %to, %image; ld.global.b32 %w, [%to]; add.u32 %c0, %at, %s;
st.shared.b32 [%c0], %w;
    add.u32 %at, %at, 512; setp.lt.u32 %q, %at, {SHARED}; @%q bra I;
    @%p mbarrier.init.shared::cta.b64 [%b], 1; @%p fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;
    bar.sync 0;
    {before}
    @%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], {bytes};
    {copy}
    {after or "W: mbarrier.try_wait.parity.shared::cta.b64 %q, [%b], 0; @!%q bra W;"}
    shl.b32 %at, %t, 2;
O:  add.u32 %c0, %at, %s; ld.shared.b32 %w, [%c0]; cvt.u64.u32 %to, %at; add.u64 %to, %to, %out;
st.global.b32 [%to], %w;
    add.u32 %at, %at, 512; setp.lt.u32 %q, %at, {SHARED}; @%q bra O;
    ret;
}}
"""


class Tensor:
    """An array on a device, and its tensor map; `shape` and `box` are outermost first, as in NumPy."""

    def __init__(
        self,
        array: np.ndarray,
        type: str,
        box: tuple[int, ...],
        shape: tuple[int, ...] | None = None,
        **options: object,
    ) -> None:
        self.device, self.array = Device(1 << 28), array
        self.address = self.device.upload(array)
        sizes = (shape or array.shape)[::-1]
        self.bits = encode_tensor_map(type, self.address, sizes, array.strides[:-1][::-1], box[::-1], **options)  # type: ignore[arg-type]

    def run(self, text: str, image: np.ndarray | None = None, map: object = None) -> np.ndarray:
        """Shared memory after the kernel."""
        image = (
            np.full(SHARED, 0xAB, np.uint8)
            if image is None
            else np.concatenate([image, np.zeros(SHARED - len(image), np.uint8)])
        )
        source, target = self.device.upload(image), self.device.upload(image)
        self.device.launch(
            self.device.load(text).function("kernel"), 1, 128, [self.bits if map is None else map, source, target]
        )
        return self.device.download(target, image)

    def after(self) -> np.ndarray:
        return self.device.download(self.address, self.array)


def load_text(start: tuple[int, ...], bytes: int, extra: str = "", operands: str = "", space: str = "cluster") -> str:
    """A load of the box at `start`, outermost first."""
    coordinates = ", ".join(str(c) for c in start[::-1])
    instruction = f"cp.async.bulk.tensor.{len(start)}d.shared::{space}.global{extra}.mbarrier::complete_tx::bytes"
    return kernel(
        (
            f"@%p {instruction}{operands.partition('|')[0]} [%s], [%m, {{{coordinates}}}], "
            f"[%b]{operands.partition('|')[2]};"
        ),
        bytes,
    )


def box_of(
    array: np.ndarray,
    start: tuple[int, ...],
    box: tuple[int, ...],
    fill: object = 0,
    shape: tuple[int, ...] | None = None,
) -> np.ndarray:
    """The box, element by element."""
    shape = shape or array.shape
    found = np.full(box, fill, array.dtype)
    for index in itertools.product(*(range(size) for size in box)):
        at = tuple(first + i for first, i in zip(start, index, strict=True))
        if all(0 <= i < size for i, size in zip(at, shape, strict=True)):
            found[index] = array[at]
    return found


def swizzled(data: bytes, mode: str) -> np.ndarray:
    """Bytes where the formula puts them."""
    bits = {"none": 0, "32B": 1, "64B": 2, "128B": 3}[mode]
    found = np.zeros(len(data), np.uint8)
    for o, value in enumerate(data):
        found[o ^ ((o >> 7 & (1 << bits) - 1) << 4)] = value
    return found


# loads


@pytest.mark.parametrize("mode", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize(
    ("type", "dtype"), [("f16", np.float16), ("u8", np.uint8), ("f32", np.float32), ("u64", np.uint64), ("bf16", BF16)]
)
def test_swizzles(mode: str, type: str, dtype: object) -> None:
    size = np.dtype(dtype).itemsize  # type: ignore[arg-type]
    columns = {"none": 64, "32B": 32, "64B": 64, "128B": 128}[mode] // size
    array = RNG.integers(1, 100, (48, 128)).astype(dtype)  # type: ignore[call-overload]
    tensor = Tensor(array, type, (32, columns), swizzle=mode)
    start = (3, 48 // size)
    found = tensor.run(load_text(start, 32 * columns * size))
    expected = swizzled(box_of(array, start, (32, columns)).tobytes(), mode)
    np.testing.assert_array_equal(found[: len(expected)], expected)
    assert (found[len(expected) :] == 0xAB).all()


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("side", [-1, 0, 1])
def test_ranks_and_edges(rank: int, side: int) -> None:
    """A box in bounds, or beyond the lower or upper end of every dimension."""
    shape, box = (3, 4, 5, 6, 32)[5 - rank :], (2, 2, 3, 3, 16)[5 - rank :]
    array = RNG.integers(1, 1 << 16, shape).astype(np.uint16)
    start = {-1: tuple(-1 for _ in box), 0: tuple(1 for _ in box), 1: tuple(size - 1 for size in shape)}[side]
    start = (*start[:-1], {-1: -8, 0: 8, 1: 24}[side])  # in units of 16 bytes
    tensor = Tensor(array, "u16", box)
    found = tensor.run(load_text(start, int(np.prod(box)) * 2))
    expected = box_of(array, start, box)
    np.testing.assert_array_equal(found[: expected.nbytes].view(np.uint16).reshape(box), expected)


def test_a_box_far_outside_is_all_fill() -> None:
    tensor = Tensor(np.ones((16, 16), np.float32), "f32", (8, 8))
    found = tensor.run(load_text((-100, 4000), 256))
    assert (found[:256] == 0).all()


@pytest.mark.parametrize(("type", "dtype"), [("f16", np.uint16), ("bf16", np.uint16), ("f32", np.uint32)])
def test_fill_with_nan(type: str, dtype: object) -> None:
    array = RNG.integers(1, 100, (8, 32)).astype(dtype)  # type: ignore[call-overload]
    tensor = Tensor(array, type, (8, 16), oob_fill="nan")
    found = tensor.run(load_text((4, 24), array.itemsize * 128))
    values = found[: array.itemsize * 128].view(dtype).reshape(8, 16)  # type: ignore[call-overload]
    np.testing.assert_array_equal(values[:4, :8], array[4:, 24:])
    outside = np.concatenate([values[4:].reshape(-1), values[:4, 8:].reshape(-1)])
    floats = outside.view({"f16": np.float16, "bf16": BF16, "f32": np.float32}[type])
    assert np.isnan(floats.astype(np.float32)).all()
    if type == "f16":
        assert (outside == 0x7FF7).all()


def test_the_tensor_may_be_part_of_a_larger_array() -> None:
    """Rows of 30 elements in an array of 40: what follows the 30th is outside."""
    array = RNG.integers(1, 100, (16, 40)).astype(np.uint32)
    tensor = Tensor(array, "u32", (4, 8), shape=(10, 30))
    found = tensor.run(load_text((8, 24), 128))
    np.testing.assert_array_equal(
        found[:128].view(np.uint32).reshape(4, 8), box_of(array, (8, 24), (4, 8), shape=(10, 30))
    )


@pytest.mark.parametrize(("mode", "span"), [("32B", 32), ("64B", 64), ("128B", 128)])
def test_rows_shorter_than_the_swizzle_leave_room(mode: str, span: int) -> None:
    """16 bytes of every row: rows begin at multiples of the span, as on an H200, and the mbarrier counts 16 bytes."""
    array = RNG.integers(1, 100, (16, 32)).astype(np.uint8)
    tensor = Tensor(array, "u8", (16, 16), swizzle=mode)
    found = tensor.run(load_text((0, 16), 256))
    expected = np.full(16 * span, 0xAB, np.uint8)
    for row in range(16):
        at = row * span
        at ^= (at >> 7 & span // 16 - 1) << 4
        expected[at : at + 16] = array[row, 16:]
    np.testing.assert_array_equal(found[: len(expected)], expected)


def test_tf32_is_rounded() -> None:
    """To nearest even, as on an H200; denormals stay."""
    array = np.array(
        [0x3F801000, 0x3F803000, 0x3F800FFF, 0x3F801001, 0x0072CD8E, 0x802B1F00, 0xBF801FFF, 0x7F800000], np.uint32
    ).reshape(1, 8)
    for type in ("tf32", "tf32.ftz"):
        found = Tensor(array, type, (1, 8)).run(load_text((0, 0), 32))[:32].view(np.uint32)
        assert [hex(x) for x in found] == [
            hex(x)
            for x in (0x3F800000, 0x3F804000, 0x3F800000, 0x3F802000, 0x0072C000, 0x802B2000, 0xBF802000, 0x7F800000)
        ]


def test_element_strides() -> None:
    """Stride 2 in dimension 1 with a box of 16 loads 8 rows."""
    array = RNG.integers(1, 100, (64, 16)).astype(np.uint16)
    tensor = Tensor(array, "u16", (16, 16), element_strides=(1, 2))
    found = tensor.run(load_text((5, 0), 8 * 32))
    np.testing.assert_array_equal(found[:256].view(np.uint16).reshape(8, 16), array[5:21:2])


@pytest.mark.parametrize(
    ("extra", "operands", "space"),
    [
        (".tile", "|", "cluster"),
        ("", ".multicast::cluster|, %h", "cluster"),
        ("", ".L2::cache_hint|, %image", "cluster"),
        ("", "|", "cta"),
    ],
)
def test_forms_of_loads(extra: str, operands: str, space: str) -> None:
    array = RNG.integers(1, 100, (8, 8)).astype(np.uint32)
    found = Tensor(array, "u32", (8, 8)).run(load_text((0, 0), 256, extra, operands, space))
    np.testing.assert_array_equal(found[:256].view(np.uint32).reshape(8, 8), array)


def test_a_map_in_global_memory_and_prefetches() -> None:
    array = RNG.integers(1, 100, (8, 8)).astype(np.uint32)
    tensor = Tensor(array, "u32", (8, 8))
    copy = """@%p prefetch.tensormap [%m]; @%p cp.async.bulk.prefetch.tensor.2d.L2.global [%m, {0, 0}];
    @%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%m, {0, 0}], [%b];"""
    found = tensor.run(kernel(copy, 256, param=False), map=tensor.device.upload(np.frombuffer(tensor.bits, np.uint8)))
    np.testing.assert_array_equal(found[:256].view(np.uint32).reshape(8, 8), array)


def test_a_load_is_not_there_before_the_wait() -> None:
    tensor = Tensor(np.ones((8, 8), np.uint32), "u32", (8, 8))
    copy = "@%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%m, {0, 0}], [%b];"
    assert (tensor.run(kernel(copy, 256, after="bar.sync 0;")) == 0xAB).all()


# stores

COMMIT = (
    "@%p cp.async.bulk.commit_group; @%p cp.async.bulk.wait_group 0; "
    "@%p mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%b], 16;"
)


@pytest.mark.parametrize("mode", ["none", "32B", "64B", "128B"])
@pytest.mark.parametrize("start", [(2, 8), (-2, -8), (28, 56)])
def test_stores(mode: str, start: tuple[int, int]) -> None:
    """Elements out of bounds are skipped."""
    columns = {"none": 32, "32B": 16, "64B": 32, "128B": 64}[mode]
    array = RNG.integers(1, 100, (32, 64)).astype(np.uint16)
    box = RNG.integers(100, 200, (8, columns)).astype(np.uint16)
    tensor = Tensor(array, "u16", (8, columns), swizzle=mode)
    copy = f"@%p cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%m, {{{start[1]}, {start[0]}}}], [%s];"
    tensor.run(kernel(copy, 16, after=COMMIT), swizzled(box.tobytes(), mode))
    expected = array.copy()
    for row, column in itertools.product(range(8), range(columns)):
        at = start[0] + row, start[1] + column
        if 0 <= at[0] < 32 and 0 <= at[1] < 64:
            expected[at] = box[row, column]
    np.testing.assert_array_equal(tensor.after(), expected)


@pytest.mark.parametrize(
    ("name", "type", "dtype", "function"),
    [
        ("add", "u32", np.uint32, np.add), ("add", "f32", np.float32, np.add), ("add", "f16", np.float16, np.add),
        ("add", "bf16", BF16, np.add),
        ("min", "s32", np.int32, np.minimum), ("max", "u64", np.uint64, np.maximum),
        ("min", "f16", np.float16, np.minimum),
        ("and", "u32", np.uint32, np.bitwise_and), ("or", "u32", np.uint32, np.bitwise_or),
        ("xor", "u64", np.uint64, np.bitwise_xor),
    ],
)  # fmt: skip
def test_reductions(name: str, type: str, dtype: object, function: object) -> None:
    kind = np.dtype(dtype)  # type: ignore[arg-type]
    array, box = (RNG.integers(1, 100, (8, 16)).astype(kind) for _ in range(2))
    tensor = Tensor(array, type, (8, 16))
    copy = f"@%p cp.reduce.async.bulk.tensor.2d.global.shared::cta.{name}.tile.bulk_group [%m, {{8, 2}}], [%s];"
    tensor.run(kernel(copy, 16, after=COMMIT), box.view(np.uint8).reshape(-1))
    expected = array.copy()
    expected[2:, 8:] = function(array[2:, 8:], box[:6, :8])  # type: ignore[operator]
    np.testing.assert_array_equal(tensor.after().astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize(
    ("type", "dtype", "end"), [("f16", np.float16, 64), ("bf16", BF16, 64), ("f32", np.float32, 61)]
)
def test_reductions_of_16_bits_work_on_whole_pieces(type: str, dtype: object, end: int) -> None:
    """Rows of 61 elements, 64 apart: an H200 adds to the three that follow them as well, if they are of 16 bits."""
    array = np.ones((4, 64), dtype)  # type: ignore[call-overload]
    tensor = Tensor(array, type, (4, 16), shape=(4, 61))
    copy = "@%p cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%m, {56, 0}], [%s];"
    tensor.run(kernel(copy, 16, after=COMMIT), np.ones((4, 16), dtype).view(np.uint8).reshape(-1))  # type: ignore[call-overload]
    expected = np.ones((4, 64))
    expected[:, 56:end] = 2
    np.testing.assert_array_equal(tensor.after().astype(np.float64), expected)


def test_a_store_without_a_wait_arrives() -> None:
    tensor = Tensor(np.zeros((8, 8), np.uint32), "u32", (8, 8))
    copy = "@%p cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%m, {0, 0}], [%s], %image;"
    tensor.run(kernel(copy, 0, after="bar.sync 0;"), np.arange(64, dtype=np.uint32).view(np.uint8))
    np.testing.assert_array_equal(tensor.after().reshape(-1), np.arange(64))


# tensor maps that a kernel makes


def test_a_map_made_by_the_kernel() -> None:
    """A template in shared memory gets another address, shape, strides and box, is published, and used."""
    array = RNG.integers(1, 100, (3, 20, 32)).astype(np.uint16)
    tensor = Tensor(array, "u16", (8, 16, 16)[:3])
    template = encode_tensor_map("u8", tensor.address, (64, 64), (64,), (16, 16))
    copy = tensor.device.upload(np.zeros(128, np.uint8))
    replace = "@%p tensormap.replace.tile."
    before = f"""
    .reg .b64 %g, %a; mov.b64 %g, {copy}; mov.b64 %a, {tensor.address};
    {replace}global_address.shared::cta.b1024.b64 [%s], %a;
    {replace}rank.shared::cta.b1024.b32 [%s], 2; {replace}elemtype.shared::cta.b1024.b32 [%s], 1;
    {replace}global_dim.shared::cta.b1024.b32 [%s], 0, 32; {replace}global_dim.shared::cta.b1024.b32 [%s], 1, 20;
    {replace}global_dim.shared::cta.b1024.b32 [%s], 2, 3;
    {replace}global_stride.shared::cta.b1024.b64 [%s], 0, 64;
    {replace}global_stride.shared::cta.b1024.b64 [%s], 1, 1280;
    {replace}box_dim.shared::cta.b1024.b32 [%s], 0, 16; {replace}box_dim.shared::cta.b1024.b32 [%s], 1, 8;
    {replace}box_dim.shared::cta.b1024.b32 [%s], 2, 2;
    {replace}element_stride.shared::cta.b1024.b32 [%s], 0, 1; {replace}element_stride.shared::cta.b1024.b32 [%s], 1, 1;
    {replace}element_stride.shared::cta.b1024.b32 [%s], 2, 1;
    {replace}swizzle_mode.shared::cta.b1024.b32 [%s], 1; {replace}fill_mode.shared::cta.b1024.b32 [%s], 0;
    {replace}interleave_layout.shared::cta.b1024.b32 [%s], 0;
    bar.sync 0; setp.lt.u32 %q, %t, 32;
    @%q tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%g], [%s], 128;
    bar.sync 0; fence.proxy.tensormap::generic.acquire.gpu [%g], 128;"""
    copy = (
        "@%p cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%g, {16, 14, 1}], [%b];"
    )
    found = tensor.run(kernel(copy, 512, before), np.frombuffer(template, np.uint8))
    expected = swizzled(box_of(array, (1, 14, 16), (2, 8, 16)).tobytes(), "32B")
    np.testing.assert_array_equal(found[:512], expected)


def test_maps_survive_encoding() -> None:
    bits = encode_tensor_map(
        "bf16",
        1 << 41,
        (100, 7, 9),
        (208, 4096),
        (64, 4, 2),
        (1, 2, 3),
        swizzle="128B",
        l2_promotion="256B",
        oob_fill="nan",
    )
    found = decode(bits)
    assert (found.type, found.address, found.sizes, found.strides, found.box) == (
        "bf16",
        1 << 41,
        (100, 7, 9),
        (208, 4096),
        (64, 4, 2),
    )
    assert (found.steps, found.swizzle, found.promotion, found.fill, found.counts) == (
        (1, 2, 3),
        "128B",
        "256B",
        "nan",
        (64, 2, 1),
    )


GOOD = {"type": "f16", "address": 1 << 41, "sizes": (64, 64), "strides": (128,), "box": (64, 16)}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"address": (1 << 41) + 8}, "not a multiple of 16"), ({"strides": (136,)}, "a stride of 136 bytes"),
        ({"strides": (1 << 40,)}, "below 2"),
        ({"box": (64, 257)}, "1 to 256"), ({"box": (12, 16)}, "a box of 24 bytes"),
        ({"box": (68, 16), "swizzle": "128B"}, "136 bytes"),
        ({"box": (32, 8), "swizzle": "32B"}, "with a swizzle of 32B"), ({"element_strides": (1, 9)}, "1 to 8"),
        ({"sizes": (0, 4)}, "0 elements"),
        ({"sizes": (4,) * 6, "strides": (16,) * 5, "box": (8,) * 6}, "6 dimensions"),
        ({"strides": ()}, "0 strides for 2"), ({"type": "s8"}, "'s8'"),
        ({"swizzle": "96B"}, "'96B'"), ({"interleave": "16B"}, "interleave 16B is not supported"),
        ({"type": "u16", "oob_fill": "nan"}, "NaN for u16"),
    ],
)  # fmt: skip
def test_maps_that_the_driver_refuses(change: dict[str, object], why: str) -> None:
    encode_tensor_map(**GOOD)  # type: ignore[arg-type]
    with pytest.raises(TensorMapError, match=why):
        encode_tensor_map(**{**GOOD, **change})  # type: ignore[arg-type]


def test_every_type_has_a_size() -> None:
    assert [TYPE_BYTES[type] for type in TYPES] == [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4]


# mistakes


def simple() -> Tensor:
    return Tensor(np.ones((8, 8), np.uint32), "u32", (8, 8))


LOAD = "@%p cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%m, {0, 0}], [%b];"


@pytest.mark.parametrize(
    ("text", "error", "why"),
    [
        (kernel(LOAD, 240), Stuck, "wait for something that does not happen"),
        (kernel(LOAD.replace("{0, 0}", "{2, 0}"), 256), EmulatorError, ("2 elements of 4 bytes are not a multiple "
                                                                        "of 16 bytes")),
        (kernel(LOAD.replace("[%s]", "[%s+64]"), 256), EmulatorError, "0x40, which is not a multiple of 128"),
        (kernel(LOAD.replace("[%s]", f"[%s+{SHARED}]"), 256), MemoryFault, "outside of its"),
        (kernel(LOAD.replace("2d", "3d").replace("{0, 0}", "{0, 0, 0}"), 256), TensorMapError,
         "2 dimensions is used with 3"),
        (kernel(LOAD.replace("[%m,", "[%image,"), 256), TensorMapError, "are no tensor map"),
        (kernel(LOAD.replace("2d", "3d"), 256), Unsupported, "3 dimensions and 2 coordinates"),
        (kernel(LOAD.replace(".global.", ".global.im2col."), 256), Unsupported, "not im2col"),
        (kernel(LOAD.replace(".global.", ".global.tile::gather4."), 256), Unsupported, "sm_100"),
        (kernel(LOAD.replace("bytes [", "bytes.multicast::cluster [").replace("[%b];", "[%b], 3;"), 256), EmulatorError,
         "of a cluster of 1"),
    ],
)  # fmt: skip
def test_mistakes(text: str, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        simple().run(text)


def test_a_tensor_that_is_not_allocated() -> None:
    tensor = simple()
    bits = encode_tensor_map("u32", tensor.address + (1 << 26), (8, 8), (32,), (8, 8))
    with pytest.raises(MemoryFault, match=r"not allocated(.|\n)*cp\.async\.bulk\.tensor"):
        tensor.run(kernel(LOAD, 256), map=bits)
