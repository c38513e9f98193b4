"""C's printf, and the buffer through which kernels of the HIP runtime print.

    >>> values = iter([7, 2.5])
    >>> printf_text("x[%2u] is %f", lambda dtype: next(values), str)
    'x[ 7] is 2.500000'

The formats of a module for AMD GPUs are metadata: an id, the number of values, the bytes of each, C's format.

    !llvm.printf.fmts = !{!3}
    !3 = !{!"1:2:4:8:x[%u] is %f\\5Cn"}

The buffer starts with two 32-bit integers, the bytes in use and the capacity; the records follow: a format's id, then
the values.

"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.oracles.emulator.memory import Memory
from tilework.oracles.emulator.syntax import EmulatorError

CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|j|t)?([diouxXcsfFeEgGaAp%])")


def printf_text(format: str, value: Callable[[Any], Any], string: Callable[[], str]) -> str:
    """Format like C's printf. `value(dtype)` returns the next value, `string()` the next string."""

    def one(match: "re.Match[str]") -> str:
        flags, width, precision, length, kind = match.groups()
        if kind == "%":
            return "%"
        width = str(value(np.int32)) if width == "*" else width or ""
        precision = str(value(np.int32)) if precision == "*" else precision
        pattern = f"%{flags}{width}" + (f".{precision}" if precision is not None else "")
        wide = length in ("l", "ll", "z", "j", "t")
        if kind in "di":
            return (pattern + "d") % int(value(np.int64 if wide else np.int32))
        if kind in "ouxX":
            integer = int(value(np.uint64 if wide else np.uint32))
            return (pattern + ("d" if kind == "u" else kind)) % integer
        if kind == "c":
            return (pattern + "c") % chr(int(value(np.uint32)) & 255)
        if kind == "s":
            return (pattern + "s") % string()
        if kind == "p":
            return f"{int(value(np.uint64)):#x}"
        real = float(value(np.float64))
        return real.hex() if kind in "aA" else (pattern + kind) % real

    return CONVERSION.sub(one, format)


PRINTF_BUFFER_OFFSET = 72  # of the buffer's address in the hidden arguments
SIZE = 1 << 20
HEADER = 8
ESCAPES = {r"\n": "\n", r"\t": "\t", r"\72": ":"}


def formats_of(text: str) -> dict[int, str]:
    """Return the formats of LLVM text by id."""
    listed = re.search(r"^!llvm\.printf\.fmts = !\{(.*)\}$", text, re.MULTILINE)
    found = {}
    for node in listed[1].split(", ") if listed else ():
        quoted = re.search(rf'^{node} = !{{!"(.*)"}}$', text, re.MULTILINE)
        if quoted is None:
            raise EmulatorError(f"the format {node} of a printf is missing")
        plain = re.sub(rb"\\([0-9A-F]{2})", lambda byte: bytes([int(byte[1], 16)]), quoted[1].encode()).decode()
        format_id, count, *rest = plain.split(":")
        found[int(format_id)] = re.sub(r"\\(?:n|t|72)", lambda escape: ESCAPES[escape[0]], ":".join(rest[int(count) :]))
    return found


class PrintBuffer:
    """The print buffer, in the memory of a launch."""

    def __init__(self, memory: Memory, formats: dict[int, str]) -> None:
        self.memory, self.formats = memory, formats
        self.address = memory.allocate(SIZE)
        self.clear()

    def clear(self) -> None:
        self.memory.write(self.address, np.array([0, SIZE], np.uint32).view(np.uint8))

    def take(self) -> list[str]:
        """Return the lines printed so far and empty the buffer."""
        used = int.from_bytes(self.memory.read(self.address, 4), "little")
        data = self.memory.read(self.address + HEADER, used)
        self.clear()
        lines, at = list[str](), 0

        def value(dtype: Any) -> Any:
            nonlocal at
            found = np.frombuffer(data, dtype, 1, at)[0]
            at += np.dtype(dtype).itemsize
            return found

        while at < used:
            lines.append(printf_text(self.formats[int(value(np.uint32))], value, str))
        return lines
