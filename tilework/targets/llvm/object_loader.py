"""Load the machine code of an object file into this process, without LLVM.

    library = load_object(data, ["add"])         # in this process or a later one
    function = ctypes.CFUNCTYPE(...)(library["add"])

Loading LLVM takes longer than all else that a process does for a kernel from the cache, and its linker is needed for
nothing but the few kinds of relocations that LLVM writes for Linux on ARM and x86. Other relocations, files for other
systems and undefined symbols are left to LLVM (`jit_load` of `compile.py`), which reports errors well.

The image is one piece of memory, so that its parts reach each other: code and constants first, with a stub for each
function of other libraries and a table of addresses, then, on a new page, what can be written. Keep the object returned
as long as its addresses are used; the memory of one that is gone is freed when the next one is loaded.

ELF: the System V ABI; relocations: "ELF for the Arm 64-bit Architecture", 5.7, and the psABI of x86-64, 4.4.
"""

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from tilework.errors import CompilerMissing, StageError
from tilework.targets.elf_sections import HEADER, NOBITS, Section, Symbol, read_sections, read_symbols

RELOCATION = struct.Struct("<QIIq")
RELOCATABLE = 1
PROGBITS, RELA = 1, 4
WRITE, ALLOC, THREAD_LOCAL = 1, 2, 0x400
UNDEFINED, ABSOLUTE = 0, 0xFFF1
UNWINDING = ".eh_frame"  # for exceptions of C++, which no code here throws or lets through
PAGE = mmap.PAGESIZE
STUB, ENTRY = 16, 8  # bytes
MAP_FAILED = (1 << 64) - 1


class Unknown(Exception):
    """The object file has parts that only LLVM can load."""


class Machine:
    """A kind of processor: its ELF machine id, its relocations, and the stub that jumps to the address behind it.

    `calls` are relocations that may go through a stub, `entries` those that refer to the address of a pointer.
    """

    def __init__(
        self, elf_id: int, rules: "Mapping[int, Rule]", stub: bytes, calls: frozenset[int], entries: frozenset[int]
    ) -> None:
        self.elf_id, self.rules, self.stub, self.calls, self.entries = elf_id, rules, stub, calls, entries


Rule = Callable[[bytearray, int, int, int], None]
"""(image, offset, address of that offset, value with addend): write the value into the instruction or integer there.
"""


def integer(kind: str, is_relative: bool) -> Rule:
    """An integer in memory: the value, or its distance."""
    form = struct.Struct(kind)

    def rule(image: bytearray, at: int, address: int, value: int) -> None:
        try:
            form.pack_into(image, at, value - address if is_relative else value)
        except struct.error:
            raise Unknown("out of reach") from None

    return rule


def instruction(encode: Callable[[int, int], int]) -> Rule:
    """Bits of an ARM instruction, from the value and the address."""

    def rule(image: bytearray, at: int, address: int, value: int) -> None:
        (bits,) = struct.unpack_from("<I", image, at)
        struct.pack_into("<I", image, at, bits | encode(value, address))

    return rule


def branch(value: int, address: int) -> int:
    """CALL26, JUMP26: a distance in instructions."""
    distance = value - address
    if not -(1 << 27) <= distance < 1 << 27 or distance & 3:
        raise Unknown("out of reach")
    return distance >> 2 & (1 << 26) - 1


def page(value: int, address: int) -> int:
    """ADRP: a distance in pages of 4 KiB, its last two bits apart."""
    distance = (value >> 12) - (address >> 12)
    if not -(1 << 20) <= distance < 1 << 20:
        raise Unknown("out of reach")
    return (distance & 3) << 29 | (distance >> 2 & (1 << 19) - 1) << 5


def low_bits(shift: int) -> Rule:
    """ADD and loads and stores: the offset inside of the page, in units of the access size."""

    def encode(value: int, address: int) -> int:
        if value & (1 << shift) - 1:
            raise Unknown("out of step")
        return (value & 0xFFF) >> shift << 10

    return instruction(encode)


