"""Launch kernels in machine code on the host, on all cores.

    copy[grid](x, out)        # the code loads and stores in any order that the compiler likes
    copy[grid](x, x)          # the same kernel compiled with may_alias=True: in the order of the program

The machine code of a kernel may load and store through two parameters in another order than the program
(`Interface.apart`). A launch whose arguments for them overlap runs the kernel that keeps the order, which is compiled
when it is first needed. A kernel that came as code, after that order was chosen, refuses such a launch.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.runtime.devices.conditional_launch import ConditionalLauncher
from tilework.runtime.devices.host.own_code import pool_object
from tilework.runtime.devices.host.pack import overlap_check, slots_of
from tilework.runtime.devices.launcher import HIDDEN, Extent, Scratch
from tilework.targets.cpu.run.interface import Interface
from tilework.targets.cpu.run.pool import fault_error, run, thread_count

if TYPE_CHECKING:
    from tilework.runtime.launch.native.entries import Memory, Native


class NativeLauncher(ConditionalLauncher):
    """Runs the machine code of one kernel."""

    def __init__(self, source: Any, metadata: Any) -> None:
        super().__init__(source, metadata)
        pool_object()
        self.interface = interface = Interface.from_facts(metadata.interface)
        signature = self.signature
        if signature is not None and self.needs_scratch:
            signature = [*signature, *HIDDEN]
        slots = slots_of(interface.parameters, signature, interface.stored, metadata.name, interface.alignments)
        texts: list[str | None] = [*slots.texts]
        if self.needs_scratch:
            texts[-len(HIDDEN) :] = [None] * len(HIDDEN)
        self.pack, self.overlaps = slots.packer(), overlap_check(interface.apart, texts)
        self.run = run

    def repeated(
        self, function: object, check: Callable[[Sequence[object]], None] | None = None
    ) -> Callable[..., None]:
        """In machine code, if it can be: see `launch/native/kernel_launch.py`."""
        # lazily: a first launch from a bundle is not repeated
        from tilework.runtime.launch.native.kernel_launch import repeated

        return repeated(self, function, check) if type(self) is NativeLauncher else self

    def start(self, grid: Extent, stream: int, function: object, args: Sequence[object], scratch: Scratch) -> None:
        """Run every program of the grid, in any order, on several threads."""
        if self.overlaps is not None and self.overlaps(args):
            kernel = self.without()
            kernel.launcher.start(grid, stream, kernel.function, args, scratch)
        else:
            self.execute(grid, function, args, scratch)

    def without(self) -> Any:
        """The kernel for arguments that overlap."""
        if (stage := getattr(self.source, "ext", "ttir")) != "ttir":
            raise ValueError(
                f"arguments of {self.name} overlap, and it came as {stage} that was compiled for arguments that do not:"
                " compile it with may_alias=True"
            )
        return super().without()

    def execute(self, grid: Extent, function: Any, args: Sequence[object], scratch: Scratch) -> None:
        """Run this kernel's own code."""
        slots = self.pack((*args, *scratch) if self.needs_scratch else args)
        self.run(function, self.interface, slots, grid)

    def memory_of(self, value: Any) -> "Memory | None":
        """NumPy arrays, and torch tensors in host memory."""
        from tilework.runtime.launch.native.entries import is_array_class, tensor_memory  # lazily: as above

        if is_array_class(type(value)):
            return "guard_array", 0, value.dtype.itemsize, value.dtype
        return tensor_memory(value) if getattr(value, "is_cpu", False) is True else None

    def native(
        self, driver: object, function: object, args: Sequence[object], *, follows: bool = False
    ) -> "Native | None":
        """See `runtime/launch/native/code/device_launch.py`."""
        if type(self) is not NativeLauncher:
            return None
        if self.overlaps is None:
            return self.native_code(function, args)
        kernel = self.without() if (overlaps := self.overlaps(args)) else None
        launcher, code = (self, function) if kernel is None else (kernel.launcher, kernel.function)
        return replace(launcher.native_code(code, args), apart=self.interface.apart, overlaps=overlaps)

    def native_code(self, function: Any, args: Sequence[Any]) -> "Native":
        """The launch record of this kernel's own code."""
        # lazily: as above
        from tilework.runtime.launch.native import layout as native
        from tilework.runtime.launch.native.entries import Native
        from tilework.targets.cpu.run.pool import POOL

        interface, cost = self.interface, ctypes.c_double(function.program_ns or 0.0)
        code, work = (ctypes.cast(part, ctypes.c_void_p).value or 0 for part in (function.range, function.work))
        fields = native.HOST.pack(
            code, interface.arena, ctypes.addressof(cost), work, thread_count(), function.has_forks,
            ctypes.addressof(POOL.fields), interface.waits, function.name_address,
        )  # fmt: skip
        stored = dict(zip_longest(interface.stored, interface.alignments, fillvalue=1))
        cells = knobs.cells(knobs.runtime, "num_threads")
        watched = tuple(part for holder, name in cells for part in (holder, name, holder.get(name, native.MISSING)))
        calls = fault_raiser(interface), shared_runner(function, self, cost)
        kinds = interface.parameters
        return Native(
            kinds, range(len(kinds)), self.pack(args), "run_host", fields, *calls, self.memory_of, None, stored,
            watched=watched, kept=(cost, function),
        )  # fmt: skip


def fault_raiser(interface: Interface) -> Callable[..., None]:
    """The function that machine code calls when a program has failed."""

    def fail(code: int, program: int, x: int, y: int, z: int) -> None:
        raise fault_error(interface, (x, y, z), code, program)

    return fail


def shared_runner(function: Any, run: NativeLauncher, cost: ctypes.c_double) -> Callable[..., None]:
    """The function that machine code calls for a grid that may need several threads."""
    interface, launch = run.interface, run.run

    def share(slots: bytes, x: int, y: int, z: int) -> None:
        function.program_ns = cost.value or None
        launch(function, interface, slots, (x, y, z))
        cost.value = function.program_ns or 0.0

    return share
