"""The sections of an ELF file: LLVM's objects, AMD's code objects, NVIDIA's cubins.

sections = read_sections(data)      # StageError if the file is another one, or damaged
sections[3].name, sections[3].data
"""

import struct
from typing import NamedTuple

from tilework.errors import StageError

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
NOBITS = 8


class Section(NamedTuple):
    name: str
    type: int
    flags: int
    data: bytes
    link: int
    info: int
    align: int
    entry: int


def name_at(strings: bytes, offset: int) -> str:
    return strings[offset : strings.index(b"\0", offset)].decode()


def read_sections(data: bytes) -> list[Section]:
    if data[:6] != b"\x7fELF\2\1":
        raise StageError("this is no ELF file of 64 bits, little end first")
    try:
        fields = HEADER.unpack_from(data)
        start, size, count, names_at = fields[6], fields[11], fields[12], fields[13]
        raw = [SECTION.unpack_from(data, start + number * size) for number in range(count)]
        names = data[raw[names_at][4] : raw[names_at][4] + raw[names_at][5]]
        return [
            Section(
                name_at(names, row[0]), row[1], row[2], b"" if row[1] == NOBITS else data[row[4] : row[4] + row[5]],
                row[6], row[7], max(row[8], 1), row[9],
            )
            for row in raw
        ]  # fmt: skip
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise StageError(f"the table of sections of an ELF file is damaged: {error}") from None
