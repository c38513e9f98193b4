"""Functions that a GPU's run-time provides: vprintf, __assertfail, malloc and free.

Arguments are parameter variables of the caller, an array (threads, bytes) each.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from tilework.oracles.emulator.arenas import LOCAL_BASE, WINDOW, Array
from tilework.oracles.emulator.printf_text import printf_text
from tilework.oracles.emulator.syntax import EmulatorError, Instruction, Trapped, placed
from tilework.oracles.emulator.translate import Translator

if TYPE_CHECKING:
    from tilework.oracles.emulator.machine import Machine

LONGEST = 4096  # bytes of a string


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
    texts: dict[int, str] = {}  # where all threads see the same
    for thread in np.flatnonzero(mask).tolist():
        at = int(formats[thread])
        if at not in texts or LOCAL_BASE <= at < LOCAL_BASE + WINDOW:
            texts[at] = string_at(t, at, thread)
        text, count = formatted(t, texts[at], int(buffers[thread]), thread)
        machine.output(text)
        if outs:
            argument(t, outs[0], np.int32)[thread] = count


def formatted(t: Translator, format: str, buffer: int, thread: int) -> tuple[str, int]:
    """The text and the number of values. Values lie one after the other in `buffer`, aligned to their size."""
    port, who = t.port("generic"), np.array([thread])
    at, count = buffer, 0

    def value(dtype: Any) -> Any:
        nonlocal at, count
        size = np.dtype(dtype).itemsize
        at = (at + size - 1) // size * size
        found = port.read(np.array([at], np.uint64), dtype, 1, who)[0, 0]
        at, count = at + size, count + 1
        return found

    return printf_text(format, value, lambda: string_at(t, int(value(np.uint64)), thread)), count


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
