"""The CUDA driver is active, and kernels run in the PTX emulator.

with emulated_cuda() as cuda:
    kernel_of(PTX, "twice")[(4, 1, 1)](x)
    cuda.launches[0].stream
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.runtime.hidden_gpu import no_gpu_for_torch
from tilework import knobs
from tilework.process import plugins
from tilework.runtime.devices.active_driver import driver as drivers
from tilework.runtime.devices.cuda.driver import CudaDriver
from tilework.runtime.devices.emulated.emulated_libcuda import EmulatedCuda
from tilework.targets import base
from tilework.targets.nvidia import libcuda
from tilework.targets.options import CompileOptions


class PtxBackend(base.Backend):
    """A compiler for CUDA that answers every kernel with the same PTX."""

    binary_ext = "ptx"
    text = ""
    facts: dict[str, Any] = {}

    def parse_options(self, settings: Mapping[str, Any]) -> CompileOptions:
        return CompileOptions.of(settings, backend_name="cuda", warp_size=32)

    def stages(self, options: CompileOptions) -> dict[str, base.Stage]:
        return {"ttir": lambda module: module, "ptx": lambda module: self.text}

    def kernel_facts(self, stage: str, *of_the_kernel: Any) -> dict[str, Any]:
        return dict(self.facts) if stage == "ptx" else {}

    def hash(self) -> str:
        return f"ptx-{hash(self.text)}-{sorted(self.facts.items())}"


@contextmanager
def emulated_cuda(devices: int = 1, ptx: str = "", capacity: int = 1 << 30, **facts: Any) -> Iterator[EmulatedCuda]:
    """The CUDA driver is active in the block, on an emulated library; kernels in Python compile to `ptx`, if given,
    with `facts`."""
    library = EmulatedCuda(devices, capacity)
    library.cuInit(0)
    before, loaded = drivers._active, libcuda.FOUND.found
    with knobs.runtime.scope(), no_gpu_for_torch():
        knobs.runtime.device = "cuda"
        libcuda.FOUND.found = libcuda.Cuda(library)
        plugins.prefer(base.GROUP, "cuda", "tests.runtime.emulated_cuda:PtxBackend" if ptx else None)
        PtxBackend.text, PtxBackend.facts = ptx, facts
        drivers.set_active(CudaDriver())
        try:
            yield library
        finally:
            drivers._active, libcuda.FOUND.found = before, loaded
            plugins.prefer(base.GROUP, "cuda", None)
