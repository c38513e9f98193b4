"""Launches of kernels with hidden descriptors, which are made from the arguments where these justify them.

    kernel[grid](a, b, c, M, N, K, ...)                    # rows of 16 bytes: copies through descriptors made here
    kernel[grid](a[:, 1:], b, c, M, N, K - 1, ...)         # no: the same kernel, compiled with auto_tma=False

`CompiledKernel.justified` chooses the kernel with `justifies`; a direct call of this launcher makes the same choice.
The maps for the same addresses, integers and grid are cached.
"""

import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tilework.runtime.devices.conditional_launch import ConditionalLauncher
from tilework.runtime.devices.cuda.launch_precondition import ALIGNMENT, LaunchPrecondition
from tilework.runtime.devices.cuda.tensor_map import encoded
from tilework.runtime.devices.gpu.parameters import MAP_BYTES, WIDTHS, device_address, values_for
from tilework.runtime.devices.launcher import Extent, Launcher
from tilework.runtime.launch.native.entries import HiddenMaps, Native
from tilework.targets.nvidia.libcuda import Cuda, CudaError, library

Maps = tuple[bytes, ...]
WORD = 8  # bytes
ADDRESSES = 0x7F5A12345670, 0x7EF000000000


class GuardedLauncher(ConditionalLauncher):
    """A launcher that gets the hidden arguments too; see the module docstring."""

    def __init__(self, inner: Launcher, source: Any, metadata: Any) -> None:
        super().__init__(source, metadata)
        self.inner = inner
        self.natively_scratched = inner.natively_scratched
        self.precondition = LaunchPrecondition(metadata.rectangles)
        known = self.signature is not None
        self.values = (
            values_for(self.name, self.signature or [], self.precondition.args) if known else self.values_among
        )
        described = zip(metadata.tensordesc_meta[-len(self.precondition.maps) :], self.precondition.maps, strict=True)
        self.boxes: list[tuple[Any, ...]] = [
            (meta["swizzle"], meta["elem_size"], meta["elem_type"], tuple(meta["block_size"]), int(facts["padding"]))
            for meta, facts in described
        ]
        self.maps = lru_cache(1024)(self.find_maps)

    def values_among(self, args: Sequence[object]) -> tuple[int, ...]:
        """Return the values of a kernel that came as a file, whose arguments have no declared types."""
        found = [args[index] for index in self.precondition.args]
        return tuple(arg if isinstance(arg, int) else device_address(arg) for arg in found)

    def find_maps(self, values: tuple[int, ...], grid: Extent) -> Maps | None:
        """Return the hidden arguments of a launch; None if they are not justified."""
        arrays = self.precondition.arrays(values, grid)
        if arrays is None:
            return None
        cuda = library()
        return tuple(
            encoded(cuda, address, *facts, shape, strides, padding)
            for (address, shape, strides), (*facts, padding) in zip(arrays, self.boxes, strict=True)
        )

    def justifies(self, grid: Extent, args: Sequence[object]) -> bool:
        return self.maps(self.values(args), grid) is not None

    def __call__(self, x: int, y: int, z: int, stream: int, function: object, *rest: Any) -> None:
        """As `Launcher`, whose four arguments about metadata and hooks are passed on."""
        about, args = rest[:4], rest[4:]
        maps = self.maps(self.values(args), (x, y, z))
        if maps is not None:
            self.inner(x, y, z, stream, function, *about, *args, *maps)
        else:
            other = self.without()
            other.launcher(x, y, z, stream, other.function, *about, *args)

    def without(self) -> Any:
        """The kernel for launches that do not justify the descriptors, compiled when there is the first one."""
        if self.signature is None:
            raise ValueError(
                f"{self.name} came as code that copies tiles by TMA, which these arguments do not justify: take the"
                " code of a kernel that was compiled with auto_tma=False"
            )
        return super().without()

    def native(self, driver: Any, function: int, args: Sequence[Any], *, follows: bool = False) -> Native | None:
        """As the launcher inside, which has launched before; a launch that does not justify the maps fits no entry."""
        count = len(self.precondition.maps)
        found = self.inner.native(driver, function, (*args, *[bytes(MAP_BYTES)] * count), follows=follows)
        if found is None:
            return None
        hidden = self.finding(
            found, found.indices[len(found.kinds) - count], [facts["base"] for facts in self.precondition.maps]
        )
        return replace(found, kinds=found.kinds[:-count], hidden_maps=hidden, kept=(found.kept, self))

    def refusing(self, plain: Native) -> Native:
        """The record of the launcher without descriptors, for those launches only that do not justify them."""
        return replace(plain, hidden_maps=self.finding(plain, 0, []), kept=(plain.kept, self))

    def finding(self, device: Native, slot: int, bases: Sequence[int]) -> HiddenMaps:
        """Return how the native launcher finds the maps; if nothing but the first 64 bits depends on addresses, it
        patches these in.
        """
        args = self.precondition.args
        moves = not self.precondition.written and all(
            addresses_come_first(library(), *facts[:3]) for facts in self.boxes
        )
        kinds, slots = [device.kinds[index] for index in args], [device.indices[index] for index in args]
        masks = [ALIGNMENT - 1 if moves and index in self.precondition.pointers else -1 for index in args]

        def find(key: bytes) -> bytes | None:
            *slots, x, y, z = struct.unpack(f"<{len(key) // 8}q", key)
            values = tuple(map(as_kind, kinds, slots))
            maps = self.maps(values, (x, y, z))
            if maps is None or not moves:
                return None if maps is None else b"".join(maps)
            pointers = dict(zip(args, values, strict=True))
            return b"".join(moved(map, -pointers[base]) for map, base in zip(maps, bases, strict=False))

        return HiddenMaps(slots, masks, slot, [device.indices[base] if moves else None for base in bases], find)

    def memory_of(self, value: object) -> Any:
        return self.inner.memory_of(value)

    @property
    def counters(self) -> Any:
        """Counters of the last launch, if the device counts."""
        return getattr(self.inner, "counters", None)


def moved(map: bytes, distance: int) -> bytes:
    """Return a tensor map whose address, its first 64 bits, is moved by a distance."""
    address = int.from_bytes(map[:WORD], "little") + distance
    return (address % (1 << 8 * WORD)).to_bytes(WORD, "little") + map[WORD:]


@lru_cache
def addresses_come_first(cuda: Cuda, swizzle: int, elem_size: int, elem_type: int) -> bool:
    """Return True if the first 64 bits of maps of such elements are the address, and nothing else depends on it.

    The driver does not document that, so it is tried, on arrays that do not exist.
    """
    block = 32 // elem_size
    for sizes, strides in (((4096, 8192), (8192, 1)), ((3, 130, 77, 48), (480480, 3696, 48, 1))):
        boxes = (*[1] * (len(sizes) - 1), block)
        try:
            first, second = (
                encoded(cuda, at, swizzle, elem_size, elem_type, boxes, sizes, strides, 0) for at in ADDRESSES
            )
        except CudaError:
            return False
        if (
            int.from_bytes(first[:WORD], "little") != ADDRESSES[0]
            or moved(first, ADDRESSES[1] - ADDRESSES[0]) != second
        ):
            return False
    return True


def as_kind(kind: str, bits64: int) -> int:
    """The value of a slot as a kernel reads it."""
    bits = 8 * WIDTHS[kind]
    low = bits64 % (1 << bits)
    return low - (1 << bits) if kind != "ptr" and low >> (bits - 1) else low
