"""The arguments of a launch as the machine code of a CPU kernel takes them, and the memory that a kernel reaches
through them.

    slots = slots_of(("ptr", "i32", "f32"), ["*fp32", "i32", "constexpr", "fp32"], stored=(0,))
    slots.packer()((x, 1024, BLOCK, 0.5))            # 24 bytes: address of x, 1024, 0.5

A packer is a Python function written for one signature, because it runs at every launch. It makes one slot of 8 bytes
per parameter. A tensor descriptor takes the slots of all parameters that it has become: pointer, sizes, strides, "pad
with NaN", and once more sizes and strides. An array that the kernel writes to must be writable.

    reach(x[4:8])             (0x7f10, 0x7f20)        of a NumPy array from its first byte to its last, strides included
    reach(tensor)             all of its storage, which a kernel may reach by offsets
    reach(0x7f00)             EVERYTHING: an address says nothing about the end of its memory

`overlap_check(...)` returns the function that a launcher calls before it runs code that loads and stores through some
pairs of parameters in another order than the program (`Interface.apart`). The native launcher compares the same extents
in machine code (`runtime/launch/native/code/guards.py`).
"""

import math
import struct
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

from tilework.runtime.devices.dlpack import is_cuda_export
from tilework.runtime.launch.python import specialize
from tilework.runtime.launch.python.wrappers import TensorWrapper

Packer = Callable[[Sequence[object]], bytes]

FORMATS = {"ptr": "Q", "i64": "q", "i32": "i4x", "i16": "h6x", "i8": "b7x", "i1": "?7x"}
FORMATS |= {"f64": "d", "f32": "f4x", "f16": "e6x", "bf16": "H6x"}
INT_BITS = {"i64": 64, "i32": 32, "i16": 16, "i8": 8}


def slots_of(
    kinds: Sequence[str],
    signature: Sequence[object] | None,
    stored: Sequence[int],
    name: str = "kernel",
    alignments: Sequence[int] = (),
) -> "Slots":
    """Return the slots of one kernel; `signature` None means one argument per parameter.

    `stored` are the parameters that the kernel writes through, `alignments` the alignment of each.
    """
    slots = Slots(kinds, dict(zip_longest(stored, alignments, fillvalue=1)), name)
    types = signature if signature is not None else [None] * len(kinds)
    for position, type in enumerate(types):
        slots.add(type, f"args[{position}]")
    if slots.used != len(kinds):
        raise TypeError(f"{name} has {len(kinds)} parameters, but its signature {signature} has {slots.used}")
    return slots


class Slots:
    """The format and the Python expression of each slot, collected argument by argument."""

    def __init__(self, kinds: Sequence[str], stored: dict[int, int], name: str) -> None:
        self.kinds, self.stored, self.name = kinds, stored, name
        self.formats: list[str] = []
        self.values: list[str] = []
        self.texts: list[str] = []  # the arguments that the values are of

    @property
    def used(self) -> int:
        return len(self.values)

    def packer(self) -> Packer:
        """The function that makes the bytes of all slots of the arguments."""
        scope: dict[str, Any] = {"pack": struct.Struct("<" + "".join(self.formats)).pack, "slow": self.pack_wide}
        scope |= {"address": address, "writable": writable, "aligned": aligned, "bits": bfloat16_bits, "is_nan": is_nan}
        scope["rounds_to_tf32"] = rounds_to_tf32
        scope["refused"] = (struct.error, OverflowError)
        values = ", ".join(self.values)
        source = (
            f"def packed(args):\n"
            f"    try:\n"
            f"        return pack({values})\n"
            f"    except refused:\n"
            f"        return slow(({values}{',' if self.values else ''}))\n"
        )
        exec(compile(source, f"<arguments of {self.name}>", "exec"), scope)
        return scope["packed"]  # pyright: ignore[reportReturnType]

    def add(self, type: object, text: str) -> None:
        """The slots of one argument, given by its expression."""
        if type == "constexpr":
            return
        if isinstance(type, tuple):
            for index, inner in enumerate(type):
                self.add(inner, f"{text}[{index}]")
        elif isinstance(type, str) and type.startswith("tensordesc"):
            self.add_descriptor(text, type[: type.index("]")].count(",") + 1)
        else:
            self.add_plain(type, text)

    def add_plain(self, type: object, text: str) -> None:
        """Add the slot of one scalar or pointer."""
        self.add_value(text)

    def add_value(self, text: str) -> None:
        if self.used == len(self.kinds):
            raise TypeError(f"{self.name} has {len(self.kinds)} parameters, and its signature more")
        kind = self.kinds[self.used]
        self.texts.append(text)
        if kind == "ptr":
            alignment = self.stored.get(self.used)
            text = f"address({text})" if alignment is None else f"writable({text}, {self.name!r})"
            if alignment is not None and alignment > 1:
                text = f"aligned({text}, {alignment}, {self.name!r})"
        elif kind == "bf16":
            text = f"bits({text})"
        elif kind not in FORMATS:
            raise TypeError(f"parameter {self.used} of {self.name} is {kind}, which cannot be passed by value")
        self.formats.append(FORMATS[kind])
        self.values.append(text)

    def add_descriptor(self, text: str, rank: int) -> None:
        """Pointer, sizes, strides, the two flags; then the sizes and strides that the language passes beside them."""
        sizes = [f"{text}.shape[{axis}]" for axis in range(rank)] + [f"{text}.strides[{axis}]" for axis in range(rank)]
        self.add_value(f"{text}.base")
        for value in (*sizes, f"is_nan({text})", f"rounds_to_tf32({text})"):
            self.add_value(value)
        rest = tuple(self.kinds[self.used : self.used + 2 * rank])
        if rest == ("i32",) * rank + ("i64",) * rank:
            for value in sizes:
                self.add_value(value)

    def pack_wide(self, values: Sequence[Any]) -> bytes:
        """For values that `struct` refuses: integers wrap around at the width of their parameter, others are errors."""
        parts = []
        for position, (kind, code, value) in enumerate(zip(self.kinds, self.formats, values, strict=True)):
            if bits := INT_BITS.get(kind):
                if isinstance(value, float) or not hasattr(value, "__index__"):
                    raise TypeError(f"parameter {position} of {self.name} is {kind}, but the argument is {value!r}")
                half = 1 << (bits - 1)
                value = (value.__index__() + half) % (2 * half) - half
            elif kind == "f32" or kind == "f16":
                value = rounded(kind, float(value))
            try:
                parts.append(struct.pack(f"<{code}", value))
            except (struct.error, OverflowError) as error:
                raise TypeError(
                    f"parameter {position} of {self.name} is {kind}, but the argument is {value!r}"
                ) from error
        return b"".join(parts)


