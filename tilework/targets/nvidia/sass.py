"""A cubin as text: the instructions of the GPU, with what the hardware is told about waiting.

    Function:add
    --:-:0:-:1	LDC R1, c[0x0][0x28];
    02:-:-:Y:4	LOP3.LUT R0, R0, 0x7f, RZ, 0xc0, !PT;

The first column is the barriers that the instruction waits for (six bits), the barrier it sets when its operands are
read, the barrier it sets when its result is written, whether the warp may yield, and the cycles before the next
instruction: the bits from 105 on of the 128 that encode it (Volta and later). With `lines`, ``; FILE:LINE`` stands before the
instructions of a line of the source, as far as the disassembler tells (cuobjdump does not). nvdisasm prints instructions and bits, or
cuobjdump if there is no nvdisasm; neither is part of NVIDIA's wheels, both are of the CUDA toolkit.
"""

import re
import tempfile
from pathlib import Path

from tilework import knobs
from tilework.errors import StageError
from tilework.targets.nvidia.cubin import run

LIMIT = 600  # seconds
FUNCTION = re.compile(r"^\s*(?:\.section\s+\.text\.([^,\s]+),|Function : (\S+))")
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s*/\* (0x[0-9a-f]{16}) \*/")
SECOND_HALF = re.compile(r"^\s*/\* (0x[0-9a-f]{16}) \*/")
LINE = re.compile(r'^\s*//## File "(.*)", line (\d+)')
LABEL = re.compile(r"^\s*(\.L_x?_?\w+):")


def disassemble(cubin: bytes, lines: bool = False) -> str:
    """The instructions of a cubin; a StageError says which tools are missing."""
    tool, options = disassembler(lines)
    with tempfile.TemporaryDirectory(prefix="tilework-sass-", ignore_cleanup_errors=True) as folder:
        file = Path(folder, "kernel.cubin")
        file.write_bytes(cubin)
        code, printed = run([tool, *options, str(file)], LIMIT)
    text = tabulate(printed)
    if code != 0 or not text:
        raise StageError(f"{tool} {' '.join(options)} cannot show the cubin:\n{printed.strip()}")
    return text


def disassembler(lines: bool = False) -> tuple[str, list[str]]:
    """The program that shows cubins, and its options."""
    if (tool := knobs.nvidia.find_tool("nvdisasm")) is not None:
        return tool.path, ["-c", "-hex", *(["-g"] if lines else [])]
    if (tool := knobs.nvidia.find_tool("cuobjdump")) is not None:
        return tool.path, ["-sass"]
    raise StageError(
        "sass needs nvdisasm or cuobjdump, and neither is on this machine: install a CUDA toolkit,"
        " or set TRITON_NVDISASM_PATH or TRITON_CUOBJDUMP_PATH to the program"
    )


def tabulate(printed: str) -> str:
    """What a disassembler prints as lines of waiting and instruction; "" if there is no instruction."""
    lines: list[str] = []
    pending = ""
    count = 0
    for line in printed.splitlines():
        if (found := FUNCTION.match(line)) is not None:
            lines.append(f"Function:{found[1] or found[2]}")
        elif (found := INSTRUCTION.match(line)) is not None:
            pending = found[1]
        elif pending and (found := SECOND_HALF.match(line)) is not None:
            lines.append(f"{waiting(int(found[1], 16))}\t{pending};")
            pending = ""
            count += 1
        elif (found := LABEL.match(line)) is not None:
            lines.append(f"{found[1]}:")
        elif (found := LINE.match(line)) is not None:
            lines.append(f"; {found[1]}:{found[2]}")
    return "\n".join([*lines, ""]) if count else ""


def waiting(upper: int) -> str:
    """The control bits in the upper 64 bits of an instruction: ``02:-:-:Y:4``."""
    control = upper >> 41
    stall, stays, write, read, wait = (
        control & 15,
        control >> 4 & 1,
        control >> 5 & 7,
        control >> 8 & 7,
        control >> 11 & 63,
    )
    barriers = [f"{wait:02d}" if wait else "--", *(str(barrier) if barrier != 7 else "-" for barrier in (read, write))]
    return ":".join([*barriers, "-" if stays else "Y", f"{stall:x}"])
