"""One kernel, the same inputs, every device that is available: the results must agree.

    @jit
    def product(a, b):
        return a * b

    agree(product, sample("fp16", (4, 8), seed), sample("i32", (8,), seed))

`agree` loads its inputs in a kernel, calls the function on the blocks, and stores whatever it returns; the types of the
results are compared too. `launch` runs a whole kernel. A device is a function in `DEVICES`; one is added by adding it
there. Integers and data that only moves must be equal bit by bit on all of them. A test of floats says how far they may
be apart: elementary functions of f32 are within 2 ulp of the exact value on the CPU, so within 4 of another device's.

The code for GPUs runs in the PTX emulator. GPUs divide and exponentiate approximately, so floats that are not exact get more
room there.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp

import tilework.language as tl
from tilework.errors import CompilationError, InterpreterError, PassError
from tilework.frontend.generator import compile_to_ttir
from tilework.frontend.options import FrontendOptions
from tilework.ir.printer import print_module
from tilework.language.function import JITFunction, jit
from tilework.oracles.emulator.device import Device as GpuDevice
from tilework.oracles.evaluator import evaluate
from tilework.oracles.interpreter import InterpretedFunction
from tilework.runtime.devices.host.pack import Packer, packer
from tilework.target import Target
from tilework.targets.cpu.pipeline import llvm_text, object_code, tile_loops
from tilework.targets.cpu.run import run_grid as driver
from tilework.targets.cpu.run.interface import Interface
from tilework.targets.cpu.run.library import NativeKernel, load
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.lower.emit import emit_module
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.targets.nvidia.ptx import PtxSettings, to_ptx
from tilework.transforms.pipelines import ttir_pipeline
from tilework.transforms.registry import parse_pipeline, run_pipeline

Array = np.ndarray[Any, Any]

NUMPY: dict[str, Any] = {
    **{"u1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8},
    **{"u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "fp16": np.float16, "bf16": ml_dtypes.bfloat16},
    **{"fp32": np.float32, "fp64": np.float64, "fp8e5": ml_dtypes.float8_e5m2, "fp8e4nv": ml_dtypes.float8_e4m3fn},
}
CODE = {np.dtype(numpy): code for code, numpy in NUMPY.items()}
CE = tl.constexpr
INTS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOATS = ("fp16", "bf16", "fp32", "fp64")
FP8 = ("fp8e5", "fp8e4nv")


@dataclass
class HostDescriptor:
    """A tensor descriptor made by the host, as the launch interface takes it."""

    base: Array
    block_shape: Sequence[int]
    padding: str = "zero"

    @property
    def shape(self) -> Sequence[int]:
        return self.base.shape

    @property
    def strides(self) -> Sequence[int]:
        return [stride // self.base.itemsize for stride in self.base.strides]


class Refused(Exception):
    """A device does not accept the program; the message is the device's own."""


Device = Callable[[JITFunction, Mapping[str, Any], Mapping[str, Any], Sequence[int]], None]


@cache
def interpreted(kernel: JITFunction) -> InterpretedFunction:
    return InterpretedFunction(kernel.fn)


def run_interpreter(
    kernel: JITFunction, args: Mapping[str, Any], constants: Mapping[str, Any], grid: Sequence[int]
) -> None:
    try:
        interpreted(kernel)[tuple(grid)](**args, **constants)
    except InterpreterError as error:
        raise Refused(str(error)) from error


def run_evaluator(
    kernel: JITFunction, args: Mapping[str, Any], constants: Mapping[str, Any], grid: Sequence[int]
) -> None:
    """The compiled kernel after the pipeline of TTIR, by the evaluator."""
    READY.clear()
    module, signature = unoptimised(kernel, args, constants)
    has_descriptors = any(op.name == "tt.make_tensor_descriptor" for op in module.walk())
    run_pipeline(module, parse_pipeline(",".join(ttir_pipeline(Target.parse("cuda:90")))))
    if not has_descriptors and not any(isinstance(value, HostDescriptor) for value in args.values()):
        READY[:] = [(kernel, signature, told(args, constants), module)]
    evaluate(module, None, [evaluator_argument(args[name]) for name in signature], grid)


