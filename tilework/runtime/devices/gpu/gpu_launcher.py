"""Start kernels on GPUs: what is the same for every vendor.

    launcher = CudaLauncher(utils, source, metadata)
    launcher(4, 1, 1, stream, function, packed_metadata, None, None, None, x, y, 1024)

The grid is counted in programs: with clusters (`num_ctas`) the first dimension has that many blocks for each. Kernels
get their arguments and two hidden pointers, scratch and profile scratch. A kernel that its user wrote may declare fewer
parameters; the driver reads only those that are declared. Launches return before the kernel has run.
"""

import ctypes
import struct
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from tilework.runtime.devices.dlpack import Exported, exported, is_cuda_export
from tilework.runtime.devices.gpu.own_interface import DeviceArray, Gpus
from tilework.runtime.devices.gpu.parameters import (
    Packer,
    Parameter,
    current_stream,
    device_address,
    interface_address,
    packer_for,
    packer_from,
)
from tilework.runtime.devices.launcher import HIDDEN, NO_SCRATCH, Extent, Launcher, Scratch
from tilework.runtime.launch.native import layout as native
from tilework.runtime.launch.native.layout import LARGEST_X, LARGEST_YZ
from tilework.targets.driver_library import INVALID_VALUE, LaunchConfig

if TYPE_CHECKING:
    from tilework.runtime.launch.native.entries import Memory, Native


class Functions(Protocol):
    """The parameters of loaded functions."""

    def parameters(self, function: int) -> tuple[Parameter, ...] | None: ...


class Frame:
    """The buffers of one thread for a launch: the values, and their addresses."""

    def __init__(self, packer: Packer) -> None:
        layout = packer.layout
        self.buffer = ctypes.create_string_buffer(max(1, layout.total))
        start = ctypes.addressof(self.buffer)
        self.addresses = (ctypes.c_void_p * len(layout.offsets))(*(start + offset for offset in layout.offsets))


def same_export(seen: Exported, value: object) -> int:
    """The address of memory like that which was seen."""
    found = exported(value, current_stream())
    if found[1:] != seen[1:] or not found.address:
        raise ValueError("other memory than the launch is described for")
    return found.address


def same_interface(seen: str, value: Any) -> int:
    """The address of an array of the type that was seen, whose owner may still work on it."""
    interface = value.__cuda_array_interface__
    if interface["typestr"] != seen or not (found := interface_address(interface, current_stream())):
        raise ValueError("another array than the launch is described for")
    return found


