"""An emulated GPU: memory, modules, functions and launches as in the CUDA driver, executed synchronously.

    >>> device = Device()
    >>> x = device.allocate(16)
    >>> device.copy_in(x, np.arange(4, dtype=np.int32))
    >>> text = '''.version 8.0
    ... .target sm_80
    ... .visible .entry twice(.param .u64 p) {
    ...     .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ...     ld.param.u64 %rd1, [p];
    ...     mov.u32 %r1, %tid.x;
    ...     mad.wide.u32 %rd2, %r1, 4, %rd1;
    ...     ld.global.u32 %r2, [%rd2];
    ...     add.u32 %r2, %r2, %r2;
    ...     st.global.u32 [%rd2], %r2;
    ...     ret;
    ... }'''
    >>> device.launch(device.load(text).function("twice"), grid=1, block=4, args=[np.uint64(x)])
    >>> device.copy_out(x, 16).view(np.int32)
    array([0, 2, 4, 6], dtype=int32)

Kernel arguments are NumPy scalars of the parameter's size, bytes, or addresses of arrays on the device.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np

from tilework.oracles.emulator.check import Checker, CheckingMachine
from tilework.oracles.emulator.counters import Counters
from tilework.oracles.emulator.machine import MAX_INSTRUCTIONS, Machine
from tilework.oracles.emulator.memory import (
    ArenaPort,
    Array,
    Memory,
    Watchers,
    local_layout,
    module_variables,
    parameter_layout,
    shared_layout,
)
from tilework.oracles.emulator.parser import parse_ptx
from tilework.oracles.emulator.syntax import EmulatorError, Function, PtxModule, dimensions
from tilework.oracles.emulator.translate import Block

LARGEST_BLOCK = 1024
LARGEST_GRID = (2**31 - 1, 65535, 65535)
LARGEST_SHARED = 227 * 1024
Dimensions = int | Sequence[int]


@dataclass(eq=False)
class LoadedModule:
    """A module on a device, parsed, with its variables allocated."""

    device: "Device"
    ptx: PtxModule
    symbols: dict[str, int]
    local_offsets: dict[str, int]
    local_size: int
    functions: dict[int, str] = field(default_factory=dict)

    def function(self, name: str) -> "LoadedFunction":
        found = self.ptx.functions.get(name)
        if found is None or not found.is_kernel:
            raise EmulatorError(f"the module has no kernel {name!r}; it has {', '.join(self.ptx.kernels) or 'none'}")
        return LoadedFunction(self, found)

    def variable(self, name: str) -> int:
        """The address of a global variable."""
        if name not in self.symbols:
            raise EmulatorError(f"the module has no variable {name!r}")
        return self.symbols[name]


@dataclass(eq=False)
class LoadedFunction:
    """A kernel that can be launched."""

    module: LoadedModule
    function: Function
    machines: dict[Any, Machine] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def attributes(self) -> dict[str, int]:
        """The attributes that a driver reports: static shared bytes, local bytes per thread, maximum threads per block,
        PTX version."""
        _, shared = shared_layout(self.module.ptx, 0)
        limit = self.function.limits.get("reqntid") or self.function.limits.get("maxntid") or (LARGEST_BLOCK,)
        major, minor = self.module.ptx.version
        return {
            "shared_size_bytes": shared,
            "local_size_bytes": self.module.local_size,
            "max_threads_per_block": int(np.prod(limit)),
            "num_regs": len(self.function.registers),
            "ptx_version": 10 * major + minor,
        }


class Device:
    """One emulated GPU. `output` receives the text that kernels print; `max_instructions` ends endless loops. With
    `check` every launch is checked (see `check`), with the warps in a random order of `seed`, or `together`, which is
    faster; with `collect` its findings are kept in `checker.findings` and not raised; with `replicas` a redundant load
    by several threads is no race (`ReplicaShadow`). With `counters`, `device.counters` has the counts of a profiler. If
    `most_blocks` is set, only the first clusters of a larger grid run, up to that many blocks."""

    def __init__(
        self, capacity: int = 16 << 30, output: Callable[[str], None] | None = None,
        max_instructions: int = MAX_INSTRUCTIONS, check: bool = False, seed: int = 0, collect: bool = False,
        counters: bool = False, replicas: bool = False, together: bool = False,
    ) -> None:  # fmt: skip
        self.memory, self.together = Memory(capacity), together
        self.output, self.max_instructions = output, max_instructions
        self.random = random.Random(seed)
        self.checker = Checker(self.memory, collect, replicas) if check else None
        self.counters = Counters(self.memory) if counters else None
        self.observers: list[Any] = [one for one in (self.checker, self.counters) if one is not None]
        self.watcher = (
            Watchers(self.observers) if len(self.observers) > 1 else self.observers[0] if self.observers else None
        )
        self.thread_instructions = 0
        self.most_blocks: int | None = None

    # memory

    def allocate(self, size: int) -> int:
        return self.memory.allocate(size)

    def free(self, address: int) -> None:
        self.memory.free(address)

    def copy_in(self, address: int, data: Any) -> None:
        self.memory.write(address, np.ascontiguousarray(data))

    def copy_out(self, address: int, size: int) -> Array:
        return np.frombuffer(self.memory.read(address, size), np.uint8).copy()

    def upload(self, array: Array) -> int:
        """Allocate memory for an array and copy it there."""
        address = self.allocate(array.nbytes)
        self.copy_in(address, array)
        return address

    def download(self, address: int, like: Array) -> Array:
        """Return an array of the same shape and type as `like` from the device."""
        return self.copy_out(address, like.nbytes).view(like.dtype).reshape(like.shape)

    # code

    def load(self, code: str | bytes) -> LoadedModule:
        ptx = parse_ptx(code.decode() if isinstance(code, bytes) else code)
        functions = {name: self.memory.allocate(1) for name in ptx.functions}
        symbols = functions | module_variables(ptx, self.memory, functions)
        local_offsets, local_size = local_layout(ptx)
        by_address = {address: name for name, address in functions.items()}
        return LoadedModule(self, ptx, symbols, local_offsets, local_size, by_address)

    def synchronize(self) -> None:
        """Do nothing: launches are finished when they return."""

    def launch(
        self, function: LoadedFunction, grid: Dimensions, block: Dimensions, args: Sequence[Any], shared: int = 0,
        cluster: Dimensions | None = None,
    ) -> None:  # fmt: skip
        """Launch a kernel with clusters of `cluster`, or with those that the kernel requires."""
        grid3, block3 = dimensions(grid, "grid"), dimensions(block, "block")
        cluster3 = cluster_of(function.function) if cluster is None else dimensions(cluster, "cluster")
        self.check_launch(function, grid3, block3, shared, cluster3)
        data = pack_arguments(function.function, args)
        machine = self.machine_for(function, block3, shared, cluster3)
        if data:
            self.memory.write(machine.parameters, data)
        if self.counters is not None:
            self.counters.begin_launch()
        machine.begin_launch(grid3)
        steps = (range(0, size, width) for size, width in zip(reversed(grid3), reversed(cluster3), strict=True))
        most = None if self.most_blocks is None else -(-self.most_blocks // prod(cluster3))
        for z, y, x in islice(product(*steps), most):
            machine.run_block((x, y, z), grid3)
        machine.end_launch()
        self.thread_instructions += machine.thread_instructions
        machine.thread_instructions = 0

    def machine_for(
        self, function: LoadedFunction, block: tuple[int, int, int], shared: int, cluster: tuple[int, int, int]
    ) -> Machine:
        key = (block, shared, cluster)
        if key not in function.machines:
            module = function.module
            shared_offsets, shared_size = shared_layout(module.ptx, shared)
            arena = ArenaPort(self.memory, self.watcher)
            state = Block(block, shared_size, module.local_size, arena, self.watcher, cluster)
            state.shared_names = set(shared_offsets)
            state.specials["%dynamic_smem_size"][...] = shared
            state.specials["%total_smem_size"][...] = shared_size
            symbols = {**module.symbols, **shared_offsets, **module.local_offsets}
            offsets, size = parameter_layout(function.function)
            parameters = self.memory.allocate(max(1, size))  # never moved: translated code contains their address
            symbols |= {name: parameters + offset for name, offset in offsets.items()}
            kind = Machine if self.checker is None else CheckingMachine
            made = kind(
                module.ptx, function.function, state, symbols, module.functions, self.max_instructions, self.output
            )
            made.parameters, made.observers = parameters, self.observers
            if isinstance(made, CheckingMachine):
                assert self.checker is not None
                made.checker, made.rng, made.together = self.checker, self.random, self.together
            function.machines[key] = made
        return function.machines[key]

    def check_launch(
        self, function: LoadedFunction, grid: tuple[int, int, int], block: tuple[int, int, int], shared: int,
        cluster: tuple[int, int, int],
    ) -> None:  # fmt: skip
        threads = block[0] * block[1] * block[2]
        if not 0 < threads <= LARGEST_BLOCK:
            raise EmulatorError(f"a block of {threads} threads; 1 to {LARGEST_BLOCK} are possible")
        if any(not 0 < size <= limit for size, limit in zip(grid, LARGEST_GRID, strict=True)):
            raise EmulatorError(f"a grid of {grid} is not possible")
        limits = function.function.limits
        if "reqntid" in limits and (*limits["reqntid"], 1, 1)[:3] != block:
            raise EmulatorError(f"{function.name} requires blocks of {limits['reqntid']} threads, not {block}")
        if "reqnctapercluster" in limits and cluster_of(function.function) != cluster:
            raise EmulatorError(f"{function.name} requires clusters of {limits['reqnctapercluster']}, not {cluster}")
        if any(size % width for size, width in zip(grid, cluster, strict=True)):
            raise EmulatorError(f"{function.name} has clusters of {cluster} blocks, which do not divide {grid}")
        if "maxntid" in limits and threads > int(np.prod(limits["maxntid"])):
            raise EmulatorError(
                f"{function.name} allows {int(np.prod(limits['maxntid']))} threads in a block, not {threads}"
            )
        if shared < 0 or shared_layout(function.module.ptx, shared)[1] > LARGEST_SHARED:
            raise EmulatorError(
                f"{function.name} with {shared} bytes of dynamic shared memory needs more than {LARGEST_SHARED} bytes"
            )


def cluster_of(function: Function) -> tuple[int, int, int]:
    """Return the number of blocks of a cluster of the kernel in each dimension."""
    return dimensions(function.limits.get("reqnctapercluster", (1,)), "cluster")


def pack_arguments(function: Function, args: Sequence[Any]) -> bytes:
    """Return the parameter bytes of a launch."""
    if len(args) != len(function.params):
        raise EmulatorError(f"{function.name} takes {len(function.params)} arguments and is given {len(args)}")
    offsets, size = parameter_layout(function)
    data = bytearray(size)
    for index, (variable, value) in enumerate(zip(function.params, args, strict=True)):
        if isinstance(value, int) and not isinstance(value, bool):
            raw = (value & ((1 << 8 * variable.size) - 1)).to_bytes(variable.size, "little")
        elif isinstance(value, float):
            raw = np.array(value, f"f{variable.size}").tobytes()
        else:
            raw = bytes(value) if isinstance(value, bytes | bytearray | memoryview) else np.asarray(value).tobytes()
        if len(raw) != variable.size:
            raise EmulatorError(
                f"argument {index} of {function.name} has {len(raw)} bytes; "
                f"the parameter {variable.name} has {variable.size}"
            )
        data[offsets[variable.name] : offsets[variable.name] + len(raw)] = raw
    return bytes(data)
