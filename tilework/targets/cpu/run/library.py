"""Load an object file as functions of this process; nothing is compiled.

    kernel = load(data, "add")
    kernel.range(slots, 0, 4, 4, 1, 1, arena)        # programs 0 to 3 of a grid of 4

Calls go through ctypes, which releases the GIL while they run. The code stays in memory as long as the object does.
"""

import ctypes
from collections.abc import Callable
from typing import Any

from tilework.process.forks import cached_property
from tilework.targets.cpu.run.interface import PRINT_SYMBOL
from tilework.targets.llvm.object_loader import load_object

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
