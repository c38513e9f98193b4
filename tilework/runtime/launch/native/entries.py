"""Entries of the native launcher: what a launch must look like to run without Python code, and what it runs.

Described are launches whose arguments are memory that their device can read without asking Python (arrays, tensors),
numbers, constants that cannot change, tuples and host descriptors of these. `kernel[grid]` (`kernel_launch.py`) and
`kernel.run` (`launch/native/repeated_launch.py`) make entries; what a device adds is a `Native`, which its launcher
gives.
"""

import ctypes
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tilework.language import core as tl
from tilework.runtime.devices.dlpack import Tensor, described, exchange_api
from tilework.runtime.launch.facts import ITEM, MULTIPLE, ONE, WIDTH
from tilework.runtime.launch.native import layout as native
from tilework.runtime.launch.native.launch_log import Logged, last_launch
from tilework.runtime.launch.native.machine import address, has_versions, make_key, set_context, watch
from tilework.runtime.launch.python.specialize import LIMIT, small_address

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
MEMBERS = ("base", "shape", "strides", "block_shape", "padding")  # of a host descriptor

Entry = tuple[Any, ...]  # what the machine code reads: `layout.KERNEL` to `layout.KEPT`
Memory = tuple[str, int, int, Any]  # a guard, its two numbers, and the object that it expects


@dataclass(frozen=True)
class Native:
    """The device's part of an entry.

    `kinds` are the parameters of the kernel and `places` their slots, `slots` the values that the Python path would
    pass. `run` and `ready` name routines of the machine code, `words` are their part of the record, `fault` and `call`
    the Python that they call. `memory_of` tells how memory is recognised, None for what the device cannot read;
    `stored` are the parameters that the kernel writes through, and how they must be aligned; `maps` are functions from
    descriptors to their tensor maps. In `apart` are pairs of parameters: a launch fits if none of them overlaps, or
    with `overlaps` if one does.
    """

    kinds: Sequence[str]
    places: Sequence[int]
    slots: bytes
    run: str
    words: bytes
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


@dataclass(frozen=True)
class HiddenMaps:
    """Hidden tensor maps, for the slots from `slot` on: `find` makes them of what is in the slots of `numbers` and of
    the grid.

    They are the same for numbers that have the same bits in `masks`, but for their addresses: a map has that from the
    slot of `bases` if it names one, else as it was found. Where `find` gives None the entry does not fit. If there are
    no `bases`, that is where it does.
    """

    numbers: Sequence[int]
    masks: Sequence[int]
    slot: int
    bases: Sequence[int | None]
    find: Callable[[bytes], bytes | None]


def integer_mode(facts: int, value: int) -> int:
    """The integers that a launch cannot tell from this one, as a set of bits for `guard_int`."""
    if not facts & ONE:
        return native.ONE | native.MULTIPLE | native.OTHER
    if value == 1:
        return native.ONE
    if not facts & MULTIPLE:
        return native.MULTIPLE | native.OTHER
    return native.OTHER if value % 16 else native.MULTIPLE


class Undescribable(Exception):
    """No guard can be written for a launch."""


def is_useful(entry: Entry) -> bool:
    """Return True if what an entry watches is unchanged."""
    watched = entry[native.KEPT][-1]
    triples = zip(watched[::3], watched[1::3], watched[2::3], strict=True)
    return all(holder.get(key, native.MISSING) is value for holder, key, value in triples)


