"""Launches of kernels with hidden descriptors, which are made from the arguments where these justify them.

    kernel[grid](a, b, c, M, N, K, ...)                    # rows of 16 bytes: copies through descriptors made here
    kernel[grid](a[:, 1:], b, c, M, N, K - 1, ...)         # no: the same kernel, compiled with auto_tma=False

`CompiledKernel.justified` chooses the kernel with `justifies`; a direct call of this launcher makes the same choice.
The maps for the same addresses, integers and grid are cached.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, reduce
from math import gcd, prod
from typing import Any, NamedTuple

from tilework.runtime.devices.conditional_launch import ConditionalLauncher
from tilework.runtime.devices.cuda.device import encoded
from tilework.runtime.devices.gpu.parameters import MAP_BYTES, WIDTHS, device_address, values_for
from tilework.runtime.devices.launcher import Extent, Launcher
from tilework.runtime.launch.native.entries import HiddenMaps, Native
from tilework.targets.nvidia.libcuda import Cuda, CudaError, library

# ---- check that the arguments of a launch justify what a kernel was compiled for, and the arrays that its hidden
# descriptors describe.
#
#     precondition = LaunchPrecondition(facts)                    # of `transforms/tt/rectangles_to_descriptors.py`
#     precondition.args                                           # [0, 3, ...]: the arguments that it needs
#     precondition.arrays((0x7f00, 4096, ...), (1024, 1, 1))      # -> [(address, shape, strides), ...] or None
#
# Every node (`analysis/index_forms.py`) is evaluated to the interval of its values in all programs and iterations. From
# the intervals follows that no sum overflows, so that polynomials are what the kernel computes; that a tile does not
# wrap around in its middle; that a start without a mask is not negative; that the kernel stores elsewhere before. So
# each tile is the box that the copy reads. The rest are rules of the hardware: bases, strides and starts along the
# contiguous axis are multiples of 16 bytes, axes do not overlap, sizes and starts have 31 bits.


Interval = tuple[int, int]
Node = tuple[Any, ...]  # its kind, and the parts that the entry of `TEXTS` takes
Array = tuple[int, tuple[int, ...], tuple[int, ...]]  # address, shape, strides in elements

ALIGNMENT = 16
LARGEST_STRIDE = 1 << 40
LARGEST_SIZE = (1 << 31) - 1


class NotJustified(Exception):
    """These arguments justify nothing."""


def point(value: Interval) -> int:
    """The one value of an interval."""
    require(value[0] == value[1])
    return value[0]


def require(fact: bool) -> None:
    if not fact:
        raise NotJustified


def multiplied(one: Interval, two: Interval) -> Interval:
    if one[0] >= 0 and two[0] >= 0:
        return one[0] * two[0], one[1] * two[1]
    corners = [a * b for a in one for b in two]
    return min(corners), max(corners)


def quotient(one: Interval, two: Interval) -> Interval:
    """Towards zero, by something that is always positive or always negative."""
    if one[0] >= 0 and two[0] > 0:
        return one[0] // two[1], one[1] // two[0]
    require(two[0] > 0 or two[1] < 0)
    corners = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a in one for b in two]
    return min(corners), max(corners)


def remainder(one: Interval, two: Interval) -> Interval:
    require(two[0] > 0)
    if one[0] >= 0 and one[1] < two[0]:
        return one
    if one[0] == one[1] >= 0 and two[0] == two[1]:
        return one[0] % two[0], one[0] % two[0]
    return (0 if one[0] >= 0 else max(one[0], 1 - two[1])), min(max(one[1], 0), two[1] - 1)


def counter(low: Interval, high: Interval, step: Interval) -> Interval:
    """Of a loop: the last value is exact where all is known."""
    require(step[0] > 0)
    last = max(low[0], high[1] - 1)
    if low[0] == low[1] and step[0] == step[1]:
        last -= (last - low[0]) % step[0]
    return low[0], last


def wrapped(start: Interval, size: Interval, block: int) -> Interval:
    """The kernel divides 32 bits."""
    require(start[0] >= 0 and start[1] <= LARGEST_SIZE and 0 < point(size) <= LARGEST_SIZE and size[0] % block == 0)
    return 0, size[0] - block


def inside(start: Interval, size: Interval, block: int) -> Interval:
    require(start[1] + block <= point(size))
    return start


KEPT: Mapping[str, Callable[[Interval, Interval, int], Interval]] = {"wrapped": wrapped, "inside": inside}


OPERATIONS: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "div": quotient,
    "rem": remainder,
    "min": lambda one, two: (min(one[0], two[0]), min(one[1], two[1])),
    "max": lambda one, two: (max(one[0], two[0]), max(one[1], two[1])),
}


def poly_text(terms: Sequence[tuple[int, Sequence[int]]]) -> str:
    """Return the text of a sum's lower and upper end; a term with a negative factor swaps them."""
    ends: tuple[list[str], list[str]] = ([], [])
    for coefficient, factors in terms:
        value = reduce("multiplied({}, n{})".format, factors[1:], f"n{factors[0]}") if factors else "(1, 1)"
        for end, texts in enumerate(ends):
            texts.append(f"{coefficient} * {value}[{end if coefficient > 0 else 1 - end}]")
    return f"({' + '.join(ends[0]) or 0}, {' + '.join(ends[1]) or 0})"