def run_cpu(kernel: JITFunction, args: Mapping[str, Any], constants: Mapping[str, Any], grid: Sequence[int]) -> None:
    """The kernel as machine code of this host, from the module that the evaluator has just run if it would be the same."""
    ready = READY.pop() if READY else None
    if ready is not None and ready[0] is kernel and same_values(ready[2], told(args, constants)):
        signature, module, is_optimised = ready[1], ready[3], True
    else:
        (module, signature), is_optimised = unoptimised(kernel, args, constants), False
    native, interface, pack = machine_code(module, tuple(signature.values()), is_optimised=is_optimised)
    x, y, z = (*grid, 1, 1)[:3]
    driver.run(native, interface, pack([args[name] for name in signature]), (x, y, z))


# The last kernel that the evaluator ran, its parameters, what it was compiled for, and its module behind the passes. Those
# for the CPU are the same ones where there are no descriptors (`test_the_cpu_shares_the_passes_of_ttir`).
READY: list[tuple[JITFunction, dict[str, str], dict[str, Any], ModuleOp]] = []


def told(args: Mapping[str, Any], constants: Mapping[str, Any]) -> dict[str, Any]:
    """All that a module depends on, besides its kernel."""
    return {**args, **constants, **{name: signature_of(x) for name, x in args.items() if isinstance(x, np.ndarray)}}


def same_values(left: dict[str, Any], right: dict[str, Any]) -> bool:
    return left.keys() == right.keys() and all(
        value is right[name] or (isinstance(value, str) and value == right[name]) for name, value in left.items()
    )


NATIVE: dict[Any, tuple[NativeKernel, Interface, Packer]] = {}  # examples often differ in their values only


def machine_code(
    module: ModuleOp, signature: tuple[str, ...], fuses: bool = True, is_optimised: bool = False
) -> tuple[NativeKernel, Interface, Packer]:
    """A module before any pass, or behind those of TTIR, to what a launch on the host needs."""
    key = (print_module(module), signature, fuses, is_optimised)
    if key not in NATIVE:
        try:
            if not is_optimised:
                run_pipeline(module, parse_pipeline(",".join(ttir_pipeline(Target.parse("cpu")))))
        except PassError as error:
            raise Refused(str(error)) from error
        text = llvm_text(tile_loops(module), fuses)
        interface = Interface.read(text)
        pack = packer(interface.parameters, signature, interface.stored, interface.name, interface.alignments)
        NATIVE[key] = load(object_code(text), interface.name), interface, pack
    return NATIVE[key]


def unoptimised(
    kernel: JITFunction, args: Mapping[str, Any], constants: Mapping[str, Any], backend: str = "cpu"
) -> tuple[ModuleOp, dict[str, str]]:
    """The module of a kernel before any pass, and the types of the parameters that it has left, in their order."""
    fixed = {name: value for name, value in args.items() if value is None or (type(value) is int and value == 1)}
    given = {name: signature_of(args[name]) for name in kernel.arg_names if name in args and name not in fixed}
    options = FrontendOptions(
        backend_name=backend, arch=90, features=frozenset({"tma"}), default_dot_input_precision="ieee"
    )
    signature = {**given, **dict.fromkeys((*constants, *fixed), "constexpr")}
    try:
        return compile_to_ttir(kernel, signature, {**constants, **fixed}, {}, options), given
    except CompilationError as error:
        raise Refused(innermost(error)) from error


def evaluator_argument(value: Any) -> Any:
    if isinstance(value, HostDescriptor):
        return (value.base, value.shape, value.strides, *(["nan"] if value.padding == "nan" else []))
    return value


def run_emulator(
    kernel: JITFunction, args: Mapping[str, Any], constants: Mapping[str, Any], grid: Sequence[int]
) -> None:
    """The kernel as PTX for an H200."""
    module, signature = unoptimised(kernel, args, constants, "cuda")
    text = gpu_code(module)
    device = GpuDevice(check=True)
    addresses = {name: device.upload(array) for name, array in args.items() if isinstance(array, np.ndarray)}
    facts = ptx_text.told(text)
    programs = int(np.prod(grid))
    scratch = device.allocate(max(16, facts.get("global_scratch_size", 0) * programs))
    values = [addresses[name] if name in addresses else args[name] for name in signature]
    function = device.load(text).function(kernel.__name__)
    device.launch(function, tuple(grid), 32 * WARPS, [*values, scratch, 0], facts.get("shared", 0))
    for name, address in addresses.items():
        args[name][...] = device.download(address, args[name])