class GpuLauncher(Launcher):
    """Launches one kernel; see the module docstring."""

    natively_scratched = True
    gpus: ClassVar[Gpus]
    array_cls: ClassVar[type[DeviceArray]]
    by_values: ClassVar[bool]  # the driver is called with single values, not with a configuration
    map_of: Any = None  # a `MapOf`, where descriptors are passed as tensor maps
    is_plain = False  # whether native launches do all that it does
    attributes: Any = ()

    def __init__(self, functions: Functions, source: Any, metadata: Any) -> None:
        super().__init__(source, metadata)
        self.functions = functions
        self.block: int = metadata.num_warps * metadata.target.warp_size
        self.shared: int = metadata.shared
        self.maps: Sequence[Any] = getattr(metadata, "tensordesc_meta", ())
        self.declared: Sequence[Parameter] | None = None
        self.plans: dict[int, tuple[Packer, threading.local]] = {}  # by the count of arguments
        self.call = "launch_cooperative" if getattr(metadata, "launch_cooperative_grid", False) else "launch"
        self.launch: Callable[..., int] = self.gpus.library().function(self.call)
        self.tickets = TicketCounters(self.array_cls) if getattr(metadata, "orders_programs", False) else None
        self.needs_scratch |= self.tickets is not None

    def allocate(self, grid: Extent, stream: int) -> Scratch:
        """Return the buffers for all programs of a grid; programs that run in order get a ticket counter as the second
        one.
        """
        scratch, profile = super().allocate(grid, stream)
        return scratch, profile if self.tickets is None else self.tickets.next()

    @abstractmethod
    def put(self, frame: object, blocks: Extent, stream: int, function: int) -> int:
        """Call the driver; what it returns."""

    def frame(self, packer: Packer, function: int) -> Frame:
        """For launches of a thread."""
        return Frame(packer)

    def start(self, grid: Extent, stream: int, function: int, args: Sequence[object], scratch: Scratch) -> None:
        """Put the kernel into the stream."""
        x, y, z = grid
        x *= self.num_ctas
        if not (0 < x <= LARGEST_X and 0 < y <= LARGEST_YZ and 0 < z <= LARGEST_YZ):
            if 0 in grid:
                return
            self.explain(INVALID_VALUE, grid)  # the driver would get truncated sizes
        plan = self.plans.get(len(args))
        if plan is None:
            plan = self.plans[len(args)] = (self.make_packer(function, args), threading.local())
        packer, frames = plan
        frame: Frame | None = getattr(frames, "frame", None)
        if frame is None:
            frame = frames.frame = self.frame(packer, function)
        packer.pack(frame.buffer, args, scratch)
        # from here on no code of the user's runs, which might launch this kernel in this thread and use the frame
        self.gpus.ensure_context()
        if code := self.put(frame, (x, y, z), stream, function):
            self.explain(code, grid)

    def repeated(
        self, function: object, check: Callable[[Sequence[object]], None] | None = None
    ) -> Callable[..., None]:
        """In machine code, if it can be: see `launch/native/kernel_launch.py`."""
        # lazily: a first launch from a bundle is not repeated
        from tilework.runtime.launch.native.kernel_launch import repeated

        return repeated(self, function, check) if self.is_plain else self

    def memory_of(self, value: object) -> "Memory | None":
        """Torch tensors on a GPU, arrays of our own, and what has DLPack, whose owner orders, or
        ``__cuda_array_interface__``.
        """
        if getattr(value, "is_cuda", False) is True:
            from tilework.runtime.launch.native.entries import tensor_memory  # lazily: as above

            is_own = type(value) is self.array_cls
            return ("guard_tensor", 0, 0, (value.dtype, value.device)) if is_own else tensor_memory(value)
        if any(hasattr(value, name) for name in ("data_ptr", "__array_interface__", "cache_key")):
            return None
        if is_cuda_export(value):
            return "guard_converted", 0, 0, partial(same_export, exported(value, current_stream()))
        interface = getattr(value, "__cuda_array_interface__", None)
        if type(interface) is not dict:
            return None
        if interface.get("stream") is not None:
            return "guard_converted", 0, 0, partial(same_interface, interface["typestr"])
        return "guard_interface", 0, 0, interface["typestr"]

    def native(self, driver: Any, function: int, args: Sequence[object], *, follows: bool = False) -> "Native | None":
        """See `runtime/launch/native/code/device_launch.py`."""
        plan = self.plans.get(len(args))
        if not self.is_plain or plan is None or (stream := driver.stream_call()) is None:
            return None
        from tilework.runtime.launch.native.entries import Native  # lazily: as above

        layout, library = plan[0].layout, self.gpus.library()
        buffer = ctypes.create_string_buffer(layout.total)
        plan[0].pack(buffer, args, NO_SCRATCH)
        config = bytes(launch_config(self.attributes, self.block, self.shared))
        slots = [offset // native.SLOT for offset in layout.offsets]
        moves = library.address("set_context") if follows and not self.needs_scratch else 0
        calls = library.address("get_context"), library.context(), moves, library.address(self.call)
        *device_call, functions = stream
        device_call.append(self.scratch_addresses if self.needs_scratch else None)
        counts = stream[1], self.by_values, len(slots)
        fields = native.GPU.pack(*calls, function, self.num_ctas, *functions, *counts, config)
        maps = [lambda descriptor, meta=meta: self.map_of(descriptor, meta) for meta in self.maps if meta]
        return Native(
            plan[0].kinds, slots, buffer.raw, "run_gpu", fields + struct.pack(f"<{len(slots)}q", *layout.offsets),
            lambda code, x, y, z: self.explain(code, (x, y, z)), tuple(device_call), self.memory_of,
            None if moves else "ready_gpu", maps=maps, kept=(self, library),
        )  # fmt: skip

    def scratch_addresses(self, x: int, y: int, z: int, stream: int) -> tuple[int, int, Scratch]:
        """Return the addresses of both buffers, and the objects that keep them alive, for machine code."""
        scratch = self.allocate((x, y, z), stream)
        return device_address(scratch[0]), device_address(scratch[1]), scratch

    def make_packer(self, function: int, args: Sequence[object]) -> Packer:
        """The layout of the arguments, found at the first launch; kernels that expect something else are refused."""
        declared = self.declared or self.functions.parameters(function)
        if self.signature is not None:
            if len(args) != (count := len(self.signature)):
                raise TypeError(f"{self.name} takes {count} arguments, constants included, and is given {len(args)}")
            packer = packer_for(self.name, self.signature, self.maps, self.map_of)
        elif declared is None:
            raise RuntimeError(
                f"the parameters of {self.name} are not known: this driver does not report them (cuFuncGetParamInfo"
                " came with CUDA 12.4); launch it from its PTX"
            )
        else:
            packer = packer_from(self.name, declared, len(args))
        if declared is not None:
            self.check_parameters(declared, packer, len(args))
        return packer

    def check_parameters(self, declared: Sequence[Parameter], packer: Packer, count: int) -> None:
        """Refuse a kernel whose declared parameters differ from the arguments."""
        sizes = packer.layout.sizes
        hidden = len(HIDDEN)
        given = count if self.signature is None else len(sizes) - hidden
        if len(declared) > len(sizes) or (self.signature is None and len(declared) < given):
            raise TypeError(
                f"{self.name} declares {len(declared)} parameters, and is given {given} values and {hidden} hidden"
                " pointers (scratch and profile scratch)"
            )
        for index, (parameter, size) in enumerate(zip(declared, sizes, strict=False)):
            if parameter.size != size:
                raise TypeError(f"parameter {index} of {self.name} has {parameter.size} bytes, and is given {size}")

    def explain(self, code: int, grid: Extent) -> None:
        """Raise the driver's error, with the launch configuration."""
        sizes = (grid[0] * self.num_ctas, *grid[1:])
        limits = zip("xyz", sizes, (LARGEST_X, LARGEST_YZ, LARGEST_YZ), strict=True)
        limit = "".join(f" ({axis} has at most {most})" for axis, size, most in limits if size > most)
        cluster = f" in clusters of {self.num_ctas}" if self.num_ctas > 1 else ""
        blocks = " x ".join(map(str, sizes))
        block = f"{self.block} threads, {self.shared} bytes shared"
        self.gpus.library().check(code, f" [launch of {self.name}: {blocks} blocks{limit}{cluster}, {block}]")


def launch_config(attributes: Any, block: int, shared: int) -> LaunchConfig:
    """A configuration without grid and stream; it does not keep the attributes."""
    config = LaunchConfig(block=(block, 1, 1), shared=shared, attribute_count=len(attributes))
    config.attributes = ctypes.addressof(attributes) if len(attributes) else None
    return config


# ---- counters of programs that run in order (`targets/gpu/atomic_rules.py`)


COUNTERS = 1024
BYTES = 4


class Counter(NamedTuple):
    """The address of a counter."""

    address: int

    def data_ptr(self) -> int:
        return self.address


class TicketCounters:
    """Those of one kernel."""

    def __init__(self, array_cls: type[DeviceArray]) -> None:
        self.array_cls = array_cls
        self.arrays: dict[int, DeviceArray] = {}  # by device
        self.indices = count()

    def next(self) -> Counter:
        """For a launch on the current device."""
        device = self.array_cls.gpus.current_device()
        if (array := self.arrays.get(device)) is None:
            array = self.array_cls(COUNTERS * BYTES)
            array.fill(0)
            self.array_cls.gpus.synchronize()
            self.arrays[device] = array
        return Counter(array.data_ptr() + next(self.indices) % COUNTERS * BYTES)
