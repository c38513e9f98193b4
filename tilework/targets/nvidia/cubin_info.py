"""Read the facts of a cubin about its kernels, in the sections ``.nv.info`` (of all) and ``.nv.info.KERNEL``.

    parameter_sizes(cubin, "add")       # (8, 8, 8, 4, 8, 8), as its PTX declares them; None if the file does not say it

A section is a list of records: a form, an attribute, a value of 16 bits; or, of form 4, as many bytes as the value
says. Each parameter has one, with its number, its offset and its size; another record has the bytes of all. NVIDIA
documents none of it: what does not add up is not believed. Parameters beyond 16 KiB have records of a second kind.
"""

import struct
from collections.abc import Iterator

from tilework.errors import StageError
from tilework.targets.elf_sections import read_sections

SIZED = 4  # the form
PARAMETER, LARGE_PARAMETER, ALL_PARAMETERS = 0x17, 0x45, 0x19
SIZES = {PARAMETER: (18, 0x3FFF), LARGE_PARAMETER: (0, 0xFFFF)}  # where the last word of a record has the size


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
                _, number, offset, word = struct.unpack("<IHHI", value)
                shift, mask = SIZES[attribute]
                found[number] = (offset, word >> shift & mask)
        parameters = [found[number] for number in range(len(found))]
    except (StageError, struct.error, ValueError, KeyError):
        return None
    ends, sizes = [0, *map(sum, parameters)], tuple(size for _, size in parameters)
    is_ordered = all(end <= offset for end, (offset, _) in zip(ends, parameters, strict=False))
    return sizes if is_ordered and all(sizes) and ends[-1] == total else None
