"""The calling convention between the machine code of a kernel and its launcher.

The facts are stored as JSON in the first line of the `llir` text, so that an LLVM file is a complete source:

    ; tilework {"name": "add", "parameters": ["ptr", "ptr", "i32"], "stored": [1], "arena": 64, ...}

Code. ``i32 NAME_range(args, first, last, np0, np1, np2, arena)`` runs the programs with linear ids first to last - 1 (x
fastest). `args` are slots of 8 bytes, one per parameter. `arena` is scratch memory, aligned to 64 bytes. Its first 64
bytes are the control block: the fault code (i32), the fuel (i32, `control_rules.py`), at byte 8 the linear id of the
program that failed (i64), at byte 16 the number of programs that `NAME_work` ran (i64), at byte 32 the function that
shares large nests (`fork.py`), or 0, at byte 40 among how many threads, at byte 48 the function to call when the fuel
is used up, or 0, and at byte 56 the launch (`pool_code.py`). ``NAME_work`` takes chunks of ids from a shared counter
until none are left; every thread of a launch calls it once.

Faults. An assert that fails stores its code, 1 + its position among the asserts of the module, and `NAME_range` returns
it after that program. Negative codes are those of launches that end for another reason.

Nothing here knows the IR: a process that finds its kernels in the cache loads no compiler. `interface_of.py` reads the
facts off a module.

The record of a launch in memory is shared by Python and the threads of the pool:

>>> LAUNCH_OFFSETS["fault"]
52

Its fields are stored one after the other, each with a format character of `struct`: Q is an address. `machine_code.py`
reads them by name.
"""

import ctypes
import json
import signal
import struct
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import Any

from tilework.errors import TritonError
from tilework.process.forks import cached_property
from tilework.targets.llvm.object_loader import load_object

MARK = "; tilework "
PRINT_SYMBOL = "tilework_print"  # called by kernels that print, see `printing.py`
CONTROL = 64  # bytes at the start of an arena
# the control block, with a format character for each field, see above; `table` is the sanitizer's, see `checks.py`
CONTROL_FIELDS = {
    **{"fault": "i", "fuel": "i", "program": "q", "count": "q", "table": "Q"},
    **{"fork": "Q", "sharers": "q", "poll": "Q", "launched": "Q"},
}
FAULT, FUEL, PROGRAM, COUNT, TABLE, FORK, SHARERS, POLL, LAUNCHED = 0, 4, 8, 16, 24, 32, 40, 48, 56
ENTRIES, ENTRY_FIELDS = 7, 3  # the table of a sanitized launch: the index of its first entry, the fields of an entry
FULL = 200_000  # fuel at the start of a program and after each poll: estimated nanoseconds
# fault codes: no arena, an exception of a signal handler, programs that wait in vain
NO_MEMORY, INTERRUPTED, STARVED = -1, -2, -3


class Interface:
    """See the module docstring; `faults` are (message, file:line:column) by code - 1, `alignments` those of `stored`.

    `checks` are (code, "reads" or "writes" or "updates", bytes, parameters) of the sanitizer's checks (checks.py).
    `waits` says that a program may wait for another one, or for another thread of the process. `apart` are the pairs of
    parameters whose memory must not overlap: the code loads and stores through them in another order than the program.
    """

    def __init__(
        self,
        name: str,
        parameters: tuple[str, ...],
        stored: tuple[int, ...] = (),
        arena: int = CONTROL,
        faults: tuple[tuple[str, str], ...] = (),
        alignments: tuple[int, ...] = (),
        checks: tuple[tuple[int, str, int, tuple[int, ...]], ...] = (),
        waits: bool = False,
        apart: tuple[tuple[int, int], ...] = (),
    ) -> None:
        self.name, self.parameters, self.stored, self.arena = name, parameters, stored, arena
        self.faults, self.alignments, self.checks, self.waits = faults, alignments, checks, waits
        self.apart = apart

    def facts(self) -> dict[str, Any]:
        """The argument of `from_facts`."""
        return dict(vars(self))

    def line(self) -> str:
        """The first line of the `llir` text."""
        return MARK + json.dumps(self.facts()) + "\n"

    @classmethod
    def read(cls, text: str) -> "Interface":
        """The inverse of `line`, from a whole `llir` text."""
        first, _, _ = text.partition("\n")
        if not first.startswith(MARK):
            raise TritonError(
                f"an llir file for the CPU begins with a line {MARK}{{...}}, this one with {first[:40]!r}"
            )
        return cls.from_facts(json.loads(first.removeprefix(MARK)))

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> "Interface":
        """Read a dictionary, in which JSON has replaced tuples by lists."""
        return cls(**{name: tuples(facts[name]) for name in vars(cls("", ())) if name in facts})


def tuples(value: Any) -> Any:
    return tuple(map(tuples, value)) if isinstance(value, list | tuple) else value


