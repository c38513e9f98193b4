"""Launches on GPUs of kernels with sanitizer checks: the table is copied to the device and back.

A launch waits for its kernel. An access that fails its check is not executed, so the device remains usable.

The checks of GPUs and of the CPU differ on purpose: see `transforms/sanitize/check_bounds.py`.
"""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from tilework.errors import SANITIZER, SanitizerError
from tilework.runtime.devices.gpu.gpu_launcher import Functions, GpuLauncher
from tilework.runtime.devices.launcher import Extent, Scratch
from tilework.runtime.sanitize.checked_launch import Extents, pointer_arguments
from tilework.targets.cpu.run.interface import Interface

ANYWHERE = (0, (1 << 63) - 1)


class SanitizedLauncher(GpuLauncher):
    """Runs a kernel that was compiled with the option `sanitize`."""

    def __init__(self, functions: Functions, source: Any, metadata: Any) -> None:
        super().__init__(functions, source, metadata)
        facts = metadata.sanitizer
        self.interface = Interface.from_facts({"name": self.name, "stored": (), "arena": 0, **facts})
        self.records, self.codes = facts["table"]["records"], facts["table"]["codes"]
        self.pointers = pointer_arguments(source, self.interface.parameters)
        if self.signature is not None:
            self.signature = [*self.signature, "*i64"]

    def start(self, grid: Extent, stream: int, function: int, args: Sequence[object], scratch: Scratch) -> None:
        """Run every program of the grid, and report what the checks found."""
        if 0 in grid:
            return
        self.gpus.ensure_context()
        known = Extents(self.interface, self.pointers, args, on_host=False)
        words = self.table(known)
        host = (ctypes.c_uint64 * len(words))(*words)
        table, library = self.array_cls(len(words), "uint64"), self.gpus.library()
        library.copy_in(table.data_ptr(), ctypes.addressof(host), table.nbytes, stream)
        super().start(grid, stream, function, (*args, table), scratch)
        library.copy_out(ctypes.addressof(host), table.data_ptr(), table.nbytes, stream)
        library.wait_for_stream(stream)
        self.report(known, list(host), grid)

    def table(self, known: Extents) -> list[int]:
        """Return the table that the kernel reads, and writes to when a check fails."""
        count = len(self.interface.parameters)
        words = [0] * (self.codes + len(self.interface.faults)) + [count + len(known.registered)]
        for slot in range(count):
            region = known.regions.get(slot)
            words += (region.start, region.end) if region else ANYWHERE if slot in known.addresses else (0, 0)
        for _, region in known.registered:
            words += (region.start, region.end)
        return words

    def report(self, known: Extents, words: Sequence[int], grid: Extent) -> None:
        """Warn about possible mistakes, and raise an error for a definite one."""
        seen = words[self.codes : self.codes + len(self.interface.faults)]
        known.warn([linear(word - 1, grid) + 1 if word else 0 for word in seen], grid)
        failed = words[0]
        if not failed:
            return
        address, code, program = words[self.records : self.records + 3]
        message, location = self.interface.faults[code - 1]
        if message:
            raise SanitizerError(known.report(message.removeprefix(SANITIZER), location, grid, linear(program, grid)))
        raise known.access_error(code, unmarked(address), program_of(program))


@cache
def checked(launcher: type[GpuLauncher]) -> type[SanitizedLauncher]:
    """Return the launcher class of a device for kernels with sanitizer checks."""
    return type(f"Sanitized{launcher.__name__}", (SanitizedLauncher, launcher), {})


def unmarked(word: int) -> int:
    """Return the address in an entry of the table; one below 0 is negative."""
    return (~word & (1 << 63) - 1) - ((~word >> 62 & 1) << 63)


def program_of(word: int) -> tuple[int, int, int]:
    """Return the program id in an entry of the table."""
    return word & 0xFFFFFFFF, word >> 32 & 0xFFFF, word >> 48


def linear(word: int, grid: Extent) -> int:
    """Return the linear index of a program id; x varies fastest."""
    x, y, z = program_of(word)
    return x + grid[0] * (y + grid[1] * z)