WARPS = 4
GPU: dict[str, str] = {}


def gpu_code(module: ModuleOp) -> str:
    """PTX of a module before any pass."""
    key = print_module(module)
    if key not in GPU:
        try:
            run_pipeline(module, parse_pipeline(",".join(ttir_pipeline(Target.parse("cuda:90")))))
            run_pipeline(
                module, [one for item in ttgir_pipeline(Target.parse("cuda:90"), WARPS) for one in parse_pipeline(item)]
            )
            GPU[key] = to_ptx(emit_module(module, 90), PtxSettings("sm_90a", 88))
        except PassError as error:
            raise Refused(str(error)) from error
    return GPU[key]


HOSTS: dict[str, Device] = {"interpreter": run_interpreter, "evaluator": run_evaluator, "cpu": run_cpu}
DEVICES = HOSTS | {"emulator": run_emulator}
ORACLES = {name: HOSTS[name] for name in ("interpreter", "evaluator")}
ROOM = 16  # ulps between a GPU's floats and others', at least


def innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error)


def signature_of(value: Any) -> Any:
    """The signature code of an argument."""
    if isinstance(value, np.ndarray):
        return f"*{CODE[value.dtype]}"
    if isinstance(value, HostDescriptor):
        return f"tensordesc<{CODE[value.base.dtype]}{list(value.block_shape)}>"
    if isinstance(value, bool):
        return "u1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"
    return "fp32"


