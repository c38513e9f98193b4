"""An object file of a kernel that C programs call, without Python: the kernel, and the functions around it.

    int32_t NAME(TTthreads *threads, args...)       run the grid; 0, or an error code
    const char *NAME_error_string(int32_t code)     the message of an error code of this kernel, or NULL
    void load_NAME(void), unload_NAME(void)         do nothing; for the same interface as on GPUs

`NAME` computes the grid, and calls the threads' `run` with a function that takes programs until none are left
(`NAME_work` of `interface.py`), each call with scratch memory of its own. Without threads that function is called once.
All else in the object is local, so that objects of many kernels, and of many variants of one, can be linked together.
They need from the system: `malloc`, `free`, and the few functions of libc and libm that LLVM calls.

A kernel whose programs wait for each other can starve where they have too few threads: if none has begun for ten
seconds, and those that have begun wait, the launch ends with the code STARVED.
"""

import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from tilework.errors import TritonError
from tilework.light_dataclass import light_dataclass
from tilework.targets.cpu.machines import CpuMachine, machine_for_programs
from tilework.targets.cpu.run.interface import (
    CONTROL_FIELDS,
    FULL,
    NO_MEMORY,
    PRINT_SYMBOL,
    STARVED,
    Interface,
    offsets_of,
)
from tilework.targets.cpu.run.machine_code import FIELD_TYPES, NULL, Code, Platform, int32, num
from tilework.targets.llvm.apart import apart
from tilework.targets.llvm.compile import llvm
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.types import Type, array, f32, f64, i8, i16, i32, i64, ptr, void
from tilework.targets.llvm.values import Value, constant

INVALID = -4  # a grid that cannot be run
CODES = {"SUCCESS": 0, "ERROR_OUT_OF_MEMORY": NO_MEMORY, "ERROR_STARVED": STARVED, "ERROR_INVALID_VALUE": INVALID}
MEANINGS = {
    0: "success",
    NO_MEMORY: "no memory for the scratch of a program",
    STARVED: "programs wait for others for which there is no thread: run them in more threads",
    INVALID: "the grid has a negative size, a division by zero, or more than 2147483647 programs;"
    " or no variant of the kernel fits",
}
MOST_PROGRAMS = 2**31 - 1
PATIENCE = 10  # seconds
CHUNKS = 4  # that each thread takes of a grid
LAUNCH = {
    **{"slots": "Q", "next": "q", "total": "q", "chunk": "q", "x": "i", "y": "i", "z": "i", "fault": "i"},
    **{"seen": "q", "since": "q", "ticket": "q"},
}
THREADS = {"threads": "i", "reserved": "i", "run": "Q"}  # `TTthreads` of the header
C_ABI: dict[str, Type] = {
    **{"void *": ptr, "float": f32, "double": f64},
    **{f"{sign}int{bits}_t": type for sign in ("", "u") for bits, type in ((8, i8), (16, i16), (32, i32), (64, i64))},
}
GridCode = Callable[[Code, dict[str, Value]], list[tuple[Value, Value]]]


@light_dataclass
class Argument:
    """A parameter of the C function: its name and C type. One that is not of the kernel is for the grid alone."""

    name: str
    c_type: str
    is_of_kernel: bool = True

    @property
    def is_integer(self) -> bool:
        return "int" in self.c_type


def standalone_object(
    module: Any, name: str, args: Sequence[Argument], grid: GridCode, arch: str, first_code: int, fuses: bool
) -> tuple[bytes, Interface]:
    """The object file of a module of loop nests, and the kernel's interface; `first_code` is the code of its first
    assert.
    """
    from tilework.targets.cpu.lower.codegen import arena_size, emit_module  # lazily: the compiler loads when it is used
    from tilework.targets.cpu.lower.interface_of import interface_of

    machine = machine_for_programs(arch)
    text = emit_module(module, machine.facts, fuses=fuses, layout=machine.layout, ticket=offsets_of(LAUNCH)["ticket"])
    interface = interface_of(module, arena_size(module))
    if f"@{PRINT_SYMBOL}(" in text:
        raise TritonError(
            f"kernel {interface.name} prints (tl.device_print), and the code that prints is written in Python: an"
            " object for C programs cannot have it. Remove the call, or compile for a GPU"
        )
    if len(interface.parameters) != sum(arg.is_of_kernel for arg in args):
        raise TritonError(f"kernel {interface.name} has parameters that a C function cannot take")
    made = entry_text(interface, name, args, grid, first_code)
    exports = {name, f"{name}_error_string", f"load_{name}", f"unload_{name}"}
    return linked_object(text, made, interface.name, exports, machine), interface


