"""Launches of kernels with hidden descriptors: made from the arguments where these justify them, else another kernel is launched.

    kernel[grid](a, b, c, M, N, K, ..., auto_tma=True)          # rows of 16 bytes: copies through descriptors made here
    kernel[grid](a[:, 1:], b, c, M, N, K - 1, ...)              # no: the same kernel, compiled with auto_tma=False

What is proved and described for the same addresses, integers and grid is remembered.
"""

import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tilework.runtime.devices.cuda.launch_proof import LaunchProof, Unproved
from tilework.runtime.devices.cuda.parameters import MAP_BYTES, WIDTHS, numbers_for
from tilework.runtime.devices.cuda.tensor_map import encoded
from tilework.runtime.devices.launcher import Extent, Launcher
from tilework.runtime.launch.native_entry import Native, Proof
from tilework.targets.nvidia.libcuda import library

Maps = tuple[bytes, ...]


class ProvedLauncher(Launcher):
    """A launcher that gets the hidden arguments too; see the module docstring."""

    def __init__(self, inner: Launcher, source: Any, metadata: Any) -> None:
        super().__init__(source, metadata)
        self.inner, self.source, self.metadata = inner, source, metadata
        self.natively_scratched = inner.natively_scratched
        self.proof = LaunchProof(metadata.rectangles)
        assert self.signature is not None, f"{self.name} has hidden descriptors, and nobody knows its arguments"
        self.numbers = numbers_for(self.name, self.signature, self.proof.args)
        self.shapes: Sequence[Any] = metadata.tensordesc_meta[-len(self.proof.maps) :]
        self.maps = lru_cache(1024)(self.find_maps)
        self.plain: Any = None

    def find_maps(self, numbers: tuple[int, ...], grid: Extent) -> Maps | None:
        """The hidden arguments of a launch; None if it proves nothing."""
        arrays = self.proof.arrays(dict(zip(self.proof.args, numbers, strict=True)), grid)
        if arrays is None:
            return None
        cuda = library()
        return tuple(
            encoded(cuda, address, meta["swizzle"], meta["elem_size"], meta["elem_type"], tuple(meta["block_size"]), shape, strides, int(told["padding"]))
            for (address, shape, strides), meta, told in zip(arrays, self.shapes, self.proof.maps, strict=True)
        )  # fmt: skip

    def __call__(self, x: int, y: int, z: int, stream: int, function: Any, *rest: Any) -> None:
        """As `Launcher`, whose four arguments about metadata and hooks are passed on."""
        told, args = rest[:4], rest[4:]
        maps = self.maps(self.numbers(args), (x, y, z))
        if maps is not None:
            self.inner(x, y, z, stream, function, *told, *args, *maps)
        else:
            other = self.without()
            other.launcher(x, y, z, stream, other.function, *told, *args)

    def native(self, driver: Any, function: int, args: Sequence[Any], *, follows: bool = False) -> Native | None:
        """As the launcher inside, which has launched before; what proves nothing fits no entry and takes the Python path."""
        count = len(self.proof.maps)
        found = self.inner.native(driver, function, (*args, *[bytes(MAP_BYTES)] * count), follows=follows)
        if found is None:
            return None
        kinds, places = [found.kinds[number] for number in self.proof.args], found.places

        def find(key: bytes) -> bytes:
            *words, x, y, z = struct.unpack(f"<{len(key) // 8}q", key)
            maps = self.maps(tuple(map(as_kind, kinds, words)), (x, y, z))
            if maps is None:
                raise Unproved
            return b"".join(maps)

        proof = Proof([places[number] for number in self.proof.args], places[len(found.kinds) - count], count, find)
        return replace(found, kinds=found.kinds[:-count], proof=proof, kept=(found.kept, self))

    def memory_of(self, value: Any) -> Any:
        return self.inner.memory_of(value)

    def without(self) -> Any:
        """The kernel for launches that prove nothing, compiled when there is the first one."""
        if self.plain is None:
            from tilework.runtime.compile.cached import compile  # lazily: the compiler loads when something is compiled

            self.plain = compile(self.source, self.metadata.target, {**self.metadata.asked, "auto_tma": False})
            self.plain._init_handles()
        return self.plain

    @property
    def counters(self) -> Any:
        """What the last launch did, if the device counts."""
        return getattr(self.inner, "counters", None)


def as_kind(kind: str, word: int) -> int:
    """What a kernel sees of a slot."""
    bits = 8 * WIDTHS[kind]
    low = word % (1 << bits)
    return low - (1 << bits) if kind != "ptr" and low >> (bits - 1) else low


def with_proof(launcher: Launcher, source: Any, metadata: Any) -> Launcher:
    """What launches a kernel: the launcher itself, if it has no hidden arguments."""
    return ProvedLauncher(launcher, source, metadata) if getattr(metadata, "rectangles", None) else launcher
