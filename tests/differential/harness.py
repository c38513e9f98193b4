"""One kernel, the same inputs, every device that is available: the results must agree.

    @jit
    def product(a, b):
        return a * b

    agree(product, sample("fp16", (4, 8), seed), sample("i32", (8,), seed))

`agree` loads its inputs in a kernel, calls the function on the blocks, and stores whatever it returns; the types of the
results are compared too. `launch` runs a whole kernel. A device is a function in `DEVICES`; one is added by adding it
there. Integers and data that only moves must be equal bit by bit on all of them. A test of floats says how far they may
be apart: elementary functions of f32 are within 2 ulp of the exact value on the CPU, so within 4 of another device's.

The code for GPUs runs in the PTX emulator. GPUs divide and exponentiate approximately, so floats that are not exact get
more room there.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tilework.language as tl
from tests.differential.devices import (
    CE,
    CODE,
    DEVICES,
    HOSTS,
    NUMPY,
    ROOM,
    Array,
    Device,
    HostDescriptor,
    Refused,
    run_interpreter,
)
from tilework.language.function import JITFunction, jit


def launch(
    kernel: JITFunction,
    args: Mapping[str, Any],
    constants: Mapping[str, Any] | None = None,
    grid: Sequence[int] = (1,),
    *,
    ulps: int = 0,
    rtol: float = 0.0,
    atol: float = 0.0,
    devices: Mapping[str, Device] = DEVICES,
) -> dict[str, Any]:
    """Run a kernel on every device and compare all arrays afterwards; the arrays of the first device.

    Descriptors that the host makes are for devices of the host."""
    wanted: dict[str, Any] = {}
    has_descriptors = any(isinstance(value, HostDescriptor) for value in args.values())
    for name, device in (HOSTS if has_descriptors else devices).items():
        own = {key: copied(value) for key, value in args.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            device(kernel, own, constants or {}, grid)
        wanted = wanted or own
        for key, value in wanted.items():
            left, right = (item.base if isinstance(item, HostDescriptor) else item for item in (value, own[key]))
            if isinstance(left, np.ndarray):
                room = ROOM if name == "emulator" and (ulps or rtol or atol) else 0
                compare(left, right, f"{key}: {next(iter(HOSTS))} and {name}", max(ulps, room), rtol, atol)
    return wanted


def copied(value: Any) -> Any:
    if isinstance(value, HostDescriptor):
        return replace(value, base=value.base.copy())
    return value.copy() if isinstance(value, np.ndarray) else value


# Loads and stores around what is tested are built by Python code: visiting them as statements takes longer than all
# else.


@tl.core.builtin
def load_input(pointer: Any, shape: Any, _semantic: Any = None) -> Any:
    lengths = [int(length) for length in shape]
    if not lengths:
        return tl.load(pointer, _semantic=_semantic)
    offsets = tl.arange(0, int(np.prod(lengths)), _semantic=_semantic)
    values = tl.load(pointer.__add__(offsets, _semantic=_semantic), _semantic=_semantic)
    return values if len(lengths) == 1 else tl.reshape(values, lengths, _semantic=_semantic)


@tl.core.builtin
def store_all(out: Any, result: Any, slot: Any, note: Any, first: Any = 0, _semantic: Any = None) -> None:
    """Results are numbered from `first` on; `note` hears of their types."""
    for index, value in enumerate(result if isinstance(result, tl.tuple) else [result], int(first)):
        value = tl.to_tensor(value, _semantic=_semantic)
        note(value, index, _semantic=_semantic)
        position = out.__add__(index * int(slot), _semantic=_semantic)
        pointer = position.to(tl.pointer_type(value.dtype), _semantic=_semantic)
        if value.type.is_block():
            pointer = pointer.__add__(tl.arange(0, value.numel, _semantic=_semantic), _semantic=_semantic)
            value = tl.reshape(value, [value.numel], _semantic=_semantic) if len(value.shape) > 1 else value
        tl.store(pointer, value, _semantic=_semantic)


@jit
def apply1(a, out, FN: CE, SHAPES: CE, PARAMS: CE, SLOT: CE, NOTE: CE):
    store_all(out, FN(load_input(a, SHAPES[0]), *PARAMS), SLOT, NOTE)


@jit
def apply2(a, b, out, FN: CE, SHAPES: CE, PARAMS: CE, SLOT: CE, NOTE: CE):
    x = load_input(a, SHAPES[0])
    store_all(out, FN(x, load_input(b, SHAPES[1]), *PARAMS), SLOT, NOTE)


@jit
def apply3(a, b, c, out, FN: CE, SHAPES: CE, PARAMS: CE, SLOT: CE, NOTE: CE):
    x = load_input(a, SHAPES[0])
    y = load_input(b, SHAPES[1])
    store_all(out, FN(x, y, load_input(c, SHAPES[2]), *PARAMS), SLOT, NOTE)


@jit
def apply4(a, b, c, d, out, FN: CE, SHAPES: CE, PARAMS: CE, SLOT: CE, NOTE: CE):
    x = load_input(a, SHAPES[0])
    y = load_input(b, SHAPES[1])
    z = load_input(c, SHAPES[2])
    store_all(out, FN(x, y, z, load_input(d, SHAPES[3]), *PARAMS), SLOT, NOTE)


@jit
def apply5(a, b, c, d, e, out, FN: CE, SHAPES: CE, PARAMS: CE, SLOT: CE, NOTE: CE):
    x = load_input(a, SHAPES[0])
    y = load_input(b, SHAPES[1])
    z = load_input(c, SHAPES[2])
    w = load_input(d, SHAPES[3])
    store_all(out, FN(x, y, z, w, load_input(e, SHAPES[4]), *PARAMS), SLOT, NOTE)


KERNELS = {1: apply1, 2: apply2, 3: apply3, 4: apply4, 5: apply5}
SLOT, RESULTS = 1 << 10, 16  # 64-bit words for each result, and how many there may be


def agree(
    fn: JITFunction,
    *inputs: Array,
    params: Sequence[Any] = (),
    ulps: int = 0,
    rtol: float = 0.0,
    atol: float = 0.0,
    gpu: tuple[float, float] = (0.0, 0.0),
    emulated: bool = True,
    devices: Mapping[str, Device] | None = None,
) -> list[Array]:
    """``fn(*blocks, *params)`` on every device; its results (one, or those of a tuple) as arrays.

    With all tolerances zero the results must be equal bit by bit (any NaN equals any NaN). `gpu` are the (relative,
    absolute) tolerances of a GPU where it computes less exactly; with `emulated` false it is left out, and `devices`
    chooses others. If one device refuses the program, all must; then `Refused` is raised.
    """
    noted = Noted()
    devices = devices or (DEVICES if emulated else HOSTS)
    outcomes = {name: outcome(device, fn, inputs, params, noted) for name, device in devices.items()}
    (first, wanted), *others = outcomes.items()
    for other, got in others:
        pair = f"{fn.__name__}: {first} and {other}"
        if isinstance(wanted, Refused) or isinstance(got, Refused):
            assert isinstance(wanted, Refused) and isinstance(got, Refused), f"{pair} disagree: {wanted!r}, {got!r}"
            continue
        room = ROOM if ulps or rtol or atol else 0  # what is exact elsewhere is exact on a GPU
        on_gpu = (max(ulps, room), max(rtol, gpu[0]), max(atol, gpu[1]))
        compare_results(wanted, got, pair, on_gpu if other == "emulator" else (ulps, rtol, atol))
    if isinstance(wanted, Refused):
        raise wanted
    return wanted[1]


def compare_results(wanted: Any, got: Any, pair: str, tolerances: tuple[int, float, float]) -> None:
    assert wanted[0] == got[0], f"{pair} give results of types {wanted[0]} and {got[0]}"
    for index, (left, right) in enumerate(zip(wanted[1], got[1], strict=True)):
        compare(left, right, f"result {index} of {pair}", *tolerances)


@dataclass
class Cell:
    """One of many calls that are made in one kernel."""

    fn: JITFunction
    inputs: Sequence[Array]
    params: Sequence[Any] = ()
    gpu: tuple[float, float] = (0.0, 0.0)

    def __str__(self) -> str:
        types = ", ".join(CODE[array.dtype] for array in self.inputs)
        return f"{self.fn.__name__}({types}){[getattr(param, '__name__', param) for param in self.params]}"


@tl.core.builtin
def load_at(memory: Any, position: Any, _semantic: Any = None) -> Any:
    pointer = memory.__add__(int(position[0]), _semantic=_semantic).to(
        tl.pointer_type(position[1]), _semantic=_semantic
    )
    return load_input(pointer, position[2], _semantic=_semantic)


@jit
def apply_all(memory, out, CELLS: CE, SLOT: CE, NOTE: CE):
    for number in tl.static_range(len(CELLS)):  # pyright: ignore[reportArgumentType]  a tuple at compile time
        inputs = [load_at(memory, OFFSET) for OFFSET in CELLS[number][1]]
        store_all(out, CELLS[number][0](*inputs, *CELLS[number][2]), SLOT, NOTE, number * CELL_RESULTS)


CELL_RESULTS = tl.constexpr(8)


def agree_in_one(cells: Sequence[Cell], *, devices: Mapping[str, Device] = DEVICES, **tolerances: Any) -> None:
    """`agree` for all `cells`, in one kernel. If that is refused, `agree` for each alone, and all that work in one
    kernel."""
    try:
        return agree_in_kernel(cells, devices, **tolerances)
    except Refused:
        pass
    good: list[Cell] = []
    for cell in cells:
        if not isinstance(outcome(run_interpreter, cell.fn, cell.inputs, cell.params), Refused):
            good.append(cell)
            continue
        try:
            agree(cell.fn, *cell.inputs, params=cell.params, devices=devices)
        except Refused:
            continue
    assert len(good) < len(cells), f"together they are refused, alone they are not: {[str(cell) for cell in cells]}"
    if good:
        agree_in_kernel(good, devices, **tolerances)


def agree_in_kernel(
    cells: Sequence[Cell], devices: Mapping[str, Device], ulps: int = 0, rtol: float = 0.0, atol: float = 0.0
) -> None:
    start, reported_cells, memory = 0, [], []
    for cell in cells:
        indices = []
        for array in cell.inputs:
            data = np.ascontiguousarray(array).tobytes()
            indices.append((start, tl.str_to_ty(CODE[array.dtype]), array.shape))
            memory.append(data.ljust(-(-len(data) // 16) * 16, b"\0"))
            start += len(memory[-1])
        reported_cells.append((cell.fn, tuple(indices), tuple(cell.params)))
    noted, per_cell = Noted(), CELL_RESULTS.value
    slot = max((array.size for cell in cells for array in cell.inputs), default=0)
    noted.constants = {"CELLS": tuple(reported_cells), "SLOT": slot, "NOTE": noted.note}
    wanted: dict[int, Any] = {}
    for name, device in devices.items():
        inputs = np.frombuffer(b"".join(memory), np.uint8).copy()
        out = np.zeros(slot * per_cell * len(cells), np.uint64)
        before, noted.types = noted.types, {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            device(apply_all, {"memory": inputs, "out": out}, noted.constants, (1,))
        noted.types = noted.types or before
        results = results_of(noted.types, out, slot)
        for number, cell in enumerate(cells):
            own = [result for index, result in results.items() if index // per_cell == number]
            got = [type for type, _ in own], [array for _, array in own]
            room = ROOM if ulps or rtol or atol else 0
            on_gpu = (max(ulps, room), max(rtol, cell.gpu[0]), max(atol, cell.gpu[1]))
            pair = f"{cell}: {next(iter(devices))} and {name}"
            compare_results(
                wanted.setdefault(number, got), got, pair, on_gpu if name == "emulator" else (ulps, rtol, atol)
            )


class Noted:
    """The types of results, as kernels tell them while they are compiled or interpreted."""

    def __init__(self) -> None:
        self.types: dict[int, Any] = {}
        self.constants: dict[str, Any] = {}  # of the kernel

        @tl.core.builtin
        def note(value: Any, index: Any, _semantic: Any = None) -> None:
            self.types[int(index)] = value.type

        self.note = note


def outcome(
    device: Device, fn: JITFunction, inputs: Sequence[Array], params: Sequence[Any], noted: Noted | None = None
) -> Any:
    """(types, arrays) of the results on one device, or `Refused`. With the same `noted`, devices may share a module."""
    noted = noted or Noted()
    before, noted.types = noted.types, {}
    flat = [np.ascontiguousarray(array).reshape(-1) for array in inputs]
    largest = max(array.size for array in inputs)
    slot = SLOT if largest <= SLOT else 4 * largest
    out = np.zeros(slot * RESULTS, np.uint64)
    noted.constants = noted.constants or {
        **{"FN": fn, "SHAPES": tuple(array.shape for array in inputs)},
        **{"PARAMS": tuple(params), "SLOT": slot, "NOTE": noted.note},
    }
    names = "abcde"[: len(flat)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            device(KERNELS[len(flat)], {**dict(zip(names, flat, strict=True)), "out": out}, noted.constants, (1,))
        except Refused as refused:
            return refused
    noted.types = noted.types or before  # nothing was compiled: the module is that of the device before
    results = results_of(noted.types, out, slot)
    return [type for type, _ in results.values()], [array for _, array in results.values()]


def results_of(types: Mapping[int, Any], out: Array, slot: int) -> dict[int, tuple[str, Array]]:
    """The types and values of results, by their number."""
    results = {}
    for index, type in types.items():
        numpy = np.dtype(NUMPY[type.scalar.mangle()])
        shape = tuple(type.shape.values) if type.is_block() else ()
        size = int(np.prod(shape, dtype=int))
        array = out[index * slot : (index + 1) * slot].view(numpy)[:size].reshape(shape).copy()
        results[index] = (str(type), array)
    return results


def compare(left: Array, right: Array, what: str, ulps: int = 0, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Equal bit by bit, or within `ulps` units in the last place, or within ``atol + rtol * |left|``."""
    assert left.dtype == right.dtype and left.shape == right.shape, f"{what}: {left.dtype} {right.dtype}"
    a, b = bits(left), bits(right)
    good = a == b
    if left.dtype.kind not in "biu":
        with np.errstate(invalid="ignore"):  # signalling NaNs
            wide, other = left.astype(np.float64), right.astype(np.float64)
        good |= np.isnan(wide) & np.isnan(other)
        if ulps:
            good |= np.abs(ordered(left) - ordered(right)) <= ulps
        if rtol or atol:
            with np.errstate(all="ignore"):
                good |= np.abs(wide - other) <= atol + rtol * np.abs(wide)
    if not good.all():
        where = tuple(np.argwhere(~np.atleast_1d(good))[0])
        shown = [np.atleast_1d(array)[where] for array in (left, right)]
        raise AssertionError(
            f"{what} differ at {len(np.argwhere(~np.atleast_1d(good)))} of {left.size} elements, first at"
            f" {tuple(map(int, where))}: {shown[0]!r} and {shown[1]!r}"
        )