def launch(
    kernel: JITFunction,
    args: Mapping[str, Any],
    constants: Mapping[str, Any] | None = None,
    grid: Sequence[int] = (1,),
    *,
    ulps: int = 0,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> dict[str, Any]:
    """Run a kernel on every device of the host and compare all arrays afterwards; the arrays of the first device."""
    wanted: dict[str, Any] = {}
    for name, device in HOSTS.items():
        own = {key: copied(value) for key, value in args.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            device(kernel, own, constants or {}, grid)
        wanted = wanted or own
        for key, value in wanted.items():
            left, right = (item.base if isinstance(item, HostDescriptor) else item for item in (value, own[key]))
            if isinstance(left, np.ndarray):
                compare(left, right, f"{key}: {next(iter(HOSTS))} and {name}", ulps, rtol, atol)
    return wanted


def copied(value: Any) -> Any:
    if isinstance(value, HostDescriptor):
        return replace(value, base=value.base.copy())
    return value.copy() if isinstance(value, np.ndarray) else value


@jit
def load_input(pointer, SHAPE: tl.constexpr, NUMEL: tl.constexpr):
    if len(SHAPE) == 0:
        return tl.load(pointer)
    else:
        return tl.reshape(tl.load(pointer + tl.arange(0, NUMEL)), SHAPE)


@jit
def store_result(out, value, INDEX: tl.constexpr, NOTE: tl.constexpr):
    NOTE(value, INDEX)
    pointer = out.to(tl.pointer_type(value.dtype))
    if len(value.shape) == 0:
        tl.store(pointer, value)
    else:
        tl.store(pointer + tl.arange(0, value.numel), tl.reshape(value, [value.numel]))


@jit
def store_all(out, result, SLOT: tl.constexpr, NOTE: tl.constexpr):
    if isinstance(result, tl.tuple):
        for index in tl.static_range(len(result)):
            store_result(out + index * SLOT, result[index], index, NOTE)
    else:
        store_result(out, result, 0, NOTE)


@jit
def apply1(a, out, FN: CE, SHAPES: CE, NUMELS: CE, PARAMS: CE, SLOT: CE, NOTE: CE):
    store_all(out, FN(load_input(a, SHAPES[0], NUMELS[0]), *PARAMS), SLOT, NOTE)


@jit
def apply2(a, b, out, FN: CE, SHAPES: CE, NUMELS: CE, PARAMS: CE, SLOT: CE, NOTE: CE):
    x = load_input(a, SHAPES[0], NUMELS[0])
    store_all(out, FN(x, load_input(b, SHAPES[1], NUMELS[1]), *PARAMS), SLOT, NOTE)


@jit
def apply3(a, b, c, out, FN: CE, SHAPES: CE, NUMELS: CE, PARAMS: CE, SLOT: CE, NOTE: CE):
    x = load_input(a, SHAPES[0], NUMELS[0])
    y = load_input(b, SHAPES[1], NUMELS[1])
    store_all(out, FN(x, y, load_input(c, SHAPES[2], NUMELS[2]), *PARAMS), SLOT, NOTE)


@jit
def apply4(a, b, c, d, out, FN: CE, SHAPES: CE, NUMELS: CE, PARAMS: CE, SLOT: CE, NOTE: CE):
    x = load_input(a, SHAPES[0], NUMELS[0])
    y = load_input(b, SHAPES[1], NUMELS[1])
    z = load_input(c, SHAPES[2], NUMELS[2])
    store_all(out, FN(x, y, z, load_input(d, SHAPES[3], NUMELS[3]), *PARAMS), SLOT, NOTE)


@jit
def apply5(a, b, c, d, e, out, FN: CE, SHAPES: CE, NUMELS: CE, PARAMS: CE, SLOT: CE, NOTE: CE):
    x = load_input(a, SHAPES[0], NUMELS[0])
    y = load_input(b, SHAPES[1], NUMELS[1])
    z = load_input(c, SHAPES[2], NUMELS[2])
    w = load_input(d, SHAPES[3], NUMELS[3])
    store_all(out, FN(x, y, z, w, load_input(e, SHAPES[4], NUMELS[4]), *PARAMS), SLOT, NOTE)


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

    With all tolerances zero the results must be equal bit by bit (any NaN equals any NaN). `gpu` are the (relative, absolute)
    tolerances of a GPU where it computes less exactly; with `emulated` false it is left out, and `devices` chooses others. If
    one device refuses the program, all must; then `Refused` is raised.
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
        assert wanted[0] == got[0], f"{pair} give results of types {wanted[0]} and {got[0]}"
        for index, (left, right) in enumerate(zip(wanted[1], got[1], strict=True)):
            what = f"result {index} of {pair}"
            if other == "emulator":
                room = ROOM if ulps or rtol or atol else 0  # what is exact elsewhere is exact on a GPU
                compare(left, right, what, max(ulps, room), max(rtol, gpu[0]), max(atol, gpu[1]))
            else:
                compare(left, right, what, ulps, rtol, atol)
    if isinstance(wanted, Refused):
        raise wanted
    return wanted[1]


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
    out = np.zeros(SLOT * RESULTS, np.uint64)
    noted.constants = noted.constants or {
        **{"FN": fn, "SHAPES": tuple(array.shape for array in inputs), "NUMELS": tuple(a.size for a in inputs)},
        **{"PARAMS": tuple(params), "SLOT": SLOT, "NOTE": noted.note},
    }
    names = "abcde"[: len(flat)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            device(KERNELS[len(flat)], {**dict(zip(names, flat, strict=True)), "out": out}, noted.constants, (1,))
        except Refused as refused:
            return refused
    noted.types = noted.types or before  # nothing was compiled: the module is that of the device before
    types = noted.types
    arrays = []
    for index, type in types.items():
        numpy = np.dtype(NUMPY[type.scalar.mangle()])
        shape = tuple(type.shape.values) if type.is_block() else ()
        size = int(np.prod(shape, dtype=int))
        arrays.append(out[index * SLOT : (index + 1) * SLOT].view(numpy)[:size].reshape(shape).copy())
    return [str(type) for type in types.values()], arrays


def compare(left: Array, right: Array, what: str, ulps: int = 0, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Equal bit by bit, or within `ulps` units in the last place, or within ``atol + rtol * |left|``."""
    assert left.dtype == right.dtype and left.shape == right.shape, f"{what}: {left.dtype} {right.dtype}"
    a, b = bits(left), bits(right)
    good = a == b
    if left.dtype.kind not in "biu":
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
