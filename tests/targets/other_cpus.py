"""Machine code for other CPUs than this one: a table of them, and QEMU's user mode, which executes the code of most.

    cpu = CPUS["neoverse-n1"]
    text = cpu.kernel_text(nests)                         # LLVM text of a module of loop nests, with its interface
    cpu.compiled(text)                                    # the object file
    run_emulated(cpu, text, slots, arrays, (4, 1, 1))     # under qemu-aarch64; `slots` and `arrays` as for a launch on
                                                          this machine

No C library, C compiler or linker for the other CPU is needed. `run_all` (`entry_text`) is added to the kernel's LLVM
text, with the few functions of libc and libm that LLVM calls; `Layout` of `object_loader.py` places and relocates the
object at a fixed address. That image, the arguments, copies of the arrays and the arena become segments of a static ELF
file. The program runs the grid, one program after the other, writes its arrays and the control block of the arena to
standard output, and ends. Debian's package `qemu-user` has the emulators; QEMU 7.2 knows no AVX-512 and no AMX, so code
for such CPUs is compiled and verified only.
"""

import ctypes
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tilework.targets.cpu.lower.codegen import arena_size, emit_module
from tilework.targets.cpu.lower.dot_units import fused_in_doubles
from tilework.targets.cpu.lower.interface_of import interface_of
from tilework.targets.cpu.run.interface import CONTROL, PRINT_SYMBOL, PROGRAM, Interface
from tilework.targets.cpu.run.pool import fault_error
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.compile import LINUX, data_layout, target_machine, to_object
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.object_loader import ARM, X86, Layout, Object, aligned
from tilework.targets.llvm.types import f32, f64, i64
from tilework.targets.llvm.values import Value

Array = np.ndarray[Any, Any]
Grid = tuple[int, int, int]


@dataclass(frozen=True)
class OtherCpu:
    """A CPU by LLVM's name with the features that code may use, and the name of the CPU as which QEMU runs that
    code."""

    facts: HostTarget
    features: str
    emulated: str = ""  # "": QEMU does not have its instructions

    @classmethod
    def of(cls, arch: str, cpu: str, features: str, emulated: str = "", without: str = "") -> "OtherCpu":
        named = features.split()
        text = ",".join([*(f"+{name}" for name in named), *(f"-{name}" for name in without.split())])
        return cls(HostTarget.of(arch, cpu, named), text, emulated)

    @property
    def code_generator(self) -> Any:
        return target_machine(LINUX.format(self.facts.arch), self.facts.cpu, self.features)

    @property
    def emulator(self) -> str:
        """The program that runs its code; "" where there is none."""
        return (shutil.which(f"qemu-{self.facts.arch}") or "") if self.emulated else ""

    def text(self, nests: Any, fuses: bool = True) -> str:
        """LLVM text of a module of loop nests."""
        return emit_module(nests, self.facts, fuses=fuses, layout=data_layout(self.code_generator))

    def kernel_text(self, nests: Any, fuses: bool = True) -> str:
        """The same, with the facts about its kernel in the first line."""
        text = self.text(nests, fuses)
        return interface_of(nests, arena_size(nests)).line() + text

    def compiled(self, text: str) -> bytes:
        """The object file of LLVM text, which LLVM verifies."""
        return to_object(text, 0, self.code_generator, verify=True)


AVX2 = "avx2 fma f16c"
AVX512 = f"{AVX2} avx512f avx512bw avx512cd avx512dq avx512vl"
NEON = "neon dotprod fullfp16 lse"
FLUSHING = "avx512bf16"  # only dots may use it, see `DOT_ONLY`
CPUS = {
    "x86-64": OtherCpu.of("x86_64", "x86-64", ""),  # its code calls more of libm: floor, ceil, rint
    "x86-64-v2": OtherCpu.of("x86_64", "x86-64-v2", "", "Nehalem"),
    "x86-64-v3": OtherCpu.of("x86_64", "x86-64-v3", AVX2, "Haswell"),
    "x86-64-v4": OtherCpu.of("x86_64", "x86-64-v4", AVX512),
    "cooperlake": OtherCpu.of("x86_64", "cooperlake", f"{AVX512} avx512vnni avx512bf16", without=FLUSHING),
    "emeraldrapids": OtherCpu.of(
        "x86_64",
        "emeraldrapids",
        f"{AVX512} avx512vnni avx512fp16 avx512bf16 amx-tile amx-bf16 amx-int8",
        without=FLUSHING,
    ),
    "armv8-a": OtherCpu.of("aarch64", "generic", "neon", "cortex-a53"),
    "fullfp16": OtherCpu.of("aarch64", "neoverse-n1", NEON, "neoverse-n1"),
    "sve": OtherCpu.of("aarch64", "neoverse-v1", f"{NEON} bf16 i8mm sve", "max"),
    "sve2": OtherCpu.of("aarch64", "neoverse-v2", f"{NEON} fp16fml bf16 i8mm sve sve2", "max,sve-max-vq=1"),
}
EMULATED = [name for name, cpu in CPUS.items() if cpu.emulated]

