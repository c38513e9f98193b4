"""A linker for the relocatable object of one kernel: the equivalent of `ld.lld -shared`.

    hsaco = link(machine.emit_object(module))

The object has code (`.text`), a descriptor of 64 bytes for each kernel and constants (`.rodata`), notes with the
metadata, and relocations between code and constants. The output has a read-only segment, one for code, one for the
dynamic table, and a hash table of the kernels' symbols, which ROCm's loader uses.
"""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tilework.errors import StageError
from tilework.targets.elf_sections import HEADER, SECTION, SYMBOL, Section, Symbol, read_sections, read_symbols

PAGE = 0x1000
RELOCATION = struct.Struct("<QQq")
SEGMENT = struct.Struct("<IIQQQQQQ")
STRTAB, RELA, HASH, DYNAMIC, NOTE, DYNSYM = 3, 4, 5, 6, 7, 11
WRITE, ALLOC, EXECUTE = 1, 2, 4  # of sections
LOAD, PT_DYNAMIC, PT_NOTE, PHDR = 1, 2, 4, 6
RUN, CHANGE, READ = 1, 2, 4  # of segments
SEGMENTS = 6
AMDGPU, SHARED_OBJECT, OS_ABI, ABI_VERSION = 224, 3, 64, 3  # code object 5
FLAGS_AT = 48  # the flags of the processor
LOCAL = 0
RELOCATIONS = {4: ("<i", 0), 5: ("<q", 0), 10: ("<I", 0), 11: ("<I", 32)}
"""Relocation types: the format of the field, and the shift of the distance that it holds."""


def elf_hash(name: str) -> int:
    """Return the hash of System V's symbol tables."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def hash_table(names: Sequence[str]) -> bytes:
    """Return a hash table with one bucket for each name; the first entry is the null symbol."""
    count = len(names)
    buckets, chain = [0] * max(count, 1), [0] * (count + 1)
    for index, name in enumerate(names, start=1):
        bucket = elf_hash(name) % len(buckets)
        chain[index], buckets[bucket] = buckets[bucket], index
    return struct.pack(f"<{2 + len(buckets) + len(chain)}I", len(buckets), len(chain), *buckets, *chain)


class Piece(NamedTuple):
    """A section of the output; `link` names another one."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    align: int
    entry: int
    link: str


class Writer:
    """The output under construction: sections at increasing offsets; each segment's addresses are a page further."""

    def __init__(self, reserved: int) -> None:
        self.data = bytearray(reserved)
        self.shift = 0  # of addresses against offsets
        self.pieces: dict[str, Piece] = {}

    def put(self, name: str, type: int, flags: int, data: bytes, align: int, entry: int = 0, link: str = "") -> Piece:
        """Append a section."""
        self.data += bytes(-len(self.data) % align)
        offset = len(self.data)
        self.data += data
        address = offset + self.shift if flags & ALLOC else 0
        made = self.pieces[name] = Piece(name, type, flags, address, offset, len(data), align, entry, link)
        return made

    def copy(self, section: Section) -> Piece:
        return self.put(section.name, section.type, section.flags, section.data, section.align, section.entry)

    def index(self, name: str) -> int:
        """Return the index of a section in the table, which starts with an empty one."""
        return 1 + list(self.pieces).index(name) if name else 0


