"""Entries of the native launcher: the conditions under which a launch runs without Python code, and what it runs.

An entry can be made for launches whose arguments are memory that machine code can read (arrays, tensors), numbers,
immutable constants, and tuples and host descriptors of these. `kernel[grid]` and `kernel.run` make entries
(`kernel_launch.py`); the launcher of a device adds its part, a `Native`.
"""

import ctypes
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Any

from tilework.language import core as tl
from tilework.light_dataclass import light_dataclass
from tilework.runtime.devices.dlpack import Tensor, described, exchange_api
from tilework.runtime.launch.native import layout as native
from tilework.runtime.launch.native.launch_log import Logged, last_launch
from tilework.runtime.launch.native.machine import address, has_versions, make_key, set_context, watch
from tilework.runtime.launch.python.specialize import ITEM, LIMIT, MULTIPLE, ONE, WIDTH, small_address

FEW_KEYS = 4  # of a kernel: the entries of more are found by their key
MOST_ALIKE = 16  # entries with one key
MOST_KEYS = 1 << 14  # of a kernel: then all are forgotten
# A key whose entries did not fit so often is described anew only at every so many launches. Profiled launches get an
# entry for any integers after `launch_log.MOST_WAYS`, which are fewer.
TRIES, TRIED_AGAIN = 48, 64

