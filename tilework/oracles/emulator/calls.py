"""Functions that a GPU's run-time provides: vprintf, __assertfail, malloc and free.

Arguments are parameter variables of the caller, an array (threads, bytes) each.
"""

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.syntax import EmulatorError, Instruction, Trapped, placed
from tilework.oracles.emulator.translate import Translator

if TYPE_CHECKING:
    from tilework.oracles.emulator.machine import Machine

LONGEST = 4096  # bytes of a string
CONVERSION = re.compile(r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|z|j|t)?([diouxXcsfFeEgGaAp%])")


def argument(t: Translator, name: str, dtype: Any) -> Array:
    """A parameter variable as one value per thread."""
    return t.params[name][:, : np.dtype(dtype).itemsize].view(dtype)[:, 0]


def string_at(t: Translator, address: int, thread: int) -> str:
    """The text at a generic address, up to its zero byte."""
    found = bytearray()
    port, who = t.port("generic"), np.array([thread])
    while len(found) < LONGEST:
        byte = int(port.read(np.array([address + len(found)], np.uint64), np.uint8, 1, who)[0, 0])
        if byte == 0:
            break
        found.append(byte)
    return found.decode(errors="replace")


def vprintf(
    machine: "Machine", t: Translator, ins: Instruction, names: list[str], outs: list[str], mask: Array
) -> None:
    formats, buffers = argument(t, names[0], np.uint64), argument(t, names[1], np.uint64)
    for thread in np.flatnonzero(mask).tolist():
        text, count = formatted(t, string_at(t, int(formats[thread]), thread), int(buffers[thread]), thread)
        machine.output(text)
        if outs:
            argument(t, outs[0], np.int32)[thread] = count


def formatted(t: Translator, format: str, buffer: int, thread: int) -> tuple[str, int]:
    """C's printf: the text and the number of values. Values lie one after the other in `buffer`, aligned to their size."""
    port, who = t.port("generic"), np.array([thread])
    at, count = buffer, 0

    def value(dtype: Any) -> Any:
        nonlocal at, count
        size = np.dtype(dtype).itemsize
        at = (at + size - 1) // size * size
        found = port.read(np.array([at], np.uint64), dtype, 1, who)[0, 0]
        at, count = at + size, count + 1
        return found

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
            number = int(value(np.uint64 if wide else np.uint32))
            return (pattern + ("d" if kind == "u" else kind)) % number
        if kind == "c":
            return (pattern + "c") % chr(int(value(np.uint32)) & 255)
        if kind == "s":
            return (pattern + "s") % string_at(t, int(value(np.uint64)), thread)
        if kind == "p":
            return f"{int(value(np.uint64)):#x}"
        number = float(value(np.float64))
        return number.hex() if kind in "aA" else (pattern + kind) % number

    return CONVERSION.sub(one, format), count


def assertfail(
    machine: "Machine", t: Translator, ins: Instruction, names: list[str], outs: list[str], mask: Array
) -> None:
    thread = int(np.flatnonzero(mask)[0])
    message, file = (string_at(t, int(argument(t, name, np.uint64)[thread]), thread) for name in names[:2])
    line = int(argument(t, names[2], np.uint32)[thread])
    function = string_at(t, int(argument(t, names[3], np.uint64)[thread]), thread)
    raise placed(Trapped, machine.located(f"{file}:{line}: {function}: assertion `{message}` failed", ins, thread))


def allocate(
    machine: "Machine", t: Translator, ins: Instruction, names: list[str], outs: list[str], mask: Array
) -> None:
    sizes, results = argument(t, names[0], np.uint64), argument(t, outs[0], np.uint64)
    for thread in np.flatnonzero(mask).tolist():
        try:
            results[thread] = t.block.arena.memory.allocate(int(sizes[thread]))
        except EmulatorError:
            results[thread] = 0  # as malloc does


def free(machine: "Machine", t: Translator, ins: Instruction, names: list[str], outs: list[str], mask: Array) -> None:
    for address in argument(t, names[0], np.uint64)[mask].tolist():
        if address:
            t.block.arena.memory.free(address)


BUILT_IN = {"vprintf": vprintf, "__assertfail": assertfail, "malloc": allocate, "free": free}
