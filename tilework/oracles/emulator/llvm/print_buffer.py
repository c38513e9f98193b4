"""The buffer that the HIP runtime lends to kernels which print, and what it prints.

    !llvm.printf.fmts = !{!3}                     the formats of a module
    !3 = !{!"1:2:4:8:x[%u] is %f\\5Cn"}            number, how many values, the bytes of each, C's format

A kernel finds two words there, the bytes that are taken and the size of all, and puts records behind them: the number of the format, then values.
"""

import re
from typing import Any

import numpy as np

from tilework.oracles.emulator.arenas import Memory
from tilework.oracles.emulator.printf_text import printf_text
from tilework.oracles.emulator.syntax import EmulatorError

PLACE = 72  # of its address among the hidden arguments
SIZE = 1 << 20
HEADER = 8
ESCAPES = {r"\n": "\n", r"\t": "\t", r"\72": ":"}


def formats_of(text: str) -> dict[int, str]:
    """The formats of LLVM text, by number."""
    listed = re.search(r"^!llvm\.printf\.fmts = !\{(.*)\}$", text, re.MULTILINE)
    found = {}
    for node in listed[1].split(", ") if listed else ():
        quoted = re.search(rf'^{node} = !{{!"(.*)"}}$', text, re.MULTILINE)
        if quoted is None:
            raise EmulatorError(f"the format {node} of a printf is missing")
        plain = re.sub(rb"\\([0-9A-F]{2})", lambda byte: bytes([int(byte[1], 16)]), quoted[1].encode()).decode()
        number, count, *rest = plain.split(":")
        found[int(number)] = re.sub(r"\\(?:n|t|72)", lambda escape: ESCAPES[escape[0]], ":".join(rest[int(count) :]))
    return found


class PrintBuffer:
    """In the memory of a launch."""

    def __init__(self, memory: Memory, formats: dict[int, str]) -> None:
        self.memory, self.formats = memory, formats
        self.address = memory.allocate(SIZE)
        self.clear()

    def clear(self) -> None:
        self.memory.write(self.address, np.array([0, SIZE], np.uint32).view(np.uint8))

    def take(self) -> list[str]:
        """The lines so far; the buffer is empty again."""
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