@apart
def linked_object(kernel: str, entry: str, name: str, exports: set[str], machine: CpuMachine) -> bytes:
    """One object of two texts; all symbols that are not exported are local."""
    with ExitStack() as owner:
        context = owner.enter_context(llvm.create_context())
        module = owner.enter_context(llvm.parse_assembly(kernel, context))
        for function in module.functions:
            if not function.is_declaration:
                function.visibility = "default"
                if function.name != f"{name}_work":  # which the other text calls
                    function.linkage = "internal"
                if function.name in (name, f"{name}_range", f"{name}_work"):
                    function.name = "tt.kernel" + function.name[len(name) :]
        module.link_in(llvm.parse_assembly(entry, context))
        for function in module.functions:
            if not function.is_declaration and function.name not in exports:
                function.linkage = "internal"
        module.verify()
        return machine.code_generator(2).emit_object(module)


def entry_text(interface: Interface, name: str, args: Sequence[Argument], grid: GridCode, first_code: int) -> str:
    """LLVM text of the functions around a kernel."""
    module = Module("tilework.standalone")
    here = Platform(sys.platform, platform.machine().lower())
    if interface.waits:
        write_poll(Code(module.function("tt.poll", i32, [(ptr, "arena"), (i32, "waits")]), here))
    write_task(Code(module.function("tt.task", void, [(ptr, "launch")]), here), interface, first_code)
    params = [(C_ABI[arg.c_type], arg.name) for arg in args]
    write_entry(Code(module.function(name, i32, [(ptr, ".threads"), *params]), here), args, grid, interface.waits)
    write_error_strings(
        Code(module.function(f"{name}_error_string", ptr, [(i32, "code")]), here), interface, first_code
    )
    for mode in ("load", "unload"):
        Code(module.function(f"{mode}_{name}", void, []), here).ret()
    return module.text()


def write_entry(b: Code, args: Sequence[Argument], grid: GridCode, waits: bool) -> None:
    """`NAME`: see the module docstring."""
    threads, *values = b.function.args
    slots = b.alloca(i64, max(1, len(args)), align=8)
    integers: dict[str, Value] = {}
    for position, (arg, value) in enumerate(zip(args, values, strict=True)):
        if arg.is_of_kernel:
            b.store(value, b.gep(slots, 8 * position), align=8)
        if arg.is_integer:
            integers[arg.name] = b.cast(value, i64, is_signed=not arg.c_type.startswith("u"))
    sizes = grid(b, integers)
    total = num(1)
    for size, is_wrong in sizes:
        leave_if(b, b.or_(is_wrong, b.icmp("ugt", size, num(MOST_PROGRAMS))), INVALID)
        total = b.mul(total, size)
        leave_if(b, b.icmp("ugt", total, num(MOST_PROGRAMS)), INVALID)
    leave_if(b, b.icmp("eq", total, num(0)), 0)
    record = b.alloca(array(i8, size_of(LAUNCH)), align=8)
    launch = b.record(record, LAUNCH)
    whole = num(1) if waits else total  # programs that wait begin one by one, so that `next` shows which have not
    launch.set(
        slots=slots, next=num(0), total=total, chunk=whole, fault=int32(0), seen=num(-1), since=num(0), ticket=num(0)
    )
    for axis, (size, _) in zip("xyz", sizes, strict=True):
        b.store(b.trunc(size, i32), launch.at(axis), align=4)
    with b.unless(b.is_null(threads)):
        given = b.record(threads, THREADS)
        count = b.smax(b.sext(given.get("threads"), i64), num(1))
        if not waits:
            launch.set(chunk=b.smax(b.udiv(total, b.mul(count, num(CHUNKS))), num(1)))
        b.call(given.get("run"), void, [threads, Value(ptr, "@tt.task"), record])
    b.run("tt.task", record)  # all of it, or the part that no thread has taken
    b.ret(launch.get("fault", "monotonic"))