class Entries:
    """The entries of a kernel, in the list `state` that the machine code reads: one by one while they are few, else by
    key.

    `python` is called for a launch that fits none of them. `facts` are those of the kernel's parameters, by name.
    """

    def __init__(self, python: Callable[..., object], facts: Mapping[str, int]) -> None:
        self.by_key: dict[int, list[Entry]] = {}
        self.index = self.by_key, bytearray(facts.values()), dict(facts)
        self.state: list[Any] = [python, None]
        self.key, self.made = make_key(self.index), Counter[int]()

    def is_wanted(self, key: int) -> bool:
        """Return True if a launch that fitted no entry is worth an entry: not if one after the other was of no use."""
        return self.made[key] < TRIES or self.made[key] % TRIED_AGAIN == 0

    def add(self, key: int, made: tuple[object, ...] | None) -> None:
        """Add the entry of a launch with this key, if there is one; those that nothing fits any more go, and the
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
    """An entry as `runtime/launch/native/code/launcher.py` reads it; a launch that fits it runs on the device and gives
    `result`.

    `watched` are dictionaries, keys and values, three by three; `empties` are lists that have to stay empty.
    """
    watched = (*watched, *device.watched)
    groups, kept = grouped(watched)
    ready = address(device.ready) if device.ready else 0
    extent, work = last_launch(result) or (None, None)
    logged = Logged(result, work)
    numbers = (value for _, value in guards.numbers)
    mark = native.mark_of(extent, numbers) if extent is not None else native.ANY_NUMBERS
    record = native.Record(
        positional, len(keywords), address(device.run), ready, device.words, tuple(guards.found), device.slots, groups,
        tuple(map(id, empties)), logged.identity, mark, tuple(slot for slot, _ in guards.numbers),
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
        self.numbers: list[tuple[int, int]] = []  # slots of integers, and what is in them

    def add(self, name: str, value: object, expected: object, source: int, **numbers: int) -> None:
        cls = type(value)
        self.kept += [cls, expected]
        numbers |= {"source": source, "cls": id(cls), "expected": id(expected)}
        self.roots.append(source if source < self.given else self.roots[-1])
        self.found.append(native.Guard(address(name), **numbers))

    def inside(self, count: int) -> int:
        """Reserve slots for objects that a guard finds; the index of the first."""
        first, self.objects = self.objects, self.objects + count
        return first

    def finish(self) -> None:
        """All parameters have their guards, and there is room for everything."""
        if self.used != len(self.device.kinds) or self.slots > native.MOST_SLOTS or self.objects > native.MOST_OBJECTS:
            raise Undescribable
        if (hidden := self.device.hidden_maps) is not None:
            self.find_hidden_maps(hidden)
        if self.device.apart:
            self.keep_apart(self.device.apart)

    def keep_apart(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Last of all: compare the ends of what the other guards have found. Any object will do."""
        if self.ended != self.ends.keys():
            raise Undescribable
        table = self.room(0, [self.ends[parameter] for pair in pairs for parameter in pair])
        facts = {"function": address("guard_apart"), "low": table, "mode": len(pairs), "other": 0}
        self.roots.append(-1)
        self.found.append(self.found[0]._replace(**facts, stored=int(self.device.overlaps)))

    def find_hidden_maps(self, hidden: HiddenMaps) -> None:
        """Last of all: the maps depend on what the other guards have found. Any object will do, and there is one: a
        pointer.
        """
        if not self.found or len(hidden.numbers) > native.MOST_NUMBERS:
            raise Undescribable
        first, count, words = self.found[0], len(hidden.numbers), native.MAP_WORDS * len(hidden.bases)
        bases = [native.AS_FOUND if base is None else base for base in hidden.bases]
        room = self.room(native.HIDDEN_LINES * (1 + count + 3 + words), [*hidden.numbers, *hidden.masks, *bases])
        self.kept.append(hidden.find)
        self.roots.append(-1)
        self.found.append(
            first._replace(
                function=address("guard_hidden_maps"),
                low=room,
                high=words,
                mode=count,
                slot=hidden.slot,
                stored=native.JUSTIFIED if bases else native.REFUSED,
                expected=id(hidden.find),
            )
        )

    def constant(self, value: Any, source: int) -> None:
        """A constant that cannot change."""
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
        """A tuple of as many items; where they are in the frame."""
        first = self.inside(len(value))
        self.add("guard_tuple", value, None, source, mode=len(value), slot=native.OBJECTS + first)
        return first

    def argument(self, facts: int, type: Any, spec: Any, key: Any, value: Any, source: int | None) -> None:
        """One argument, or an item of a tuple, and which facts about it count (`facts.py`).

        Without a source it is a default, and only its parameters are counted.
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
                self.number_or_memory(facts, spec, key, value, source, self.used - 1)

    def number_or_memory(self, facts: int, spec: str, key: Any, value: Any, source: int, parameter: int) -> None:
        cls, kind, slot = type(value), self.device.kinds[parameter], self.device.places[parameter]
        if kind == "ptr":
            mode = native.MULTIPLE if key is not None and "D" in key else native.OTHER
            if not facts & MULTIPLE:
                mode = native.MULTIPLE | native.OTHER
            guard = self.memory(value, mode, slot, source, parameter)
            if key is not None and "S" in key and guard == "guard_dlpack":
                self.add("guard_small", value, None, source, high=LIMIT, slot=slot)
            elif key is not None and "S" in key:
                self.add("guard_asked", value, small_address, source, mode=mode, slot=slot)
        elif cls is int and kind in INT_KINDS:
            if facts & WIDTH and spec not in INT_RANGES:
                raise Undescribable
            mode = integer_mode(facts, value)
            low, high = INT_RANGES[spec] if facts & WIDTH else ANY_INT
            if facts & WIDTH and spec == "i64":  # beyond 32 bits, on the same side of zero as the one that was seen
                low, high = (2**31, 2**63 - 1) if value > 0 else (-(2**63), -(2**31) - 1)
            self.add("guard_int", value, None, source, low=low, high=high, mode=mode, slot=slot)
            self.numbers.append((slot, value))
        elif cls is float and kind in ("f32", "f64"):
            self.add("guard_float", value, None, source, mode=int(kind == "f64"), slot=slot)
        elif cls is float and kind in ("f16", "bf16"):
            from tilework.runtime.devices.host.pack import HALF_BITS  # lazily: it loads NumPy

            self.add("guard_asked", value, HALF_BITS[kind], source, mode=native.MULTIPLE | native.OTHER, slot=slot)
        elif cls is bool and kind == "i1":
            self.add("guard_bool", value, True, source, slot=slot)
            self.numbers.append((slot, int(value)))
        else:
            raise Undescribable

    def memory(self, value: object, mode: int, slot: int, source: int, parameter: int) -> str:
        """Memory of a parameter, whose address goes into a slot. The guard."""
        stored = self.device.stored.get(parameter, 0)  # how memory that the kernel writes to must be aligned, or 0
        if (found := self.device.memory_of(value)) is None:
            raise Undescribable
        name, low, high, expected = found
        note_class(name, value, high)
        numbers = {"stored": int(stored > 0), "mask": max(stored - 1, 0), "other": self.ends.get(parameter, 0)}
        self.add(name, value, expected, source, low=low, high=high, mode=mode, slot=slot, **numbers)
        self.ended |= self.ends.keys() & {parameter}
        return name

    def descriptor(self, value: Any, source: int | None) -> None:
        """A host descriptor: a tensor map or a pointer, sizes, strides and "pad with NaN"; and once more sizes and
        strides.
        """
        rank, kinds = len(value.shape), tuple(self.device.kinds)
        first, is_map = self.used, self.device.kinds[self.used] == "map"
        self.used += 1 if is_map else 2 + 2 * rank
        again = kinds[self.used : self.used + 2 * rank] == ("i32",) * rank + ("i64",) * rank
        places = [self.device.places[self.used]] if again else []
        self.used += 2 * rank * again
        self.maps += is_map
        if not is_map:
            places.append(self.device.places[first] + 1)
        if source is None:
            return
        parts = (value.shape, value.strides, value.block_shape)
        tuples = [int(isinstance(part, tuple)) for part in parts]
        if not is_descriptor(value) or not all(type(part) is list or isinstance(part, tuple) for part in parts):
            raise Undescribable
        base, shape, strides, block, padding = range(self.inside(5), self.objects)
        members = self.room(1 + len(MEMBERS), value.block_shape)
        numbers = {
            "low": self.room(native.KNOWN_LINE * native.KNOWN_LINES),
            "mode": rank,
            "other": native.OBJECTS + base,
        }
        is_kept = bool(places) and has_versions() and all(type(number) is int for number in value.block_shape)
        slot = self.slots if is_map else self.device.places[first]
        if is_kept:
            skipped = 5 + 2 * len(places)
            second = places[1] if len(places) > 1 else 0
            self.add("guard_known", value, None, source, slot=places[0], stored=skipped, mask=second, **numbers)
        self.add("guard_members", value, MEMBERS, source, low=members, slot=native.OBJECTS + base)
        self.add("guard_equal", value.block_shape, type(value.block_shape)(value.block_shape), block)
        self.constant(value.padding, padding)
        for place in places:
            low, high = INT_RANGES["i32" if again else "i64"]
            kind = {"mode": rank, "stored": tuples[0]}
            self.add("guard_sizes", value.shape, None, shape, low=low, high=high, slot=place, **kind)
            low, high = ANY_INT
            kind = {"mode": rank, "stored": tuples[1]}
            self.add("guard_sizes", value.strides, None, strides, low=low, high=high, slot=place + rank, **kind)
            self.numbers += enumerate((*value.shape, *value.strides), place)
        if is_kept:
            bits = sum(bit << index for index, bit in enumerate(tuples))
            alive = [None] * native.KNOWN_LINES
            self.add("guard_remember", value, alive, source, high=members, slot=places[0], stored=bits, **numbers)
        # last: it may run Python code, after which the other members may be gone
        self.memory(value.base, native.MULTIPLE | native.OTHER, slot, base, first)
        if is_map:
            lines = self.room(native.MAP_LINE * native.MAP_LINES)
            numbers = {"low": lines, "mode": 2 * rank, "slot": self.device.places[first], "other": slot}
            self.add("guard_map", value, self.device.maps[self.maps - 1], source, **numbers)
            self.slots += 1

    def room(self, words: int, numbers: Sequence[int] = ()) -> int:
        """The address of words that a guard remembers something in, and of numbers behind them."""
        room = (ctypes.c_int64 * (words + len(numbers)))(*[0] * words, *numbers)
        self.kept.append(room)
        return ctypes.addressof(room)


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
    if issubclass(cls, tuple):
        return all(is_describable(item, memory_of) for item in value)
    return is_descriptor(value) or memory_of(value) is not None


def tensor_memory(value: Any) -> Memory | None:
    """A torch tensor, of a class whose attributes are torch's own."""
    if class_name(type(value)) not in ("torch.Tensor", "torch.nn.parameter.Parameter"):
        return None
    if value.device.type not in ("cpu", "cuda") or not value.numel() or value.is_neg():
        return None
    if (api := exchange_api(type(value))) is None:
        return "guard_tensor", 0, 1, (value.dtype, value.device)
    if (found := described(value, api)) is None:
        return None
    return "guard_dlpack", element_word(found), api.describe, type(value).is_neg


def element_word(tensor: Tensor) -> int:
    """Type, lanes and device of a tensor in one word."""
    element = tensor.code | tensor.bits << 8 | tensor.lanes << 16
    word = element | tensor.kind << 32 | tensor.device << 48
    return word - (1 << 64) if word >> 63 else word


@cache
def class_name(cls: type) -> str:
    """``numpy.ndarray``: by its name a class is known whose library may not be loaded."""
    return f"{cls.__module__}.{cls.__qualname__}"


def is_array_class(cls: type) -> bool:
    return class_name(cls) == "numpy.ndarray"


def is_descriptor(value: object) -> bool:
    """A host descriptor of exactly our class, whose members are what they seem to be."""
    return class_name(type(value)) == "tilework.tools.tensor_descriptor.TensorDescriptor"