def rounded(kind: str, value: float) -> float:
    """A float that is too large for its format becomes infinite."""
    try:
        struct.pack({"f32": "<f", "f16": "<e"}[kind], value)
    except OverflowError:
        return math.copysign(math.inf, value)
    return value


def float16_bits(value: float) -> int:
    """Return the bits of the fp16 nearest to a float, ties to even."""
    return struct.unpack("<H", struct.pack("<e", rounded("f16", float(value))))[0]


def bfloat16_bits(value: float) -> int:
    """Return the bits of the bf16 nearest to a float, ties to even."""
    wide: int = struct.unpack("<I", struct.pack("<f", rounded("f32", float(value))))[0]
    if value != value:
        return 0x7FC0
    return (wide + 0x7FFF + (wide >> 16 & 1)) >> 16


def is_nan(descriptor: object) -> bool:
    """Return True if loads outside of a descriptor's shape give NaN."""
    return getattr(descriptor, "padding", "zero") == "nan"


def rounds_to_tf32(descriptor: object) -> bool:
    """Return True if what a descriptor loads is rounded to tf32."""
    return getattr(descriptor, "round_f32_to_tf32", False)


def address(arg: object) -> int:
    """The address of an argument's memory; integers are addresses, None is the null pointer."""
    rule = ADDRESSES.get(type(arg))
    if rule is None:
        rule = ADDRESSES[type(arg)] = address_rule(arg)
    return rule(arg)


def writable(arg: Any, name: str) -> int:
    """The address of memory that the kernel `name` writes to."""
    kind = type(arg)
    if kind not in HAS_FLAGS:
        HAS_FLAGS[kind] = hasattr(getattr(arg, "flags", None), "writeable")
    if HAS_FLAGS[kind]:
        if not arg.flags.writeable:
            raise ValueError(
                f"{name} writes to an array that is read-only, of shape {arg.shape} and type {arg.dtype}:"
                " pass a copy, or set its flags.writeable"
            )
    elif kind is TensorWrapper:
        return writable(arg.base, name)
    return address(arg)


def aligned(pointer: int, alignment: int, name: str) -> int:
    """The address of memory on which the kernel `name` does atomics of `alignment` bytes."""
    if pointer % alignment:
        raise ValueError(f"{name} does atomics on an array that is not aligned to {alignment} bytes: pass a copy")
    return pointer


def address_rule(arg: object) -> Callable[[Any], int]:
    """The function that returns the address of a class's instances, chosen once by what they offer."""
    if isinstance(arg, int):
        return int
    if hasattr(arg, "data_ptr"):
        return tensor_address
    if specialize.is_array(arg) and specialize.array_rule(arg) is specialize.specialize_ndarray:
        return specialize.fast_array_address
    if specialize.python_scalar(arg) is not arg:
        return int
    if hasattr(arg, "__array_interface__"):
        return specialize.array_address
    return lambda arg: specialize.array_address(exported_array(arg))