TEXTS: Mapping[str, Callable[..., str]] = {
    "poly": poly_text,
    "arg": "(args[{0}], args[{0}])".format,
    "pid": "(0, grid[{}] - 1)".format,
    "programs": "(grid[{0}], grid[{0}])".format,
    "tile_index": lambda size: f"(0, {size - 1})",
    "loop": "counter(n{}, n{}, n{})".format,
    **{kind: f"{kind}(n{{}}, n{{}})".format for kind in OPERATIONS},
    **{kind: f"{kind}(n{{}}, n{{}}, {{}})".format for kind in KEPT},
}


def evaluator(nodes: Sequence[Node], fits: Sequence[tuple[int, int]]) -> Callable[..., Sequence[Interval]]:
    """Return a function of the arguments (by index) and the grid: the interval of each node, if those in `fits` fit."""
    lines = [f"    n{index} = {TEXTS[kind](*parts)}" for index, (kind, *parts) in enumerate(nodes)]
    limits = [f"{-(1 << bits - 1)} <= n{node}[0] and n{node}[1] < {1 << bits - 1}" for node, bits in fits]
    found = ", ".join(f"n{index}" for index in range(len(nodes)))
    source = [
        "def evaluate(args, grid):",
        *lines,
        f"    require({' and '.join(limits) or True})",
        f"    return ({found},)",
    ]
    scope: dict[str, Any] = {"multiplied": multiplied, "counter": counter, "require": require, **OPERATIONS, **KEPT}
    exec(compile("\n".join(source), "<precondition of a launch>", "exec"), scope)
    return scope["evaluate"]


DIVISORS: Mapping[str, Callable[..., int]] = {
    "poly": lambda known, terms: gcd(*(factor * prod(known[n] for n in nodes) for factor, nodes in terms)),
    "loop": lambda known, low, high, step: gcd(known[low], known[step]),
    "inside": lambda known, start, size, block: known[start],
    **dict.fromkeys(("rem", "min", "max", "wrapped"), lambda known, one, two, *_: gcd(known[one], known[two])),
}


def divisors(nodes: Sequence[Node], found: Sequence[Interval]) -> list[int]:
    """The largest divisor of all values of each node; 0 where all are 0."""
    known: list[int] = []
    for (kind, *parts), (low, high) in zip(nodes, found, strict=True):
        rule = DIVISORS.get(kind)
        known.append(abs(low) if low == high else 1 if rule is None else rule(known, *parts))
    return known


class Box(NamedTuple):
    """An array relative to one of the pointers: the bytes to its first element, and to the end of its last."""

    base: int
    first: int
    end: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Plan(NamedTuple):
    """The facts that integers and a grid justify, if the pointers do: arrays to describe, and bytes (base, first, end)
    that are written.
    """

    boxes: tuple[Box, ...]
    written: tuple[tuple[int, int, int], ...]


class LaunchPrecondition:
    """See the module docstring. What integers and grid say is remembered, so that other pointers cost little."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.maps, self.written, self.nodes = facts["maps"], facts["written"], facts["nodes"]
        self.evaluate = evaluator(facts["nodes"], facts["fits"])
        self.pointers: list[int] = sorted({*(one["base"] for one in self.maps), *(base for base, _, _ in self.written)})
        self.integers: list[int] = sorted({node[1] for node in facts["nodes"] if node[0] == "arg"})
        self.args = self.pointers + self.integers
        self.plan = lru_cache(1024)(self.find_plan)

    def find_plan(self, integers: tuple[int, ...], grid: Extent) -> Plan | None:
        try:
            found = self.evaluate(dict(zip(self.integers, integers, strict=True)), grid)
            known = divisors(self.nodes, found)
            boxes = tuple(box(one, found, known) for one in self.maps)
        except NotJustified:
            return None
        written = ((base, found[node][0] * size, (found[node][1] + 1) * size) for base, node, size in self.written)
        return Plan(boxes, tuple(written))

    def arrays(self, values: tuple[int, ...], grid: Extent) -> list[Array] | None:
        """The arrays that the hidden descriptors describe, for the values of `args`; None if the kernel must not run
        with them.
        """
        count = len(self.pointers)
        plan = self.plan(values[count:], grid)
        if plan is None:
            return None
        at = dict(zip(self.pointers, values, strict=False))
        found: list[Array] = []
        for base, first, end, shape, strides in plan.boxes:
            address = at[base] + first
            if address <= 0 or address % ALIGNMENT:
                return None
            if any(at[to] + low < at[base] + end and address < at[to] + high for to, low, high in plan.written):
                return None
            found.append((address, shape, strides))
        return found


def box(facts: Mapping[str, Any], found: Sequence[Interval], known: Sequence[int]) -> Box:
    """The location of the array of one descriptor."""
    size = facts["bytes"]
    require(known[facts["axes"][-1][1]] * size % ALIGNMENT == 0)
    shape, strides = [], []
    for stride, start, end, starts_masked, block in facts["axes"]:
        strides.append(point(found[stride]))
        low, high = found[start]
        shape.append(high + block if end is None else point(found[end]))
        require(low >= (-LARGEST_SIZE if starts_masked else 0) and high + block <= LARGEST_SIZE)
        require(1 <= shape[-1] <= LARGEST_SIZE)
    require(strides[-1] == 1 and all(0 < step * size < LARGEST_STRIDE for step in strides[:-1]))
    require(all(step * size % ALIGNMENT == 0 for step in strides[:-1]))
    covered = 0
    for step, count in sorted((step, count) for step, count in zip(strides, shape, strict=True) if count > 1):
        require(step > covered)
        covered += step * (count - 1)
    first = point(found[facts["offset"]]) * size
    return Box(facts["base"], first, first + (covered + 1) * size, tuple(shape), tuple(strides))


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
