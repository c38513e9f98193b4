"""Start kernels on NVIDIA GPUs: one `cuLaunchKernelEx` per launch.

    launcher = CudaLauncher(utils, source, metadata)
    launcher(4, 1, 1, stream, function, packed_metadata, None, None, None, x, y, 1024)

The grid is counted in programs: with clusters (`num_ctas`) the first dimension has that many blocks for each. Kernels get
their arguments and two hidden pointers, scratch and profile scratch. A kernel that its user wrote may declare fewer
parameters; the driver reads only those that are declared. Launches return before the kernel has run.
"""

import ctypes
import struct
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from tilework.runtime.devices.cuda.device import DeviceArray, ensure_context
from tilework.runtime.devices.cuda.parameters import (
    HIDDEN_MAP,
    Packer,
    Parameter,
    packer_for,
    packer_from,
    parameters_of_ptx,
)
from tilework.runtime.devices.cuda.tensor_map import current_stream, device_address, map_of_descriptor
from tilework.runtime.devices.dlpack import Exported, exported, is_cuda_export
from tilework.runtime.devices.launcher import HIDDEN, NO_SCRATCH, Extent, Launcher, Scratch
from tilework.runtime.launch.native_entry import Memory, Native, tensor_memory
from tilework.runtime.launch.native_run import repeated
from tilework.targets.cpu.run import launcher_layout as native
from tilework.targets.cpu.run.launcher_layout import LARGEST_X, LARGEST_YZ
from tilework.targets.nvidia import libcuda
from tilework.targets.nvidia.libcuda import LaunchAttribute, LaunchConfig, library

PORTABLE_CLUSTER = 8
SPREAD = 1  # over the multiprocessors


class Functions(Protocol):
    """What the loader of binaries knows."""

    def parameters(self, function: int) -> tuple[Parameter, ...] | None: ...


class Frame:
    """What one thread needs for a launch: room for the values, their addresses, the configuration."""

    def __init__(self, packer: Packer, attributes: Any, block: int, shared: int) -> None:
        layout = packer.layout
        self.buffer = ctypes.create_string_buffer(max(1, layout.total))
        start = ctypes.addressof(self.buffer)
        self.addresses = (ctypes.c_void_p * len(layout.offsets))(*(start + offset for offset in layout.offsets))
        self.config = launch_config(attributes, block, shared)
        self.grid = self.config.grid
        self.pointers = (ctypes.byref(self.config), self.addresses)


def launch_config(attributes: Any, block: int, shared: int) -> LaunchConfig:
    """A configuration without grid and stream; it does not keep the attributes."""
    config = LaunchConfig(block=(block, 1, 1), shared=shared, attribute_count=len(attributes))
    config.attributes = ctypes.addressof(attributes) if len(attributes) else None
    return config


def same_export(seen: Exported, value: Any) -> int:
    """The address of memory like that which was seen."""
    found = exported(value, current_stream())
    if found[1:] != seen[1:] or not found.address:
        raise ValueError("other memory than the launch is described for")
    return found.address


