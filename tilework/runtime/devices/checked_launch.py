"""Launches of kernels with sanitizer checks: TRITON_SANITIZE=1, `@jit(sanitize=True)`, or `sanitize=True` at a launch.

    x = np.zeros(1000, np.float32)
    double[(8,)](x, 1024, BLOCK=128)

    kernel.py:9:9: error: program (7, 0, 0) reads element 1000 of argument 'x', which has 1000 elements (out of bounds)
        9 |     v = tl.load(x + i, mask=i < n)
          |         ^ index (1000,) of an array of shape (1000,)

The launcher writes the extents of all array arguments into a table (`targets/cpu/lower/checks.py`), machine code looks
there before each access, and the launcher raises an error for the faults that it wrote there. The extent of a view is
from its first byte to its last, also where it has strides. Memory that a kernel reaches through addresses it has loaded
must be an argument, or made known by `tilework.oracles.interpreter.register_memory`.
"""

import ctypes
import linecache
import re
import struct
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from tilework.errors import SANITIZER, SANITIZER_WARNING, Diagnostic, SanitizerError, SanitizerWarning, Span, warn_at
from tilework.oracles.interpreter.allowed_memory import REGISTERED, AccessError, Region, is_near
from tilework.oracles.interpreter.arguments import region_of
from tilework.runtime.devices.gpu.gpu_launcher import Functions, GpuLauncher
from tilework.runtime.devices.host.evaluator_launcher import EvaluatorLauncher
from tilework.runtime.devices.host.native_launcher import NativeLauncher
from tilework.runtime.devices.host.pack import Slots
from tilework.runtime.devices.launcher import Extent, Scratch, declared_types
from tilework.runtime.devices.strided_arguments import HELP as HELP_STRIDED
from tilework.runtime.devices.strided_arguments import strided_arguments
from tilework.targets.cpu.run.interface import ENTRIES, Interface
from tilework.targets.cpu.run.pool import fault_error

if TYPE_CHECKING:
    from tilework.oracles.evaluator.global_memory import Race
    from tilework.oracles.evaluator.values import EvaluationError
    from tilework.runtime.compile.sources import ASTSource, IRSource

HELPS = {  # by a part of the report
    "masks elements off": (
        "give the load an `other` (with `boundary_check` a `padding_option`), or use what it gives under the same mask"
    ),
    "operation add, and": "to wrap around on purpose, use tl.add(a, b, sanitize_overflow=False)",
    "operation sub, and": "to wrap around on purpose, use tl.sub(a, b, sanitize_overflow=False)",
    "operation mul, and": "to wrap around on purpose, use tl.mul(a, b, sanitize_overflow=False)",
    "outside of its": "mask such numbers: tl.histogram(x, bins, mask=...)",
}
HELP_UNKNOWN = "pass the array as an argument, or register it with tilework.oracles.interpreter.register_memory"


class KernelAccessError(SanitizerError, AccessError):
    """A kernel was about to touch memory that it must not."""


class Argument(NamedTuple):
    """A parameter that is a pointer: its slot, how the user calls it, and how to get its array from the arguments."""

    slot: int
    label: str
    get: Any


class PointerSlots(Slots):
    """Finds the parameters that are pointers."""

    def __init__(self, kinds: Sequence[str], names: Sequence[str]) -> None:
        super().__init__(kinds, {}, "")
        self.names = names
        self.found: list[Argument] = []

    def add_value(self, text: str) -> None:
        if self.used < len(self.kinds) and self.kinds[self.used] == "ptr":
            position, _, path = text.removeprefix("args[").partition("]")
            label = f"argument {self.names[int(position)] + path.removesuffix('.base')!r}"
            self.found.append(Argument(self.used, label, eval(f"lambda args: {text}")))
        super().add_value(text)


def pointer_arguments(source: "ASTSource | IRSource", kinds: Sequence[str]) -> list[Argument]:
    """The arguments of a kernel that are pointers; `kinds` are its parameters."""
    declared = declared_types(source)
    names = [str(slot) for slot in range(len(kinds))] if declared is None else list(declared)
    slots = PointerSlots(kinds, names)
    for position, type in enumerate([None] * len(kinds) if declared is None else declared.values()):
        slots.add(type, f"args[{position}]")
    return slots.found


