"""The devices that kernels are compared on: interpreter, evaluator, machine code of the host, emulated GPU.

The GPU is an H200 or one of AMD's, which the inputs decide, or what the environment says: ``DIFFERENTIAL_GPU=hip:gfx942
pytest tests/differential``. ``DIFFERENTIAL_EXAMPLES=40`` draws more than the few of `make test`.
``DIFFERENTIAL_CPU=sve`` compares code for another CPU than this one, a name in `tests/targets/other_cpus.py`;
`test_differential_cpus.py` does a part of that.
"""

import os
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any
from zlib import crc32

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp

import tilework.language as tl
from tests.targets.other_cpus import CPUS, run_emulated
from tilework.errors import CompilationError, InterpreterError, PassError
from tilework.frontend.generator import compile_to_ttir
from tilework.frontend.kernel import FrontendOptions
from tilework.ir.printer import print_module
from tilework.language.function import JITFunction
from tilework.oracles.emulator.device import Device as GpuDevice
from tilework.oracles.emulator.llvm.run_llvm import run
from tilework.oracles.evaluator import evaluate
from tilework.oracles.interpreter import InterpretedFunction
from tilework.runtime.devices.host.pack import Packer, slots_of
from tilework.runtime.launch.python.specialize import is_small, parse_attr
from tilework.target import Feature, Target
from tilework.targets.amd import code_object
from tilework.targets.amd import pipeline as amd_pipeline
from tilework.targets.amd.lower import emit as amd_emit
from tilework.targets.cpu.pipeline import llvm_text, object_code, tile_loops
from tilework.targets.cpu.run import pool as driver
from tilework.targets.cpu.run.interface import Interface, NativeKernel, load
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.lower.emit import emit_module
from tilework.targets.nvidia.pipeline import ttgir_pipeline
from tilework.targets.nvidia.ptx import PtxSettings, to_ptx
from tilework.transforms.registry import parse_pipeline, run_pipeline, ttir_pipeline
from tilework.transforms.tt.pad_tiles import has_odd_tiles

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
    round_f32_to_tf32: bool = False

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
    is_given = any(isinstance(value, HostDescriptor) for value in args.values())
    has_descriptors = is_given or any(op.name == "tt.make_tensor_descriptor" for op in module.walk())
    target = "cpu" if has_odd_tiles(module) and not is_given else "cuda:90"  # where they are not padded
    run_pipeline(module, parse_pipeline(",".join(ttir_pipeline(Target.parse(target)))))
    if target == "cpu" or not has_descriptors:
        READY[:] = [(kernel, signature, passed(args, constants), module)]
    evaluate(module, None, [evaluator_argument(args[name]) for name in signature], grid)


def run_cpu(kernel: JITFunction, args: Mapping[str, Any], constants: Mapping[str, Any], grid: Sequence[int]) -> None:
    """The kernel as machine code of this host, from the module that the evaluator has just run if it would be the
    same."""
    ready = READY.pop() if READY else None
    if ready is not None and ready[0] is kernel and same_values(ready[2], passed(args, constants)):
        signature, module, is_optimised = ready[1], ready[3], True
    else:
        (module, signature), is_optimised = unoptimised(kernel, args, constants), False
    native, interface, pack = machine_code(module, tuple(signature.values()), is_optimised=is_optimised)
    x, y, z = (*grid, 1, 1)[:3]
    driver.run(native, interface, pack([args[name] for name in signature]), (x, y, z))


def other_cpu(name: str) -> Device:
    """A CPU of `other_cpus.py`, whose code QEMU runs."""
    cpu = CPUS[name]

    def run_other(
        kernel: JITFunction, args: Mapping[str, Any], constants: Mapping[str, Any], grid: Sequence[int]
    ) -> None:
        READY.clear()
        module, signature = unoptimised(kernel, args, constants)
        try:
            run_pipeline(module, parse_pipeline(",".join(ttir_pipeline(Target.parse("cpu")))))
        except PassError as error:
            raise Refused(str(error)) from error
        text = cpu.kernel_text(tile_loops(module))
        interface = Interface.read(text)
        pack = slots_of(interface.parameters, tuple(signature.values()), (), interface.name).packer()
        given = [args[name] for name in signature]
        arrays = [one.base if isinstance(one, HostDescriptor) else one for one in given]
        x, y, z = (*grid, 1, 1)[:3]
        run_emulated(cpu, text, pack(given), [one for one in arrays if isinstance(one, np.ndarray)], (x, y, z))

    return run_other


# The last kernel that the evaluator ran, its parameters, what it was compiled for, and its module behind the passes.
# Those for the CPU are the same ones where there are no descriptors, odd tiles and arguments that overlap
# (`test_the_cpu_shares_the_passes_of_ttir`).
READY: list[tuple[JITFunction, dict[str, str], dict[str, Any], ModuleOp]] = []


def passed(args: Mapping[str, Any], constants: Mapping[str, Any]) -> dict[str, Any]:
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
        pack = slots_of(
            interface.parameters, signature, interface.stored, interface.name, interface.alignments
        ).packer()
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
    arrays = {name: value for name, value in args.items() if backend == "hip" and isinstance(value, np.ndarray)}
    facts = {(kernel.arg_names.index(name),): parse_attr("S") for name, value in arrays.items() if is_small(value)}
    try:
        return compile_to_ttir(kernel, signature, {**constants, **fixed}, facts, options), given
    except CompilationError as error:
        raise Refused(innermost(error)) from error


