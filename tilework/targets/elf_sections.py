"""The sections and symbols of an ELF file: LLVM's objects, AMD's code objects, NVIDIA's cubins.

sections = read_sections(data)      # StageError if the file is another one, or damaged
sections[3].name, sections[3].data
"""

import struct
from collections.abc import Sequence

from tilework.errors import StageError

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION, SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
SYMTAB, NOBITS = 2, 8

# plain classes: every first launch imports this file, and named tuples take a millisecond to be made


class Section:
    """A row of the table of sections; one without bits in the file has a size, and no data."""

    def __init__(self, row: tuple[int, ...], name: str, data: bytes) -> None:
        self.name, self.data = name, b"" if row[1] == NOBITS else data[row[4] : row[4] + row[5]]
        _, self.type, self.flags, _, _, self.size, self.link, self.info, align, self.entry = row
        self.align = max(align, 1)


class Symbol:
    """A row of the table of symbols."""

    def __init__(self, row: tuple[int, ...], strings: bytes) -> None:
        name, self.info, self.other, self.section, self.value, self.size = row
        self.name = name_at(strings, name)


def name_at(strings: bytes, offset: int) -> str:
    return strings[offset : strings.index(b"\0", offset)].decode()


def read_sections(data: bytes) -> list[Section]:
    if data[:6] != b"\x7fELF\2\1":
        raise StageError("this is no ELF file of 64 bits, little end first")
    try:
        fields = HEADER.unpack_from(data)
        start, size, count, names_at = fields[6], fields[11], fields[12], fields[13]
        raw = [SECTION.unpack_from(data, start + index * size) for index in range(count)]
        names = data[raw[names_at][4] : raw[names_at][4] + raw[names_at][5]]
        return [Section(row, name_at(names, row[0]), data) for row in raw]
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise StageError(f"the table of sections of an ELF file is damaged: {error}") from None


def read_symbols(sections: Sequence[Section]) -> list[Symbol]:
    (table,) = [section for section in sections if section.type == SYMTAB]
    return [Symbol(row, sections[table.link].data) for row in SYMBOL.iter_unpack(table.data)]
