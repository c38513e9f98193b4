"""The parameters of a loaded kernel, and the arguments of a launch as the driver takes them.

    parameters_of_ptx(".entry k(.param .u64 p, .param .f32 a) {...}", "k")   # Parameter(8, "u64"), Parameter(4, "f32")
    packer = packer_for("add", ["*fp32", "i32", "constexpr"], [])            # from the types of the kernel's arguments
    packer.layout.sizes                                                      # (8, 4, 8, 8): hidden pointers are last
    packer.pack(buffer, (x, 1024, 64), (None, None))                         # address of x, 1024, two null pointers

The values go into a buffer, each at an offset that is a multiple of 8, and the driver is given the address of each. It
reads as many as the kernel declares. A tensor descriptor becomes a tensor map of 128 bytes if the compiler says that
the kernel takes one (`tensordesc_meta`), else a pointer, the sizes, the strides, "pad with NaN" and "round to tf32";
sizes and strides follow.
"""

import ctypes
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.dlpack import exported, is_cuda_export
from tilework.runtime.devices.gpu.own_interface import Event
from tilework.runtime.devices.host import pack
from tilework.runtime.launch.native.layout import SLOT

MAP_BYTES = 128
HIDDEN_MAP = "tensormap"  # the type of an argument that is the bytes of a tensor map
GIVEN_MAP = "nvTmaDesc"  # of one that the user gives
WIDTHS = {"ptr": 8, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1, "map": MAP_BYTES}
WIDTHS |= {"f64": 8, "f32": 4, "f16": 2, "bf16": 2}
KINDS = {"u1": "i1", "i1": "i1", "bf16": "bf16", "f32": "f32", "f64": "f64"}
KINDS |= {f"fp{bits}": f"f{bits}" for bits in (16, 32, 64)}
KINDS |= {f"{sign}{bits}": f"i{bits}" for sign in "iu" for bits in (8, 16, 32, 64)}
PTX_KINDS = {"u64": "i64", "s64": "i64", "f32": "f32", "f64": "f64"}
PTX_KINDS |= {f"{sign}{bits}": f"i{bits}" for sign in "us" for bits in (8, 16, 32)}


MapOf = Callable[[object, Mapping[str, Any]], bytes]  # (descriptor, what the compiler chose) to a tensor map


class Parameter(NamedTuple):
    """Bytes, and the type as PTX names it ("" if it is not known); arrays of bytes are "b8"."""

    size: int
    type: str


def parameters_of_ptx(text: str, name: str) -> tuple[Parameter, ...] | None:
    """The parameters that a kernel in a PTX text declares; None if there is no such kernel."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    found = re.search(rf"\.entry\s+{re.escape(name)}\s*(?:\(([^)]*)\))?", plain)
    if found is None:
        return None
    return tuple(ptx_parameter(part) for part in (found[1] or "").split(",") if part.strip())


def ptx_parameter(declaration: str) -> Parameter:
    """``.param .align 8 .b8 k_param_0[24]`` -> Parameter(24, "b8")."""
    type = re.search(r"\.(([busf])(8|16|32|64))\b", declaration)
    if type is None:
        raise ValueError(f"a parameter without a type: {declaration.strip()}")
    count = re.search(r"\[\s*(\d+)\s*\]", declaration)
    return Parameter(int(type[3]) // 8 * (int(count[1]) if count else 1), type[1])


@dataclass(frozen=True)
class Layout:
    """The offsets of the values in the buffer, and the size of each."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    total: int


@dataclass(frozen=True)
class Packer:
    """Writes the values of a launch into a buffer: `pack(buffer, args, scratch)`; `layout` says where."""

    layout: Layout
    kinds: tuple[str, ...]  # without the hidden pointers
    pack: "Callable[[ctypes.Array[ctypes.c_char], Sequence[object], Sequence[object]], None]"


