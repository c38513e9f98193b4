"""Launches of kernels for AMD GPUs, from their LLVM text, on arrays of this process.

    >>> text = '''define amdgpu_kernel void @twice(ptr addrspace(1) %x) {
    ...   %i = call i32 @llvm.amdgcn.workitem.id.x()
    ...   %p = getelementptr i32, ptr addrspace(1) %x, i32 %i
    ...   %v = load i32, ptr addrspace(1) %p, align 4
    ...   %w = shl i32 %v, 1
    ...   store i32 %w, ptr addrspace(1) %p, align 4
    ...   ret void
    ... }'''
    >>> x = np.arange(4, dtype=np.int32)
    >>> found = run(text, [x], grid=1, threads=4, arch="gfx942")
    >>> x
    array([0, 2, 4, 6], dtype=int32)

A `CheckFailed` reports all errors: accesses out of bounds, races in LDS, uses of undefined values, and so on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

import numpy as np

from tilework.oracles.emulator.findings import CheckFailed, Findings
from tilework.oracles.emulator.llvm.ir import (
    Function,
    Int,
    Module,
    Operand,
    Pointer,
    Type,
    Variable,
    dtype_of,
    leaves,
    rounded_up,
    size_of,
)
from tilework.oracles.emulator.llvm.ir_parser import parse_llvm
from tilework.oracles.emulator.llvm.translate_ir import Translator, flatten
from tilework.oracles.emulator.llvm.wave_counters import WaveCounters
from tilework.oracles.emulator.llvm.workgroup import Workgroup
from tilework.oracles.emulator.memory import Array, Extent, Memory, MemoryFault
from tilework.oracles.emulator.printf import PRINTF_BUFFER_OFFSET, PrintBuffer, formats_of
from tilework.oracles.emulator.syntax import EmulatorError, Trapped, dimensions

MAX_INSTRUCTIONS = 10_000_000
HIDDEN_BYTES = 256
LDS = 3


def wave_size(arch: str) -> int:
    """Return the lanes of a wave of a GPU: ``gfx1100`` is of generation 11 and has 32, before generation 10 they have
    64."""
    return 32 if int(arch[3:-2]) >= 10 else 64


@dataclass(eq=False)
class LoadedKernel:
    """A kernel on a GPU `arch`, parsed, with its constants in memory."""

    module: Module
    function: Function
    arch: str
    memory: Memory
    formats: dict[int, str] = field(default_factory=dict)  # of what it prints
    groups: dict[Any, Workgroup] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.symbols, self.lds_static = {}, 0
        dynamic = []
        for variable in self.module.variables.values():
            if variable.space != LDS:
                self.symbols[variable.name] = self.memory.allocate(max(1, size_of(variable.type)))
            elif size_of(variable.type) == 0:
                dynamic.append(variable)
            else:
                self.lds_static = rounded_up(self.lds_static, variable.align)
                self.symbols[variable.name] = self.lds_static
                self.lds_static += size_of(variable.type)
        for variable in dynamic:
            self.symbols[variable.name] = rounded_up(self.lds_static, variable.align)
        self.symbols |= {name: self.memory.allocate(1) for name in self.module.functions}
        self.printed = PrintBuffer(self.memory, self.formats) if self.formats else None
        self.hidden, self.packet = self.memory.allocate(HIDDEN_BYTES), self.memory.allocate(64)

    @property
    def threads(self) -> int:
        """The largest workgroup that the kernel declares."""
        found = re.search(r'"amdgpu-flat-work-group-size"="\d+,\s*(\d+)"', self.function.attributes)
        return int(found[1]) if found else 1024

    def group(self, sizes: tuple[int, int, int], wave: int, lds_bytes: int, checks: bool) -> Workgroup:
        key = (sizes, wave, lds_bytes, checks)
        if key not in self.groups:
            made = Workgroup(
                self.module, self.function, self.memory, self.symbols, sizes, wave, self.lds_static + lds_bytes,
                self.arch, checks,
            )  # fmt: skip
            made.hidden, made.packet = self.hidden, self.packet
            for variable in self.module.variables.values():
                if variable.space != LDS and variable.initial is not None:
                    self.memory.write(self.symbols[variable.name], initial_bytes(made, variable))
            self.groups[key] = made
        return self.groups[key]

    def launch(
        self, grid: int | Sequence[int], threads: int | Sequence[int], arguments: Sequence[Any], lds_bytes: int = 0,
        wave: int | None = None, checks: bool = True, collect: bool = False, lent: Sequence[Extent] = (),
        max_instructions: int = MAX_INSTRUCTIONS, most_groups: int | None = None, counters: WaveCounters | None = None,
    ) -> list[Any]:  # fmt: skip
        """Run a grid, of a larger one the first `most_groups`. Arguments are NumPy arrays, addresses and scalars, None
        is null; missing ones at the end, which Triton's kernels have for scratch memory, are null. Findings are raised,
        or with `collect` returned. `lent` is memory that addresses may refer to."""
        grid3, sizes = dimensions(grid, "grid"), dimensions(threads, "workgroup")
        if (count := sizes[0] * sizes[1] * sizes[2]) > self.threads:
            raise EmulatorError(f"{self.function.name} allows {self.threads} threads in a workgroup, not {count}")
        self.executed = 0  # instructions
        group = self.group(sizes, wave or wave_size(self.arch), lds_bytes, checks)
        group.findings, group.max_instructions, group.counters = Findings(), max_instructions, counters
        self.write_hidden(grid3, sizes)
        values = self.values(arguments)
        extents = [extent_of(argument) for argument in arguments if isinstance(argument, np.ndarray)]
        with self.memory.lend([*extents, *lent]):
            for z, y, x in islice(product(*map(range, reversed(grid3))), most_groups):
                try:
                    group.run((x, y, z), values)
                    self.executed += group.executed
                except MemoryFault:  # which has been reported
                    continue
                except Trapped as error:
                    raise Trapped(f"{self.show()}{error}") from error
                finally:
                    self.show()
        if group.findings and not collect:
            raise CheckFailed(self.function.name, group.findings)
        return group.findings

    def show(self) -> str:
        """Print the kernel's output; return the last line."""
        lines = self.printed.take() if self.printed is not None else []
        print("".join(lines), end="")
        return lines[-1] if lines else ""

    def values(self, arguments: Sequence[Any]) -> list[Any]:
        params = self.function.params
        if not len(params) - 2 <= len(arguments) <= len(params):
            raise EmulatorError(f"{self.function.name} takes {len(params)} arguments and is given {len(arguments)}")
        given = [*arguments, *[None] * (len(params) - len(arguments))]
        return [value_of(kind, one) for (kind, _), one in zip(params, given, strict=True)]

    def write_hidden(self, grid: tuple[int, int, int], sizes: tuple[int, int, int]) -> None:
        """Write the arguments that the runtime adds, and the packet of the launch."""
        hidden = np.zeros(HIDDEN_BYTES, np.uint8)
        hidden[:12], hidden[12:18] = np.array(grid, np.uint32).view(np.uint8), np.array(sizes, np.uint16).view(np.uint8)
        hidden[64:66] = np.array([sum(size > 1 for size in grid) or 1], np.uint16).view(np.uint8)
        if self.printed is not None:
            hidden[PRINTF_BUFFER_OFFSET : PRINTF_BUFFER_OFFSET + 8] = np.array([self.printed.address], np.uint64).view(
                np.uint8
            )
        packet = np.zeros(64, np.uint8)
        packet[4:10] = np.array(sizes, np.uint16).view(np.uint8)
        packet[12:24] = np.array([a * b for a, b in zip(grid, sizes, strict=True)], np.uint32).view(np.uint8)
        self.memory.write(self.hidden, hidden)
        self.memory.write(self.packet, packet)