def exported_array(arg: Any) -> Any:
    """The memory of an object that offers DLPack alone, as a NumPy array."""
    import numpy as np  # lazily: few arguments are of such classes

    if is_cuda_export(arg):
        raise ValueError(f"the memory that an argument of type {type(arg).__name__} offers through DLPack is on a GPU")
    if hasattr(arg, "__dlpack__"):
        return np.from_dlpack(arg)
    raise TypeError(f"{type(arg).__name__} has no memory that the host can reach")


def tensor_address(arg: Any) -> int:
    """The address that an object names; it has none only if there is nothing to point at."""
    location = arg.data_ptr()
    if not location and math.prod(getattr(arg, "shape", (0,))):
        raise ValueError(
            f"an argument of type {type(arg).__name__} and shape {tuple(arg.shape)} has no memory: its storage was"
            " freed, or it is a placeholder for a tensor"
        )
    return location


HALF_BITS: dict[str, Callable[[float], int]] = {"f16": float16_bits, "bf16": bfloat16_bits}
HAS_FLAGS: dict[type, bool] = {}
ADDRESSES: dict[type, Callable[[Any], int]] = {type(None): lambda arg: 0}


Extent = tuple[int, int]  # first byte, and the one behind the last
EVERYTHING: Extent = 0, 1 << 64
NOTHING: Extent = 0, 0


def overlap_check(
    pairs: Sequence[tuple[int, int]], texts: Sequence[str | None]
) -> Callable[[Sequence[object]], bool] | None:
    """A function that returns True if the two arguments of one of `pairs` overlap; None if there is nothing to check.

    `texts` are the Python expressions of the parameters, of `args`; None: the launcher allocates the memory itself.
    """
    known = [(one, two) for one, two in pairs if texts[one] is not None and texts[two] is not None]
    if not known:
        return None
    lines = [
        f"    s{slot}, e{slot} = reach({texts[slot]})" for slot in sorted({slot for pair in known for slot in pair})
    ]
    tests = [f"s{one} < e{two} and s{two} < e{one}" for one, two in known]
    source = "\n".join(["def overlaps(args):", *lines, f"    return {' or '.join(tests)}"])
    scope: dict[str, Any] = {"reach": reach}
    exec(compile(source, "<overlaps of arguments>", "exec"), scope)
    return scope["overlaps"]


def reach(arg: object) -> Extent:
    """See the module docstring."""
    rule = RULES.get(type(arg))
    if rule is None:
        rule = RULES[type(arg)] = reach_rule(arg)
    return rule(arg)


def reach_rule(arg: object) -> Callable[[object], Extent]:
    """The rule for a class, found once by what its instances offer."""
    if isinstance(arg, int):
        return lambda arg: EVERYTHING
    if hasattr(arg, "data_ptr"):
        return tensor_reach
    if specialize.is_array(arg):
        return array_reach
    return converted_reach


def array_reach(array: Any) -> Extent:
    """From the first byte of a NumPy array to its last."""
    first = last = array.__array_interface__["data"][0]
    for size, stride in zip(array.shape, array.strides, strict=True):
        step = (size - 1) * stride
        if step > 0:
            last += step
        else:
            first += step
    return first, last + array.itemsize


def tensor_reach(tensor: Any) -> Extent:
    """All of a tensor's storage; a wrapper reaches what it wraps."""
    base = getattr(tensor, "base", None)
    if base is not None and not hasattr(tensor, "untyped_storage"):
        return reach(base)
    if (extent := storage_extent(tensor)) is not None:
        return extent[0], sum(extent)
    size = bytes_of(tensor)
    return EVERYTHING if size is None else (tensor.data_ptr(), tensor.data_ptr() + size)


def converted_reach(arg: Any) -> Extent:
    """Of what offers NumPy's array interface or DLPack."""
    import numpy as np  # lazily: few arguments are of such classes

    return array_reach(np.asarray(arg) if hasattr(arg, "__array_interface__") else np.from_dlpack(arg))


def storage_extent(tensor: Any) -> tuple[int, int] | None:
    """(address, bytes) of the storage of a tensor or its wrapper; a pointer with a type may call itself its storage."""
    storage: Any = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else None
    if not callable(getattr(storage, "nbytes", None)):
        return None
    try:
        return storage.data_ptr(), storage.nbytes()
    except RuntimeError:  # torch: a storage without memory, which is refused when the argument is packed
        return 0, 0


def bytes_of(tensor: Any) -> int | None:
    """The size of the memory of an object with `data_ptr()`; None if it does not say."""
    for name in ("nbytes", "size_bytes"):
        if isinstance(size := getattr(tensor, name, None), int):
            return size
    if hasattr(tensor, "numel") and hasattr(tensor, "element_size"):
        return tensor.numel() * tensor.element_size()
    return None


RULES: dict[type, Callable[[Any], Extent]] = {type(None): lambda arg: NOTHING}