# Where the segments of a program are: `_start` and the function for system calls, the image, and arguments, arrays and
# the arena.
STUBS, SYSTEM, IMAGE, DATA, PAGE = 0x0F00_0000, 0x0F00_0040, 0x1000_0000, 0x2000_0000, 0x1000
GUARD, FILLED = 256, 0xA5  # bytes between arrays, which must stay as they are
MACHINES = {"x86_64": X86, "aarch64": ARM}
WRITE, EXIT = {"x86_64": 1, "aarch64": 64}, {"x86_64": 60, "aarch64": 93}  # system calls of Linux
# i64 system(i64 number, i64, i64, i64); llvmlite has an assembler for the host only
SYSTEM_CODE = {
    # mov rax, rdi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; syscall; ret
    "x86_64": "4889f8 4889f7 4889d6 4889ca 0f05 c3",
    "aarch64": "e80300aa e00301aa e10302aa e20303aa 010000d4 c0035fd6",  # mov x8, x0; ..; mov x2, x3; svc #0; ret
}
ELF, SEGMENT = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQQQ")
MEMORY_FUNCTIONS = """
define hidden ptr @memset(ptr %to, i32 %number, i64 %size) "no-builtins" {
entry:
  %byte = trunc i32 %number to i8
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %is_over = icmp eq i64 %i, %size
  br i1 %is_over, label %done, label %body
body:
  %place = getelementptr i8, ptr %to, i64 %i
  store i8 %byte, ptr %place
  %next = add i64 %i, 1
  br label %head
done:
  ret ptr %to
}
define hidden ptr @memcpy(ptr %to, ptr %from, i64 %size) "no-builtins" {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %is_over = icmp eq i64 %i, %size
  br i1 %is_over, label %done, label %body
body:
  %source = getelementptr i8, ptr %from, i64 %i
  %place = getelementptr i8, ptr %to, i64 %i
  %byte = load i8, ptr %source
  store i8 %byte, ptr %place
  %next = add i64 %i, 1
  br label %head
done:
  ret ptr %to
}
"""


def entry_text(arch: str, name: str, grid: Grid, arena: int) -> str:
    """LLVM text of `run_all`: run the grid, write all from DATA to the end of the control block, exit."""
    x, y, z = grid
    end = arena + CONTROL
    return f"""
define void @run_all() noreturn "stackrealign" {{
entry:
  %args = inttoptr i64 {DATA} to ptr
  %arena = inttoptr i64 {arena} to ptr
  %system = inttoptr i64 {SYSTEM} to ptr
  %code = call i32 @{name}_range(ptr %args, i64 0, i64 {x * y * z}, i32 {x}, i32 {y}, i32 {z}, ptr %arena)
  br label %more
more:
  %place = phi i64 [ {DATA}, %entry ], [ %next, %more ]
  %left = sub i64 {end}, %place
  %wrote = call i64 %system(i64 {WRITE[arch]}, i64 1, i64 %place, i64 %left)
  %next = add i64 %place, %wrote
  %is_over = icmp sge i64 %next, {end}
  br i1 %is_over, label %done, label %more
done:
  %none = call i64 %system(i64 {EXIT[arch]}, i64 0, i64 0, i64 0)
  unreachable
}}
"""


@cache
def fused_text() -> str:
    """LLVM text of libm's `fmaf` and `fma`, which code for CPUs without such an instruction calls."""
    module = Module("libm")
    single = module.function("fmaf", f32, [(f32, name) for name in "xyz"], linkage="hidden")
    b = Builder(single)
    x, y, z = single.args
    b.ret(fused_in_doubles(b, z, x, y))
    double = module.function("fma", f64, [(f64, name) for name in "xyz"], linkage="hidden")
    b = Builder(double)
    x, y, z = double.args
    b.ret(fused_in_parts(b, x, y, z))
    return "\n".join(function.text() for function in (single, double))