class GpuSlots(pack.Slots):
    """The format and the Python expression of each value, collected argument by argument."""

    def __init__(self, name: str, maps: Sequence[Mapping[str, object] | None], map_of: MapOf | None = None) -> None:
        super().__init__([], {}, name)
        self.kinds: list[str] = []
        self.maps = list(maps)
        self.scope: dict[str, Any] = {"map_of": map_of}

    def add_plain(self, type: Any, text: str) -> None:
        if type == HIDDEN_MAP:
            self.add_map(text)
        elif type == GIVEN_MAP:
            self.add_bytes(MAP_BYTES, text)
        else:
            self.add_kind(self.kind_of(type), text)

    def add_map(self, text: str) -> None:
        self.kinds.append("map")
        self.formats.append(f"{MAP_BYTES}s")
        self.values.append(text)

    def kind_of(self, type: str) -> str:
        kind = "ptr" if type.startswith("*") else KINDS.get(type)
        if kind is None:
            raise TypeError(
                f"an argument of {self.name} is {type}, which cannot be passed to a kernel on a GPU by value"
            )
        return kind

    def add_kind(self, kind: str, text: str) -> None:
        self.kinds.append(kind)
        self.add_value(text)

    def add_descriptor(self, text: str, rank: int) -> None:
        meta = self.maps.pop(0) if self.maps else None
        shape = [f"{text}.shape[{axis}]" for axis in range(rank)]
        strides = [f"{text}.strides[{axis}]" for axis in range(rank)]
        if meta is not None:
            facts = f"map{self.used}"
            self.scope[facts] = meta
            self.add_map(f"map_of({text}, {facts})")
        else:
            self.add_kind("ptr", f"{text}.base")
            for value in (*shape, *strides):
                self.add_kind("i64", value)
            self.add_kind("i1", f"is_nan({text})")
            self.add_kind("i1", f"rounds_to_tf32({text})")
        for value in shape:
            self.add_kind("i32", value)
        for value in strides:
            self.add_kind("i64", value)

    def add_bytes(self, size: int, text: str) -> None:
        """A value of which only the size is known."""
        self.kinds.append("bytes")
        self.formats.append(f"{size}s{-size % SLOT}x")
        self.values.append(f"raw({text}, {size})")


def packer_for(
    name: str,
    signature: Sequence[object],
    maps: Sequence[Mapping[str, object] | None] = (),
    map_of: MapOf | None = None,
) -> Packer:
    """For a kernel whose argument types are known: its arguments, then the two hidden pointers."""
    slots = GpuSlots(name, maps, map_of)
    for position, type in enumerate(signature):
        slots.add(type, f"args[{position}]")
    return finish(slots)


def values_for(
    name: str, signature: Sequence[object], wanted: Sequence[int]
) -> Callable[[Sequence[object]], tuple[int, ...]]:
    """A function from the arguments of a launch to the addresses and integers of some parameters of the kernel."""
    slots = GpuSlots(name, [{}] * len(signature))
    for position, type in enumerate(signature):
        slots.add(type, f"args[{position}]")
    values = "".join(f"int({slots.values[index]}), " for index in wanted)
    return eval(f"lambda args: ({values})", {"address": device_address})


def packer_from(name: str, parameters: Sequence[Parameter], given: int) -> Packer:
    """For a kernel that is known by its parameters only; those that are `given` no argument are the hidden pointers."""
    slots = GpuSlots(name, ())
    for position, parameter in enumerate(parameters[:given]):
        text, kind = f"args[{position}]", PTX_KINDS.get(parameter.type)
        if kind is None or parameter.size != WIDTHS[kind]:
            slots.add_bytes(parameter.size, text)
        else:
            slots.add_kind(kind, f"address({text})" if kind == "i64" else text)
    return finish(slots)