class SanitizedLauncher(NativeLauncher):
    """Runs a kernel that was compiled with the option `sanitize`."""

    def __init__(self, source: "ASTSource | IRSource", metadata: object) -> None:
        super().__init__(source, metadata)
        self.pointers = pointer_arguments(source, self.interface.parameters)

    def execute(self, grid: Extent, function: Any, args: Sequence[object], scratch: Scratch) -> None:
        """Run every program until one fails."""
        note_strided(self.source, args)
        known = Extents(self.interface, self.pointers, args)
        table, before = known.table(), len(self.interface.faults)
        slots = self.pack((*args, *scratch) if self.needs_scratch else args)
        slots += struct.pack("<Q", ctypes.addressof(table) + 8 * before)
        try:
            self.run(function, self.interface, slots, grid, lambda *fault: known.error(table[before:], *fault))
        finally:
            known.warn(table[:before][::-1], grid)


class Extents:
    """The arrays of one launch."""

    def __init__(
        self, interface: Interface, pointers: Sequence[Argument], args: Sequence[object], on_host: bool = True
    ) -> None:
        self.interface = interface
        self.labels = {pointer.slot: pointer.label for pointer in pointers}
        self.regions: dict[int, Region] = {}
        self.arrays: dict[int, Any] = {}
        self.empty: dict[int, str] = {}  # arguments without memory
        self.addresses: set[int] = set()  # arguments that are bare addresses
        for slot, label, get in pointers:
            value = get(args)
            if value is None:
                self.empty[slot] = label
            elif isinstance(value, int):
                self.addresses.add(slot)
            else:
                self.regions[slot], _, self.arrays[slot] = region_of(label, value, on_host)
        self.registered = [(array, region) for reference, region in REGISTERED if (array := reference()) is not None]

    def table(self) -> Any:
        """Return the table that machine code reads and writes (`targets/cpu/lower/checks.py`)."""
        values = [0] * (len(self.interface.faults) + ENTRIES - 1)
        count = len(self.interface.parameters)
        values.append(count + len(self.registered))
        for slot in range(count):
            region = self.regions.get(slot)
            values += (region.start, region.end, 0) if region is not None else (0, 0, int(slot in self.addresses))
        for _, region in self.registered:
            values += (region.start, region.end, 0)
        return (ctypes.c_uint64 * len(values))(*values)

    def error(self, table: Any, interface: Interface, grid: Extent, code: int, linear: int) -> Exception:
        """Return the error of a fault code."""
        if table[0]:
            _, address, code, x, y, z = table[:6]
            below = int(address) >> 63  # a wrong index into memory at a low address reaches below address 0
            return self.access_error(int(code), int(address) - (below << 64), (x, y, z))
        message, location = interface.faults[code - 1]
        if not message.startswith(SANITIZER):
            return fault_error(interface, grid, code, linear)
        return SanitizerError(self.report(message.removeprefix(SANITIZER), location, grid, linear))

    def warn(self, programs: Sequence[int], grid: Extent) -> None:
        """Show the warnings of a launch; `programs` has, by fault code, 0 or 1 + a linear program index."""
        for program, (message, location) in zip(programs, self.interface.faults, strict=True):
            if program:
                text = self.report(message.removeprefix(SANITIZER_WARNING), location, grid, program - 1, "warning")
                show_warning(text, location)

    def report(self, message: str, location: str, grid: Extent, linear: int, severity: str = "error") -> str:
        """Return the report of a check in one program; the second line of its message locates the use of the value."""
        text = re.sub(r"argument #(\d+)", lambda found: self.labels.get(int(found[1]), "memory"), message)
        title, _, use = text.partition("\n")
        notes = (f"used in {source_line(use)}",) if use else ()
        help = next((text for part, text in HELPS.items() if part in title), "")
        return rendered(location, f"program {id_of(linear, grid)}: {title}", help=help, notes=notes, severity=severity)

    def access_error(self, code: int, address: int, program: tuple[int, int, int]) -> KernelAccessError:
        """The error about one access."""
        _, verb, size, slots = next(check for check in self.interface.checks if check[0] == code)
        _, location = self.interface.faults[code - 1]
        subject = f"program {program} {verb}"
        if len(slots) == 1 and slots[0] in self.empty:
            return KernelAccessError(rendered(location, f"{subject} {self.empty[slots[0]]}, which is None"))
        slot = self.nearest(address, slots)
        if slot is None:
            title = f"{subject} address {address:#x}, which is in no array the kernel was given"
            return KernelAccessError(rendered(location, title, help=HELP_UNKNOWN))
        region = self.regions[slot]
        index, rest = divmod(address - region.data, region.itemsize)
        label = index_text(self.arrays[slot], region, address)
        inside = region.start <= address and address + size <= region.end
        if inside or (verb == "updates" and address % size):
            unit, value = ("address", address) if address % size else ("byte", address - region.start)
            off = f"plus {rest} bytes: {unit} {value:#x} is not a multiple of {size} (misaligned)"
            return KernelAccessError(rendered(location, f"{subject} element {index} of {region.name} {off}", label))
        count = (region.end - region.start) // region.itemsize
        title = f"{subject} element {index} of {region.name}, which has {count} elements (out of bounds)"
        return KernelAccessError(rendered(location, title, label))

    def nearest(self, address: int, slots: Sequence[int]) -> int | None:
        """Return the slot of the argument to report an address with: its own, or the nearest if that is unknown."""
        own = [slot for slot in slots if slot in self.regions]
        near = own or [slot for slot, region in self.regions.items() if is_near(address, region)]
        return min(near, key=lambda slot: distance(address, self.regions[slot]), default=None)