def link(data: bytes) -> bytes:
    """Return the loadable file of a relocatable object."""
    sections = read_sections(data)
    symbols = read_symbols(sections)
    kept = {index: section for index, section in enumerate(sections) if section.flags & ALLOC and section.data}
    check_linkable(kept, symbols)
    exported = [symbol for symbol in symbols if symbol.info >> 4 != LOCAL and symbol.section in kept]
    strings = b"\0" + b"".join(symbol.name.encode() + b"\0" for symbol in exported)
    names = [symbol.name for symbol in exported]

    writer = Writer(HEADER.size + SEGMENTS * SEGMENT.size)
    at = {index: writer.copy(section) for index, section in kept.items() if section.type == NOTE}
    notes = list(at.values())
    table = writer.put(".dynsym", DYNSYM, ALLOC, bytes(SYMBOL.size * (1 + len(names))), 8, SYMBOL.size, ".dynstr")
    hashes = writer.put(".hash", HASH, ALLOC, hash_table(names), 4, 4, ".dynsym")
    texts = writer.put(".dynstr", STRTAB, ALLOC, strings, 1)
    is_code = {index: bool(section.flags & EXECUTE) for index, section in kept.items()}
    at |= {index: writer.copy(section) for index, section in kept.items() if index not in at and not is_code[index]}
    read_end = len(writer.data)
    writer.shift += PAGE
    code = {index: writer.copy(section) for index, section in kept.items() if is_code[index]}
    at |= code
    code_start, code_end = min(piece.offset for piece in code.values()), len(writer.data)
    writer.shift += PAGE
    entries = [
        (4, hashes.address),
        (5, texts.address),
        (6, table.address),
        (10, len(strings)),
        (11, SYMBOL.size),
        (0, 0),
    ]
    dynamic = writer.put(
        ".dynamic", DYNAMIC, ALLOC | WRITE, b"".join(struct.pack("<qQ", *entry) for entry in entries), 8, 16, ".dynstr"
    )

    for index, symbol in enumerate(exported, start=1):
        piece = at[symbol.section]
        name, address = strings.index(symbol.name.encode() + b"\0"), piece.address + symbol.value
        fields = (name, symbol.info, symbol.other, writer.index(piece.name), address, symbol.size)
        SYMBOL.pack_into(writer.data, table.offset + index * SYMBOL.size, *fields)
    relocate(writer, sections, symbols, at)
    changing = (dynamic.offset, dynamic.address, dynamic.size)
    segments = [
        (PHDR, READ, HEADER.size, HEADER.size, SEGMENTS * SEGMENT.size, 8),
        (LOAD, READ, 0, 0, read_end, PAGE),
        (LOAD, READ | RUN, code_start, code_start + PAGE, code_end - code_start, PAGE),
        (LOAD, READ | CHANGE, *changing, PAGE),
        (PT_DYNAMIC, READ | CHANGE, *changing, 8),
        *((PT_NOTE, READ, note.offset, note.address, note.size, note.align) for note in notes),
    ]
    return finished(writer, segments, struct.unpack_from("<I", data, FLAGS_AT)[0])


def check_linkable(kept: Mapping[int, Section], symbols: Sequence[Symbol]) -> None:
    """Refuse objects that need a complete linker."""
    missing = [symbol.name for symbol in symbols if symbol.info >> 4 != LOCAL and symbol.section == 0 and symbol.name]
    if missing:
        raise StageError(f"the kernel calls undefined functions: {', '.join(missing)}")
    if variables := [section.name for section in kept.values() if section.flags & WRITE]:
        raise StageError(f"the kernel has variables of its own in {', '.join(variables)}: it cannot be linked")
    names = [section.name for section in kept.values()]
    if len(set(names)) != len(names) or sum(section.type == NOTE for section in kept.values()) != 1:
        raise StageError(f"an object with the sections {', '.join(names)} cannot be linked")


def relocate(writer: Writer, sections: Sequence[Section], symbols: Sequence[Symbol], at: Mapping[int, Piece]) -> None:
    """Apply the relocations."""
    for section in sections:
        if section.type != RELA or section.info not in at:
            continue
        piece = at[section.info]
        for offset, info, addend in RELOCATION.iter_unpack(section.data):
            symbol, kind = symbols[info >> 32], info & 0xFFFFFFFF
            if kind not in RELOCATIONS or symbol.section not in at:
                raise StageError(f"a relocation of type {kind} against {symbol.name or 'a section'} cannot be linked")
            form, shift = RELOCATIONS[kind]
            distance = at[symbol.section].address + symbol.value + addend - (piece.address + offset)
            value = distance if form in ("<q", "<i") else distance >> shift & 0xFFFFFFFF
            struct.pack_into(form, writer.data, piece.offset + offset, value)


def finished(writer: Writer, segments: Sequence[tuple[int, ...]], flags: int) -> bytes:
    """Return the file with its section and segment tables."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*writer.pieces, ".shstrtab"))
    writer.put(".shstrtab", STRTAB, 0, names, 1)
    writer.data += bytes(-len(writer.data) % 8)
    table_at = len(writer.data)
    writer.data += bytes(SECTION.size)
    for piece in writer.pieces.values():
        info = 1 if piece.type == DYNSYM else 0
        fields = (names.index(piece.name.encode() + b"\0"), *piece[1:6])
        writer.data += SECTION.pack(*fields, writer.index(piece.link), info, piece.align, piece.entry)
    for index, (kind, rights, offset, address, size, align) in enumerate(segments):
        packed = (kind, rights, offset, address, address, size, size, align)
        SEGMENT.pack_into(writer.data, HEADER.size + index * SEGMENT.size, *packed)
    count = len(writer.pieces) + 1
    identity = b"\x7fELF" + bytes([2, 1, 1, OS_ABI, ABI_VERSION]) + bytes(7)
    HEADER.pack_into(
        writer.data, 0, identity, SHARED_OBJECT, AMDGPU, 1, 0, HEADER.size, table_at, flags, HEADER.size, SEGMENT.size,
        len(segments), SECTION.size, count, count - 1,
    )  # fmt: skip
    return bytes(writer.data)