INT_RANGES = {"i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1)}
ANY_INT = (-(2**63), 2**63 - 1)
INT_KINDS = ("i64", "i32", "i16", "i8")
COMPARED = {int: native.SAME_INT, str: native.SAME_TEXT, float: native.SAME_FLOAT}
CONSTANTS = frozenset({int, bool, float, str, type(None), tl.dtype})
MEMBERS = ("base", "shape", "strides", "block_shape", "padding", "round_f32_to_tf32")  # of a host descriptor

Entry = tuple[Any, ...]  # what the machine code reads: `layout.KERNEL` to `layout.KEPT`
Memory = tuple[str, int, int, Any]  # a guard, its `low` and `high`, and the expected object


@light_dataclass
class Native:
    """The device's part of an entry.

    `kinds` are the types of the kernel's parameters, `indices` the first slot of each, and `slots` the values that the
    Python path would pass. `run` and `ready` name routines of the machine code, `fields` are their part of the record,
    `fault` and `call` the Python functions that they call. `memory_of` returns the guard for memory, None for memory
    that the device cannot read; `stored` maps the parameters that the kernel writes through to their alignment; `maps`
    are functions from descriptors to their tensor maps. `apart` are pairs of parameters: a launch fits if no pair
    overlaps, or with `overlaps` if one does.
    """

    kinds: Sequence[str]
    indices: Sequence[int]
    slots: bytes
    run: str
    fields: bytes
    fault: Callable[..., None]
    call: object
    memory_of: Callable[[object], Memory | None]
    ready: str | None = None
    stored: Mapping[int, int] = field(default_factory=dict)
    maps: Sequence[Callable[[object], bytes]] = ()
    watched: tuple[Any, ...] = ()
    kept: object = None
    hidden_maps: "HiddenMaps | None" = None
    apart: Sequence[tuple[int, int]] = ()
    overlaps: bool = False


@light_dataclass
class HiddenMaps:
    """Hidden tensor maps, for the slots from `slot` on: `find` makes them from the values in the slots `inputs` and the
    grid.

    Values with the same bits in `masks` have the same maps, except for their addresses: a map takes its address from
    the slot in `bases` if there is one, else it keeps the one that `find` returned. If `find` returns None, the entry
    does not fit; an entry without `bases` fits only then.
    """

    inputs: Sequence[int]
    masks: Sequence[int]
    slot: int
    bases: Sequence[int | None]
    find: Callable[[bytes], bytes | None]


def integer_mode(facts: int, value: int) -> int:
    """Return the kinds of integers with the same specialisation as `value`, as a set of bits for `guard_int`."""
    if not facts & ONE:
        return native.ONE | native.MULTIPLE | native.OTHER
    if value == 1:
        return native.ONE
    if not facts & MULTIPLE:
        return native.MULTIPLE | native.OTHER
    return native.OTHER if value % 16 else native.MULTIPLE


class Undescribable(Exception):
    """The launch cannot be described by guards."""


def is_useful(entry: Entry) -> bool:
    """Return True if what an entry watches is unchanged."""
    watched = entry[native.KEPT][-1]
    triples = zip(watched[::3], watched[1::3], watched[2::3], strict=True)
    return all(holder.get(key, native.MISSING) is value for holder, key, value in triples)


class Entries:
    """The entries of a kernel, in the list `state` that the machine code reads: in a list while they are few, else in
    an index by key.

    `python` is called for a launch that fits none of them. `facts` are those of the kernel's parameters
    (`python/specialize.py`), by name.
    """

    def __init__(self, python: Callable[..., object], facts: Mapping[str, int]) -> None:
        self.by_key: dict[int, list[Entry]] = {}
        self.index = self.by_key, bytearray(facts.values()), dict(facts)
        self.state: list[Any] = [python, None]
        self.key, self.made = make_key(self.index), Counter[int]()

    def is_wanted(self, key: int) -> bool:
        """Return True if a launch that fits no entry deserves one; False if many with this key were made in vain."""
        return self.made[key] < TRIES or self.made[key] % TRIED_AGAIN == 0

    def add(self, key: int, made: tuple[object, ...] | None) -> None:
        """Add the entry of a launch with this key, if there is one; remove entries that cannot fit any more, and the
        oldest.
        """
        self.made[key] += 1
        if made is None:
            return
        if len(self.by_key) >= MOST_KEYS:
            self.by_key.clear()
            self.made.clear()
        alike = self.by_key.setdefault(key, [])
        alike[:] = [made, *filter(is_useful, alike)][:MOST_ALIKE]
        if len(self.by_key) > FEW_KEYS:
            self.state[native.INDEX :] = [self.index]
        else:
            self.state[native.INDEX :] = [None, *(entry for entries in self.by_key.values() for entry in entries)]


def entry_of(
    device: Native,
    guards: "Guards",
    result: object,
    positional: int,
    keywords: tuple[str, ...],
    watched: tuple[object, ...] = (),
    contents: tuple[object, ...] = (),
    empties: Sequence[Sequence[object]] = (),
    names: tuple[str | None, ...] = (),
    meta: Mapping[str, object] | None = None,
) -> Entry:
    """Return an entry as `code/launcher.py` reads it; a launch that fits it runs on the device and returns `result`.

    `watched` are (dictionary, key, value) triples in one tuple; `empties` are lists that must be empty.
    """
    watched = (*watched, *device.watched)
    groups, kept = grouped(watched)
    ready = address(device.ready) if device.ready else 0
    extent, work = last_launch(result) or (None, None)
    logged = Logged(result, work)
    integers = (value for _, value in guards.integers)
    mark = native.mark_of(extent, integers) if extent is not None else native.ANY_INTEGERS
    record = native.Record(
        positional, len(keywords), address(device.run), ready, device.fields, tuple(guards.found), device.slots, groups,
        tuple(map(id, empties)), logged.identity, mark, tuple(slot for slot, _ in guards.integers),
        tuple(guards.roots),
    )  # fmt: skip
    return (
        result,
        keywords,
        kept,
        contents,
        record.pack(),
        device.fault,
        device.call,
        names,
        dict(meta or {}),
        (device.kept, guards.kept, logged, empties, watched),
    )


def grouped(watched: tuple[Any, ...]) -> tuple[tuple[tuple[int, int, int, int], ...], tuple[Any, ...]]:
    """(groups of one dictionary each, their keys and values)."""
    by_holder: dict[int, list[Any]] = {}
    for holder, key, value in zip(watched[::3], watched[1::3], watched[2::3], strict=True):
        watch(holder)
        by_holder.setdefault(id(holder), []).extend((key, value))
    groups, flat = [], []
    for holder, pairs in by_holder.items():
        groups.append((holder, 0, len(flat), len(flat) + len(pairs)))
        flat += pairs
    return tuple(groups), tuple(flat)


class Guards:
    """The guards of a call, collected object by object in the order of the kernel's parameters."""

    def __init__(self, device: Native, given: int) -> None:
        self.device = device
        self.found: list[native.Guard] = []
        self.given = self.objects = given  # how many there are in the frame
        self.roots: list[int] = []  # for each guard the argument that it is about; -1: all
        self.used = 0  # parameters
        self.maps = 0
        self.slots = len(device.slots) // 8
        self.ends: dict[int, int] = {}  # parameters whose ends are compared, and where they go
        for parameter in {parameter for pair in device.apart for parameter in pair}:
            self.ends[parameter], self.slots = self.slots, self.slots + 2
        self.ended: set[int] = set()
        self.kept: list[Any] = []
        self.integers: list[tuple[int, int]] = []  # slots of integers, and their values

    def add(self, name: str, value: object, expected: object, source: int, **fields: int) -> None:
        cls = type(value)
        self.kept += [cls, expected]
        fields |= {"source": source, "cls": id(cls), "expected": id(expected)}
        self.roots.append(source if source < self.given else self.roots[-1])
        self.found.append(native.Guard(address(name), **fields))

    def inside(self, count: int) -> int:
        """Reserve slots of the frame for objects that a guard stores; return the index of the first."""
        first, self.objects = self.objects, self.objects + count
        return first

    def finish(self) -> None:
        """Check that all parameters have guards and all slots fit, and add the guards that depend on others."""
        if self.used != len(self.device.kinds) or self.slots > native.MOST_SLOTS or self.objects > native.MOST_OBJECTS:
            raise Undescribable
        if (hidden := self.device.hidden_maps) is not None:
            self.find_hidden_maps(hidden)
        if self.device.apart:
            self.keep_apart(self.device.apart)

    def keep_apart(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Add the guard that compares extents. It needs no object of its own, so it repeats the first one."""
        if self.ended != self.ends.keys():
            raise Undescribable
        table = self.reserve(0, [self.ends[parameter] for pair in pairs for parameter in pair])
        facts = {"function": address("guard_apart"), "low": table, "mode": len(pairs), "other": 0}
        self.roots.append(-1)
        self.found.append(self.found[0]._replace(**facts, stored=int(self.device.overlaps)))

    def find_hidden_maps(self, hidden: HiddenMaps) -> None:
        """Add the guard of hidden maps, which reads slots that others have filled. It repeats the first object."""
        if not self.found or len(hidden.inputs) > native.MOST_INPUTS:
            raise Undescribable
        first, count, words = self.found[0], len(hidden.inputs), native.MAP_WORDS * len(hidden.bases)
        bases = [native.AS_FOUND if base is None else base for base in hidden.bases]
        table = self.reserve(native.HIDDEN_LINES * (1 + count + 3 + words), [*hidden.inputs, *hidden.masks, *bases])
        self.kept.append(hidden.find)
        self.roots.append(-1)
        self.found.append(
            first._replace(
                function=address("guard_hidden_maps"),
                low=table,
                high=words,
                mode=count,
                slot=hidden.slot,
                stored=native.JUSTIFIED if bases else native.REFUSED,
                expected=id(hidden.find),
            )
        )

    def constant(self, value: Any, source: int) -> None:
        """Add the guard of an immutable constant."""
        cls = type(value)
        if cls is tuple:
            first = self.tuple(value, source)
            for index, item in enumerate(value):
                self.constant(item, first + index)
            return
        if cls not in CONSTANTS:
            raise Undescribable
        mode, low = COMPARED.get(cls, native.SAME), 0
        if cls is int:
            low = value
            if not -(2**63) <= value < 2**63:
                mode, low = native.SAME, 0
        elif cls is float:
            low = struct.unpack("<q", struct.pack("<d", value))[0]
        self.add("guard_constant", value, value, source, low=low, mode=mode)

    def tuple(self, value: Any, source: int) -> int:
        """Add the guard of a tuple; return the index of its first item in the frame."""
        first = self.inside(len(value))
        self.add("guard_tuple", value, None, source, mode=len(value), slot=native.OBJECTS + first)
        return first

    def argument(self, facts: int, type: Any, spec: Any, key: Any, value: Any, source: int | None) -> None:
        """Add the guards of one argument, or of an item of a tuple; `facts` are those that count
        (`python/specialize.py`).

        An argument without a source is a default: its parameters are counted, and need no guard.
        """
        if isinstance(type, tuple):
            first = None if source is None else self.tuple(value, source)
            for index, (inner, of_spec, of_key, item) in enumerate(zip(type, spec, key, value, strict=True)):
                inside = ITEM if facts else facts
                self.argument(inside, inner, of_spec, of_key, item, None if first is None else first + index)
        elif type == "constexpr" or spec == "constexpr":
            if type != spec:
                raise Undescribable
            if source is not None:
                self.constant(value, source)
        elif self.used == len(self.device.kinds) or not isinstance(type, str):
            raise Undescribable
        elif type.startswith("tensordesc"):
            self.descriptor(value, source)
        else:
            self.used += 1
            if source is not None:
                self.scalar_or_memory(facts, spec, key, value, source, self.used - 1)

    def scalar_or_memory(self, facts: int, spec: str, key: Any, value: Any, source: int, parameter: int) -> None:
        cls, kind, slot = type(value), self.device.kinds[parameter], self.device.indices[parameter]
        if kind == "ptr":
            mode = native.MULTIPLE if key is not None and "D" in key else native.OTHER
            if not facts & MULTIPLE:
                mode = native.MULTIPLE | native.OTHER
            guard = self.memory(value, mode, slot, source, parameter)
            if key is not None and "S" in key and guard == "guard_dlpack":
                self.add("guard_small", value, None, source, high=LIMIT, slot=slot)
            elif key is not None and "S" in key:
                self.add("guard_converted", value, small_address, source, mode=mode, slot=slot)
        elif cls is int and kind in INT_KINDS:
            if facts & WIDTH and spec not in INT_RANGES:
                raise Undescribable
            mode = integer_mode(facts, value)
            low, high = INT_RANGES[spec] if facts & WIDTH else ANY_INT
            if facts & WIDTH and spec == "i64":  # beyond 32 bits, on the same side of zero as the one that was seen
                low, high = (2**31, 2**63 - 1) if value > 0 else (-(2**63), -(2**31) - 1)
            self.add("guard_int", value, None, source, low=low, high=high, mode=mode, slot=slot)
            self.integers.append((slot, value))
        elif cls is float and kind in ("f32", "f64"):
            self.add("guard_float", value, None, source, mode=int(kind == "f64"), slot=slot)
        elif cls is float and kind in ("f16", "bf16"):
            from tilework.runtime.devices.host.pack import HALF_BITS  # lazily: it loads NumPy

            self.add("guard_converted", value, HALF_BITS[kind], source, mode=native.MULTIPLE | native.OTHER, slot=slot)
        elif cls is bool and kind == "i1":
            self.add("guard_bool", value, True, source, slot=slot)
            self.integers.append((slot, int(value)))
        else:
            raise Undescribable

    def memory(self, value: object, mode: int, slot: int, source: int, parameter: int) -> str:
        """Add the guard of memory, whose address goes into a slot; return the guard's name."""
        stored = self.device.stored.get(parameter, 0)  # how memory that the kernel writes to must be aligned, or 0
        if (found := self.device.memory_of(value)) is None:
            raise Undescribable
        name, low, high, expected = found
        note_class(name, value, high)
        fields = {"stored": int(stored > 0), "mask": max(stored - 1, 0), "other": self.ends.get(parameter, 0)}
        self.add(name, value, expected, source, low=low, high=high, mode=mode, slot=slot, **fields)
        self.ended |= self.ends.keys() & {parameter}
        return name

    def descriptor(self, value: Any, source: int | None) -> None:
        """Add the guards of a host descriptor: a tensor map, or a pointer, sizes, strides and two flags; then sizes
        and strides again.
        """
        rank, kinds = len(value.shape), tuple(self.device.kinds)
        first, is_map = self.used, self.device.kinds[self.used] == "map"
        self.used += 1 if is_map else 3 + 2 * rank
        again = kinds[self.used : self.used + 2 * rank] == ("i32",) * rank + ("i64",) * rank
        indices = [self.device.indices[self.used]] if again else []
        self.used += 2 * rank * again
        self.maps += is_map
        if not is_map:
            indices.append(self.device.indices[first] + 1)
        if source is None:
            return
        parts = (value.shape, value.strides, value.block_shape)
        tuples = [int(isinstance(part, tuple)) for part in parts]
        if not is_descriptor(value) or not all(type(part) is list or isinstance(part, tuple) for part in parts):
            raise Undescribable
        base, shape, strides, block, padding, rounds = range(self.inside(len(MEMBERS)), self.objects)
        members = self.reserve(1 + len(MEMBERS), value.block_shape)
        fields = {
            "low": self.reserve(native.KNOWN_LINE * native.KNOWN_LINES),
            "mode": rank,
            "other": native.OBJECTS + base,
        }
        is_kept = bool(indices) and has_versions() and all(type(size) is int for size in value.block_shape)
        slot = self.slots if is_map else self.device.indices[first]
        if is_kept:
            skipped = 6 + 2 * len(indices)  # itself, members, block, two constants, `guard_remember`; sizes and strides
            second = indices[1] if len(indices) > 1 else 0
            self.add("guard_known", value, None, source, slot=indices[0], stored=skipped, mask=second, **fields)
        self.add("guard_members", value, MEMBERS, source, low=members, slot=native.OBJECTS + base)
        self.add("guard_equal", value.block_shape, type(value.block_shape)(value.block_shape), block)
        self.constant(value.padding, padding)
        self.constant(value.round_f32_to_tf32, rounds)
        for at in indices:
            low, high = INT_RANGES["i32" if again else "i64"]
            kind = {"mode": rank, "stored": tuples[0]}
            self.add("guard_sizes", value.shape, None, shape, low=low, high=high, slot=at, **kind)
            low, high = ANY_INT
            kind = {"mode": rank, "stored": tuples[1]}
            self.add("guard_sizes", value.strides, None, strides, low=low, high=high, slot=at + rank, **kind)
            self.integers += enumerate((*value.shape, *value.strides), at)
        if is_kept:
            bits = sum(bit << index for index, bit in enumerate(tuples))
            alive = [None] * native.KNOWN_LINES
            self.add("guard_remember", value, alive, source, high=members, slot=indices[0], stored=bits, **fields)
        # last: it may run Python code, after which the other members may be gone
        self.memory(value.base, native.MULTIPLE | native.OTHER, slot, base, first)
        if is_map:
            lines = self.reserve(native.MAP_LINE * native.MAP_LINES)
            fields = {"low": lines, "mode": 2 * rank, "slot": self.device.indices[first], "other": slot}
            self.add("guard_map", value, self.device.maps[self.maps - 1], source, **fields)
            self.slots += 1

    def reserve(self, words: int, constants: Sequence[int] = ()) -> int:
        """Allocate 64-bit words that a guard writes to, followed by constants; return the address."""
        memory = (ctypes.c_int64 * (words + len(constants)))(*[0] * words, *constants)
        self.kept.append(memory)
        return ctypes.addressof(memory)


def note_class(guard: str, value: object, function: int) -> None:
    """Register the class of an array or a tensor, so that keys contain its element type and alignment."""
    cls = type(value)
    if guard == "guard_array":
        set_context("array", id(cls))
    elif guard == "guard_dlpack":
        set_context("parameter" if cls.__name__ == "Parameter" else "tensor", id(cls))
        set_context("describe", function)


def is_describable(value: object, memory_of: Callable[[object], Memory | None]) -> bool:
    """Return True if there may be a guard for a value: a cheap test before all others."""
    cls = type(value)
    if cls in CONSTANTS:
        return True
    if isinstance(value, tuple):
        return all(is_describable(item, memory_of) for item in value)
    return is_descriptor(value) or memory_of(value) is not None


def tensor_memory(value: Any) -> Memory | None:
    """Return the guard of a torch tensor, if its class is torch's own."""
    if class_name(type(value)) not in ("torch.Tensor", "torch.nn.parameter.Parameter"):
        return None
    if value.device.type not in ("cpu", "cuda") or not value.numel() or value.is_neg():
        return None
    if (api := exchange_api(type(value))) is None:
        return "guard_tensor", 0, 1, (value.dtype, value.device)
    if (found := described(value, api)) is None:
        return None
    return "guard_dlpack", element_bits(found), api.describe, type(value).is_neg


def element_bits(tensor: Tensor) -> int:
    """Return the element type, lanes and device of a tensor in 64 bits."""
    element = tensor.code | tensor.bits << 8 | tensor.lanes << 16
    bits = element | tensor.kind << 32 | tensor.device << 48
    return bits - (1 << 64) if bits >> 63 else bits


@cache
def class_name(cls: type) -> str:
    """Return the full name, ``numpy.ndarray``; it identifies a class whose library may not be loaded."""
    return f"{cls.__module__}.{cls.__qualname__}"


def is_array_class(cls: type) -> bool:
    return class_name(cls) == "numpy.ndarray"


def is_descriptor(value: object) -> bool:
    """Return True for a host descriptor of exactly our class, which has no overridden members."""
    return class_name(type(value)) == "tilework.tools.tensor_descriptor.TensorDescriptor"