def leave_if(b: Code, condition: Value, code: int) -> None:
    """Return a code if a condition holds; raise ValueError if it is known to hold now."""
    if condition.constant:
        raise ValueError(
            "the grid has no program whatever the arguments are: a size is 0, negative, too large, or divided by 0"
        )
    with b.if_(condition):
        b.ret(int32(code))


def write_task(b: Code, interface: Interface, first_code: int) -> None:
    """`tt.task(launch)`: run programs until none are left, with an arena of its own."""
    (record,) = b.function.args
    launch = b.record(record, LAUNCH)
    with b.if_(b.icmp("sge", launch.get("next", "monotonic"), launch.get("total"))):
        b.ret()
    block = b.run("malloc", num(interface.arena + 64))
    with b.if_(b.is_null(block)):
        launch.change("fault", 0, int32(NO_MEMORY))
        launch.set("monotonic", next=launch.get("total"))
        b.ret()
    start = b.inttoptr(b.and_(b.add(b.ptrtoint(block, i64), 63), -64), ptr)
    b.fill(start, 0, size_of(CONTROL_FIELDS))
    arena = b.record(start, CONTROL_FIELDS)
    arena.set(fuel=int32(FULL), launched=record, poll=Value(ptr, "@tt.poll") if interface.waits else NULL)
    given = [launch.get("slots"), launch.at("next"), *(launch.get(each) for each in ("total", "chunk", "x", "y", "z"))]
    code = b.call("tt.kernel_work", i32, [*given, start])
    with b.if_(b.icmp("ne", code, 0)):
        is_assert = b.icmp("sgt", code, 0)
        launch.change("fault", 0, b.select(is_assert, b.add(code, int32(first_code - 1)), code))
    b.run("free", block)
    b.ret()


def write_poll(b: Code) -> None:
    """`tt.poll(arena, waits)`: programs call it now and then, and end if it returns a code."""
    start, waits = b.function.args
    arena = b.record(start, CONTROL_FIELDS)
    arena.set(fuel=int32(FULL))
    launch = b.record(arena.get("launched"), LAUNCH)
    fault = launch.get("fault", "monotonic")
    with b.if_(b.icmp("ne", fault, 0)):
        b.ret(int32(STARVED))
    with b.if_(b.icmp("eq", waits, 0)):
        b.ret(int32(0))
    b.run("sched_yield")
    following = launch.get("next", "monotonic")
    with b.if_(b.icmp("sge", following, launch.get("total"))):
        b.ret(int32(0))
    clock = b.alloca(i64, 2, align=8)
    b.run("clock_gettime", int32(6 if b.platform.system == "darwin" else 1), clock)
    time = b.load(i64, clock, align=8)
    with b.if_(b.icmp("ne", launch.get("seen", "monotonic"), following)):
        launch.set("monotonic", seen=following, since=time)
        b.ret(int32(0))
    is_over = b.icmp("sgt", b.sub(time, launch.get("since", "monotonic")), num(PATIENCE))
    b.ret(b.select(is_over, int32(STARVED), int32(0)))


def write_error_strings(b: Code, interface: Interface, first_code: int) -> None:
    """`NAME_error_string(code)`."""
    (code,) = b.function.args
    faults = {
        first_code + position: f"{location}: device-side assert triggered: {message}".removeprefix(": ")
        for position, (message, location) in enumerate(interface.faults)
    }
    for known, text in (MEANINGS | faults).items():
        with b.if_(b.icmp("eq", code, constant(i32, known))):
            b.ret(b.module.string(text))
    b.ret(NULL)


def size_of(fields: dict[str, str]) -> int:
    """Bytes of a record."""
    last = list(fields)[-1]
    return offsets_of(fields)[last] + FIELD_TYPES[fields[last]].bits // 8