def extent_of(array: Array) -> Extent:
    low, high = np.lib.array_utils.byte_bounds(array)
    return Extent(low, high, low, bool(array.flags.writeable))


def value_of(kind: Type, given: Any) -> Any:
    """Return an argument as a value that all threads share."""
    dtype = dtype_of(kind)
    if given is None:
        return np.zeros(1, dtype), None
    if isinstance(given, np.ndarray):
        if not isinstance(kind, Pointer):
            raise EmulatorError(f"an array is given for a parameter of type {kind}")
        return np.array([given.ctypes.data], dtype), None
    if isinstance(kind, Int | Pointer):
        return np.array([int(given) & (1 << 8 * dtype.itemsize) - 1], dtype), None
    return np.array([given]).astype(dtype), None


def initial_bytes(group: Workgroup, variable: Variable) -> Array:
    """Return the bytes of a variable before the launch."""
    data = np.zeros(max(1, size_of(variable.type)), np.uint8)
    operand: Operand | None = variable.initial
    value = Translator(group.kernel.function, group).constant(variable.type, operand)
    for (offset, leaf), (one, _) in zip(leaves(variable.type), flatten(value), strict=True):
        raw = np.asarray(one).astype(dtype_of(leaf)).view(np.uint8)
        data[offset : offset + len(raw)] = raw
    return data


def load_kernel(text: str, arch: str, kernel: str | None = None, memory: Memory | None = None) -> LoadedKernel:
    """Return the kernel of this name, or the only one."""
    module = parse_llvm(text)
    if kernel is None:
        if len(module.kernels) != 1:
            raise EmulatorError(f"the module has the kernels {', '.join(module.kernels) or 'none'}; which one?")
        kernel = module.kernels[0]
    if kernel not in module.kernels:
        raise EmulatorError(f"the module has no kernel {kernel!r}; it has {', '.join(module.kernels) or 'none'}")
    return LoadedKernel(module, module.functions[kernel], arch, memory or Memory(1 << 30), formats_of(text))


def run(
    text: str, arguments: Sequence[Any], grid: int | Sequence[int] = 1, threads: int | Sequence[int] | None = None,
    lds_bytes: int = 0, arch: str = "gfx942", kernel: str | None = None, **options: Any,
) -> list[Any]:  # fmt: skip
    """Run a kernel once; `threads` defaults to the number in its text. `options` are those of `launch`."""
    loaded = load_kernel(text, arch, kernel)
    sizes = loaded.threads if threads is None else threads
    return loaded.launch(grid, sizes, arguments, lds_bytes, **options)
