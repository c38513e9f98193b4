"""Read a kernel's metadata from its code object: the note (registers, spills, arguments) and the kernel descriptor.

    notes = read_notes(data)            # of an object or a code object
    notes.vgprs, notes.private_bytes    # registers per lane, and bytes of its stack, which holds spills

The note is a MessagePack map with the owner AMDGPU; the descriptor, which the hardware reads, is the 64-byte symbol
``NAME.kd``. For the emulator the LLVM text of the kernel is appended to the code object, where loaders ignore it.
"""

import struct
from typing import Any, NamedTuple

from tilework.errors import StageError
from tilework.targets.amd.link import NOTE
from tilework.targets.elf_sections import read_sections

NT_AMDGPU_METADATA = 32
DESCRIPTOR = struct.Struct("<III4xq20xIIIHH4x")
WAVE_32 = 1 << 10  # of the properties in a descriptor
SCALARS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
LENGTHS = {
    0xC4: ("bytes", ">B"), 0xC5: ("bytes", ">H"), 0xC6: ("bytes", ">I"),
    0xD9: ("text", ">B"), 0xDA: ("text", ">H"), 0xDB: ("text", ">I"),
    0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I"),
}  # fmt: skip
TEXT = b"\0LLVM text\0"
CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


class Argument(NamedTuple):
    """The offset and kind of a kernel argument: ``by_value``, ``global_buffer``, or ``hidden_...``."""

    offset: int
    size: int
    kind: str


class KernelNotes(NamedTuple):
    name: str
    target: str
    arguments: tuple[Argument, ...]
    wave_size: int
    max_threads: int
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    private_bytes: int
    lds_bytes: int
    kernarg_bytes: int


class Descriptor(NamedTuple):
    lds_bytes: int
    private_bytes: int
    kernarg_bytes: int
    entry: int  # from the descriptor to the code
    wave_size: int
    vgprs: int  # per lane, a multiple of 8


class MessagePack:
    """A reader of MessagePack."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def scalar(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def value(self) -> Any:
        code = self.scalar(">B")
        if code < 0x80 or code >= 0xE0:
            return code if code < 0x80 else code - 0x100
        if code in CONSTANTS:
            return CONSTANTS[code]
        if code in SCALARS:
            return self.scalar(SCALARS[code])
        if code < 0xC0:
            kind, mask = ("text", 31) if code >= 0xA0 else ("list", 15) if code >= 0x90 else ("map", 15)
            return self.sequence(kind, code & mask)
        if code not in LENGTHS:
            raise StageError(f"the metadata of the code object cannot be read: {code:#x} at {self.at - 1}")
        kind, form = LENGTHS[code]
        return self.sequence(kind, self.scalar(form))

    def sequence(self, kind: str, count: int) -> Any:
        if kind == "list":
            return [self.value() for _ in range(count)]
        if kind == "map":
            return {self.value(): self.value() for _ in range(count)}
        self.at += count
        data = self.data[self.at - count : self.at]
        return data.decode() if kind == "text" else data


def read_metadata(data: bytes) -> dict[str, Any]:
    """Return the map in the note of an object or a code object."""
    for section in read_sections(data):
        at = 0
        while section.type == NOTE and at + 12 <= len(section.data):
            name, size, kind = struct.unpack_from("<III", section.data, at)
            start = at + 12 + (name + 3) // 4 * 4
            if kind == NT_AMDGPU_METADATA and section.data[at + 12 : at + 18] == b"AMDGPU":
                return MessagePack(section.data[start : start + size]).value()
            at = start + (size + 3) // 4 * 4
    raise StageError("the code object has no metadata")


def read_notes(data: bytes, name: str | None = None) -> KernelNotes:
    """Return the notes of the kernel with this name, or of the only kernel."""
    metadata = read_metadata(data)
    kernels = [one for one in metadata["amdhsa.kernels"] if name in (None, one[".name"])]
    if len(kernels) != 1:
        raise StageError(f"the code object has {len(kernels)} kernels{f' {name}' if name else ''}: one is wanted")
    (kernel,) = kernels
    arguments = (Argument(one[".offset"], one[".size"], one[".value_kind"]) for one in kernel.get(".args", ()))
    fields = (
        "wavefront_size", "max_flat_workgroup_size", "vgpr_count", "agpr_count", "sgpr_count", "vgpr_spill_count",
        "sgpr_spill_count", "private_segment_fixed_size", "group_segment_fixed_size", "kernarg_segment_size",
    )  # fmt: skip
    found = [kernel.get(f".{name}", 0) for name in fields]
    return KernelNotes(kernel[".name"], metadata["amdhsa.target"], tuple(arguments), *found)


def read_descriptor(data: bytes) -> Descriptor:
    """Return the descriptor of a code object with one kernel: the first 64 bytes of its constants."""
    rodata = next(section.data for section in read_sections(data) if section.name == ".rodata")
    lds, private, kernarg, entry, _, registers, _, properties, _ = DESCRIPTOR.unpack_from(rodata)
    return Descriptor(lds, private, kernarg, entry, 32 if properties & WAVE_32 else 64, 8 * (registers % 64 + 1))


def with_text(data: bytes, text: str) -> bytes:
    return data + TEXT + text.encode()


def text_behind(data: bytes) -> str:
    """Return the LLVM text that is appended to a code object for the emulator."""
    _, mark, found = data.rpartition(TEXT)
    if not mark:
        raise StageError("the code object was not compiled for the emulator: it lacks the LLVM text of its kernel")
    return found.decode()