def finish(slots: GpuSlots) -> Packer:
    """The function for the collected values and the hidden pointers."""
    for index in range(2):
        slots.add_kind("ptr", f"scratch[{index}]")
    pairs = zip(slots.kinds, slots.formats, strict=True)
    sizes = [WIDTHS.get(kind) or int(code.partition("s")[0]) for kind, code in pairs]
    offsets, at = [], 0
    for size in sizes:
        offsets.append(at)
        at += (size + SLOT - 1) // SLOT * SLOT
    write = struct.Struct("<" + "".join(slots.formats)).pack_into
    scope: dict[str, Any] = {"pack_into": write, "slow": slots.pack_wide, "refused": (struct.error, OverflowError)}
    scope |= {"address": device_address, "bits": pack.bfloat16_bits, "is_nan": pack.is_nan, "raw": raw}
    scope["rounds_to_tf32"] = pack.rounds_to_tf32
    scope |= slots.scope
    values = ", ".join(slots.values)
    source = (
        f"def packed(buffer, args, scratch):\n"
        f"    try:\n"
        f"        pack_into(buffer, 0, {values})\n"
        f"    except refused:\n"
        f"        data = slow(({values},))\n"
        f"        buffer[: len(data)] = data\n"
    )
    exec(compile(source, f"<arguments of {slots.name}>", "exec"), scope)
    return Packer(Layout(tuple(offsets), tuple(sizes), at), tuple(slots.kinds[:-2]), scope["packed"])


def raw(arg: Any, size: int) -> bytes:
    """The bytes of an argument for a parameter of which only the size is known."""
    if isinstance(arg, bytes | bytearray | memoryview) or hasattr(type(arg), "__bytes__"):
        data = bytes(arg)
    elif hasattr(arg, "dtype") and getattr(arg, "shape", None) == () and hasattr(arg, "tobytes"):
        data = arg.tobytes()
    elif isinstance(arg, int):
        data = (arg & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    elif isinstance(arg, float) and size in (4, 8):
        data = struct.pack("<f", pack.rounded("f32", arg)) if size == 4 else struct.pack("<d", arg)
    elif size == 8:
        data = device_address(arg).to_bytes(8, "little")
    else:
        raise TypeError(f"a parameter of {size} bytes and unknown type takes a NumPy scalar or bytes, not {arg!r}")
    if len(data) != size:
        raise TypeError(f"a parameter of {size} bytes is given {len(data)} bytes: {arg!r}")
    return data


def device_address(arg: object) -> int:
    """The address of an argument's memory on the device; integers are addresses, None is the null pointer.

    DLPack comes first: its owner lets the stream wait for work of its own on the memory. The other interface says what
    to wait for.
    """
    if hasattr(arg, "data_ptr") or isinstance(arg, int):
        return pack.address(arg)
    if is_cuda_export(arg):
        return exported(arg, current_stream()).address
    interface = getattr(arg, "__cuda_array_interface__", None)
    return interface_address(interface, current_stream()) if interface is not None else pack.address(arg)


def current_stream() -> int:
    """The stream that launches go to at this moment."""
    return driver.active.get_current_stream(driver.active.get_current_device())


# ---- arrays of other libraries that describe themselves in ``__cuda_array_interface__``
#
#     {"data": (139637976727552, False), "typestr": "<f4", "shape": (64,), "version": 3, "stream": 94532}
#
# Since version 3 of that protocol `stream` is the stream in which the owner works on the memory: 1 is the default
# stream, 2 that of the thread, and None (or no such item) means that there is nothing to wait for. Launches wait on the
# GPU, not on the host.


LEGACY = 1  # the default stream, which drivers also call 0


def interface_address(interface: Mapping[str, Any], stream: int) -> int:
    """The address of an array; what is put into `stream` from now on waits for its owner."""
    owner = interface.get("stream")
    if owner == 0:
        raise ValueError(
            "the item `stream` of __cuda_array_interface__ is 0, which its protocol does not allow: 1 is the default"
            " stream, 2 that of the thread, and None says that there is nothing to wait for"
        )
    if owner is not None and (owner := 0 if owner == LEGACY else owner) != stream:
        wait_behind(owner, stream)
    return interface["data"][0]


def wait_behind(owner: int, stream: int) -> None:
    """Let what is put into `stream` wait for what is in the stream of an owner now."""
    gpus = driver.active.gpus  # pyright: ignore[reportAttributeAccessIssue]  # of GPUs, where such memory is
    event, library = Event(gpus), gpus.library()
    if library.code("record_event", event.handle, owner):
        library.forget_error()
        library.wait_for_stream(owner)  # of another GPU, whose streams record no event of this one
    else:
        library.wait_in_stream(stream, event.handle, 0)
