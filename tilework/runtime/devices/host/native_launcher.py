"""Launch kernels in machine code on the host, on all cores."""

from collections.abc import Callable, Sequence
from typing import Any

from tilework.runtime.devices.host.native_run import repeated
from tilework.runtime.devices.host.own_code import keep_pool
from tilework.runtime.devices.host.pack import packer
from tilework.runtime.devices.launcher import HIDDEN, Extent, Launcher, Scratch
from tilework.targets.cpu.run.interface import Interface
from tilework.targets.cpu.run.run_grid import run


class NativeLauncher(Launcher):
    """Runs the machine code of one kernel."""

    def __init__(self, source: Any, metadata: Any) -> None:
        super().__init__(source, metadata)
        keep_pool()
        self.interface = interface = Interface.from_facts(metadata.interface)
        signature = self.signature
        if signature is not None and self.needs_scratch:
            signature = [*signature, *HIDDEN]
        self.pack = packer(interface.parameters, signature, interface.stored, metadata.name, interface.alignments)
        self.run = run

    def repeated(self, function: Any) -> Callable[..., None]:
        """In machine code, if it can be: see `native_run.py`."""
        return repeated(self, function) if type(self) is NativeLauncher else self

    def start(self, grid: Extent, stream: int, function: Any, args: Sequence[Any], scratch: Scratch) -> None:
        """Run every program of the grid, in any order, on several threads."""
        slots = self.pack((*args, *scratch) if self.needs_scratch else args)
        self.run(function, self.interface, slots, grid)