def fused_in_parts(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z rounded once, unless a product of parts overflows or vanishes (Boldo and Melquiond, 2008)."""

    def halves(a: Value) -> tuple[Value, Value]:
        scaled = b.fmul(a, 134217729.0)
        high = b.fsub(scaled, b.fsub(scaled, a))
        return high, b.fsub(a, high)

    def sum_of(a: Value, c: Value) -> tuple[Value, Value]:
        total = b.fadd(a, c)
        other = b.fsub(total, a)
        return total, b.fadd(b.fsub(a, b.fsub(total, other)), b.fsub(c, other))

    product = b.fmul(x, y)
    (high, low), (upper, lower) = halves(x), halves(y)
    error = b.fsub(b.fmul(high, upper), product)
    for left, right in ((high, lower), (low, upper), (low, lower)):
        error = b.fadd(error, b.fmul(left, right))
    first, second = sum_of(z, error)
    total, rest = sum_of(product, first)
    odd, inexact = sum_of(second, rest)
    bits = b.bitcast(odd, i64)
    is_even = b.icmp("eq", b.and_(bits, 1), 0)
    step = b.select(b.icmp("sge", b.xor(bits, b.bitcast(inexact, i64)), 0), b.add(bits, 1), b.add(bits, -1))
    moved = b.bitcast(b.select(b.and_(is_even, b.fcmp("one", inexact, 0.0)), step, bits), f64)
    made = b.fadd(total, moved)
    return b.select(b.fcmp("ord", b.fsub(made, made), 0.0), made, b.fadd(product, z))


def elf_file(machine: int, segments: Sequence[tuple[int, bytes, int]]) -> bytes:
    """A static executable of segments (address, content, size with the zeros behind it), which begins with the first of
    them."""
    end = aligned(ELF.size + len(segments) * SEGMENT.size, PAGE)
    sizes = (0, ELF.size, SEGMENT.size, len(segments), 0, 0, 0)
    start = ELF.pack(b"\x7fELF\x02\x01\x01", 2, machine, 1, segments[0][0], ELF.size, 0, *sizes)
    contents = b""
    for address, content, size in segments:
        start += SEGMENT.pack(1, 7, end + len(contents), address, address, len(content), size, PAGE)
        contents += content.ljust(aligned(len(content), PAGE), b"\0")
    return start.ljust(end, b"\0") + contents


@dataclass(frozen=True)
class Copied:
    """The memory of an array, and where a program has a copy of it."""

    low: int
    high: int
    target: int

    @classmethod
    def of(cls, array: Array, index: int) -> "Copied":
        return cls(*np.lib.array_utils.byte_bounds(array), index)


def run_emulated(cpu: OtherCpu, text: str, slots: bytes, arrays: Sequence[Array], grid: Grid) -> None:
    """Run a kernel's text as its code would run here: `slots` point to `arrays`, which hold the results afterwards.

    A failed assert is a RuntimeError, and so is what ends the program early, or what it writes between the arrays.
    """
    interface, machine = Interface.read(text), MACHINES[cpu.facts.arch]
    copied, end = list[Copied](), aligned(DATA + len(slots), 64) + GUARD
    for array in arrays:
        copied.append(Copied.of(array, end))
        end = aligned(end + copied[-1].high - copied[-1].low + GUARD, 64)
    arena = aligned(end, PAGE)
    content = bytearray([FILLED]) * (arena - DATA)
    content[: len(slots)] = there(slots, interface, copied)
    for one in copied:
        content[one.target - DATA : one.target - DATA + one.high - one.low] = ctypes.string_at(
            one.low, one.high - one.low
        )
    whole = text + entry_text(cpu.facts.arch, interface.name, grid, arena) + MEMORY_FUNCTIONS + fused_text()
    system = bytes.fromhex(SYSTEM_CODE[cpu.facts.arch])

    def find(name: str) -> int:
        if name == PRINT_SYMBOL:  # which prints nothing: it returns at once
            return SYSTEM + len(system) - (1 if machine is X86 else 4)
        raise LookupError(f"the code calls {name}, which is no part of it")

    image, symbols = Layout(Object(cpu.compiled(whole), machine)).image(IMAGE, find)
    stubs = (machine.stub + struct.pack("<Q", symbols["run_all"])).ljust(SYSTEM - STUBS, b"\0") + system
    parts = [(STUBS, stubs, len(stubs)), (IMAGE, bytes(image), len(image))]
    parts.append((DATA, bytes(content), arena + interface.arena - DATA))
    printed = execute(cpu, elf_file(machine.elf_id, parts), arena + CONTROL - DATA)
    for one in copied:
        at, size = one.target - DATA, one.high - one.low
        ctypes.memmove(one.low, bytes(printed[at : at + size]), size)
        printed[at : at + size] = content[at : at + size]
    (code,) = struct.unpack_from("<i", printed, arena - DATA)
    if code:
        raise fault_error(interface, grid, code, *struct.unpack_from("<q", printed, arena - DATA + PROGRAM))
    if printed[: len(content)] != content:
        raise RuntimeError(f"kernel {interface.name} writes outside of its arrays")


def there(slots: bytes, interface: Interface, copied: Sequence[Copied]) -> bytes:
    """The slots with the addresses of the copies."""
    made = b""
    for position, parameter in enumerate(interface.parameters):
        slot = slots[8 * position : 8 * position + 8]
        if parameter == "ptr":
            (address,) = struct.unpack("<Q", slot)
            found = [one for one in copied if one.low <= address <= one.high]
            slot = struct.pack("<Q", found[0].target + address - found[0].low if found else address)
        made += slot
    return made


def execute(cpu: OtherCpu, program: bytes, size: int) -> bytearray:
    """Return the output of a program: `size` bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program"
        path.write_bytes(program)
        path.chmod(0o755)
        command = [cpu.emulator, "-cpu", cpu.emulated, str(path)]
        done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    if done.returncode or len(done.stdout) != size:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.decode()[-1000:]}")
    return bytearray(done.stdout)
