"""Read the parameters of a kernel from the section ``.nv.info.KERNEL`` of a cubin.

    parameter_sizes(cubin, "add")       # (8, 8, 8, 4, 8, 8), as its PTX declares them; None if the file does not say it

A section is a list of records: a form, an attribute and a 16-bit value; in form 4 the value is the number of bytes that
follow. Each parameter has a record with its index, offset and size; another record has the total size. The format is
undocumented, so inconsistent sections are ignored. Parameters beyond 16 KiB have records of a second kind.
"""

import struct
from collections.abc import Iterator

from tilework.errors import StageError
from tilework.targets.elf_sections import read_sections

SIZED = 4  # the form
PARAMETER, LARGE_PARAMETER, ALL_PARAMETERS = 0x17, 0x45, 0x19
# the shift and mask of the size in the last field of a record
SIZES = {PARAMETER: (18, 0x3FFF), LARGE_PARAMETER: (0, 0xFFFF)}


def info_records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(attribute, value) of each record of a section."""
    at = 0
    while at < len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        yield attribute, data[at : at + size] if form == SIZED else data[at - 2 : at]
        at += size if form == SIZED else 0


def parameter_sizes(cubin: bytes, kernel: str) -> tuple[int, ...] | None:
    try:
        (section,) = [one.data for one in read_sections(cubin) if one.name == f".nv.info.{kernel}"]
        found, total = {}, 0
        for attribute, value in info_records(section):
            if attribute == ALL_PARAMETERS:
                (total,) = struct.unpack("<H", value)
            elif attribute in SIZES:
                _, index, offset, field = struct.unpack("<IHHI", value)
                shift, mask = SIZES[attribute]
                found[index] = (offset, field >> shift & mask)
        parameters = [found[index] for index in range(len(found))]
    except (StageError, struct.error, ValueError, KeyError):
        return None
    ends, sizes = [0, *map(sum, parameters)], tuple(size for _, size in parameters)
    is_ordered = all(end <= offset for end, (offset, _) in zip(ends, parameters, strict=False))
    return sizes if is_ordered and all(sizes) and ends[-1] == total else None