ARM = Machine(
    183,
    {
        257: integer("<Q", is_relative=False),
        260: integer("<q", is_relative=True),
        261: integer("<i", is_relative=True),
        275: instruction(page),
        277: low_bits(0),
        278: low_bits(0),
        282: instruction(branch),
        283: instruction(branch),
        284: low_bits(1),
        285: low_bits(2),
        286: low_bits(3),
        299: low_bits(4),
        311: instruction(page),
        312: low_bits(3),
    },
    bytes.fromhex("5000005800021fd6"),  # ldr x16, .+8; br x16
    frozenset({282, 283}),
    frozenset({311, 312}),
)
X86 = Machine(
    62,
    {
        1: integer("<Q", is_relative=False),
        24: integer("<q", is_relative=True),
        **dict.fromkeys((2, 4, 9, 41, 42), integer("<i", is_relative=True)),
    },
    bytes.fromhex("ff25020000006690"),  # jmp *2(%rip); nop
    frozenset({4}),
    frozenset({9, 41, 42}),
)
MACHINES = {"aarch64": ARM, "arm64": ARM, "x86_64": X86, "amd64": X86}


class Object:
    """The parts of an object file that are loaded."""

    def __init__(self, data: bytes, machine: Machine) -> None:
        try:
            self.sections = read_sections(data)
        except StageError as error:
            raise Unknown(str(error)) from None
        if HEADER.unpack_from(data)[1:3] != (RELOCATABLE, machine.elf_id):
            raise Unknown("not for this machine")
        self.machine, self.symbols = machine, read_symbols(self.sections)
        self.loaded = [
            index
            for index, section in enumerate(self.sections)
            if section.flags & ALLOC and section.size and section.name != UNWINDING
        ]
        for section in (self.sections[index] for index in self.loaded):
            if section.type not in (PROGBITS, NOBITS) or section.flags & THREAD_LOCAL:
                raise Unknown("a section of initialisers or of thread-local data")

    def relocations(self) -> "Iterable[tuple[int, int, int, Symbol, int]]":
        """(section, offset in it, kind, symbol, addend) of everything to be written once addresses are known."""
        for section in self.sections:
            if section.type == RELA and section.info in self.loaded:
                for offset, kind, symbol, addend in RELOCATION.iter_unpack(section.data):
                    if kind not in self.machine.rules:
                        raise Unknown(f"relocation {kind}")
                    yield section.info, offset, kind, self.symbols[symbol], addend


def aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


class Layout:
    """The addresses of the parts of an object."""

    def __init__(self, object: Object) -> None:
        self.object = object
        self.offsets: dict[int, int] = {}
        end = self.put(0, lambda section: not section.flags & WRITE)
        self.relocations = list(object.relocations())
        machine = object.machine
        foreign = (
            symbol.name
            for _, _, kind, symbol, _ in self.relocations
            if kind in machine.calls and symbol.section == UNDEFINED
        )
        self.stubs = {name: aligned(end, STUB) + STUB * index for index, name in enumerate(dict.fromkeys(foreign))}
        end = aligned(end, STUB) + STUB * len(self.stubs)
        wanted = (symbol for _, _, kind, symbol, _ in self.relocations if kind in machine.entries)
        self.entries = {symbol: end + ENTRY * index for index, symbol in enumerate(dict.fromkeys(wanted))}
        self.writable = aligned(end + ENTRY * len(self.entries), PAGE)
        self.size = max(aligned(self.put(self.writable, lambda section: bool(section.flags & WRITE)), PAGE), PAGE)

    def put(self, end: int, belongs: Callable[[Section], bool]) -> int:
        """Assign offsets to the sections that belong here, from `end` on; return the new end."""
        for index in self.object.loaded:
            section = self.object.sections[index]
            if belongs(section):
                self.offsets[index] = aligned(end, section.align)
                end = self.offsets[index] + section.size
        return end

    def image(self, base: int, find: Callable[[str], int]) -> tuple[bytearray, dict[str, int]]:
        """(the content of memory at `base`, addresses of its symbols); `find` resolves undefined ones."""
        content, machine = bytearray(self.size), self.object.machine
        for index, start in self.offsets.items():
            data = self.object.sections[index].data
            content[start : start + len(data)] = data

        def address(symbol: Symbol) -> int:
            if symbol.section in self.offsets:
                return base + self.offsets[symbol.section] + symbol.value
            if symbol.section == UNDEFINED:
                return find(symbol.name)
            if symbol.section == ABSOLUTE:
                return symbol.value
            raise Unknown("a symbol of a kind that is not known")

        for name, start in self.stubs.items():
            content[start : start + STUB] = machine.stub + struct.pack("<Q", find(name))
        for symbol, start in self.entries.items():
            struct.pack_into("<Q", content, start, address(symbol))
        for section, offset, kind, symbol, addend in self.relocations:
            at = self.offsets[section] + offset
            if kind in machine.entries:
                target = base + self.entries[symbol]
            elif kind in machine.calls and symbol.section == UNDEFINED:
                target = base + self.stubs[symbol.name]
            else:
                target = address(symbol)
            machine.rules[kind](content, at, base + at, target + addend)
        defined = {symbol.name: address(symbol) for symbol in self.object.symbols if symbol.section in self.offsets}
        return content, defined


