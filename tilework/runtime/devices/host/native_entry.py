"""Entries of the native launcher: what a launch must look like to run without Python code, and what it runs.

Described are launches of kernels in machine code whose arguments are NumPy arrays, torch tensors in host memory, numbers, and
constants that cannot change. `kernel[grid]` (`launch/native_launch.py`) and `kernel.run` (`native_run.py`) make entries.
"""

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tilework.language import core as tl
from tilework.runtime.devices.host.native_machine import address, fill_places
from tilework.runtime.devices.host.tensor_places import tensor_facts
from tilework.targets.cpu.run import launcher_layout as native
from tilework.targets.cpu.run.run_grid import fault_error

MOST_ENTRIES = 8
MOST_DESCRIPTIONS = 200  # of one kernel: one that needs more is not launched alike

INT_RANGES = {"i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1)}
ANY_INT = (-(2**63), 2**63 - 1)
INT_KINDS = ("i64", "i32", "i16", "i8")
COMPARED = {int: native.SAME_INT, str: native.SAME_TEXT, float: native.SAME_FLOAT}
CONSTANTS = frozenset({int, bool, float, str, type(None), tl.dtype})

Chosen = tuple[native.Guard, Any, Any]  # the guard, the class, and the object that it expects


def replaces(entry: tuple[Any, ...], old: tuple[Any, ...]) -> bool:
    """Whether an entry is for the same calls as an old one, which something watched has made useless."""
    same = (native.KERNEL, native.KEYWORDS, native.TYPES)
    return all(entry[index] is old[index] or entry[index] == old[index] for index in same)


def entry_of(
    run: Any,
    function: Any,
    result: Any,
    positional: int,
    keywords: tuple[str, ...],
    chosen: Sequence[Chosen],
    slots: bytes,
    watched: tuple[Any, ...],
    contents: tuple[Any, ...],
    names: tuple[str | None, ...],
    meta: dict[str, Any],
) -> tuple[Any, ...]:
    """An entry as `targets/cpu/run/launcher.py` reads it; a launch that fits it runs `function` and gives `result`."""
    from tilework.targets.cpu.run.pool import POOL  # lazily: only launches on the host need it
    from tilework.targets.cpu.run.run_grid import thread_count

    interface, cost = run.interface, ctypes.c_double(function.program_ns or 0.0)
    code, work = (ctypes.cast(part, ctypes.c_void_p).value or 0 for part in (function.range, function.work))
    record = native.Record(
        positional, len(keywords), code, interface.arena, ctypes.addressof(cost), work, thread_count(), function.has_forks,
        ctypes.addressof(POOL.words), interface.waits, function.name_address, tuple(guard for guard, _, _ in chosen), slots,
    )  # fmt: skip
    return (
        result,
        keywords,
        watched,
        contents,
        tuple(cls for _, cls, _ in chosen),
        tuple(expected for _, _, expected in chosen),
        record.pack(),
        fault_raiser(interface),
        shared_runner(function, run, cost),
        names,
        meta,
    )


def is_describable(value: Any) -> bool:
    """Whether there is a guard for a value; asked first, because it is cheap."""
    return type(value) in CONSTANTS or is_array_class(type(value)) or is_tensor(value)


def constant_guard(value: Any) -> Chosen | None:
    """A constant that cannot change."""
    cls = type(value)
    if cls not in CONSTANTS:
        return None
    mode, low = COMPARED.get(cls, native.SAME), 0
    if cls is int:
        low = value
        if not -(2**63) <= value < 2**63:
            mode, low = native.SAME, 0
    elif cls is float:
        low = struct.unpack("<q", struct.pack("<d", value))[0]
    return native.Guard(address("guard_constant"), low, 0, mode), cls, value


def value_guard(param: Any, value: Any, spec: str, key: Any, kind: str, slot: int, stored: int) -> Chosen | None:
    """An argument that goes into a slot; `stored` is how memory that the kernel writes to must be aligned, or 0."""
    cls, mask = type(value), max(stored - 1, 0)
    if kind == "ptr" and (is_array_class(cls) or is_tensor(value)):
        mode = native.MULTIPLE if key == "D" else native.OTHER
        if key is None or param.do_not_specialize_on_alignment:
            mode = native.MULTIPLE | native.OTHER
        if not is_array_class(cls) and (facts := tensor_facts(value)) is not None:
            fill_places()
            return native.Guard(address("guard_fields"), *facts, mode, slot, mask=mask), cls, value.dtype
        name = "guard_array" if is_array_class(cls) else "guard_tensor"
        return native.Guard(address(name), 0, 0, mode, slot, stored > 0, mask), cls, value.dtype
    if cls is int and kind in INT_KINDS:
        forced = bool(param.annotation_type)
        if not forced and spec not in INT_RANGES:
            return None
        mode = {"D": native.MULTIPLE, "": native.OTHER, "1": native.ONE}.get(key, 7)
        if not forced and key is not None and param.do_not_specialize_on_alignment:
            mode = native.MULTIPLE | native.OTHER
        low, high = ANY_INT if forced else INT_RANGES[spec]
        if not forced and spec == "i64":
            return i64_guard(value, mode, slot)
        return native.Guard(address("guard_int"), low, high, mode, slot), cls, None
    if cls is float and kind in ("f32", "f64"):
        return native.Guard(address("guard_float"), 0, 0, int(kind == "f64"), slot), cls, None
    if cls is bool and kind == "i1":
        return native.Guard(address("guard_bool"), 0, 0, 0, slot), cls, True
    return None


def i64_guard(value: int, mode: int, slot: int) -> Chosen:
    """An int of 64 bits is one beyond 32 bits, on the same side of zero as the one that was seen."""
    low, high = (2**31, 2**63 - 1) if value > 0 else (-(2**63), -(2**31) - 1)
    return native.Guard(address("guard_int"), low, high, mode, slot), int, None


def fault_raiser(interface: Any) -> Callable[..., None]:
    """What the machine code calls when a program has failed."""

    def fail(code: int, program: int, x: int, y: int, z: int) -> None:
        raise fault_error(interface, (x, y, z), code, program)

    return fail


def shared_runner(function: Any, run: Any, cost: Any) -> Callable[..., None]:
    """What the machine code calls for a grid that may need several threads."""
    interface, launch = run.interface, run.run

    def share(slots: bytes, x: int, y: int, z: int) -> None:
        function.program_ns = cost.value or None
        launch(function, interface, slots, (x, y, z))
        cost.value = function.program_ns or 0.0

    return share


@cache
def is_tensor_class(cls: type) -> bool:
    return f"{cls.__module__}.{cls.__qualname__}" in ("torch.Tensor", "torch.nn.parameter.Parameter")


def is_tensor(value: Any) -> bool:
    """A torch tensor in host memory, of a class whose attributes are torch's own."""
    return is_tensor_class(type(value)) and value.is_cpu is True


@cache
def is_array_class(cls: type) -> bool:
    return f"{cls.__module__}.{cls.__qualname__}" == "numpy.ndarray"
