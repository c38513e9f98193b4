"""A GPU that is none: a backend whose kernels ask for scratch memory, and a driver that notes what it is given.

with fake_gpu(scratch=128, profile=8) as driver:
    kernel[(4,)](x, num_ctas=2)
driver.launches[0].scratch
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tilework.ir.printer import print_module
from tilework.process import plugins
from tilework.runtime.devices.active_driver import driver as drivers
from tilework.runtime.devices.driver import Driver
from tilework.runtime.devices.launcher import Extent, Launcher, Scratch
from tilework.targets import base
from tilework.targets.base import GPUTarget
from tilework.targets.options import CompileOptions

STREAM = 7


@dataclass
class Launch:
    """A launch as it reached the device."""

    grid: Extent
    stream: int
    function: Any
    args: tuple[Any, ...]
    scratch: Scratch


class FakeBackend(base.Backend):
    """Kernels end as text; their metadata is what the test asked for."""

    binary_ext = "fake"
    facts: dict[str, Any] = {}

    def parse_options(self, settings: Mapping[str, Any]) -> CompileOptions:
        return CompileOptions.of(settings, backend_name="fake", warp_size=32)

    def stages(self, options: CompileOptions) -> dict[str, base.Stage]:
        return {"ttir": lambda module: module, "fake": print_module}

    def kernel_facts(self, *of_the_kernel: Any) -> dict[str, Any]:
        return dict(self.facts)

    def hash(self) -> str:
        return f"fake-{sorted(self.facts.items())}"


class FakeDriver(Driver):
    """One device with one stream."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        self.launches: list[Launch] = []
        self.limits = {"max_shared_mem": 1 << 16, "max_threads": 1024, **limits}
        self.loads = 0

    @classmethod
    def is_active(cls) -> bool:
        return False

    @property
    def utils(self) -> Any:
        return self

    def get_device_properties(self, device: int) -> dict[str, int]:
        return self.limits

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("fake", 90, 32)

    def get_current_stream(self, device: int) -> int:
        return STREAM

    def load_binary(self, name: str, binary: Any, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        self.loads += 1
        return "module", f"function {name}", 32, 0, self.limits["max_threads"]

    def launcher_cls(self, source: Any, metadata: Any) -> Launcher:
        launches = self.launches

        class FakeLauncher(Launcher):
            def start(self, grid: Extent, stream: int, function: Any, args: Sequence[Any], scratch: Scratch) -> None:
                launches.append(Launch(grid, stream, function, tuple(args), scratch))

        return FakeLauncher(source, metadata)


@dataclass
class Buffer:
    """Memory that an allocator of a test gave away."""

    size: int
    alignment: int
    stream: int | None
    address: int = field(default=4096)

    def data_ptr(self) -> int:
        return self.address


@contextmanager
def fake_gpu(limits: Mapping[str, int] | None = None, **facts: Any) -> Iterator[FakeDriver]:
    """Launches in the block go to the fake; `facts` become part of the metadata of every kernel."""
    before, fake = drivers._active, FakeDriver(limits or {})
    plugins.prefer(base.GROUP, "fake", "tests.runtime.fake_gpu:FakeBackend")
    FakeBackend.facts = facts
    drivers.set_active(fake)
    try:
        yield fake
    finally:
        drivers.set_active(before)
        plugins.prefer(base.GROUP, "fake", None)