def id_of(linear: int, grid: Extent) -> tuple[int, int, int]:
    """Return the program id of a linear index; x varies fastest."""
    return linear % grid[0], linear // grid[0] % grid[1], linear // (grid[0] * grid[1])


def distance(address: int, region: Region) -> int:
    return max(region.start - address, address - region.end, 0)


def index_text(array: Any, region: Region, address: int) -> str:
    """Return the index of an address in an array, axis by axis: ``index (12, 3) of an array of shape (12, 64)``."""
    shape = tuple(int(size) for size in getattr(array, "shape", ()))
    if callable(getattr(array, "stride", None)):
        steps = [int(stride) * region.itemsize for stride in array.stride()]
    else:
        steps = [int(stride) for stride in getattr(array, "strides", None) or packed_steps(shape, region.itemsize)]
    if not shape or len(steps) != len(shape):
        return ""
    left, index = address - region.data, [0] * len(shape)
    for axis in sorted(range(len(shape)), key=lambda axis: -abs(steps[axis])):
        if (steps[axis] and shape[axis] > 1) or steps[axis] == region.itemsize:
            index[axis] = left // steps[axis]
            left -= index[axis] * steps[axis]
    where = "" if left == 0 else f" plus {left} bytes"
    strided = "" if is_packed(shape, steps, region.itemsize) else f" and strides {tuple(steps)} in bytes"
    return f"index {tuple(index)}{where} of an array of shape {shape}{strided}"


def packed_steps(shape: tuple[int, ...], itemsize: int) -> list[int]:
    """The strides in bytes of rows that follow each other without gaps."""
    return [itemsize * prod(shape[axis + 1 :]) for axis in range(len(shape))]


def is_packed(shape: tuple[int, ...], steps: Sequence[int], itemsize: int) -> bool:
    """Rows follow each other without gaps."""
    expected = packed_steps(shape, itemsize)
    return all(size == 1 or step == wanted for size, step, wanted in zip(shape, steps, expected, strict=True))


def note_strided(source: Any, args: Sequence[object]) -> None:
    """Note arrays with strides that the kernel does not know, at its `def`; never an error, because it is a guess."""
    fn, declared = getattr(source, "fn", None), declared_types(source)
    if fn is None or declared is None:
        return
    location = f"{fn.where.file}:{fn.def_line}:{fn.where.indent}"
    for one in strided_arguments(zip(declared, args, strict=False)):
        show_warning(rendered(location, one.message, help=HELP_STRIDED, severity="note"), location)


def show_warning(text: str, location: str) -> None:
    """A warning at the user's line."""
    file, line, _ = parsed(location)
    warn_at(SanitizerWarning(text), SanitizerWarning, file, line)


def parsed(location: str) -> tuple[str, int, int]:
    """File, line and column of ``file:line:column``."""
    file, line, column = location.rsplit(":", 2) if location.count(":") >= 2 else (location or "<kernel>", "0", "0")
    return file, int(line), int(column)


