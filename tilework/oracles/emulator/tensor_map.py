"""The descriptor of a tensor for the copy engine (TMA): the result of `cuTensorMapEncodeTiled`, in an encoding of the
emulator.

    >>> bits = encode_tensor_map("f16", 3 << 40, (64, 128), (256,), (64, 8), swizzle="128B")
    >>> len(bits), decode(bits).box, decode(bits).copy_bytes
    (128, (64, 8), 1024)

All sizes are given innermost first. `strides` are the bytes between neighbours in every dimension but the first, which
is contiguous. The checks are the driver's: what it refuses on Hopper is refused here. The 128 bytes are opaque to a
kernel, which may change single fields with `tensormap.replace`; they are meaningless to a real GPU. A map that a kernel
has built is checked when a copy uses it, as on a GPU; the stride of a dimension of one element is never used.

"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tilework.numerics.rounding import BF16
from tilework.oracles.emulator.memory import Array
from tilework.oracles.emulator.syntax import EmulatorError
from tilework.process.forks import cached_property

SIZE = 128
MAGIC = 0x7457544D
TYPES = tuple("u8 u16 u32 s32 u64 s64 f16 f32 f64 bf16 f32.ftz tf32 tf32.ftz".split())  # as the driver counts
REPLACE_TYPES = tuple("u8 u16 u32 s32 u64 s64 f16 f32 f32.ftz f64 bf16 tf32 tf32.ftz".split())  # as PTX counts


def element_dtype(type: str) -> Any:
    """Return the NumPy type of an element: ``element_dtype("tf32.ftz")`` is float32."""
    plain = type.removesuffix(".ftz").removeprefix("t")
    return BF16 if plain == "bf16" else np.dtype(f"{'i' if plain[0] == 's' else plain[0]}{int(plain[1:]) // 8}")


TYPE_BYTES: dict[str, int] = {type: element_dtype(type).itemsize for type in TYPES}
INTERLEAVES = ("none", "16B", "32B")
SWIZZLES = ("none", "32B", "64B", "128B")
SPANS = {"32B": 32, "64B": 64, "128B": 128}
PIECE = 16  # bytes that a swizzle keeps together
PROMOTIONS = ("none", "64B", "128B", "256B")
FILLS = ("zero", "nan")
CHOICES = {"type": TYPES, "interleave": INTERLEAVES, "swizzle": SWIZZLES, "promotion": PROMOTIONS, "fill": FILLS}
# fields of tensormap.replace, and their names in LAYOUT
FIELDS = {
    "global_address": "address", "rank": "rank", "elemtype": "type", "interleave_layout": "interleave",
    "swizzle_mode": "swizzle", "fill_mode": "fill", "global_dim": "sizes", "global_stride": "strides", "box_dim": "box",
    "element_stride": "steps",
}  # fmt: skip
NAN_HALF = 0x7FF7  # the fill value, in every 16 bits

LAYOUT = np.dtype(
    [
        ("address", "u8"), ("strides", "u8", 4), ("sizes", "i8", 5), ("magic", "u4"), ("box", "u2", 5),
        ("steps", "u1", 5), ("type", "u1"), ("rank", "u1"), ("interleave", "u1"), ("swizzle", "u1"),
        ("promotion", "u1"), ("fill", "u1"),
    ]
)  # fmt: skip


class TensorMapError(EmulatorError):
    """A tensor map that the driver would refuse, or bytes that are not a tensor map."""


@dataclass(frozen=True)
class TensorMap:
    """A tensor in global memory and the box that one copy moves."""

    type: str
    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]  # bytes, of dimension 1 and up
    box: tuple[int, ...]
    steps: tuple[int, ...]
    interleave: str = "none"
    swizzle: str = "none"
    promotion: str = "none"
    fill: str = "zero"

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def width(self) -> int:
        """Bytes of an element."""
        return TYPE_BYTES[self.type]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Elements copied in each dimension: the box divided by the element strides, which the first dimension
        ignores."""
        return tuple(-(-size // step) for size, step in zip(self.box, (1, *self.steps[1:]), strict=True))

    @property
    def copy_bytes(self) -> int:
        """The bytes of a box, as announced to an mbarrier."""
        return int(np.prod(self.counts)) * self.width

    def pieces(self, start: int) -> Array:
        """Return the shared addresses of the 16-byte pieces of a box at `start`. Rows are dense, or as long as the span
        of the swizzle."""
        inner = self.box[0] * self.width
        pitch = SPANS.get(self.swizzle, inner)
        rows = np.arange(self.copy_bytes // inner, dtype=np.uint64)[:, None] * np.uint64(pitch)
        plain = np.uint64(start) + rows + np.arange(0, inner, PIECE, dtype=np.uint64)
        return swizzled(plain.reshape(-1), SWIZZLES.index(self.swizzle))

    def rows(self, start: Sequence[int]) -> tuple[Array, Array]:
        """Return (address of element `start[0]` of every row of the box at `start`, True if the row is in the
        tensor)."""
        offsets, inside = np.zeros((), np.int64), np.ones((), bool)
        for dimension in range(1, self.rank):
            index = start[dimension] + np.arange(self.counts[dimension], dtype=np.int64) * self.steps[dimension]
            offsets = index.reshape(-1, *[1] * offsets.ndim) * self.strides[dimension - 1] + offsets
            inside = ((index >= 0) & (index < self.sizes[dimension])).reshape(-1, *[1] * inside.ndim) & inside
        first = self.address + start[0] * self.width
        return (offsets.reshape(-1) + first).astype(np.uint64), inside.reshape(-1)

    def columns(self, start: int, unit: int = 1) -> slice:
        """Return the slice of a row of the box that is in the tensor, whose end is rounded up to `unit` elements."""
        low, end = min(max(0, -start), self.box[0]), -(-self.sizes[0] // unit) * unit
        return slice(low, max(low, min(self.box[0], end - start)))

    def check(self) -> None:
        """Raise `TensorMapError` for what the driver refuses."""
        rank = self.rank
        refuse(not 1 <= rank <= 5, f"a tensor of {rank} dimensions; 1 to 5 are possible")
        refuse(len(self.strides) != rank - 1, f"{len(self.strides)} strides for {rank} dimensions; the first has none")
        refuse(
            len(self.box) != rank or len(self.steps) != rank,
            "the box and the element strides have as many dimensions as the tensor",
        )
        unit = 32 if self.interleave == "32B" else 16
        refuse(self.address % unit != 0, f"the address {self.address:#x} is not a multiple of {unit}")
        for size in self.sizes:
            refuse(not 0 < size <= 1 << 32, f"a dimension of {size} elements; 1 to 2^32 are possible")
        for size, stride in zip(self.sizes[1:], self.strides, strict=True):
            refuse_stride(stride if size > 1 else 0, unit)
        for size in self.box:
            refuse(not 0 < size <= 256, f"a box of {self.box}; 1 to 256 elements are possible in each dimension")
        for step in self.steps:
            refuse(not 0 < step <= 8, f"element strides of {self.steps}; 1 to 8 are possible")
        inner = self.box[0] * self.width
        refuse(
            self.interleave == "none" and inner % 16 != 0,
            f"a box of {inner} bytes in the first dimension; multiples of 16 are possible",
        )
        refuse(
            inner > SPANS.get(self.swizzle, inner),
            f"a box of {inner} bytes in the first dimension with a swizzle of {self.swizzle}",
        )
        refuse(self.interleave != "none", f"the interleave {self.interleave} is not supported by the emulator")
        refuse(self.fill == "nan" and not self.type.startswith(("f", "bf", "tf")), f"a fill with NaN for {self.type}")


def refuse(wrong: bool, what: str) -> None:
    if wrong:
        raise TensorMapError(f"tensor map: {what}")


def refuse_stride(stride: int, unit: int = PIECE) -> None:
    signed = stride - (1 << 64) if stride >> 63 else stride
    refuse(
        stride % unit != 0 or not 0 <= stride < 1 << 40,
        f"a stride of {signed} bytes; multiples of {unit} below 2^40 are possible",
    )


def swizzled(addresses: Array, mode: int) -> Array:
    """XOR address bits 4.. with bits 7.., as many as `mode` (1 for 32B, 2 for 64B, 3 for 128B)."""
    return addresses ^ ((addresses >> np.uint64(7) & np.uint64((1 << mode) - 1)) << np.uint64(4))


def encode_tensor_map(
    type: str, address: int, sizes: Sequence[int], strides: Sequence[int], box: Sequence[int],
    element_strides: Sequence[int] | None = None, interleave: str = "none", swizzle: str = "none",
    l2_promotion: str = "none", oob_fill: str = "zero",
) -> bytes:  # fmt: skip
    """Return the 128 bytes for a tensor and a box; raise `TensorMapError` for what the driver refuses."""
    refuse(type not in TYPES, f"the type {type!r}; known are {', '.join(TYPES)} (fp8: u8)")
    for name, value, known in (
        ("interleave", interleave, INTERLEAVES),
        ("swizzle", swizzle, SWIZZLES),
        ("L2 promotion", l2_promotion, PROMOTIONS),
        ("fill", oob_fill, FILLS),
    ):
        refuse(value not in known, f"the {name} {value!r}; known are {', '.join(known)}")
    steps = tuple(element_strides or (1,) * len(sizes))
    sizes, strides, box = (tuple(map(int, given)) for given in (sizes, strides, box))
    found = TensorMap(type, int(address), sizes, strides, box, steps, interleave, swizzle, l2_promotion, oob_fill)
    found.check()
    for stride in strides:
        refuse_stride(stride)
    return encode(found)


def encode(map: TensorMap) -> bytes:
    record = np.zeros((), LAYOUT)
    record["magic"], record["address"], record["rank"] = MAGIC, map.address, map.rank - 1
    for name in ("strides", "sizes", "box", "steps"):
        record[name][: len(getattr(map, name))] = getattr(map, name)
    for name, known in CHOICES.items():
        record[name] = known.index(getattr(map, name))
    return record.tobytes().ljust(SIZE, b"\0")


@lru_cache(256)
def decode(bits: bytes) -> TensorMap:
    """Decode a tensor map of 128 bytes, and check it, because `tensormap.replace` may have changed it."""
    record = np.frombuffer(bits, LAYOUT, 1)[0]
    if int(record["magic"]) != MAGIC:
        raise TensorMapError("these 128 bytes are no tensor map; the emulator's are made by encode_tensor_map")
    rank = int(record["rank"]) + 1
    fields = {name: tuple(int(value) for value in record[name]) for name in ("strides", "box", "steps", "sizes")}
    for name, known in CHOICES.items():
        refuse(record[name] >= len(known), f"the {name} code {record[name]}")
    found = TensorMap(
        address=int(record["address"]),
        sizes=fields["sizes"][:rank],
        strides=fields["strides"][: rank - 1],
        box=fields["box"][:rank],
        steps=fields["steps"][:rank],
        **{name: known[record[name]] for name, known in CHOICES.items()},
    )
    found.check()
    return found


def replace_field(bits: bytes, field: str, value: int, ordinal: int = 0) -> bytes:
    """`tensormap.replace`: change one field, with PTX's field index."""
    record = np.frombuffer(bits[: LAYOUT.itemsize], LAYOUT, 1).copy()[0:1]
    if not any(bits):  # a kernel may start from zeros and set every field
        record["magic"] = MAGIC
    if int(record["magic"][0]) != MAGIC:
        raise TensorMapError("tensormap.replace on 128 bytes that are no tensor map")
    name = FIELDS[field]
    if record[name].ndim > 1:
        refuse(ordinal >= record[name].shape[1], f"dimension {ordinal} of {field}")
        if field == "global_stride" and record["sizes"][0, ordinal + 1] > 1:  # for which tilework's code has a trap
            refuse_stride(value)
        record[name][0, ordinal] = value - (1 << 32) if field == "global_dim" and value >> 31 else value
    elif field == "elemtype":
        refuse(value >= len(REPLACE_TYPES), f"the element type code {value}")
        record[name] = TYPES.index(REPLACE_TYPES[value])
    else:
        record[name] = value
    return record.tobytes() + bits[LAYOUT.itemsize :]