class CudaLauncher(Launcher):
    """Launches one kernel; see the module docstring."""

    natively_scratched = True

    def __init__(self, functions: Functions, source: Any, metadata: Any) -> None:
        super().__init__(source, metadata)
        if self.signature is not None:
            self.signature += [HIDDEN_MAP] * len((getattr(metadata, "rectangles", None) or {"maps": ()})["maps"])
        self.functions = functions
        self.block: int = metadata.num_warps * metadata.target.warp_size
        self.shared: int = metadata.shared
        self.attributes = launch_attributes(metadata)
        self.maps: Sequence[Any] = getattr(metadata, "tensordesc_meta", ())
        self.declared = parameters_of_ptx(source.text, self.name) if getattr(source, "ext", "") == "ptx" else None
        self.plans: dict[int, tuple[Packer, threading.local]] = {}  # by the number of arguments
        self.launch: Callable[..., int] = library().function("cuLaunchKernelEx")

    def start(self, grid: Extent, stream: int, function: int, args: Sequence[Any], scratch: Scratch) -> None:
        """Put the kernel into the stream."""
        x, y, z = grid
        x *= self.num_ctas
        if not (0 < x <= LARGEST_X and 0 < y <= LARGEST_YZ and 0 < z <= LARGEST_YZ):
            if 0 in grid:
                return
            self.explain(libcuda.INVALID_VALUE, grid)  # the fields of the configuration would cut the numbers
        plan = self.plans.get(len(args))
        if plan is None:
            plan = self.plans[len(args)] = (self.make_packer(function, args), threading.local())
        packer, frames = plan
        frame: Frame | None = getattr(frames, "frame", None)
        if frame is None:
            if self.num_ctas > PORTABLE_CLUSTER:
                library().cuFuncSetAttribute(function, libcuda.FUNCTION_NON_PORTABLE_CLUSTER, 1)
            frame = frames.frame = Frame(packer, self.attributes, self.block, self.shared)
        packer.pack(frame.buffer, args, scratch)
        # from here on no code of the user's runs, which might launch this kernel in this thread and use the frame
        ensure_context()
        frame.grid[:] = (x, y, z)
        frame.config.stream = stream
        if code := self.launch(frame.pointers[0], function, frame.pointers[1], None):
            self.explain(code, grid)

    def repeated(self, function: Any) -> Callable[..., None]:
        """In machine code, if it can be: see `launch/native_run.py`."""
        return repeated(self, function) if type(self) is CudaLauncher else self

    def memory_of(self, value: Any) -> Memory | None:
        """Torch tensors on a GPU, arrays of our own, and what has ``__cuda_array_interface__``."""
        if getattr(value, "is_cuda", False) is True:
            is_own = type(value) is DeviceArray
            return ("guard_tensor", 0, 0, (value.dtype, value.device)) if is_own else tensor_memory(value)
        if any(hasattr(value, name) for name in ("data_ptr", "__array_interface__", "cache_key")):
            return None
        if (interface := getattr(value, "__cuda_array_interface__", None)) is not None:
            return None if type(interface) is not dict else ("guard_interface", 0, 0, interface["typestr"])
        return ("guard_asked", 0, 0, partial(same_export, exported(value, 0))) if is_cuda_export(value) else None

    def native(self, driver: Any, function: int, args: Sequence[Any], *, follows: bool = False) -> Native | None:
        """See `targets/cpu/run/launcher_cuda.py`."""
        plan = self.plans.get(len(args))
        if type(self) is not CudaLauncher or plan is None or (stream := driver.stream_call()) is None:
            return None
        layout, cuda = plan[0].layout, library()
        buffer = ctypes.create_string_buffer(layout.total)
        plan[0].pack(buffer, args, NO_SCRATCH)
        config = bytes(launch_config(self.attributes, self.block, self.shared))
        places = [offset // native.SLOT for offset in layout.offsets]
        moves = cuda.address("cuCtxSetCurrent") if follows and not self.needs_scratch else 0
        calls = cuda.address("cuCtxGetCurrent"), cuda.context(), moves, cuda.address("cuLaunchKernelEx")
        *asked, functions = stream
        asked.append(self.scratch_addresses if self.needs_scratch else None)
        words = native.CUDA.pack(*calls, function, self.num_ctas, *functions, stream[1], len(places), config)
        maps = [lambda descriptor, meta=meta: map_of_descriptor(descriptor, meta) for meta in self.maps if meta]
        return Native(
            plan[0].kinds, places, buffer.raw, "run_cuda", words + struct.pack(f"<{len(places)}q", *places),
            lambda code, x, y, z: self.explain(code, (x, y, z)), tuple(asked), self.memory_of, "ready_cuda", maps=maps,
            kept=(self, cuda),
        )  # fmt: skip

    def scratch_addresses(self, x: int, y: int, z: int, stream: int) -> tuple[int, int, Scratch]:
        """For machine code: where both buffers are, and what keeps them alive."""
        scratch = self.allocate((x, y, z), stream)
        return device_address(scratch[0]), device_address(scratch[1]), scratch

    def make_packer(self, function: int, args: Sequence[Any]) -> Packer:
        """How the arguments are passed, found at the first launch; kernels that expect something else are refused."""
        declared = self.declared or self.functions.parameters(function)
        if self.signature is not None:
            if len(args) != (count := len(self.signature)):
                raise TypeError(f"{self.name} takes {count} arguments, constants included, and is given {len(args)}")
            packer = packer_for(self.name, self.signature, self.maps)
        elif declared is None:
            raise RuntimeError(
                f"the parameters of {self.name} are not known: this driver cannot tell them (cuFuncGetParamInfo came with"
                " CUDA 12.4); launch it from its PTX"
            )
        else:
            packer = packer_from(self.name, declared, len(args))
        if declared is not None:
            self.check_parameters(declared, packer, len(args))
        return packer

    def check_parameters(self, declared: Sequence[Parameter], packer: Packer, count: int) -> None:
        """Refuse to let the kernel read other bytes than it is given."""
        sizes = packer.layout.sizes
        hidden = len(HIDDEN)
        given = count if self.signature is None else len(sizes) - hidden
        if len(declared) > len(sizes) or (self.signature is None and len(declared) < given):
            raise TypeError(
                f"{self.name} declares {len(declared)} parameters, and is given {given} values and {hidden} hidden pointers"
                " (scratch and profile scratch)"
            )
        for number, (parameter, size) in enumerate(zip(declared, sizes, strict=False)):
            if parameter.size != size:
                raise TypeError(f"parameter {number} of {self.name} has {parameter.size} bytes, and is given {size}")

    def explain(self, code: int, grid: Extent) -> None:
        """Raise the driver's error, with what was asked for."""
        sizes = (grid[0] * self.num_ctas, *grid[1:])
        limits = zip("xyz", sizes, (LARGEST_X, LARGEST_YZ, LARGEST_YZ), strict=True)
        limit = "".join(f" ({axis} has at most {most})" for axis, size, most in limits if size > most)
        cluster = f" in clusters of {self.num_ctas}" if self.num_ctas > 1 else ""
        blocks = " x ".join(map(str, sizes))
        block = f"{self.block} threads, {self.shared} bytes shared"
        library().check(code, f" [launch of {self.name}: {blocks} blocks{limit}{cluster}, {block}]")


def launch_attributes(metadata: Any) -> Any:
    """What the options ask of the driver: a cooperative grid, overlap with the kernel before (PDL), clusters."""
    found: list[LaunchAttribute] = []

    def add(id: int, flag: int = 0, dimensions: tuple[int, ...] = ()) -> None:
        attribute = LaunchAttribute(id=id)
        if dimensions:
            attribute.value.dimensions[:] = dimensions
        else:
            attribute.value.flag = flag
        found.append(attribute)

    if getattr(metadata, "launch_cooperative_grid", False):
        add(libcuda.LAUNCH_COOPERATIVE, 1)
    if getattr(metadata, "launch_pdl", False):
        add(libcuda.LAUNCH_PROGRAMMATIC, 1)
    if metadata.num_ctas > 1:
        add(libcuda.LAUNCH_CLUSTER, dimensions=(metadata.num_ctas, 1, 1))
        add(libcuda.LAUNCH_CLUSTER_POLICY, SPREAD)
    return (LaunchAttribute * len(found))(*found)