def source_line(location: str) -> str:
    """``line 41: tl.store(out + i, v)``."""
    file, line, _ = parsed(location)
    return f"line {line}: {linecache.getline(file, line).strip()}".rstrip(": ")


def rendered(
    location: str, title: str, label: str = "", help: str = "", *, notes: tuple[str, ...] = (), severity: str = "error"
) -> str:
    """A message with the line of source that it is about."""
    file, line, column = parsed(location)
    text = linecache.getline(file, line).rstrip("\n")
    span = Span(file, line, column, column + 1, text)
    return Diagnostic(span, title, label, help, notes, severity=severity).render()


# ---- races


ENDLESS = "programs run one after another here: one that waits for a later one waits for ever"


class RaceLauncher(EvaluatorLauncher):
    """Runs one compiled kernel in the evaluator."""

    def start(self, grid: Extent, stream: int, function: Any, args: Sequence[object], scratch: Scratch) -> None:
        """Run every program of the grid, in order, until a race is found."""
        # lazily: a whole executor, which few programs use
        from tilework.oracles.evaluator.global_memory import RaceFound, RaceMemory, granule_of
        from tilework.oracles.evaluator.values import EvaluationError

        note_strided(self.source, args)
        memory = RaceMemory(prod(grid), granule_of(function), foreign=True)
        try:
            self.evaluate(grid, function, args, scratch, memory)
        except RaceFound as found:
            raise SanitizerError(race_report(found.race, grid)[1]) from None
        except EvaluationError as error:
            raise translated(error) from None
        finally:
            for race in memory.harmless.values():
                location, text = race_report(race, grid, "warning")
                show_warning(text, location)


def translated(error: "EvaluationError") -> Exception:
    """Return the sanitizer's error for one of the evaluator."""
    if error.op == "tt.assert":
        return RuntimeError(f"{error.location}: device-side assert triggered: {error.reason} [program {error.program}]")
    help = ENDLESS if error.reason.startswith(("did not end", "waits")) else ""
    kind = KernelAccessError if error.reason.startswith(("reads", "writes")) else SanitizerError
    return kind(rendered(error.location, f"program {error.program} {error.reason}", help=help))


def race_report(race: "Race", grid: Extent, severity: str = "error") -> tuple[str, str]:
    """Return the location of a race, and its message: both lines, both programs."""
    from tilework.ir.locations import location_text  # lazily: the compiler loads when something is compiled

    first, second = (id_of(program, grid) for program in race.programs)
    verb, own = race.verbs
    location, other = (location_text(op.location) or "" for op in (race.second, race.first))
    both = f"and so does program {first}" if verb == own else f"which program {first} {verb}"
    title = (
        f"program {second} {own} element {race.element} of argument {race.name!r}, {both}; nothing orders them (race)"
    )
    if race.is_harmless:
        title += ": harmless as long as all write the same"
    note = f"program {first} {verb} it in {source_line(other)}"
    return location, rendered(location, title, notes=(note,), severity=severity)


# ---- launches on GPUs: the table is copied to the device and back
#
# A launch waits for its kernel. An access that fails its check is not executed, so the device remains usable.
#
# The checks of GPUs and of the CPU differ on purpose: see `transforms/sanitize/check_bounds.py`.


ANYWHERE = (0, (1 << 63) - 1)


class GpuSanitizedLauncher(GpuLauncher):
    """Runs a kernel that was compiled with the option `sanitize` on a GPU."""

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
        note_strided(self.source, args)
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
def checked(launcher: type[GpuLauncher]) -> type[GpuSanitizedLauncher]:
    """Return the launcher class of a device for kernels with sanitizer checks."""
    return type(f"Sanitized{launcher.__name__}", (GpuSanitizedLauncher, launcher), {})


def unmarked(entry: int) -> int:
    """Return the address in an entry of the table; one below 0 is negative."""
    return (~entry & (1 << 63) - 1) - ((~entry >> 62 & 1) << 63)


def program_of(entry: int) -> tuple[int, int, int]:
    """Return the program id in an entry of the table."""
    return entry & 0xFFFFFFFF, entry >> 32 & 0xFFFF, entry >> 48


def linear(entry: int, grid: Extent) -> int:
    """Return the linear index of a program id; x varies fastest."""
    x, y, z = program_of(entry)
    return x + grid[0] * (y + grid[1] * z)