EXPORTS = (
    *("pool_launch", "pool_share", "pool_serve", "pool_reset", "pool_poll", "pool_main", "pool_watch"),
    *("running", "ready", "crowded"),
)
MOST_EXTRA = 1024  # threads that one launch may start for programs that wait
FATAL = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE")


def fatal_signals() -> list[int]:
    """The signals of this system that end a process whose memory or code is broken."""
    return [int(getattr(signal, name)) for name in FATAL if hasattr(signal, name)]


def watched_signals() -> int:
    """The fatal signals that the user neither handles nor ignores, as a set of bits."""
    handlers = {each: signal.getsignal(each) for each in fatal_signals()}
    return sum(1 << each for each, now in handlers.items() if now is None or now is signal.SIG_DFL)


def offsets_of(fields: Mapping[str, str]) -> dict[str, int]:
    """The offset of each field, in bytes."""
    return dict(zip(fields, accumulate(map(struct.calcsize, fields.values()), initial=0), strict=False))


# arguments of the launch: `arena` is in bytes, `sharers` are the threads that share nests
GIVEN = {
    **{"code": "Q", "slots": "Q", "next": "q", "total": "q", "chunk": "q", "x": "i", "y": "i", "z": "i", "fault": "i"},
    **{"arena": "q", "sharers": "q", "program": "q", "count": "q"},  # the program that failed, those that the owner ran
}
# the owner's arena, when it checks for signals next, the exception of a handler; the last program known to begin, and
# when; a lock, threads that were started and still run; the name of the kernel; the next program at ordered atomics
OWN = {
    **{"owner": "Q", "deadline": "q", "exception": "Q", "value": "Q", "trace": "Q"},
    **{"seen": "q", "since": "q", "starting": "q", "extra": "q", "started": "q", "name": "Q", "ticket": "q"},
}
LAUNCH_FIELDS = GIVEN | OWN
LAUNCH_OFFSETS = offsets_of(LAUNCH_FIELDS)
LAUNCH = struct.Struct(f"<{''.join(GIVEN.values())}{8 * len(OWN)}x")
# of the pool: the launch function, the workers requested, the poll function, the name of the running kernel, the number
# of workers that are awake without work; how long successive launches took that could have been shared with awake
# workers, when the last of them ended; until when workers share their cores with other programs
POOL_FIELDS = {
    **{"launch": "Q", "workers": "q", "poll": "Q", "running": "Q", "ready": "Q"},
    **{"missed": "q", "ended": "q", "crowded": "Q"},
}
WORKER_FIELDS = {"arena": "Q", "size": "q", "block": "Q"}  # the arena, its size, the block that holds it
WORKER = struct.Struct(f"<{''.join(WORKER_FIELDS.values())}")


# ---- Load an object file as functions of this process; nothing is compiled.
#
#     kernel = load(data, "add")
#     kernel.range(slots, 0, 4, 4, 1, 1, arena)        # programs 0 to 3 of a grid of 4
#
# Calls go through ctypes, which releases the GIL while they run. The code stays in memory as long as the object does.


FORK_SYMBOL = "tilework.fork."  # the prefix of the functions of shared nests
LONG, INT, POINTER = ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p
# args are bytes: ctypes passes the address of their content, which the kernel only reads
RANGE = ctypes.CFUNCTYPE(INT, ctypes.c_char_p, LONG, LONG, INT, INT, INT, POINTER)
WORK = ctypes.CFUNCTYPE(INT, ctypes.c_char_p, POINTER, LONG, LONG, INT, INT, INT, POINTER)


class NativeKernel:
    """A kernel in memory: `library` owns its code, `name` is a C string."""

    def __init__(
        self,
        library: Any,
        range: Callable[..., int],
        work: Callable[..., int],
        has_forks: bool = False,
        name: Any = None,
    ) -> None:
        self.library, self.range, self.work, self.name = library, range, work, name
        self.has_forks = has_forks  # it has nests that threads can share, see `fork.py`
        self.program_ns: float | None = None  # the time of one program last time; None before the first launch

    @cached_property
    def name_address(self) -> int:
        return ctypes.addressof(self.name) if self.name is not None else 0

    @cached_property
    def work_address(self) -> int:
        return ctypes.cast(self.work, ctypes.c_void_p).value or 0  # pyright: ignore[reportArgumentType]


def load(data: bytes, name: str) -> NativeKernel:
    """Link the object file of the kernel `name` into this process."""
    imports = {}
    if PRINT_SYMBOL.encode() in data:
        from tilework.targets.cpu.run.printing import print_address  # lazily: few kernels print

        imports[PRINT_SYMBOL] = print_address()
    library = load_object(data, (f"{name}_range", f"{name}_work"), imports)
    has_forks = FORK_SYMBOL.encode() in data
    code, work = RANGE(library[f"{name}_range"]), WORK(library[f"{name}_work"])
    shown = NAMES.setdefault(name, ctypes.create_string_buffer(name.encode()))
    return NativeKernel(library, code, work, has_forks, name=shown)


NAMES: dict[str, Any] = {}  # C strings; a crash may name a kernel that is gone