def evaluator_argument(value: Any) -> Any:
    if isinstance(value, HostDescriptor):
        flags = {"nan": value.padding == "nan", "tf32": value.round_f32_to_tf32}
        return (value.base, value.shape, value.strides, *(flag for flag, is_set in flags.items() if is_set))
    return value


def run_emulator(
    kernel: JITFunction,
    args: Mapping[str, Any],
    constants: Mapping[str, Any],
    grid: Sequence[int],
    target: Target = Target.parse("cuda:90"),
) -> None:
    """The kernel as PTX, for an H200 if no other GPU is given."""
    module, signature = unoptimised(kernel, args, constants, "cuda")
    text, warps = gpu_code(module, target)
    device = GpuDevice(check=True, together=True)
    addresses = {name: device.upload(array) for name, array in args.items() if isinstance(array, np.ndarray)}
    facts = ptx_text.metadata(text)
    programs = int(np.prod(grid))
    scratch = device.allocate(max(16, facts.get("global_scratch_size", 0) * programs))
    values = [addresses[name] if name in addresses else args[name] for name in signature]
    function = device.load(text).function(kernel.__name__)
    device.launch(function, tuple(grid), 32 * warps, [*values, scratch, 0], facts.get("shared", 0))
    for name, address in addresses.items():
        args[name][...] = device.download(address, args[name])


WARPS = 4
GPU: dict[Any, tuple[str, int]] = {}


def gpu_code(module: ModuleOp, target: Target) -> tuple[str, int]:
    """PTX of a module before any pass, and for how many warps it is."""
    key = target, print_module(module)
    if key not in GPU:
        warps = warps_of(key[1])
        try:
            passes = [*ttir_pipeline(target), *ttgir_pipeline(target, warps)]
            run_pipeline(module, [one for item in passes for one in parse_pipeline(item)])
            processor = f"sm_{target.arch}{'a' * (Feature.WGMMA in target.features)}"
            GPU[key] = to_ptx(emit_module(module, int(target.arch)), PtxSettings(processor, 88)), warps
        except PassError as error:
            raise Refused(str(error)) from error
    return GPU[key]


def warps_of(text: str) -> int:
    """1, 2 or 4, generated for each module, where its tiles are small; large tiles and dots have 4, of which tensor
    cores make groups."""
    sizes = (prod(map(int, shape.split("x"))) for shape in re.findall(r"tensor<(\d+(?:x\d+)*)x", text))
    return WARPS if "tt.dot" in text or max(sizes, default=1) > 64 else 1 << crc32(text.encode()) % 3


def run_amd_emulator(
    target: Target, kernel: JITFunction, args: Mapping[str, Any], constants: Mapping[str, Any], grid: Sequence[int]
) -> None:
    """The kernel as LLVM text for an AMD GPU."""
    module, signature = unoptimised(kernel, args, constants, "hip")
    num_stages = 1 + crc32(print_module(module).encode()) % 4  # generated, and the same in each run
    try:
        passes = [*ttir_pipeline(target), *amd_pipeline.ttgir_pipeline(target, WARPS, num_stages)]
        run_pipeline(module, [one for item in passes for one in parse_pipeline(item)])
        text = amd_emit.emit_module(module, target)
    except PassError as error:
        raise Refused(str(error)) from error
    facts = code_object.metadata(text)
    scratch = np.zeros(max(16, facts.get("global_scratch_size", 0) * int(np.prod(grid))), np.uint8)
    values = [args[name] for name in signature]
    threads = target.warp_size * WARPS
    run(text, [*values, scratch, None], grid, threads, facts.get("shared", 0), str(target.arch))


def gpu_of(names: Sequence[str]) -> Device:
    """One of the GPUs, always the same one for the same inputs."""

    def run_gpu(
        kernel: JITFunction, args: Mapping[str, Any], constants: Mapping[str, Any], grid: Sequence[int]
    ) -> None:
        seen = 0
        for value in args.values():
            seen = zlib.crc32(value.tobytes(), seen) if isinstance(value, np.ndarray) else seen
        target = Target.parse(names[seen % len(names)])
        if target.backend == "hip":
            return run_amd_emulator(target, kernel, args, constants, grid)
        run_emulator(kernel, args, constants, grid, target)

    return run_gpu


AMD = ("hip:gfx942", "hip:gfx1100")
GPU_NAMES = os.environ.get("DIFFERENTIAL_GPU", f"cuda:90 {AMD[0]} cuda:90 {AMD[1]}").split()
CPU = other_cpu(os.environ["DIFFERENTIAL_CPU"]) if "DIFFERENTIAL_CPU" in os.environ else run_cpu
HOSTS: dict[str, Device] = {"interpreter": run_interpreter, "evaluator": run_evaluator, "cpu": CPU}
DEVICES = HOSTS | {"emulator": gpu_of(GPU_NAMES)}
ON_NVIDIA = HOSTS | {"emulator": run_emulator}
ON_AMD = HOSTS | {"emulator": gpu_of([name for name in GPU_NAMES if name in AMD] or AMD)}
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