def bits(x: Array) -> Array:
    return np.ascontiguousarray(x).view(np.dtype(f"u{x.dtype.itemsize}"))


def ordered(x: Array) -> Array:
    """Bit patterns as integers in the order of the floats, for counting units in the last place."""
    signed = np.ascontiguousarray(x).view(np.dtype(f"i{x.dtype.itemsize}")).astype(object)
    return np.where(signed < 0, -(2 ** (8 * x.dtype.itemsize - 1)) - signed, signed)


def sample(code: str, shape: tuple[int, ...], seed: int, *, special: bool = True) -> Array:
    """Varied values: whole ranges and small numbers of integers; floats of all sizes with infinities, NaN and zeros."""
    random = np.random.default_rng([seed, *code.encode()])
    numpy = np.dtype(NUMPY[code])
    if numpy.kind == "b":
        return random.integers(0, 2, shape).astype(np.bool_)
    if numpy.kind in "iu":
        limits = np.iinfo(numpy)
        whole = random.integers(limits.min, limits.max, shape, numpy, endpoint=True)
        small = random.integers(max(limits.min, -9), 10, shape).astype(numpy)
        return np.where(random.random(shape) < 0.5, whole, small).astype(numpy)
    values = random.normal(size=shape) * np.exp2(random.integers(-6, 6, shape))
    if special:
        extremes = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 65504.0, 3e38, 1e-7, -448.0, 2.0**40])
        values = np.where(random.random(shape) < 0.25, random.choice(extremes, shape), values)
    with np.errstate(all="ignore"):
        return values.astype(np.float32).astype(numpy) if code != "fp64" else values


def nonzero(array: Array) -> Array:
    """`array` with 1 in place of 0, and of -1, whose quotients may not exist."""
    zero = array == 0
    if array.dtype.kind == "i":
        zero |= array == -1
    return np.where(zero, np.ones_like(array), array)