_UNUSED: list[tuple[int, int]] = []  # addresses and sizes of libraries that are gone


class LoadedCode:
    """Machine code in memory; `code["name"]` is the address of a symbol.

    The end of the process frees nothing: threads of the pool are still in it when Python takes its objects down.
    """

    def __init__(self, base: int, size: int, addresses: Mapping[str, int]) -> None:
        self.memory, self.addresses = (base, size), addresses

    def __getitem__(self, symbol: str) -> int:
        return self.addresses[symbol]

    def __del__(self, unused: list[tuple[int, int]] = _UNUSED) -> None:  # in any thread, at any moment
        unused.append(self.memory)


def load_object(data: bytes, symbols: Iterable[str], imports: Mapping[str, int] | None = None) -> Any:
    """Link an object file into this process. `imports` are addresses of functions it calls; libc and libm are found."""
    symbols = list(symbols)
    try:
        return mapped(data, symbols, imports or {})
    except (Unknown, OSError) as error:  # other files than ours, other systems, memory that may not be executed
        try:
            from tilework.targets.llvm.compile import jit_load  # lazily: loads LLVM, needed for unusual files only
        except ImportError:
            raise CompilerMissing(
                f"machine code that has {symbols[0]} cannot be loaded here ({error}), except by LLVM,"
                " which is not installed"
            ) from error
        return jit_load(data, symbols, imports)


def mapped(data: bytes, symbols: list[str], imports: Mapping[str, int]) -> LoadedCode:
    """The same, or `Unknown`."""
    machine = MACHINES.get(platform.machine().lower()) if sys.platform == "linux" else None
    if machine is None:
        raise Unknown("not of this system")
    layout, process = Layout(Object(data, machine)), libraries()

    def find(name: str) -> int:
        if name in imports:
            return imports[name]
        try:
            return ctypes.cast(process.program[name], ctypes.c_void_p).value or 0
        except AttributeError:
            raise Unknown(f"{name} is not in this process") from None

    while _UNUSED:
        process.unmap(*_UNUSED.pop())
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    base = process.map(None, layout.size, mmap.PROT_READ | mmap.PROT_WRITE, kind, -1, 0)
    if base == MAP_FAILED:
        raise Unknown("no memory")
    code = LoadedCode(base, layout.size, {})
    content, defined = layout.image(base, find)
    if missing := [symbol for symbol in symbols if symbol not in defined]:
        raise Unknown(f"no {missing[0]}")
    ctypes.memmove(base, bytes(content), layout.size)
    if layout.writable and process.protect(base, layout.writable, mmap.PROT_READ | mmap.PROT_EXEC):
        raise Unknown("no memory for code")
    process.flush(base, base + layout.writable)
    code.addresses = {symbol: defined[symbol] for symbol in symbols}
    return code


class Libraries:
    """Functions of the C library and of the compiler's."""

    def __init__(self, program: Any, map: Any, unmap: Any, protect: Any, flush: Any) -> None:
        self.program, self.map, self.unmap, self.protect, self.flush = program, map, unmap, protect, flush


@cache
def libraries() -> Libraries:
    program = ctypes.CDLL(None)
    pointer, size, int_ = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    map = ctypes.CFUNCTYPE(pointer, pointer, size, int_, int_, int_, ctypes.c_long)(("mmap", program))
    unmap = ctypes.CFUNCTYPE(int_, pointer, size)(("munmap", program))
    protect = ctypes.CFUNCTYPE(int_, pointer, size, int_)(("mprotect", program))
    if MACHINES[platform.machine().lower()] is X86:  # its caches see what is written
        return Libraries(program, map, unmap, protect, lambda start, end: None)
    flush = ctypes.CFUNCTYPE(None, pointer, pointer)(("__clear_cache", ctypes.CDLL("libgcc_s.so.1")))
    return Libraries(program, map, unmap, protect, flush)
